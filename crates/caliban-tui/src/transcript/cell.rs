//! One thing in the conversation, and the rows it is shown as.

use std::cell::RefCell;
use std::sync::Arc;

use caliban_model::{Block, Message};
use caliban_text::{Markdown, Row, Strength, ansi_words, sanitise, wrap};
use ratatui_core::style::Style;
use ratatui_core::text::Span;

use crate::preferences::{Diffs, View};
use crate::theme::Theme;
use crate::transcript::calls::{Call, CallState};
use crate::transcript::picture::Picture;
use crate::transcript::tool_rows;

/// With what cells are laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lay<'a> {
    pub(crate) width: u16,
    pub(crate) theme: &'a Theme,
    pub(crate) view: View,
    pub(crate) diffs: Diffs,
    /// How far what moves has moved.
    pub(crate) beat: usize,
    /// For what counts time.
    pub(crate) now: std::time::Instant,
    /// When the face began.
    pub(crate) began: std::time::Instant,
    /// What a cell of the screen measures in dots; nothing where no pictures are drawn.
    pub(crate) dots: Option<(u16, u16)>,
    /// Where files are that are named without their folder.
    pub(crate) cwd: &'a std::path::Path,
}

impl Lay<'_> {
    /// What of the time is seen: how far what moves has moved, and tenths of seconds, after which
    /// what counts them may have gone on.
    fn moment(&self) -> (usize, u64) {
        let passed = self.now.saturating_duration_since(self.began).as_millis() / 100;
        (self.beat, u64::try_from(passed).unwrap_or(u64::MAX))
    }
}

/// One thing in the conversation.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) kind: CellKind,
    pub(crate) fold: Fold,
    laid: RefCell<Option<Laid>>,
}

/// Whether all of a cell is shown; nothing decided is as the view says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Fold {
    #[default]
    AsUsual,
    Open,
    Closed,
}

#[derive(Debug)]
pub(crate) enum CellKind {
    /// What the operator asked.
    Prompt(Asked),
    Answer(Spoken),
    Thinking(Spoken),
    /// Thoughts that nobody may read.
    Redacted,
    Call(Box<Call>),
    /// Something that is to be known.
    Notice {
        tone: Tone,
        text: Arc<str>,
    },
    /// What a command has to say, as Markdown does not see it.
    Report(Arc<str>),
    Image(Box<Picture>),
}

/// What was asked: as it was typed, or as it is kept.
#[derive(Debug)]
pub(crate) enum Asked {
    Typed(Arc<str>),
    Kept(Arc<Message>, usize),
}

impl Asked {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Typed(text) => text,
            Self::Kept(message, place) => match message.content.get(*place) {
                Some(Block::Text { text, .. }) => text,
                Some(_) | None => "",
            },
        }
    }
}

/// Text of the model's: as it comes, or as it is kept.
#[derive(Debug)]
pub(crate) enum Spoken {
    Live(Box<RefCell<Markdown>>),
    Kept(Arc<Message>, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Quiet,
    Warning,
    Error,
}

/// Rows that were laid out before, and for what.
#[derive(Debug)]
struct Laid {
    form: Form,
    rows: Arc<[Row]>,
}

/// What rows depend on beside the cell itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    width: u16,
    theme: u32,
    view: View,
    diffs: Diffs,
    dots: Option<(u16, u16)>,
    /// The moment, where it matters.
    moment: Option<(usize, u64)>,
}

impl Spoken {
    pub(crate) fn live() -> Self {
        Self::Live(Box::new(RefCell::new(Markdown::new())))
    }

    pub(crate) fn push(&mut self, delta: &str) {
        match self {
            Self::Live(markdown) => markdown.get_mut().push(delta),
            Self::Kept(..) => {}
        }
    }

    /// The text as it was said.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Live(markdown) => markdown.borrow().source().to_owned(),
            Self::Kept(message, place) => match message.content.get(*place) {
                Some(Block::Text { text, .. } | Block::Thinking { text, .. }) => text.clone(),
                Some(_) | None => String::new(),
            },
        }
    }

    fn rows(&self, width: u16, theme: &Theme) -> Arc<[Row]> {
        match self {
            Self::Live(markdown) => markdown.borrow_mut().rows(width, &theme.palette),
            Self::Kept(..) => Markdown::whole(&self.text()).rows(width, &theme.palette),
        }
    }
}

