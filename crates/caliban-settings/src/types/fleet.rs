//! Agents in the background as they are configured.

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::bounded;

/// The `fleet` table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Fleet {
    /// How long an agent waits for input with nobody attached, such as `45m`; 30 minutes unless
    /// set.
    #[serde(deserialize_with = "spelled", skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<String>,
    /// What becomes of a question while nobody is attached: it waits unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_question: Option<OnQuestion>,
    /// How long a question waits for an answer; 24 hours unless set.
    #[serde(deserialize_with = "spelled", skip_serializing_if = "Option::is_none")]
    pub question_patience: Option<String>,
    /// How long an agent may take to end when it is told to; 10 seconds unless set.
    #[serde(deserialize_with = "spelled", skip_serializing_if = "Option::is_none")]
    pub grace: Option<String>,
    /// Agents that work at the same time, while the others wait; twice the processors unless set,
    /// and at least 4.
    #[serde(
        deserialize_with = "bounded::whole::<_, 1, 1000>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1, max = 1000))]
    pub max_running: Option<u64>,
    /// Agents that a repository may have, those that have ended included; 1000 unless set.
    #[serde(
        deserialize_with = "bounded::whole::<_, 1, 10000>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1, max = 10000))]
    pub max_agents: Option<u64>,
    /// What all agents of a repository may have cost, in dollars, before no other is begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_budget_usd: Option<f64>,
    /// Whether an agent that crashed is begun again, three times in ten minutes at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What becomes of a question while nobody is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnQuestion {
    /// It waits.
    Park,
    /// It is a refusal.
    Deny,
    /// The agent ends.
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    Never,
    OnCrash,
}

impl Fleet {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn idle_timeout(&self) -> Duration {
        self.idle_timeout
            .as_deref()
            .and_then(span)
            .unwrap_or(Duration::from_mins(30))
    }

    pub fn question_patience(&self) -> Duration {
        self.question_patience
            .as_deref()
            .and_then(span)
            .unwrap_or(Duration::from_hours(24))
    }

    pub fn grace(&self) -> Duration {
        self.grace
            .as_deref()
            .and_then(span)
            .unwrap_or(Duration::from_secs(10))
    }
}

/// A length of time: a number and `ms`, `s`, `m`, `h` or `d`.
fn span(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|char: char| !char.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let seconds = match unit.trim() {
        "ms" => return Some(Duration::from_millis(number)),
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    number.checked_mul(seconds).map(Duration::from_secs)
}

/// A length of time as it is written.
fn spelled<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    match span(&text) {
        // Longer than anybody waits, and within what clocks can add.
        Some(span) if span <= Duration::from_hours(24 * 365) => Ok(Some(text)),
        Some(_) | None => Err(D::Error::custom(format_args!(
            "must be a time such as `30s`, `15m`, `2h` or `7d`, not `{text}`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<Fleet, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn times_are_spelled_and_have_defaults() {
        let none = Fleet::default();
        assert_eq!(none.idle_timeout(), Duration::from_mins(30));
        assert_eq!(none.question_patience(), Duration::from_hours(24));
        assert_eq!(none.grace(), Duration::from_secs(10));
        let some = read(json!({"idle_timeout": "2h", "grace": "250ms"})).unwrap();
        assert_eq!(some.idle_timeout(), Duration::from_hours(2));
        assert_eq!(some.grace(), Duration::from_millis(250));
        for wrong in [
            "",
            "5",
            "m",
            "-5m",
            "5 weeks",
            "99999999999999999999s",
            "400d",
        ] {
            assert!(read(json!({ "idle_timeout": wrong })).is_err(), "{wrong}");
        }
        assert!(read(json!({"max_running": 0})).is_err());
        assert!(read(json!({"on_question": "shrug"})).is_err());
        assert_eq!(
            read(json!({"restart": "on-crash"})).unwrap().restart,
            Some(Restart::OnCrash)
        );
    }
}
