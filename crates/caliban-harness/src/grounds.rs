//! Worktrees for sub-agents of a session: made for a call, anchored for rules and tools, and left
//! without losing what was done.

use std::fmt::{Debug, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use caliban_agent::{Agent, Boundary, Event, HookEvent, Tool, TypedTool, Workspace};
use caliban_sandbox::Sandbox;
use caliban_settings::variables::names;
use caliban_tools::{
    Bash, BashOutput, Ground, GroundWish, Grounds, JobLimits, Jobs, KillShell, Occupant, Shell,
};
use caliban_worktrees::{Base, Ending, Keep, Name, Repository, Request, Work, Worktree};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::task::TaskTracker;

use crate::configuration::Configuration;
use crate::gate::Gate;
use crate::git::git;
use crate::hosts::HostQuestions;
use crate::notice_sink::NoticeSink;
use crate::options::ToolOptions;
use crate::sandbox::{Bounds, worktree_sandbox};
use crate::seat::Seat;
use crate::servers::Onlookers;
use crate::system_prompt::sub_agent_prompt;

/// Where files of the parent cannot be changed from: the name that tools give as the reason.
const ISOLATION: &str = "isolation";

/// What is needed to make worktrees, known before there is a session.
#[derive(Debug, Clone)]
pub struct GroundParts {
    pub(crate) configuration: Configuration,
    pub(crate) options: ToolOptions,
    /// Who is asked about hosts that nobody listed.
    pub(crate) hosts: Arc<HostQuestions>,
}

/// The worktrees of a session.
#[derive(Debug)]
pub(crate) struct WorktreeGrounds {
    pub(crate) parts: GroundParts,
    pub(crate) session_id: Arc<str>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) workspace: Workspace,
    /// Whose environment commands have.
    pub(crate) shell: Arc<Shell>,
    pub(crate) jobs_directory: PathBuf,
    pub(crate) onlookers: Onlookers,
    pub(crate) notice_sink: NoticeSink,
    /// What is being left when nobody waits for it.
    pub(crate) leaving: TaskTracker,
    /// Whether what earlier sessions left was looked at.
    pub(crate) swept: tokio::sync::Mutex<Swept>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Swept {
    #[default]
    NotYet,
    Once,
}

/// The repository of a configuration's workspace.
pub async fn repository(
    configuration: &Configuration,
) -> Result<Repository, caliban_worktrees::WorktreeError> {
    let git = git(configuration).await;
    Repository::open(git, configuration.locations.data_dir()).await
}

/// How [`WorktreeGrounds`] are handed to a tool.
#[derive(Debug)]
pub(crate) struct SessionGrounds(pub(crate) Arc<WorktreeGrounds>);

impl Grounds for SessionGrounds {
    fn prepare(
        &self,
        occupant: Occupant,
        wish: GroundWish,
    ) -> BoxFuture<'_, Result<Box<dyn Ground>, String>> {
        let grounds = Arc::clone(&self.0);
        async move {
            let ground = Occupied::new(grounds, occupant, wish).await?;
            Ok(Box::new(ground) as Box<dyn Ground>)
        }
        .boxed()
    }
}

impl WorktreeGrounds {
    fn rebuildable(&self) -> Vec<String> {
        let settings = self.parts.configuration.settings();
        settings.worktree.rebuildable.clone()
    }

    /// What is asked for, by the call before the settings.
    fn request(&self, occupant: &Occupant, wish: GroundWish) -> Result<Request, String> {
        let configuration = &self.parts.configuration;
        let settings = &configuration.settings().worktree;
        let base = wish.base_ref.as_ref().or(settings.base_ref.as_ref());
        let kept = configuration
            .environment()
            .is_on(names::CALIBAN_KEEP_WORKTREES)
            || wish.keep_on_exit.or(settings.keep_on_exit) == Some(true);
        let name = wish.name.as_deref().map(str::parse::<Name>).transpose();
        Ok(Request {
            purpose: occupant.purpose.clone(),
            name: name.map_err(|error| error.to_string())?,
            base: base
                .map(|text| Base::from(text.as_str()))
                .unwrap_or_default(),
            sparse_paths: wish
                .sparse_paths
                .unwrap_or_else(|| settings.sparse_paths.clone()),
            linked: wish
                .symlink_directories
                .unwrap_or_else(|| settings.symlink_directories.clone()),
            session: self.session_id.to_string(),
            agent: None,
            keep: if kept { Keep::Always } else { Keep::UntilDone },
        })
    }

