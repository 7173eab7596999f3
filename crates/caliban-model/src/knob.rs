//! What a level of effort is turned into for one model.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use crate::Effort;

/// What is sent in place of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Knob {
    /// `budget=N`, in thinking tokens.
    Budget(u32),
    /// Another level: `effort=high`, or `high`.
    Level(Effort),
    /// `off`.
    Off,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no effort: write `budget=8192`, a level such as `high`, or `off`")]
pub struct UnknownKnob(String);

impl FromStr for Knob {
    type Err = UnknownKnob;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownKnob(text.to_owned());
        let text = text.trim();
        if let Some(tokens) = text.strip_prefix("budget=") {
            let tokens = tokens.trim().parse().map_err(|_| unknown())?;
            return match tokens {
                0 => Ok(Self::Off),
                tokens => Ok(Self::Budget(tokens)),
            };
        }
        match text.strip_prefix("effort=").unwrap_or(text).trim() {
            "off" | "none" => Ok(Self::Off),
            level => level.parse().map(Self::Level).map_err(|_| unknown()),
        }
    }
}

impl TryFrom<String> for Knob {
    type Error = UnknownKnob;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget(tokens) => write!(f, "budget={tokens}"),
            Self::Level(level) => f.write_str(level.as_str()),
            Self::Off => f.write_str("off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knob_is_a_budget_a_level_or_nothing() {
        for (text, knob) in [
            ("budget=1024", Some(Knob::Budget(1_024))),
            ("budget=0", Some(Knob::Off)),
            (" high ", Some(Knob::Level(Effort::High))),
            ("effort=max", Some(Knob::Level(Effort::Max))),
            ("none", Some(Knob::Off)),
            ("budget=much", None),
            ("loud", None),
            ("", None),
        ] {
            assert_eq!(text.parse::<Knob>().ok(), knob, "{text}");
        }
    }
}
