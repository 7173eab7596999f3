//! The grammar of simple commands: assignments, words and redirections.

use super::heredoc::Tabs;
use super::reader::{Dialect, Reader, is_separator};
use super::words::{Argument, Expand};
use super::{Command, Redirection, RedirectionKind, Refusal, programs, variables};
use super::{build, builtins};

/// The variable that decides where the shell splits words.
const FIELD_SEPARATORS: &str = "IFS";

/// Redirection operators, the longer before their beginnings.
const OPERATORS: [(&str, Operator); 12] = [
    ("&>>", Operator::WriteBoth),
    ("&>", Operator::WriteBoth),
    ("<<<", Operator::String),
    ("<<-", Operator::Heredoc(Tabs::Stripped)),
    ("<<", Operator::Heredoc(Tabs::Kept)),
    ("<>", Operator::File(RedirectionKind::Write)),
    ("<&", Operator::CopyInput),
    ("<", Operator::File(RedirectionKind::Read)),
    (">>", Operator::File(RedirectionKind::Write)),
    (">|", Operator::File(RedirectionKind::Write)),
    (">&", Operator::CopyOutput),
    (">", Operator::File(RedirectionKind::Write)),
];

#[derive(Debug, Clone, Copy)]
enum Operator {
    File(RedirectionKind),
    WriteBoth,
    CopyInput,
    CopyOutput,
    String,
    Heredoc(Tabs),
}

impl Reader<'_> {
    /// A simple command, or the definition of a function, which begins like one.
    pub(super) fn simple(&mut self) -> Result<(), Refusal> {
        let slot = self.state.reserve()?;
        let mut assignments = Vec::new();
        let mut words: Vec<Argument> = Vec::new();
        let mut redirections = Vec::new();
        let start = self.at;
        loop {
            self.blanks();
            if self.is_at_redirection() {
                redirections.extend(self.redirection()?);
            } else if self.is_at_word() {
                if words.is_empty() && self.is_at_assignment()? {
                    assignments.push(self.assignment()?);
                } else {
                    self.command_word(&mut words)?;
                }
            } else {
                break;
            }
        }
        if self.peek() == Some(b'(') {
            let ([name], [], []) = (
                words.as_slice(),
                assignments.as_slice(),
                redirections.as_slice(),
            ) else {
                return Err(self.syntax("an unexpected `(`"));
            };
            self.at += 1;
            self.blanks();
            self.expect(b')', "an unexpected `(`")?;
            self.state.vacate(slot);
            return self.function_body(name);
        }
        if self.at == start {
            return Err(self.syntax("a missing command"));
        }
        // What separates fields is everybody's business, except where only `read` sees it.
        let is_read = words
            .first()
            .is_some_and(|word| word.as_literal() == Some("read"));
        if !is_read && assignments.iter().any(|name| name == FIELD_SEPARATORS) {
            variables::check(FIELD_SEPARATORS)?;
        }
        let mut command = match words.first() {
            Some(first) if first.plain && programs::is_keyword(&first.text) => {
                return Err(self.syntax("an unexpected keyword"));
            }
            Some(first) => {
                if first.plain && self.dialect == Dialect::Bash && builtins::declares(&first.text) {
                    // Called by its plain name, it gets its assignments whole.
                    for word in &mut words {
                        word.splits &= word.known == 0;
                    }
                }
                build::command(self.state, self.dialect, &words)?
            }
            None => Command::default(),
        };
        command.assignments = assignments;
        command.redirections = redirections;
        self.state.fill(slot, command);
        Ok(())
    }

    /// Whether a word begins here, which may be a process substitution.
    fn is_at_word(&self) -> bool {
        match self.peek() {
            None => false,
            Some(b'<' | b'>') => true,
            Some(byte) => !is_separator(char::from(byte)),
        }
    }

    fn command_word(&mut self, words: &mut Vec<Argument>) -> Result<(), Refusal> {
        let start = self.at;
        words.extend(self.word(Expand::Braces)?);
        let is_braced = self.text[start..self.at].starts_with('{');
        if is_braced && matches!(self.peek(), Some(b'<' | b'>')) {
            self.at = start;
            return Err(self.construct("a redirection to a variable's descriptor"));
        }
        Ok(())
    }

    /// Whether `NAME=` or `NAME+=` begins here.
    pub(super) fn is_at_assignment(&self) -> Result<bool, Refusal> {
        let rest = &self.text[self.at..];
        let length = rest
            .find(|c: char| !variables::is_name_part(c))
            .unwrap_or(rest.len());
        let (name, rest) = rest.split_at(length);
        if !variables::is_name(name) {
            return Ok(false);
        }
        if rest.starts_with('[') {
            return Err(self.construct("an assignment to an element"));
        }
        Ok(rest.starts_with('=') || rest.starts_with("+="))
    }

    /// `NAME=value`; gives the name.
    fn assignment(&mut self) -> Result<String, Refusal> {
        let rest = &self.text[self.at..];
        let sign = rest.find('=').unwrap_or_default();
        let name = rest[..sign].trim_end_matches('+').to_owned();
        if name.len() < sign {
            self.bash_only("`+=`")?;
        }
        if name != FIELD_SEPARATORS {
            variables::check(&name)?;
        }
        self.at += sign + 1;
        if self.peek() == Some(b'(') {
            self.bash_only("an array")?;
            self.at += 1;
            self.elements()?;
            self.state.assign_text(&name);
        } else if self.is_at_word() && !self.is_at_redirection() {
            let value = self.word(Expand::Nothing)?;
            self.assign(&name, &value);
        } else {
            self.assign(&name, &[]);
        }
        Ok(name)
    }

    /// The elements of an array after the opening, up to and over the end.
    fn elements(&mut self) -> Result<(), Refusal> {
        loop {
            self.line_breaks()?;
            match self.peek() {
                Some(b')') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'[') => return Err(self.construct("a subscript")),
                _ => {
                    self.word(Expand::Braces)?;
                }
            }
        }
    }

    pub(super) fn is_at_redirection(&self) -> bool {
        let rest = &self.text[self.at..];
        let operator = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if operator.starts_with("<(") || operator.starts_with(">(") {
            return false;
        }
        operator.starts_with(['<', '>']) || (operator.len() == rest.len() && rest.starts_with("&>"))
    }

    /// A redirection; none where it is harmless or has no file.
    pub(super) fn redirection(&mut self) -> Result<Option<Redirection>, Refusal> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at - start > 4 {
            return Err(self.construct("a descriptor"));
        }
        let Some((token, operator)) = OPERATORS.iter().find(|(token, _)| self.looking_at(token))
        else {
            return Err(self.syntax("a missing redirection"));
        };
        let numbered = self.at > start;
        if matches!(operator, Operator::WriteBoth | Operator::String) {
            self.bash_only("a redirection")?;
        }
        self.at += token.len();
        self.blanks();
        if self.is_at_redirection() {
            return Err(self.syntax("a missing file"));
        }
        let kind = match operator {
            Operator::Heredoc(tabs) => {
                self.heredoc(*tabs)?;
                return Ok(None);
            }
            Operator::File(kind) => *kind,
            Operator::WriteBoth | Operator::CopyOutput => RedirectionKind::Write,
            Operator::CopyInput | Operator::String => RedirectionKind::Read,
        };
        if self.looking_at("<(") || self.looking_at(">(") {
            // The file is a pipe to commands that are read like any others.
            self.process_substitution()?;
            if self.is_at_word() && !self.is_at_redirection() {
                return Err(self.construct("a process substitution inside a word"));
            }
            return Ok(None);
        }
        let target = self
            .word(Expand::Nothing)?
            .pop()
            .ok_or_else(|| self.syntax("a missing file"))?;
        match operator {
            Operator::String => Ok(None),
            Operator::CopyInput | Operator::CopyOutput if is_descriptor(&target) => Ok(None),
            Operator::CopyInput => Err(self.construct("a descriptor")),
            Operator::CopyOutput if numbered => Err(self.construct("a descriptor")),
            Operator::CopyOutput => {
                self.bash_only("a redirection")?;
                redirection(kind, &target)
            }
            _ => redirection(kind, &target),
        }
    }
}