    /// Ends what sessions left that were ended, once, and says so.
    async fn sweep(&self, repository: &Repository) {
        let mut swept = self.swept.lock().await;
        if *swept == Swept::Once {
            return;
        }
        *swept = Swept::Once;
        let ended = repository.sweep(&self.rebuildable()).await;
        for (entry, ending) in ended.unwrap_or_default() {
            let became = match &ending {
                Ok(ending) => became(ending),
                Err(error) => error.to_string(),
            };
            self.say(format!(
                "the worktree `{}` of a session that was ended: {became}",
                entry.name
            ));
        }
    }

    fn say(&self, message: String) {
        self.notice_sink.say(Event::Notice {
            subtype: "worktree".into(),
            message,
        });
    }

    /// Waits for what is being left, for a moment.
    pub(crate) async fn settle(&self, patience: std::time::Duration) {
        self.leaving.close();
        let _ = tokio::time::timeout(patience, self.leaving.wait()).await;
    }
}

/// A worktree that a sub-agent works in.
#[derive(Debug)]
struct Occupied {
    grounds: Arc<WorktreeGrounds>,
    call_id: Arc<str>,
    workspace: Workspace,
    jobs: Arc<Jobs>,
    shell: Arc<Shell>,
    sandbox: Option<Arc<Sandbox>>,
    briefing: String,
    /// Taken by whoever leaves.
    worktree: Mutex<Option<Worktree>>,
}

impl Occupied {
    async fn new(
        grounds: Arc<WorktreeGrounds>,
        occupant: Occupant,
        wish: GroundWish,
    ) -> Result<Self, String> {
        let told = |error: caliban_worktrees::WorktreeError| {
            format!("There is no worktree for the sub-agent: {error}. It was not started.")
        };
        let configuration = &grounds.parts.configuration;
        let repository = repository(configuration).await.map_err(told)?;
        grounds.sweep(&repository).await;
        let request = grounds.request(&occupant, wish)?;
        let worktree = repository.create(request).await.map_err(told)?;
        let path = worktree.path().to_owned();
        let GroundParts { options, hosts, .. } = &grounds.parts;
        let sandbox = worktree_sandbox(options, configuration, &path, hosts).await;
        let sandbox = match sandbox {
            Ok(sandbox) => sandbox,
            Err(error) => {
                let reason = told_failure(&error.to_string());
                finish(worktree, &grounds.rebuildable()).await;
                return Err(reason);
            }
        };
        let moved = grounds.workspace.moved(&path);
        let boundary = Aside {
            repository: repository.root().to_owned(),
            worktree: path.clone(),
            links: worktree
                .entry
                .links
                .iter()
                .map(|link| link.target.clone())
                .collect(),
            inner: match &sandbox {
                Some(sandbox) => Some(Arc::new(Bounds(Arc::clone(sandbox))) as _),
                None => grounds.workspace.boundary().cloned(),
            },
            _seat: None,
        };
        let workspace = match moved {
            Ok(workspace) => workspace.with_boundary(Some(Arc::new(boundary))),
            Err(error) => {
                finish(worktree, &grounds.rebuildable()).await;
                return Err(told_failure(&error.to_string()));
            }
        };
        let shell = Shell::clone(&grounds.shell).with_sandbox(sandbox.clone());
        let shell = Arc::new(shell);
        let jobs = Jobs::new(
            Arc::clone(&shell),
            grounds.jobs_directory.clone(),
            JobLimits::default(),
        );
        grounds
            .gate
            .settle_in(Arc::clone(&occupant.call_id), workspace.clone());
        let entry = &worktree.entry;
        grounds
            .onlookers
            .tell(&HookEvent::WorktreeCreate {
                name: entry.name.to_string(),
                path: path.clone(),
                branch: entry.branch.clone(),
                base: entry.base.clone(),
            })
            .await;
        Ok(Self {
            briefing: briefing(&worktree),
            grounds,
            call_id: occupant.call_id,
            workspace,
            jobs: Arc::new(jobs),
            shell,
            sandbox,
            worktree: Mutex::new(Some(worktree)),
        })
    }

