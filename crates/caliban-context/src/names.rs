//! Names of skills, styles and commands, and what happens when two are the same.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::notice::{Kind, Notice};
use crate::origin::Origin;

/// The longest name, in characters.
const MAX_NAME: usize = 64;

/// Whether a name is plain: ASCII letters, digits, `.`, `_` and `-`, not beginning with a dot or
/// a dash.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME
        && !name.starts_with(['.', '-'])
        && !name.contains("..")
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// The name under which others know something: what a plugin brings has the plugin's before it.
pub(crate) fn qualified(origin: &Origin, name: &str) -> String {
    match origin {
        Origin::Plugin(plugin) => format!("{plugin}:{name}"),
        Origin::BuiltIn | Origin::User | Origin::Project | Origin::Additional | Origin::Agent => {
            name.to_owned()
        }
    }
}

/// What is called by a name: what has it, else the only one of all plugins that has it behind its
/// plugin's.
pub(crate) fn called<'a, T>(entries: &'a BTreeMap<String, T>, name: &str) -> Option<&'a T> {
    entries.get(name).or_else(|| only_of_plugins(entries, name))
}

/// The only one that has this name behind its plugin's.
pub(crate) fn only_of_plugins<'a, T>(
    entries: &'a BTreeMap<String, T>,
    name: &str,
) -> Option<&'a T> {
    let has_it = |full: &str| full.split_once(':').is_some_and(|(_, own)| own == name);
    let mut found = entries.iter().filter(|(full, _)| has_it(full));
    match (found.next(), found.next()) {
        (Some((_, only)), None) => Some(only),
        (_, _) => None,
    }
}

/// Something with a name and an origin.
pub(crate) trait Named {
    fn name(&self) -> &str;
    fn origin(&self) -> &Origin;
}

/// Things by name. Whoever comes first keeps the name.
pub(crate) fn insert<T: Named>(
    entries: &mut BTreeMap<String, T>,
    entry: T,
    kind: Kind,
    notices: &mut Vec<Notice>,
) {
    match entries.get(entry.name()) {
        None => {
            entries.insert(entry.name().to_owned(), entry);
        }
        Some(first) if first.origin().is_repository() && !entry.origin().is_repository() => {
            // A repository may replace what the user has, but not in silence.
            notices.push(Notice::Replaced {
                kind,
                name: entry.name().to_owned(),
                by: first.origin().clone(),
                hidden: entry.origin().clone(),
            });
        }
        Some(_) => {}
    }
}

/// A list that may be written as one item, or as items with commas between them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    /// The items as they were listed.
    pub(crate) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(item) => vec![item],
            Self::Many(items) => items,
        }
    }

    /// The items, where one string may hold several. Commas in parentheses separate nothing.
    pub(crate) fn split(self) -> Vec<String> {
        let text = match self {
            Self::One(text) => text,
            Self::Many(items) => return items,
        };
        let mut items = vec![String::new()];
        let mut depth = 0_usize;
        for character in text.chars() {
            match character {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            match items.last_mut() {
                Some(item) if character != ',' || depth > 0 => item.push(character),
                Some(_) | None => items.push(String::new()),
            }
        }
        items
            .iter()
            .map(|item| item.trim().to_owned())
            .filter(|item| !item.is_empty())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_safe_everywhere() {
        for good in ["a", "my-workflow", "A_1.x"] {
            assert!(is_plain(good), "{good}");
        }
        let long = "a".repeat(MAX_NAME + 1);
        for bad in [
            "", ".", "..", "../x", "a/b", "a..b", ".a", "-a", "é", "a b", "a\0", &long,
        ] {
            assert!(!is_plain(bad), "{bad}");
        }
    }

    #[test]
    fn lists_are_read_in_every_form() {
        let one = OneOrMany::One("Read, Bash(git add:*, x) ,, Grep".to_owned());
        assert_eq!(one.split(), ["Read", "Bash(git add:*, x)", "Grep"]);
        let many = OneOrMany::Many(vec!["a,b".to_owned()]);
        assert_eq!(many.split(), ["a,b"]);
    }
}
