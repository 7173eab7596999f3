//! What the face is given to begin with, and why it may not.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use caliban_compose::DraftFile;

use crate::farewell::Farewell;
use crate::preferences::Screen;

/// Reads a variable of the environment.
pub type Variables = dyn Fn(&str) -> Option<String> + Send + Sync;

/// What the face is given.
#[derive(Clone)]
pub struct Setup {
    pub environment: Arc<Variables>,
    /// Set while another program has the terminal: SIGINT is for that one then.
    pub is_elsewhere: Arc<AtomicBool>,
    pub cwd: PathBuf,
    pub home: PathBuf,
    pub screen: Screen,
    /// A prompt to begin with.
    pub prompt: Option<String>,
    /// Where a draft is kept that was not sent; nothing where nothing is kept.
    pub draft_file: Option<PathBuf>,
}

impl Setup {
    /// The draft that was not sent.
    pub(crate) fn draft(&self) -> Option<String> {
        DraftFile::new(self.draft_file.clone()?).load()
    }
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup")
            .field("cwd", &self.cwd)
            .field("prompt", &self.prompt)
            .finish_non_exhaustive()
    }
}

/// Why the face ended without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum FaceError {
    #[error("the terminal cannot be used: {0}")]
    Terminal(#[source] caliban_terminal::TtyError),
    #[error("the terminal is lost: {0}")]
    Lost(#[source] std::io::Error),
    #[error("the terminal was closed")]
    HangUp,
    /// Somebody ended the program; what is left behind is the same.
    #[error("interrupted")]
    Cancelled(Option<Box<Farewell>>),
    /// The settings want lines instead.
    #[error("the settings want lines")]
    WantsLines,
    /// The host knows why.
    #[error("the session did not begin")]
    NotBegun,
}
