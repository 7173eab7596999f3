//! Expansions: variables, commands, processes and arithmetic. Their values are unknown; what
//! they run is read.

use super::arithmetic;
use super::reader::{End, Reader};
use super::value_printers::{self, Printed};
use super::words::{Quoting, Start, Unit, Unknown};
use super::{Refusal, variables};

impl<'a> Reader<'a> {
    /// `$…` or a backquote inside of quotes; none for a dollar that stands for itself.
    pub(super) fn quoted_expansion(
        &mut self,
        quoting: Quoting,
    ) -> Result<Option<Unknown>, Refusal> {
        if self.peek() == Some(b'`') {
            self.backquoted_in(quoting).map(Some)
        } else {
            self.expansion(quoting)
        }
    }

    /// `$…`; none for a dollar that stands for itself.
    pub(super) fn expansion(&mut self, quoting: Quoting) -> Result<Option<Unknown>, Refusal> {
        let start = self.at;
        let mut unknown = Unknown {
            source: String::new(),
            start: Start::Unknown,
            splits: quoting == Quoting::Bare,
        };
        self.at += 1;
        match self.peek() {
            Some(b'(') if self.peek_after(1) == Some(b'(') => {
                self.at += 2;
                let expression = self.arithmetic()?;
                arithmetic::check(self.state, expression)?;
                unknown.start = Start::Other;
            }
            Some(b'(') => {
                let before = self.state.commands();
                self.substitution()?;
                let printed = self
                    .state
                    .only_after(before)
                    .and_then(value_printers::printed);
                match printed {
                    Some(Printed::Word) => (unknown.start, unknown.splits) = (Start::Other, false),
                    Some(Printed::Path) => unknown.start = Start::Other,
                    None => {}
                }
            }
            Some(b'{') => {
                self.at += 1;
                self.state.enter()?;
                self.parameter(quoting, &mut unknown)?;
                self.state.leave();
            }
            Some(b'[') => return Err(self.construct("`$[`")),
            Some(b'\\') if self.peek_after(1) == Some(b'\n') => {
                return Err(self.construct("a continued line inside a word"));
            }
            Some(b'@' | b'*') => {
                self.at += 1;
                unknown.splits = true;
            }
            Some(b'#' | b'?' | b'$') => {
                self.at += 1;
                unknown.start = Start::Other;
            }
            Some(b'-' | b'!' | b'0'..=b'9') => self.at += 1,
            Some(c) if variables::is_name_start(char::from(c)) => self.skip_name(),
            _ => return Ok(None),
        }
        unknown.source = self.text[start..self.at].to_owned();
        Ok(Some(unknown))
    }

    fn skip_name(&mut self) {
        while self
            .peek()
            .is_some_and(|c| variables::is_name_part(char::from(c)))
        {
            self.at += 1;
        }
    }

    /// `(…)` of a command or process substitution.
    fn substitution(&mut self) -> Result<(), Refusal> {
        self.at += 1;
        let outside = self.outside;
        self.outside = self.pending.len();
        self.substitutions += 1;
        self.list(End::Parenthesis)?;
        if self.pending.len() != self.outside {
            return Err(self.construct("a here-document that leaves its substitution"));
        }
        self.expect(b')', "a missing `)`")?;
        self.substitutions -= 1;
        self.outside = outside;
        Ok(())
    }

    /// `<(…)` or `>(…)`
    pub(super) fn process_substitution(&mut self) -> Result<Unknown, Refusal> {
        self.bash_only("a process substitution")?;
        let start = self.at;
        self.at += 1;
        self.substitution()?;
        Ok(Unknown {
            source: self.text[start..self.at].to_owned(),
            start: Start::Other,
            splits: false,
        })
    }

    pub(super) fn backquoted(&mut self) -> Result<Unknown, Refusal> {
        self.backquoted_in(Quoting::Bare)
    }

    /// `` `…` ``: the text up to the next backquote without a backslash, read as a script after
    /// one level of backslashes is gone.
    fn backquoted_in(&mut self, quoting: Quoting) -> Result<Unknown, Refusal> {
        let start = self.at;
        self.at += 1;
        let mut script = String::new();
        loop {
            match self.take() {
                None => {
                    self.at = start;
                    return Err(self.syntax("an unclosed backquote"));
                }
                Some('`') => break,
                Some('\\') if quoting != Quoting::Bare => {
                    // Which backslashes go depends on the quotes around.
                    return Err(self.construct("a backslash in quoted backquotes"));
                }
                Some('\\') => match self.peek() {
                    Some(b'`' | b'\\' | b'$') => script.extend(self.take()),
                    Some(b'\n') => return Err(self.construct("a continued line in backquotes")),
                    _ => script.push('\\'),
                },
                Some(c) => script.push(c),
            }
        }
        let source = self.text[start..self.at].to_owned();
        self.no_break_before_heredoc(&source)?;
        Reader::new(&script, self.dialect, self.state).script()?;
        Ok(Unknown {
            source,
            start: Start::Unknown,
            splits: quoting == Quoting::Bare,
        })
    }

