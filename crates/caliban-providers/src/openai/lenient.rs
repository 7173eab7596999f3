//! Reading fields that servers leave out, null or mistype.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A field whose value is of no use counts as absent, so that it cannot cost the answer.
pub(super) fn lenient<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = Value::deserialize(from)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// A list of which every entry is read as well as it can be; positions are kept.
pub(super) fn entries<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let values: Vec<Value> = lenient(from)?;
    Ok(values
        .into_iter()
        .map(|value| serde_json::from_value(value).unwrap_or_default())
        .collect())
}

/// A non-blank string.
pub(super) fn filled(value: Option<&str>) -> Option<&str> {
    value.filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Deserialize, Debug, PartialEq)]
    struct Sample {
        #[serde(default, deserialize_with = "lenient")]
        count: Option<u64>,
        #[serde(default, deserialize_with = "entries")]
        list: Vec<String>,
    }

    #[test]
    fn a_useless_entry_does_not_cost_its_neighbours() {
        let sample: Sample = serde_json::from_value(json!({"list": ["a", null, "b"]})).unwrap();
        assert_eq!(sample.list, ["a", "", "b"]);
    }

    #[test]
    fn useless_values_count_as_absent() {
        for value in [
            json!({}),
            json!({"count": null, "list": null}),
            json!({"count": "x", "list": {"a": 1}}),
        ] {
            assert_eq!(
                serde_json::from_value::<Sample>(value).unwrap(),
                Sample {
                    count: None,
                    list: Vec::new()
                }
            );
        }
    }
}
