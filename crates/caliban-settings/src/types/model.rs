//! Keys that may be written in several forms: models, key helpers and the compaction threshold.

use std::fmt;

use caliban_model::ProviderKind;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bounded;

/// A model: its name alone, or with the provider that serves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ModelChoice {
    Name(String),
    Qualified(QualifiedModel),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QualifiedModel {
    #[serde(with = "provider")]
    #[schemars(with = "String", extend("enum" = ["anthropic", "openai", "google", "ollama", "bedrock", "vertex", "azure"]))]
    pub provider: ProviderKind,
    #[serde(deserialize_with = "bounded::non_empty")]
    pub name: String,
}

impl ModelChoice {
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Qualified(model) => &model.name,
        }
    }

    pub fn provider(&self) -> Option<ProviderKind> {
        match self {
            Self::Name(_) => None,
            Self::Qualified(model) => Some(model.provider),
        }
    }
}

impl<'de> Deserialize<'de> for ModelChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = ModelChoice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a model's name or a table with `provider` and `name`")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
                if name.trim().is_empty() {
                    return Err(E::custom("must not be empty"));
                }
                Ok(ModelChoice::Name(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                QualifiedModel::deserialize(MapAccessDeserializer::new(map))
                    .map(ModelChoice::Qualified)
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

mod provider {
    use super::{Deserialize, Deserializer, Error, ProviderKind, Serializer};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the signature is serde's"
    )]
    pub(super) fn serialize<S: Serializer>(
        provider: &ProviderKind,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(provider.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ProviderKind, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

/// Programs that print API keys, as they are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ApiKeyHelpers {
    /// One program for every provider.
    Command(String),
    One(ApiKeyHelper),
    Several(Vec<ApiKeyHelper>),
}

/// One program and the provider it serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApiKeyHelper {
    #[serde(deserialize_with = "bounded::non_empty")]
    pub command: String,
    /// A provider's name, or `*` (and absent) for every provider without its own helper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// How long a key is kept, in milliseconds; 300000 unless set.
    #[serde(
        rename = "refreshIntervalMs",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub refresh_interval_ms: Option<u64>,
    /// When a slow program is warned about, in milliseconds; 10000 unless set.
    #[serde(
        rename = "slowHelperWarningMs",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub slow_helper_warning_ms: Option<u64>,
}

impl ApiKeyHelpers {
    /// The same helpers in one form.
    pub fn list(&self) -> Vec<ApiKeyHelper> {
        match self {
            Self::Command(command) => vec![ApiKeyHelper {
                command: command.clone(),
                provider: None,
                refresh_interval_ms: None,
                slow_helper_warning_ms: None,
            }],
            Self::One(helper) => vec![helper.clone()],
            Self::Several(helpers) => helpers.clone(),
        }
    }
}

impl<'de> Deserialize<'de> for ApiKeyHelpers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = ApiKeyHelpers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a command, a table with `command`, or a list of such tables")
            }

            fn visit_str<E: Error>(self, command: &str) -> Result<Self::Value, E> {
                if command.trim().is_empty() {
                    return Err(E::custom("must not be empty"));
                }
                Ok(ApiKeyHelpers::Command(command.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                ApiKeyHelper::deserialize(MapAccessDeserializer::new(map)).map(ApiKeyHelpers::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(ApiKeyHelpers::Several)
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

/// When the conversation is compacted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum AutoCompaction {
    #[default]
    Unset,
    Off,
    /// A share of the context window in `0.0..=1.0`.
    At(f64),
}

impl AutoCompaction {
    pub(super) fn is_unset(&self) -> bool {
        *self == Self::Unset
    }
}

impl Serialize for AutoCompaction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unset | Self::Off => serializer.serialize_unit(),
            Self::At(share) => serializer.serialize_f64(*share),
        }
    }
}

impl<'de> Deserialize<'de> for AutoCompaction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl Visitor<'_> for Forms {
            type Value = AutoCompaction;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number between 0 and 1, or null (in TOML `false`) for off")
            }

            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(AutoCompaction::Off)
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
                if value {
                    Err(E::invalid_type(serde::de::Unexpected::Bool(value), &self))
                } else {
                    Ok(AutoCompaction::Off)
                }
            }

            fn visit_f64<E: Error>(self, share: f64) -> Result<Self::Value, E> {
                if (0.0..=1.0).contains(&share) {
                    Ok(AutoCompaction::At(share))
                } else {
                    Err(E::custom(format_args!(
                        "must be between 0 and 1, not {share}"
                    )))
                }
            }

            fn visit_u64<E: Error>(self, share: u64) -> Result<Self::Value, E> {
                match share {
                    0 => self.visit_f64(0.0),
                    1 => self.visit_f64(1.0),
                    other => Err(E::custom(format_args!(
                        "must be between 0 and 1, not {other}"
                    ))),
                }
            }

            fn visit_i64<E: Error>(self, share: i64) -> Result<Self::Value, E> {
                match u64::try_from(share) {
                    Ok(share) => self.visit_u64(share),
                    Err(_) => Err(E::custom(format_args!(
                        "must be between 0 and 1, not {share}"
                    ))),
                }
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

impl JsonSchema for AutoCompaction {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AutoCompaction".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "number", "minimum": 0, "maximum": 1 },
                { "type": "null" },
                { "const": false }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    #[test]
    fn a_model_is_a_name_or_a_table() {
        let name: ModelChoice = from_value(json!("m")).unwrap();
        assert_eq!((name.name(), name.provider()), ("m", None));
        let table: ModelChoice = from_value(json!({"provider": "openai", "name": "g"})).unwrap();
        assert_eq!(
            (table.name(), table.provider()),
            ("g", Some(ProviderKind::OpenAi))
        );
        let error = from_value::<ModelChoice>(json!({"provider": "opnai", "name": "g"}));
        assert_eq!(
            error.unwrap_err().to_string(),
            "unknown provider `opnai`; use anthropic, openai, google, ollama, bedrock, vertex or azure"
        );
        for wrong in [json!(5), json!([]), json!({"name": "g"}), json!("")] {
            assert!(from_value::<ModelChoice>(wrong).is_err());
        }
    }

    #[test]
    fn key_helpers_have_three_forms() {
        let forms: [(Value, usize); 3] = [
            (json!("/bin/key"), 1),
            (json!({"command": "/bin/key", "refreshIntervalMs": 5}), 1),
            (
                json!([{"command": "a", "provider": "openai"}, {"command": "b", "provider": "*"}]),
                2,
            ),
        ];
        for (form, count) in forms {
            let helpers: ApiKeyHelpers = from_value(form.clone()).unwrap();
            assert_eq!(helpers.list().len(), count);
            assert_eq!(serde_json::to_value(&helpers).unwrap(), form);
        }
        for wrong in [
            json!(1),
            json!({}),
            json!([{"provider": "x"}]),
            json!({"command": " "}),
        ] {
            assert!(from_value::<ApiKeyHelpers>(wrong).is_err());
        }
    }
}
