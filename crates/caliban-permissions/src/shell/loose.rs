//! The words of the tolerant lexer.

use super::braces::{self, Symbol};
use super::quotes::escape;
use super::scan::{MAX_NESTING, Scanner, Until};
use super::variables;

/// A piece of a word.
#[derive(Debug, Clone)]
pub(super) enum Part {
    Text(String),
    Quoted(String),
    Expansion {
        source: String,
        /// The variable's name where it is a plain one.
        name: Option<String>,
    },
}

/// Whether single quotes quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    Nothing,
    /// Double quotes or the body of a here-document.
    Quotes,
}

impl Scanner<'_> {
    /// Adds what comes to a word; false where it is a blank in disguise.
    pub(super) fn piece(&mut self, word: &mut Vec<Part>, inside: Inside) -> bool {
        match self.peek(0) {
            Some(b'\\') => {
                self.at += 1;
                match self.take() {
                    Some('\n') | None => {}
                    Some(c) => push_quoted(word, c),
                }
            }
            Some(b'\'') if inside == Inside::Nothing => {
                self.at += 1;
                begin_quotes(word);
                while let Some(c) = self.take().filter(|c| *c != '\'') {
                    push_quoted(word, c);
                }
            }
            Some(b'"') => {
                self.at += 1;
                begin_quotes(word);
                self.double_quoted(word);
            }
            Some(b'`') => self.backquoted(word, inside),
            Some(b'$') => return self.dollar(word, inside),
            _ => {
                if let Some(c) = self.take() {
                    push(word, c);
                }
            }
        }
        true
    }

    pub(super) fn double_quoted(&mut self, word: &mut Vec<Part>) {
        while let Some(byte) = self.peek(0) {
            match byte {
                b'"' => {
                    self.at += 1;
                    return;
                }
                b'\\' => {
                    self.at += 1;
                    match self.peek(0) {
                        Some(b'\n') => self.at += 1,
                        Some(b'$' | b'`' | b'"' | b'\\') => {
                            if let Some(c) = self.take() {
                                push_quoted(word, c);
                            }
                        }
                        _ => push_quoted(word, '\\'),
                    }
                }
                b'`' => self.backquoted(word, Inside::Quotes),
                b'$' if matches!(self.peek(1), Some(b'\'' | b'"')) => {
                    self.at += 1;
                    push_quoted(word, '$');
                }
                b'$' => {
                    if !self.dollar(word, Inside::Quotes) {
                        push_quoted(word, ' ');
                    }
                }
                _ => {
                    if let Some(c) = self.take() {
                        push_quoted(word, c);
                    }
                }
            }
        }
    }

    fn backquoted(&mut self, word: &mut Vec<Part>, inside: Inside) {
        let start = self.at;
        self.at += 1;
        let mut script = String::new();
        while let Some(c) = self.take().filter(|c| *c != '`') {
            let is_escape = match self.peek(0) {
                Some(b'`' | b'\\' | b'$') => c == '\\',
                Some(b'"') => c == '\\' && inside == Inside::Quotes,
                _ => false,
            };
            if is_escape {
                script.extend(self.take());
            } else {
                script.push(c);
            }
        }
        self.scan.scripts.push(script);
        word.push(Part::Expansion {
            source: self.text[start..self.at].to_owned(),
            name: None,
        });
    }

    /// `$…`; false where it is `$IFS`, which separates words.
    fn dollar(&mut self, word: &mut Vec<Part>, inside: Inside) -> bool {
        let start = self.at;
        self.at += 1;
        let mut name = None;
        match self.peek(0) {
            Some(b'\'') if inside == Inside::Nothing => {
                self.at += 1;
                begin_quotes(word);
                self.ansi_c(word);
                return true;
            }
            Some(b'"') => {
                self.at += 1;
                begin_quotes(word);
                self.double_quoted(word);
                return true;
            }
            Some(b'(') => {
                self.at += 1;
                self.nested(Until::Parenthesis);
            }
            Some(b'{') => {
                self.at += 1;
                name = self.name();
                self.braced(inside);
            }
            Some(c) if variables::is_name_start(char::from(c)) => name = self.name(),
            Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' | b'0'..=b'9') => self.at += 1,
            _ => {
                push(word, '$');
                return true;
            }
        }
        if name.as_deref() == Some("IFS") {
            return false;
        }
        word.push(Part::Expansion {
            source: self.text[start..self.at].to_owned(),
            name,
        });
        true
    }

    fn name(&mut self) -> Option<String> {
        let rest = &self.text[self.at..];
        let length = rest
            .find(|c: char| !variables::is_name_part(c))
            .unwrap_or(rest.len());
        self.at += length;
        Some(rest[..length].to_owned()).filter(|name| variables::is_name(name))
    }

    /// The rest of `${…}`, whose substitutions run.
    fn braced(&mut self, inside: Inside) {
        self.nesting += 1;
        let mut ignored = Vec::new();
        while let Some(byte) = self.peek(0) {
            if self.nesting > MAX_NESTING {
                self.scan.cut = true;
                self.at = self.text.len();
                break;
            }
            match byte {
                b'}' => {
                    self.at += 1;
                    break;
                }
                b'<' | b'>' if self.peek(1) == Some(b'(') => {
                    self.at += 2;
                    self.nested(Until::Parenthesis);
                }
                _ => {
                    self.piece(&mut ignored, inside);
                }
            }
        }
        self.nesting -= 1;
    }

    fn ansi_c(&mut self, word: &mut Vec<Part>) {
        while let Some(c) = self.take().filter(|c| *c != '\'') {
            match escape(&self.text[self.at..]).filter(|_| c == '\\') {
                Some((c, length)) => {
                    push_quoted(word, c);
                    self.at += length;
                }
                None => push_quoted(word, c),
            }
        }
    }
}

