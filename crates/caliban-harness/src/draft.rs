//! `/init`: a draft of the file that tells a model about the project, from what the project says
//! about itself already. No model is asked.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use caliban_agent::ReadGuard;
use caliban_slash::Existing;
use uuid::Uuid;

use crate::git::git;
use crate::obedience::Unobeyed;
use crate::session::Session;

/// The file that counts, and the one that is written for somebody to read first.
const FINAL: &str = "CLAUDE.md";
const DRAFT: &str = "CLAUDE.draft.md";
/// Files that speak about the project, in the order in which they are quoted. Of those for which
/// there are several names, the first that is there.
const SOURCES: [&[&str]; 4] = [
    &["AGENTS.md"],
    &[".cursorrules"],
    &[".windsurfrules"],
    &["README.md", "README", "README.txt", "README.rst"],
];
/// The most that is quoted of one.
const SOURCE_BYTES: u64 = 32 * 1024;
/// The most lines of the repository's state.
const STATE_LINES: usize = 50;

impl Session {
    pub(crate) async fn draft(&self, existing: Existing) -> Result<String, Unobeyed> {
        let root = self.agent.workspace.root();
        if existing == Existing::Kept {
            for name in [FINAL, DRAFT] {
                if root.join(name).symlink_metadata().is_ok() {
                    return Err(Unobeyed::Misused(format!(
                        "there is a `{name}` already; `/init --force` writes `{DRAFT}` all the same"
                    )));
                }
            }
        }
        let guard = self.gate.reader(Vec::new());
        let (mut text, mut used) = (heading(root), Vec::new());
        for names in SOURCES {
            let found = names.iter().find_map(|name| {
                let said = quoted(root, name, &*guard)?;
                Some((*name, said))
            });
            if let Some((name, said)) = found {
                // Writing to a string does not fail.
                let _ = write!(text, "\n## From `{name}`\n\n{}\n", said.trim());
                used.push(format!("`{name}`"));
            }
        }
        if let Some(state) = self.repository_state().await {
            let _ = write!(
                text,
                "\n## State of the repository\n\n```text\n{state}\n```\n"
            );
            used.push("the state of the repository".to_owned());
        }
        let unwritten = |error| Unobeyed::Failed(format!("`{DRAFT}` cannot be written: {error}"));
        replace(root, &text).map_err(unwritten)?;
        let from = if used.is_empty() {
            "there was nothing to draw on".to_owned()
        } else {
            format!("from {}", used.join(", "))
        };
        Ok(format!(
            "`{}` is written, {from}. Read it, shorten it, and rename it to `{FINAL}`.",
            root.join(DRAFT).display()
        ))
    }

    async fn repository_state(&self) -> Option<String> {
        let configuration = self.watch.as_ref()?.configuration();
        let git = git(&configuration).await;
        let state = git.ask(&["status", "--short", "--branch"]).await.ok()?;
        let lines: Vec<&str> = state.lines().collect();
        let mut shown = lines[..lines.len().min(STATE_LINES)].join("\n");
        if lines.len() > STATE_LINES {
            let _ = write!(shown, "\n… and {} more", lines.len() - STATE_LINES);
        }
        Some(shown)
    }
}

fn heading(root: &Path) -> String {
    let name = root.file_name().unwrap_or(root.as_os_str());
    format!(
        "# {}\n\nThis is a draft. Keep what a newcomer must know and cannot see: how to build and \
         test, conventions, pitfalls.\n",
        name.to_string_lossy()
    )
}

/// The beginning of a file of the workspace. What leads out of it, or may not be read, says
/// nothing.
fn quoted(root: &Path, name: &str, guard: &dyn ReadGuard) -> Option<String> {
    let given = root.join(name);
    let real = given.canonicalize().ok()?;
    if !real.starts_with(root) {
        return None;
    }
    guard.by_name(&given, &real).ok()?;
    let file = File::open(&real).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || guard.by_identity(&about).is_err() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(SOURCE_BYTES).read_to_end(&mut bytes).ok()?;
    let said = String::from_utf8_lossy(&bytes).into_owned();
    (!said.trim().is_empty()).then_some(said)
}

/// Puts the draft in place. A link of its name is replaced, not followed.
fn replace(root: &Path, text: &str) -> io::Result<()> {
    let temporary = root.join(format!(".{DRAFT}.{}", Uuid::new_v4().simple()));
    let written = File::create_new(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&temporary, root.join(DRAFT)));
    if written.is_err() {
        // The error that led here is the one to report.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}
