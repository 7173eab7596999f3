//! What commands do.

use crate::editor::{Editor, Pressed, ViCommand};
use crate::text::{clusters, first_non_blank, line_end, line_start, next, prev};
use crate::undo::Kind;
use crate::vi::command::{Command, Deed, Extent, Motion, Operator, Place, Reach, Shape, Way};
use crate::vi::motions;
use crate::vi::objects::{Span, as_much, object};
use crate::vi::targets::Purpose;
use crate::vi::{LAST_INSERT, Mode};

/// Whether a command could be done.
pub(crate) type Done = Option<()>;

impl Editor {
    /// Does a command; `None` where it cannot be done.
    pub(crate) fn perform(&mut self, command: &Command) -> Done {
        let times = command.times();
        if !matches!(command.deed, Deed::Move(Motion::Up | Motion::Down)) {
            self.goal = None;
        }
        match &command.deed {
            Deed::Move(motion) => self.go(motion, command.count),
            Deed::Operate(operator, reach) => self.operate_on(*operator, reach, command),
            Deed::Select(what) => {
                let span = object(self.buffer.text(), self.buffer.caret(), *what, times)?;
                self.select(&span)
            }
            Deed::Replace(c) => self.replace_with(*c, times),
            Deed::ToggleCase => self.toggle_case(times),
            Deed::Join => self.join(times),
            Deed::Put(side) => self.put(*side, command.register, times),
            Deed::Undo => self.again(times, Self::undo),
            Deed::Redo => self.again(times, Self::redo),
            Deed::Repeat => self.repeat(command.count),
            Deed::Insert(place) => {
                self.begin_insert(*place);
                Some(())
            }
            Deed::Overwrite => {
                self.begin_change();
                self.vi.mode = Mode::Replace;
                Some(())
            }
            Deed::Visual(shape) => {
                self.toggle_visual(*shape);
                Some(())
            }
            Deed::SwapEnds => {
                let caret = self.buffer.caret();
                let anchor = std::mem::replace(self.vi.anchor_mut()?, caret);
                self.buffer.place(anchor);
                Some(())
            }
            Deed::Mark(name) => {
                self.buffer.set_mark(*name, self.buffer.caret());
                Some(())
            }
        }
    }

    fn again(&mut self, times: usize, step: impl Fn(&mut Self) -> Pressed) -> Done {
        for round in 0..times {
            if step(self) == Pressed::Rang {
                return (round > 0).then_some(());
            }
        }
        Some(())
    }

    fn go(&mut self, motion: &Motion, count: Option<usize>) -> Done {
        let Some(target) = self.target_of(motion, count, Purpose::Move) else {
            if self.vi.mode == Mode::Normal && *motion == Motion::Up {
                self.vi.asks(ViCommand::Older);
            } else if self.vi.mode == Mode::Normal && *motion == Motion::Down {
                self.vi.asks(ViCommand::Newer);
            }
            return None;
        };
        let from = self.buffer.caret();
        self.buffer.place(target.at);
        self.stay_on_line();
        (self.buffer.caret() != from || matches!(motion, Motion::LineStart | Motion::LineEnd))
            .then_some(())
    }

    fn operate_on(&mut self, operator: Operator, reach: &Reach, command: &Command) -> Done {
        let count = command.count;
        let caret = self.buffer.caret();
        let (span, shifts) = match reach {
            Reach::Motion(motion) => (self.span_of(motion, count, operator)?, 1),
            Reach::Object(what) => {
                let times = command.times();
                (object(self.buffer.text(), caret, *what, times)?, 1)
            }
            Reach::Lines => {
                let text = self.buffer.text();
                let down = command.times() - 1;
                let last = motions::line_away(text, caret, down, Way::Forth);
                (Span::lines(text, caret, last), 1)
            }
            Reach::Selection => (self.visual_span()?, command.times()),
            Reach::SelectedLines => {
                let span = self.visual_span()?;
                let last = span.range.end.max(span.range.start);
                let text = self.buffer.text();
                (
                    Span::lines(text, span.range.start, prev_within(&span, text, last)),
                    command.times(),
                )
            }
            Reach::AsMuch(extent) => (as_much(self.buffer.text(), caret, *extent), command.times()),
        };
        let is_selected = matches!(reach, Reach::Selection | Reach::SelectedLines);
        if is_selected {
            self.vi.mode = Mode::Normal;
        }
        if operator == Operator::Change {
            self.begin_change();
            self.vi.mode = Mode::Insert;
        }
        self.operate(operator, &span, command.register, shifts);
        if operator == Operator::Yank {
            match reach {
                Reach::Lines => {}
                Reach::Motion(_) => self.buffer.place(self.vi.origin.min(caret)),
                Reach::Object(_) | Reach::Selection | Reach::SelectedLines | Reach::AsMuch(_) => {
                    self.buffer.place(span.range.start);
                }
            }
        }
        self.stay_on_line();
        Some(())
    }

