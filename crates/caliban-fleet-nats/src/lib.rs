//! The board of a fleet on many machines: where jobs are queued and leased, where their journals,
//! events, questions and results are kept. [`Board`] says what holds of it; [`NatsBoard`] keeps it
//! on NATS `JetStream`, and [`MemoryBoard`] in memory, for tests.

mod board;
mod job;
mod layout;
mod memory;
mod monitor;
mod nats;
mod record;
mod secret;
mod server_file;
mod survey;

pub use board::{
    Answered, Artefact, Board, BoardError, Claim, Entry, Nudge, Revised, Settled, Submitted, Told,
};
pub use job::{
    Budget, JobError, JobId, JobSpec, LARGEST_SPEC, OnQuestion, Pool, Publish, Repo, SPEC_VERSION,
};
pub use layout::Layout;
pub use memory::MemoryBoard;
pub use monitor::read_monitor;
pub use nats::{Access, NatsBoard, Refusals};
pub use record::{AnswerRecord, Files, JobRecord, JobResult, Outcome, State, Stored};
pub use secret::secret_in;
pub use server_file::{Role, Roles, keys, public_key, server_file};
pub use survey::{Finding, Health, OLDEST_SERVER, Survey, judge_monitor};

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
