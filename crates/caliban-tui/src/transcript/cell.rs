//! One thing in the conversation, and the rows it is shown as.

use std::cell::RefCell;
use std::sync::Arc;

use caliban_model::{Block, Message};
use caliban_text::{Markdown, Row, Strength, ansi, sanitise, wrap};
use ratatui_core::style::Style;
use ratatui_core::text::Span;

use crate::preferences::View;
use crate::theme::Theme;
use crate::transcript::calls::Call;
use crate::transcript::tool_rows;

/// With what cells are laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lay<'a> {
    pub(crate) width: u16,
    pub(crate) theme: &'a Theme,
    pub(crate) view: View,
    /// How far what moves has moved.
    pub(crate) beat: usize,
    /// Milliseconds since the face began, for what counts time.
    pub(crate) now: std::time::Instant,
    /// Where files are that are named without their folder.
    pub(crate) cwd: &'a std::path::Path,
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
    Prompt(Arc<str>),
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
    /// An image, by its description.
    Image(Arc<str>),
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
    width: u16,
    theme: u32,
    view: View,
    rows: Arc<[Row]>,
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
        Self::new(CellKind::Prompt(Arc::from(text)))
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
        if let Some(laid) = &*self.laid.borrow()
            && (laid.width, laid.theme, laid.view) == (lay.width, lay.theme.version, lay.view)
        {
            return Arc::clone(&laid.rows);
        }
        let mut rows = self.lay_out(lay);
        rows.push(Row::default());
        let rows: Arc<[Row]> = rows.into();
        if self.is_still() {
            *self.laid.borrow_mut() = Some(Laid {
                width: lay.width,
                theme: lay.theme.version,
                view: lay.view,
                rows: Arc::clone(&rows),
            });
        }
        rows
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
            CellKind::Prompt(text) => prompt_rows(text, lay),
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
            CellKind::Report(text) => ansi(text, lay.width, palette.text),
            CellKind::Image(about) => vec![Row::plain(
                sanitise(about, Strength::Name).into_owned(),
                palette.dim,
            )],
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
