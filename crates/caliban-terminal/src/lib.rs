//! The terminal: its bytes become inputs, cells become its bytes, and it is left as it was found.

mod capabilities;
mod csi;
mod decoder;
mod environment;
mod gallery;
mod inline;
mod input;
mod key;
mod modes;
mod outside;
mod painter;
mod paste;
mod pen;
mod report;
mod sixel;
mod tile;
mod travel;
#[cfg(unix)]
mod tty;

pub use capabilities::{
    Answered, Capabilities, Colours, Graphics, Multiplexer, Notifier, Scheme, Support,
};
pub use decoder::Decoder;
pub use gallery::{Gallery, Placement, Raster};
pub use inline::{InlinePainter, Mark, StyledRow, Wrap};
pub use input::{Button, Focus, Input, Mouse, MouseKind, fold_wheel};
pub use key::{Key, KeyCode, Modifiers};
pub use modes::{BACK, CURSOR_QUERY, LEAVE, MouseCapture, OVER, PROBES, Surface, enter};
pub use outside::{BELL, POP_TITLE, PUSH_TITLE, bell, copy, notify, title};
pub use painter::Painter;
pub use paste::PASTE_LIMIT;
pub use report::{Report, Rgb};
pub use tile::CellLink;
#[cfg(unix)]
pub use tty::{Tty, TtyError, Written, restore, suspend};
