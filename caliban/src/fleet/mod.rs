//! Agents in the background, from the command line.

mod answer;
mod attach;
mod daemon;
mod frames;
mod hosting;
mod listing;
mod logs;
mod profiles;
mod seat;
mod sender;
mod worker;
mod world;

use std::path::PathBuf;
use std::time::Duration;

use caliban_fleet::{
    AgentDirectory, AgentId, AgentView, Client, ClientError, Isolation, KillHow, Places, Refusal,
    RefusedBecause, Registry, Resumption, RmWhich, Starter, Task, Unresolved, sweep_orphans,
};
use caliban_harness::{Configuration, RunOptions, sweep_worktrees};
use caliban_model::CancellationToken;
use jiff::{SignedDuration, Timestamp};

pub(crate) use daemon::{daemon_command, daemon_main, is_daemon_name};
pub(crate) use frames::Reader;
pub(crate) use hosting::host;
pub(crate) use listing::{fleet_row, row};
pub(crate) use sender::Sender;
pub(crate) use worker::worker_main;

use crate::args::{AgentsCommand, IsolationArgs, SpawnArgs};
use crate::console::{Console, note};
use crate::exit::Failure;

/// The agents of a repository, and whoever asks for them.
pub(crate) struct Fleet<'a> {
    options: &'a RunOptions,
    configuration: &'a Configuration,
    places: Places,
}

impl<'a> Fleet<'a> {
    pub(crate) fn new(options: &'a RunOptions, configuration: &'a Configuration) -> Self {
        Self {
            options,
            configuration,
            places: Places::new(&configuration.locations, &configuration.workspace),
        }
    }

    /// The daemon, which is started where there is none.
    async fn client(&self) -> Result<Client, Failure> {
        let starter = starter(self.configuration);
        Ok(Client::find_or_start(&self.places, &starter).await?)
    }

    fn registry(&self) -> Registry {
        Registry::of(&self.places.agents, &self.places.root)
    }

    /// The agent that a text names.
    fn find(&self, text: &str) -> Result<(AgentId, AgentDirectory), Failure> {
        let registry = self.registry();
        let id = registry.find(text)?;
        let directory = registry.directory(&id);
        Ok((id, directory))
    }

    pub(crate) async fn run(
        &self,
        command: AgentsCommand,
        cancel: &CancellationToken,
        console: &mut Console,
    ) -> Result<(), Failure> {
        match command {
            AgentsCommand::List { all, json } => self.list(all, json, console).await,
            AgentsCommand::Spawn(args) => self.spawn(args, console).await,
            AgentsCommand::Attach(args) => self.attach(&args, cancel, console).await,
            AgentsCommand::Logs(args) => self.logs(&args, cancel, console).await,
            AgentsCommand::Kill(args) => {
                let how = if args.now {
                    KillHow::Now
                } else {
                    KillHow::Politely
                };
                console.write(&self.stop(&args.id, how).await?)
            }
            AgentsCommand::Respawn(args) => {
                let (world, limits) = (self.world(), self.limits()?);
                let before = self.worktree_of(&args.id);
                let view = self
                    .client()
                    .await?
                    .respawn(&args.id, world, limits)
                    .await?;
                self.end_worktree(before.as_deref()).await;
                console.write(&format!("{}\n", view.id))
            }
            AgentsCommand::Rm(args) => {
                let which = if args.force {
                    RmWhich::Any
                } else {
                    RmWhich::Ended
                };
                let view = self.client().await?.rm(&args.id, which).await?;
                self.end_worktree(view.worktree.as_deref()).await;
                console.write(&format!("removed {}\n", view.id))
            }
            AgentsCommand::Resume(args) => {
                let ids = match args.id {
                    Some(id) => vec![id],
                    None => self.crashed()?,
                };
                if ids.is_empty() {
                    return console.write("no agent has crashed\n");
                }
                for id in ids {
                    let wish = match &args.prompt {
                        Some(prompt) => Resumption::Prompt(prompt.clone()),
                        None => Resumption::AsItWas,
                    };
                    let view = self.resume(&id, wish).await?;
                    console.write(&said(&view))?;
                }
                Ok(())
            }
            AgentsCommand::Answer(args) => self.answer(&args, console).await,
            AgentsCommand::Prune { days } => self.prune(days, console).await,
            AgentsCommand::Profiles { json } => {
                profiles::profiles(json, self.options, self.configuration, console)
            }
            AgentsCommand::Watch { json } => self.watch(json, cancel, console).await,
        }
    }

    async fn stop(&self, id: &str, how: KillHow) -> Result<String, Failure> {
        let grace = self.configuration.settings().fleet.grace();
        let view = self.client().await?.kill(id, how, grace).await?;
        Ok(said(&view))
    }

    /// Ends an agent as `kill` does, and says what became of it.
    pub(crate) async fn stopped(&self, id: &str) -> Result<String, Failure> {
        self.stop(id, KillHow::Politely).await
    }

    async fn spawn(&self, args: SpawnArgs, console: &mut Console) -> Result<(), Failure> {
        let prompt = crate::prompt::task(args.prompt, std::io::stdin())?;
        let isolation = self.isolation(&args.isolation).await?;
        let view = self.start(prompt, args.label, isolation).await?;
        if args.json {
            return console.write(&listing::json_line(&view));
        }
        console.write(&format!("{}\n", view.id))
    }

