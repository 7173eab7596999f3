//! Where motions go, in a text alone.

use std::iter::Peekable;

use crate::finding;
use crate::text::{
    Class, clusters, clusters_back, first_non_blank, line_end, line_start, next, prev,
};
use crate::vi::command::{Bounds, Find, Search, Size, Stop, Way};

impl Size {
    pub(crate) fn class(self, cluster: &str) -> Class {
        match (self, Class::of(cluster)) {
            (Self::Big, Class::Word | Class::Sign | Class::Chip) => Class::Word,
            (Self::Big | Self::Small, class) => class,
        }
    }
}

/// Whether two neighbours are of one word. A chip is a word by itself.
pub(crate) fn joined(class: Class, other: Class) -> bool {
    class == other && class != Class::Chip
}

/// Whether the newline at a position ends an empty line: such a line is a word.
fn ends_empty_line(text: &str, at: usize, cluster: &str) -> bool {
    cluster == "\n" && (at == 0 || text[..at].ends_with('\n'))
}

/// Where a column of a line is; the last place where it is shorter.
pub(crate) fn at_column(text: &str, line: usize, column: usize) -> usize {
    let end = line_end(text, line);
    clusters(&text[..end], line)
        .nth(column)
        .map_or(end, |(at, _)| at)
}

/// How many clusters are before a position in its line.
pub(crate) fn column(text: &str, at: usize) -> usize {
    clusters(&text[..at], line_start(text, at)).count()
}

/// The start of the line so many lines away, or of the last there is that way.
pub(crate) fn line_away(text: &str, at: usize, count: usize, way: Way) -> usize {
    let mut start = line_start(text, at);
    for _ in 0..count {
        start = match way {
            Way::Forth => match line_end(text, start) {
                end if end < text.len() => end + 1,
                _ => return start,
            },
            Way::Back => match start.checked_sub(1) {
                Some(newline) => line_start(text, newline),
                None => return 0,
            },
        };
    }
    start
}

pub(crate) fn word(text: &str, at: usize, way: Way, size: Size) -> usize {
    match way {
        Way::Forth => word_forth(text, at, size),
        Way::Back => word_back(text, at, size),
    }
}

fn word_forth(text: &str, from: usize, size: Size) -> usize {
    let mut steps = clusters(text, from).peekable();
    let Some((_, first)) = steps.next() else {
        return from;
    };
    let class = size.class(first);
    beyond_word(text, &mut steps, class, size).unwrap_or(text.len())
}

/// Where something begins again behind the rest of a word of this class, whichever way the steps
/// go: a word, or an empty line.
fn beyond_word<'a>(
    text: &str,
    steps: &mut Peekable<impl Iterator<Item = (usize, &'a str)>>,
    class: Class,
    size: Size,
) -> Option<usize> {
    if !class.is_blank() {
        while steps
            .next_if(|(_, cluster)| joined(class, size.class(cluster)))
            .is_some()
        {}
    }
    let begins = |&(at, cluster): &(usize, &str)| {
        !size.class(cluster).is_blank() || ends_empty_line(text, at, cluster)
    };
    steps.find(begins).map(|(at, _)| at)
}

fn word_back(text: &str, from: usize, size: Size) -> usize {
    let mut steps = clusters_back(text, from).skip_while(|&(at, cluster)| {
        size.class(cluster).is_blank() && !ends_empty_line(text, at, cluster)
    });
    let Some((last, cluster)) = steps.next() else {
        return 0;
    };
    let class = size.class(cluster);
    if class.is_blank() {
        return last;
    }
    steps
        .take_while(|(_, cluster)| joined(class, size.class(cluster)))
        .last()
        .map_or(last, |(at, _)| at)
}

/// The last cluster of a word; `None` where there is none that way.
pub(crate) fn word_end(text: &str, at: usize, way: Way, size: Size) -> Option<usize> {
    match way {
        Way::Forth => word_end_forth(text, next(text, at), size),
        Way::Back => Some(word_end_back(text, at, size)),
    }
}

