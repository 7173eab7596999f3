//! What operators do to a part of the text.

use crate::editor::{Editor, ViCommand};
use crate::text::{first_non_blank, line_start};
use crate::vi::command::{Operator, Shape};
use crate::vi::objects::Span;
use crate::vi::registers::{By, Taken};

/// By how much lines are shifted.
const SHIFT: usize = 4;
const MOST_SHIFTS: usize = 20;

impl Editor {
    /// Works on a part of the text. What is inserted in its place, where it is to be changed, comes
    /// afterwards.
    pub(crate) fn operate(
        &mut self,
        operator: Operator,
        span: &Span,
        register: Option<char>,
        count: usize,
    ) {
        let range = span.range.clone();
        let columns = SHIFT * count.min(MOST_SHIFTS);
        match operator {
            Operator::Delete => {
                self.keep(span, register, By::Delete);
                self.remove(span);
            }
            Operator::Change => {
                self.keep(span, register, By::Delete);
                self.buffer.splice(range.clone(), "");
                self.buffer.place(range.start);
            }
            Operator::Yank => self.keep(span, register, By::Yank),
            Operator::ShiftRight => self.shift(span, |line| {
                let indent = if line.is_empty() { 0 } else { columns };
                " ".repeat(indent) + line
            }),
            Operator::ShiftLeft => self.shift(span, |line| unshifted(line, columns).to_owned()),
            Operator::ToggleCase => self.map(span, toggled),
            Operator::Lower => self.map(span, str::to_lowercase),
            Operator::Upper => self.map(span, str::to_uppercase),
            Operator::Format => {
                let at = first_non_blank(self.buffer.text(), range.start);
                self.buffer.place(at);
            }
        }
    }

    /// Keeps a part of the text in a register.
    pub(crate) fn keep(&mut self, span: &Span, register: Option<char>, by: By) {
        let text = self.buffer.text()[span.range.clone()].to_owned();
        if matches!(register, Some('+' | '*')) {
            let mut copied = self.atoms.meant(&text);
            if span.shape == Shape::Lines {
                copied.push('\n');
            }
            self.vi.asks(ViCommand::Copy(copied));
        }
        let shape = span.shape;
        self.vi.registers.write(register, Taken { text, shape }, by);
    }

    /// Removes a part of the text; lines go with a newline.
    pub(crate) fn remove(&mut self, span: &Span) {
        let (start, end) = (span.range.start, span.range.end);
        let text = self.buffer.text();
        match span.shape {
            Shape::Chars => {
                self.buffer.splice(start..end, "");
                self.buffer.place(start);
            }
            Shape::Lines => {
                let whole = if end < text.len() {
                    start..end + 1
                } else {
                    start.saturating_sub(1)..end
                };
                self.buffer.splice(whole, "");
                let text = self.buffer.text();
                let at = first_non_blank(text, start.min(text.len()));
                self.buffer.place(at);
            }
        }
    }

    fn shift(&mut self, span: &Span, shifted: impl Fn(&str) -> String) {
        let text = self.buffer.text();
        let start = line_start(text, span.range.start);
        let end = crate::text::line_end(text, span.range.end);
        let lines: Vec<String> = text[start..end].split('\n').map(shifted).collect();
        self.put_unless_same(start..end, &lines.join("\n"));
        let at = first_non_blank(self.buffer.text(), start);
        self.buffer.place(at);
    }

    fn map(&mut self, span: &Span, mapped: impl Fn(&str) -> String) {
        let changed = mapped(&self.buffer.text()[span.range.clone()]);
        self.put_unless_same(span.range.clone(), &changed);
        self.buffer.place(span.range.start);
    }

    fn put_unless_same(&mut self, range: std::ops::Range<usize>, with: &str) {
        if &self.buffer.text()[range.clone()] != with {
            self.buffer.splice(range, with);
        }
    }
}

fn unshifted(line: &str, mut columns: usize) -> &str {
    let indent = line.char_indices().find(|&(_, c)| {
        let width = match c {
            ' ' => 1,
            '\t' => SHIFT,
            _ => return true,
        };
        let is_beyond = columns < width;
        columns = columns.saturating_sub(width);
        is_beyond
    });
    &line[indent.map_or(line.len(), |(at, _)| at)..]
}

/// Small letters for capitals and the other way.
pub(crate) fn toggled(text: &str) -> String {
    let mut changed = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_lowercase() {
            changed.extend(c.to_uppercase());
        } else {
            changed.extend(c.to_lowercase());
        }
    }
    changed
}
