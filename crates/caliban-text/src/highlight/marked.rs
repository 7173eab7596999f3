//! Languages that are text with marks in it.

use super::{Open, Painter, comment, is_of_word, opened, quoted};
use crate::languages::Spec;

/// XML and its kin: names, attributes, quotes, comments.
pub(super) fn markup(painter: &mut Painter<'_>, open: &mut Open, spec: &Spec) {
    while painter.peek().is_some() {
        *open = match *open {
            Open::Comment { which, depth } => comment(painter, spec, which, depth),
            // Whatever was quoted was so within a tag.
            Open::Quote(which) => match quoted(painter, spec, which) {
                Open::Nothing => Open::Inside,
                still => still,
            },
            Open::Nothing => text(painter, spec),
            Open::Inside => inside(painter, spec),
        };
    }
}

/// Text up to a tag, and the name of that.
fn text(painter: &mut Painter<'_>, spec: &Spec) -> Open {
    let palette = painter.palette;
    let left = painter.left();
    if let Some((which, begin)) = opened(spec.block_comments.iter().map(|(begin, _)| *begin), left)
    {
        painter.by(begin.len(), palette.comment);
        return Open::Comment { which, depth: 1 };
    }
    if !left.starts_with('<') {
        painter.by(left.find('<').unwrap_or(left.len()), palette.text);
        return Open::Nothing;
    }
    let marks = left
        .bytes()
        .take_while(|byte| matches!(byte, b'<' | b'/' | b'!' | b'?'))
        .count();
    painter.by(marks, palette.text);
    let name = painter
        .left()
        .bytes()
        .take_while(|byte| is_of_word(*byte, spec))
        .count();
    painter.by(name, palette.keyword);
    match name {
        0 => Open::Nothing,
        1.. => Open::Inside,
    }
}

fn inside(painter: &mut Painter<'_>, spec: &Spec) -> Open {
    let palette = painter.palette;
    let left = painter.left();
    if left.starts_with('>') {
        painter.by(1, palette.text);
        return Open::Nothing;
    }
    if let Some((which, begin)) = opened(spec.quotes.iter().map(|quote| quote.open), left) {
        painter.by(begin.len(), palette.string);
        return Open::Quote(which);
    }
    match left
        .bytes()
        .take_while(|byte| is_of_word(*byte, spec))
        .count()
    {
        0 => painter.by(1, palette.text),
        length => painter.by(length, palette.type_name),
    }
    Open::Inside
}

/// A line of a difference has one look.
pub(super) fn diff(painter: &mut Painter<'_>) {
    let palette = painter.palette;
    let style = match painter.peek() {
        Some(b'+') => palette.text.patch(palette.added),
        Some(b'-') => palette.text.patch(palette.removed),
        Some(b'@') => palette.hunk,
        Some(_) | None => palette.text,
    };
    painter.rest(style);
}

/// Headings, quotes, list marks and code.
pub(super) fn markdown(painter: &mut Painter<'_>, open: &mut Open) {
    let palette = painter.palette;
    let line = painter.line;
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let is_fence = text.starts_with("```") || text.starts_with("~~~");
    match (*open, is_fence) {
        (Open::Inside, true) => {
            *open = Open::Nothing;
            painter.rest(palette.code);
            return;
        }
        (Open::Inside, false) => {
            painter.rest(palette.code);
            return;
        }
        (Open::Nothing | Open::Comment { .. } | Open::Quote(_), true) => {
            *open = Open::Inside;
            painter.rest(palette.code);
            return;
        }
        (Open::Nothing | Open::Comment { .. } | Open::Quote(_), false) => {}
    }
    if text.starts_with('#') {
        painter.rest(palette.heading);
        return;
    }
    if text.starts_with('>') {
        painter.rest(palette.quote);
        return;
    }
    if matches!(text.as_bytes(), [b'-' | b'*' | b'+', b' ', ..]) {
        painter.by(indent + 1, palette.list_mark);
    }
    while painter.peek().is_some() {
        let left = painter.left();
        let tick = left.find('`').unwrap_or(left.len());
        painter.by(tick, palette.text);
        let code = painter.left();
        let length = code
            .get(1..)
            .and_then(|inside| inside.find('`'))
            .map_or(code.len(), |end| end + 2);
        painter.by(length, palette.code);
    }
}
