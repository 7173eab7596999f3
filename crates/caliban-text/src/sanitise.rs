//! Foreign text made harmless. Everything that caliban did not write itself passes here before it
//! is laid out: afterwards it can move no cursor, change no mode, hide nothing and reorder nothing.

use std::borrow::Cow;

use crate::escape::{Scanner, Step};
use crate::sanitise::clusters::{Guard, Limits, Placed};
use crate::sanitise::kind::{Kind, kind, named};
use crate::width::cut_middle;

pub(crate) mod clusters;
pub(crate) mod kind;
#[cfg(test)]
pub(crate) mod tests;

/// Isolates that may be open at once in prose; deeper ones are left out.
const ISOLATES: usize = 8;

/// What a text is, and so what becomes of its controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// What a model or a server writes: sequences are removed, lone controls shown.
    Prose,
    /// What a program printed: sequences are removed, `\r` and `\b` do what they do.
    Output,
    /// What is judged by its looks, such as names and commands: nothing is hidden.
    Name,
}

/// A text without anything that a terminal would obey; of the controls only `\n` and `\t` stay.
pub fn sanitise(text: &str, strength: Strength) -> Cow<'_, str> {
    if text.chars().all(is_harmless) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut sanitiser = Sanitiser::new(strength);
    sanitiser.push(text, &mut out);
    sanitiser.finish(&mut out);
    Cow::Owned(out)
}

/// A foreign name on one line of so many columns: nothing hidden, the middle cut out.
pub fn label(text: &str, columns: usize) -> String {
    let harmless = sanitise(text, Strength::Name)
        .replace('\n', "␊")
        .replace('\t', "␉");
    cut_middle(&harmless, columns).into_owned()
}

/// Whether a character may stand anywhere, whatever is around it.
fn is_harmless(c: char) -> bool {
    matches!(c, ' '..='~' | '\n' | '\t') || (!c.is_ascii() && kind(c) == Kind::Visible)
}

/// Makes a text harmless piece by piece; sequences may be split anywhere.
#[derive(Debug, Clone)]
pub(crate) struct Sanitiser {
    strength: Strength,
    scanner: Scanner,
    guard: Guard,
    /// How many isolates are open on this line.
    isolates: usize,
    carriage: Carriage,
    /// Where the line begins that is being written.
    line: usize,
}

/// Whether a `\r` waits to be judged by what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carriage {
    Stays,
    Returned,
}

impl Sanitiser {
    pub(crate) fn new(strength: Strength) -> Self {
        Self {
            strength,
            scanner: Scanner::default(),
            guard: Guard::new(match strength {
                Strength::Prose | Strength::Output => Limits::Usual,
                Strength::Name => Limits::Tight,
            }),
            isolates: 0,
            carriage: Carriage::Stays,
            line: 0,
        }
    }

