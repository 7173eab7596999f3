//! Tests that have a network of their own, which ends with them.

use std::process::Command;

/// Says that a test is within its namespace.
const APART: &str = "CALIBAN_TEST_APART";

/// Who a test is in its namespace.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Apart {
    /// Whoever runs it, who is taken for root in there.
    AsAnybody,
    /// Root, which it must be outside already.
    AsRoot,
}

/// Runs a test in a network of its own; whether this is within it. Where the system permits no
/// such networks, the test says so and does nothing.
pub(crate) fn is_apart(who: Apart, test: &str) -> bool {
    if std::env::var_os(APART).is_some() {
        ip(&["link", "set", "lo", "up"]);
        return true;
    }
    let flag = match who {
        Apart::AsAnybody => "-rn",
        Apart::AsRoot => "-n",
    };
    let tried = Command::new("unshare").args([flag, "ip", "link"]).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        eprintln!("skipped: `unshare {flag} ip link` does not work here");
        return false;
    }
    let ran = Command::new("unshare")
        .arg(flag)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(APART, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}\n{errors}");
    assert!(said.contains("1 passed"), "{said}");
    false
}

pub(crate) fn ip(args: &[&str]) {
    let ran = Command::new("ip").args(args).output().unwrap();
    assert!(ran.status.success(), "ip {args:?}: {ran:?}");
}