    fn take(&self) -> Option<Worktree> {
        self.worktree
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Ends what still runs in it, and then it.
    fn departure(&self, worktree: Worktree) -> impl Future<Output = String> + Send + 'static {
        let grounds = Arc::clone(&self.grounds);
        let jobs = Arc::clone(&self.jobs);
        let sandbox = self.sandbox.clone();
        let call_id = Arc::clone(&self.call_id);
        async move {
            jobs.shutdown().await;
            if let Some(sandbox) = sandbox {
                let _ = tokio::task::spawn_blocking(move || sandbox.close()).await;
            }
            grounds.gate.leave(&call_id);
            let missing = worktree.uncommitted.files;
            let (name, path) = (worktree.entry.name.to_string(), worktree.path().to_owned());
            let ending = finish(worktree, &grounds.rebuildable()).await;
            grounds
                .onlookers
                .tell(&HookEvent::WorktreeRemove {
                    name: name.clone(),
                    path: path.clone(),
                    branch: work(&ending).map(|work| work.branch.clone()),
                    verdict: verdict(&ending).to_owned(),
                })
                .await;
            report(&name, &path, &ending, missing)
        }
    }
}

impl Ground for Occupied {
    fn furnish(&self, agent: &mut Agent) {
        agent.workspace = Arc::new(self.workspace.clone());
        agent.company = agent.company.clone().elsewhere();
        let own: Vec<Arc<dyn Tool>> = vec![
            Bash::new(Arc::clone(&self.shell), Arc::clone(&self.jobs)).boxed(),
            BashOutput::new(Arc::clone(&self.jobs)).boxed(),
            KillShell::new(Arc::clone(&self.jobs)).boxed(),
        ];
        // What the agent may not use it does not get back.
        let offered = agent.tools.current();
        let is_offered = |tool: &Arc<dyn Tool>| offered.get(&tool.spec().name).is_some();
        let own: Vec<Arc<dyn Tool>> = own.into_iter().filter(is_offered).collect();
        agent.tools = agent.tools.with(&own);
    }

    fn briefing(&self) -> String {
        self.briefing.clone()
    }

    fn leave(self: Box<Self>) -> BoxFuture<'static, String> {
        let Some(worktree) = self.take() else {
            return async { String::new() }.boxed();
        };
        // Whoever waits for it may be dropped; it goes on.
        let departing = self.grounds.leaving.spawn(self.departure(worktree));
        async move {
            departing
                .await
                .unwrap_or_else(|error| format!("The worktree was not left: {error}."))
        }
        .boxed()
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        if let Some(worktree) = self.take() {
            let departure = self.departure(worktree);
            // Without a runtime the process is ending, and the next session takes care of it.
            if let Ok(handle) = tokio::runtime::Handle::try_current() {
                self.grounds.leaving.spawn_on(departure, &handle);
            }
        }
    }
}

fn told_failure(reason: &str) -> String {
    format!("There is no worktree for the sub-agent: {reason}. It was not started.")
}

async fn finish(worktree: Worktree, rebuildable: &[String]) -> Ending {
    match worktree.finish(rebuildable).await {
        Ok(ending) => ending,
        Err(error) => Ending::Kept {
            reason: error.to_string(),
            work: None,
        },
    }
}

/// Keeps file tools from changing the checkout that a worktree was made of.
#[derive(Debug)]
pub(crate) struct Aside {
    pub(crate) repository: PathBuf,
    pub(crate) worktree: PathBuf,
    /// Directories of the checkout that were linked in, about which rules decide.
    pub(crate) links: Vec<PathBuf>,
    pub(crate) inner: Option<Arc<dyn Boundary>>,
    /// What keeps the worktree of a whole session from being anybody else's.
    pub(crate) _seat: Option<Seat>,
}

impl Boundary for Aside {
    fn locate(&self, path: &Path) -> PathBuf {
        match &self.inner {
            Some(inner) => inner.locate(path),
            None => path.to_owned(),
        }
    }

