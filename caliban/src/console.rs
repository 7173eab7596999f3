//! The only place that writes to standard output and standard error.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use caliban_harness::Diagnostics;

use crate::exit::Failure;

/// How much output may wait to be written in one piece.
const WAITING: usize = 64 * 1024;

/// Standard output: the answer and nothing else.
pub(crate) struct Console {
    out: io::Stdout,
    terminal: bool,
    /// What is to be written before anything else.
    waiting: String,
    /// Whether the last byte written to a terminal left the cursor inside a line.
    mid_line: bool,
}

impl Console {
    pub(crate) fn new() -> Self {
        let out = io::stdout();
        Self {
            terminal: out.is_terminal(),
            out,
            waiting: String::new(),
            mid_line: false,
        }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Writes and flushes, so that a reader sees each piece when it is complete.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.put(text)?;
        self.flush()
    }

    /// Writes with what follows; to be flushed as soon as nothing does.
    pub(crate) fn put(&mut self, text: &str) -> Result<(), Failure> {
        self.waiting.push_str(text);
        if self.waiting.len() > WAITING {
            self.flush()?;
        }
        Ok(())
    }

    /// Lets the reader see everything so far.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.mid_line = !self.waiting.ends_with('\n');
        // A pipe gets the answer as it is; a terminal must not be steered by it.
        let shown = if self.terminal {
            harmless(&self.waiting)
        } else {
            Cow::Borrowed(&*self.waiting)
        };
        let written = self
            .out
            .write_all(shown.as_bytes())
            .and_then(|()| self.out.flush())
            .map_err(|error| match error.kind() {
                io::ErrorKind::BrokenPipe => Failure::OutputClosed,
                _ => Failure::Runtime(format!("standard output cannot be written: {error}")),
            });
        self.waiting.clear();
        written
    }

    /// Shows something in the place of everything else on the terminal. `clear` is ours, and the
    /// rest is made harmless.
    pub(crate) fn redraw(&mut self, clear: &str, text: &str) -> Result<(), Failure> {
        self.flush()?;
        // What fails here fails again below, and is told there.
        let _ = self.out.write_all(clear.as_bytes());
        self.write(text)
    }

    /// Ends the current line, if there is one.
    pub(crate) fn end_line(&mut self) -> Result<(), Failure> {
        if self.mid_line {
            self.write("\n")?;
        }
        Ok(())
    }
}

/// Tells the person at the terminal or the reader of the log; never part of the answer.
pub(crate) fn note(text: &str) {
    // Nothing can be done about a closed standard error.
    let _ = writeln!(io::stderr(), "{}", harmless(text));
}

/// Where a run's warnings go, and its debug log where that is wanted there.
#[derive(Debug)]
pub(crate) struct StandardError;

impl Diagnostics for StandardError {
    fn warning(&self, text: &str) {
        note(&format!("warning: {text}"));
    }

    fn debug(&self, line: &str) {
        note(line);
    }
}

/// Text that cannot move the cursor, set the clipboard or turn the reading direction: control
/// characters are spelled out.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_harmful = |char: char| match char {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        other => other.is_control(),
    };
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let spelled = text.chars().fold(String::new(), |mut spelled, char| {
        if is_harmful(char) {
            spelled.extend(char.escape_unicode());
        } else {
            spelled.push(char);
        }
        spelled
    });
    Cow::Owned(spelled)
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn escape_sequences_are_spelled_out() {
        assert_eq!(harmless("plain\n\ttext é 👩‍🔧"), "plain\n\ttext é 👩‍🔧");
        assert_eq!(
            harmless("\x1b]52;c;AA\x07 \u{202e}\r"),
            "\\u{1b}]52;c;AA\\u{7} \\u{202e}\\u{d}"
        );
    }
}