    fn begin_insert(&mut self, place: Place) {
        self.begin_change();
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        let (start, end) = (line_start(text, caret), line_end(text, caret));
        match place {
            Place::Here => {}
            Place::After => {
                let at = next(&text[..end], caret);
                self.buffer.place(at);
            }
            Place::LineStart => {
                let at = first_non_blank(text, caret);
                self.buffer.place(at);
            }
            Place::LineEnd => self.buffer.place(end),
            Place::Above => {
                self.buffer.splice(start..start, "\n");
                self.buffer.place(start);
            }
            Place::Below => self.buffer.splice(end..end, "\n"),
            Place::Last => {
                let at = self.buffer.mark(LAST_INSERT).unwrap_or(caret);
                self.buffer.place(at);
            }
        }
        self.vi.mode = Mode::Insert;
    }

    fn toggle_visual(&mut self, shape: Shape) {
        let caret = self.buffer.caret();
        self.vi.mode = match self.vi.mode {
            Mode::Visual { shape: now, .. } if now == shape => Mode::Normal,
            Mode::Visual { anchor, .. } => Mode::Visual { anchor, shape },
            Mode::Normal | Mode::Insert | Mode::Replace => Mode::Visual {
                anchor: caret,
                shape,
            },
        };
    }

    fn select(&mut self, span: &Span) -> Done {
        let text = self.buffer.text();
        if span.range.is_empty() {
            return None;
        }
        let last = prev(text, span.range.end);
        self.vi.mode = Mode::Visual {
            anchor: span.range.start,
            shape: span.shape,
        };
        self.buffer.place(last);
        Some(())
    }

    /// What is selected by vi keys.
    pub(crate) fn visual_span(&self) -> Option<Span> {
        let Mode::Visual { anchor, shape } = self.vi.mode else {
            return None;
        };
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        let (first, last) = (anchor.min(caret), anchor.max(caret).min(text.len()));
        Some(match shape {
            Shape::Chars => Span::chars(first..next(text, last)),
            Shape::Lines => Span::lines(text, first, last),
        })
    }

    /// A command as it is to be repeated: what was selected is gone by then.
    pub(crate) fn repeatable(&self, command: &Command) -> Command {
        let mut command = command.clone();
        let (Deed::Operate(_, reach), Some(span)) = (&mut command.deed, self.visual_span()) else {
            return command;
        };
        let text = &self.buffer.text()[..span.range.end];
        let lines = Extent::Lines(text[span.range.start..].matches('\n').count() + 1);
        match (&reach, span.shape) {
            (Reach::Selection, Shape::Chars) => {
                let count = clusters(text, span.range.start).count();
                *reach = Reach::AsMuch(Extent::Clusters(count));
            }
            (Reach::Selection | Reach::SelectedLines, Shape::Chars | Shape::Lines) => {
                *reach = Reach::AsMuch(lines);
            }
            (
                Reach::Motion(_) | Reach::Object(_) | Reach::Lines | Reach::AsMuch(_),
                Shape::Chars | Shape::Lines,
            ) => {}
        }
        command
    }

    /// What follows is one step, with what is inserted.
    fn begin_change(&mut self) {
        self.buffer.begin(Kind::Other);
        self.buffer.hold();
    }
}

/// The last place of a span, for the line it is in.
fn prev_within(span: &Span, text: &str, end: usize) -> usize {
    match span.shape {
        Shape::Chars => prev(text, end).max(span.range.start),
        Shape::Lines => end,
    }
}
