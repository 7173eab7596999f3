//! Text of others as rows of cells: made harmless, wrapped, coloured. Nothing here knows a screen
//! or a session; everything is a function of text, width and palette.

mod ansi;
mod diff;
mod escape;
mod highlight;
mod languages;
mod markdown;
mod palette;
mod row;
mod sanitise;
mod width;
mod wrap;

pub use ansi::{Keep, ansi, ansi_keeping, ansi_words};
pub use diff::{
    Detail, DiffLine, DiffView, Hunk, LineEnd, LineKind, Mark, diff_counts, diff_rows, unified_rows,
};
pub use highlight::{LexState, highlight};
pub use languages::Language;
pub use markdown::Markdown;
pub use palette::{Ground, Palette};
pub use row::{LinkSpan, Row, RowEnd, copied};
pub use sanitise::{Strength, label, sanitise};
pub use width::{cluster_width, clusters, cut, cut_middle, is_disputed, width};
pub use wrap::wrap;