    /// The expression of `((…))` after the opening, up to and over the end.
    pub(super) fn arithmetic(&mut self) -> Result<&'a str, Refusal> {
        let start = self.at;
        let mut open = 0_usize;
        loop {
            match self.peek() {
                Some(b'(') => open += 1,
                Some(b')') if open > 0 => open -= 1,
                Some(b')') if self.peek_after(1) == Some(b')') => break,
                // Quotes or an end elsewhere: not an expression, or not a plain one.
                None | Some(b')' | b'\'' | b'"' | b'`' | b'\\' | b'\n') => {
                    self.at = start;
                    return Err(self.construct("arithmetic"));
                }
                Some(_) => {}
            }
            self.at += 1;
        }
        self.at += 2;
        Ok(&self.text[start..self.at - 2])
    }

    /// `${…}` after the opening.
    fn parameter(&mut self, quoting: Quoting, unknown: &mut Unknown) -> Result<(), Refusal> {
        let mut counts = false;
        if self.peek() == Some(b'#') && self.peek_after(1) != Some(b'}') {
            self.at += 1;
            counts = true;
        }
        let start = self.at;
        match self.peek() {
            Some(c) if variables::is_name_start(char::from(c)) => self.skip_name(),
            Some(c) if c.is_ascii_digit() => {
                while self.peek().is_some_and(|c| c.is_ascii_digit()) {
                    self.at += 1;
                }
            }
            Some(b'@' | b'*') => {
                unknown.splits = true;
                self.at += 1;
            }
            Some(b'#' | b'?' | b'$' | b'-') => self.at += 1,
            // `${!x}` takes a name from a value, and evaluates subscripts in it.
            _ => return Err(self.construct("an expansion")),
        }
        let name = &self.text[start..self.at];
        if self.peek() == Some(b'[') {
            self.bash_only("a subscript")?;
            self.at += 1;
            self.subscript(unknown)?;
        }
        if counts {
            unknown.start = Start::Other;
            return self.expect(b'}', "a missing `}`");
        }
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(());
            }
            Some(b'@') => {
                // Of the transformations, these only change or quote the text.
                if !matches!(self.peek_after(1), Some(b'Q' | b'U' | b'u' | b'L')) {
                    return Err(self.construct("a transformation"));
                }
                self.at += 2;
                return self.expect(b'}', "a missing `}`");
            }
            Some(b':') => match self.peek_after(1) {
                Some(b'=') => {
                    variables::check(name)?;
                    self.state.assign_text(name);
                    self.at += 2;
                }
                Some(b'-' | b'?' | b'+') => self.at += 2,
                _ => {
                    self.at += 1;
                    return self.offsets();
                }
            },
            Some(b'=') => {
                variables::check(name)?;
                self.state.assign_text(name);
                self.at += 1;
            }
            Some(b'-' | b'?' | b'+' | b'#' | b'%' | b'/' | b'^' | b',') => self.at += 1,
            _ => return Err(self.construct("an expansion")),
        }
        self.parameter_word(quoting)
    }

    /// A subscript after the opening: all elements, or arithmetic.
    fn subscript(&mut self, unknown: &mut Unknown) -> Result<(), Refusal> {
        let start = self.at;
        while !matches!(self.peek(), Some(b']') | None) {
            self.at += 1;
        }
        let subscript = &self.text[start..self.at];
        if subscript == "@" || subscript == "*" {
            unknown.splits = true;
        } else {
            arithmetic::check(self.state, subscript)?;
        }
        self.expect(b']', "a missing `]`")
    }

    /// `${x:offset:length}` after the first colon: arithmetic.
    fn offsets(&mut self) -> Result<(), Refusal> {
        let start = self.at;
        while !matches!(self.peek(), Some(b'}') | None) {
            self.at += 1;
        }
        for part in self.text[start..self.at].split(':') {
            arithmetic::check(self.state, part)?;
        }
        self.expect(b'}', "a missing `}`")
    }

    /// The word or pattern of `${x:-…}` and its kin, up to and over the closing brace.
    fn parameter_word(&mut self, quoting: Quoting) -> Result<(), Refusal> {
        loop {
            match self.peek() {
                None => return Err(self.syntax("a missing `}`")),
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    if matches!(self.take(), None | Some('\n')) {
                        return Err(self.construct("a continued line inside a word"));
                    }
                }
                Some(b'\'') if quoting == Quoting::Bare => {
                    self.single_quoted()?;
                }
                Some(b'"') if quoting != Quoting::Body => {
                    let mut units: Vec<Unit> = Vec::new();
                    self.double_quoted(&mut units)?;
                }
                // Whether these quote, nest or end depends on the operator and the quotes around.
                Some(b'\'' | b'"' | b'{') => return Err(self.construct("an expansion")),
                Some(b'<' | b'>') if self.peek_after(1) == Some(b'(') => {
                    return Err(self.construct("a process substitution inside a word"));
                }
                Some(b'$') if matches!(self.peek_after(1), Some(b'\'' | b'"')) => {
                    return Err(self.construct("an expansion"));
                }
                Some(b'$' | b'`') => {
                    self.quoted_expansion(quoting)?;
                }
                Some(b'\n') => {
                    self.no_break_before_heredoc("\n")?;
                    self.at += 1;
                }
                Some(_) => {
                    self.take();
                }
            }
        }
    }
}
