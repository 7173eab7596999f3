//! What is counted.

use crate::{options, shell};
use caliban_testkit::terminal::Terminal;

#[test]
fn output_is_counted() {
    let terminal = shell("printf 12345; read -r x; printf 678; read -r x");
    terminal.until_text("12345");
    let before = terminal.counts();
    assert_eq!(before.bytes, 5);
    assert!(before.writes >= 1);
    terminal.key("enter");
    terminal.until_text("678");
    // The echo of the key is output of the terminal, not of the program.
    assert_eq!(terminal.counts().bytes - before.bytes, 5);
    terminal.key("enter");
    terminal.wait();
}

#[test]
fn a_sleeping_program_does_not_wake() {
    let terminal = Terminal::start(options("cat", &[]));
    terminal.until_quiet();
    let before = (terminal.voluntary_switches(), terminal.cpu());
    terminal.until_quiet();
    assert_eq!((terminal.voluntary_switches(), terminal.cpu()), before);
    terminal.keys("x\r");
    terminal.until(|screen| screen.row(1) == "x");
    terminal.until_quiet();
    assert!(terminal.voluntary_switches() > before.0);
    assert!(terminal.rss() > 100_000);
    terminal.key("ctrl+d");
    terminal.wait();
}

#[test]
fn work_is_counted() {
    let terminal = shell("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; read -r x");
    terminal.until_text("done");
    assert!(!terminal.cpu().is_zero());
    terminal.key("enter");
    terminal.wait();
}
