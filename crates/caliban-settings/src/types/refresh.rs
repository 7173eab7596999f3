//! How early credentials are renewed.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time, written like `5m`, `90s` or `1h`; a bare number is seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefreshInterval(Duration);

impl RefreshInterval {
    pub fn duration(self) -> Duration {
        self.0
    }
}

impl FromStr for RefreshInterval {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let wrong = || {
            format!(
                "`{text}` is no time like `5m`; a command belongs to `aws_auth_refresh_command` or `gcp_auth_refresh_command`"
            )
        };
        let digits = text.find(|c: char| !c.is_ascii_digit());
        let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let seconds = match unit.trim() {
            "ms" => return Ok(Self(Duration::from_millis(number))),
            "" | "s" => Some(number),
            "m" => number.checked_mul(60),
            "h" => number.checked_mul(3600),
            _ => None,
        };
        seconds
            .map(|it| Self(Duration::from_secs(it)))
            .ok_or_else(wrong)
    }
}

impl fmt::Display for RefreshInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.as_secs(), self.0.subsec_millis()) {
            (seconds, 0) if seconds > 0 && seconds % 60 == 0 => write!(f, "{}m", seconds / 60),
            (seconds, 0) => write!(f, "{seconds}s"),
            _ => write!(f, "{}ms", self.0.as_millis()),
        }
    }
}

impl Serialize for RefreshInterval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RefreshInterval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Seconds(u64),
            Text(String),
        }
        match Written::deserialize(deserializer) {
            Ok(Written::Seconds(seconds)) => Ok(Self(Duration::from_secs(seconds))),
            Ok(Written::Text(text)) => text.parse().map_err(D::Error::custom),
            Err(_) => Err(D::Error::custom("must be a time like `5m`")),
        }
    }
}

impl JsonSchema for RefreshInterval {
    fn schema_name() -> Cow<'static, str> {
        "RefreshInterval".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "integer"]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_commands_are_told_where_they_belong() {
        for (text, seconds) in [("5m", 300), ("0", 0), ("90s", 90), ("1h", 3600), (" 7 ", 7)] {
            let read: RefreshInterval = text.parse().unwrap();
            assert_eq!(read.duration(), Duration::from_secs(seconds));
            assert_eq!(read.to_string().parse(), Ok(read));
        }
        let error = "aws sso login".parse::<RefreshInterval>().unwrap_err();
        assert!(error.contains("aws_auth_refresh_command"), "{error}");
    }
}
