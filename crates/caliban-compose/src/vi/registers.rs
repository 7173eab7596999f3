//! Registers: what was deleted and yanked, by name.

use std::collections::BTreeMap;

use crate::vi::command::Shape;

/// What a register may hold.
const MOST_BYTES: usize = 16 << 20;

/// A text that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Lines are without the newline at their end.
    pub(crate) text: String,
    pub(crate) shape: Shape,
}

/// How a text was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Yank,
    Delete,
}

/// The registers. The names are letters, `0` for what was yanked last and `"` for what was taken
/// last, so there are never more than 28.
#[derive(Debug, Default)]
pub(crate) struct Registers(BTreeMap<char, Taken>);

impl Registers {
    pub(crate) fn write(&mut self, register: Option<char>, taken: Taken, by: By) {
        if taken.text.len() > MOST_BYTES {
            return;
        }
        let name = match register {
            Some('_') => return,
            Some(c @ 'A'..='Z') => {
                let name = c.to_ascii_lowercase();
                let whole = self.0.remove(&name).map(|held| held.and(&taken));
                self.0.insert(name, whole.unwrap_or_else(|| taken.clone()));
                name
            }
            Some(c @ 'a'..='z') => {
                self.0.insert(c, taken.clone());
                c
            }
            Some(_) | None => '"',
        };
        if by == By::Yank && name == '"' {
            self.0.insert('0', taken.clone());
        }
        self.0.insert('"', taken);
    }

    pub(crate) fn read(&self, register: Option<char>) -> Option<&Taken> {
        let name = match register {
            Some(c @ ('a'..='z' | 'A'..='Z' | '0')) => c.to_ascii_lowercase(),
            Some('_') => return None,
            Some(_) | None => '"',
        };
        self.0.get(&name)
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(|taken| taken.text.as_str())
    }
}

impl Taken {
    fn and(mut self, more: &Self) -> Self {
        if self.text.len() + more.text.len() >= MOST_BYTES {
            return self;
        }
        match (self.shape, more.shape) {
            (Shape::Chars, Shape::Chars) => {}
            (Shape::Lines, _) | (Shape::Chars, Shape::Lines) => {
                self.text.push('\n');
                self.shape = Shape::Lines;
            }
        }
        self.text.push_str(&more.text);
        self
    }
}
