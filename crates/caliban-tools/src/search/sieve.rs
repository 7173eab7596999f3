//! Leaves out of a search what the call may not read, and counts it.

use std::fs::Metadata;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use caliban_agent::{Extent, ReadGuard, ResolvedPath};

/// Asks about the files beneath a directory. Nothing is asked by name where nothing there can be
/// closed.
#[derive(Debug)]
pub(super) struct Sieve<'a> {
    reading: &'a dyn ReadGuard,
    base: &'a ResolvedPath,
    extent: Extent,
    held_back: AtomicUsize,
}

impl<'a> Sieve<'a> {
    pub(super) fn new(reading: &'a dyn ReadGuard, base: &'a ResolvedPath) -> Self {
        Self {
            extent: reading.beneath(&base.real),
            reading,
            base,
            held_back: AtomicUsize::new(0),
        }
    }

    /// Whether a file may be read, by its name beneath the directory.
    pub(super) fn passes(&self, relative: &Path) -> bool {
        match self.extent {
            Extent::Nothing => true,
            Extent::Something => {
                let (given, real) = (
                    self.base.given.join(relative),
                    self.base.real.join(relative),
                );
                self.count(self.reading.by_name(&given, &real).is_ok())
            }
        }
    }

    /// Whether a file that was opened may be read, by what it is.
    pub(super) fn passes_opened(&self, opened: &Metadata) -> bool {
        self.count(self.reading.by_identity(opened).is_ok())
    }

    fn count(&self, passes: bool) -> bool {
        self.held_back
            .fetch_add(usize::from(!passes), Ordering::Relaxed);
        passes
    }

    /// What the model must know where something was held back.
    pub(super) fn note(&self) -> Option<String> {
        let count = self.held_back.load(Ordering::Relaxed);
        (count > 0).then(|| {
            format!(
                "(Files left out because a permission rule or a protected place closes them to \
                 reading: {count}.)"
            )
        })
    }
}
