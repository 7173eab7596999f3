//! What a call may read. The gate decides about calls by their arguments; a search reaches files
//! that no argument names, and a name may lead elsewhere by the time it is opened. So whoever opens
//! or names files for a call asks again here, about each of them.

use std::fmt::Debug;
use std::fs::Metadata;
use std::path::Path;
use std::sync::Arc;

/// Says which files a call may read. It asks nobody: what would need consent is closed.
pub trait ReadGuard: Send + Sync + Debug {
    /// Whether anything beneath a directory could be closed. Where not, its files need not be
    /// asked about by name.
    fn beneath(&self, directory: &Path) -> Extent;

    /// Whether a file may be read that goes by these names: as it was asked for, and with all
    /// links followed. Nothing is looked up.
    fn by_name(&self, given: &Path, real: &Path) -> Result<(), Closed>;

    /// Whether a file that was opened is one that another name of it closes: a hard link.
    fn by_identity(&self, opened: &Metadata) -> Result<(), Closed>;
}

/// How much of a directory may be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Nothing,
    Something,
}

/// Why a file may not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Closed(pub String);

/// Closes nothing: where no rules count.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenReading;

impl OpenReading {
    pub fn shared() -> Arc<dyn ReadGuard> {
        Arc::new(Self)
    }
}

impl ReadGuard for OpenReading {
    fn beneath(&self, _directory: &Path) -> Extent {
        Extent::Nothing
    }

    fn by_name(&self, _given: &Path, _real: &Path) -> Result<(), Closed> {
        Ok(())
    }

    fn by_identity(&self, _opened: &Metadata) -> Result<(), Closed> {
        Ok(())
    }
}

/// Closes everything, for this reason: where the rules are not known.
#[derive(Debug, Clone)]
pub struct ClosedReading(pub Closed);

impl ReadGuard for ClosedReading {
    fn beneath(&self, _directory: &Path) -> Extent {
        Extent::Something
    }

    fn by_name(&self, _given: &Path, _real: &Path) -> Result<(), Closed> {
        Err(self.0.clone())
    }

    fn by_identity(&self, _opened: &Metadata) -> Result<(), Closed> {
        Err(self.0.clone())
    }
}
