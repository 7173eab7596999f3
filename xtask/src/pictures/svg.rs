//! Screens drawn as SVG: one, or several that follow each other.

use std::fmt::Write as _;
use std::time::Duration;

use caliban_testkit::terminal::{CellStyle, Color};

use super::grid::{Cell, Grid};

/// The size of a cell. A monospaced letter of this font size is this wide.
const CELL: (usize, usize) = (8, 17);
const FONT: &str = "13.3";
/// From the top of a cell to the line that letters stand on.
const BASE: usize = 13;
const MARGIN: usize = 14;
const BACKGROUND: &str = "#0d1117";
const FOREGROUND: &str = "#e6edf3";
/// The sixteen colours that a terminal may choose itself.
const COLOURS: [&str; 16] = [
    "#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
    "#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
];

/// A screen, and how long it is looked at.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) grid: Grid,
    pub(super) shown: Duration,
}

/// One screen.
pub(super) fn picture(grid: &Grid) -> String {
    let mut styles = Styles::default();
    let mut body = String::new();
    for part in parts(grid, &mut styles) {
        body.push_str(&part);
    }
    document(grid, &styles.css(), &body)
}

/// Screens that follow each other for ever. What is the same in several of them is drawn once; where
/// nothing moves the last one is seen.
pub(super) fn film(frames: &[Frame]) -> String {
    let Some(first) = frames.first() else {
        return String::new();
    };
    let mut styles = Styles::default();
    let drawn: Vec<Vec<String>> = frames
        .iter()
        .map(|frame| parts(&frame.grid, &mut styles))
        .collect();
    let times = Times::of(frames);
    let mut spans: Vec<(usize, usize)> = Vec::new();
    let mut body = String::new();
    let count = drawn.iter().map(Vec::len).max().unwrap_or_default();
    let part = |frame: usize, place: usize| drawn[frame].get(place).map_or("", String::as_str);
    for place in 0..count {
        let mut from = 0;
        while from < drawn.len() {
            let text = part(from, place);
            let same = (from..drawn.len()).take_while(|frame| part(*frame, place) == text);
            let to = from + same.count();
            if !text.is_empty() {
                if (from, to) == (0, drawn.len()) {
                    body.push_str(text);
                } else {
                    if !spans.contains(&(from, to)) {
                        spans.push((from, to));
                    }
                    let _ = write!(body, "<g class=\"f{from}-{to}\">\n{text}</g>\n");
                }
            }
            from = to;
        }
    }
    let mut css = styles.css();
    for span in spans {
        css.push_str(&times.css(span));
    }
    css.push_str("@media (prefers-reduced-motion:reduce){g{animation:none!important}}\n");
    document(&first.grid, &css, &body)
}

/// When each frame begins, in thousandths of the whole.
struct Times {
    starts: Vec<u128>,
    whole: Duration,
}

impl Times {
    fn of(frames: &[Frame]) -> Self {
        let whole: Duration = frames.iter().map(|frame| frame.shown).sum();
        let mut passed = Duration::ZERO;
        let starts = frames.iter().map(|frame| {
            let start = passed.as_millis() * 1000 / whole.as_millis().max(1);
            passed += frame.shown;
            start
        });
        Self {
            starts: starts.collect(),
            whole,
        }
    }

    /// Shows what stands in some frames while they are.
    fn css(&self, (from, to): (usize, usize)) -> String {
        let name = format!("f{from}-{to}");
        let at = |frame: usize| {
            let start = self.starts.get(frame).copied().unwrap_or(1000);
            format!("{}.{}%", start / 10, start % 10)
        };
        let is_last = to >= self.starts.len();
        let usual = if is_last { "visible" } else { "hidden" };
        let mut steps = String::new();
        if from > 0 {
            steps.push_str("0%{visibility:hidden}");
        }
        let _ = write!(steps, "{}{{visibility:visible}}", at(from));
        if !is_last {
            let _ = write!(steps, "{}{{visibility:hidden}}", at(to));
        }
        format!(
            ".{name}{{visibility:{usual};animation:{name} {}ms step-end infinite}}\n@keyframes {name}{{{steps}}}\n",
            self.whole.as_millis()
        )
    }
}