fn push(word: &mut Vec<Part>, c: char) {
    if let Some(Part::Text(text)) = word.last_mut() {
        text.push(c);
    } else {
        word.push(Part::Text(c.into()));
    }
}

fn push_quoted(word: &mut Vec<Part>, c: char) {
    begin_quotes(word);
    if let Some(Part::Quoted(text)) = word.last_mut() {
        text.push(c);
    }
}

/// Even empty quotes make a word.
fn begin_quotes(word: &mut Vec<Part>) {
    if !matches!(word.last(), Some(Part::Quoted(_))) {
        word.push(Part::Quoted(String::new()));
    }
}

/// A word with its expansions as they are spelled.
pub(super) fn source(word: &[Part]) -> String {
    word.iter()
        .map(|part| match part {
            Part::Text(text) | Part::Quoted(text) => text.as_str(),
            Part::Expansion { source, .. } => source,
        })
        .collect()
}

/// The words a word becomes.
pub(super) fn expand_braces(word: &[Part]) -> Vec<Vec<Part>> {
    let symbols: Vec<Loose> = word
        .iter()
        .flat_map(|part| match part {
            Part::Text(text) => text.chars().map(Loose::Plain).collect(),
            Part::Quoted(_) | Part::Expansion { .. } => vec![Loose::Other(part.clone())],
        })
        .collect();
    let Some(words) = braces::expand(&symbols) else {
        return vec![word.to_vec()];
    };
    words
        .into_iter()
        .map(|symbols| {
            let mut word = Vec::new();
            for symbol in symbols {
                match symbol {
                    Loose::Plain(c) => push(&mut word, c),
                    Loose::Other(part) => word.push(part),
                }
            }
            word
        })
        .collect()
}

#[derive(Clone)]
enum Loose {
    Plain(char),
    Other(Part),
}

impl Symbol for Loose {
    fn symbol(&self) -> Option<char> {
        match self {
            Self::Plain(c) => Some(*c),
            Self::Other(_) => None,
        }
    }

    fn plain(c: char) -> Self {
        Self::Plain(c)
    }
}