/// The end of the word here or after, the place given included.
pub(crate) fn word_end_forth(text: &str, from: usize, size: Size) -> Option<usize> {
    let mut steps = clusters(text, from).skip_while(|(_, cluster)| size.class(cluster).is_blank());
    let (first, cluster) = steps.next()?;
    let class = size.class(cluster);
    let rest = steps.take_while(|(_, cluster)| joined(class, size.class(cluster)));
    Some(rest.last().map_or(first, |(at, _)| at))
}

fn word_end_back(text: &str, from: usize, size: Size) -> usize {
    let class = clusters(text, from)
        .next()
        .map_or(Class::Newline, |(_, cluster)| size.class(cluster));
    let mut steps = clusters_back(text, from).peekable();
    beyond_word(text, &mut steps, class, size).unwrap_or(0)
}

/// A character in the line. A search that stops before it looks past the one it stopped at, when
/// it is repeated.
pub(crate) fn find(
    text: &str,
    from: usize,
    find: Find,
    count: usize,
    repeated: Repeated,
) -> Option<usize> {
    let is_it = |&(_, cluster): &(usize, &str)| cluster.starts_with(find.what);
    let skipped = match (find.stop, repeated) {
        (Stop::Before, Repeated::Yes) => 1,
        (Stop::On | Stop::Before, Repeated::Yes | Repeated::No) => 0,
    };
    match find.way {
        Way::Forth => {
            let line = &text[..line_end(text, from)];
            let steps = clusters(line, next(line, from)).skip(skipped);
            let (at, _) = steps.filter(is_it).nth(count - 1)?;
            Some(match find.stop {
                Stop::On => at,
                Stop::Before => prev(text, at),
            })
        }
        Way::Back => {
            let start = line_start(text, from);
            let steps = clusters_back(text, from).take_while(|&(at, _)| at >= start);
            let (at, _) = steps.skip(skipped).filter(is_it).nth(count - 1)?;
            Some(match find.stop {
                Stop::On => at,
                Stop::Before => next(text, at),
            })
        }
    }
}

/// Whether a search is that of before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeated {
    Yes,
    No,
}

const BRACKETS: [(char, char); 3] = [('(', ')'), ('[', ']'), ('{', '}')];

/// The partner of the first bracket in the line from here on.
pub(crate) fn bracket(text: &str, from: usize) -> Option<usize> {
    let line = &text[..line_end(text, from)];
    let (at, open, close, way) = line[from..].char_indices().find_map(|(at, c)| {
        BRACKETS.iter().find_map(|&(open, close)| match c {
            c if c == open => Some((from + at, open, close, Way::Forth)),
            c if c == close => Some((from + at, open, close, Way::Back)),
            _ => None,
        })
    })?;
    match way {
        Way::Forth => closing(text, at + open.len_utf8(), open, close, 1),
        Way::Back => opening(text, at, open, close, 1),
    }
}

/// The bracket that closes as many as are open at a place.
pub(crate) fn closing(
    text: &str,
    from: usize,
    open: char,
    close: char,
    mut depth: usize,
) -> Option<usize> {
    for (at, c) in text[from..].char_indices() {
        if c == open {
            depth += 1;
        } else if c == close {
            depth -= 1;
            if depth == 0 {
                return Some(from + at);
            }
        }
    }
    None
}

