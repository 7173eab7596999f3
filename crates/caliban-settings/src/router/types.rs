//! What `caliban.toml` says, as types.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use caliban_model::{Effort, Knob, OpenAiApi, ProviderKind, Purpose};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouterFile {
    /// How providers are reached, by their names.
    pub provider: BTreeMap<ProviderId, ProviderBlock>,
    pub images: ImageLimits,
    /// Absent where the file declares no router.
    pub router: Option<RouterConfig>,
}

/// Everyone a route may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub enum ProviderId {
    Anthropic,
    OpenAi,
    Google,
    Ollama,
    Azure,
    Bedrock,
    Vertex,
}

impl ProviderId {
    pub const ALL: [Self; 7] = [
        Self::Anthropic,
        Self::OpenAi,
        Self::Google,
        Self::Ollama,
        Self::Azure,
        Self::Bedrock,
        Self::Vertex,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Google => "google",
            Self::Ollama => "ollama",
            Self::Azure => "azure",
            Self::Bedrock => "bedrock",
            Self::Vertex => "vertex",
        }
    }

    /// The provider of this name.
    pub fn kind(self) -> ProviderKind {
        match self {
            Self::Anthropic => ProviderKind::Anthropic,
            Self::OpenAi => ProviderKind::OpenAi,
            Self::Google => ProviderKind::Google,
            Self::Ollama => ProviderKind::Ollama,
            Self::Azure => ProviderKind::Azure,
            Self::Bedrock => ProviderKind::Bedrock,
            Self::Vertex => ProviderKind::Vertex,
        }
    }

    /// How the names of this provider's environment variables begin.
    pub(super) fn variable_prefixes(self) -> &'static [&'static str] {
        match self {
            Self::Anthropic => &["ANTHROPIC_"],
            Self::OpenAi => &["OPENAI_"],
            Self::Google => &["GEMINI_", "GOOGLE_GEMINI_"],
            Self::Ollama => &["OLLAMA_"],
            Self::Azure => &["AZURE_"],
            Self::Bedrock => &["AWS_"],
            Self::Vertex => &["GOOGLE_APPLICATION_", "GOOGLE_CLOUD_"],
        }
    }
}

impl TryFrom<String> for ProviderId {
    type Error = String;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        let known = Self::ALL.into_iter().find(|id| id.as_str() == name);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            format!("unknown provider `{name}`; use one of {names}")
        })
    }
}

/// How one provider is reached.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ProviderBlock {
    /// The environment variable that holds the key.
    pub api_key_env: Option<String>,
    pub base_url: Option<String>,
    /// Which of OpenAI's APIs is spoken; chosen by the base URL where absent.
    pub api: Option<OpenAiApi>,
    /// What other providers need: regions, projects, deployments.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// How large images may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImageLimits {
    /// Before encoding.
    #[serde(deserialize_with = "above_zero")]
    pub max_bytes: u64,
    /// The longest edge after scaling down, in pixels.
    #[serde(deserialize_with = "above_zero")]
    pub downscale_target: u32,
}

