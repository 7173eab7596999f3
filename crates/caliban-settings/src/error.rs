//! What stops settings from being used, shown with the line it stands on.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::document::{Place, Step, dotted};

/// Settings that cannot be used. Every one of them ends a run with exit code 78, because a policy
/// that is only half understood is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The text is neither TOML nor JSON.
    #[error("{0}")]
    Syntax(Box<Fault>),
    /// A value of another type than its key asks for.
    #[error("{0}")]
    Type(Box<Fault>),
    /// A value of the right type that its key does not accept.
    #[error("{0}")]
    Value(Box<Fault>),
    /// A key that does not exist, where a typing error would weaken the policy.
    #[error("{0}")]
    UnknownKey(Box<Fault>),
    /// A key that somebody relies on, of a part that this version does not have.
    #[error("{0}")]
    Unbuilt(Box<Fault>),
    #[error("cannot read `{}`: {reason}", shown(path))]
    Unreadable { path: PathBuf, reason: String },
    #[error("`{}` is not a regular file", shown(path))]
    NotAFile { path: PathBuf },
    #[error("`{}` is larger than {limit} bytes", shown(path))]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("`{}` is not UTF-8 text", shown(path))]
    NotText { path: PathBuf },
    #[error("`--setting-sources` knows no scope `{name}`; use managed, user, project or local")]
    UnknownSource { name: String },
    #[error("`--settings` takes a JSON object or the path of a .toml or .json file, not `{given}`")]
    Overlay { given: String },
}

impl SettingsError {
    /// What is wrong and where, for the errors that have a place in a file.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Syntax(fault)
            | Self::Type(fault)
            | Self::Value(fault)
            | Self::UnknownKey(fault)
            | Self::Unbuilt(fault) => Some(fault),
            Self::Unreadable { .. }
            | Self::NotAFile { .. }
            | Self::TooLarge { .. }
            | Self::NotText { .. }
            | Self::UnknownSource { .. }
            | Self::Overlay { .. } => None,
        }
    }
}

/// A mistake in a settings file. `Display` gives the message, the line and a caret under the
/// mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file, or `--settings`.
    pub origin: String,
    /// Counted from 1.
    pub line: usize,
    /// Counted in characters from 1.
    pub column: usize,
    /// The dotted key, where the mistake is about one.
    pub key: Option<String>,
    pub message: String,
    pub help: Option<String>,
    excerpt: Excerpt,
}

/// The part of the offending line that is shown, already safe for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Excerpt {
    text: String,
    indent: usize,
    width: usize,
}

impl Fault {
    pub(crate) fn at(place: &Place, message: impl Into<String>) -> Self {
        let text = &place.text.content;
        let start = floor(text, place.span.start);
        let end = floor(text, place.span.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        Self {
            origin: escape(&place.text.origin.to_string()),
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            key: None,
            message: escape(&message.into()),
            help: None,
            excerpt: Excerpt::new(
                &text[line_start..start],
                &text[start..end.min(line_end)],
                text[end.min(line_end)..line_end].trim_end(),
            ),
        }
    }

    pub(crate) fn about(mut self, path: &[Step]) -> Self {
        if !path.is_empty() {
            self.key = Some(escape(&dotted(path)));
        }
        self
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(escape(&help.into()));
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.origin, self.line, self.column)?;
        if let Some(key) = &self.key {
            write!(f, "`{key}`: ")?;
        }
        writeln!(f, "{}", self.message)?;
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        let Excerpt {
            text,
            indent,
            width,
        } = &self.excerpt;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{number} | {text}")?;
        write!(
            f,
            "{margin} | {}{}",
            " ".repeat(*indent),
            "^".repeat(*width)
        )?;
        if let Some(help) = &self.help {
            write!(f, "\n{margin} = {help}")?;
        }
        Ok(())
    }
}

/// How much of a line is shown around a mistake, in characters on each side and within.
const SHOWN: usize = 60;

impl Excerpt {
    fn new(before: &str, within: &str, after: &str) -> Self {
        let before = escape(before);
        let cut = before.chars().count().saturating_sub(SHOWN);
        let mut text: String = before.chars().skip(cut).collect();
        if cut > 0 {
            text.insert(0, '…');
        }
        let indent = text.chars().count();
        let within: String = escape(within).chars().take(SHOWN).collect();
        let width = within.chars().count().max(1);
        text.push_str(&within);
        let after = escape(after);
        text.extend(after.chars().take(SHOWN));
        if after.chars().count() > SHOWN {
            text.push('…');
        }
        Self {
            text,
            indent,
            width,
        }
    }
}

/// The last character boundary at or before an offset.
fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// A path on its way to a terminal.
pub(crate) fn shown(path: &Path) -> String {
    escape(&path.display().to_string())
}

/// Text of a file that may come from anyone, on its way to a terminal: control characters and
/// those that reorder or hide text are spelt out.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push(' '),
            '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}' => out.extend(c.escape_unicode()),
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::document::{Origin, Text};
    use crate::scope::Scope;

    fn place(text: &str, needle: &str) -> Place {
        let start = text.find(needle).unwrap();
        Place {
            text: Arc::new(Text {
                scope: Scope::User,
                origin: Origin::File(PathBuf::from("/c/settings.toml")),
                content: text.to_owned(),
            }),
            span: start..start + needle.len(),
        }
    }

    #[test]
    fn a_fault_shows_its_line() {
        let fault = Fault::at(&place("a = 1\n\tb = 'é' # no\n", "'é'"), "must be a number")
            .about(&[Step::Key("b".to_owned())])
            .with_help("write a number");
        assert_eq!(
            fault.to_string(),
            "/c/settings.toml:2:6: `b`: must be a number\n  |\n2 |  b = 'é' # no\n  |      ^^^\n  = write a number"
        );
    }

    #[test]
    fn a_fault_cannot_drive_the_terminal() {
        let fault = Fault::at(&place("a = \u{1b}[2J\u{202e}x", "x"), "bad \u{7}");
        let shown = fault.to_string();
        assert!(shown.contains(r"a = \u{1b}[2J\u{202e}x"), "{shown}");
        assert!(shown.contains(r"bad \u{7}"), "{shown}");
    }

    #[test]
    fn long_lines_are_shown_around_the_mistake() {
        let text = format!("{}x{}", "a".repeat(500), "b".repeat(500));
        let shown = Fault::at(&place(&text, "x"), "bad").to_string();
        assert!(
            shown.lines().all(|line| line.chars().count() < 140),
            "{shown}"
        );
        assert!(shown.contains('…') && shown.contains("axb"), "{shown}");
    }

    #[test]
    fn places_at_the_end_and_across_lines_are_shown() {
        let text = "a = [\n1,\n";
        let end = Place {
            span: text.len()..text.len() + 5,
            ..place(text, "a")
        };
        assert_eq!(Fault::at(&end, "unclosed").line, 3);
        let across = Fault::at(&place(text, "[\n1"), "bad").to_string();
        assert!(across.contains("1 | a = [\n  |     ^"), "{across}");
    }
}
