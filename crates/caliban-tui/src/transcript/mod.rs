//! The conversation on the screen: cells that refer to what was said, and where one looks.

mod calls;
mod cell;
mod feed;
mod past;
mod picture;
mod scroll;
mod tool_rows;

pub(crate) use cell::{Cell, CellKind, Lay, Tone};
pub(crate) use feed::Feed;
pub(crate) use past::cells_of;
pub(crate) use picture::{INDENT, Picture, description};
pub(crate) use scroll::{Anchor, Scroll};
pub(crate) use tool_rows::change_rows;
