//! What to say when the sandbox refused something: which path, and which rule or setting.

use std::path::{Path, PathBuf};

use caliban_permissions::protected_name;

use crate::places::{GIT_PLACES, MAX_DEPTH};
use crate::plan::{Mount, Plan};
use crate::policy::{Network, Policy};

/// The most lines that are added to a result.
const MAX_LINES: usize = 3;
/// How much of an output is looked through, from its end.
const MAX_LOOKED: usize = 32 * 1024;

/// How programs say that a path is closed.
const REFUSALS: [&str; 6] = [
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "Device or resource busy",
    "No such file or directory",
    "EROFS",
];
/// How they say that nobody can be reached.
const UNREACHABLE: [&str; 8] = [
    "Network is unreachable",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "getaddrinfo",
    "EAI_AGAIN",
    "ENETUNREACH",
    "Failed to establish a new connection",
];

/// What the sandbox makes of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Writable,
    ReadOnly {
        why: String,
    },
    Hidden {
        why: String,
    },
    /// Another directory is in its place.
    Elsewhere {
        real: PathBuf,
    },
}

impl Policy {
    /// What confined programs may do with a path, links followed.
    pub(crate) fn standing(&self, plan: &Plan, path: &Path) -> Standing {
        let above = plan
            .mounts
            .iter()
            .rev()
            .find(|(place, _)| path.starts_with(place));
        let Some((place, mount)) = above else {
            return Standing::Hidden {
                why: "it is not in `sandbox.filesystem.allow_read`".to_owned(),
            };
        };
        match mount {
            Mount::Writable(from) if from == place => Standing::Writable,
            Mount::Writable(from) => match path.strip_prefix(place) {
                Ok(rest) => Standing::Elsewhere {
                    real: from.join(rest),
                },
                Err(_) => Standing::Writable,
            },
            Mount::Fresh | Mount::Devices | Mount::Processes => Standing::Elsewhere {
                real: place.clone(),
            },
            Mount::ReadOnly(_) => Standing::ReadOnly {
                why: self.why_fixed(path, place),
            },
            Mount::Hidden | Mount::Blank => Standing::Hidden {
                why: self.why_hidden(path, place),
            },
        }
    }

    /// The protected name that a path has or lies in, where there is nothing yet: what commands make
    /// there is taken away when they end.
    pub fn takes_away(&self, path: &Path) -> Option<PathBuf> {
        let root = self.roots.iter().find(|root| path.starts_with(root))?;
        let rest = path.strip_prefix(root).ok()?;
        let mut place = root.clone();
        for (depth, part) in rest.components().enumerate() {
            place.push(part);
            let name = Path::new(part.as_os_str());
            if name.as_os_str() == ".git" {
                let mut inside = GIT_PLACES.iter().map(|name| place.join(name));
                let within = inside.find(|inside| path.starts_with(inside));
                return within.filter(|within| is_absent(within));
            }
            let is_protected =
                protected_name(name).is_some() || place.ends_with(".github/workflows");
            if depth <= MAX_DEPTH && is_protected {
                return is_absent(&place).then_some(place);
            }
        }
        None
    }

    fn why_fixed(&self, path: &Path, place: &Path) -> String {
        if let Some(setting) = self.fixes(path) {
            return format!("`{setting}` names it");
        }
        let in_root = self
            .roots
            .iter()
            .any(|root| place.starts_with(root) && place != root);
        if in_root || self.linked.iter().any(|git| place.starts_with(&git.common)) {
            return format!(
                "`{}` is protected, since programs outside run or trust what is there; naming it in `sandbox.filesystem.allow_write` opens it",
                place.display()
            );
        }
        "it lies outside what may be written (`sandbox.filesystem.allow_write`)".to_owned()
    }

    fn why_hidden(&self, path: &Path, place: &Path) -> String {
        match self.hides(path) {
            Some(setting) => format!("`{setting}` names it"),
            None if self.own.iter().any(|own| path.starts_with(own)) => {
                "it is caliban's own".to_owned()
            }
            None if place == Path::new("/") => {
                "it is not in `sandbox.filesystem.allow_read`".to_owned()
            }
            None => "it may hold credentials or be a way out".to_owned(),
        }
    }
}

