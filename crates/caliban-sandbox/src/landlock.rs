//! The reduced sandbox: Landlock, which works where namespaces do not. It can only allow, so
//! nothing in a writable directory is protected, and the network is closed whole.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, Scope,
};

use crate::disk::{Disk, Kind};
use crate::policy::{Policy, Reading};

/// The oldest that also stops files from being cut off.
const NEEDED: ABI = ABI::V3;
/// The newest whose rights are known here.
const KNOWN: ABI = ABI::V6;
/// The most places that are granted.
const MAX_GRANTS: usize = 2000;
/// Devices that everybody may write.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// How grants begin on their way to the inner step.
const READ: u8 = b'r';
const WRITE: u8 = b'w';

/// What a policy allows, as words for the inner step: reading everything but what is hidden, by
/// granting what lies beside it; writing the roots and the session's own temporary directory.
pub(crate) fn grants(policy: &Policy, temporary: &Path, disk: &dyn Disk) -> Vec<OsString> {
    let home = &policy.home;
    let secrets = caliban_permissions::credential_places().map(|place| home.join(place));
    let hidden: Vec<PathBuf> = secrets
        .chain(policy.own.iter().cloned())
        .chain(policy.hidden.iter().cloned())
        .chain(["/run", "/tmp", "/var/tmp"].map(PathBuf::from))
        .filter_map(|path| disk.resolve(&path))
        .collect();
    let tops: Vec<PathBuf> = match &policy.reading {
        Reading::Everything => vec!["/".into()],
        Reading::Only(list) => {
            let system = [
                "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc", "/dev",
            ];
            list.iter()
                .cloned()
                .chain(system.map(PathBuf::from))
                .collect()
        }
    };
    let mut words: Vec<OsString> = policy.returned().map(|path| word(READ, path)).collect();
    let mut pending = tops;
    while let Some(path) = pending.pop() {
        if words.len() >= MAX_GRANTS || hidden.contains(&path) {
            continue;
        }
        if hidden.iter().any(|it| it.starts_with(&path)) {
            let below = disk.entries(&path);
            let below = below.into_iter().filter(|(_, kind)| *kind != Kind::Link);
            pending.extend(below.map(|(path, _)| path));
        } else {
            words.push(word(READ, &path));
        }
    }
    let devices = DEVICES.iter().map(Path::new);
    let writable = policy.roots.iter().map(PathBuf::as_path);
    let is_free = |path: &&Path| !policy.fixed.iter().any(|fixed| path.starts_with(fixed));
    for path in writable.chain(devices).chain([temporary]).filter(is_free) {
        words.push(word(WRITE, path));
    }
    words
}

fn word(kind: u8, path: &Path) -> OsString {
    let mut word = OsString::from(OsStr::from_bytes(&[kind]));
    word.push(path);
    word
}

/// Confines this process to what the words grant, for good.
pub(crate) fn restrict(words: &[OsString]) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("Landlock: {error}");
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))
        .map_err(|error| failed(&error))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))
        .and_then(|rules| rules.scope(Scope::AbstractUnixSocket | Scope::Signal))
        .and_then(Ruleset::create)
        .map_err(|error| failed(&error))?;
    for word in words {
        let (kind, path) = match word.as_bytes().split_first() {
            Some((kind, path)) => (*kind, Path::new(OsStr::from_bytes(path))),
            None => continue,
        };
        let access = match kind {
            READ => AccessFs::from_read(KNOWN),
            WRITE => AccessFs::from_all(KNOWN),
            _ => return Err("a grant is not one".to_owned()),
        };
        // What went away since is not granted.
        let Ok(place) = PathFd::new(path) else {
            continue;
        };
        let access = if path.is_dir() {
            access
        } else {
            access & AccessFs::from_file(KNOWN)
        };
        rules = rules
            .add_rule(PathBeneath::new(place, access))
            .map_err(|error| failed(&error))?;
    }
    let status = rules.restrict_self().map_err(|error| failed(&error))?;
    match status.ruleset {
        landlock::RulesetStatus::NotEnforced => Err("Landlock is not enforced".to_owned()),
        landlock::RulesetStatus::FullyEnforced | landlock::RulesetStatus::PartiallyEnforced => {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::tests::Listed;
    use crate::policy::Surroundings;

    #[test]
    fn siblings_are_granted_in_place_of_a_parent_with_secrets() {
        let disk = Listed::new(&[
            "/home/me/.ssh/id",
            "/home/me/src/",
            "/home/you/",
            "/etc/passwd",
            "/tmp/",
            "/w/",
        ]);
        let surroundings = Surroundings {
            roots: &["/w".into()],
            home: Path::new("/home/me"),
            own: &[],
            variables: &[],
        };
        let policy = Policy::new(&caliban_settings::Sandbox::default(), &surroundings).unwrap();
        let granted = grants(&policy, Path::new("/private/tmp"), &disk);
        let granted: Vec<&str> = granted.iter().filter_map(|word| word.to_str()).collect();
        for expected in [
            "r/home/me/src",
            "r/home/you",
            "r/etc",
            "w/w",
            "w/private/tmp",
        ] {
            assert!(granted.contains(&expected), "{expected}: {granted:?}");
        }
        for refused in ["r/", "r/home", "r/home/me", "r/home/me/.ssh", "r/tmp"] {
            assert!(!granted.contains(&refused), "{refused}: {granted:?}");
        }
    }
}
