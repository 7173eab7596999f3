//! `api_key_helper`: programs that print API keys, one per provider or one for all.

mod argv;
mod credential;
mod key;
mod run;

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

pub use argv::UnclosedQuote;
pub use credential::Credential;
pub use key::{HelperKey, Surroundings};

pub(crate) use argv::split;

/// The provider entry that stands for every provider without its own.
const ANY: &str = "*";

/// The configured helpers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyHelpers(Vec<HelperSpec>);

/// How to run one helper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelperSpec {
    /// The provider it is for, or `*`.
    pub provider: String,
    /// Program and arguments, never empty. No shell is involved.
    pub command: Vec<String>,
    /// How long a key may be used; zero means that every request asks again.
    pub refresh: Duration,
    /// How long a run may take before the user is told.
    pub slow: Duration,
}

/// Why `api_key_helper` cannot be used as it stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HelperConfigError {
    #[error(
        "`api_key_helper` must be a command, a table with `command`, or a list of such tables: {0}"
    )]
    Shape(String),
    #[error("`api_key_helper` has a command without a program")]
    NoProgram,
    #[error("`api_key_helper`: {0}")]
    Quote(#[from] UnclosedQuote),
    #[error("`api_key_helper` names two helpers for `{0}`")]
    Twice(String),
    #[error("`CALIBAN_API_KEY_HELPER_TTL_MS` is `{0}`, not a number of milliseconds")]
    Ttl(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    command: CommandLine,
    #[serde(default = "any")]
    provider: String,
    #[serde(
        rename = "refreshIntervalMs",
        alias = "refresh_interval_ms",
        default = "five_minutes"
    )]
    refresh: u64,
    #[serde(
        rename = "slowHelperWarningMs",
        alias = "slow_helper_warning_ms",
        default = "ten_seconds"
    )]
    slow: u64,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`command` must be a string or a list of strings"
)]
enum CommandLine {
    Line(String),
    Words(Vec<String>),
}

fn any() -> String {
    ANY.into()
}

fn five_minutes() -> u64 {
    300_000
}

fn ten_seconds() -> u64 {
    10_000
}

impl KeyHelpers {
    /// Reads the setting in any of its forms; `null` is none.
    pub fn from_value(value: &Value) -> Result<Self, HelperConfigError> {
        let entries = match value {
            Value::Null => Vec::new(),
            Value::String(line) => vec![HelperSpec::new(Entry {
                command: CommandLine::Line(line.clone()),
                provider: any(),
                refresh: five_minutes(),
                slow: ten_seconds(),
            })?],
            Value::Array(entries) => entries
                .iter()
                .map(HelperSpec::from_value)
                .collect::<Result<_, _>>()?,
            table => vec![HelperSpec::from_value(table)?],
        };
        for (index, entry) in entries.iter().enumerate() {
            if entries[..index]
                .iter()
                .any(|earlier| earlier.provider == entry.provider)
            {
                return Err(HelperConfigError::Twice(entry.provider.clone()));
            }
        }
        Ok(Self(entries))
    }

    /// The provider's own helper, or else the one for all.
    pub fn for_provider(&self, id: &str) -> Option<&HelperSpec> {
        let named = |name: &str| self.0.iter().find(|entry| entry.provider == name);
        named(id).or_else(|| named(ANY))
    }
}

impl HelperSpec {
    fn from_value(value: &Value) -> Result<Self, HelperConfigError> {
        let entry = Entry::deserialize(value)
            .map_err(|error| HelperConfigError::Shape(error.to_string()))?;
        Self::new(entry)
    }

    fn new(entry: Entry) -> Result<Self, HelperConfigError> {
        let command = match entry.command {
            CommandLine::Line(line) => split(&line)?,
            CommandLine::Words(words) => words,
        };
        if command.first().is_none_or(String::is_empty) {
            return Err(HelperConfigError::NoProgram);
        }
        Ok(Self {
            provider: entry.provider,
            command,
            refresh: Duration::from_millis(entry.refresh),
            slow: Duration::from_millis(entry.slow),
        })
    }
}

/// Reads `CALIBAN_API_KEY_HELPER_TTL_MS`, which overrides every helper's `refreshIntervalMs`.
pub fn ttl_override(variable: Option<&str>) -> Result<Option<Duration>, HelperConfigError> {
    match variable.map(str::trim) {
        None | Some("") => Ok(None),
        Some(text) => match text.parse() {
            Ok(milliseconds) => Ok(Some(Duration::from_millis(milliseconds))),
            Err(_) => Err(HelperConfigError::Ttl(text.into())),
        },
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn words(spec: Option<&HelperSpec>) -> Vec<&str> {
        spec.map(|spec| spec.command.iter().map(String::as_str).collect())
            .unwrap_or_default()
    }

    #[test]
    fn a_string_serves_every_provider_with_the_defaults() {
        let helpers = KeyHelpers::from_value(&json!("/bin/get-key --for 'my team'")).unwrap();
        let spec = helpers.for_provider("openai").unwrap();
        assert_eq!(spec.command, ["/bin/get-key", "--for", "my team"]);
        assert_eq!(spec.refresh, Duration::from_mins(5));
        assert_eq!(spec.slow, Duration::from_secs(10));
    }

    #[test]
    fn a_table_may_serve_one_provider_only() {
        let helpers = KeyHelpers::from_value(&json!({
            "command": ["/bin/get key", "$HOME"],
            "provider": "anthropic",
            "refreshIntervalMs": 0,
            "slowHelperWarningMs": 50
        }))
        .unwrap();
        let spec = helpers.for_provider("anthropic").unwrap();
        assert_eq!(spec.command, ["/bin/get key", "$HOME"]);
        assert_eq!(spec.refresh, Duration::ZERO);
        assert_eq!(spec.slow, Duration::from_millis(50));
        assert_eq!(helpers.for_provider("openai"), None);
    }

    #[test]
    fn a_providers_own_helper_comes_before_the_one_for_all() {
        let helpers = KeyHelpers::from_value(&json!([
            { "provider": "*", "command": "generic" },
            { "provider": "anthropic", "command": "own" },
        ]))
        .unwrap();
        assert_eq!(words(helpers.for_provider("anthropic")), ["own"]);
        assert_eq!(words(helpers.for_provider("openai")), ["generic"]);
    }

    #[test]
    fn no_helper_is_configured_by_null() {
        assert_eq!(
            KeyHelpers::from_value(&Value::Null),
            Ok(KeyHelpers::default())
        );
    }

    #[rstest]
    #[case(json!(3), "must be a command")]
    #[case(json!({ "provider": "x" }), "missing field `command`")]
    #[case(json!({ "command": 3 }), "a string or a list of strings")]
    #[case(json!({ "command": "x", "refresh": 3 }), "unknown field `refresh`")]
    #[case(json!(""), "without a program")]
    #[case(json!({ "command": [] }), "without a program")]
    #[case(json!("get 'key"), "is not closed")]
    #[case(json!([{ "command": "a" }, { "command": "b" }]), "two helpers for `*`")]
    fn what_cannot_be_run_is_refused(#[case] value: Value, #[case] why: &str) {
        let error = KeyHelpers::from_value(&value).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn the_environment_may_override_the_interval() {
        assert_eq!(ttl_override(None), Ok(None));
        assert_eq!(ttl_override(Some("0")), Ok(Some(Duration::ZERO)));
        assert!(ttl_override(Some("5m")).is_err());
    }
}