/// `2`, `-` or `2-`
fn is_descriptor(target: &Argument) -> bool {
    target.as_literal().is_some_and(|text| {
        let digits = text.strip_suffix('-').unwrap_or(text);
        text == "-" || (!digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit()))
    })
}

/// `~/…` or `~user/…` with nothing else that is known only at run time: rules know homes, too.
fn in_home(target: &Argument) -> Option<&str> {
    let is_fixed = |rest: &str| !rest.contains(['~', '$', '`', '*', '?', '[', '(', '\\']);
    let (user, rest) = target.text.strip_prefix('~')?.split_once('/')?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    // `~-` and its like are directories that the line was in.
    let is_user = !user.starts_with('-') && user.chars().all(is_name);
    (target.plain && is_user && is_fixed(rest)).then_some(target.text.as_str())
}

fn redirection(kind: RedirectionKind, target: &Argument) -> Result<Option<Redirection>, Refusal> {
    // A brace may stand for several files, which is an error, or for one with other text.
    let path = target
        .as_literal()
        .or_else(|| in_home(target))
        .filter(|path| !path.contains('{'));
    match (kind, path) {
        (_, Some(path)) if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") => {
            Err(Refusal::Network {
                target: path.to_owned(),
            })
        }
        (RedirectionKind::Write, Some("/dev/null" | "/dev/stdout" | "/dev/stderr"))
        | (RedirectionKind::Read, Some("/dev/null" | "/dev/stdin")) => Ok(None),
        (kind, path) => Ok(Some(Redirection {
            kind,
            target: path.map(str::to_owned),
        })),
    }
}
