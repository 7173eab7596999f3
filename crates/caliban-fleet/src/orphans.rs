//! What killed agents and daemons leave behind: processes that got away from their guardians, and
//! sockets that nobody listens on. Found by locks and by asking, never by age.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::directory::AgentDirectory;
use crate::id::AgentId;
use crate::places::Places;

/// The digits of a daemon's socket.
const KEY: usize = 16;

/// Something that was left behind and is gone now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Orphan {
    /// A process that an agent started whose own process is gone.
    Process {
        pid: i32,
        agent: AgentId,
        command: String,
    },
    /// A socket that nobody listens on.
    Socket(PathBuf),
}

impl std::fmt::Display for Orphan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Process {
                pid,
                agent,
                command,
            } => write!(
                f,
                "ended the process {pid} (`{command}`), which the agent {agent} had started and \
                 left behind"
            ),
            Self::Socket(path) => write!(
                f,
                "removed the socket `{}`, which nobody listens on",
                path.display()
            ),
        }
    }
}

/// Ends and removes what agents and daemons of this user left behind, and says what that was. What
/// belongs to an agent that is alive, or to one that is not registered here, is left alone.
pub fn sweep_orphans(places: &Places) -> Vec<Orphan> {
    let mut found = processes(places);
    found.extend(sockets(places));
    found
}

/// Whether an agent is registered here and has no process.
fn is_gone(places: &Places, id: &AgentId) -> bool {
    let directory = AgentDirectory::at(places.agent(id));
    // The lock of an agent is held before its first process is there, so what is marked with an
    // agent that nobody holds cannot have just begun.
    directory.path().is_dir() && !directory.is_held()
}

#[cfg(target_os = "linux")]
fn processes(places: &Places) -> Vec<Orphan> {
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let ids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut ended = Vec::new();
    for pid in ids {
        let Some(agent) = marked(pid).filter(|agent| is_gone(places, agent)) else {
            continue;
        };
        let Some(Ok(handle)) = Pid::from_raw(pid).map(|pid| pidfd_open(pid, PidfdFlags::empty()))
        else {
            continue;
        };
        // The number may be another process's by now; the handle is of the one that is looked at.
        if marked(pid).as_ref() != Some(&agent) || !is_gone(places, &agent) {
            continue;
        }
        let command = command(pid);
        if pidfd_send_signal(&handle, Signal::KILL).is_ok() {
            ended.push(Orphan::Process {
                pid,
                agent,
                command,
            });
        }
    }
    ended
}

#[cfg(not(target_os = "linux"))]
fn processes(_: &Places) -> Vec<Orphan> {
    Vec::new()
}

/// The agent that a process says it was started by.
#[cfg(target_os = "linux")]
fn marked(pid: i32) -> Option<AgentId> {
    let variables = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mark = format!("{}=", crate::peer::AGENT_VARIABLE);
    let mut variables = variables.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(mark.as_bytes()))?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// What a process was started as, in one line of bounded length.
#[cfg(target_os = "linux")]
fn command(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words).replace('\0', " ");
    crate::worker::short(words.trim())
}

fn sockets(places: &Places) -> Vec<Orphan> {
    let Ok(entries) = fs::read_dir(&places.runtime) else {
        return Vec::new();
    };
    let mut removed = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if is_ours(&path) && is_deaf(&path) && fs::remove_file(&path).is_ok() {
            removed.push(Orphan::Socket(path));
        }
    }
    removed
}

/// Whether it is named like a socket of an agent or of a daemon.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(stem) = name.and_then(|name| name.strip_suffix(".sock")) else {
        return false;
    };
    let is_key = stem.len() == KEY && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_key || stem.parse::<AgentId>().is_ok()
}

/// Whether nobody listens. Both kinds listen from the moment they have a name.
fn is_deaf(path: &Path) -> bool {
    matches!(
        UnixStream::connect(path),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_sockets_that_nobody_listens_on_go() {
        let root = tempfile::tempdir().unwrap();
        let places = Places {
            root: root.path().to_owned(),
            agents: root.path().join("agents"),
            runtime: root.path().to_owned(),
        };
        let at = |name: &str| root.path().join(name);
        let _alive = UnixListener::bind(at("0000000a.sock")).unwrap();
        drop(UnixListener::bind(at("0000000b.sock")).unwrap());
        drop(UnixListener::bind(at("0123456789abcdef.sock")).unwrap());
        drop(UnixListener::bind(at("other.sock")).unwrap());
        let mut removed = sweep_orphans(&places);
        removed.sort_by_key(ToString::to_string);
        assert_eq!(
            removed,
            [
                Orphan::Socket(at("0000000b.sock")),
                Orphan::Socket(at("0123456789abcdef.sock")),
            ]
        );
        assert!(at("0000000a.sock").exists() && at("other.sock").exists());
    }
}