fn document(grid: &Grid, css: &str, body: &str) -> String {
    let width = grid.columns() * CELL.0 + 2 * MARGIN;
    let height = grid.rows.len() * CELL.1 + 2 * MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         xml:space=\"preserve\">\n<style>\n\
         text{{font:{FONT}px ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;\
         fill:{FOREGROUND};white-space:pre}}\n{css}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n{body}</svg>\n"
    )
}

/// The drawing of each row, and after them that of the cursor.
fn parts(grid: &Grid, styles: &mut Styles) -> Vec<String> {
    let rows = grid.rows.iter().enumerate();
    let mut parts: Vec<String> = rows
        .map(|(number, row)| drawn(number, row, styles))
        .collect();
    parts.push(grid.cursor.map_or_else(String::new, |(row, column)| {
        let (x, y) = place(row, column);
        let (width, height) = CELL;
        format!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{FOREGROUND}\" opacity=\".5\"/>\n"
        )
    }));
    parts
}

/// The upper left corner of a cell.
fn place(row: usize, column: usize) -> (usize, usize) {
    (MARGIN + column * CELL.0, MARGIN + row * CELL.1)
}

fn drawn(number: usize, row: &[Cell], styles: &mut Styles) -> String {
    let mut out = String::new();
    let mut column = 0;
    for run in row.chunk_by(|one, next| one.style == next.style) {
        let (x, y) = place(number, column);
        if let Some(colour) = background(run[0].style) {
            let (width, height) = (run.len() * CELL.0, CELL.1);
            let _ = writeln!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\"/>"
            );
        }
        for (start, text) in words(run) {
            let (x, y) = place(number, column + start);
            let y = y + BASE;
            let class = styles.class(run[0].style);
            let length = match text.chars().count() {
                0 | 1 => String::new(),
                several => format!(" textLength=\"{}\"", several * CELL.0),
            };
            let text = escaped(&text);
            let _ = writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\"{class}{length}>{text}</text>"
            );
        }
        column += run.len();
    }
    out
}

/// Pieces of a run without gaps, each with its column; a wide letter ends one, so that what follows
/// stands in its own column whatever the font makes of it.
fn words(run: &[Cell]) -> Vec<(usize, String)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (column, cell) in run.iter().enumerate() {
        let is_gap = cell.text.trim().is_empty();
        let is_before_text = run
            .get(column + 1)
            .is_some_and(|cell| !cell.text.trim().is_empty());
        match words.last_mut() {
            _ if cell.text.is_empty() => is_open = false,
            Some((_, word)) if is_open && (!is_gap || is_before_text) => word.push_str(&cell.text),
            Some(_) | None if is_gap => is_open = false,
            Some(_) | None => {
                words.push((column, cell.text.clone()));
                is_open = true;
            }
        }
    }
    words
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn background(style: CellStyle) -> Option<String> {
    if style.inverse {
        return Some(colour(style.fg).unwrap_or_else(|| FOREGROUND.to_owned()));
    }
    colour(style.bg)
}

fn foreground(style: CellStyle) -> Option<String> {
    if style.inverse {
        return Some(colour(style.bg).unwrap_or_else(|| BACKGROUND.to_owned()));
    }
    colour(style.fg)
}

/// Nothing for the colour that everything has.
fn colour(colour: Color) -> Option<String> {
    match colour {
        Color::Default => None,
        Color::Indexed(index) => Some(indexed(index)),
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    }
}

