//! The state of the face and the one function that changes it.

mod answering;
mod commands;
mod draft;
mod effect;
mod hearing;
mod overlays;
mod pressing;
mod state;

pub(crate) use effect::{Clipboard, Done, Effect};
pub(crate) use state::{App, Beginning, Link, Msg, Redraw, TodoRow, TodoState};

#[cfg(test)]
mod tests;
