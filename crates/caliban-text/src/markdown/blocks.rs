//! Blocks as rows.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Span;

use super::inline::Inline;
use super::stream::{Block, Code, Gap, Kind};
use super::table::Table;
use crate::highlight::{LexState, highlight};
use crate::languages::Language;
use crate::palette::Palette;
use crate::row::Row;
use crate::sanitise::{Strength, label, sanitise};
use crate::width::{cut, width};
use crate::wrap::{Breaks, Piece, lay};

/// Columns before code.
const CODE_INDENT: &str = "  ";
/// Columns that a rule has at most.
const RULE: usize = 60;

/// The rows of one block.
pub(super) fn lay_block(source: &str, block: &Block, width: u16, palette: &Palette) -> Vec<Row> {
    let text = source.get(block.range.clone()).unwrap_or_default();
    let mut rows = match block.gap {
        Gap::None => Vec::new(),
        Gap::Row => vec![Row::default()],
    };
    rows.extend(match &block.kind {
        Kind::Code(code) => code_rows(text, code, width, palette),
        Kind::Flow => flow(text, block.range.start, None, width, palette),
        Kind::Item { number } => flow(text, block.range.start, *number, width, palette),
    });
    rows
}

fn flow(text: &str, offset: usize, number: Option<u64>, width: u16, palette: &Palette) -> Vec<Row> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::new(width, palette, number);
    let parser = Parser::new_ext(text, options);
    // Definitions say where links lead that may stand in other blocks: they are text like the rest.
    let mut definitions: Vec<_> = parser
        .reference_definitions()
        .iter()
        .map(|(_, definition)| definition.span.clone())
        .collect();
    definitions.sort_by_key(|span| span.start);
    for span in definitions {
        let id = u32::try_from(offset + span.start).unwrap_or(u32::MAX);
        writer.text_line(text.get(span).unwrap_or_default(), id);
    }
    for (event, range) in parser.into_offset_iter() {
        let id = u32::try_from(offset + range.start).unwrap_or(u32::MAX);
        writer.take(event, id);
    }
    writer.end_text();
    writer.rows
}

/// Code as it is, in colours; too long lines go on in the next row.
fn code_rows(text: &str, code: &Code, width: u16, palette: &Palette) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(info) = &code.info {
        rows.push(code_label(info, width, palette));
    }
    let mut state = code.state;
    let indent = code.indent;
    for line in text.lines() {
        let blanks = line
            .bytes()
            .take(indent)
            .take_while(|byte| *byte == b' ')
            .count();
        code_line(
            &line[blanks..],
            code.language,
            &mut state,
            width,
            palette,
            &mut rows,
        );
    }
    rows
}

fn code_label(info: &str, width: u16, palette: &Palette) -> Row {
    let text = format!("{CODE_INDENT}{}", label(info, 40));
    let text = cut(&text, usize::from(width)).into_owned();
    Row::decoration(vec![Span::styled(text, palette.dim)])
}

fn code_line(
    line: &str,
    language: Option<Language>,
    state: &mut LexState,
    width: u16,
    palette: &Palette,
    rows: &mut Vec<Row>,
) {
    let spans = match language {
        Some(language) => highlight(line, state, language, palette),
        None => vec![Span::styled(line.to_owned(), palette.text)],
    };
    let pieces: Vec<Piece> = spans
        .into_iter()
        .map(|span| Piece::new(span.content, palette.code_block.patch(span.style)))
        .collect();
    let indent = u16::try_from(CODE_INDENT.len()).unwrap_or(0);
    let room = width.saturating_sub(indent);
    let (room, prefix) = if room < 4 {
        (width, "")
    } else {
        (room, CODE_INDENT)
    };
    for row in lay(&pieces, room, &[], Breaks::Anywhere) {
        rows.push(row.prefixed(Span::styled(prefix, palette.code_block)));
    }
}

/// Something that other blocks stand in.
enum Container {
    Quote,
    Item {
        /// What stands before its first row; nothing once that was written.
        mark: Option<String>,
        /// The columns of the mark.
        indent: usize,
    },
}

struct Writer<'a> {
    width: u16,
    palette: &'a Palette,
    rows: Vec<Row>,
    containers: Vec<Container>,
    inline: Inline<'a>,
    /// The next number of each list that is open.
    lists: Vec<Option<u64>>,
    /// The number that the outermost list begins with, if not the one written.
    number: Option<u64>,
    spacing: Spacing,
    code: Option<(Option<String>, String)>,
    table: Option<Table>,
}

/// Whether the next block is set off from what is before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spacing {
    Tight,
    Loose,
}