/// The bracket before a place that opens what so many before it close.
pub(crate) fn opening(
    text: &str,
    before: usize,
    open: char,
    close: char,
    mut depth: usize,
) -> Option<usize> {
    for (at, c) in text[..before].char_indices().rev() {
        if c == close {
            depth += 1;
        } else if c == open {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// The next empty line that way, after the lines that are not.
pub(crate) fn paragraph(text: &str, from: usize, way: Way) -> usize {
    let mut start = line_start(text, from);
    let mut seen_text = false;
    loop {
        let is_empty = line_end(text, start) == start;
        if is_empty && seen_text {
            return start;
        }
        seen_text |= !is_empty;
        let there = line_away(text, start, 1, way);
        if there == start {
            return match way {
                Way::Forth => text.len(),
                Way::Back => 0,
            };
        }
        start = there;
    }
}

/// Where sentences begin: after a full stop and a blank, and at the borders of paragraphs.
pub(crate) fn sentence_starts(text: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut begins = true;
    let mut has_ended = false;
    let mut line_is_empty = true;
    let mut in_gap = false;
    for (at, c) in text.char_indices() {
        if c == '\n' && line_is_empty {
            if !in_gap {
                starts.push(at);
            }
            (begins, has_ended, in_gap) = (true, false, true);
        } else if c.is_whitespace() {
            begins |= has_ended;
            has_ended = false;
        } else {
            if begins {
                starts.push(at);
            }
            (begins, in_gap) = (false, false);
            has_ended = match c {
                '.' | '!' | '?' => true,
                ')' | ']' | '"' | '\'' => has_ended,
                _ => false,
            };
        }
        line_is_empty = c == '\n';
    }
    starts
}

pub(crate) fn sentence(text: &str, from: usize, way: Way, count: usize) -> usize {
    let starts = sentence_starts(text);
    match way {
        Way::Forth => {
            let after = starts.partition_point(|&start| start <= from);
            starts.get(after + count - 1).copied().unwrap_or(text.len())
        }
        Way::Back => {
            let before = starts.partition_point(|&start| start < from);
            let place = before.checked_sub(count);
            place
                .and_then(|place| starts.get(place))
                .copied()
                .unwrap_or(0)
        }
    }
}

/// The places a search finds.
pub(crate) fn found(text: &str, search: &Search) -> Vec<std::ops::Range<usize>> {
    let mut found = finding::all(text, &search.what);
    let is_of_word = |cluster: Option<(usize, &str)>| {
        cluster.is_some_and(|(_, cluster)| Class::of(cluster) == Class::Word)
    };
    found.retain(|range| match search.bounds {
        Bounds::Anywhere => true,
        Bounds::WholeWord => {
            !is_of_word(clusters_back(text, range.start).next())
                && !is_of_word(clusters(text, range.end).next())
        }
    });
    found
}

/// The place a search goes to, around the end if need be.
pub(crate) fn search(text: &str, from: usize, search: &Search, count: usize) -> Option<usize> {
    let found = found(text, search);
    if found.is_empty() {
        return None;
    }
    let count = count % found.len();
    let place = match search.way {
        Way::Forth => {
            let after = found.partition_point(|range| range.start <= from);
            after + count + found.len() - 1
        }
        Way::Back => {
            let before = found.partition_point(|range| range.start < from);
            before + found.len() - count
        }
    };
    found.get(place % found.len()).map(|range| range.start)
}

/// The word at a place or after it in the line.
pub(crate) fn word_here(text: &str, from: usize) -> Option<std::ops::Range<usize>> {
    let line = &text[..line_end(text, from)];
    let is_word = |&(_, cluster): &(usize, &str)| Class::of(cluster) == Class::Word;
    // A newline is no part of a word, so this stays in the line.
    let inside = clusters_back(line, from).take_while(is_word).last();
    let here = clusters(line, from).next().filter(is_word);
    let start = match (here, inside) {
        (Some((at, _)), inside) => inside.map_or(at, |(at, _)| at),
        (None, _) => clusters(line, from).find(is_word)?.0,
    };
    let (last, cluster) = clusters(line, start).take_while(is_word).last()?;
    Some(start..last + cluster.len())
}

/// The first character of a line by its number, from one on.
pub(crate) fn line_number(text: &str, number: usize) -> usize {
    first_non_blank(text, line_away(text, 0, number - 1, Way::Forth))
}
