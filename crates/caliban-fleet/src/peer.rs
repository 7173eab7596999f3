//! Who is at the other end of a connection, and whether that is an agent's own doing.

use std::io;

use tokio::net::UnixStream;

use crate::id::AgentId;

/// The first argument that makes the program a worker.
pub const WORKER_ARGUMENT: &str = "__worker";
/// The variable that everything an agent starts can see.
pub const AGENT_VARIABLE: &str = "CALIBAN_AGENT_ID";

/// How many parents are looked at.
#[cfg(target_os = "linux")]
const GENERATIONS: usize = 128;

/// A process of this user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Nothing where the system does not say.
    pub(crate) pid: Option<i32>,
}

/// The process at the other end, which must be one of ours.
pub(crate) fn of(stream: &UnixStream) -> io::Result<Peer> {
    let found = stream.peer_cred()?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the process at the other end belongs to another user",
        ));
    }
    Ok(Peer { pid: found.pid() })
}

impl Peer {
    /// Whether an agent started this process, or something that the agent started did. What cannot
    /// be found out counts as the agent's.
    pub(crate) fn is_of_an_agent(self) -> bool {
        let Some(pid) = self.pid else {
            return true;
        };
        is_of_an_agent(pid)
    }
}

impl Peer {
    /// Which agent a process belongs to: by the worker furthest above it, as what lies between may be
    /// made to look like another's. Nothing where that cannot be found out.
    #[cfg(target_os = "linux")]
    pub(crate) fn agent(self) -> Option<AgentId> {
        let mut pid = self.pid?;
        let (mut started, mut marked) = (None, None);
        for _ in 0..GENERATIONS {
            let Some(parent) = parent(pid) else {
                break;
            };
            started = agent_of_worker(pid).or(started);
            marked = mark(pid).or(marked);
            if parent <= 1 {
                break;
            }
            pid = parent;
        }
        started.or(marked)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn agent(self) -> Option<AgentId> {
        None
    }
}

/// Whether an agent started a process of this user, or something that the agent started did. What
/// cannot be found out counts as the agent's.
pub fn is_of_an_agent(pid: i32) -> bool {
    has_ancestor(pid, WORKER_ARGUMENT)
}

/// Whether this very process runs beneath a tool, which takes everything with it when it ends.
pub fn is_within_tool() -> bool {
    let Ok(pid) = i32::try_from(std::process::id()) else {
        return false;
    };
    cfg!(target_os = "linux") && has_ancestor(pid, caliban_process::GUARD_ARGUMENT)
}

/// Whether a process or one above it was started with this first argument. Guardians keep
/// everything that a tool starts beneath them, so that nothing gets away from its ancestors.
#[cfg(target_os = "linux")]
fn has_ancestor(pid: i32, argument: &str) -> bool {
    let mut pid = pid;
    for _ in 0..GENERATIONS {
        let Some(parent) = parent(pid) else {
            // It is gone, and with it what it was.
            return true;
        };
        if is_started_as(pid, argument) || is_marked(pid, argument) {
            return true;
        }
        if parent <= 1 {
            return false;
        }
        pid = parent;
    }
    true
}

#[cfg(not(target_os = "linux"))]
fn has_ancestor(_: i32, _: &str) -> bool {
    false
}

#[cfg(target_os = "linux")]
fn parent(pid: i32) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in brackets and may contain anything.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(target_os = "linux")]
fn is_started_as(pid: i32, argument: &str) -> bool {
    first_words(pid).is_some_and(|(first, _)| first == argument)
}

/// The agent whose worker a process was started as.
#[cfg(target_os = "linux")]
fn agent_of_worker(pid: i32) -> Option<AgentId> {
    let (first, second) = first_words(pid)?;
    (first == WORKER_ARGUMENT).then(|| second.parse().ok())?
}

/// The first two arguments of a process.
#[cfg(target_os = "linux")]
fn first_words(pid: i32) -> Option<(String, String)> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut words = line.split(|byte| *byte == 0).skip(1);
    let mut word = || String::from_utf8_lossy(words.next().unwrap_or_default()).into_owned();
    Some((word(), word()))
}

/// Whether its environment says that an agent started it; most processes may be asked.
#[cfg(target_os = "linux")]
fn is_marked(pid: i32, argument: &str) -> bool {
    argument == WORKER_ARGUMENT && variable(pid).is_some()
}

/// The agent that the environment of a process names.
#[cfg(target_os = "linux")]
fn mark(pid: i32) -> Option<AgentId> {
    variable(pid)?.parse().ok()
}

#[cfg(target_os = "linux")]
fn variable(pid: i32) -> Option<String> {
    let variables = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = variables.split(|byte| *byte == 0);
    variables.find_map(|variable| {
        let value = variable.strip_prefix(AGENT_VARIABLE.as_bytes())?;
        let value = value.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(value).into_owned())
    })
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_nobodys_agent() {
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(!Peer { pid: Some(pid) }.is_of_an_agent());
        assert!(Peer { pid: None }.is_of_an_agent());
        assert!(
            Peer {
                pid: Some(i32::MAX)
            }
            .is_of_an_agent()
        );
        assert!(!is_within_tool());
    }

    #[test]
    fn what_a_marked_process_starts_is_an_agents() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; read line; kill $!"])
            .env(AGENT_VARIABLE, "0000000a")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
        let grandchild = line.trim().parse().unwrap();
        let grandchild = Peer {
            pid: Some(grandchild),
        };
        assert!(grandchild.is_of_an_agent());
        assert_eq!(grandchild.agent(), "0000000a".parse().ok());
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
