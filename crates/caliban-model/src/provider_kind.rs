//! The providers there are: their names, their models, and the variables that concern them.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::model_id::base_model;

/// The providers that `--provider` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProviderKind {
    Anthropic,
    OpenAi,
    Google,
    Ollama,
    Bedrock,
    Vertex,
    Azure,
}

/// Which of OpenAI's two APIs is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OpenAiApi {
    Responses,
    Chat,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider `{0}`; use anthropic, openai, google, ollama, bedrock, vertex or azure")]
pub struct UnknownProvider(pub String);

/// What is fixed about a provider.
struct Facts {
    name: &'static str,
    default_model: &'static str,
    keys: &'static [&'static str],
    base_variable: &'static str,
    base: &'static str,
}

impl ProviderKind {
    pub const ALL: [Self; 7] = [
        Self::Anthropic,
        Self::OpenAi,
        Self::Google,
        Self::Ollama,
        Self::Bedrock,
        Self::Vertex,
        Self::Azure,
    ];

    fn facts(self) -> Facts {
        match self {
            Self::Anthropic => Facts {
                name: "anthropic",
                default_model: "claude-sonnet-4-6",
                keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
                base_variable: "ANTHROPIC_BASE_URL",
                base: "https://api.anthropic.com",
            },
            Self::OpenAi => Facts {
                name: "openai",
                default_model: "gpt-5.5",
                keys: &["OPENAI_API_KEY"],
                base_variable: "OPENAI_BASE_URL",
                base: "https://api.openai.com/v1",
            },
            Self::Google => Facts {
                name: "google",
                default_model: "gemini-3.8-flash",
                keys: &["GEMINI_API_KEY", "GOOGLE_GEMINI_API_KEY"],
                base_variable: "GEMINI_BASE_URL",
                base: "https://generativelanguage.googleapis.com",
            },
            Self::Ollama => Facts {
                name: "ollama",
                default_model: "llama3.1",
                keys: &[],
                base_variable: "OLLAMA_BASE_URL",
                base: "http://localhost:11434",
            },
            Self::Bedrock => Facts {
                name: "bedrock",
                default_model: "claude-sonnet-4-6",
                keys: &["AWS_BEARER_TOKEN_BEDROCK"],
                base_variable: "ANTHROPIC_BEDROCK_BASE_URL",
                base: "https://bedrock-runtime.us-east-1.amazonaws.com",
            },
            Self::Vertex => Facts {
                name: "vertex",
                default_model: "claude-sonnet-4-6",
                keys: &[],
                base_variable: "ANTHROPIC_VERTEX_BASE_URL",
                base: "https://aiplatform.googleapis.com",
            },
            Self::Azure => Facts {
                name: "azure",
                default_model: "gpt-5.5",
                keys: &["AZURE_OPENAI_API_KEY"],
                base_variable: "AZURE_OPENAI_ENDPOINT",
                base: "https://RESOURCE.openai.azure.com",
            },
        }
    }

    pub fn as_str(self) -> &'static str {
        self.facts().name
    }

    /// The variable that holds the address of another server.
    pub fn base_url_variable(self) -> &'static str {
        self.facts().base_variable
    }

    /// The address of the provider itself.
    pub fn default_base_url(self) -> &'static str {
        self.facts().base
    }

    /// The variables that may hold the key, the first to be set wins.
    pub fn key_variables(self) -> &'static [&'static str] {
        self.facts().keys
    }

    /// The model used when none is named.
    pub fn default_model(self) -> &'static str {
        self.facts().default_model
    }

    /// Whether it serves the models of others, to accounts that log in to it in many ways.
    pub fn is_cloud(self) -> bool {
        match self {
            Self::Anthropic | Self::OpenAi | Self::Google | Self::Ollama => false,
            Self::Bedrock | Self::Vertex | Self::Azure => true,
        }
    }

    /// Whether nothing works at its own address without a key.
    pub fn needs_key(self) -> bool {
        !self.is_cloud() && !self.key_variables().is_empty()
    }

    /// Whose model a name sounds like; nothing for names that anybody might serve.
    pub fn of_model(name: &str) -> Option<Self> {
        let base = base_model(name);
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| base.starts_with(prefix));
        // Its weights are public, so whoever serves it may have been meant.
        if starts(&["gpt-oss"]) {
            return None;
        }
        if starts(&["claude-"]) {
            Some(Self::Anthropic)
        } else if starts(&["gpt-", "chatgpt-", "o1", "o3", "o4"]) {
            Some(Self::OpenAi)
        } else if starts(&["gemini-"]) {
            Some(Self::Google)
        } else {
            None
        }
    }
}

impl fmt::Display for ProviderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ProviderKind {
    type Err = UnknownProvider;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| UnknownProvider(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_tells_its_provider() {
        for (name, provider) in [
            ("claude-sonnet-4-6", Some(ProviderKind::Anthropic)),
            ("gpt-5.5", Some(ProviderKind::OpenAi)),
            ("o3-mini", Some(ProviderKind::OpenAi)),
            ("models/gemini-3.8-flash", Some(ProviderKind::Google)),
            ("llama3.1", None),
        ] {
            assert_eq!(ProviderKind::of_model(name), provider, "{name}");
        }
    }

    #[test]
    fn every_provider_is_found_by_its_name() {
        for kind in ProviderKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert!("bard".parse::<ProviderKind>().is_err());
    }
}
