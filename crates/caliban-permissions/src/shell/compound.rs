//! The grammar of compound commands: groups, conditionals, loops, cases, tests and functions.

use super::arithmetic;
use super::reader::{End, Reader};
use super::words::{Argument, Expand};
use super::{Command, Refusal, programs, variables};

impl Reader<'_> {
    /// One command of a pipeline.
    pub(super) fn command(&mut self) -> Result<(), Refusal> {
        self.state.enter()?;
        self.blanks();
        if self.compound()? {
            self.redirections_of_compound()?;
        } else {
            self.simple()?;
        }
        self.state.leave();
        Ok(())
    }

    /// Reads a compound command if there is one.
    fn compound(&mut self) -> Result<bool, Refusal> {
        if self.looking_at("((") {
            self.bash_only("`((`")?;
            self.at += 2;
            let expression = self.arithmetic()?;
            arithmetic::check(self.state, expression)?;
            return Ok(true);
        }
        if self.peek() == Some(b'(') {
            self.at += 1;
            self.list(End::Parenthesis)?;
            self.expect(b')', "a missing `)`")?;
            return Ok(true);
        }
        match self.reserved() {
            Some("{") => {
                self.take_reserved("{")?;
                self.list(End::Words(&["}"]))?;
                self.take_reserved("}")?;
            }
            Some("if") => self.conditional()?,
            Some(word @ ("while" | "until")) => {
                self.take_reserved(if word == "while" { "while" } else { "until" })?;
                self.list(End::Words(&["do"]))?;
                self.body()?;
            }
            Some("for") => self.for_loop()?,
            Some("select") => {
                self.bash_only("`select`")?;
                self.take_reserved("select")?;
                self.loop_over_words()?;
            }
            Some("case") => self.case()?,
            Some("[[") => {
                self.bash_only("`[[`")?;
                self.take_reserved("[[")?;
                self.test()?;
                self.take_reserved("]]")?;
            }
            Some("function") => {
                self.bash_only("`function`")?;
                self.take_reserved("function")?;
                self.function()?;
            }
            Some("coproc") => return Err(self.construct("`coproc`")),
            Some(
                "then" | "else" | "elif" | "fi" | "do" | "done" | "esac" | "in" | "}" | "]]" | "!"
                | "time",
            ) => return Err(self.syntax("an unexpected keyword")),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn conditional(&mut self) -> Result<(), Refusal> {
        self.take_reserved("if")?;
        loop {
            self.list(End::Words(&["then"]))?;
            self.take_reserved("then")?;
            self.list(End::Words(&["elif", "else", "fi"]))?;
            match self.reserved() {
                Some("elif") => self.take_reserved("elif")?,
                Some("else") => {
                    self.take_reserved("else")?;
                    self.list(End::Words(&["fi"]))?;
                    return self.take_reserved("fi");
                }
                _ => return self.take_reserved("fi"),
            }
        }
    }

    /// `do … done`.
    fn body(&mut self) -> Result<(), Refusal> {
        self.take_reserved("do")?;
        self.list(End::Words(&["done"]))?;
        self.take_reserved("done")
    }

    fn for_loop(&mut self) -> Result<(), Refusal> {
        self.take_reserved("for")?;
        if !self.looking_at("((") {
            return self.loop_over_words();
        }
        self.bash_only("`for ((`")?;
        self.at += 2;
        let header = self.arithmetic()?;
        let mut parts = 0;
        for part in header.split(';') {
            arithmetic::check(self.state, part)?;
            parts += 1;
        }
        if parts != 3 {
            return Err(self.syntax("a loop header without three parts"));
        }
        self.blanks();
        if self.peek() == Some(b';') {
            self.at += 1;
        }
        self.line_breaks()?;
        self.body()
    }

    /// The rest of `for` and `select`: a name, words, and a body.
    fn loop_over_words(&mut self) -> Result<(), Refusal> {
        let name = self.name()?;
        variables::check(&name)?;
        self.line_breaks()?;
        if self.reserved() == Some("in") {
            self.take_reserved("in")?;
            let mut values = Vec::new();
            while !matches!(self.peek(), Some(b';' | b'\n') | None) {
                values.extend(self.word(Expand::Braces)?);
                self.blanks();
            }
            self.assign(&name, &values);
        } else {
            self.state.assign_text(&name);
        }
        if self.peek() == Some(b';') {
            self.at += 1;
        }
        self.line_breaks()?;
        self.body()
    }

    /// Notes which values a variable gets.
    pub(super) fn assign(&mut self, name: &str, values: &[Argument]) {
        if values.iter().all(|value| value.number) {
            self.state.assign_number(name);
        } else {
            self.state.assign_text(name);
        }
    }

    /// A variable's name, spelled plainly.
    fn name(&mut self) -> Result<String, Refusal> {
        let rest = &self.text[self.at..];
        let length = rest
            .find(|c: char| !variables::is_name_part(c))
            .unwrap_or(rest.len());
        let name = &rest[..length];
        if !variables::is_name(name) {
            return Err(self.syntax("a missing name"));
        }
        self.at += length;
        Ok(name.to_owned())
    }

    fn case(&mut self) -> Result<(), Refusal> {
        self.take_reserved("case")?;
        self.word(Expand::Nothing)?;
        self.line_breaks()?;
        self.take_reserved("in")?;
        loop {
            self.line_breaks()?;
            if self.reserved() == Some("esac") {
                return self.take_reserved("esac");
            }
            if self.peek() == Some(b'(') {
                self.at += 1;
                self.blanks();
            }
            loop {
                self.word(Expand::Nothing)?;
                self.blanks();
                if self.peek() != Some(b'|') {
                    break;
                }
                self.at += 1;
                self.blanks();
            }
            self.expect(b')', "a missing `)` after a pattern")?;
            self.list(End::Case)?;
            if self.looking_at(";;&") {
                self.at += 3;
            } else if self.looking_at(";;") || self.looking_at(";&") {
                self.at += 2;
            } else if self.reserved() != Some("esac") {
                return Err(self.syntax("a missing `;;`"));
            }
        }
    }

    /// Terms of `[[ … ]]` joined by `&&` and `||`, up to what ends them.
    fn test(&mut self) -> Result<(), Refusal> {
        self.state.enter()?;
        loop {
            self.line_breaks()?;
            self.test_term()?;
            self.line_breaks()?;
            if !(self.looking_at("&&") || self.looking_at("||")) {
                break;
            }
            self.at += 2;
        }
        self.state.leave();
        Ok(())
    }

    fn test_term(&mut self) -> Result<(), Refusal> {
        while self.reserved() == Some("!") {
            self.take_reserved("!")?;
        }
        if self.peek() == Some(b'(') {
            self.at += 1;
            self.test()?;
            return self.expect(b')', "a missing `)`");
        }
        let unary = self.reserved().filter(|word| {
            matches!(word.as_bytes(), [b'-', letter] if b"abcdefghknoprstuvwxzGLNORS".contains(letter))
        });
        if let Some(unary) = unary {
            self.at += unary.len();
            let operand = self.operand_of_test()?;
            let names = matches!(unary, "-v" | "-R");
            if names && !(operand.is_literal() && variables::is_name(&operand.text)) {
                return Err(self.construct("a test of a variable's subscript"));
            }
            return Ok(());
        }
        let left = self.operand_of_test()?;
        self.blanks();
        match self.reserved() {
            Some("=~") => {
                self.take_reserved("=~")?;
                self.regex()
            }
            Some("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") => {
                self.at += 3;
                let right = self.operand_of_test()?;
                arithmetic::check(self.state, &left.text)?;
                arithmetic::check(self.state, &right.text)
            }
            Some(operator @ ("=" | "==" | "!=" | "-ef" | "-nt" | "-ot")) => {
                self.at += operator.len();
                self.operand_of_test().map(drop)
            }
            _ if self.looking_at("< ") || self.looking_at("> ") => {
                self.at += 1;
                self.operand_of_test().map(drop)
            }
            // A word alone; what follows is up to the caller.
            _ => Ok(()),
        }
    }

    fn operand_of_test(&mut self) -> Result<Argument, Refusal> {
        self.blanks();
        if self.reserved() == Some("]]") || self.is_at_redirection() {
            return Err(self.syntax("a missing operand"));
        }
        self.word(Expand::Nothing)?
            .pop()
            .ok_or_else(|| self.syntax("a missing operand"))
    }

    /// The right side of `=~`, in which parentheses and bars are part of the word.
    fn regex(&mut self) -> Result<(), Refusal> {
        let mut open = 0_usize;
        let start = self.at;
        loop {
            match self.peek() {
                Some(b'(') => {
                    open += 1;
                    self.at += 1;
                }
                Some(b')') if open > 0 => {
                    open -= 1;
                    self.at += 1;
                }
                Some(b'|') if open > 0 => self.at += 1,
                Some(b' ' | b'\t' | b'\n') if open == 0 && self.at > start => return Ok(()),
                Some(b'#') => self.at += 1,
                _ => {
                    self.word(Expand::Nothing)?;
                }
            }
        }
    }

    /// A function's definition after `function`.
    fn function(&mut self) -> Result<(), Refusal> {
        let name = self.word(Expand::Nothing)?;
        let [name] = name.as_slice() else {
            return Err(self.syntax("a missing name"));
        };
        let name = name.clone();
        self.blanks();
        if self.peek() == Some(b'(') {
            self.at += 1;
            self.blanks();
            self.expect(b')', "a missing `)`")?;
        }
        self.function_body(&name)
    }

    /// A function's body, whose commands count like any others; so do the calls.
    pub(super) fn function_body(&mut self, name: &Argument) -> Result<(), Refusal> {
        if !name.is_literal() || !name.plain || programs::is_known(&name.text) {
            return Err(Refusal::Function {
                name: name.text.clone(),
            });
        }
        self.line_breaks()?;
        self.state.enter()?;
        if !self.compound()? {
            return Err(self.syntax("a function without a body"));
        }
        self.state.leave();
        self.redirections_of_compound()
    }

    /// Redirections after a compound command, which are those of a command without words.
    fn redirections_of_compound(&mut self) -> Result<(), Refusal> {
        let mut redirections = Vec::new();
        loop {
            self.blanks();
            if !self.is_at_redirection() {
                break;
            }
            redirections.extend(self.redirection()?);
        }
        if !redirections.is_empty() {
            let slot = self.state.reserve()?;
            self.state.fill(
                slot,
                Command {
                    redirections,
                    ..Command::default()
                },
            );
        }
        Ok(())
    }
}
