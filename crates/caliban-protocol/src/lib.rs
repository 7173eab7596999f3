//! Translates events into the frames that programs read. Pure functions: no files, no sockets, no
//! loop.

mod line;
mod native;

pub use line::line;
pub use native::{Encoder, Init, Partial, Replay, failure, result};
