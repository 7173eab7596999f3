//! The cursor over a command line, and the grammar of lists and pipelines.
//!
//! The reader goes through the text once, from left to right, and calls itself for what nests;
//! every call that nests is counted, so neither time nor stack depends on more than the length.

use super::heredoc::Heredoc;
use super::refusal::excerpt;
use super::state::State;
use super::{Refusal, guard};

/// Which shell will read the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Bash,
    /// `sh` may be any shell: what only bash reads in this way is refused.
    Posix,
}

#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) dialect: Dialect,
    /// Here-documents whose bodies begin after the next line break.
    pub(super) pending: Vec<Heredoc>,
    /// How many of those were begun outside of the innermost substitution.
    pub(super) outside: usize,
    /// Open `$(` and `<(` of this text.
    pub(super) substitutions: usize,
    pub(super) state: &'a mut State,
}

/// What ends a list of commands. It is not consumed.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Text,
    Parenthesis,
    Words(&'static [&'static str]),
    /// `;;` and its kin, or `esac`.
    Case,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, dialect: Dialect, state: &'a mut State) -> Self {
        Self {
            text,
            at: 0,
            dialect,
            pending: Vec::new(),
            outside: 0,
            substitutions: 0,
            state,
        }
    }

    /// Reads all of the text as commands.
    pub(super) fn script(mut self) -> Result<(), Refusal> {
        // Decoded strings come from within quotes and may hold what the line itself may not.
        guard::check(self.text)?;
        self.list(End::Text)?;
        if self.pending.is_empty() {
            Ok(())
        } else {
            Err(self.syntax("a here-document without its end"))
        }
    }

    /// Commands up to `end`; at least one, except where the whole text or a case may be empty.
    pub(super) fn list(&mut self, end: End) -> Result<(), Refusal> {
        self.line_breaks()?;
        let mut empty = true;
        while !self.is_at_end(end) {
            self.chain()?;
            empty = false;
            self.blanks();
            match self.peek() {
                Some(b';') if !self.looking_at(";;") && !self.looking_at(";&") => self.at += 1,
                Some(b'&') => self.at += 1,
                Some(b'\n') => {}
                _ if matches!(end, End::Words(_)) => {
                    return Err(self.syntax("a missing separator"));
                }
                _ if self.is_at_end(end) => break,
                _ => return Err(self.syntax("an unexpected token")),
            }
            self.line_breaks()?;
        }
        if empty && matches!(end, End::Parenthesis | End::Words(_)) {
            // `$()` and `( )`: the first is legal and empty, neither is worth telling apart.
            return Err(self.syntax("a missing command"));
        }
        Ok(())
    }

    fn is_at_end(&self, end: End) -> bool {
        match end {
            End::Text => self.peek().is_none(),
            End::Parenthesis => self.peek() == Some(b')'),
            End::Words(words) => self.reserved().is_some_and(|word| words.contains(&word)),
            End::Case => {
                self.looking_at(";;") || self.looking_at(";&") || self.reserved() == Some("esac")
            }
        }
    }

    /// Pipelines joined by `&&` and `||`.
    fn chain(&mut self) -> Result<(), Refusal> {
        loop {
            self.pipeline()?;
            self.blanks();
            if self.looking_at("&&") || self.looking_at("||") {
                self.at += 2;
                self.line_breaks()?;
            } else {
                return Ok(());
            }
        }
    }

    fn pipeline(&mut self) -> Result<(), Refusal> {
        loop {
            match self.reserved() {
                Some("!") => self.take_reserved("!")?,
                Some("time") => {
                    self.bash_only("`time`")?;
                    self.take_reserved("time")?;
                    if self.reserved() == Some("-p") {
                        self.take_reserved("-p")?;
                    }
                    // The shell does not take what follows for what it is elsewhere.
                    if matches!(self.peek(), Some(b'-' | b'(')) || self.is_at_assignment()? {
                        return Err(self.construct("what follows `time`"));
                    }
                }
                _ => break,
            }
        }
        loop {
            self.command()?;
            self.blanks();
            if self.looking_at("||") || self.peek() != Some(b'|') {
                return Ok(());
            }
            self.at += 1;
            if self.peek() == Some(b'&') {
                self.bash_only("`|&`")?;
                self.at += 1;
            }
            self.line_breaks()?;
        }
    }

    // The cursor.

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn peek_after(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + offset).copied()
    }

    pub(super) fn looking_at(&self, token: &str) -> bool {
        self.text.as_bytes()[self.at..].starts_with(token.as_bytes())
    }

    /// Takes the next character, whole.
    pub(super) fn take(&mut self) -> Option<char> {
        let c = self.text.get(self.at..)?.chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn expect(&mut self, byte: u8, problem: &'static str) -> Result<(), Refusal> {
        if self.peek() != Some(byte) {
            return Err(self.syntax(problem));
        }
        self.at += 1;
        Ok(())
    }

    /// Skips blanks, continued lines and a comment.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek_after(1) == Some(b'\n') => self.at += 2,
                Some(b'#') if self.is_at_word_start() => {
                    let rest = &self.text[self.at..];
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    /// Whether what comes is no continuation of a word, so that `#` begins a comment.
    fn is_at_word_start(&self) -> bool {
        let before = self.text.as_bytes()[..self.at].last();
        matches!(
            before,
            None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
        )
    }

    /// Skips blanks and line breaks, and reads the here-documents that begin after them.
    pub(super) fn line_breaks(&mut self) -> Result<(), Refusal> {
        loop {
            self.blanks();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.at += 1;
            self.heredocs()?;
        }
    }

    /// The next word where it is plain text up to a separator: only such a word is reserved.
    pub(super) fn reserved(&self) -> Option<&'a str> {
        let rest = &self.text[self.at..];
        let length = rest.find(is_separator).unwrap_or(rest.len());
        // The longest is `function`.
        (1..=8).contains(&length).then(|| &rest[..length])
    }

    pub(super) fn take_reserved(&mut self, word: &'static str) -> Result<(), Refusal> {
        if self.reserved() != Some(word) {
            return Err(self.syntax("a missing keyword"));
        }
        self.at += word.len();
        self.blanks();
        Ok(())
    }

    // Refusals.

    pub(super) fn syntax(&self, problem: &'static str) -> Refusal {
        Refusal::Syntax {
            problem,
            at: excerpt(self.text.get(self.at..).unwrap_or_default()),
        }
    }

    pub(super) fn construct(&self, what: &'static str) -> Refusal {
        Refusal::Construct {
            what,
            at: excerpt(self.text.get(self.at..).unwrap_or_default()),
        }
    }

    pub(super) fn bash_only(&self, what: &'static str) -> Result<(), Refusal> {
        match self.dialect {
            Dialect::Bash => Ok(()),
            Dialect::Posix => Err(self.construct(what)),
        }
    }
}

/// Characters that end a word outside of quotes.
pub(super) fn is_separator(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>'
    )
}
