//! What may stand between a program and its start.

use std::fmt::Debug;
use std::io;

use crate::invocation::Invocation;

/// Confines programs before they start.
pub trait Confiner: Send + Sync + Debug {
    /// The program as it is to be started, and what to keep until it has ended.
    fn confine(&self, invocation: Invocation) -> io::Result<(Invocation, Keepsake)>;
}

/// Something that is dropped when a program has ended.
#[derive(Default)]
pub struct Keepsake(Option<Box<dyn Send + Sync>>);

impl Keepsake {
    pub fn new(kept: impl Send + Sync + 'static) -> Self {
        Self(Some(Box::new(kept)))
    }
}

impl Debug for Keepsake {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(_) => formatter.write_str("Keepsake(kept)"),
            None => formatter.write_str("Keepsake(nothing)"),
        }
    }
}
