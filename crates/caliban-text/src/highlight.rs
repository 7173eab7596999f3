//! Source text in colours, a line at a time. Tables say what a language looks like; nothing is
//! understood, so nothing is slow.

use ratatui_core::style::Style;
use ratatui_core::text::Span;

use crate::languages::{
    Calls, Capitals, Case, Escapes, Language, Lines, Nesting, Quote, Shape, Spec, Ticks,
};
use crate::palette::Palette;

mod marked;

/// Longer lines have no colours.
const LINE: usize = 4_096;
/// Comments within comments that are counted.
const DEPTH: u8 = 32;

/// What a line leaves open for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LexState(Open);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Open {
    #[default]
    Nothing,
    Comment {
        which: u8,
        depth: u8,
    },
    Quote(u8),
    /// The inside of a tag, or of a code block in Markdown.
    Inside,
}

/// The parts of a line, which together are the line, each with its look.
pub fn highlight(
    line: &str,
    state: &mut LexState,
    language: Language,
    palette: &Palette,
) -> Vec<Span<'static>> {
    let mut painter = Painter::new(line, palette);
    if line.len() > LINE {
        painter.rest(palette.text);
        return painter.spans;
    }
    let spec = language.spec();
    match spec.shape {
        Shape::Code => code(&mut painter, &mut state.0, spec),
        Shape::Markup => marked::markup(&mut painter, &mut state.0, spec),
        Shape::Diff => marked::diff(&mut painter),
        Shape::Markdown => marked::markdown(&mut painter, &mut state.0),
    }
    painter.spans
}

/// Reads a line only for what it leaves open.
pub(crate) fn advance(line: &str, state: &mut LexState, language: Language) {
    let _ = highlight(line, state, language, &Palette::colourless());
}

/// Writes a line from left to right.
struct Painter<'a> {
    line: &'a str,
    at: usize,
    palette: &'a Palette,
    spans: Vec<Span<'static>>,
}

impl<'a> Painter<'a> {
    fn new(line: &'a str, palette: &'a Palette) -> Self {
        Self {
            line,
            at: 0,
            palette,
            spans: Vec::new(),
        }
    }

    fn left(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    /// Paints up to a place; one within a character is moved behind it.
    fn to(&mut self, mut end: usize, style: Style) {
        end = end.min(self.line.len());
        while !self.line.is_char_boundary(end) {
            end += 1;
        }
        if end <= self.at {
            return;
        }
        let text = &self.line[self.at..end];
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            Some(_) | None => self.spans.push(Span::styled(text.to_owned(), style)),
        }
        self.at = end;
    }

    fn by(&mut self, length: usize, style: Style) {
        self.to(self.at + length, style);
    }

    fn rest(&mut self, style: Style) {
        self.to(self.line.len(), style);
    }
}

fn code(painter: &mut Painter<'_>, open: &mut Open, spec: &Spec) {
    while let Some(byte) = painter.peek() {
        match *open {
            Open::Comment { which, depth } => *open = comment(painter, spec, which, depth),
            Open::Quote(which) => *open = quoted(painter, spec, which),
            Open::Nothing | Open::Inside => *open = token(painter, spec, byte),
        }
    }
    if let Open::Quote(which) = *open
        && spec
            .quotes
            .get(usize::from(which))
            .is_none_or(|quote| quote.lines == Lines::One)
    {
        *open = Open::Nothing;
    }
}

