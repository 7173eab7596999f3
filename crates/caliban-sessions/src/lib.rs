//! Conversations on disk. A session is a readable snapshot, `<name>.json`, and a journal of what
//! happened since, `<name>.journal`; large contents are files of their own. Whatever interrupts
//! the writer, nothing that was confirmed is lost.

mod accounts;
mod accounts_listing;
mod blobs;
mod clock;
mod disk;
mod error;
mod journal;
mod line;
mod listing;
mod load;
mod lock;
mod name;
mod past;
mod paths;
mod record;
mod removal;
mod renaming;
mod repair;
mod replace;
mod search;
mod snapshot;
mod state;
mod store;
mod stored;
mod tail;
mod transcript;
mod writer;

pub use accounts::{Account, Accounts, Day, Sums, Work};
pub use accounts_listing::{AllAccounts, SessionAccounts};
pub use disk::{Disk, DiskFile, DiskReader, FileStat, HeldLock, LockAttempt, RealDisk};
pub use error::{Error, Warning};
pub use listing::{Listing, Summary};
pub use name::{InvalidName, SessionName};
pub use past::{Past, Position};
pub use record::{CallStatus, Effects, FORMAT, Notice, Record, StateChange};
pub use search::Hit;
pub use state::{NewSession, SessionState};
pub use store::{Opened, Pruned, Store};
pub use stored::INLINE_TEXT;
pub use transcript::{Transcript, turns};
pub use writer::{Durability, Health, SyncHandle, Writer};