impl<'a> Writer<'a> {
    fn new(width: u16, palette: &'a Palette, number: Option<u64>) -> Self {
        Self {
            width,
            palette,
            rows: Vec::new(),
            containers: Vec::new(),
            inline: Inline::new(palette),
            lists: Vec::new(),
            number,
            spacing: Spacing::Tight,
            code: None,
            table: None,
        }
    }

    fn take(&mut self, event: Event<'_>, id: u32) {
        let palette = self.palette;
        match event {
            Event::Start(tag) => self.start(tag, id),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.inline.text(&text, id),
            },
            Event::Code(text) => self.inline.styled(&text, palette.code),
            Event::Html(text) | Event::InlineHtml(text) => self.html(&text),
            Event::SoftBreak | Event::HardBreak => match self.table {
                Some(_) => self.inline.text(" ", id),
                None => self.inline.break_line(),
            },
            Event::Rule => self.rule(),
            Event::TaskListMarker(done) => {
                let mark = if done { "[x] " } else { "[ ] " };
                self.inline.styled(mark, palette.list_mark);
            }
            // Not asked for.
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.inline.text(&text, id);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, id: u32) {
        let palette = self.palette;
        match tag {
            Tag::Heading { level, .. } => {
                self.end_text();
                self.inline.enter(heading(level, palette));
            }
            Tag::BlockQuote(_) => {
                self.end_text();
                self.gap();
                self.containers.push(Container::Quote);
                self.inline.enter(palette.quote);
            }
            Tag::CodeBlock(kind) => {
                self.end_text();
                let info = match kind {
                    CodeBlockKind::Fenced(info) if !info.is_empty() => Some(info.into_string()),
                    CodeBlockKind::Fenced(_) | CodeBlockKind::Indented => None,
                };
                self.code = Some((info, String::new()));
            }
            Tag::List(first) => {
                self.end_text();
                let first = match (first, self.lists.is_empty()) {
                    (Some(_), true) => self.number.or(first),
                    (first, _) => first,
                };
                self.lists.push(first);
            }
            Tag::Item => self.start_item(),
            Tag::Table(alignments) => {
                self.end_text();
                self.table = Some(Table::new(alignments));
            }
            Tag::Emphasis => self.inline.enter(palette.emphasis),
            Tag::Strong => self.inline.enter(palette.strong),
            Tag::Strikethrough => self.inline.enter(palette.strike),
            Tag::Link {
                link_type: LinkType::Email,
                dest_url,
                ..
            } => self.inline.open_link(&format!("mailto:{dest_url}"), id),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.inline.open_link(&dest_url, id);
            }
            // What begins with its text, and what was not asked for.
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.end_text();
                self.spacing = Spacing::Loose;
            }
            TagEnd::Heading(_) => {
                self.inline.leave();
                self.end_text();
            }
            TagEnd::BlockQuote(_) => {
                self.end_text();
                self.inline.leave();
                self.containers.pop();
                self.spacing = Spacing::Loose;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Item => {
                self.end_text();
                self.end_item();
            }
            TagEnd::TableCell => {
                let cell = self.inline.take().concat();
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.inline.leave(),
            TagEnd::Link | TagEnd::Image => self.inline.close_link(),
            // Not asked for.
            _ => {}
        }
    }

    /// Text that is a line by itself.
    fn text_line(&mut self, text: &str, id: u32) {
        self.inline.text(text.trim_end(), id);
        self.end_text();
    }

