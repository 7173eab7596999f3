//! Where motions go from the caret, with what the editor remembers of those before.

use crate::editor::Editor;
use crate::text::{
    cluster_at, clusters, clusters_back, first_non_blank, line_end, line_start, next, prev,
};
use crate::vi::command::{Bounds, Motion, Operator, Search, Shape, Size, Way};
use crate::vi::motions::{self, Repeated};
use crate::vi::objects::Span;

/// Where a motion ends, and what of it an operator takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) at: usize,
    takes: Takes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// Up to the end, without it.
    Exclusive,
    Inclusive,
    Lines,
}

impl Target {
    fn exclusive(at: usize) -> Self {
        let takes = Takes::Exclusive;
        Self { at, takes }
    }

    fn inclusive(at: usize) -> Self {
        let takes = Takes::Inclusive;
        Self { at, takes }
    }

    fn lines(at: usize) -> Self {
        let takes = Takes::Lines;
        Self { at, takes }
    }

    /// A character that was found in the line.
    fn found(at: usize, way: Way) -> Self {
        match way {
            Way::Forth => Self::inclusive(at),
            Way::Back => Self::exclusive(at),
        }
    }
}

/// What a motion is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Move,
    Operate(Operator),
}

impl Editor {
    /// The part of the text between the caret and where a motion goes.
    pub(crate) fn span_of(
        &mut self,
        motion: &Motion,
        count: Option<usize>,
        operator: Operator,
    ) -> Option<Span> {
        let target = self.target_of(motion, count, Purpose::Operate(operator))?;
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        let (start, mut end) = (caret.min(target.at), caret.max(target.at));
        let span = match target.takes {
            Takes::Lines => Span::lines(text, start, end),
            Takes::Inclusive => {
                if cluster_at(text, end) != "\n" {
                    end = next(text, end);
                }
                Span::chars(start..end)
            }
            // A motion to the start of a line takes the lines before it, not the newline.
            Takes::Exclusive if text[start..end].ends_with('\n') => {
                if start <= first_non_blank(text, start) {
                    Span::lines(text, start, end - 1)
                } else {
                    Span::chars(start..end - 1)
                }
            }
            Takes::Exclusive => Span::chars(start..end),
        };
        self.vi.origin = start;
        let is_empty = span.shape == Shape::Chars && span.range.is_empty();
        (!is_empty || operator == Operator::Change).then_some(span)
    }

    pub(crate) fn target_of(
        &mut self,
        motion: &Motion,
        count: Option<usize>,
        purpose: Purpose,
    ) -> Option<Target> {
        let times = count.unwrap_or(1);
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        Some(match motion {
            Motion::Left => self.left(times)?,
            Motion::Right => self.right(times, purpose)?,
            Motion::Up => self.lines_away(times, Way::Back)?,
            Motion::Down => self.lines_away(times, Way::Forth)?,
            Motion::LineStart => Target::exclusive(line_start(text, caret)),
            Motion::FirstNonBlank => Target::exclusive(first_non_blank(text, caret)),
            Motion::LineEnd => {
                let line = motions::line_away(text, caret, times - 1, Way::Forth);
                let at = line_end(text, line);
                self.goal = Some(usize::MAX);
                Target::exclusive(at)
            }
            Motion::FirstLine => Target::lines(motions::line_number(text, times)),
            Motion::LastLine => Target::lines(match count {
                Some(number) => motions::line_number(text, number),
                None => first_non_blank(text, text.len()),
            }),
            Motion::Word(way, size) => self.word_target(*way, *size, times, purpose)?,
            Motion::WordEnd(way, size) => self.word_end_target(*way, *size, times)?,
            Motion::Find(find) => {
                let at = motions::find(text, caret, *find, times, Repeated::No);
                self.vi.find = Some(*find);
                Target::found(at?, find.way)
            }
            Motion::FindAgain(again) => {
                let mut find = self.vi.find?;
                find.way = again.of(find.way);
                let at = motions::find(text, caret, find, times, Repeated::Yes)?;
                Target::found(at, find.way)
            }
            Motion::Bracket => Target::inclusive(motions::bracket(text, caret)?),
            Motion::Paragraph(way) => {
                let mut at = caret;
                for _ in 0..times {
                    at = motions::paragraph(text, at, *way);
                }
                Target::exclusive(at)
            }
            Motion::Sentence(way) => Target::exclusive(motions::sentence(text, caret, *way, times)),
            Motion::Search(way, what) => {
                let what = match (what.as_str(), &self.vi.search) {
                    ("", Some(last)) => last.what.clone(),
                    _ => what.clone(),
                };
                let (way, bounds) = (*way, Bounds::Anywhere);
                self.seek(Search { what, way, bounds }, caret, times)?
            }
            Motion::SearchAgain(again) => {
                let mut search = self.vi.search.clone()?;
                search.way = again.of(search.way);
                self.vi.shows_matches = true;
                Target::exclusive(motions::search(text, caret, &search, times)?)
            }
            Motion::SearchWord(way) => {
                let word = motions::word_here(text, caret)?;
                let search = Search {
                    what: text[word.clone()].to_owned(),
                    way: *way,
                    bounds: Bounds::WholeWord,
                };
                self.seek(search, word.start, times)?
            }
            Motion::Mark(name) => Target::exclusive(self.buffer.mark(*name)?),
            Motion::MarkLine(name) => {
                Target::lines(first_non_blank(text, self.buffer.mark(*name)?))
            }
        })
    }

