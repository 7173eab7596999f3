//! Values with limits, checked where they are read so that the error has a place.

use std::collections::BTreeMap;
use std::fmt;

use caliban_model::Purpose;
use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

pub(super) fn whole<'de, D, const MIN: u64, const MAX: u64>(
    deserializer: D,
) -> Result<Option<u64>, D::Error>
where
    D: Deserializer<'de>,
{
    let Some(number) = Option::<u64>::deserialize(deserializer)? else {
        return Ok(None);
    };
    if (MIN..=MAX).contains(&number) {
        Ok(Some(number))
    } else {
        Err(D::Error::custom(format_args!(
            "must be between {MIN} and {MAX}, not {number}"
        )))
    }
}

/// The purposes that a model can be set for.
const PURPOSES: [Purpose; 5] = [
    Purpose::MainLoop,
    Purpose::Summarization,
    Purpose::FastClassifier,
    Purpose::SubAgent,
    Purpose::Embedding,
];

/// A text for each of some purposes; one that is unknown is an error at its place.
pub(super) fn by_purpose<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    deserializer.deserialize_map(ByPurpose)
}

struct ByPurpose;

impl<'de> Visitor<'de> for ByPurpose {
    type Value = BTreeMap<String, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of purposes and models")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut models = BTreeMap::new();
        while let Some(purpose) = map.next_key::<String>()? {
            let model = map.next_value_seed(For(&purpose))?;
            models.insert(purpose, model);
        }
        Ok(models)
    }
}

/// The text for one purpose.
struct For<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for For<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        let slug = self.0.replace('-', "_");
        if PURPOSES.iter().all(|known| known.slug() != slug) {
            let known = PURPOSES.map(Purpose::slug).join(", ");
            return Err(D::Error::custom(format_args!(
                "`{}` is no purpose; use one of {known}",
                self.0
            )));
        }
        String::deserialize(deserializer)
    }
}

pub(super) fn non_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.trim().is_empty() {
        return Err(D::Error::custom("must not be empty"));
    }
    Ok(text)
}
