//! What may be piled onto a character. Emoji keep what makes them; everything else that is
//! invisible goes, and nobody carries more marks than writing needs.

use unicode_width::UnicodeWidthChar;

use super::kind::{Kind, is_emoji, kind};

/// Emoji that may be joined to one.
const JOINED: usize = 6;

/// How many marks a character may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limits {
    /// Eight.
    Usual,
    /// Four.
    Tight,
}

/// What became of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    Yes,
    /// What follows decides.
    Held,
    TooMany,
    /// It has no business where it stands.
    Misplaced,
    /// What was held before it has none; it was not placed itself.
    AfterMisplaced(char),
}

/// Where text goes that was let through.
pub(crate) trait Sink {
    fn put(&mut self, c: char);
}

impl Sink for String {
    fn put(&mut self, c: char) {
        self.push(c);
    }
}

/// The cluster that is being written.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    limits: Limits,
    base: Option<char>,
    marks: usize,
    joined: usize,
    /// A joiner or selector that is let through only together with what it is for.
    held: Option<char>,
}

impl Guard {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            base: None,
            marks: 0,
            joined: 0,
            held: None,
        }
    }

    /// Nothing stands before what follows.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.limits);
    }

    /// What follows stands on this.
    pub(crate) fn based_on(&mut self, base: char) {
        self.reset();
        self.base = Some(base);
    }

    /// What was held back and has come to nothing.
    pub(crate) fn release(&mut self) -> Option<char> {
        self.held.take()
    }

    /// Takes the last cluster out of a line that begins at `start`, and says how many columns its
    /// characters had.
    pub(crate) fn erase(&mut self, out: &mut String, start: usize) -> usize {
        let mut columns = 0;
        while out.len() > start {
            let Some(last) = out.pop() else { break };
            columns += last.width().unwrap_or(0);
            if matches!(kind(last), Kind::Visible | Kind::Tab) {
                break;
            }
        }
        self.resume(out.get(start..).unwrap_or_default());
        columns
    }

    /// Finds out which cluster a text ends with.
    fn resume(&mut self, text: &str) {
        self.reset();
        let base = text.char_indices().rev().find(|(_, c)| {
            !matches!(
                kind(*c),
                Kind::Mark | Kind::Tone | Kind::Selector | Kind::Tag
            )
        });
        if let Some((at, c)) = base
            && kind(c) == Kind::Visible
        {
            self.base = Some(c);
            self.marks = text[at..].chars().count() - 1;
            // Whoever erases within joined emoji joins no more.
            self.joined = JOINED;
        }
    }

    /// Lets a character through, or not. Only for kinds that stand in clusters.
    pub(crate) fn place(&mut self, c: char, out: &mut impl Sink) -> Placed {
        let sort = kind(c);
        if let Some(held) = self.held {
            match (held, c) {
                ('\u{200d}', _) if sort == Kind::Visible && is_emoji(c) => {
                    self.held = None;
                    self.joined += 1;
                    self.marks = 0;
                    self.base = Some(c);
                    out.put(held);
                    out.put(c);
                    return Placed::Yes;
                }
                ('\u{fe0f}', '\u{20e3}') => {
                    self.held = None;
                    self.marks = self.most();
                    out.put(held);
                    out.put(c);
                    return Placed::Yes;
                }
                _ => {
                    self.held = None;
                    // In a text where hidden things are left out, this one simply was not there.
                    if self.limits == Limits::Tight {
                        return Placed::AfterMisplaced(held);
                    }
                }
            }
        }
        let on_emoji = self.base.is_some_and(is_emoji);
        match sort {
            Kind::Joiner if on_emoji && self.joined < JOINED => self.hold(c),
            Kind::Selector if c == '\u{fe0f}' && self.marks == 0 && self.is_key() => self.hold(c),
            Kind::Selector
                if on_emoji && self.marks == 0 && matches!(c, '\u{fe0e}' | '\u{fe0f}') =>
            {
                self.pile(c, out)
            }
            Kind::Tag if self.base == Some('\u{1f3f4}') => self.pile(c, out),
            Kind::Tone if on_emoji => self.pile(c, out),
            Kind::Mark if self.base.is_some() => self.pile(c, out),
            Kind::Visible | Kind::Tone => {
                self.based_on(c);
                out.put(c);
                Placed::Yes
            }
            Kind::Joiner
            | Kind::Selector
            | Kind::Tag
            | Kind::Mark
            | Kind::Break
            | Kind::Tab
            | Kind::Control
            | Kind::Override
            | Kind::Isolate
            | Kind::Closing
            | Kind::Invisible => Placed::Misplaced,
        }
    }

    fn hold(&mut self, c: char) -> Placed {
        self.held = Some(c);
        Placed::Held
    }

    fn pile(&mut self, c: char, out: &mut impl Sink) -> Placed {
        if self.marks >= self.most() {
            return Placed::TooMany;
        }
        self.marks += 1;
        out.put(c);
        Placed::Yes
    }

    fn most(&self) -> usize {
        match self.limits {
            Limits::Usual => 8,
            Limits::Tight => 4,
        }
    }

    /// Whether the base is one of those that have a keycap.
    fn is_key(&self) -> bool {
        self.base
            .is_some_and(|c| matches!(c, '0'..='9' | '#' | '*'))
    }
}
