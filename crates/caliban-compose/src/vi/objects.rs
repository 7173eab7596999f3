//! Parts of a text by its structure.

use std::collections::HashMap;
use std::ops::Range;

use crate::text::{Class, clusters, clusters_back, line_end, line_start, next};
use crate::vi::command::{How, Object, Shape, Size, Structure, Way};
use crate::vi::motions::{closing, joined, line_away, opening, sentence_starts};

/// A part of the text. Lines are without the newline at their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) range: Range<usize>,
    pub(crate) shape: Shape,
}

impl Span {
    pub(crate) fn chars(range: Range<usize>) -> Self {
        Self {
            range,
            shape: Shape::Chars,
        }
    }

    /// The lines from that of one place to that of another.
    pub(crate) fn lines(text: &str, first: usize, last: usize) -> Self {
        Self {
            range: line_start(text, first)..line_end(text, last),
            shape: Shape::Lines,
        }
    }
}

/// The object at a place; `None` where there is none.
pub(crate) fn object(text: &str, at: usize, object: Object, count: usize) -> Option<Span> {
    let how = object.how;
    match object.what {
        Structure::Word(size) => Some(Span::chars(word(text, at, size, how, count))),
        Structure::Quoted(quote) => quoted(text, at, quote, how).map(Span::chars),
        Structure::Bracketed(open, close) => bracketed(text, at, (open, close), how, count),
        Structure::Paragraph => Some(paragraph(text, at, how, count)),
        Structure::Sentence => sentence(text, at, how, count).map(Span::chars),
        Structure::Tag => tag(text, at, how, count).map(Span::chars),
    }
}

/// The end of the run of one class that begins at a place, within its line.
fn run_end(text: &str, from: usize, size: Size) -> usize {
    let mut steps = clusters(text, from);
    let Some((_, first)) = steps.next() else {
        return from;
    };
    let class = size.class(first);
    if class == Class::Newline {
        return from;
    }
    steps
        .take_while(|(_, cluster)| joined(class, size.class(cluster)))
        .last()
        .map_or(from + first.len(), |(at, cluster)| at + cluster.len())
}

fn is_blank_at(text: &str, at: usize) -> bool {
    clusters(text, at)
        .next()
        .is_some_and(|(_, cluster)| Class::of(cluster) == Class::Blank)
}

fn word(text: &str, at: usize, size: Size, how: How, count: usize) -> Range<usize> {
    let class = clusters(text, at)
        .next()
        .map_or(Class::Newline, |(_, cluster)| size.class(cluster));
    let start = clusters_back(text, at)
        .take_while(|(_, cluster)| joined(class, size.class(cluster)) && class != Class::Newline)
        .last()
        .map_or(at, |(at, _)| at);
    let mut end = start;
    match how {
        How::Inner => {
            for _ in 0..count {
                end = run_end(text, end, size);
            }
            start..end
        }
        How::Around => {
            let begins_blank = is_blank_at(text, start);
            for _ in 0..count {
                end = run_end(text, run_end(text, end, size), size);
            }
            if begins_blank || clusters_back(text, end).next().is_some_and(is_blank) {
                return start..end;
            }
            // Without blanks behind, those before belong to it.
            let mut end = start;
            for _ in 0..count {
                if is_blank_at(text, end) {
                    end = run_end(text, end, size);
                }
                end = run_end(text, end, size);
            }
            blanks_before(text, start)..end
        }
    }
}

fn is_blank((_, cluster): (usize, &str)) -> bool {
    Class::of(cluster) == Class::Blank
}

/// Where the blanks before a place begin, within its line.
fn blanks_before(text: &str, at: usize) -> usize {
    clusters_back(text, at)
        .take_while(|&step| is_blank(step))
        .last()
        .map_or(at, |(at, _)| at)
}

fn blanks_after(text: &str, at: usize) -> usize {
    clusters(text, at)
        .take_while(|&step| is_blank(step))
        .last()
        .map_or(at, |(at, cluster)| at + cluster.len())
}

/// What is quoted around a place in its line, or after it.
fn quoted(text: &str, at: usize, quote: char, how: How) -> Option<Range<usize>> {
    let start = line_start(text, at);
    let line = &text[start..line_end(text, at)];
    let mut open = None;
    let mut is_escaped = false;
    for (offset, c) in line.char_indices() {
        let here = start + offset;
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' {
            is_escaped = open.is_some();
        } else if c == quote {
            match open {
                None => open = Some(here),
                Some(_) if here < at => open = None,
                Some(open) => return Some(with_quotes(text, open, here, how)),
            }
        }
    }
    None
}

fn with_quotes(text: &str, open: usize, close: usize, how: How) -> Range<usize> {
    match how {
        How::Inner => open + 1..close,
        How::Around => match blanks_after(text, close + 1) {
            end if end > close + 1 => open..end,
            end => blanks_before(text, open)..end,
        },
    }
}

