//! Where a plugin lies and keeps data, and how its files speak of it.

use std::path::{Path, PathBuf};

/// What a plugin's files call its directory.
const ROOT: [&str; 2] = ["CALIBAN_PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT"];
/// And the directory for what it keeps.
const DATA: [&str; 2] = ["CALIBAN_PLUGIN_DATA", "CLAUDE_PLUGIN_DATA"];

/// The own places of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPlaces {
    root: PathBuf,
    data: PathBuf,
}

impl OwnPlaces {
    pub fn new(root: PathBuf, data: PathBuf) -> Self {
        Self { root, data }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What programs of the plugin see. `CALIBAN_PLUGIN_ROOT` is not among it: a `caliban` that
    /// they start would take it for the place that plugins are installed in.
    pub fn environment(&self) -> Vec<(String, String)> {
        let pair = |name: &str, path: &Path| (name.to_owned(), path.display().to_string());
        vec![pair(ROOT[1], &self.root), pair(DATA[1], &self.data)]
    }

    /// Fills them in where no shell reads the result.
    pub fn in_text(&self, text: &str) -> String {
        self.filled(text, |path| path.display().to_string())
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
            return self.in_text(text);
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
