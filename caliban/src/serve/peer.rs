//! Who is at the other end of a socket. What a session runs has our user, and must not reach the
//! server: it would answer its own questions.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tokio::net::{UnixListener, UnixStream};

use crate::exit::Failure;

/// Processes between one and its first ancestor; more is no tree of ours.
const DEEPEST: usize = 256;

/// Why a peer is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stranger {
    /// Another user.
    User,
    /// A program of one of our sessions.
    Descendant,
    /// It cannot be known.
    Unknown,
}

/// Turns away whoever is not the user of this process, or was started by it or by an agent.
pub(super) fn check(stream: &UnixStream) -> Result<(), Stranger> {
    let peer = stream.peer_cred().map_err(|_| Stranger::Unknown)?;
    if peer.uid() != rustix::process::geteuid().as_raw() {
        return Err(Stranger::User);
    }
    match peer.pid() {
        // Sessions have processes of their own, which are not beneath this one.
        Some(pid) if descends(pid) || caliban_fleet::is_of_an_agent(pid) => {
            Err(Stranger::Descendant)
        }
        None if cfg!(target_os = "linux") => Err(Stranger::Unknown),
        Some(_) | None => Ok(()),
    }
}

/// Whether a process was started by this one. One that cannot be followed to its roots counts as
/// such: what cannot be judged is not let in.
fn descends(pid: i32) -> bool {
    let own = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
    let mut pid = pid;
    for _ in 0..DEEPEST {
        if pid == own {
            return true;
        }
        match parent(pid) {
            Some(0 | 1) => return false,
            Some(parent) => pid = parent,
            None => return cfg!(target_os = "linux"),
        }
    }
    true
}

fn parent(pid: i32) -> Option<i32> {
    if pid <= 1 {
        return Some(0);
    }
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything; what counts stands behind its end.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Listens at a path that nobody else can reach: the directory is ours alone, and so is the socket.
pub(super) fn listen(path: &Path) -> Result<UnixListener, Failure> {
    let cannot = |error: std::io::Error| {
        Failure::Runtime(format!("cannot listen at `{}`: {error}", path.display()))
    };
    // The shortest limit of a system that we run on.
    if path.as_os_str().len() > 103 {
        return Err(Failure::Usage(format!(
            "`{}` is too long for a socket; name a shorter one with `--listen unix:PATH`",
            path.display()
        )));
    }
    if let Some(directory) = path.parent().filter(|it| !it.as_os_str().is_empty())
        && !directory.exists()
    {
        caliban_settings::ensure_private_dir(directory).map_err(cannot)?;
    }
    if path.exists() {
        // One that nobody serves any more is left over from a process that was killed.
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(Failure::Launch(caliban_harness::LaunchError::busy(
                format!("another server listens at `{}` already", path.display()),
            )));
        }
        let is_socket = std::fs::symlink_metadata(path)
            .is_ok_and(|it| std::os::unix::fs::FileTypeExt::is_socket(&it.file_type()));
        if !is_socket {
            return Err(Failure::Usage(format!(
                "`{}` is there and is no socket; it is not replaced",
                path.display()
            )));
        }
        std::fs::remove_file(path).map_err(cannot)?;
    }
    let listener = UnixListener::bind(path).map_err(cannot)?;
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(path, private).map_err(cannot)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_started_is_known_by_its_ancestors() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(descends(own));
        assert!(!descends(parent(own).unwrap()));
        assert!(!descends(1));
        // Whoever is gone cannot be judged.
        assert_eq!(descends(i32::MAX), cfg!(target_os = "linux"));
    }
}
