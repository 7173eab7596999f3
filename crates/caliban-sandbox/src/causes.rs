//! Why bubblewrap cannot make a sandbox here, looked up on the machine: what it says itself is
//! often wrong in containers.

use std::path::Path;

/// Why there is no sandbox, and what helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    pub reason: String,
    pub remedy: String,
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}; {}", self.reason, self.remedy)
    }
}

impl Unavailable {
    pub(crate) fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            remedy: remedy.into(),
        }
    }
}

/// What is known of the machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Machine {
    /// `AppArmor` keeps users from making namespaces.
    pub(crate) apparmor_restricts: bool,
    pub(crate) is_container: bool,
    /// A switch of the distribution keeps users from making namespaces.
    pub(crate) userns_is_off: bool,
    pub(crate) max_user_namespaces: Option<u64>,
}

impl Machine {
    pub(crate) fn look() -> Self {
        let number =
            |path: &str| -> Option<u64> { std::fs::read_to_string(path).ok()?.trim().parse().ok() };
        let is_there = |path: &&str| Path::new(path).exists();
        Self {
            apparmor_restricts: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
                == Some(1),
            is_container: ["/.dockerenv", "/run/.containerenv"].iter().any(is_there)
                || std::env::var_os("container").is_some(),
            userns_is_off: number("/proc/sys/kernel/unprivileged_userns_clone") == Some(0),
            max_user_namespaces: number("/proc/sys/user/max_user_namespaces"),
        }
    }
}

const WEAKER: &str = "set `sandbox.enable_weaker_nested_sandbox` to make do with less";

/// What bubblewrap's last words mean here.
pub(crate) fn cause(said: &str, machine: &Machine) -> Unavailable {
    let said = said.trim();
    let says = |words: &str| said.contains(words);
    let last: String = said
        .lines()
        .last()
        .unwrap_or_default()
        .chars()
        .take(300)
        .collect();
    if machine.apparmor_restricts
        && (says("setting up uid map: Permission denied") || says("Failed RTM_NEWADDR"))
    {
        return Unavailable::new(
            "AppArmor keeps programs from making user namespaces (Ubuntu 23.10 and later)",
            "give bubblewrap a profile: write `abi <abi/4.0>,\\nprofile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }` to `/etc/apparmor.d/bwrap` and run `apparmor_parser -r` on it",
        );
    }
    if says("max_") && says("namespaces exceeded") || machine.max_user_namespaces == Some(0) {
        return Unavailable::new(
            "no further user namespaces can be made here (`user.max_user_namespaces`), as in a sandbox within a sandbox",
            "raise the limit, or run caliban outside",
        );
    }
    if says("No permissions to create new namespace")
        || says("No permissions to creating new namespace")
    {
        if machine.userns_is_off {
            return Unavailable::new(
                "this distribution keeps users from making namespaces",
                "run `sysctl kernel.unprivileged_userns_clone=1`",
            );
        }
        return Unavailable::new(
            if machine.is_container {
                "the container keeps programs from making namespaces"
            } else {
                "programs may not make namespaces here, as in many containers"
            },
            format!(
                "run it with a seccomp profile that permits `unshare` and `mount`, or {WEAKER}"
            ),
        );
    }
    if says("Can't mount proc on") {
        return Unavailable::new(
            "the container hides parts of `/proc`, so no other can be mounted",
            format!("unmask them (`--security-opt systempaths=unconfined`), or {WEAKER}"),
        );
    }
    if says("Failed to make / slave") {
        return Unavailable::new(
            "mounts may not be changed here, as in many containers",
            format!("permit them, or {WEAKER}"),
        );
    }
    if says("pivot_root: Invalid argument") {
        return Unavailable::new(
            "the root of this machine is an initial memory disk, which cannot be changed",
            WEAKER,
        );
    }
    if says("Function not implemented") {
        return Unavailable::new("this kernel has no namespaces, as in WSL 1", "use WSL 2");
    }
    if last.is_empty() {
        return Unavailable::new("bubblewrap ended without a word", "run `caliban doctor`");
    }
    Unavailable::new(format!("bubblewrap says: {last}"), "run `caliban doctor`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::ubuntu("bwrap: setting up uid map: Permission denied", "AppArmor")]
    #[case::docker(
        "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.",
        "container"
    )]
    #[case::nested(
        "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
        "max_user_namespaces"
    )]
    #[case::masked(
        "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
        "/proc"
    )]
    #[case::mounts("bwrap: Failed to make / slave: Permission denied", "mounts")]
    #[case::rootfs("bwrap: pivot_root: Invalid argument", "memory disk")]
    #[case::wsl(
        "bwrap: Creating new namespace failed: Function not implemented",
        "WSL"
    )]
    #[case::other("bwrap: something new", "something new")]
    #[case::nothing("", "without a word")]
    fn words_are_understood(#[case] said: &str, #[case] expected: &str) {
        let machine = Machine {
            apparmor_restricts: true,
            is_container: true,
            ..Machine::default()
        };
        let reason = cause(said, &machine).reason;
        assert!(reason.contains(expected), "{reason}");
    }
}
