//! Quoted text.

use super::Refusal;
use super::reader::Reader;
use super::words::{Quoting, Unit};

impl Reader<'_> {
    /// `'…'`
    pub(super) fn single_quoted(&mut self) -> Result<String, Refusal> {
        let start = self.at + 1;
        let Some(length) = self.text[start..].find('\'') else {
            return Err(self.syntax("an unclosed quote"));
        };
        let text = &self.text[start..start + length];
        self.no_break_before_heredoc(text)?;
        self.at = start + length + 1;
        Ok(text.to_owned())
    }

    /// `"…"`, whose pieces are those of the word around it.
    pub(super) fn double_quoted(&mut self, units: &mut Vec<Unit>) -> Result<(), Refusal> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                None => {
                    self.at = start;
                    return Err(self.syntax("an unclosed quote"));
                }
                Some(b'"') => {
                    self.at += 1;
                    // Even an empty pair of quotes makes a word.
                    units.push(Unit::Quoted(text));
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'\n') => {
                            self.no_break_before_heredoc("\n")?;
                            self.at += 1;
                        }
                        Some(b'$' | b'`' | b'"' | b'\\') => text.extend(self.take()),
                        _ => text.push('\\'),
                    }
                }
                Some(b'$' | b'`') => match self.quoted_expansion(Quoting::Double)? {
                    Some(unknown) => {
                        units.push(Unit::Quoted(std::mem::take(&mut text)));
                        units.push(Unit::Unknown(unknown));
                    }
                    None => text.push('$'),
                },
                Some(b'\n') => {
                    self.no_break_before_heredoc("\n")?;
                    text.extend(self.take());
                }
                Some(_) => text.extend(self.take()),
            }
        }
    }

    /// `$'…'`
    pub(super) fn ansi_c_quoted(&mut self) -> Result<String, Refusal> {
        self.bash_only("`$'`")?;
        let start = self.at;
        self.at += 2;
        let mut text = String::new();
        loop {
            match self.take() {
                None => {
                    self.at = start;
                    return Err(self.syntax("an unclosed quote"));
                }
                Some('\'') => return Ok(text),
                Some('\\') => match escape(&self.text[self.at..]) {
                    Some((c, length)) => {
                        text.push(c);
                        self.at += length;
                    }
                    None => return Err(self.construct("an escape")),
                },
                Some('\n') => {
                    self.no_break_before_heredoc("\n")?;
                    text.push('\n');
                }
                Some(c) => text.push(c),
            }
        }
    }

    /// Whether the body of a here-document begins after a quoted line break or after the line is
    /// a question that is better not asked.
    pub(super) fn no_break_before_heredoc(&self, text: &str) -> Result<(), Refusal> {
        if !self.pending.is_empty() && text.contains('\n') {
            return Err(self.construct("a quoted line break before a here-document"));
        }
        Ok(())
    }
}

/// What the text after a backslash stands for in `$'…'`, and how long it is; none where that is
/// not one character.
pub(super) fn escape(text: &str) -> Option<(char, usize)> {
    let c = match text.chars().next()? {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\x07',
        'b' => '\x08',
        'e' | 'E' => '\x1b',
        'f' => '\x0c',
        'v' => '\x0b',
        c @ ('\\' | '\'' | '"' | '?') => c,
        'x' => return code(&text[1..], 16, 2, 1).filter(|(c, _)| c.is_ascii()),
        'u' => return code(&text[1..], 16, 4, 1),
        'U' => return code(&text[1..], 16, 8, 1),
        '0'..='7' => return code(text, 8, 3, 0).filter(|(c, _)| c.is_ascii()),
        _ => return None,
    };
    Some((c, 1))
}

/// A character by its number of at most `longest` digits, `before` bytes into the escape.
fn code(text: &str, radix: u32, longest: usize, before: usize) -> Option<(char, usize)> {
    let length = text
        .chars()
        .take(longest)
        .take_while(|c| c.is_digit(radix))
        .count();
    let value = u32::from_str_radix(&text[..length], radix).ok()?;
    // A zero would end the string.
    let c = char::from_u32(value).filter(|c| *c != '\0')?;
    Some((c, before + length))
}
