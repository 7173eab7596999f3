//! What a prompt changed in the workspace, kept so that it can be taken back. A checkpoint holds
//! what was at every path before the prompt changed it first; going back to the end of prompt N
//! puts the before-images of all later checkpoints into their places, the earliest first. A restore
//! is itself a checkpoint, so that it can be taken back too.

mod again;
mod baseline;
mod capture;
mod disk;
mod error;
mod git;
mod head;
mod image;
mod journal;
mod lines;
mod manifest;
mod plan;
mod platform;
mod quota;
mod restore;
mod scan;
mod store;
mod tree;
mod walk;

pub use capture::{Before, Beginning, Prompt};
pub use disk::{Disk, RealDisk, Stored};
pub use error::Error;
pub use git::Environment;
pub use head::git_head;
pub use image::{Digest, Image, workspace_key};
pub use lines::Lines;
pub use manifest::{Coverage, Entry, Kind, Manifest, Mark};
pub use plan::{Action, Conflict, Lost, Moved, Names, Others, Plan};
pub use quota::{InUse, Room, Survey};
pub use restore::{Companion, Failed, Followed, Restored, Restoring};
pub use scan::{ScanLimits, Scanner};
pub use store::{History, Limits, Session, Store};
pub use tree::{RealTree, Shape, Stamp, Tree};
