//! Handlers that are programs: given the event on standard input, and gone with everything they
//! started when they end, take too long or are let go.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_process::{
    Beyond, Bound, Bounds, CaptureError, Captured, Confiner, Guard, Invocation, Keepsake,
};

/// How much of each output is kept.
const KEPT: Bound = Bound {
    bytes: 1024 * 1024,
    beyond: Beyond::Forget,
};
/// Names of the project's directory in the environment and in arguments.
const PROJECT_DIR: [&str; 2] = ["CALIBAN_PROJECT_DIR", "CLAUDE_PROJECT_DIR"];

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Program {
    /// A program and its arguments, in which the project's directory is filled in.
    Arguments { program: String, args: Vec<String> },
    /// Text for `/bin/sh`, exactly as the operator wrote it.
    Shell(String),
}

/// Variables of those who brought a program along, beside the environment of all.
pub(crate) type OwnVariables = Arc<[(String, String)]>;

/// Whether a program runs in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confinement {
    Open,
    /// Or not at all.
    Sandboxed,
}

/// Where programs run and what they see of the world.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// Programs run here whatever the session's directory is, so that a relative path means the
    /// same file wherever the model went.
    pub(crate) project_dir: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) guard: Guard,
    /// Who confines those that ask for it.
    pub(crate) confiner: Option<Arc<dyn Confiner>>,
}

impl Program {
    /// Reads a handler's command. Alone, it is a program if it can be nothing else, and text for
    /// the shell otherwise; with arguments it is always a program.
    pub(crate) fn new(command: &str, args: Option<Vec<String>>) -> Self {
        match args {
            Some(args) => Self::Arguments {
                program: command.to_owned(),
                args,
            },
            None if is_plain(command) => Self::Arguments {
                program: command.to_owned(),
                args: Vec::new(),
            },
            None => Self::Shell(command.to_owned()),
        }
    }

    /// What to call it in messages.
    pub(crate) fn label(&self) -> &str {
        match self {
            Self::Arguments { program, .. } => program,
            Self::Shell(text) => text,
        }
    }

    /// Runs it to its end. Dropping the future ends it and what it started.
    pub(crate) async fn run(
        &self,
        confinement: Confinement,
        own: &OwnVariables,
        surroundings: &Surroundings,
        input: &[u8],
    ) -> Result<Captured, CaptureError> {
        let bounds = Bounds {
            stdout: KEPT,
            stderr: KEPT,
        };
        let invocation = self.invocation(own, surroundings);
        let (invocation, _kept) = match (confinement, &surroundings.confiner) {
            (Confinement::Open, _) => (invocation, Keepsake::default()),
            (Confinement::Sandboxed, Some(confiner)) => {
                confiner.confine(invocation).map_err(CaptureError::Start)?
            }
            (Confinement::Sandboxed, None) => {
                let error = "it has `sandbox = true`, and `sandbox.enabled` is not set";
                return Err(CaptureError::Start(io::Error::other(error)));
            }
        };
        invocation.capture(&surroundings.guard, input, bounds).await
    }

    fn invocation(&self, own: &OwnVariables, surroundings: &Surroundings) -> Invocation {
        let project_dir = &surroundings.project_dir;
        let (program, args) = match self {
            Self::Arguments { program, args } => (
                filled_in(program, project_dir),
                args.iter().map(|arg| filled_in(arg, project_dir)).collect(),
            ),
            Self::Shell(text) => ("/bin/sh".into(), vec!["-c".into(), text.into()]),
        };
        let mut environment = surroundings.environment.clone();
        environment.extend(PROJECT_DIR.map(|name| (name.into(), project_dir.into())));
        let own = own.iter();
        environment.extend(own.map(|(name, value)| (name.into(), value.into())));
        Invocation {
            program,
            args,
            directory: project_dir.clone(),
            environment,
        }
    }
}

/// Whether a command can only be the path or name of a program: nothing in it means anything to a
/// shell, but for the project's directory at its start.
fn is_plain(command: &str) -> bool {
    let path = PROJECT_DIR
        .iter()
        .find_map(|name| command.strip_prefix(&format!("${{{name}}}")))
        .unwrap_or(command);
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+@%:,".contains(letter);
    path.chars().all(is_plain)
}

/// Replaces `${CALIBAN_PROJECT_DIR}` and `$CLAUDE_PROJECT_DIR` in all four spellings.
fn filled_in(text: &str, project_dir: &Path) -> OsString {
    let mut filled = OsString::new();
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        let (before, reference) = rest.split_at(dollar);
        filled.push(before);
        if let Some(after) = after_project_dir(reference) {
            filled.push(project_dir);
            rest = after;
        } else {
            filled.push("$");
            rest = &reference[1..];
        }
    }
    filled.push(OsStr::new(rest));
    filled
}

/// What follows a reference to the project's directory.
fn after_project_dir(reference: &str) -> Option<&str> {
    PROJECT_DIR.iter().find_map(|name| {
        let name_continues = |letter: char| letter.is_alphanumeric() || letter == '_';
        reference.strip_prefix(&format!("${{{name}}}")).or_else(|| {
            let after = reference.strip_prefix('$')?.strip_prefix(name)?;
            (!after.starts_with(name_continues)).then_some(after)
        })
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/usr/local/bin/audit")]
    #[case("guard.sh")]
    #[case("${CALIBAN_PROJECT_DIR}/.caliban/hooks/guard-rm.sh")]
    #[case("${CLAUDE_PROJECT_DIR}/x")]
    fn a_path_is_a_program(#[case] command: &str) {
        let program = Program::new(command, None);
        assert!(matches!(program, Program::Arguments { args, .. } if args.is_empty()));
    }

    #[rstest]
    #[case("python3 ./guard.py --x")]
    #[case("\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/x.sh")]
    #[case("~/hook.sh")]
    #[case("a;b")]
    #[case("$HOME/x")]
    fn anything_else_is_for_the_shell(#[case] command: &str) {
        assert_eq!(
            Program::new(command, None),
            Program::Shell(command.to_owned())
        );
        let with_args = Program::new(command, Some(Vec::new()));
        assert!(matches!(with_args, Program::Arguments { .. }));
    }

    #[rstest]
    #[case("${CALIBAN_PROJECT_DIR}/a", "/p q/a")]
    #[case("$CLAUDE_PROJECT_DIR/a", "/p q/a")]
    #[case("x=$CALIBAN_PROJECT_DIR:${CLAUDE_PROJECT_DIR}", "x=/p q:/p q")]
    #[case(
        "$CALIBAN_PROJECT_DIRS $HOME ${HOME} $",
        "$CALIBAN_PROJECT_DIRS $HOME ${HOME} $"
    )]
    fn only_the_project_is_filled_in(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(filled_in(text, Path::new("/p q")), expected);
    }
}