    /// `--bg`: starts an agent, prints its id and says how to reach it.
    pub(crate) async fn detach(
        &self,
        task: String,
        isolation: &IsolationArgs,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let prompt = crate::prompt::task(task, std::io::stdin())?;
        let isolation = self.isolation(isolation).await?;
        let view = self.start(prompt, None, isolation).await?;
        note(&format!(
            "`caliban attach {0}` shows what it does, `caliban kill {0}` ends it",
            view.id
        ));
        console.write(&format!("{}\n", view.id))
    }

    /// The worktree of the agent that a text names.
    fn worktree_of(&self, text: &str) -> Option<String> {
        let (_, directory) = self.find(text).ok()?;
        directory.spec().ok()?.worktree()
    }

    async fn start(
        &self,
        prompt: String,
        label: Option<String>,
        isolation: Isolation,
    ) -> Result<AgentView, Failure> {
        if prompt.trim().is_empty() {
            return Err(Failure::Usage("the task is empty".to_owned()));
        }
        let (world, limits) = (self.world(), self.limits()?);
        let task = Task {
            isolation,
            ..self.task(prompt, label)?
        };
        Ok(self.client().await?.spawn(task, world, limits).await?)
    }

    async fn resume(&self, id: &str, wish: Resumption) -> Result<AgentView, Failure> {
        let (world, limits) = (self.world(), self.limits()?);
        let mut client = self.client().await?;
        Ok(client.resume(id, wish, world, limits).await?)
    }

    /// The ids of those that crashed.
    fn crashed(&self) -> Result<Vec<String>, Failure> {
        let views = self
            .registry()
            .views()
            .map_err(|error| self.unread(&error))?;
        let crashed = views
            .iter()
            .filter(|view| view.state == caliban_fleet::Phase::Crashed);
        Ok(crashed.map(|view| view.id.to_string()).collect())
    }

    async fn prune(&self, days: u32, console: &mut Console) -> Result<(), Failure> {
        let before = Timestamp::now() - SignedDuration::from_hours(i64::from(days) * 24);
        let mut client = self.client().await?;
        let mut removed = 0;
        for view in client.list().await? {
            if view.state.is_alive() || view.since > before {
                continue;
            }
            client.rm(view.id.as_str(), RmWhich::Ended).await?;
            self.end_worktree(view.worktree.as_deref()).await;
            console.write(&format!("removed {}\n", view.id))?;
            removed += 1;
        }
        removed += self.tidy(console).await?;
        if removed == 0 {
            console.write("nothing to remove\n")?;
        }
        Ok(())
    }

    /// Ends what killed agents left behind, and says so; how much that was.
    async fn tidy(&self, console: &mut Console) -> Result<usize, Failure> {
        let orphans = sweep_orphans(&self.places);
        let mut told: Vec<String> = orphans.iter().map(ToString::to_string).collect();
        told.extend(sweep_worktrees(self.options, self.configuration).await?);
        for line in &told {
            console.write(&format!("{line}\n"))?;
        }
        Ok(told.len())
    }

    fn unread(&self, error: &std::io::Error) -> Failure {
        Failure::Runtime(format!("`{}`: {error}", self.places.agents.display()))
    }
}

/// What a person is told of an agent that something was done to.
fn said(view: &AgentView) -> String {
    let reason = view.reason.as_deref();
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    format!("{} {}{reason}\n", view.id, view.state.as_str())
}

/// How a daemon is started: this very program, which sees nothing that could be a secret.
fn starter(configuration: &Configuration) -> Starter {
    const SEEN: [&str; 12] = [
        "HOME",
        "PATH",
        "TMPDIR",
        "LANG",
        "LC_ALL",
        "XDG_RUNTIME_DIR",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "CALIBAN_DAEMON_RUNTIME_DIR",
        "CALIBAN_KEEP_WORKTREES",
    ];
    let variables = configuration.process.variables.iter();
    Starter {
        executable: executable(),
        environment: variables
            .filter(|(name, _)| SEEN.iter().any(|seen| name == *seen))
            .cloned()
            .collect(),
    }
}

/// This very program, also when its file is replaced while it runs.
pub(crate) fn executable() -> PathBuf {
    if cfg!(target_os = "linux") {
        return PathBuf::from("/proc/self/exe");
    }
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("caliban"))
}

/// How long a daemon stays with nothing to do.
const LINGER: Duration = Duration::from_mins(1);

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(refusal) => refusal.into(),
            other => Self::Runtime(other.to_string()),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.message;
        match refusal.why {
            RefusedBecause::Unknown => Self::NoInput(message),
            RefusedBecause::Ambiguous
            | RefusedBecause::Running
            | RefusedBecause::Ended
            | RefusedBecause::Invalid => Self::Usage(message),
            RefusedBecause::Limit | RefusedBecause::Version | RefusedBecause::Failed => {
                Self::Runtime(message)
            }
        }
    }
}

impl From<Unresolved> for Failure {
    fn from(error: Unresolved) -> Self {
        match error {
            Unresolved::Unknown(_) => Self::NoInput(error.to_string()),
            Unresolved::Ambiguous { .. } => Self::Usage(error.to_string()),
        }
    }
}
