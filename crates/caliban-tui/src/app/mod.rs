//! The state of the face and the one function that changes it.

mod answering;
mod commands;
mod draft;
mod effect;
mod finding;
mod hearing;
mod listing;
mod overlays;
mod pressing;
mod queueing;
pub(crate) mod selecting;
mod state;

pub(crate) use effect::{Clipboard, Done, Effect, PanelDone, PanelEffect};
pub(crate) use finding::Found;
pub(crate) use queueing::Towards;
pub(crate) use state::{App, Beginning, Link, Msg, Redraw, TodoRow, TodoState};

#[cfg(test)]
mod tests;