/// One token that begins with a byte, and what it leaves open.
fn token(painter: &mut Painter<'_>, spec: &Spec, byte: u8) -> Open {
    let palette = painter.palette;
    let left = painter.left();
    if byte == b' ' || byte == b'\t' {
        let blanks = left
            .bytes()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        painter.by(blanks, palette.text);
        return Open::Nothing;
    }
    // Block comments first: in Lua one begins like a line comment.
    if let Some((which, begin)) = opened(spec.block_comments.iter().map(|(begin, _)| *begin), left)
    {
        painter.by(begin.len(), palette.comment);
        return Open::Comment { which, depth: 1 };
    }
    if begins_comment(painter, spec) {
        painter.rest(palette.comment);
        return Open::Nothing;
    }
    if byte == b'\'' && spec.ticks == Ticks::Characters {
        let length = character(left).unwrap_or(0);
        match length {
            0 => painter.by(1, palette.text),
            _ => painter.by(length, palette.string),
        }
        return Open::Nothing;
    }
    if let Some((which, begin)) = opened(spec.quotes.iter().map(|quote| quote.open), left) {
        let start = painter.at;
        painter.by(begin.len(), style_of_string(painter, spec, which, start));
        return Open::Quote(which);
    }
    if byte.is_ascii_digit() {
        painter.by(number(left), palette.number);
        return Open::Nothing;
    }
    if is_of_word(byte, spec) {
        word(painter, spec);
        return Open::Nothing;
    }
    painter.by(1, palette.text);
    Open::Nothing
}

/// A line comment: one that begins with a letter or `#` does so at a word's beginning only.
fn begins_comment(painter: &Painter<'_>, spec: &Spec) -> bool {
    let left = painter.left();
    let alone = painter.at.checked_sub(1).is_none_or(|before| {
        let before = painter.line.as_bytes()[before];
        !is_of_word(before, spec) && !matches!(before, b'$' | b'{' | b'\\' | b'&')
    });
    spec.line_comments
        .iter()
        .any(|mark| left.starts_with(mark) && (alone || !matches!(*mark, "#" | ";")))
}

/// Which of several beginnings a text has.
fn opened<'a>(mut marks: impl Iterator<Item = &'a str>, text: &str) -> Option<(u8, &'a str)> {
    (0_u8..).find_map(|which| match marks.next() {
        None => Some(None),
        Some(mark) if text.starts_with(mark) => Some(Some((which, mark))),
        Some(_) => None,
    })?
}

fn comment(painter: &mut Painter<'_>, spec: &Spec, which: u8, depth: u8) -> Open {
    let style = painter.palette.comment;
    let Some((begin, end)) = spec.block_comments.get(usize::from(which)) else {
        return Open::Nothing;
    };
    let left = painter.left();
    let closing = left.find(end);
    if spec.nesting == Nesting::Nested
        && depth < DEPTH
        && let Some(deeper) = left.find(begin)
        && closing.is_none_or(|closing| deeper < closing)
    {
        painter.by(deeper + begin.len(), style);
        return Open::Comment {
            which,
            depth: depth + 1,
        };
    }
    match closing {
        None => {
            painter.rest(style);
            Open::Comment { which, depth }
        }
        Some(closing) => {
            painter.by(closing + end.len(), style);
            match depth {
                0 | 1 => Open::Nothing,
                2.. => Open::Comment {
                    which,
                    depth: depth - 1,
                },
            }
        }
    }
}

fn quoted(painter: &mut Painter<'_>, spec: &Spec, which: u8) -> Open {
    let Some(quote) = spec.quotes.get(usize::from(which)) else {
        return Open::Nothing;
    };
    // The look was decided where it began, if that was on this line.
    let style = match painter.spans.last() {
        Some(span) if painter.at > 0 => span.style,
        Some(_) | None => painter.palette.string,
    };
    if let Some(end) = closing(painter.left(), quote) {
        painter.by(end, style);
        return Open::Nothing;
    }
    painter.rest(style);
    Open::Quote(which)
}

/// Where the inside of a quote is over, its end included.
fn closing(text: &str, quote: &Quote) -> Option<usize> {
    match quote.escapes {
        Escapes::None => text.find(quote.close).map(|at| at + quote.close.len()),
        Escapes::Backslash => {
            let bytes = text.as_bytes();
            let close = quote.close.as_bytes();
            let mut at = 0;
            while at < bytes.len() {
                if bytes[at] == b'\\' {
                    at += 2;
                } else if bytes[at..].starts_with(close) {
                    return Some(at + close.len());
                } else {
                    at += 1;
                }
            }
            None
        }
    }
}

