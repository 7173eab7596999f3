//! Faces for programs that keep a session open and talk to it over a protocol of their own.

pub(crate) mod acp;
pub(crate) mod heddle;
mod lines;
