//! Environment variables: the table of all that are read, and how their values are understood.

mod table;

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::str::FromStr;
use std::sync::Arc;

use crate::types::RefreshInterval;

pub use table::{Form, Group, VARIABLES, Variable, names};

/// A variable whose value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` must be {expected}, not `{value}`")]
pub struct VariableError {
    pub name: String,
    pub expected: String,
    pub value: String,
}

/// What a switch is turned off with.
const OFF: [&str; 5] = ["", "0", "false", "no", "off"];

/// Finds a variable by its name.
type Read = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The environment, read through one function so that tests can pass their own. It is cheap to
/// clone and outlives whoever made it.
#[derive(Clone)]
pub struct Environment {
    read: Arc<Read>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment")
    }
}

impl Environment {
    pub fn new(read: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self {
            read: Arc::new(read),
        }
    }

    /// The same with some variables set otherwise.
    #[must_use]
    pub fn with(&self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let variables: BTreeMap<String, String> = variables.into_iter().collect();
        let below = Arc::clone(&self.read);
        Self::new(move |name| variables.get(name).cloned().or_else(|| below(name)))
    }

    pub fn reader(&self) -> &dyn Fn(&str) -> Option<String> {
        &*self.read
    }

    /// A variable's value; an empty one counts as unset.
    pub fn text(&self, name: &str) -> Option<String> {
        (self.read)(name).filter(|value| !value.is_empty())
    }

    /// Whether a switch is on: any value but those that say it is off.
    pub fn is_on(&self, name: &str) -> bool {
        self.text(name).is_some_and(|value| {
            let value = value.trim().to_ascii_lowercase();
            !OFF.contains(&value.as_str())
        })
    }

