//! The sandbox of macOS: a policy as a profile for `sandbox-exec`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use caliban_permissions::credential_places;

use crate::places::{Found, GIT_PLACES};
use crate::policy::{LocalBinding, Policy, Reading, UnixSockets};

/// Where macOS keeps its own.
#[cfg(target_os = "macos")]
pub(crate) const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// What every program needs.
const BASE: &str = r#"(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow ipc-posix-shm)
(allow pseudo-tty)
(allow file-ioctl (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$"))
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.trustd.agent"))
(allow file-read* file-write-data
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom")
  (literal "/dev/tty") (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$"))
(allow file-read-metadata)
"#;

/// What programs need to start where only a list may be read.
const SYSTEM: [&str; 10] = [
    "/usr",
    "/bin",
    "/sbin",
    "/System",
    "/Library/Apple",
    "/Library/Developer",
    "/opt/homebrew",
    "/private/etc",
    "/private/var/db",
    "/dev",
];

/// The profile. The last rule that fits counts, and rules see paths with links followed. Moving a
/// file is writing it, so what is hidden or fixed may be neither moved nor replaced, and none of the
/// directories above it in a writable one may.
pub(crate) fn profile(
    policy: &Policy,
    found: &Found,
    temporary: &Path,
    proxy: Option<u16>,
) -> String {
    let mut profile = Profile(BASE.to_owned());
    match &policy.reading {
        Reading::Everything => profile.line("(allow file-read*)"),
        Reading::Only(list) => {
            profile.line("(allow file-read* (literal \"/\"))");
            let system = SYSTEM.iter().map(Path::new);
            let listed = list.iter().map(PathBuf::as_path);
            for path in system.chain(listed) {
                profile.rule("allow file-read*", path);
            }
        }
    }
    let roots = policy.roots.iter().map(PathBuf::as_path);
    for root in roots.chain([temporary]) {
        profile.rule("allow file-read* file-write*", root);
    }
    if policy.binding == LocalBinding::Permitted {
        profile.line("(allow network-bind network-inbound (local ip \"localhost:*\"))");
    }
    match policy.sockets {
        UnixSockets::Masked => {
            profile.rule("allow network-bind network-inbound", temporary);
            profile.rule("allow network-outbound", temporary);
        }
        UnixSockets::Visible => profile.line("(allow network-outbound (remote unix-socket))"),
    }
    if let Some(port) = proxy {
        // Names of hosts mean nothing here: `*` and `localhost` are all there is.
        let _ = writeln!(
            profile.0,
            "(allow network-outbound (remote ip \"localhost:{port}\"))"
        );
    }
    for service in &policy.mach_services {
        let _ = writeln!(
            profile.0,
            "(allow mach-lookup (global-name {}))",
            quoted(service)
        );
    }
    for place in &found.places {
        profile.fix(place, policy);
    }
    for git in found.git.iter().chain(&found.modules) {
        for name in GIT_PLACES {
            profile.fix(&git.join(name), policy);
        }
    }
    for path in &policy.fixed {
        profile.fix(path, policy);
    }
    let secrets = credential_places().map(|place| policy.home.join(place));
    // The last rule that fits counts: what is shown lies in what is ours, and what the operator
    // hides may lie in both.
    profile.hide(secrets.chain(policy.own.iter().cloned()), policy);
    for path in policy.returned() {
        profile.rule("allow file-read*", path);
    }
    profile.hide(policy.hidden.iter().cloned(), policy);
    profile.0
}

struct Profile(String);

impl Profile {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn rule(&mut self, what: &str, path: &Path) {
        let path = quoted(&path.to_string_lossy());
        let _ = writeln!(self.0, "({what} (subpath {path}))");
    }

    fn hide(&mut self, paths: impl Iterator<Item = PathBuf>, policy: &Policy) {
        for path in paths {
            self.rule("deny file-read* file-write* network-outbound", &path);
            self.keep_above(&path, policy);
        }
    }

    fn fix(&mut self, path: &Path, policy: &Policy) {
        self.rule("deny file-write*", path);
        self.keep_above(path, policy);
    }

    /// Keeps the directories above a path, as far as they can be written, in their places.
    fn keep_above(&mut self, path: &Path, policy: &Policy) {
        let roots = || policy.roots.iter();
        let above = path.ancestors().skip(1);
        for directory in above.take_while(|it| roots().any(|root| it.starts_with(root))) {
            let directory = quoted(&directory.to_string_lossy());
            let _ = writeln!(self.0, "(deny file-write-unlink (literal {directory}))");
        }
    }
}

/// A text as the profile's language writes it.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Network, Surroundings};

    fn policy() -> Policy {
        let surroundings = Surroundings {
            roots: &["/w".into()],
            home: Path::new("/Users/me"),
            own: &["/Users/me/Library/caliban".into()],
            variables: &[],
        };
        Policy::new(&caliban_settings::Sandbox::default(), &surroundings).unwrap()
    }

    fn lines(policy: &Policy, proxy: Option<u16>) -> Vec<String> {
        let found = Found {
            places: vec!["/w/a/.vscode".into()],
            git: vec!["/w/.git".into()],
            modules: vec!["/w/.git/modules/m".into()],
            ..Found::default()
        };
        let profile = profile(policy, &found, Path::new("/private/tmp/x"), proxy);
        profile.lines().map(str::to_owned).collect()
    }

    fn position(lines: &[String], line: &str) -> usize {
        let found = lines.iter().position(|it| it == line);
        found.unwrap_or_else(|| panic!("{line} in {lines:#?}"))
    }

    #[test]
    fn denials_come_after_what_they_except() {
        let lines = lines(&policy(), None);
        let root = position(&lines, "(allow file-read* file-write* (subpath \"/w\"))");
        for denial in [
            "(deny file-write* (subpath \"/w/.git/hooks\"))",
            "(deny file-write* (subpath \"/w/a/.vscode\"))",
            "(deny file-write-unlink (literal \"/w/a\"))",
            "(deny file-write-unlink (literal \"/w/.git\"))",
            "(deny file-read* file-write* network-outbound (subpath \"/Users/me/.ssh\"))",
            "(deny file-read* file-write* network-outbound (subpath \"/Users/me/Library/caliban\"))",
        ] {
            assert!(position(&lines, denial) > root, "{denial}");
        }
        assert!(!lines.iter().any(|line| line.contains("remote ip")));
    }

    #[test]
    fn parentheses_are_balanced_and_paths_cannot_end_their_text() {
        let mut policy = policy();
        policy.roots.push("/w\"))(allow default".into());
        let profile = profile(&policy, &Found::default(), Path::new("/t"), Some(4000));
        let (mut depth, mut in_text, mut escaped) = (0, false, false);
        for letter in profile.chars() {
            match letter {
                _ if escaped => escaped = false,
                '\\' if in_text => escaped = true,
                '"' => in_text = !in_text,
                '(' if !in_text => depth += 1,
                ')' if !in_text => depth -= 1,
                _ => {}
            }
            assert!(depth >= 0);
        }
        assert_eq!((depth, in_text), (0, false));
        assert!(!profile.lines().any(|line| line == "(allow default"));
    }

    #[test]
    fn names_of_hosts_never_reach_the_profile() {
        let policy = Policy {
            network: Network::Domains {
                allowed: vec!["example.com".into()],
                upstream: None,
            },
            ..policy()
        };
        let lines = lines(&policy, Some(4000));
        position(
            &lines,
            "(allow network-outbound (remote ip \"localhost:4000\"))",
        );
        assert!(!lines.iter().any(|line| line.contains("example.com")));
    }
}
