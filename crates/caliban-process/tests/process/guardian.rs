//! The guardian by itself.

use std::process::{Command, Stdio};

use crate::support::GUARD;

#[test]
fn a_guardian_without_a_parent_ends_at_once() {
    let status = Command::new(GUARD)
        .args(["__guard", "/bin/sleep", "100"])
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success());
}

#[test]
fn a_program_that_cannot_be_started_is_reported() {
    let output = Command::new(GUARD)
        .args(["__guard", "/nonexistent"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(126));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`/nonexistent` cannot be started"));
}
