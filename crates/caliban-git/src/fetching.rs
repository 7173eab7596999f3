//! How git fetches what comes from elsewhere: nothing in it is followed or run.

use std::ffi::OsString;

use crate::harmless::configured;

/// Where a repository may be fetched from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Hosts, encrypted; and this machine over HTTP.
    Network,
    /// A directory of this machine.
    Directory,
}

const FETCHED: [(&str, &str); 4] = [
    ("core.symlinks", "false"),
    ("core.autocrlf", "false"),
    ("fetch.fsckObjects", "true"),
    ("fetch.recurseSubmodules", "false"),
];

/// An environment in which git may fetch from there, into a directory of our own.
pub(crate) fn fetching(
    environment: Vec<(OsString, OsString)>,
    reach: Reach,
) -> Vec<(OsString, OsString)> {
    let allowed: &[(&str, &str)] = match reach {
        Reach::Network => &[
            ("protocol.https.allow", "always"),
            ("protocol.ssh.allow", "always"),
            ("protocol.http.allow", "always"),
        ],
        Reach::Directory => &[("protocol.file.allow", "always")],
    };
    let mut environment = configured(environment, &[], &[&FETCHED, allowed].concat());
    // Nobody is there to be asked by ssh.
    environment.push(("GIT_SSH_COMMAND".into(), "ssh -oBatchMode=yes".into()));
    environment
}