impl Default for ImageLimits {
    fn default() -> Self {
        Self {
            max_bytes: 5 * 1024 * 1024,
            downscale_target: 1568,
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouterConfig {
    pub default_purpose: Option<Purpose>,
    /// In the order they are tried.
    #[serde(rename = "route")]
    pub routes: Vec<Route>,
    /// For every route that does not say otherwise.
    pub hedge: Option<Hedge>,
    /// For every route that does not say otherwise.
    pub breaker: Option<Breaker>,
    /// How long a conversation stays on the route that stood in for another, in seconds; 600
    /// unless set.
    pub return_after_secs: Option<u64>,
    /// Words that stand for a route or a model.
    pub alias: BTreeMap<String, String>,
    /// By what the routes of a purpose are ordered.
    pub order: BTreeMap<Purpose, RouteOrder>,
    /// Cheaper routes for when much of the budget is spent.
    #[serde(rename = "budget")]
    pub budgets: Vec<RouteBudget>,
}

/// By what routes are ordered instead of by the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteOrder {
    Declared,
    Cheapest,
    Fastest,
}

/// From which part of the budget on another route is used.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteBudget {
    #[serde(deserialize_with = "share")]
    pub at: f64,
    pub purpose: Purpose,
    #[serde(rename = "use")]
    pub route: String,
}

fn above_zero<'de, D: Deserializer<'de>, T>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + Default + PartialEq,
{
    let number = T::deserialize(deserializer)?;
    if number == T::default() {
        Err(D::Error::custom("must be above 0"))
    } else {
        Ok(number)
    }
}

fn share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let share = f64::deserialize(deserializer)?;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(D::Error::custom(format_args!(
            "must be between 0 and 1, not {share}"
        )))
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    #[serde(default)]
    id: Option<String>,
    pub purpose: Purpose,
    pub provider: ProviderId,
    pub model: String,
    /// The routes tried next: those listed, none where the list is empty, and the later ones of
    /// the same purpose where it is absent.
    #[serde(default)]
    pub fallback: Option<Vec<String>>,
    /// Failures that lead to another route although they need not.
    #[serde(default)]
    pub fallback_on: Vec<FallbackOn>,
    #[serde(default)]
    pub hedge: Toggle<Hedge>,
    #[serde(default)]
    pub breaker: Toggle<Breaker>,
    #[serde(default)]
    pub requires: Requirements,
    #[serde(default)]
    pub effort: Option<RouteEffort>,
    /// What each effort means to this route's provider.
    #[serde(default)]
    pub effort_map: BTreeMap<Effort, Knob>,
}

impl Route {
    /// The route's own name, or one made of what it is.
    pub fn id(&self) -> String {
        self.id.clone().unwrap_or_else(|| {
            let (provider, purpose) = (self.provider.as_str(), self.purpose.slug());
            format!("{provider}:{}:{purpose}", self.model)
        })
    }
}

/// When a second route is raced against the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hedge {
    pub hedge_after_ms: Option<u64>,
    /// How many routes join at most. `max` is the same key.
    #[serde(alias = "max")]
    pub max_hedges: Option<u32>,
    /// Longer inputs are not sent twice.
    pub max_input_tokens: Option<u64>,
    /// Whether routes that share their limits are raced; they are, unless this says no.
    pub same_account: Option<bool>,
}

/// When a failing route is left alone for a while.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Breaker {
    pub failure_threshold: Option<u32>,
    pub window_secs: Option<u64>,
    pub cooldown_secs: Option<u64>,
    pub half_open_probes: Option<u32>,
    /// Each trip in a row doubles the cooldown up to this.
    pub max_cooldown_secs: Option<u64>,
    /// Whether other processes are told; for all routes only.
    pub shared: Option<bool>,
}

/// What does not lead to another route unless it is listed: another vendor would hide it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FallbackOn {
    Auth,
    Billing,
    Filtered,
}

/// What a route can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Requirements {
    pub vision: Option<bool>,
    pub tool_use: Option<bool>,
    pub thinking: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteEffort {
    Low,
    Medium,
    High,
    Xhigh,
    Max,
    /// Nothing is sent.
    Auto,
}

impl RouteEffort {
    pub fn level(self) -> Option<Effort> {
        match self {
            Self::Low => Some(Effort::Low),
            Self::Medium => Some(Effort::Medium),
            Self::High => Some(Effort::High),
            Self::Xhigh => Some(Effort::Xhigh),
            Self::Max => Some(Effort::Max),
            Self::Auto => None,
        }
    }
}

/// What a route says about something that has a default for all routes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Toggle<T> {
    #[default]
    Inherited,
    /// `false`.
    Off,
    /// Its own values; those it leaves out are inherited.
    Own(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Toggle<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Forms<T> {
            type Value = Toggle<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table, or `false`")
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
                Ok(if value {
                    Toggle::Inherited
                } else {
                    Toggle::Off
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Toggle::Own)
            }
        }
        deserializer.deserialize_any(Forms(PhantomData))
    }
}