/// A string that a key mark follows is a key.
fn style_of_string(painter: &Painter<'_>, spec: &Spec, which: u8, start: usize) -> Style {
    let palette = painter.palette;
    let is_key = spec.key_before.is_some_and(|mark| {
        spec.quotes.get(usize::from(which)).is_some_and(|quote| {
            let inside = painter
                .line
                .get(start + quote.open.len()..)
                .unwrap_or_default();
            closing(inside, quote)
                .and_then(|end| inside.get(end..))
                .is_some_and(|after| after.trim_start().as_bytes().first() == Some(&mark))
        })
    });
    if is_key {
        palette.function
    } else {
        palette.string
    }
}

/// The length of a character between ticks, if it is one and not something else with a tick.
fn character(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        // Whatever is escaped, then everything up to the tick; the longest is `\u{10ffff}`.
        let end = text
            .char_indices()
            .skip(3)
            .take(10)
            .find(|(_, c)| *c == '\'');
        return end.map(|(at, _)| at + 1);
    }
    let (at, second) = chars.next()?;
    (second == '\'' && first != '\'').then_some(at + 1)
}

fn number(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut end = 0;
    while let Some(byte) = bytes.get(end) {
        let next = bytes.get(end + 1);
        let goes_on = match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' => true,
            b'.' => next.is_some_and(u8::is_ascii_digit),
            b'+' | b'-' => {
                end > 0
                    && matches!(bytes[end - 1], b'e' | b'E')
                    && !text.starts_with("0x")
                    && next.is_some_and(u8::is_ascii_digit)
            }
            _ => false,
        };
        if !goes_on {
            break;
        }
        end += 1;
    }
    end.max(1)
}

fn is_of_word(byte: u8, spec: &Spec) -> bool {
    byte.is_ascii_alphanumeric()
        || byte == b'_'
        || byte >= 0x80
        || spec.in_words.as_bytes().contains(&byte)
}

fn word(painter: &mut Painter<'_>, spec: &Spec) {
    let palette = painter.palette;
    let left = painter.left();
    let length = left
        .bytes()
        .take_while(|byte| is_of_word(*byte, spec))
        .count();
    let (word, after) = left.split_at_checked(length).unwrap_or((left, ""));
    let next = after.trim_start_matches(' ').as_bytes();
    let style = if is_among(word, spec.keywords, spec.case) {
        palette.keyword
    } else if spec
        .key_before
        .is_some_and(|mark| next.first() == Some(&mark))
    {
        palette.function
    } else if is_among(word, spec.types, spec.case) || is_type(word, spec) {
        palette.type_name
    } else if spec.calls == Calls::Functions
        && matches!(next, [b'(', ..] | [b'!', b'(' | b'[' | b'{', ..])
    {
        palette.function
    } else {
        palette.text
    };
    painter.by(length, style);
}

fn is_among(word: &str, words: &[&str], case: Case) -> bool {
    match case {
        Case::Matters => words.binary_search(&word).is_ok(),
        Case::Ignored => words
            .binary_search(&word.to_ascii_lowercase().as_str())
            .is_ok(),
    }
}

