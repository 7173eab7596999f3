//! What a search collects from one file.

use std::io;
use std::ops::Range;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch};

use super::line::{MAX_LINE, cut};

/// How much of a file's matches is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Lines, until more than this many matched: the one too many tells that there is more.
    Lines(usize),
    /// Only whether there is one.
    Presence,
    /// How many lines match.
    Count,
}

/// The matches of one file.
#[derive(Debug, Default)]
pub(super) struct Hits {
    pub(super) lines: Vec<Line>,
    pub(super) matched: u64,
    pub(super) kind: Content,
}

/// One line of a result, or the gap between two groups of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    Match(u64, String),
    Before(u64, String),
    After(u64, String),
    Gap,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    #[default]
    Text,
    /// A NUL byte was met; the matches before it count for nothing.
    Binary,
}

/// Fills [`Hits`] while a searcher reads a file.
pub(super) struct Collector<'m> {
    matcher: &'m RegexMatcher,
    wanted: Wanted,
    hits: Hits,
}

impl<'m> Collector<'m> {
    pub(super) fn new(matcher: &'m RegexMatcher, wanted: Wanted) -> Self {
        Self {
            matcher,
            wanted,
            hits: Hits::default(),
        }
    }

    pub(super) fn finish(self) -> Hits {
        match self.hits.kind {
            Content::Text => self.hits,
            Content::Binary => Hits {
                kind: Content::Binary,
                ..Hits::default()
            },
        }
    }

    /// The lines of a match, which are several in a search across lines. Returns whether there
    /// is room for more.
    fn take_lines(&mut self, found: &SinkMatch<'_>, limit: usize) -> io::Result<bool> {
        let bytes = found.bytes();
        let first = self
            .matcher
            .find(bytes)
            .map_err(io::Error::other)?
            .map_or(0..0, |hit| hit.start()..hit.end());
        let mut offset = 0;
        for (number, line) in (found.line_number().unwrap_or(0)..).zip(found.lines()) {
            let within = clip(&first, offset, line.len());
            self.hits
                .lines
                .push(Line::Match(number, cut(line, &within, MAX_LINE)));
            self.hits.matched += 1;
            if self.hits.matched > limit as u64 {
                return Ok(false);
            }
            offset += line.len();
        }
        Ok(true)
    }
}

impl Sink for Collector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        match self.wanted {
            Wanted::Lines(limit) => self.take_lines(found, limit),
            Wanted::Presence => {
                self.hits.matched = 1;
                Ok(false)
            }
            Wanted::Count => {
                self.hits.matched += found.lines().count() as u64;
                Ok(true)
            }
        }
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if let Wanted::Lines(_) = self.wanted {
            let number = context.line_number().unwrap_or(0);
            let text = cut(context.bytes(), &(0..0), MAX_LINE);
            self.hits.lines.push(match context.kind() {
                SinkContextKind::Before => Line::Before(number, text),
                SinkContextKind::After | SinkContextKind::Other => Line::After(number, text),
            });
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if let Wanted::Lines(_) = self.wanted {
            self.hits.lines.push(Line::Gap);
        }
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> io::Result<()> {
        if end.binary_byte_offset().is_some() {
            self.hits.kind = Content::Binary;
        }
        Ok(())
    }
}

/// The part of a range that lies in the `length` bytes from `offset`, counted from there.
fn clip(range: &Range<usize>, offset: usize, length: usize) -> Range<usize> {
    let start = range.start.saturating_sub(offset).min(length);
    let end = range.end.saturating_sub(offset).min(length);
    start..end.max(start)
}
