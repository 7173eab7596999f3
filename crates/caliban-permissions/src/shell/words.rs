//! Words: quotes removed, braces expanded, and what is not known of them marked.

use super::braces::{self, Symbol};
use super::reader::{Reader, is_separator};
use super::{Certainty, Refusal, Word};

/// A word as far as it matters to what it might become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Argument {
    pub(super) text: String,
    pub(super) certainty: Certainty,
    /// How many bytes of the text are known, from its beginning.
    pub(super) known: usize,
    pub(super) start: Start,
    /// No character was quoted.
    pub(super) plain: bool,
    /// It may become no argument or several.
    pub(super) splits: bool,
    /// It is a number, whatever the run says.
    pub(super) number: bool,
}

/// What a word begins with when the program gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Dash,
    Other,
    Unknown,
}

/// What happens to a word of this place before the program gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expand {
    /// An argument.
    Braces,
    /// An assignment, a pattern, an operand of `[[`, a redirection's target.
    Nothing,
}

/// A piece of a word.
#[derive(Debug, Clone)]
pub(super) enum Unit {
    Plain(char),
    Quoted(String),
    Unknown(Unknown),
}

/// A piece that is known only at run time.
#[derive(Debug, Clone)]
pub(super) struct Unknown {
    pub(super) source: String,
    pub(super) start: Start,
    pub(super) splits: bool,
}

impl Reader<'_> {
    /// Reads a word, which braces may turn into several.
    pub(super) fn word(&mut self, expand: Expand) -> Result<Vec<Argument>, Refusal> {
        let start = self.at;
        let units = self.units()?;
        if self.at == start {
            return Err(self.syntax("a missing word"));
        }
        let has_brace = units.iter().any(|unit| matches!(unit, Unit::Plain('{')));
        let words = if has_brace && expand == Expand::Braces {
            let words = braces::expand(&units).ok_or_else(|| {
                self.at = start;
                self.construct("a brace expansion")
            })?;
            if words.len() > 1 || words[0].len() != units.len() {
                self.bash_only("a brace expansion")?;
            }
            words.iter().map(|units| argument(units)).collect()
        } else {
            vec![argument(&units)]
        };
        self.state.count_words(words.len())?;
        Ok(words)
    }

    /// The pieces of a word, up to where it ends.
    pub(super) fn units(&mut self) -> Result<Vec<Unit>, Refusal> {
        let mut units = Vec::new();
        while let Some(byte) = self.peek() {
            match byte {
                b'<' | b'>' if self.peek_after(1) == Some(b'(') => {
                    if !units.is_empty() {
                        return Err(self.construct("a process substitution inside a word"));
                    }
                    units.push(Unit::Unknown(self.process_substitution()?));
                }
                _ if is_separator(char::from(byte)) => break,
                b'\\' => match self.peek_after(1) {
                    None | Some(b'\n') => {
                        return Err(self.construct("a continued line inside a word"));
                    }
                    Some(_) => {
                        self.at += 1;
                        units.extend(self.take().map(|c| Unit::Quoted(c.into())));
                    }
                },
                b'\'' => units.push(Unit::Quoted(self.single_quoted()?)),
                b'"' => self.double_quoted(&mut units)?,
                b'`' => units.push(Unit::Unknown(self.backquoted()?)),
                b'$' => match self.peek_after(1) {
                    Some(b'\'') => units.push(Unit::Quoted(self.ansi_c_quoted()?)),
                    // Its text may be replaced by a translation.
                    Some(b'"') => return Err(self.construct("a translated string")),
                    _ => units.push(match self.expansion(Quoting::Bare)? {
                        Some(unknown) => Unit::Unknown(unknown),
                        None => Unit::Plain('$'),
                    }),
                },
                b'~' if matches!(units.last(), None | Some(Unit::Plain('=' | ':'))) => {
                    self.at += 1;
                    units.push(Unit::Unknown(Unknown {
                        source: "~".to_owned(),
                        start: Start::Other,
                        splits: false,
                    }));
                }
                _ => units.extend(self.take().map(Unit::Plain)),
            }
        }
        Ok(units)
    }
}

/// Where an expansion stands, which decides what quotes mean inside of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    Bare,
    Double,
    /// The body of a here-document.
    Body,
}

/// What the program gets for the pieces of a word.
fn argument(units: &[Unit]) -> Argument {
    let mut argument = Argument {
        text: String::new(),
        certainty: Certainty::Literal,
        known: 0,
        start: Start::Other,
        plain: true,
        splits: false,
        number: false,
    };
    let mut bracket = false;
    let mut has_start = false;
    for unit in units {
        let start = match unit {
            Unit::Plain(c) => {
                bracket |= *c == '[';
                if matches!(c, '*' | '?') || (*c == ']' && bracket) {
                    argument.become_partial();
                    argument.splits = true;
                }
                argument.text.push(*c);
                match c {
                    '-' => Start::Dash,
                    '*' | '?' => Start::Unknown,
                    _ => Start::Other,
                }
            }
            Unit::Quoted(text) => {
                argument.plain = false;
                argument.text.push_str(text);
                match text.chars().next() {
                    Some('-') => Start::Dash,
                    Some(_) => Start::Other,
                    None => continue,
                }
            }
            Unit::Unknown(unknown) => {
                argument.become_partial();
                argument.splits |= unknown.splits;
                argument.text.push_str(&unknown.source);
                unknown.start
            }
        };
        if !has_start {
            argument.start = start;
            has_start = true;
        }
        if argument.is_literal() {
            argument.known = argument.text.len();
        }
    }
    if !argument.is_literal()
        && let Some(Unit::Plain('[')) = units.first()
    {
        argument.start = Start::Unknown;
        argument.known = 0;
    }
    argument.number = match units {
        [Unit::Unknown(unknown)] => unknown.source.starts_with("$(("),
        _ => argument.is_literal() && argument.text.parse::<i64>().is_ok(),
    };
    argument
}

impl Argument {
    pub(super) fn literal(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            certainty: Certainty::Literal,
            known: text.len(),
            start: if text.starts_with('-') {
                Start::Dash
            } else {
                Start::Other
            },
            plain: true,
            splits: false,
            number: false,
            text,
        }
    }

    /// Something that is known only at run time.
    pub(super) fn unknown(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            certainty: Certainty::Partial,
            known: 0,
            start: Start::Unknown,
            plain: true,
            splits: true,
            number: false,
        }
    }

    pub(super) fn is_literal(&self) -> bool {
        self.certainty == Certainty::Literal
    }

    /// The text where it is known.
    pub(super) fn as_literal(&self) -> Option<&str> {
        self.is_literal().then_some(&self.text)
    }

    pub(super) fn to_word(&self) -> Word {
        Word {
            text: self.text.clone(),
            certainty: self.certainty,
        }
    }

    fn become_partial(&mut self) {
        self.certainty = Certainty::Partial;
    }
}

impl Symbol for Unit {
    fn symbol(&self) -> Option<char> {
        match self {
            Self::Plain(c) => Some(*c),
            Self::Quoted(_) | Self::Unknown(_) => None,
        }
    }

    fn plain(c: char) -> Self {
        Self::Plain(c)
    }
}