    fn left(&self, times: usize) -> Option<Target> {
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        let start = line_start(text, caret);
        let steps = clusters_back(text, caret).take_while(|&(at, _)| at >= start);
        steps
            .take(times)
            .last()
            .map(|(at, _)| Target::exclusive(at))
    }

    fn right(&self, times: usize, purpose: Purpose) -> Option<Target> {
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        let end = line_end(text, caret);
        let last = clusters(&text[..end], caret).take(times).last();
        let at = last.map_or(caret, |(at, cluster)| at + cluster.len());
        let can_go = match purpose {
            Purpose::Move => at != caret && prev(text, end) != caret,
            // Where nothing is to be changed, there is a place to insert.
            Purpose::Operate(Operator::Change) => true,
            Purpose::Operate(_) => at != caret,
        };
        can_go.then(|| Target::exclusive(at))
    }

    fn lines_away(&mut self, times: usize, way: Way) -> Option<Target> {
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        let line = motions::line_away(text, caret, times, way);
        if line == line_start(text, caret) {
            return None;
        }
        let column = self.goal.unwrap_or_else(|| motions::column(text, caret));
        let at = motions::at_column(text, line, column);
        self.goal = Some(column);
        Some(Target::lines(at))
    }

    fn word_end_target(&self, way: Way, size: Size, times: usize) -> Option<Target> {
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        let mut at = caret;
        for _ in 0..times {
            // Where there is no word any more, the text ends.
            at = motions::word_end(text, at, way, size).unwrap_or(prev(text, text.len()));
        }
        (at != caret).then(|| Target::inclusive(at))
    }

    fn seek(&mut self, search: Search, from: usize, times: usize) -> Option<Target> {
        let at = motions::search(self.buffer.text(), from, &search, times);
        self.vi.search = Some(search);
        self.vi.shows_matches = true;
        at.map(Target::exclusive)
    }

    fn word_target(&self, way: Way, size: Size, times: usize, purpose: Purpose) -> Option<Target> {
        let (text, caret) = (self.buffer.text(), self.buffer.caret());
        let here = size.class(cluster_at(text, caret));
        let mut at = caret;
        if purpose == Purpose::Operate(Operator::Change) && way == Way::Forth && !here.is_blank() {
            // `cw` leaves the blanks behind the word.
            at = motions::word_end_forth(text, at, size)?;
            for _ in 1..times {
                at = motions::word_end(text, at, way, size).unwrap_or(at);
            }
            return Some(Target::inclusive(at));
        }
        let mut before = at;
        for _ in 0..times {
            before = at;
            at = motions::word(text, at, way, size);
        }
        if at == caret {
            return None;
        }
        if let (Purpose::Operate(_), Way::Forth) = (purpose, way) {
            // The last word of a line is taken without the newline.
            let end = line_end(text, before);
            if at > end && before < end {
                at = end;
            }
        }
        Some(Target::exclusive(at))
    }
}
