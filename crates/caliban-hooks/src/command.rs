//! Handlers that are programs: started in their own process group, given the event on standard
//! input, and gone with everything they started when they end, take too long or are let go.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How much of each output is kept, in bytes; the rest is read and forgotten.
const OUTPUT: usize = 1024 * 1024;
/// The most that is read at once.
const PIECE: usize = 16 * 1024;
/// How long the outputs are read after the end. Somebody who left the group may hold them open.
const DRAIN: Duration = Duration::from_secs(1);
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

/// Where programs run and what they see of the world.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// Programs run here whatever the session's directory is, so that a relative path means the
    /// same file wherever the model went.
    pub(crate) project_dir: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finished {
    pub(crate) ending: Ending,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Exited(i32),
    Killed { signal: i32 },
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

    /// Runs it to its end. Dropping the future kills its process group.
    pub(crate) async fn run(
        &self,
        surroundings: &Surroundings,
        input: &[u8],
    ) -> io::Result<Finished> {
        let mut child = self.command(surroundings).spawn()?;
        let group = Group::of(&child)?;
        let (stdin, pipes) = (
            child.stdin.take(),
            (child.stdout.take(), child.stderr.take()),
        );
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let write = async {
            if let Some(mut stdin) = stdin {
                // A program need not read what it is told.
                let _ = stdin.write_all(input).await;
            }
        };
        let read = async {
            tokio::join!(collect(pipes.0, &mut stdout), collect(pipes.1, &mut stderr));
        };
        let status = end(child, group, async { tokio::join!(write, read) }).await?;
        Ok(Finished {
            ending: ending(status),
            stdout,
            stderr,
        })
    }

    fn command(&self, surroundings: &Surroundings) -> Command {
        let project_dir = &surroundings.project_dir;
        let mut command = match self {
            Self::Arguments { program, args } => {
                let mut command = Command::new(filled_in(program, project_dir));
                command.args(args.iter().map(|arg| filled_in(arg, project_dir)));
                command
            }
            Self::Shell(text) => {
                let mut command = Command::new("/bin/sh");
                command.arg("-c").arg(text);
                command
            }
        };
        let environment = &surroundings.environment;
        command
            .current_dir(project_dir)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .envs(PROJECT_DIR.map(|name| (name, project_dir)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            // The group is killed first; this collects the process itself.
            .kill_on_drop(true);
        command
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

/// The processes of a handler; dropping it ends them.
struct Group(Pid);

impl Group {
    fn of(child: &Child) -> io::Result<Self> {
        child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
            .map(Self)
            .ok_or_else(|| io::Error::other("the process has no id"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // An empty group is what is wanted.
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

/// Waits for the end of a process while its input and outputs are served. The process's end is
/// what counts, whoever still holds its pipes.
async fn end<T>(
    mut child: Child,
    group: Group,
    transfer: impl Future<Output = T>,
) -> io::Result<ExitStatus> {
    let mut transfer = std::pin::pin!(transfer);
    tokio::select! {
        biased;
        status = child.wait() => {
            drop(group);
            let _ = timeout(DRAIN, transfer).await;
            status
        }
        _ = &mut transfer => {
            let status = child.wait().await;
            drop(group);
            status
        }
    }
}

/// Reads to the end, keeping the beginning. An output that fails has ended.
async fn collect(pipe: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut pipe) = pipe else {
        return;
    };
    let mut piece = vec![0; PIECE];
    while let Ok(length) = pipe.read(&mut piece).await
        && length > 0
    {
        let room = OUTPUT - kept.len();
        kept.extend_from_slice(&piece[..length.min(room)]);
    }
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Killed { signal },
        // Waiting reports only these two.
        (None, None) => Ending::Exited(-1),
    }
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