    fn hides(&self, real: &Path) -> Option<&'static str> {
        self.inner.as_ref().and_then(|inner| inner.hides(real))
    }

    fn fixes(&self, real: &Path) -> Option<&'static str> {
        let is_linked = self.links.iter().any(|link| real.starts_with(link));
        let is_parents =
            real.starts_with(&self.repository) && !real.starts_with(&self.worktree) && !is_linked;
        if is_parents {
            return Some(ISOLATION);
        }
        self.inner.as_ref().and_then(|inner| inner.fixes(real))
    }
}

/// What a sub-agent is told.
fn briefing(worktree: &Worktree) -> String {
    let mut text = sub_agent_prompt(worktree.path());
    text.push('\n');
    text.push_str(&place_note(worktree));
    text
}

/// What is to be known about a worktree by who works in it.
pub(crate) fn place_note(worktree: &Worktree) -> String {
    let entry = &worktree.entry;
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "This directory is a git worktree of your own, on the branch {} from the commit {}. Change \
         files only in it; the checkout that it was made of is another agent's. What you leave \
         uncommitted is committed on that branch when you are done.",
        entry.branch,
        short(&entry.base),
    );
    let missing = worktree.uncommitted.files;
    if missing > 0 {
        let _ = writeln!(
            text,
            "{missing} files are changed and not committed in that checkout; those changes are not \
             here: {}.",
            listed(&worktree.uncommitted.names, missing)
        );
    }
    for link in &entry.links {
        let _ = writeln!(
            text,
            "{} is shared with that checkout.",
            link.path.display()
        );
    }
    for remark in &worktree.remarks {
        let _ = writeln!(text, "{remark}.");
    }
    text
}

fn listed(names: &[String], all: usize) -> String {
    let mut text = names.join(", ");
    if all > names.len() {
        let _ = write!(text, " and {} more", all - names.len());
    }
    text
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// The work that an ending tells of.
pub(crate) fn work(ending: &Ending) -> Option<&Work> {
    match ending {
        Ending::Unchanged { .. } => None,
        Ending::Branch(work) => Some(work),
        Ending::Kept { work, .. } => work.as_ref(),
    }
}

pub(crate) fn verdict(ending: &Ending) -> &'static str {
    match ending {
        Ending::Unchanged { .. } => "removed",
        Ending::Branch(_) => "branch",
        Ending::Kept { .. } => "kept",
    }
}

/// What became of a worktree, in a clause.
pub(crate) fn became(ending: &Ending) -> String {
    match ending {
        Ending::Unchanged { besides } if besides.is_empty() => {
            "nothing was done in it, and it was removed".to_owned()
        }
        Ending::Unchanged { besides } => format!("it was removed; {}", besides.join("; ")),
        Ending::Branch(work) => {
            let branch = &work.branch;
            let mut text = format!("it was removed, and what was done is on the branch `{branch}`");
            for more in &work.besides {
                let _ = write!(text, "; {more}");
            }
            text
        }
        Ending::Kept { reason, .. } => format!("it stays, because {reason}"),
    }
}

/// What a parent reads about the worktree of its sub-agent.
pub(crate) fn report(name: &str, path: &Path, ending: &Ending, missing: usize) -> String {
    let mut text = format!("[Worktree {name}: {}.", became(ending));
    if let Ending::Kept { .. } = ending {
        let _ = write!(text, " It is at {}.", path.display());
    }
    if missing > 0 {
        let _ = write!(
            text,
            " It began without the uncommitted changes of {missing} files here."
        );
    }
    if let Some(work) = work(ending) {
        let _ = write!(
            text,
            " Branch {}, {} commits since {}",
            work.branch,
            work.commits,
            short(&work.base)
        );
        if work.committed > 0 {
            let _ = write!(text, " ({} files were committed for it)", work.committed);
        }
        let _ = write!(
            text,
            ":\n{}\nNothing of it is merged. `git diff {} {}` shows it, `git merge {}` merges it.",
            work.diffstat,
            short(&work.base),
            work.branch,
            work.branch
        );
    }
    text.push(']');
    text
}
