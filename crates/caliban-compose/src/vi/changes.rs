//! Changes that are no operator's: replacing, joining, putting.

use crate::buffer::MOST_BYTES;
use crate::editor::Editor;
use crate::text::{clean, clusters, first_non_blank, line_end, line_start, next};
use crate::vi::Mode;
use crate::vi::command::{Shape, Side, Way};
use crate::vi::deeds::Done;
use crate::vi::motions;
use crate::vi::objects::Span;
use crate::vi::operators::toggled;
use crate::vi::registers::{By, Taken};

impl Editor {
    pub(crate) fn replace_with(&mut self, c: char, times: usize) -> Done {
        let text = self.buffer.text();
        if let Some(span) = self.visual_span() {
            let replaced: String = clusters(&text[..span.range.end], span.range.start)
                .map(|(_, cluster)| if cluster == "\n" { '\n' } else { c })
                .collect();
            self.vi.mode = Mode::Normal;
            self.buffer.splice(span.range.clone(), &clean(&replaced));
            self.buffer.place(span.range.start);
            return Some(());
        }
        let caret = self.buffer.caret();
        let line = &text[..line_end(text, caret)];
        let (at, cluster) = clusters(line, caret).nth(times - 1)?;
        let end = at + cluster.len();
        let with = match c {
            '\n' => c.to_string(),
            c => c.to_string().repeat(times),
        };
        self.buffer.splice(caret..end, &clean(&with));
        if c != '\n' {
            let at = self.buffer.prev();
            self.buffer.place(at);
        }
        Some(())
    }

    pub(crate) fn toggle_case(&mut self, times: usize) -> Done {
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        let line = &text[..line_end(text, caret)];
        let (at, cluster) = clusters(line, caret).take(times).last()?;
        let end = at + cluster.len();
        let changed = toggled(&text[caret..end]);
        self.buffer.splice(caret..end, &changed);
        self.stay_on_line();
        Some(())
    }

    /// Makes lines one, with one blank where they meet.
    pub(crate) fn join(&mut self, times: usize) -> Done {
        let text = self.buffer.text();
        let (first, lines) = match self.visual_span() {
            Some(span) => (span.range.start, text[span.range].matches('\n').count() + 1),
            None => (self.buffer.caret(), times),
        };
        let start = line_start(text, first);
        let last = motions::line_away(text, start, lines.max(2) - 1, Way::Forth);
        if last == start {
            return None;
        }
        let end = line_end(text, last);
        let mut joined = String::with_capacity(end - start);
        let mut meeting = 0;
        for (number, line) in text[start..end].split('\n').enumerate() {
            if number == 0 {
                joined.push_str(line);
                continue;
            }
            let line = line.trim_start_matches([' ', '\t']);
            meeting = joined.len();
            let is_apart = joined.is_empty() || joined.ends_with([' ', '\t']);
            if !is_apart && !line.is_empty() && !line.starts_with(')') {
                joined.push(' ');
            }
            joined.push_str(line);
        }
        self.vi.mode = Mode::Normal;
        self.buffer.splice(start..end, &joined);
        self.buffer.place(start + meeting);
        self.stay_on_line();
        Some(())
    }

    pub(crate) fn put(&mut self, side: Side, register: Option<char>, times: usize) -> Done {
        let Taken { text: taken, shape } = self.vi.registers.read(register)?.clone();
        let times = times.min(MOST_BYTES / taken.len().max(1)).max(1);
        if let Some(span) = self.visual_span() {
            self.put_over(&span, &taken.repeat(times), shape, side);
            return Some(());
        }
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        match shape {
            Shape::Chars => {
                let at = match side {
                    Side::After if caret < line_end(text, caret) => next(text, caret),
                    Side::Before | Side::After => caret,
                };
                self.buffer.splice(at..at, &taken.repeat(times));
                let last = self.buffer.prev();
                let at = if taken.contains('\n') {
                    at
                } else {
                    last.max(at)
                };
                self.buffer.place(at);
            }
            Shape::Lines => {
                let lines = vec![taken.as_str(); times].join("\n");
                let at = match side {
                    Side::Before => {
                        let at = line_start(text, caret);
                        self.buffer.splice(at..at, &(lines + "\n"));
                        at
                    }
                    Side::After => {
                        let at = line_end(text, caret);
                        self.buffer.splice(at..at, &format!("\n{lines}"));
                        at + 1
                    }
                };
                self.buffer.place(at);
                let at = first_non_blank(self.buffer.text(), self.buffer.caret());
                self.buffer.place(at);
            }
        }
        self.stay_on_line();
        Some(())
    }

    /// Puts a text in the place of the selection, which goes to the register unless it is put
    /// before.
    fn put_over(&mut self, span: &Span, taken: &str, shape: Shape, side: Side) {
        self.vi.mode = Mode::Normal;
        if side == Side::After {
            self.keep(span, None, By::Delete);
        }
        let start = span.range.start;
        let (with, at) = match (span.shape, shape) {
            (Shape::Chars, Shape::Lines) => (format!("\n{taken}\n"), start + 1),
            (Shape::Chars, Shape::Chars) => (taken.to_owned(), start + taken.len()),
            (Shape::Lines, Shape::Chars | Shape::Lines) => (taken.to_owned(), start),
        };
        self.buffer.splice(span.range.clone(), &with);
        self.buffer.place(at);
        if (span.shape, shape) == (Shape::Chars, Shape::Chars) {
            let last = self.buffer.prev();
            self.buffer.place(last.max(start));
        }
        self.stay_on_line();
    }
}
