//! What the running server says about a model.

use caliban_model::{Capabilities, ToolSupport};
use serde_json::Value;

use super::wire::Show;

/// What the server told, or could not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) tools: Support,
    pub(super) vision: Support,
    pub(super) thinking: Thinking,
    /// Tokens the model was made for.
    pub(super) context: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Support {
    Yes,
    No,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    /// Can be switched off, or given a level.
    Optional,
    /// Takes levels, but cannot be switched off.
    LevelsOnly,
    Never,
    Unknown,
}

impl Facts {
    pub(super) const UNKNOWN: Self = Self {
        tools: Support::Unknown,
        vision: Support::Unknown,
        thinking: Thinking::Unknown,
        context: None,
    };

    /// The table's view of the model, corrected by what the server told.
    pub(super) fn correct(self, table: Capabilities) -> Capabilities {
        Capabilities {
            tools: match self.tools {
                Support::Yes => ToolSupport::Basic,
                Support::No => ToolSupport::None,
                Support::Unknown => table.tools,
            },
            vision: match self.vision {
                Support::Yes => true,
                Support::No => false,
                Support::Unknown => table.vision,
            },
            thinking: match self.thinking {
                Thinking::Optional | Thinking::LevelsOnly => true,
                Thinking::Never => false,
                Thinking::Unknown => table.thinking,
            },
            ..table
        }
    }
}

impl From<Show> for Facts {
    fn from(show: Show) -> Self {
        let has = |name: &str| match &show.capabilities {
            Some(all) if all.iter().any(|capability| capability == name) => Support::Yes,
            Some(_) => Support::No,
            None => Support::Unknown,
        };
        let architecture = show
            .model_info
            .get("general.architecture")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let own_length = show
            .model_info
            .get(&format!("{architecture}.context_length"));
        let any_length = show
            .model_info
            .iter()
            .find_map(|(name, value)| name.ends_with(".context_length").then_some(value));
        Self {
            tools: has("tools"),
            vision: has("vision"),
            thinking: match has("thinking") {
                Support::Yes if matches!(architecture, "gptoss" | "gpt-oss") => {
                    Thinking::LevelsOnly
                }
                Support::Yes => Thinking::Optional,
                Support::No => Thinking::Never,
                Support::Unknown => Thinking::Unknown,
            },
            context: own_length
                .or(any_length)
                .and_then(Value::as_u64)
                .filter(|length| *length > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    fn facts(show: Value) -> Facts {
        Facts::from(Show::deserialize(show).unwrap())
    }

    #[test]
    fn capabilities_and_context_are_read() {
        assert_eq!(
            facts(
                json!({"capabilities": ["completion", "tools", "thinking"], "license": "…",
                "model_info": {"general.architecture": "qwen3", "clip.context_length": 77,
                    "qwen3.context_length": 40960}})
            ),
            Facts {
                tools: Support::Yes,
                vision: Support::No,
                thinking: Thinking::Optional,
                context: Some(40_960),
            }
        );
        assert_eq!(
            facts(json!({"capabilities": ["completion", "thinking"],
                "model_info": {"general.architecture": "gptoss", "other.context_length": 9}})),
            Facts {
                tools: Support::No,
                vision: Support::No,
                thinking: Thinking::LevelsOnly,
                context: Some(9),
            }
        );
    }

    #[test]
    fn an_older_server_leaves_things_unknown() {
        assert_eq!(facts(json!({"modelfile": "FROM x"})), Facts::UNKNOWN);
        assert_eq!(
            facts(json!({"capabilities": null, "model_info": null})),
            Facts::UNKNOWN
        );
    }
}
