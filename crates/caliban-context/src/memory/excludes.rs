//! Patterns of instruction files that are not read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::notice::Notice;

/// The most patterns that are used.
const MAX_PATTERNS: usize = 1000;

/// Gitignore patterns relative to a workspace. Directories above it are spelled with `..`. Copies
/// share them.
#[derive(Debug, Clone)]
pub struct Excludes {
    workspace: PathBuf,
    patterns: Arc<RwLock<Gitignore>>,
}

impl Excludes {
    pub(super) fn new(workspace: &Path, patterns: &[String], notices: &mut Vec<Notice>) -> Self {
        Self {
            workspace: workspace.to_owned(),
            patterns: Arc::new(RwLock::new(compiled(patterns, notices))),
        }
    }

    /// Makes these the patterns, for files that are not read yet. What is no pattern is left out.
    pub fn replace(&self, patterns: &[String]) {
        let patterns = compiled(patterns, &mut Vec::new());
        let mut own = self
            .patterns
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *own = patterns;
    }

    pub(super) fn contains(&self, file: &Path) -> bool {
        let patterns = self.patterns.read().unwrap_or_else(PoisonError::into_inner);
        relative(&self.workspace, file).is_some_and(|path| {
            patterns
                .matched_path_or_any_parents(path, false)
                .is_ignore()
        })
    }
}

fn compiled(patterns: &[String], notices: &mut Vec<Notice>) -> Gitignore {
    // The root is not the workspace: paths are made relative here, and `.` is not stripped.
    let mut builder = GitignoreBuilder::new(".");
    builder.allow_unclosed_class(false);
    if patterns.len() > MAX_PATTERNS {
        notices.push(Notice::TooMany {
            what: "patterns in claude_md_excludes",
            limit: MAX_PATTERNS,
        });
    }
    for pattern in patterns.iter().take(MAX_PATTERNS) {
        if let Err(error) = builder.add_line(None, pattern) {
            notices.push(Notice::Pattern {
                pattern: pattern.clone(),
                reason: error.to_string(),
            });
        }
    }
    builder.build().unwrap_or_else(|error| {
        notices.push(Notice::Pattern {
            pattern: "*".to_owned(),
            reason: error.to_string(),
        });
        Gitignore::empty()
    })
}

/// The way from a directory to a file.
fn relative(from: &Path, to: &Path) -> Option<PathBuf> {
    from.ancestors().enumerate().find_map(|(ups, ancestor)| {
        let rest = to.strip_prefix(ancestor).ok()?;
        let mut path: PathBuf = std::iter::repeat_n("..", ups).collect();
        path.push(rest);
        Some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(&["vendor/**"], "/r/w/vendor/a/CLAUDE.md", true)]
    #[case(&["vendor/"], "/r/w/vendor/a/CLAUDE.md", true)]
    #[case(&["vendor/**"], "/r/w/src/vendor/CLAUDE.md", false)]
    #[case(&["third_party/**/CLAUDE.md"], "/r/w/third_party/x/y/CLAUDE.md", true)]
    #[case(&["third_party/**/CLAUDE.md"], "/r/w/third_party/x/AGENTS.md", false)]
    #[case(&["AGENTS.md"], "/r/w/a/AGENTS.md", true)]
    #[case(&["AGENTS.md", "!/a/AGENTS.md"], "/r/w/a/AGENTS.md", false)]
    #[case(&["AGENTS.md", "!/a/AGENTS.md"], "/r/w/b/AGENTS.md", true)]
    #[case(&["AGENTS.md"], "/r/AGENTS.md", true)]
    #[case(&["../CLAUDE.md"], "/r/CLAUDE.md", true)]
    #[case(&["../CLAUDE.md"], "/r/w/CLAUDE.md", false)]
    #[case(&["/CLAUDE.md"], "/r/w/CLAUDE.md", true)]
    #[case(&["/CLAUDE.md"], "/r/CLAUDE.md", false)]
    #[case(&[], "/r/w/CLAUDE.md", false)]
    fn patterns_mean_what_they_mean_to_git(
        #[case] patterns: &[&str],
        #[case] file: &str,
        #[case] excluded: bool,
    ) {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        let mut notices = Vec::new();
        let excludes = Excludes::new(Path::new("/r/w"), &patterns, &mut notices);
        assert_eq!(excludes.contains(Path::new(file)), excluded);
        assert_eq!(notices, []);
    }

    #[test]
    fn a_bad_pattern_is_a_notice_and_the_others_count() {
        let mut notices = Vec::new();
        let patterns = ["a/[".to_owned(), "b".to_owned()];
        let excludes = Excludes::new(Path::new("/w"), &patterns, &mut notices);
        assert!(matches!(notices.as_slice(), [Notice::Pattern { .. }]));
        assert!(excludes.contains(Path::new("/w/b/CLAUDE.md")));
    }
}
