//! Where agents and sockets are, and that nobody else can get between.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use caliban_settings::{Locations, ensure_private_dir, hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::id::AgentId;

/// The longest path of a socket: the system's field for it, less its end.
const LONGEST: usize = if cfg!(target_os = "macos") { 103 } else { 107 };

/// Everything that the agents of one repository have to do with on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// The repository, or the workspace where there is none. Canonical.
    pub root: PathBuf,
    /// A directory for each agent of the user, whatever repository it belongs to.
    pub agents: PathBuf,
    /// Sockets and their locks.
    pub runtime: PathBuf,
}

impl Places {
    /// The places for work in a directory, which must be canonical.
    pub fn new(locations: &Locations, workspace: &Path) -> Self {
        Self {
            root: root_of(workspace).to_owned(),
            agents: locations.data_dir().join("agents"),
            runtime: locations.runtime_dir().to_owned(),
        }
    }

    pub fn agent(&self, id: &AgentId) -> PathBuf {
        self.agents.join(id.as_str())
    }

    /// Where the daemon of this repository listens.
    pub fn control_socket(&self) -> PathBuf {
        self.runtime.join(format!("{}.sock", self.key()))
    }

    /// What only one daemon can hold.
    pub fn daemon_lock(&self) -> PathBuf {
        self.runtime.join(format!("{}.lock", self.key()))
    }

    /// What the daemon has to say that nobody asked for.
    pub fn daemon_log(&self) -> PathBuf {
        self.runtime.join(format!("{}.log", self.key()))
    }

    pub fn worker_socket(&self, id: &AgentId) -> PathBuf {
        self.runtime.join(format!("{id}.sock"))
    }

    /// The first 16 digits of the digest of the repository's path.
    fn key(&self) -> String {
        let digest = Sha256::digest(self.root.as_os_str().as_bytes());
        hex(&digest[..8])
    }

    /// Makes the directory of sockets, for its owner alone, and makes sure that it is one that
    /// nobody else can exchange.
    pub fn prepare_runtime(&self) -> io::Result<()> {
        ensure_private_dir(&self.runtime).map_err(|error| {
            let place = self.runtime.display();
            let text = format!("`{place}`: {error}; CALIBAN_DAEMON_RUNTIME_DIR names another");
            io::Error::new(error.kind(), text)
        })?;
        self.check_runtime()
    }

    /// Refuses a directory that somebody else owns or could replace, and paths that no socket can
    /// have.
    pub fn check_runtime(&self) -> io::Result<()> {
        let us = rustix::process::geteuid().as_raw();
        let refuse = |path: &Path, why: &str| {
            Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "`{}` {why}; set CALIBAN_DAEMON_RUNTIME_DIR to a directory of your own",
                    path.display()
                ),
            ))
        };
        let own = fs::symlink_metadata(&self.runtime)?;
        if !own.is_dir() || own.uid() != us || own.permissions().mode() & 0o077 != 0 {
            return refuse(&self.runtime, "is not a private directory of yours");
        }
        for above in self.runtime.ancestors().skip(1) {
            let Ok(found) = fs::symlink_metadata(above) else {
                continue;
            };
            if found.uid() != us && found.uid() != 0 {
                return refuse(above, "belongs to somebody else");
            }
            let mode = found.permissions().mode();
            // Where everybody may write, only the sticky bit keeps names in place.
            if found.is_dir() && mode & 0o002 != 0 && mode & 0o1000 == 0 {
                return refuse(above, "can be changed by everybody");
            }
        }
        let longest = self.control_socket();
        if longest.as_os_str().as_bytes().len() > LONGEST {
            return Err(io::Error::new(
                io::ErrorKind::InvalidFilename,
                format!(
                    "`{}` is too long for a socket (at most {LONGEST} bytes); set \
                     CALIBAN_DAEMON_RUNTIME_DIR to a shorter directory",
                    longest.display()
                ),
            ));
        }
        Ok(())
    }
}

/// The repository that a directory lies in, or the directory itself.
fn root_of(workspace: &Path) -> &Path {
    workspace
        .ancestors()
        .find(|directory| directory.join(".git").exists())
        .unwrap_or(workspace)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use caliban_settings::Platform;

    use super::*;

    fn places(runtime: &Path) -> Places {
        Places {
            root: "/w".into(),
            agents: "/d/agents".into(),
            runtime: runtime.to_owned(),
        }
    }

    #[test]
    fn a_repository_has_one_socket_wherever_one_works_in_it() {
        let root = tempfile::tempdir().unwrap();
        let repository = root.path().canonicalize().unwrap().join("r");
        fs::create_dir_all(repository.join(".git")).unwrap();
        fs::create_dir_all(repository.join("a/b")).unwrap();
        let variable = |name: &str| (name == "XDG_RUNTIME_DIR").then(|| "/run/user/7".to_owned());
        let locations = Locations::new(Platform::Linux, "/home/u", &variable);
        let above = Places::new(&locations, &repository);
        let below = Places::new(&locations, &repository.join("a/b"));
        assert_eq!(above, below);
        let socket = above.control_socket();
        assert_eq!(socket.parent(), Some(Path::new("/run/user/7/caliban")));
        let name = socket.file_name().unwrap().to_str().unwrap();
        assert_eq!(name.len(), 16 + ".sock".len());
        let outside = Places::new(&locations, Path::new("/nowhere"));
        assert_ne!(outside.control_socket(), socket);
        assert_eq!(outside.root, Path::new("/nowhere"));
        assert_eq!(
            above.agents,
            Path::new("/home/u/.local/share/caliban/agents")
        );
    }

    #[test]
    fn a_directory_of_sockets_is_private_or_refused() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("run");
        places(&own).prepare_runtime().unwrap();
        assert_eq!(
            fs::metadata(&own).unwrap().permissions().mode() & 0o777,
            0o700
        );
        let link = root.path().join("link");
        symlink(&own, &link).unwrap();
        assert!(places(&link).prepare_runtime().is_err());
        let open = root.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let error = places(&open.join("run")).prepare_runtime().unwrap_err();
        assert!(error.to_string().contains("by everybody"), "{error}");
        let long = root.path().join("x".repeat(120));
        let error = places(&long).prepare_runtime().unwrap_err();
        assert!(error.to_string().contains("CALIBAN_DAEMON_RUNTIME_DIR"));
    }
}