impl Cell {
    pub(crate) fn new(kind: CellKind) -> Self {
        Self {
            kind,
            fold: Fold::AsUsual,
            laid: RefCell::new(None),
        }
    }

    pub(crate) fn notice(tone: Tone, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        Self::new(CellKind::Notice { tone, text })
    }

    pub(crate) fn prompt(text: &str) -> Self {
        Self::new(CellKind::Prompt(Asked::Typed(Arc::from(text))))
    }

    /// It changed: what was laid out does not count any more.
    pub(crate) fn touch(&mut self) {
        *self.laid.get_mut() = None;
    }

    /// Lets go of rows that are not on the screen.
    pub(crate) fn forget_rows(&self) {
        *self.laid.borrow_mut() = None;
    }

    /// The rows it is shown as, followed by an empty one.
    pub(crate) fn rows(&self, lay: &Lay<'_>) -> Arc<[Row]> {
        let form = Form {
            width: lay.width,
            theme: lay.theme.version,
            view: lay.view,
            diffs: lay.diffs,
            dots: lay.dots,
            moment: self.is_moving().then(|| lay.moment()),
        };
        if let Some(laid) = &*self.laid.borrow()
            && laid.form == form
        {
            return Arc::clone(&laid.rows);
        }
        let mut rows = self.lay_out(lay);
        rows.push(Row::default());
        let rows: Arc<[Row]> = rows.into();
        *self.laid.borrow_mut() = Some(Laid {
            form,
            rows: Arc::clone(&rows),
        });
        rows
    }

    /// Whether it looks another way from moment to moment.
    fn is_moving(&self) -> bool {
        match &self.kind {
            CellKind::Call(call) => !call.is_over(),
            CellKind::Prompt(_)
            | CellKind::Answer(_)
            | CellKind::Thinking(_)
            | CellKind::Redacted
            | CellKind::Notice { .. }
            | CellKind::Report(_)
            | CellKind::Image(_) => false,
        }
    }

    /// Whether a text in small letters occurs in what it is made of, shown or not.
    pub(crate) fn mentions(&self, needle: &str) -> bool {
        let is_in = |text: &str| occurs(text, needle);
        match &self.kind {
            CellKind::Prompt(asked) => is_in(asked.text()),
            CellKind::Answer(spoken) | CellKind::Thinking(spoken) => is_in(&spoken.text()),
            CellKind::Call(call) => {
                let output = match &call.state {
                    CallState::Over(ending) => ending.text(),
                    CallState::Written
                    | CallState::Ready
                    | CallState::Asked
                    | CallState::Running { .. } => call.output.as_str().into(),
                };
                let inner = || call.inner.cells.iter().any(|cell| cell.mentions(needle));
                is_in(&call.name) || is_in(&call.input.to_string()) || is_in(&output) || inner()
            }
            CellKind::Notice { text, .. } | CellKind::Report(text) => is_in(text),
            CellKind::Image(picture) => is_in(&picture.words()),
            CellKind::Redacted => false,
        }
    }

    /// Whether it looks the same until it is touched.
    pub(crate) fn is_still(&self) -> bool {
        match &self.kind {
            CellKind::Call(call) => call.is_over(),
            CellKind::Answer(Spoken::Live(_)) | CellKind::Thinking(Spoken::Live(_)) => false,
            CellKind::Prompt(_)
            | CellKind::Answer(Spoken::Kept(..))
            | CellKind::Thinking(Spoken::Kept(..))
            | CellKind::Redacted
            | CellKind::Notice { .. }
            | CellKind::Report(_)
            | CellKind::Image(_) => true,
        }
    }

    /// Whether there is more of it than is shown while it is closed.
    pub(crate) fn can_fold(&self) -> bool {
        match &self.kind {
            CellKind::Call(_) | CellKind::Thinking(_) => true,
            CellKind::Prompt(_)
            | CellKind::Answer(_)
            | CellKind::Redacted
            | CellKind::Notice { .. }
            | CellKind::Report(_)
            | CellKind::Image(_) => false,
        }
    }

