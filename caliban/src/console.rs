//! The only place that writes to standard output and standard error.

use std::io::{self, IsTerminal, Write};

use crate::exit::Failure;

/// Standard output: the answer and nothing else.
pub(crate) struct Console {
    out: io::Stdout,
    terminal: bool,
    /// Whether the last byte written to a terminal left the cursor inside a line.
    mid_line: bool,
}

impl Console {
    pub(crate) fn new() -> Self {
        let out = io::stdout();
        Self {
            terminal: out.is_terminal(),
            out,
            mid_line: false,
        }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Writes and flushes, so that a reader sees each piece when it is complete.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Ok(());
        }
        self.mid_line = !text.ends_with('\n');
        self.out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush())
            .map_err(|error| match error.kind() {
                io::ErrorKind::BrokenPipe => Failure::OutputClosed,
                _ => Failure::Runtime(format!("standard output cannot be written: {error}")),
            })
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
    let _ = writeln!(io::stderr(), "{text}");
}
