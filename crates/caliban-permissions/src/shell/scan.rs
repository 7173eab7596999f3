//! A tolerant lexer: finds the commands of any text, whether or not it is a valid script.

use super::braces::{self, Symbol};
use super::quotes::escape;
use super::reader::is_separator;
use super::variables;

/// How deep substitutions may nest before the rest is left unread.
const MAX_NESTING: usize = 32;

/// What stands between two separators.
#[derive(Debug, Default)]
pub(super) struct Segment {
    pub(super) words: Vec<Vec<Part>>,
    /// Bodies of its here-documents.
    pub(super) bodies: Vec<String>,
}

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

#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) segments: Vec<Segment>,
    /// Texts that are scripts of their own: those in backquotes.
    pub(super) scripts: Vec<String>,
    /// Something was nested too deep.
    pub(super) cut: bool,
}

pub(super) fn scan(text: &str) -> Scan {
    let mut scanner = Scanner {
        text,
        at: 0,
        nesting: 0,
        scan: Scan::default(),
    };
    while scanner.at < text.len() {
        scanner.commands(Until::End);
    }
    scanner.scan
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    nesting: usize,
    scan: Scan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    End,
    Parenthesis,
}

/// Whether single quotes quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    /// Double quotes or the body of a here-document.
    Quotes,
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
    fn peek(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + offset).copied()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.text.get(self.at..)?.chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Whether a `#` begins a comment here; after `(` or `|` it may be part of a pattern.
    fn is_after_blank(&self) -> bool {
        let before = &self.text[..self.at];
        before.is_empty() || before.ends_with([' ', '\t', '\n', ';'])
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
                b'#' if current.word.is_none() && self.is_after_blank() => {
                    let rest = &self.text[self.at..];
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
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

    fn nested(&mut self, until: Until) {
        if self.nesting >= MAX_NESTING {
            self.scan.cut = true;
            self.at = self.text.len();
            return;
        }
        self.nesting += 1;
        self.commands(until);
        self.nesting -= 1;
    }

    /// Adds what comes to a word; false where it is a blank in disguise.
    fn piece(&mut self, word: &mut Vec<Part>, inside: Inside) -> bool {
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
            Some(b'`') => self.backquoted(word),
            Some(b'$') => return self.dollar(word, inside),
            _ => {
                if let Some(c) = self.take() {
                    push(word, c);
                }
            }
        }
        true
    }

    fn double_quoted(&mut self, word: &mut Vec<Part>) {
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
                b'`' => self.backquoted(word),
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

    fn backquoted(&mut self, word: &mut Vec<Part>) {
        let start = self.at;
        self.at += 1;
        let mut script = String::new();
        while let Some(c) = self.take().filter(|c| *c != '`') {
            if c == '\\' && matches!(self.peek(0), Some(b'`' | b'\\' | b'$' | b'"')) {
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

/// The substitutions in text that is otherwise quoted.
fn quoted(text: &str) -> Scan {
    let mut scanner = Scanner {
        text,
        at: 0,
        nesting: 0,
        scan: Scan::default(),
    };
    while scanner.at < text.len() {
        scanner.double_quoted(&mut Vec::new());
    }
    scanner.scan
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
