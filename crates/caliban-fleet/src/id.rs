//! The name of an agent: eight hexadecimal digits.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Digits of an id.
const DIGITS: usize = 8;

/// Names one agent among all of a user's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentId(String);

/// A text that is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no agent id: ids are {DIGITS} digits from 0-9 and a-f", .0.escape_debug())]
pub struct InvalidId(String);

impl AgentId {
    /// One that nobody has had, in all likelihood; whoever uses it makes sure.
    pub fn random() -> Self {
        Self(format!("{:08x}", rand::random::<u32>()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgentId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        if text.len() == DIGITS && is_prefix(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidId(text.chars().take(2 * DIGITS).collect()))
        }
    }
}

/// Whether an id can begin like this.
fn is_prefix(text: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (1..=DIGITS).contains(&text.len()) && text.bytes().all(is_digit)
}

impl TryFrom<String> for AgentId {
    type Error = InvalidId;

    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<AgentId> for String {
    fn from(id: AgentId) -> Self {
        id.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text names no single agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    #[error("there is no agent `{}`; `caliban agents list` shows those there are", .0.escape_debug())]
    Unknown(String),
    #[error("`{text}` is the beginning of several ids: {}", .ids.join(", "))]
    Ambiguous { text: String, ids: Vec<String> },
}

/// The one agent whose id begins with a text.
pub(crate) fn resolve(text: &str, known: &[AgentId]) -> Result<AgentId, Unresolved> {
    /// Ids that are named where several fit.
    const NAMED: usize = 5;
    let unknown = || Unresolved::Unknown(text.chars().take(64).collect());
    if !is_prefix(text) {
        return Err(unknown());
    }
    let fitting: Vec<&AgentId> = known
        .iter()
        .filter(|id| id.as_str().starts_with(text))
        .collect();
    match fitting.as_slice() {
        [] => Err(unknown()),
        [one] => Ok((*one).clone()),
        several => Err(Unresolved::Ambiguous {
            text: text.to_owned(),
            ids: several
                .iter()
                .take(NAMED)
                .map(ToString::to_string)
                .collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_eight_small_digits_are_an_id() {
        assert!("00ff12ab".parse::<AgentId>().is_ok());
        for wrong in [
            "",
            "00ff12a",
            "00ff12abc",
            "00FF12AB",
            "../../xx",
            "00ff12ag",
        ] {
            assert!(wrong.parse::<AgentId>().is_err(), "{wrong}");
        }
        let random = AgentId::random();
        assert_eq!(random.as_str().parse::<AgentId>().unwrap(), random);
    }

    #[test]
    fn a_beginning_names_an_agent_where_it_is_unique() {
        let known: Vec<AgentId> = ["aa000001", "aa000002", "b0000001"]
            .map(|id| id.parse().unwrap())
            .to_vec();
        assert_eq!(resolve("b", &known).unwrap().as_str(), "b0000001");
        assert_eq!(resolve("aa000002", &known).unwrap().as_str(), "aa000002");
        assert!(matches!(
            resolve("aa", &known),
            Err(Unresolved::Ambiguous { ids, .. }) if ids.len() == 2
        ));
        for unknown in ["c", "", "aa0000011", "..", "B"] {
            assert!(matches!(
                resolve(unknown, &known),
                Err(Unresolved::Unknown(_))
            ));
        }
    }
}
