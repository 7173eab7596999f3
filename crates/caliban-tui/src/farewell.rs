//! What is left on the main screen when one leaves.

use crate::app::App;
use crate::preferences::{OnExit, View};
use crate::transcript::{CellKind, Lay};

/// The most rows that are left.
const ROWS: usize = 2_000;

/// What the program prints after the face is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Farewell {
    /// The conversation, as far as it was asked for.
    pub transcript: String,
    /// How the session is opened again.
    pub resume: Option<String>,
    pub next: Next,
}

/// What the program does when the face is gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Next {
    #[default]
    End,
    /// Shows a page in the browser that goes on with the session of this name, where anything was
    /// said in one.
    Page(Option<String>),
}

/// Where one goes who leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    Out,
    /// To the page in the browser.
    Page,
}

impl Departure {
    pub(crate) fn next(self, session: Option<&str>) -> Next {
        match self {
            Self::Out => Next::End,
            Self::Page => Next::Page(session.map(str::to_owned)),
        }
    }
}

pub(crate) fn of(app: &App, way: Departure) -> Farewell {
    let cells = &app.feed.cells;
    // What is in the scrollback is left there already.
    let cells = cells.get(app.printed..).unwrap_or_default();
    let cells = match app.preferences.on_exit {
        OnExit::Transcript => cells,
        OnExit::Last => {
            let is_prompt =
                |cell: &crate::transcript::Cell| matches!(cell.kind, CellKind::Prompt(_));
            let last = cells.iter().rposition(is_prompt);
            &cells[last.unwrap_or_default()..]
        }
        OnExit::None => &[],
    };
    let lay = Lay {
        view: View::Compact,
        ..app.lay()
    };
    let mut rows: Vec<String> = Vec::new();
    // From the end, because only so many stay.
    for cell in cells.iter().rev() {
        let laid = cell.rows(&lay);
        rows.extend(
            laid.iter()
                .rev()
                .map(|row| row.text().trim_end().to_owned()),
        );
        if rows.len() >= ROWS {
            rows.truncate(ROWS);
            break;
        }
    }
    rows.reverse();
    let has_said = !app.messages.is_empty();
    let session = app.name.as_deref().filter(|_| has_said);
    Farewell {
        transcript: rows.join("\n"),
        resume: session.map(|name| format!("caliban --resume {name}")),
        next: way.next(session),
    }
}
