//! What is done outside of the face, off its loop; each comes back as one message.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use caliban_compose::{DraftFile, History};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::mpsc;

use crate::app::{App, Done, Effect};
use crate::clipboard;
use crate::host::Host;
use crate::panel_errands;
use crate::paths;
use crate::preferences::StatusCommand;
use crate::programs::{Printed, Programs};
use crate::setup::Setup;

/// The most that is read of what a status program writes.
const STATUS: usize = 4 * 1024;
/// How long prompts of all projects are looked for.
const HISTORIES: Duration = Duration::from_secs(2);

/// Who does it.
pub(crate) struct Errands {
    host: Arc<dyn Host>,
    done: mpsc::Sender<Done>,
    setup: Setup,
    status: Option<StatusCommand>,
    status_runs: Option<tokio::task::JoinHandle<()>>,
    files: Option<String>,
    programs: Programs,
}

impl Errands {
    pub(crate) fn new(host: Arc<dyn Host>, done: mpsc::Sender<Done>, setup: Setup) -> Self {
        Self {
            host,
            done,
            setup,
            status: None,
            status_runs: None,
            files: None,
            programs: Programs::default(),
        }
    }

    /// Begins what needs no terminal.
    #[expect(clippy::too_many_lines, reason = "one arm for each errand")]
    pub(crate) fn run(&mut self, effect: Effect) {
        let (host, done) = (Arc::clone(&self.host), self.done.clone());
        match effect {
            Effect::Look => apart(done, move || Done::Looked(host.look().map(Box::new))),
            Effect::LookAgain => apart(done, move || Done::LookedAgain(host.look().map(Box::new))),
            Effect::Glimpse => apart(done, move || Done::Glimpsed(host.glimpse())),
            Effect::Trust => apart(done, move || Done::Trusted(host.trust())),
            Effect::JudgeImports(verdict) => {
                apart(done, move || {
                    Done::ImportsJudged(host.judge_imports(verdict))
                });
            }
            Effect::Open(which) => {
                tokio::spawn(async move {
                    let opened = Arc::clone(&host).open(which).await;
                    let result = match opened {
                        Ok(opened) => Done::Opened(Ok(Box::new(opened))),
                        Err(error) => match host.missing_key() {
                            Some(provider) => Done::KeyMissing { provider, error },
                            None => Done::Opened(Err(error)),
                        },
                    };
                    let _ = done.send(result).await;
                });
            }
            Effect::ListFiles => {
                let cwd = self.setup.cwd.clone();
                match self.files.clone() {
                    None => apart(done, move || Done::Files(paths::listed(&cwd).into())),
                    Some(command) => {
                        let programs = self.programs.clone();
                        tokio::spawn(async move {
                            let files = paths::printed(&command, &programs).await;
                            let _ = done.send(Done::Files(files.into())).await;
                        });
                    }
                }
            }
            Effect::ListSessions => apart(done, move || Done::Sessions(host.sessions())),
            Effect::ListModels(desk) => {
                tokio::spawn(async move {
                    let models = desk.models().await;
                    let _ = done.send(Done::Models(models)).await;
                });
            }
            Effect::ListPoints(desk) => apart(done, move || Done::Points(desk.points())),
            Effect::PreviewRewind(desk, rewind) => {
                apart(done, move || Done::Previewed(rewind, desk.preview(rewind)));
            }
            Effect::Panel(effect) => panel_errands::run(effect, host, done),
            Effect::LoadHistories(root) => apart(done, move || {
                let began = std::time::Instant::now();
                Done::Histories(History::all_projects(&root, || {
                    if began.elapsed() > HISTORIES {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                }))
            }),
            Effect::SaveDraft(text) => {
                if let Some(path) = self.setup.draft_file.clone() {
                    tokio::task::spawn_blocking(move || keep_draft(path, text.as_deref()));
                }
            }
            Effect::SaveRules(desk, rules, verdict) => apart(done, move || {
                let mut saved = Err("no rule was written".to_owned());
                for rule in rules {
                    saved = desk.save_rule(&rule).map(|changed| (rule, changed));
                    if saved.is_err() {
                        break;
                    }
                }
                Done::RulesSaved(verdict, saved)
            }),
            Effect::ReadClipboard => {
                let programs = self.programs.clone();
                tokio::spawn(async move {
                    let read = clipboard::read(&*host, &programs).await;
                    let _ = done.send(Done::Clipboard(read)).await;
                });
            }
            Effect::ReadImage(path) => apart(done, move || {
                Done::Clipboard(clipboard::read_file(&path, &*host))
            }),
            Effect::Picture { id, image, dots } => apart(done, move || Done::Picture {
                id,
                drawn: host.picture(&image, dots),
            }),
            Effect::ReadTheme(name) => apart(done, move || Done::Theme {
                read: host.theme(&name),
                name,
            }),
            Effect::RunStatus => self.run_status(),
            Effect::Configure {
                status,
                files,
                programs,
            } => {
                self.status = status;
                self.programs = programs;
                self.files = files;
            }
            Effect::Send(_)
            | Effect::Bytes(_)
            | Effect::EditText(_)
            | Effect::EditInput { .. }
            | Effect::EditMemory { .. }
            | Effect::ShowText(_)
            | Effect::Dump(_)
            | Effect::HandOver { .. }
            | Effect::Suspend
            | Effect::Repaint
            | Effect::CaptureMouse(_)
            | Effect::DrawOn
            | Effect::Copy(_)
            | Effect::Leave(_)
            | Effect::GiveUp
            | Effect::TalkInLines => {}
        }
    }

    /// The operator's program, one at a time; what it says too late does not count.
    fn run_status(&mut self) {
        let Some(status) = self.status.clone() else {
            return;
        };
        if self
            .status_runs
            .as_ref()
            .is_some_and(|run| !run.is_finished())
        {
            return;
        }
        let (done, programs) = (self.done.clone(), self.programs.clone());
        self.status_runs = Some(tokio::spawn(async move {
            let (line, patience) = (&status.command, status.patience);
            let text = match programs.shell(line, STATUS, patience).await {
                Printed::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).trim().to_owned()),
                Printed::Missing | Printed::Nothing => None,
            };
            let text = text.filter(|text| !text.is_empty());
            let _ = done.send(Done::Status(text)).await;
        }));
    }

    /// Lets a program have the terminal, with everything that the operator's own programs see.
    pub(crate) async fn hand_over(
        &self,
        program: &Path,
        arguments: &[OsString],
    ) -> Result<(), String> {
        let ended = Command::new(program)
            .args(arguments)
            .current_dir(&self.setup.cwd)
            .status()
            .await;
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("it ended with {status}")),
            Err(error) => Err(format!("`{}`: {error}", program.display())),
        }
    }

    /// Lets the operator change a text in his editor.
    pub(crate) async fn edit(&self, text: &str) -> Result<String, String> {
        let variable = |name: &str| {
            let value = (self.setup.environment)(name);
            value.filter(|value| !value.trim().is_empty())
        };
        let editor = variable("VISUAL")
            .or_else(|| variable("EDITOR"))
            .unwrap_or_else(|| "vi".to_owned());
        let mut words = editor.split_whitespace();
        let program = words.next().unwrap_or("vi").to_owned();
        let file = tempfile::Builder::new()
            .prefix("caliban-")
            .suffix(".md")
            .tempfile()
            .map_err(|error| format!("no file for the editor: {error}"))?;
        std::fs::write(file.path(), text)
            .map_err(|error| format!("`{}`: {error}", file.path().display()))?;
        let status = Command::new(&program)
            .args(words)
            .arg(file.path())
            .current_dir(&self.setup.cwd)
            .status()
            .await
            .map_err(|error| {
                format!("the editor `{program}` does not start: {error}; set VISUAL or EDITOR")
            })?;
        if !status.success() {
            return Err(format!(
                "the editor `{program}` failed; the draft is as it was"
            ));
        }
        std::fs::read_to_string(file.path())
            .map_err(|error| format!("`{}`: {error}", file.path().display()))
    }

    /// Copies by a program of this machine, where there is one; the terminal was asked already.
    pub(crate) fn copy(&self, text: String) {
        let environment = Arc::clone(&self.setup.environment);
        let variables = self.programs.environment.clone();
        tokio::spawn(async move {
            for words in clipboard::writers(&*environment) {
                let Some((program, arguments)) = words.split_first() else {
                    continue;
                };
                // It stays behind to hand the text out, so that nobody may end it with us.
                let child = Command::new(program)
                    .args(arguments)
                    .env_clear()
                    .envs(variables.iter().cloned())
                    .stdin(Stdio::piped())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn();
                if let Ok(mut child) = child {
                    if let Some(mut stdin) = child.stdin.take() {
                        let _ = stdin.write_all(text.as_bytes()).await;
                    }
                    let _ = child.wait().await;
                    return;
                }
            }
        });
    }

    /// What is written and not sent is kept for the next time.
    pub(crate) fn save_draft(&self, app: &App) {
        if let Some(path) = self.setup.draft_file.clone() {
            let text = app.unsent_text();
            keep_draft(path, text.as_deref());
        }
    }
}

fn keep_draft(path: PathBuf, text: Option<&str>) {
    let file = DraftFile::new(path);
    // A draft that cannot be kept is no reason to stop.
    let _ = match text {
        Some(text) => file.save(text),
        None => file.remove(),
    };
}

/// Does something on a thread of its own.
pub(crate) fn apart(done: mpsc::Sender<Done>, errand: impl FnOnce() -> Done + Send + 'static) {
    tokio::task::spawn_blocking(move || {
        let _ = done.blocking_send(errand());
    });
}
