//! How providers fail: a file of outages, presets, and the load of a session.

use std::collections::BTreeMap;
use std::sync::Arc;

use caliban_model::{Message, Role};
use serde::Deserialize;

/// The most text of one message.
pub(super) const MAX_TEXT: usize = 4 * 1024 * 1024;

/// What goes wrong, how often, and how sessions look meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Outages {
    /// For everybody.
    pub default: Patch,
    /// For one provider; all its routes are down together.
    pub provider: BTreeMap<String, Patch>,
    /// For one route.
    pub route: BTreeMap<String, Patch>,
    pub load: Load,
}

/// What differs from what is usual.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Patch {
    pub mtbf_secs: Option<f64>,
    pub mttr_secs: Option<f64>,
    pub error_rate: Option<f64>,
    pub break_rate: Option<f64>,
    pub first_content_ms: Option<f64>,
    pub first_content_p95_ms: Option<f64>,
    pub tokens_per_second: Option<f64>,
    pub tokens_per_minute: Option<f64>,
    pub cache_ttl_secs: Option<f64>,
    pub kinds: Option<BTreeMap<Kind, f64>>,
}

/// How one route behaves.
#[derive(Debug, Clone, PartialEq)]
pub struct Weather {
    /// Mean time from one outage to the next, and how long one lasts.
    pub mtbf_secs: f64,
    pub mttr_secs: f64,
    /// The part of calls that fail although there is no outage.
    pub error_rate: f64,
    /// The part of answers that break off.
    pub break_rate: f64,
    pub first_content_ms: f64,
    pub first_content_p95_ms: f64,
    pub tokens_per_second: f64,
    /// More than this is refused for the rest of the minute.
    pub tokens_per_minute: Option<f64>,
    pub cache_ttl_secs: f64,
    /// How failures are distributed.
    pub kinds: BTreeMap<Kind, f64>,
}

/// Failures that come by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Overloaded,
    Server,
    Network,
    Timeout,
    RateLimited,
}

/// What a session asks for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Load {
    pub prefix_tokens: u64,
    pub tokens_per_turn: u64,
    pub output_tokens: u64,
    pub think_secs: f64,
    /// How much each turn of a recorded session added; used over and over.
    #[serde(skip)]
    pub recorded: Vec<u64>,
}

/// Weather that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// An outage a day.
    Calm,
    /// Short outages every half an hour, and errors in between.
    Flaky,
    /// Long outages every few hours.
    Regional,
    /// The first provider is down a quarter of the time.
    ProviderDown,
}

impl Default for Weather {
    fn default() -> Self {
        Self {
            mtbf_secs: 1_800.0,
            mttr_secs: 120.0,
            error_rate: 0.02,
            break_rate: 0.005,
            first_content_ms: 1_200.0,
            first_content_p95_ms: 4_000.0,
            tokens_per_second: 80.0,
            tokens_per_minute: None,
            cache_ttl_secs: 300.0,
            kinds: [
                (Kind::Overloaded, 0.5),
                (Kind::Server, 0.15),
                (Kind::Network, 0.2),
                (Kind::Timeout, 0.05),
                (Kind::RateLimited, 0.1),
            ]
            .into(),
        }
    }
}

impl Default for Load {
    fn default() -> Self {
        Self {
            prefix_tokens: 20_000,
            tokens_per_turn: 700,
            output_tokens: 350,
            think_secs: 15.0,
            recorded: Vec::new(),
        }
    }
}

impl Weather {
    fn with(mut self, patch: Option<&Patch>) -> Self {
        let Some(patch) = patch else {
            return self;
        };
        let take = |value: &mut f64, other: Option<f64>| *value = other.unwrap_or(*value).max(0.0);
        take(&mut self.mtbf_secs, patch.mtbf_secs);
        take(&mut self.mttr_secs, patch.mttr_secs);
        take(&mut self.error_rate, patch.error_rate);
        take(&mut self.break_rate, patch.break_rate);
        take(&mut self.first_content_ms, patch.first_content_ms);
        take(&mut self.first_content_p95_ms, patch.first_content_p95_ms);
        take(&mut self.tokens_per_second, patch.tokens_per_second);
        take(&mut self.cache_ttl_secs, patch.cache_ttl_secs);
        self.tokens_per_minute = patch.tokens_per_minute.or(self.tokens_per_minute);
        if let Some(kinds) = &patch.kinds {
            self.kinds.clone_from(kinds);
        }
        self
    }
}

impl Outages {
    pub(super) fn of_provider(&self, provider: &str) -> Weather {
        Weather::default()
            .with(Some(&self.default))
            .with(self.provider.get(provider))
    }

    pub(super) fn of_route(&self, provider: &str, route: &str) -> Weather {
        self.of_provider(provider).with(self.route.get(route))
    }

    /// Named weather; `first` is the provider that comes first.
    pub fn preset(preset: Preset, first: &str) -> Self {
        let patch = |mtbf: f64, mttr: f64, errors: f64, breaks: f64| Patch {
            mtbf_secs: Some(mtbf),
            mttr_secs: Some(mttr),
            error_rate: Some(errors),
            break_rate: Some(breaks),
            ..Patch::default()
        };
        let calm = patch(86_400.0, 120.0, 0.002, 0.000_5);
        let everybody = |default| Self {
            default,
            ..Self::default()
        };
        match preset {
            Preset::Calm => everybody(calm),
            Preset::Flaky => everybody(patch(1_800.0, 120.0, 0.02, 0.005)),
            Preset::Regional => everybody(patch(14_400.0, 900.0, 0.005, 0.002)),
            Preset::ProviderDown => Self {
                default: calm,
                provider: [(first.to_owned(), patch(3_600.0, 1_200.0, 0.01, 0.005))].into(),
                ..Self::default()
            },
        }
    }
}

impl Load {
    pub(super) fn growth(&self, turn: u32) -> u64 {
        let turn = usize::try_from(turn).unwrap_or(usize::MAX);
        match self.recorded.len() {
            0 => self.tokens_per_turn,
            length => self.recorded.get(turn % length).copied().unwrap_or(0),
        }
    }

    /// The load of a conversation that took place.
    #[must_use]
    pub fn recorded(mut self, messages: &[Arc<Message>]) -> Self {
        let tokens = |message: &Message| {
            let text = serde_json::to_string(&message.content).unwrap_or_default();
            (text.len() as u64).div_ceil(4)
        };
        let system = messages.iter().filter(|it| it.role == Role::System);
        self.prefix_tokens = system.map(|it| tokens(it)).sum();
        let mut growth = 0;
        for message in messages {
            match message.role {
                Role::System => {}
                Role::User => growth += tokens(message),
                Role::Assistant => {
                    self.recorded.push(growth);
                    growth = tokens(message);
                }
            }
        }
        self
    }
}
