//! Which trace a prompt is, and where its calls stand in it. Whoever runs a call and whoever tells of
//! it later find the same place, without having to meet: ids are drawn from what both know.

use std::sync::{Arc, Mutex, PoisonError};

use caliban_agent::Tracer;
use sha2::{Digest as _, Sha256};

use crate::data::Context;
use crate::tree::hexadecimal;

/// The traces of a session.
#[derive(Debug)]
pub struct Traces {
    seed: Seed,
    /// The trace of the prompt that is worked on.
    current: Mutex<Option<[u8; 16]>>,
}

/// What the ids of a session are drawn from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seed {
    secret: [u8; 16],
    /// The trace that this process is part of.
    parent: Option<Context>,
}

impl Traces {
    pub(crate) fn new(parent: Option<Context>) -> Self {
        Self {
            seed: Seed {
                secret: rand::random(),
                parent,
            },
            current: Mutex::default(),
        }
    }

    pub(crate) fn seed(&self) -> Seed {
        self.seed
    }

    /// A prompt is worked on from here.
    pub fn begin(&self, prompt: &str) {
        let (run, _) = self.seed.run(prompt);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(run.trace);
    }
}

impl Tracer for Traces {
    fn of_call(&self, call: &str) -> Option<Arc<str>> {
        let current = *self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let Context { trace, span } = self.seed.execution(current?, call);
        let (trace, span) = (hexadecimal(&trace), hexadecimal(&span));
        Some(format!("00-{trace}-{span}-01").into())
    }
}

impl Seed {
    /// The place of a prompt, and the span above it.
    pub(crate) fn run(&self, prompt: &str) -> (Context, Option<[u8; 8]>) {
        let trace = match self.parent {
            Some(parent) => parent.trace,
            None => self.draw(b"trace", &[], prompt),
        };
        let context = Context {
            trace,
            span: self.draw(b"run", &trace, prompt),
        };
        (context, self.parent.map(|parent| parent.span))
    }

    /// The place of what a call runs.
    pub(crate) fn execution(&self, trace: [u8; 16], call: &str) -> Context {
        Context {
            trace,
            span: self.draw(b"execution", &trace, call),
        }
    }

    fn draw<const N: usize>(&self, kind: &[u8], trace: &[u8], of: &str) -> [u8; N] {
        let mut hasher = Sha256::new();
        for part in [&self.secret[..], kind, trace, of.as_bytes()] {
            // With its length, so that no two ways to divide the same bytes are alike.
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let digest = hasher.finalize();
        let mut id = [0; N];
        for (byte, drawn) in id.iter_mut().zip(digest) {
            *byte = drawn;
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_find_the_same_place() {
        let traces = Traces::new(None);
        assert_eq!(traces.of_call("a"), None);
        traces.begin("p1");
        let (run, above) = traces.seed().run("p1");
        let place = traces.seed().execution(run.trace, "a");
        let told = traces.of_call("a").unwrap();
        assert_eq!(Context::parse(&told), Some(place));
        assert_eq!(above, None);
        assert_ne!(traces.of_call("b").unwrap(), told);
        traces.begin("p2");
        assert_ne!(traces.of_call("a").unwrap(), told);
    }

    #[test]
    fn a_parent_gives_the_trace() {
        let parent = Context {
            trace: [1; 16],
            span: [2; 8],
        };
        let traces = Traces::new(Some(parent));
        let (run, above) = traces.seed().run("p");
        assert_eq!((run.trace, above), (parent.trace, Some(parent.span)));
        assert_ne!(run.span, parent.span);
    }
}
