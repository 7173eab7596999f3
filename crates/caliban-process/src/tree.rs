//! The process tree beneath a process, as the kernel shows it.

use rustix::process::{Pid, Signal, kill_process};

/// A process and the group it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) pid: Pid,
    pub(crate) group: Option<Pid>,
}

impl Member {
    /// Failing means that the process is gone or not ours to signal; either way nothing is left
    /// to do.
    pub(crate) fn signal(self, signal: Signal) {
        let _ = kill_process(self.pid, signal);
    }
}

/// Everything beneath `root`. A process that forks meanwhile may be missed, so callers that want
/// everybody ask again until nobody is left.
#[cfg(target_os = "linux")]
pub(crate) fn descendants(root: Pid) -> Vec<Member> {
    let mut children = children_by_parent();
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        // Taking the entry out ends the walk even where reused ids made the picture a cycle.
        for member in children.remove(&parent).unwrap_or_default() {
            parents.push(member.pid);
            found.push(member);
        }
    }
    found
}

/// Without orphans coming back to the guardian there is no tree to follow.
#[cfg(not(target_os = "linux"))]
pub(crate) fn descendants(_root: Pid) -> Vec<Member> {
    Vec::new()
}

#[cfg(target_os = "linux")]
fn children_by_parent() -> std::collections::HashMap<Pid, Vec<Member>> {
    let mut children = std::collections::HashMap::<Pid, Vec<Member>>::new();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return children;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(process_id) else {
            continue;
        };
        // A process that ended since the listing has no file any more.
        let Ok(stat) = std::fs::read(entry.path().join("stat")) else {
            continue;
        };
        if let Some((parent, group)) = parent_and_group(&stat) {
            let member = Member { pid, group };
            children.entry(parent).or_default().push(member);
        }
    }
    children
}

/// Reads the fourth and fifth field of a `stat` line. The second is the program's name in
/// parentheses, which may itself hold spaces and parentheses: the fields start after the last.
#[cfg(target_os = "linux")]
fn parent_and_group(stat: &[u8]) -> Option<(Pid, Option<Pid>)> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    let mut fields = fields.split_ascii_whitespace().skip(1);
    let parent = process_id(fields.next()?)?;
    Some((parent, fields.next().and_then(process_id)))
}

#[cfg(target_os = "linux")]
fn process_id(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_cannot_forge_fields() {
        let stat = b"42 (x) S 7 7 (\xff) R 40 41 42 0 -1";
        let expected = (Pid::from_raw(40).unwrap(), Pid::from_raw(41));
        assert_eq!(parent_and_group(stat), Some(expected));
        assert_eq!(parent_and_group(b"42 (init) S 0 0"), None);
        assert_eq!(parent_and_group(b""), None);
    }

    #[test]
    fn a_grandchild_is_found() {
        let mut child = std::process::Command::new("/bin/sh")
            .args(["-c", "sleep 100 & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
        let grandchild = process_id(line.trim()).unwrap();
        let found = descendants(rustix::process::getpid());
        assert!(found.iter().any(|member| member.pid == grandchild));
        for member in descendants(Pid::from_child(&child)) {
            member.signal(Signal::KILL);
        }
        child.wait().unwrap();
    }
}
