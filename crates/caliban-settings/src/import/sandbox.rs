//! The sandbox of Claude Code in our terms.

use std::path::Path;

use serde_json::Value;

use super::gathered::{Gathered, texts};

/// Switches that mean the same here: theirs, then ours.
const SWITCHES: [(&str, &str); 5] = [
    ("enabled", "enabled"),
    ("failIfUnavailable", "fail_if_unavailable"),
    ("enableWeakerNestedSandbox", "enable_weaker_nested_sandbox"),
    ("network.allowAllUnixSockets", "network.allow_unix_sockets"),
    ("network.allowLocalBinding", "network.allow_local_binding"),
];
/// Lists that mean the same here.
const LISTS: [(&str, &str); 5] = [
    ("excludedCommands", "allow_unsandboxed_commands"),
    ("network.allowedDomains", "network.allowed_domains"),
    ("network.allowMachLookup", "network.allow_mach_lookup"),
    ("filesystem.denyRead", "filesystem.deny_read"),
    ("filesystem.denyWrite", "filesystem.deny_write"),
];
/// What forbids something there and cannot be said here.
const STRICTER: [&str; 3] = [
    "network.deniedDomains",
    "network.allowManagedDomainsOnly",
    "network.strictAllowlist",
];
/// Keys, or forms of keys, that only they have.
const THEIRS: [&str; 5] = [
    "excludedCommands",
    "ignoreViolations",
    "network.allowAllUnixSockets",
    "network.deniedDomains",
    "network.socksProxyPort",
];

/// Whether a `sandbox` table is theirs, and not ours in another spelling.
pub(super) fn is_theirs(sandbox: &Value) -> bool {
    THEIRS.iter().any(|key| at(sandbox, key).is_some())
        || at(sandbox, "allowUnsandboxedCommands").is_some_and(Value::is_boolean)
        || at(sandbox, "network.allowUnixSockets").is_some_and(Value::is_array)
}

pub(super) fn gather(sandbox: &Value, home: Option<&Path>, gathered: &mut Gathered) {
    for (theirs, ours) in SWITCHES {
        match at(sandbox, theirs) {
            Some(Value::Bool(is_on)) => gathered.set(&format!("sandbox.{ours}"), *is_on),
            Some(_) => wrong_type(theirs, gathered),
            None => {}
        }
    }
    for (theirs, ours) in LISTS {
        match at(sandbox, theirs).map(texts) {
            Some(Some(list)) => {
                let list: Vec<String> = list.into_iter().map(|path| place(path, home)).collect();
                gathered.set(&format!("sandbox.{ours}"), list);
            }
            Some(None) => wrong_type(theirs, gathered),
            None => {}
        }
    }
    // What is confined is not asked about there, unless somebody says otherwise.
    let is_enabled = at(sandbox, "enabled") == Some(&Value::Bool(true));
    match at(sandbox, "autoAllowBashIfSandboxed") {
        Some(Value::Bool(is_on)) => gathered.set("sandbox.auto_allow_bash_if_sandboxed", *is_on),
        Some(_) => wrong_type("autoAllowBashIfSandboxed", gathered),
        None if is_enabled => gathered.set("sandbox.auto_allow_bash_if_sandboxed", true),
        None => {}
    }
    if let Some(port) = at(sandbox, "network.httpProxyPort").and_then(Value::as_u64) {
        gathered.set("sandbox.network.http_proxy_port", port);
    }
    // There such places join the workspace, here they would stand for it.
    if let Some(list) = at(sandbox, "filesystem.allowWrite").and_then(texts) {
        let further = list.into_iter().map(|path| place(path, home));
        let all: Vec<String> = std::iter::once("${WORKSPACE}".to_owned())
            .chain(further)
            .collect();
        gathered.set("sandbox.filesystem.allow_write", all);
    }
    for key in STRICTER {
        if at(sandbox, key).is_some_and(|value| !is_nothing(value)) {
            gathered.note(format!(
                "deny `sandbox.{key}` was not imported: the sandbox here has no such key"
            ));
        }
    }
}

fn at<'v>(sandbox: &'v Value, dotted: &str) -> Option<&'v Value> {
    let found = match dotted.split_once('.') {
        Some((table, key)) => sandbox.get(table)?.get(key),
        None => sandbox.get(dotted),
    };
    found.filter(|value| !value.is_null())
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Bool(is_on) => !is_on,
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

fn wrong_type(key: &str, gathered: &mut Gathered) {
    gathered.note(format!(
        "deny `sandbox.{key}` was not imported: it has the wrong type"
    ));
}

/// A path as it is written here; what is no path stays as it is.
fn place(path: &str, home: Option<&Path>) -> String {
    match (path.strip_prefix("//"), path.strip_prefix("~/"), home) {
        (Some(below), _, _) => format!("/{below}"),
        (None, Some(below), Some(home)) => home.join(below).to_string_lossy().into_owned(),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_means_the_same_is_taken_over() {
        let sandbox = json!({
            "enabled": true,
            "excludedCommands": ["git", "docker"],
            "allowUnsandboxedCommands": false,
            "network": {"allowedDomains": ["a.b"], "allowUnixSockets": ["/x"], "httpProxyPort": 8080},
            "filesystem": {"allowWrite": ["~/out", "//opt/x"], "denyRead": ["~/.ssh"]},
        });
        assert!(is_theirs(&sandbox));
        let mut gathered = Gathered::default();
        gather(&sandbox, Some(Path::new("/h")), &mut gathered);
        assert_eq!(
            Value::Object(gathered.settings)["sandbox"],
            json!({
                "enabled": true,
                "allow_unsandboxed_commands": ["git", "docker"],
                "network": {"allowed_domains": ["a.b"], "http_proxy_port": 8080},
                "filesystem": {
                    "deny_read": ["/h/.ssh"],
                    "allow_write": ["${WORKSPACE}", "/h/out", "/opt/x"],
                },
                "auto_allow_bash_if_sandboxed": true,
            })
        );
        assert!(gathered.notes.is_empty(), "{:?}", gathered.notes);
    }

    #[test]
    fn what_forbids_and_cannot_be_said_here_is_told() {
        let sandbox = json!({"enabled": "yes", "network": {"deniedDomains": ["a.b"]}});
        let mut gathered = Gathered::default();
        gather(&sandbox, None, &mut gathered);
        assert!(gathered.settings.is_empty());
        assert_eq!(gathered.notes.len(), 2);
        assert!(gathered.notes.iter().all(|note| note.starts_with("deny ")));
    }

    #[test]
    fn our_own_in_another_spelling_is_ours() {
        let ours = json!({"enabled": true, "allowUnsandboxedCommands": ["git"]});
        assert!(!is_theirs(&ours));
    }
}