    /// A whole number.
    pub fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, VariableError> {
        let Some(value) = self.text(name) else {
            return Ok(None);
        };
        match value.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(VariableError {
                name: name.to_owned(),
                expected: match value.trim() {
                    "0" => "a whole number above 0".to_owned(),
                    _ => "a whole number".to_owned(),
                },
                value,
            }),
        }
    }

    /// A length of time, written in milliseconds.
    pub fn millis(&self, name: &str) -> Result<Option<std::time::Duration>, VariableError> {
        let number = self.number(name)?;
        Ok(number.map(std::time::Duration::from_millis))
    }

    /// The parts of a list, trimmed, the empty ones left out.
    pub fn list(&self, name: &str, separators: &[char]) -> Vec<String> {
        self.text(name)
            .unwrap_or_default()
            .split(separators)
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

/// Fails on the first variable that is set to what it cannot mean, whether or not this run would
/// have looked at it: a mistake is found when it is made.
pub fn check(environment: &Environment) -> Result<(), VariableError> {
    for Variable { name, form, .. } in VARIABLES {
        let Some(value) = environment.text(name) else {
            continue;
        };
        if let Some(expected) = form.objection(value.trim()) {
            return Err(VariableError {
                name: (*name).to_owned(),
                expected,
                value,
            });
        }
    }
    Ok(())
}

impl Form {
    /// What a value should have been, where it is not.
    fn objection(self, value: &str) -> Option<String> {
        match self {
            Self::Any => None,
            Self::Whole(least, most) => {
                let fits = value
                    .parse()
                    .is_ok_and(|number: u64| (least..=most).contains(&number));
                (!fits).then(|| match (least, most) {
                    (0, u64::MAX) => "a whole number".to_owned(),
                    (1, u64::MAX) => "a whole number above 0".to_owned(),
                    (least, most) => format!("a whole number between {least} and {most}"),
                })
            }
            Self::Word(words) => {
                (!words.contains(&value)).then(|| format!("one of {}", words.join(", ")))
            }
            Self::Place => (!std::path::Path::new(value).is_absolute())
                .then(|| "a path from the root".to_owned()),
            Self::Refresh => value.parse::<RefreshInterval>().is_err().then(|| {
                "a time such as `5m`, or `0` (a command belongs to `aws_auth_refresh_command` or \
                 `gcp_auth_refresh_command`)"
                    .to_owned()
            }),
        }
    }
}

/// The reference page of all variables, in Markdown.
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Environment variables\n\n\
         A flag beats a variable, and a variable beats the settings. An empty value counts as \
         unset. A switch is off with `0`, `false`, `no` and `off`, too, and on with anything \
         else. A number or a word that cannot be understood ends the program with 78. Variables \
         of parts that this version does not have are listed and say so.\n",
    );
    for group in Group::ALL {
        let title = group.title();
        let _ = write!(
            page,
            "\n## {title}\n\n| Variable | Default | Meaning |\n|---|---|---|\n"
        );
        for variable in VARIABLES.iter().filter(|known| known.group == group) {
            let default = variable
                .default
                .map_or_else(|| "—".to_owned(), |default| format!("`{default}`"));
            let secret = if variable.is_secret { " Secret." } else { "" };
            let _ = writeln!(
                page,
                "| `{}` | {default} | {}{secret} |",
                variable.name, variable.meaning
            );
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::*;

    fn reader(name: &str) -> Option<String> {
        match name {
            "EMPTY" => Some(String::new()),
            "ZERO" => Some("0".to_owned()),
            "BAD" => Some("ten".to_owned()),
            "LIST" => Some(" a, b,,c ".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn switches_are_off_where_a_word_says_so() {
        for value in ["", "0", "false", "No", "OFF", " off "] {
            let environment = Environment::new(move |_| Some(value.to_owned()));
            assert!(!environment.is_on("SWITCH"), "{value:?}");
        }
        for value in ["1", "true", "yes", "on", "00", "anything"] {
            let environment = Environment::new(move |_| Some(value.to_owned()));
            assert!(environment.is_on("SWITCH"), "{value:?}");
        }
        let environment = Environment::new(reader);
        assert!(!environment.is_on("ABSENT"));
        assert_eq!(environment.list("LIST", &[',']), ["a", "b", "c"]);
    }

    #[test]
    fn numbers_name_their_variable_when_wrong() {
        let environment = Environment::new(reader);
        assert_eq!(environment.number::<u32>("ABSENT").unwrap(), None);
        assert_eq!(environment.millis("ZERO").unwrap(), Some(Duration::ZERO));
        assert_eq!(
            environment.number::<u32>("BAD").unwrap_err().to_string(),
            "`BAD` must be a whole number, not `ten`"
        );
        assert_eq!(
            environment
                .number::<std::num::NonZeroU32>("ZERO")
                .unwrap_err()
                .to_string(),
            "`ZERO` must be a whole number above 0, not `0`"
        );
    }

    #[test]
    fn every_variable_is_held_to_its_form() {
        let set = |name: &'static str, value: &'static str| {
            check(&Environment::new(move |asked| {
                (asked == name).then(|| value.to_owned())
            }))
            .map_err(|error| error.to_string())
        };
        for (name, value, said) in [
            ("MCP_TIMEOUT", "soon", "a whole number"),
            ("CALIBAN_PARALLEL_TOOL_LIMIT", "0", "a whole number above 0"),
            (
                "CALIBAN_MCP_OAUTH_PORT",
                "70000",
                "a whole number between 0 and 65535",
            ),
            ("CALIBAN_OPENAI_API", "rest", "one of responses, chat"),
            ("CALIBAN_TUI", "big", "one of fullscreen, inline, plain"),
            ("CALIBAN_GRAPHICS", "x", "one of kitty, iterm, sixel, none"),
            (
                "CALIBAN_AWS_AUTH_REFRESH",
                "soon",
                "a time such as `5m`, or `0` (a command belongs to `aws_auth_refresh_command` or `gcp_auth_refresh_command`)",
            ),
        ] {
            let expected = format!("`{name}` must be {said}, not `{value}`");
            assert_eq!(set(name, value), Err(expected));
        }
        for (name, value) in [
            ("MCP_TIMEOUT", " 1 "),
            ("CALIBAN_OPENAI_API", ""),
            ("CALIBAN_OPENAI_API", "chat"),
            ("CALIBAN_NO_MCP", "whatever"),
        ] {
            assert_eq!(set(name, value), Ok(()));
        }
    }

    #[test]
    fn the_table_is_complete_and_says_everything_once() {
        let known: HashSet<_> = VARIABLES.iter().map(|variable| variable.name).collect();
        assert_eq!(known.len(), VARIABLES.len());
        for name in [
            "ANTHROPIC_API_KEY",
            "CALIBAN_PROVIDER",
            "CALIBAN_ROUTER_CONFIG",
            "CALIBAN_STRICT_PLUGIN_ONLY_CUSTOMIZATION",
            "CALIBAN_TRUST_WORKSPACE",
            "CALIBAN_DIALECT",
            "TAVILY_API_KEY",
            "GEMINI_API_VERSION",
            names::CALIBAN_MAX_RETRIES,
        ] {
            assert!(known.contains(name), "{name}");
        }
        for variable in VARIABLES {
            assert!(variable.meaning.ends_with('.'), "{}", variable.name);
            let looks_secret = variable.name.ends_with("_API_KEY");
            assert!(!looks_secret || variable.is_secret, "{}", variable.name);
        }
    }

    #[test]
    fn the_page_lists_every_variable() {
        let page = reference_page();
        for variable in VARIABLES {
            assert!(
                page.contains(&format!("| `{}` |", variable.name)),
                "{}",
                variable.name
            );
        }
        assert!(page.contains(
            "| `CALIBAN_MAX_ATTACH_BYTES` | `262144` | The largest single `@` attachment, in bytes. |"
        ));
        assert!(page.contains("Secret. |"));
    }
}