/// A capital first and a small letter somewhere: all in capitals is a constant.
fn is_type(word: &str, spec: &Spec) -> bool {
    spec.capitals == Capitals::Types
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && (word.len() == 1 || word.bytes().any(|byte| byte.is_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    /// Every span with the initial of its look.
    fn looks(line: &str, state: &mut LexState, language: &str) -> String {
        let palette = Palette::dark();
        let known = [
            (palette.keyword, 'k'),
            (palette.type_name, 't'),
            (palette.function, 'f'),
            (palette.string, 's'),
            (palette.number, 'n'),
            (palette.comment, 'c'),
        ];
        let language = Language::named(language).unwrap();
        let mut shown = String::new();
        for span in highlight(line, state, language, &palette) {
            let look = known.iter().find(|(style, _)| *style == span.style);
            // Types and accents share a colour, so the first that fits is taken.
            match look {
                Some((_, look)) => write!(shown, "{look}<{}>", span.content).unwrap(),
                None => shown.push_str(&span.content),
            }
        }
        shown
    }

    #[rstest]
    #[case(
        "rust",
        "let x: &'a str = \"s\"; // c",
        "k<let> x: &'a t<str> = s<\"s\">; c<// c>"
    )]
    #[case(
        "rust",
        "f('x', '\\n', 1.5e-3, 0..3)",
        "f<f>(s<'x'>, s<'\\n'>, n<1.5e-3>, n<0>..n<3>)"
    )]
    #[case("rust", "println!(r#\"a\"b\"#)", "f<println>!(s<r#\"a\"b\"#>)")]
    #[case(
        "rust",
        "impl Foo { const MAX: T = 1; }",
        "k<impl> t<Foo> { k<const> MAX: t<T> = n<1>; }"
    )]
    #[case("python", "def f(x): # it's", "k<def> f<f>(x): c<# it's>")]
    #[case(
        "json",
        "{\"a\": \"b\", \"c\": true}",
        "{f<\"a\">: s<\"b\">, f<\"c\">: k<true>}"
    )]
    #[case("yaml", "key: value # c", "f<key>: value c<# c>")]
    #[case("sql", "SELECT a FROM b -- c", "k<SELECT> a k<FROM> b c<-- c>")]
    #[case("bash", "echo \"$x\" ${#a} # c", "k<echo> s<\"$x\"> ${#a} c<# c>")]
    #[case("html", "<a href=\"x\">t</a>", "<k<a> t<href>=s<\"x\">>t</k<a>>")]
    #[case("haskell", "foo' x = 'c'", "foo' x = s<'c'>")]
    fn lines_are_taken_apart(#[case] language: &str, #[case] line: &str, #[case] shown: &str) {
        assert_eq!(looks(line, &mut LexState::default(), language), shown);
    }

    #[rstest]
    #[case("rust", &["/* a /* b */ c", "d */ let"], &["c</* a /* b */ c>", "c<d */> k<let>"])]
    #[case("c", &["/* a /* b */ x", "int"], &["c</* a /* b */> x", "t<int>"])]
    #[case("python", &["x = \"\"\"a", "b\"\"\" if"], &["x = s<\"\"\"a>", "s<b\"\"\"> k<if>"])]
    #[case("c", &["\"open", "int"], &["s<\"open>", "t<int>"])]
    #[case("lua", &["--[[ a", "b ]] end -- c"], &["c<--[[ a>", "c<b ]]> k<end> c<-- c>"])]
    fn what_is_open_goes_on(
        #[case] language: &str,
        #[case] lines: &[&str],
        #[case] shown: &[&str],
    ) {
        let mut state = LexState::default();
        for (line, shown) in lines.iter().zip(shown) {
            assert_eq!(looks(line, &mut state, language), *shown);
        }
    }

    #[test]
    fn long_lines_are_plain() {
        let line = "let ".repeat(2_000);
        let rust = Language::named("rust").unwrap();
        let spans = highlight(&line, &mut LexState::default(), rust, &Palette::dark());
        assert_eq!(spans.len(), 1);
    }

    proptest! {
        #[test]
        fn the_parts_are_the_line(
            lines in prop::collection::vec("[\"'`#/*<>!=\\-\\\\a-c0-1 é日{}\\[\\]]{0,30}", 1..5),
            name in prop::sample::select(vec![
                "rust", "python", "html", "lua", "markdown", "diff", "ruby", "haskell", "css", "yaml", "php",
            ]),
        ) {
            let language = Language::named(name).unwrap();
            let mut state = LexState::default();
            for line in lines {
                let spans = highlight(&line, &mut state, language, &Palette::light());
                let text: String = spans.iter().map(|span| &*span.content).collect();
                prop_assert_eq!(text, line);
            }
        }
    }
}