fn bracketed(
    text: &str,
    at: usize,
    (open, close): (char, char),
    how: How,
    count: usize,
) -> Option<Span> {
    let is_on_open = text[at..].starts_with(open);
    let start = match (is_on_open, count) {
        (true, 1) => at,
        (true, count) => opening(text, at, open, close, count - 1)?,
        (false, count) => opening(text, at, open, close, count)?,
    };
    let inner = start + open.len_utf8();
    let end = closing(text, inner, open, close, 1)?;
    if how == How::Around {
        return Some(Span::chars(start..end + close.len_utf8()));
    }
    // Brackets on lines of their own keep them.
    let close_line = line_start(text, end);
    let is_alone = text[close_line..end].trim().is_empty();
    if text[inner..].starts_with('\n') && is_alone && inner + 1 < close_line {
        return Some(Span::lines(text, inner + 1, close_line - 1));
    }
    Some(Span::chars(inner..end))
}

fn paragraph(text: &str, at: usize, how: How, count: usize) -> Span {
    let here = line_start(text, at);
    let mut first = last_alike(text, here, Way::Back);
    let mut last = last_alike(text, here, Way::Forth);
    let further = match how {
        How::Inner => count - 1,
        How::Around => 2 * count - 1,
    };
    for _ in 0..further {
        last = last_alike(text, line_away(text, last, 1, Way::Forth), Way::Forth);
    }
    let is_text = !is_empty_line(text, here);
    if how == How::Around && is_text && !is_empty_line(text, last) {
        // Without empty lines behind, those before belong to it.
        let before = line_away(text, first, 1, Way::Back);
        if is_empty_line(text, before) {
            first = last_alike(text, before, Way::Back);
        }
    }
    Span::lines(text, first, last)
}

fn is_empty_line(text: &str, line: usize) -> bool {
    text[line..line_end(text, line)].trim().is_empty()
}

/// The last line that way of those that are empty, or not, like the one given.
fn last_alike(text: &str, line: usize, way: Way) -> usize {
    let is_empty = is_empty_line(text, line);
    let mut last = line;
    loop {
        let beyond = line_away(text, last, 1, way);
        if beyond == last || is_empty_line(text, beyond) != is_empty {
            return last;
        }
        last = beyond;
    }
}

fn sentence(text: &str, at: usize, how: How, count: usize) -> Option<Range<usize>> {
    let starts = sentence_starts(text);
    let here = starts
        .partition_point(|&start| start <= at)
        .checked_sub(1)?;
    let start = *starts.get(here)?;
    let end = starts.get(here + count).copied().unwrap_or(text.len());
    Some(match how {
        How::Around => start..end,
        How::Inner => start..start + text[start..end].trim_end().len(),
    })
}

/// A pair of tags: where the first begins and ends, and the second.
struct Pair {
    start: usize,
    inner: Range<usize>,
    end: usize,
}

/// What is between a tag and its partner around a place.
fn tag(text: &str, at: usize, how: How, count: usize) -> Option<Range<usize>> {
    let mut around: Vec<Pair> = pairs(text);
    around.retain(|pair| (pair.start..pair.end).contains(&at));
    around.sort_by_key(|pair| pair.end - pair.start);
    let pair = around.get(count - 1)?;
    Some(match how {
        How::Inner => pair.inner.clone(),
        How::Around => pair.start..pair.end,
    })
}

fn pairs(text: &str) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut open: Vec<(&str, usize, usize)> = Vec::new();
    // How many of a name are open, so that one nobody opened costs nothing.
    let mut names: HashMap<&str, usize> = HashMap::new();
    let mut from = 0;
    while let Some(start) = text[from..].find('<').map(|found| from + found) {
        from = start + 1;
        let Some(length) = text[from..].find(['<', '>']) else {
            break;
        };
        let end = from + length + 1;
        let inside = &text[from..end - 1];
        if text[end - 1..].starts_with('<') {
            from = end - 1;
            continue;
        }
        from = end;
        match inside.strip_prefix('/') {
            Some(name) if names.get(name).is_some_and(|&count| count > 0) => {
                while let Some((other, first, inner)) = open.pop() {
                    if let Some(count) = names.get_mut(other) {
                        *count -= 1;
                    }
                    if other == name {
                        pairs.push(Pair {
                            start: first,
                            inner: inner..start,
                            end,
                        });
                        break;
                    }
                }
            }
            Some(_) => {}
            None => {
                let name = inside.split_whitespace().next().unwrap_or_default();
                if name.starts_with(char::is_alphabetic) && !inside.ends_with('/') {
                    *names.entry(name).or_default() += 1;
                    open.push((name, start, end));
                }
            }
        }
    }
    pairs
}

/// As much text from a place on as an extent says.
pub(crate) fn as_much(text: &str, at: usize, extent: crate::vi::command::Extent) -> Span {
    use crate::vi::command::Extent;
    match extent {
        Extent::Clusters(count) => {
            let last = clusters(text, at).take(count).last();
            Span::chars(at..last.map_or(at, |(at, _)| next(text, at)))
        }
        Extent::Lines(count) => {
            let last = line_away(text, at, count.saturating_sub(1), Way::Forth);
            Span::lines(text, at, last)
        }
    }
}