    /// Writes what is harmless of a text. `out` must be the same from call to call.
    pub(crate) fn push(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            match self.strength {
                Strength::Name => self.show(c, out),
                Strength::Prose | Strength::Output => match self.scanner.step(c) {
                    Step::Plain(c) => self.plain(c, out),
                    Step::Within | Step::Style => {}
                },
            }
        }
    }

    /// Writes what was held back. A sequence that never ended is gone.
    pub(crate) fn finish(&mut self, out: &mut String) {
        match self.strength {
            Strength::Prose => self.settle_return(out),
            Strength::Output => {}
            Strength::Name => self.show_held(out),
        }
        self.close_isolates(out);
    }

    /// A character that belongs to no sequence, in prose or output.
    fn plain(&mut self, c: char, out: &mut String) {
        match (c, self.strength) {
            ('\r', Strength::Prose) => {
                self.settle_return(out);
                self.carriage = Carriage::Returned;
                return;
            }
            ('\r', Strength::Output | Strength::Name) => {
                self.carriage = Carriage::Returned;
                return;
            }
            ('\n', _) => self.carriage = Carriage::Stays,
            (_, Strength::Prose) => self.settle_return(out),
            (_, Strength::Output | Strength::Name) => {
                if self.carriage == Carriage::Returned {
                    self.carriage = Carriage::Stays;
                    out.truncate(self.line);
                    self.guard.reset();
                }
            }
        }
        match kind(c) {
            Kind::Break => self.break_line(out),
            Kind::Tab => self.alone(c, out),
            Kind::Control => match self.strength {
                Strength::Prose | Strength::Name => self.alone(picture(c), out),
                Strength::Output => {
                    if c == '\u{8}' {
                        let _ = self.guard.erase(out, self.line);
                    }
                }
            },
            Kind::Isolate => self.open_isolate(c, out),
            Kind::Closing => self.close_isolate(c, out),
            Kind::Override | Kind::Invisible => {}
            Kind::Joiner | Kind::Selector | Kind::Tag | Kind::Mark | Kind::Tone | Kind::Visible => {
                // What may not stand here is left out.
                let _ = self.guard.place(c, out);
            }
        }
    }

    /// A `\r` that no newline follows: in prose it is shown.
    fn settle_return(&mut self, out: &mut String) {
        if self.carriage == Carriage::Returned {
            self.carriage = Carriage::Stays;
            self.alone(picture('\r'), out);
        }
    }

    fn alone(&mut self, c: char, out: &mut String) {
        self.guard.reset();
        out.push(c);
        if c != '\t' {
            self.guard.based_on(c);
        }
    }

    fn break_line(&mut self, out: &mut String) {
        self.guard.reset();
        self.close_isolates(out);
        out.push('\n');
        self.line = out.len();
    }

    fn open_isolate(&mut self, c: char, out: &mut String) {
        if self.strength == Strength::Prose && self.isolates < ISOLATES {
            self.isolates += 1;
            self.guard.reset();
            out.push(c);
        }
    }

    fn close_isolate(&mut self, c: char, out: &mut String) {
        if self.isolates > 0 {
            self.isolates -= 1;
            self.guard.reset();
            out.push(c);
        }
    }

    fn close_isolates(&mut self, out: &mut String) {
        for _ in 0..std::mem::take(&mut self.isolates) {
            out.push('\u{2069}');
        }
    }

    /// A character of something whose looks are judged.
    fn show(&mut self, c: char, out: &mut String) {
        match kind(c) {
            Kind::Break if c == '\n' => {
                self.show_held(out);
                self.break_line(out);
            }
            Kind::Tab => {
                self.show_held(out);
                self.alone(c, out);
            }
            Kind::Control => {
                self.show_held(out);
                match c {
                    // Eight bits of control are the same as ESC and seven.
                    '\u{80}'..='\u{9f}' => {
                        self.alone('␛', out);
                        let short = char::from_u32(u32::from(c) - 0x40).unwrap_or('?');
                        self.alone(short, out);
                    }
                    _ => self.alone(picture(c), out),
                }
            }
            Kind::Break | Kind::Isolate | Kind::Closing | Kind::Override | Kind::Invisible => {
                self.show_held(out);
                self.name(c, out);
            }
            Kind::Joiner | Kind::Selector | Kind::Tag | Kind::Mark | Kind::Tone | Kind::Visible => {
                match self.guard.place(c, out) {
                    Placed::Yes | Placed::Held | Placed::TooMany => {}
                    Placed::Misplaced => self.name(c, out),
                    Placed::AfterMisplaced(held) => {
                        self.name(held, out);
                        self.show(c, out);
                    }
                }
            }
        }
    }

    fn show_held(&mut self, out: &mut String) {
        if let Some(held) = self.guard.release() {
            self.name(held, out);
        }
    }

    fn name(&mut self, c: char, out: &mut String) {
        self.guard.reset();
        named(c, out);
        self.guard.based_on('⟩');
    }
}

/// The picture of a control.
fn picture(c: char) -> char {
    match c {
        '\u{7f}' => '␡',
        _ => char::from_u32(0x2400 + u32::from(c)).unwrap_or('␦'),
    }
}
