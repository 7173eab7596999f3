//! Where a plugin lies and keeps data, what its user told it, and how its files speak of that.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a plugin's files call its directory.
const ROOT: [&str; 2] = ["CALIBAN_PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT"];
/// And the directory for what it keeps.
const DATA: [&str; 2] = ["CALIBAN_PLUGIN_DATA", "CLAUDE_PLUGIN_DATA"];

/// How its files speak of a value of its user's, before the name.
pub(crate) const USERS: &str = "${user_config.";
/// What programs see of it, before the name.
const OPTION: &str = "CLAUDE_PLUGIN_OPTION_";

/// The own places of a plugin, and the values that its user gave.
#[derive(Clone, PartialEq, Eq)]
pub struct OwnPlaces {
    root: PathBuf,
    data: PathBuf,
    values: BTreeMap<String, String>,
}

impl std::fmt::Debug for OwnPlaces {
    /// Values may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&String> = self.values.keys().collect();
        f.debug_struct("OwnPlaces")
            .field("root", &self.root)
            .field("data", &self.data)
            .field("values", &names)
            .finish()
    }
}

impl OwnPlaces {
    pub fn new(root: PathBuf, data: PathBuf) -> Self {
        Self {
            root,
            data,
            values: BTreeMap::new(),
        }
    }

    /// The same with the values that its user gave.
    #[must_use]
    pub fn with_values(self, values: BTreeMap<String, String>) -> Self {
        Self { values, ..self }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What programs of the plugin see. `CALIBAN_PLUGIN_ROOT` is not among it: a `caliban` that
    /// they start would take it for the place that plugins are installed in.
    pub fn environment(&self) -> Vec<(String, String)> {
        let pair = |name: &str, path: &Path| (name.to_owned(), path.display().to_string());
        let values = self.values.iter().map(|(key, value)| {
            (
                format!("{OPTION}{}", key.to_ascii_uppercase()),
                value.clone(),
            )
        });
        [pair(ROOT[1], &self.root), pair(DATA[1], &self.data)]
            .into_iter()
            .chain(values)
            .collect()
    }

    /// Fills them in where no shell reads the result. Values of the user that are not there stay
    /// as they are written.
    pub fn in_text(&self, text: &str) -> String {
        let text = self.filled(text, |path| path.display().to_string());
        if !text.contains(USERS) {
            return text;
        }
        let mut filled = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once(USERS) {
            filled.push_str(before);
            let named = after.split_once('}');
            let named = named.and_then(|(key, after)| Some((self.values.get(key)?, after)));
            // What it holds is not looked at again.
            let (value, after) = named.map_or((USERS, after), |(value, after)| (&**value, after));
            filled.push_str(value);
            rest = after;
        }
        filled.push_str(rest);
        filled
    }

    /// Fills them in where a shell reads the result. A path that could mean something to it is
    /// left to it as a variable.
    pub(crate) fn in_shell(&self, text: &str) -> String {
        let is_harmless = |path: &Path| {
            let text = path.to_str().unwrap_or("$");
            text.chars()
                .all(|letter| letter.is_alphanumeric() || "/._-+@%:,".contains(letter))
        };
        if is_harmless(&self.root) && is_harmless(&self.data) {
            return self.filled(text, |path| path.display().to_string());
        }
        let as_theirs = |text: String, names: [&str; 2]| {
            text.replace(&format!("${{{}}}", names[0]), &format!("${{{}}}", names[1]))
        };
        as_theirs(as_theirs(text.to_owned(), ROOT), DATA)
    }

    /// The file of the plugin that a command is, where it is nothing else.
    pub(crate) fn as_program(&self, command: &str) -> Option<String> {
        let below = ROOT.iter().find_map(|name| {
            let quoted = command
                .trim()
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'));
            let command = quoted.unwrap_or(command.trim());
            command.strip_prefix(&format!("${{{name}}}/"))
        })?;
        let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+@%:,".contains(letter);
        below
            .chars()
            .all(is_plain)
            .then(|| self.root.join(below).display().to_string())
    }

    fn filled(&self, text: &str, show: impl Fn(&Path) -> String) -> String {
        let places = ROOT.map(|name| (name, &self.root));
        let places = places
            .into_iter()
            .chain(DATA.map(|name| (name, &self.data)));
        places.fold(text.to_owned(), |text, (name, path)| {
            let reference = format!("${{{name}}}");
            if text.contains(&reference) {
                text.replace(&reference, &show(path))
            } else {
                text
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_variables_are_left_alone() {
        let places = OwnPlaces::new("/p".into(), "/d".into());
        assert_eq!(
            places.in_text(
                "${CLAUDE_PLUGIN_ROOT}:${CALIBAN_PLUGIN_ROOT}:${CLAUDE_PLUGIN_DATA}:${X:-y}"
            ),
            "/p:/p:/d:${X:-y}"
        );
    }

    #[test]
    fn values_are_filled_in_once_and_told_to_programs() {
        let values = [("K", "${user_config.L}"), ("L", "l")];
        let values = values.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let places = OwnPlaces::new("/p".into(), "/d".into()).with_values(values.into());
        assert_eq!(
            places.in_text("${user_config.K} ${user_config.M} ${user_config.L}"),
            "${user_config.L} ${user_config.M} l"
        );
        assert_eq!(places.in_shell("x ${user_config.L}"), "x ${user_config.L}");
        let told = places.environment();
        assert!(told.contains(&("CLAUDE_PLUGIN_OPTION_L".to_owned(), "l".to_owned())));
        assert!(!format!("{places:?}").contains("\"l\""));
    }

    #[test]
    fn a_path_that_means_something_to_a_shell_stays_a_variable() {
        let places = OwnPlaces::new("/a b/$(touch x)".into(), "/d".into());
        assert_eq!(
            places.in_shell("sh \"${CALIBAN_PLUGIN_ROOT}/x.sh\""),
            "sh \"${CLAUDE_PLUGIN_ROOT}/x.sh\""
        );
        assert_eq!(
            places
                .as_program("\"${CLAUDE_PLUGIN_ROOT}/x.sh\"")
                .as_deref(),
            Some("/a b/$(touch x)/x.sh")
        );
        assert_eq!(places.as_program("${CLAUDE_PLUGIN_ROOT}/x.sh; y"), None);
    }
}
