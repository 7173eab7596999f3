//! Sessions through the public interface, on the real disk and on one that fails.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod accounts;
mod blobs;
mod contention;
mod counting;
mod damage;
mod faults;
mod lifecycle;
mod listing;
mod renaming;
mod rewound;
mod scratch;
mod script;
mod sim;
mod size;
mod tail;
