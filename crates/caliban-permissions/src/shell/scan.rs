//! A tolerant lexer: finds the commands of any text, whether or not it is a valid script.

use super::loose::{Inside, Part, source};
use super::reader::is_separator;

/// How deep substitutions may nest before the rest is left unread.
pub(super) const MAX_NESTING: usize = 32;

/// What stands between two separators.
#[derive(Debug, Default)]
pub(super) struct Segment {
    pub(super) words: Vec<Vec<Part>>,
    /// Bodies of its here-documents.
    pub(super) bodies: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) segments: Vec<Segment>,
    /// Texts that are scripts of their own: those in backquotes.
    pub(super) scripts: Vec<String>,
    /// Something was nested too deep.
    pub(super) cut: bool,
}

pub(super) fn scan(text: &str) -> Scan {
    let mut scanner = Scanner::at_the_start(text);
    while scanner.at < text.len() {
        scanner.commands(Until::End);
    }
    scanner.scan
}

pub(super) struct Scanner<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) nesting: usize,
    pub(super) scan: Scan,
}

impl<'a> Scanner<'a> {
    fn at_the_start(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            nesting: 0,
            scan: Scan::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    End,
    Parenthesis,
}

/// A segment that is being read.
#[derive(Default)]
struct Current {
    segment: Segment,
    word: Option<Vec<Part>>,
    /// Where the word begins.
    start: usize,
    /// The next word is the file of a redirection.
    redirected: bool,
    /// Delimiters of here-documents whose bodies follow.
    pending: Vec<(usize, String, bool)>,
    /// Open `case`s, in which a `)` ends a pattern.
    cases: usize,
}

impl Current {
    fn end_word(&mut self) {
        let Some(word) = self.word.take() else {
            return;
        };
        if std::mem::take(&mut self.redirected) {
            return;
        }
        if let [Part::Text(text)] = word.as_slice() {
            match text.as_str() {
                "case" if self.segment.words.is_empty() => self.cases += 1,
                "esac" if self.segment.words.is_empty() => {
                    self.cases = self.cases.saturating_sub(1);
                }
                _ => {}
            }
        }
        self.segment.words.push(word);
    }
}

impl Scanner<'_> {
    pub(super) fn peek(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + offset).copied()
    }

    pub(super) fn take(&mut self) -> Option<char> {
        let c = self.text.get(self.at..)?.chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Skips a comment. After `(` or `|` it may also be part of a pattern, so that what it says
    /// counts, too.
    fn comment(&mut self) {
        let (before, rest) = self.text.split_at(self.at);
        let comment = &rest[..rest.find('\n').unwrap_or(rest.len())];
        self.at += comment.len();
        if !before.is_empty() && !before.ends_with([' ', '\t', '\n', ';']) {
            self.scan.scripts.push(comment[1..].to_owned());
        }
    }

    /// Commands up to and over the end.
    fn commands(&mut self, until: Until) {
        let mut current = Current::default();
        let mut open = 0_usize;
        while let Some(byte) = self.peek(0) {
            match byte {
                b' ' | b'\t' | b'\r' => {
                    self.at += 1;
                    current.end_word();
                }
                b'\n' => {
                    self.at += 1;
                    self.end_segment(&mut current);
                    self.bodies(&mut current);
                }
                b'\\' if self.peek(1) == Some(b'\n') => self.at += 2,
                b'&' if self.peek(1) == Some(b'>') => {
                    self.at += 1;
                    current.end_word();
                }
                b';' | b'&' | b'|' => {
                    self.at += 1;
                    self.end_segment(&mut current);
                }
                b'(' => {
                    self.at += 1;
                    open += 1;
                    self.end_segment(&mut current);
                }
                b')' => {
                    self.at += 1;
                    self.end_segment(&mut current);
                    if open > 0 {
                        open -= 1;
                    } else if until == Until::Parenthesis && current.cases == 0 {
                        return;
                    }
                }
                b'<' | b'>' => self.redirection(&mut current),
                b'#' if current.word.is_none() => self.comment(),
                _ => {
                    if current.word.is_none() {
                        current.start = self.at;
                    }
                    let mut word = current.word.take().unwrap_or_default();
                    if self.piece(&mut word, Inside::Nothing) {
                        current.word = Some(word);
                    } else {
                        // `$IFS`
                        current.word = (!word.is_empty()).then_some(word);
                        current.end_word();
                    }
                }
            }
        }
        self.end_segment(&mut current);
    }

    fn end_segment(&mut self, current: &mut Current) {
        current.end_word();
        current.redirected = false;
        if !current.segment.words.is_empty() || !current.segment.bodies.is_empty() {
            self.scan
                .segments
                .push(std::mem::take(&mut current.segment));
        }
    }

    /// A redirection's operator, or a process substitution.
    fn redirection(&mut self, current: &mut Current) {
        if self.peek(1) == Some(b'(') {
            let start = self.at;
            self.at += 2;
            self.nested(Until::Parenthesis);
            current.word.get_or_insert_default().push(Part::Expansion {
                source: self.text[start..self.at].to_owned(),
                name: None,
            });
            return;
        }
        let spelled = &self.text[current.start.min(self.at)..self.at];
        if spelled.bytes().all(|c| c.is_ascii_digit()) {
            // The number of a descriptor.
            current.word = None;
        }
        current.end_word();
        let rest = &self.text[self.at..];
        if rest.starts_with("<<") && !rest.starts_with("<<<") {
            self.at += 2;
            let strips = self.peek(0) == Some(b'-');
            self.at += usize::from(strips);
            loop {
                match self.peek(0) {
                    Some(b' ' | b'\t') => self.at += 1,
                    Some(b'\\') if self.peek(1) == Some(b'\n') => self.at += 2,
                    _ => break,
                }
            }
            let mut delimiter = Vec::new();
            while self.peek(0).is_some_and(|c| !is_separator(char::from(c))) {
                self.piece(&mut delimiter, Inside::Nothing);
            }
            let owner = self.scan.segments.len();
            current.pending.push((owner, source(&delimiter), strips));
            return;
        }
        while matches!(self.peek(0), Some(b'<' | b'>' | b'&' | b'|')) && self.peek(1) != Some(b'(')
        {
            self.at += 1;
        }
        current.redirected = true;
    }

    /// Bodies of here-documents, which belong to segments that were read before.
    fn bodies(&mut self, current: &mut Current) {
        for (owner, delimiter, strips) in std::mem::take(&mut current.pending) {
            let mut body = String::new();
            while self.at < self.text.len() {
                let rest = &self.text[self.at..];
                let length = rest.find('\n').unwrap_or(rest.len());
                let line = &rest[..length];
                self.at = (self.at + length + 1).min(self.text.len());
                let line = if strips {
                    line.trim_start_matches('\t')
                } else {
                    line
                };
                if line == delimiter {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            let inner = quoted(&body);
            self.scan.segments.extend(inner.segments);
            self.scan.scripts.extend(inner.scripts);
            if let Some(segment) = self.scan.segments.get_mut(owner) {
                segment.bodies.push(body);
            }
        }
    }

    pub(super) fn nested(&mut self, until: Until) {
        if self.nesting >= MAX_NESTING {
            self.scan.cut = true;
            self.at = self.text.len();
            return;
        }
        self.nesting += 1;
        self.commands(until);
        self.nesting -= 1;
    }
}

/// The substitutions in text that is otherwise quoted.
fn quoted(text: &str) -> Scan {
    let mut scanner = Scanner::at_the_start(text);
    while scanner.at < text.len() {
        scanner.double_quoted(&mut Vec::new());
    }
    scanner.scan
}