    /// Opens or closes it.
    pub(crate) fn toggle(&mut self, view: View) {
        if self.can_fold() {
            self.fold = if self.is_open(view) {
                Fold::Closed
            } else {
                Fold::Open
            };
            self.touch();
        }
    }

    pub(crate) fn is_open(&self, view: View) -> bool {
        match self.fold {
            Fold::Open => true,
            Fold::Closed => false,
            Fold::AsUsual => view == View::Expanded,
        }
    }

    fn lay_out(&self, lay: &Lay<'_>) -> Vec<Row> {
        let palette = &lay.theme.palette;
        match &self.kind {
            CellKind::Prompt(asked) => prompt_rows(asked.text(), lay),
            CellKind::Answer(spoken) => {
                let rows = spoken.rows(lay.width, lay.theme);
                rows.to_vec()
            }
            CellKind::Thinking(spoken) => self.thinking(spoken, lay),
            CellKind::Redacted => vec![Row::plain(
                "Thoughts that the provider does not show.",
                palette.dim,
            )],
            CellKind::Call(call) => tool_rows::rows(call, self.is_open(lay.view), lay),
            CellKind::Notice { tone, text } => {
                let (sign, style) = match tone {
                    Tone::Quiet => (" ", palette.dim),
                    Tone::Warning => (lay.theme.signs.notice, palette.warning),
                    Tone::Error => (lay.theme.signs.bad, palette.error),
                };
                marked(sign, style, text, style, lay.width)
            }
            CellKind::Report(text) => ansi_words(text, lay.width, palette.text),
            CellKind::Image(picture) => picture.rows(lay),
        }
    }

    fn thinking(&self, spoken: &Spoken, lay: &Lay<'_>) -> Vec<Row> {
        let (palette, signs) = (&lay.theme.palette, &lay.theme.signs);
        let is_open = self.is_open(lay.view);
        let sign = if is_open {
            signs.unfolded
        } else {
            signs.folded
        };
        let text = spoken.text();
        let count = text.lines().filter(|line| !line.trim().is_empty()).count();
        let title = match spoken {
            Spoken::Live(_) => format!("{sign} Thinking{}", signs.more),
            Spoken::Kept(..) if count == 1 => format!("{sign} Thought, 1 line"),
            Spoken::Kept(..) => format!("{sign} Thought, {count} lines"),
        };
        let mut rows = vec![Row::plain(title, palette.dim)];
        if is_open {
            let inner = spoken.rows(lay.width.saturating_sub(2), lay.theme);
            let indent = || Span::styled("  ", palette.dim);
            rows.extend(inner.iter().cloned().map(|row| row.prefixed(indent())));
        }
        rows
    }
}

/// Whether a text in small letters occurs in another, however that is written.
fn occurs(text: &str, needle: &str) -> bool {
    if !needle.is_ascii() {
        return text.to_lowercase().contains(needle);
    }
    let needle = needle.as_bytes();
    text.as_bytes()
        .windows(needle.len().max(1))
        .any(|window| window.eq_ignore_ascii_case(needle))
}

/// A sign, and a text that hangs beside it.
pub(crate) fn marked(
    sign: &str,
    sign_style: Style,
    text: &str,
    style: Style,
    width: u16,
) -> Vec<Row> {
    let columns = caliban_text::width(sign) + 1;
    let hanging = [Span::styled(" ".repeat(columns), style)];
    let harmless = sanitise(text, Strength::Prose);
    let mut rows = Vec::new();
    for line in harmless.lines() {
        let first = if rows.is_empty() {
            Span::styled(format!("{sign} "), sign_style)
        } else {
            hanging[0].clone()
        };
        let line = line.replace('\t', "    ");
        rows.extend(wrap(
            vec![first, Span::styled(line, style)],
            width,
            &hanging,
        ));
    }
    if rows.is_empty() {
        rows.push(Row::plain(sign.to_owned(), sign_style));
    }
    rows
}

fn prompt_rows(text: &str, lay: &Lay<'_>) -> Vec<Row> {
    let palette = &lay.theme.palette;
    let style = palette.prompt;
    marked(lay.theme.signs.prompt, style, text, style, lay.width)
}