fn is_absent(path: &Path) -> bool {
    path.symlink_metadata().is_err()
}

/// The lines to add to the output of a command that failed in `directory`.
pub(crate) fn lines(policy: &Policy, plan: &Plan, directory: &Path, output: &str) -> Vec<String> {
    let mut start = output.len().saturating_sub(MAX_LOOKED);
    while !output.is_char_boundary(start) {
        start += 1;
    }
    let output = &output[start..];
    let mut lines: Vec<String> = Vec::new();
    for line in output.lines() {
        if lines.len() >= MAX_LINES {
            break;
        }
        if REFUSALS.iter().any(|refusal| line.contains(refusal)) {
            let said =
                paths_in(line, directory).find_map(|path| refusal(policy, plan, &path, line));
            if let Some(said) = said
                && !lines.contains(&said)
            {
                lines.push(said);
            }
        }
    }
    let is_cut_off = UNREACHABLE.iter().any(|words| output.contains(words));
    if policy.network == Network::Closed && is_cut_off {
        lines.push(
            "sandbox: the network is closed; `sandbox.network.allowed_domains` names the hosts that may be reached"
                .to_owned(),
        );
    }
    lines
}

fn refusal(policy: &Policy, plan: &Plan, path: &Path, line: &str) -> Option<String> {
    match policy.standing(plan, path) {
        // What is hidden looks as if it were not there.
        Standing::ReadOnly { why } if !line.contains("No such file") => {
            Some(format!("sandbox: `{}` is read-only: {why}", path.display()))
        }
        Standing::Hidden { why } => Some(format!("sandbox: `{}` is hidden: {why}", path.display())),
        Standing::ReadOnly { .. } | Standing::Writable | Standing::Elsewhere { .. } => None,
    }
}

/// What in a line could be a path: words with a slash or a dot, without the signs around them.
/// The last first: programs name themselves before what they complain about.
fn paths_in<'a>(line: &'a str, directory: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
    let signs = ['\'', '"', '`', ':', ',', '(', ')', '[', ']', '‘', '’'];
    let words = line.split(move |letter: char| letter.is_whitespace() || signs.contains(&letter));
    words
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| word.contains('/') || word.starts_with('.') || word.contains('.'))
        .filter(|word| word.len() > 1)
        .map(|word| directory.join(word))
        .map(|path| crate::policy::real(&path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::tests::Listed;
    use crate::plan::{Fittings, Processes};
    use crate::policy::Surroundings;
    use rstest::rstest;

    #[rstest]
    #[case(
        "touch: cannot touch '/etc/x': Read-only file system",
        Some("`/etc/x` is read-only: it lies outside")
    )]
    #[case(
        "bash: line 1: .git/hooks/x: Read-only file system",
        Some("`/w/.git/hooks` is protected")
    )]
    #[case(
        "cat: /home/me/.ssh/id: No such file or directory",
        Some("`/home/me/.ssh/id` is hidden")
    )]
    #[case("cat: /home/me/none: No such file or directory", None)]
    #[case(
        "curl: (6) Could not resolve host: example.com",
        Some("the network is closed")
    )]
    #[case("error[E0425]: cannot find value `x`", None)]
    fn refusals_are_explained(#[case] output: &str, #[case] expected: Option<&str>) {
        let disk = Listed::new(&["/w/.git/hooks/", "/home/me/.ssh/", "/etc/"]);
        let surroundings = Surroundings {
            roots: &["/w".into()],
            home: Path::new("/home/me"),
            own: &[],
            variables: &[],
        };
        let policy = Policy::new(&caliban_settings::Sandbox::default(), &surroundings).unwrap();
        let fittings = Fittings {
            private: Path::new("/private"),
            program: Path::new("/usr/bin/caliban"),
            caches: Path::new("/private/caches"),
            packages: &[],
            egress: None,
            began: None,
            processes: Processes::Own,
        };
        let found = crate::places::Found::look(&policy, &crate::places::Found::default(), &disk);
        let plan = Plan::new(&policy, &found, &fittings, &disk).unwrap();
        let lines = lines(&policy, &plan, Path::new("/w"), output);
        match expected {
            Some(expected) => assert!(lines[0].contains(expected), "{lines:?}"),
            None => assert!(lines.is_empty(), "{lines:?}"),
        }
    }
}
