//! Settings documents: located values, the parsers that make them, and the checks of names and
//! types they pass before anything is merged.

mod names;
mod node;
mod parse;
mod typed;

pub(crate) use names::{canonicalise, check_names};
#[cfg(test)]
pub(crate) use node::Text;
pub(crate) use node::{Content, Entry, Node, Origin, Place, Step, Table, dotted};
pub(crate) use parse::{Format, parse};
pub(crate) use typed::typed;