    fn start_item(&mut self) {
        self.end_text();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            Some(None) | None => "- ".to_owned(),
        };
        self.containers.push(Container::Item {
            indent: mark.len(),
            mark: Some(mark),
        });
    }

    /// An item without text has a row all the same.
    fn end_item(&mut self) {
        if matches!(
            self.containers.last(),
            Some(Container::Item { mark: Some(_), .. })
        ) {
            self.lay_line(&[]);
        }
        self.containers.pop();
    }

    /// An empty row where blocks are set off; the bars of quotes go through it.
    fn gap(&mut self) {
        let spacing = std::mem::replace(&mut self.spacing, Spacing::Tight);
        if spacing == Spacing::Tight || self.rows.is_empty() {
            return;
        }
        let shown = self.fitting();
        let bars = self
            .containers
            .iter()
            .take(shown)
            .rposition(Container::is_quote);
        let mut row = Row::default();
        for span in self
            .before(bars.map_or(0, |last| last + 1))
            .into_iter()
            .rev()
        {
            row = row.prefixed(span);
        }
        // Its last column counts as text, so that the line is there when it is copied.
        row.margin = row.margin.saturating_sub(1);
        self.rows.push(row);
    }

    /// How many containers are shown: together they take half of the width at most.
    fn fitting(&self) -> usize {
        let mut taken = 0;
        self.containers
            .iter()
            .take_while(|container| {
                taken += container.columns();
                taken <= usize::from(self.width) / 2
            })
            .count()
    }

    /// What stands before rows within so many containers.
    fn before(&self, containers: usize) -> Vec<Span<'static>> {
        let shown = self.containers.iter().take(containers);
        shown
            .map(|container| container.rest(self.palette))
            .collect()
    }

    /// Lays out what was written.
    fn end_text(&mut self) {
        if self.inline.is_empty() {
            self.inline.take();
            return;
        }
        self.gap();
        for line in self.inline.take() {
            self.lay_line(&line);
        }
    }

    fn lay_line(&mut self, line: &[Piece]) {
        let shown = self.fitting();
        let marked = self
            .containers
            .iter()
            .take(shown)
            .position(Container::has_mark);
        let outer = self.before(marked.unwrap_or(shown));
        let room = self.room(&outer);
        let mut pieces = Vec::new();
        let mut hanging = Vec::new();
        for container in self
            .containers
            .iter_mut()
            .take(shown)
            .skip(marked.unwrap_or(shown))
        {
            let rest = container.rest(self.palette);
            pieces.push(match container.take_mark() {
                Some(mark) => Piece::new(mark, self.palette.list_mark),
                None => Piece::from(rest.clone()),
            });
            hanging.push(rest);
        }
        pieces.extend_from_slice(line);
        for mut row in lay(&pieces, room, &hanging, Breaks::Words) {
            for span in outer.iter().rev() {
                row = row.prefixed(span.clone());
            }
            self.rows.push(row);
        }
        for container in &mut self.containers {
            // One that is not shown is written all the same.
            let _ = container.take_mark();
        }
    }

    fn room(&self, before: &[Span<'static>]) -> u16 {
        let taken: usize = before.iter().map(|span| width(&span.content)).sum();
        self.width
            .saturating_sub(u16::try_from(taken).unwrap_or(u16::MAX))
            .max(1)
    }

    /// Rows that were laid out for themselves.
    fn place(&mut self, lay: impl FnOnce(u16, &Palette) -> Vec<Row>) {
        self.gap();
        // A mark does not wait for something that is no text.
        if self.containers.iter().any(Container::has_mark) {
            self.lay_line(&[]);
        }
        let before = self.before(self.fitting());
        for mut row in lay(self.room(&before), self.palette) {
            for span in before.iter().rev() {
                row = row.prefixed(span.clone());
            }
            self.rows.push(row);
        }
        self.spacing = Spacing::Loose;
    }

    fn end_code(&mut self) {
        let Some((info, text)) = self.code.take() else {
            return;
        };
        let text = sanitise(&text, Strength::Prose);
        let word = info
            .as_deref()
            .and_then(|info| info.split([' ', ',', '{']).next());
        let code = Code {
            language: word.and_then(Language::named),
            info,
            state: LexState::default(),
            indent: 0,
        };
        self.place(|width, palette| code_rows(&text, &code, width, palette));
    }

    fn end_table(&mut self) {
        if let Some(table) = self.table.take() {
            self.place(|width, palette| table.rows(width, palette));
        }
    }

    fn rule(&mut self) {
        self.end_text();
        self.place(|width, palette| {
            let line = "─".repeat(usize::from(width).min(RULE));
            vec![Row::decoration(vec![Span::styled(line, palette.rule)])]
        });
    }

    /// Tags are shown, for nothing here obeys them.
    fn html(&mut self, text: &str) {
        let mut lines = text.split('\n');
        if let Some(first) = lines.next() {
            self.inline.styled(first, Style::new());
        }
        for line in lines {
            self.inline.break_line();
            self.inline.styled(line, Style::new());
        }
    }
}

impl Container {
    fn columns(&self) -> usize {
        match self {
            Self::Quote => 2,
            Self::Item { indent, .. } => *indent,
        }
    }

    fn rest(&self, palette: &Palette) -> Span<'static> {
        match self {
            Self::Quote => Span::styled("▎ ", palette.quote),
            Self::Item { indent, .. } => Span::styled(" ".repeat(*indent), palette.text),
        }
    }

    fn is_quote(&self) -> bool {
        match self {
            Self::Quote => true,
            Self::Item { .. } => false,
        }
    }

    fn has_mark(&self) -> bool {
        match self {
            Self::Quote => false,
            Self::Item { mark, .. } => mark.is_some(),
        }
    }

    fn take_mark(&mut self) -> Option<String> {
        match self {
            Self::Quote => None,
            Self::Item { mark, .. } => mark.take(),
        }
    }
}

fn heading(level: HeadingLevel, palette: &Palette) -> Style {
    match level {
        HeadingLevel::H1 => palette.heading.add_modifier(Modifier::UNDERLINED),
        HeadingLevel::H2 => palette.heading,
        HeadingLevel::H3 | HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => palette.strong,
    }
}