/// The sixteen, the cube of six and the greys.
fn indexed(index: u8) -> String {
    let step = |part: u8| if part == 0 { 0 } else { 55 + 40 * part };
    match index {
        0..=15 => COLOURS[usize::from(index)].to_owned(),
        16..=231 => {
            let cube = index - 16;
            let (red, green, blue) = (step(cube / 36), step(cube / 6 % 6), step(cube % 6));
            format!("#{red:02x}{green:02x}{blue:02x}")
        }
        232..=255 => {
            let grey = 8 + 10 * (index - 232);
            format!("#{grey:02x}{grey:02x}{grey:02x}")
        }
    }
}

/// Styles of text, each under a name once.
#[derive(Debug, Default)]
struct Styles(Vec<String>);

impl Styles {
    /// The attribute that names a style; nothing for plain text.
    fn class(&mut self, style: CellStyle) -> String {
        let mut css = String::new();
        if let Some(colour) = foreground(style) {
            let _ = write!(css, "fill:{colour};");
        }
        let attributes = [
            (style.bold, "font-weight:bold;"),
            (style.dim, "fill-opacity:.6;"),
            (style.italic, "font-style:italic;"),
            (style.underline, "text-decoration:underline;"),
        ];
        for (_, attribute) in attributes.into_iter().filter(|(has, _)| *has) {
            css.push_str(attribute);
        }
        if css.is_empty() {
            return css;
        }
        let known = self.0.iter().position(|known| *known == css);
        let number = known.unwrap_or_else(|| {
            self.0.push(css);
            self.0.len() - 1
        });
        format!(" class=\"s{number}\"")
    }

    fn css(&self) -> String {
        let mut text = String::new();
        for (number, css) in self.0.iter().enumerate() {
            let _ = writeln!(text, ".s{number}{{{}}}", css.trim_end_matches(';'));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(rows: &[&str]) -> Grid {
        let row = |text: &&str| {
            let cells = text.chars().flat_map(|letter| {
                let style = CellStyle {
                    bold: letter.is_uppercase(),
                    ..CellStyle::default()
                };
                let text = letter.to_string();
                let rest = (letter == '🔧').then(|| Cell {
                    text: String::new(),
                    style,
                });
                [Cell { text, style }].into_iter().chain(rest)
            });
            cells.collect()
        };
        Grid {
            rows: rows.iter().map(row).collect(),
            cursor: None,
        }
    }

    fn frame(rows: &[&str]) -> Frame {
        Frame {
            grid: grid(rows),
            shown: Duration::from_secs(1),
        }
    }

    #[test]
    fn text_stands_in_its_column_and_is_harmless() {
        let drawing = picture(&grid(&["  a < b   c", "🔧 x X"]));
        assert!(drawing.contains("<text x=\"30\" y=\"27\" textLength=\"40\">a &lt; b</text>"));
        assert!(drawing.contains("<text x=\"94\" y=\"27\">c</text>"));
        assert!(drawing.contains("<text x=\"38\" y=\"44\">x</text>"));
        assert!(drawing.contains("<text x=\"54\" y=\"44\" class=\"s0\">X</text>"));
        assert!(drawing.contains(".s0{font-weight:bold}"));
    }

    #[test]
    fn a_film_draws_what_stays_once_and_the_rest_in_its_time() {
        let film = film(&[
            frame(&["same", "one"]),
            frame(&["same", "two"]),
            frame(&["same", "two"]),
        ]);
        assert_eq!(film.matches(">same<").count(), 1);
        assert_eq!(film.matches(">two<").count(), 1);
        assert!(film.contains("@keyframes f0-1{0.0%{visibility:visible}33.3%{visibility:hidden}}"));
        assert!(film.contains("@keyframes f1-3{0%{visibility:hidden}33.3%{visibility:visible}}"));
        assert!(
            film.contains(".f1-3{visibility:visible;"),
            "the end is what stands still"
        );
    }

    #[test]
    fn every_colour_of_a_terminal_has_a_value() {
        assert_eq!(indexed(1), "#ff7b72");
        assert_eq!(indexed(16), "#000000");
        assert_eq!(indexed(231), "#ffffff");
        assert_eq!(indexed(255), "#eeeeee");
    }
}
