//! Which commands run unconfined because the operator says so. A line does only if it is provably
//! one command and nothing in it could make it another.

use std::path::{Path, PathBuf};

use caliban_permissions::Wildcard;
use caliban_permissions::shell::{Certainty, Wrapping, strict};

/// `allow_unsandboxed_commands`.
#[derive(Debug, Clone, Default)]
pub struct Outside {
    written: Vec<String>,
    patterns: Vec<Pattern>,
    /// No program from here is the one that its name promises.
    writable: Vec<PathBuf>,
}

/// What a pattern is compared with: the program alone, or with a space in it the whole command.
#[derive(Debug, Clone)]
enum Pattern {
    Program(Wildcard),
    Command(Wildcard),
}

impl Outside {
    /// Patterns for programs that do not lie where confined ones may write.
    pub fn new(patterns: &[String], writable: &[PathBuf]) -> Self {
        let patterns = patterns.iter().map(|pattern| pattern.trim());
        let patterns: Vec<&str> = patterns.filter(|pattern| !pattern.is_empty()).collect();
        Self {
            written: patterns.iter().map(|&pattern| pattern.to_owned()).collect(),
            patterns: patterns
                .into_iter()
                .map(|pattern| {
                    if pattern.contains(' ') {
                        Pattern::Command(Wildcard::new(pattern))
                    } else {
                        Pattern::Program(Wildcard::new(pattern))
                    }
                })
                .collect(),
            writable: writable.to_vec(),
        }
    }

    /// As they are written.
    pub fn patterns(&self) -> Vec<String> {
        self.written.clone()
    }

    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether a line runs unconfined, its program looked for in these directories.
    pub fn covers(&self, line: &str, search: Option<&str>) -> bool {
        if self.patterns.is_empty() {
            return false;
        }
        let Ok(script) = strict(line) else {
            return false;
        };
        let [command] = script.commands.as_slice() else {
            return false;
        };
        let is_plain = command.wrapping == Wrapping::Plain
            && command.inner.is_empty()
            && command.assignments.is_empty()
            && command.redirections.is_empty()
            && command.hazards.is_empty();
        let is_known =
            |word: &caliban_permissions::shell::Word| word.certainty == Certainty::Literal;
        if !is_plain || !command.words.iter().all(is_known) {
            return false;
        }
        let words: Vec<&str> = command
            .words
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        let Some((program, _)) = words.split_first() else {
            return false;
        };
        let whole = words.join(" ");
        let is_listed = self.patterns.iter().any(|pattern| match pattern {
            Pattern::Program(glob) => glob.matches(program),
            Pattern::Command(glob) => glob.matches(&whole),
        });
        is_listed && self.is_the_systems(program, search)
    }

    /// Whether the program that a shell would find is none that a confined one may have written.
    fn is_the_systems(&self, program: &str, search: Option<&str>) -> bool {
        if program.contains('/') {
            return Path::new(program).is_absolute() && self.is_elsewhere(Path::new(program));
        }
        for directory in std::env::split_paths(search.unwrap_or_default()) {
            // A relative or empty entry is wherever the command runs.
            if !directory.is_absolute() {
                return false;
            }
            let candidate = directory.join(program);
            if candidate.is_file() {
                return self.is_elsewhere(&candidate);
            }
        }
        false
    }

    fn is_elsewhere(&self, path: &Path) -> bool {
        let is_writable = |path: &Path| self.writable.iter().any(|root| path.starts_with(root));
        match path.canonicalize() {
            Ok(real) => !is_writable(path) && !is_writable(&real),
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const SEARCH: Option<&str> = Some("/usr/bin:/bin");

    fn outside() -> Outside {
        Outside::new(
            &[
                "cat".into(),
                "l*".into(),
                "echo deploy *".into(),
                " ".into(),
            ],
            &["/tmp".into()],
        )
    }

    #[rstest]
    #[case("cat /etc/passwd", true)]
    #[case("ls -l", true)]
    #[case("cat 'a b'", true)]
    #[case::another_program("rm x", false)]
    #[case::a_chain("cat x; rm y", false)]
    #[case::a_pipe("cat x | sh", false)]
    #[case::a_substitution("cat $(rm y)", false)]
    #[case::a_variable("cat $X", false)]
    #[case::an_assignment("LD_PRELOAD=x cat y", false)]
    #[case::a_redirection("cat x > y", false)]
    #[case::input("cat < y", false)]
    #[case::in_background("cat x & rm y", false)]
    #[case::two_lines("cat x\nrm y", false)]
    #[case::a_wrapper("env cat x", false)]
    #[case::not_a_line("cat 'x", false)]
    #[case::a_relative_program("./cat x", false)]
    #[case::an_absolute_one("/bin/cat x", false)]
    #[case::nothing("", false)]
    fn only_one_plain_command_runs_outside(#[case] line: &str, #[case] expected: bool) {
        assert_eq!(outside().covers(line, SEARCH), expected);
    }

    #[test]
    fn a_program_that_could_have_been_planted_stays_inside() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        std::fs::write(folder.path().join("cat"), "").unwrap();
        let search = format!("{}:/usr/bin:/bin", folder.path().display());
        assert!(!outside().covers("cat x", Some(&search)));
        assert!(!outside().covers("cat x", Some(".:/usr/bin:/bin")));
        assert!(!outside().covers("cat x", None));
    }

    #[test]
    fn a_pattern_with_a_space_is_about_the_whole_command() {
        let search = SEARCH;
        assert!(outside().covers("echo deploy now", search));
        assert!(!outside().covers("echo remove now", search));
    }

    #[test]
    fn options_that_run_programs_stay_inside() {
        let git = Outside::new(&["git".into()], &[]);
        assert!(git.covers("git status", SEARCH));
        assert!(!git.covers("git -c core.pager=x status", SEARCH));
        assert!(!git.covers("git diff --ext-diff", SEARCH));
    }
}
