//! Here-documents: where their bodies end, and what is expanded in them.

use super::Refusal;
use super::reader::Reader;
use super::words::{Quoting, Unit};

/// A here-document whose body has not been read yet.
#[derive(Debug)]
pub(super) struct Heredoc {
    delimiter: String,
    body: Body,
    tabs: Tabs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    Literal,
    Expanded,
}

/// What happens to tabs at the beginning of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tabs {
    Kept,
    Stripped,
}

impl<'a> Reader<'a> {
    /// Reads the delimiter after `<<` or `<<-`.
    pub(super) fn heredoc(&mut self, tabs: Tabs) -> Result<(), Refusal> {
        let mut delimiter = String::new();
        let mut body = Body::Expanded;
        for unit in self.units()? {
            match unit {
                Unit::Plain(c) => delimiter.push(c),
                Unit::Quoted(text) => {
                    body = Body::Literal;
                    delimiter.push_str(&text);
                }
                Unit::Unknown(_) => {
                    return Err(self.construct("an expansion in a here-document's delimiter"));
                }
            }
        }
        if delimiter.is_empty() || delimiter.contains('\n') {
            return Err(self.construct("a here-document's delimiter"));
        }
        self.pending.push(Heredoc {
            delimiter,
            body,
            tabs,
        });
        Ok(())
    }

    /// Reads the bodies that begin here, after a line break.
    pub(super) fn heredocs(&mut self) -> Result<(), Refusal> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.outside > 0 {
            return Err(self.construct("a line break between a here-document and its body"));
        }
        for heredoc in std::mem::take(&mut self.pending) {
            let text = self.heredoc_body(&heredoc)?;
            if heredoc.body == Body::Expanded {
                Reader::new(text, self.dialect, self.state).heredoc_expansions()?;
            }
        }
        Ok(())
    }

    /// Goes over a body and its delimiter.
    fn heredoc_body(&mut self, heredoc: &Heredoc) -> Result<&'a str, Refusal> {
        let start = self.at;
        loop {
            let rest = &self.text[self.at..];
            if rest.is_empty() {
                return Err(self.syntax("a here-document without its end"));
            }
            let length = rest.find('\n').unwrap_or(rest.len());
            let line = match heredoc.tabs {
                Tabs::Kept => &rest[..length],
                Tabs::Stripped => rest[..length].trim_start_matches('\t'),
            };
            let end = self.at;
            self.at = (end + length + 1).min(self.text.len());
            if line == heredoc.delimiter {
                return Ok(&self.text[start..end]);
            }
            if self.substitutions > 0 && line.starts_with(&heredoc.delimiter) {
                // In a substitution the shell also ends it at `EOF)`.
                return Err(self.construct("a line that begins like a here-document's end"));
            }
            if heredoc.body == Body::Expanded && line.ends_with('\\') {
                // The next line, which may be the delimiter, would belong to this one.
                return Err(self.construct("a continued line in a here-document"));
            }
        }
    }

    /// Reads what runs in a body without quotes around its delimiter.
    fn heredoc_expansions(mut self) -> Result<(), Refusal> {
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => {
                    self.at += 1;
                    self.take();
                }
                b'$' | b'`' => {
                    self.quoted_expansion(Quoting::Body)?;
                }
                _ => {
                    self.take();
                }
            }
        }
        Ok(())
    }
}
