//! Programs in a mount namespace of their own: no variable moves the place where the settings of a
//! machine's operator lie.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The same command, begun by a shell as `"$@"` where `/etc` may be changed.
pub(crate) fn apart(command: &Command, script: &str, variables: &[(&str, &OsStr)]) -> Command {
    let mut inside = Command::new("unshare");
    inside
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .envs(variables.iter().copied())
        .current_dir(command.get_current_dir().unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    inside
}

/// The same command where the machine's operator has these settings.
pub(crate) fn under_operator(command: &Command, settings: &Value) -> Command {
    let script = "mount -t tmpfs none /etc && mkdir /etc/caliban && \
                  printf %s \"$MANAGED\" > /etc/caliban/managed-settings.json && exec \"$@\"";
    let settings = settings.to_string();
    apart(command, script, &[("MANAGED", settings.as_ref())])
}
