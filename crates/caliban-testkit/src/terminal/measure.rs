//! What the kernel counts about a program.

use std::fs;
use std::time::Duration;

/// Ticks of processor time in a second, the same on every Linux.
const TICKS: u64 = 100;

/// How often the program's threads went to sleep by themselves, which is how often they were woken.
/// A thread that has ended is no longer counted.
pub(super) fn voluntary_switches(pid: u32) -> u64 {
    of_threads(pid, "status")
        .iter()
        .filter_map(|status| field(status, "voluntary_ctxt_switches:"))
        .sum()
}

/// Resident memory in bytes.
pub(super) fn rss(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    field(&status, "VmRSS:").unwrap_or_default() * 1024
}

/// Processor time of all threads, ended ones included, in steps of 10 ms.
pub(super) fn cpu(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let ticks: u64 = after_name(&stat)
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}

/// Whether no thread runs, is about to, or waits for a disk.
pub(super) fn asleep(pid: u32) -> bool {
    of_threads(pid, "stat")
        .iter()
        .all(|stat| !matches!(after_name(stat).next(), Some("R" | "D")))
}

fn of_threads(pid: u32, file: &str) -> Vec<String> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join(file)).ok())
        .collect()
}

fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The fields behind the name, which may contain anything, from the state on.
fn after_name(stat: &str) -> impl Iterator<Item = &str> {
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_whitespace()
}
