//! A worktree that a whole session works in: an agent in the background that is not to touch the
//! checkout it was asked for in. Settings, trust and notes are those of that checkout.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_agent::{Boundary, HookEvent};
use caliban_settings::variables::names;
use caliban_tools::GroundWish;
use caliban_worktrees::{Base, Ending, Entry, Keep, Name, Request, Worktree, WorktreeError};

use crate::choices::SystemPrompt;
use crate::configuration::Configuration;
use crate::grounds::{Aside, place_note, repository, verdict, work};
use crate::hooks_outside;
use crate::options::RunOptions;

/// How often it is tried to have a worktree that somebody looks over, half a second each time.
const ATTEMPTS: u32 = 10;

/// The worktree of a session, which is nobody else's for as long as this lives.
#[derive(Debug, Clone)]
pub struct Seat(Arc<Seated>);

#[derive(Debug)]
struct Seated {
    worktree: Worktree,
    repository: PathBuf,
    arrival: Arrival,
}

/// Whether there was a worktree already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrival {
    New,
    Again,
}

/// A worktree as it is wanted, decided upon by whoever asks for the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeatPlan {
    /// A commit.
    pub base: String,
    pub is_fresh: bool,
    pub sparse_paths: Vec<String>,
    pub linked: Vec<String>,
    pub name: Option<String>,
}

/// Decides what a worktree is made of, by the call before the settings. What cannot be had is an
/// error here and now, before there is an agent.
pub async fn plan_seat(
    configuration: &Configuration,
    wish: GroundWish,
) -> Result<SeatPlan, WorktreeError> {
    let repository = repository(configuration).await?;
    let settings = &configuration.settings().worktree;
    let base = wish.base_ref.as_ref().or(settings.base_ref.as_ref());
    let base = base
        .map(|text| Base::from(text.as_str()))
        .unwrap_or_default();
    let name = wish.name.as_deref().map(str::parse::<Name>).transpose()?;
    Ok(SeatPlan {
        base: repository.begin_from(&base).await?,
        is_fresh: base == Base::Fresh,
        sparse_paths: wish
            .sparse_paths
            .unwrap_or_else(|| settings.sparse_paths.clone()),
        linked: wish
            .symlink_directories
            .unwrap_or_else(|| settings.symlink_directories.clone()),
        name: name.map(|name| name.to_string()),
    })
}

impl Seat {
    /// Takes the worktree of an agent: a new one, or the one that it had before.
    pub async fn take(
        configuration: &Configuration,
        name: &str,
        plan: SeatPlan,
        agent: &str,
        purpose: &str,
    ) -> Result<Self, WorktreeError> {
        let repository = repository(configuration).await?;
        let name: Name = name.parse()?;
        let arrival = match repository.find(name.as_str()).await {
            Ok(found) if found.name == name => Arrival::Again,
            Ok(_) | Err(_) => Arrival::New,
        };
        let base = if plan.is_fresh {
            Base::FreshAt(plan.base)
        } else {
            Base::Revision(plan.base)
        };
        let request = Request {
            purpose: purpose.to_owned(),
            name: None,
            base,
            sparse_paths: plan.sparse_paths,
            linked: plan.linked,
            session: String::new(),
            agent: Some(agent.to_owned()),
            keep: Keep::UntilDone,
        };
        let worktree = repository.occupy(name, request).await?;
        Ok(Self(Arc::new(Seated {
            worktree,
            repository: repository.root().to_owned(),
            arrival,
        })))
    }

    pub fn path(&self) -> &Path {
        self.0.worktree.path()
    }

    fn entry(&self) -> &Entry {
        &self.0.worktree.entry
    }

    /// A system prompt with what is to be known about the place.
    pub(crate) fn tell(&self, system: SystemPrompt) -> SystemPrompt {
        let note = place_note(&self.0.worktree);
        let note = note.trim_end().to_owned();
        match system {
            SystemPrompt::Default => SystemPrompt::Extended(note),
            SystemPrompt::Extended(text) => SystemPrompt::Extended(format!("{text}\n\n{note}")),
            SystemPrompt::Text(text) => SystemPrompt::Text(format!("{text}\n\n{note}")),
            SystemPrompt::None => SystemPrompt::None,
        }
    }

    /// Keeps file tools from changing the checkout.
    pub(crate) fn boundary(&self, inner: Option<Arc<dyn Boundary>>) -> Arc<dyn Boundary> {
        let links = self.entry().links.iter();
        Arc::new(Aside {
            repository: self.0.repository.clone(),
            worktree: self.path().to_owned(),
            links: links.map(|link| link.target.clone()).collect(),
            inner,
            _seat: Some(self.clone()),
        })
    }

    /// What those who look on are told when it was made just now.
    pub(crate) fn news(&self) -> Option<HookEvent> {
        let entry = self.entry();
        (self.0.arrival == Arrival::New).then(|| HookEvent::WorktreeCreate {
            name: entry.name.to_string(),
            path: entry.path.clone(),
            branch: entry.branch.clone(),
            base: entry.base.clone(),
        })
    }
}

/// Ends the worktree of an agent that is no more: what was done is on its branch before the tree
/// goes, and what cannot be judged stays. Says what became of it; nothing where there is none.
///
/// It waits for whoever has the worktree at this moment.
pub async fn end_seat(
    options: &RunOptions,
    configuration: &Configuration,
    name: &str,
) -> Result<Option<String>, WorktreeError> {
    let repository = repository(configuration).await?;
    let entry = match repository.find(name).await {
        Ok(entry) if entry.name.as_str() == name => entry,
        Ok(_) | Err(WorktreeError::Unknown(_) | WorktreeError::Ambiguous(..)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let settings = &configuration.settings().worktree;
    let is_kept = configuration
        .environment()
        .is_on(names::CALIBAN_KEEP_WORKTREES)
        || settings.keep_on_exit == Some(true);
    if is_kept {
        let path = entry.path.display();
        return Ok(Some(format!(
            "its worktree stays, as was asked for: {path}"
        )));
    }
    let (path, session) = (entry.path.clone(), entry.session.clone());
    let ignored = caliban_worktrees::IgnoredFiles::Rebuildable;
    let rebuildable = &settings.rebuildable;
    let mut ended = repository.remove(entry, ignored, rebuildable).await;
    for _ in 0..ATTEMPTS {
        if !matches!(ended, Err(WorktreeError::InUse(_))) {
            break;
        }
        // Nobody works in it any more: a daemon that has just started looks it over.
        let entry = match repository.find(name).await {
            Ok(entry) => entry,
            Err(WorktreeError::Unknown(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        ended = repository.remove(entry, ignored, rebuildable).await;
    }
    let ending = ended?;
    let told = crate::grounds::report(name, &path, &ending, 0);
    let mut told = told.trim_matches(['[', ']']).to_owned();
    let event = farewell(name, path, &ending);
    for problem in hooks_outside::tell(options, configuration, &session, &[event]).await {
        told.push('\n');
        told.push_str(&problem);
    }
    Ok(Some(told))
}

/// What hooks are told of a worktree's end.
fn farewell(name: &str, path: PathBuf, ending: &Ending) -> HookEvent {
    HookEvent::WorktreeRemove {
        name: name.to_owned(),
        path,
        branch: work(ending).map(|work| work.branch.clone()),
        verdict: verdict(ending).to_owned(),
    }
}

/// Ends the worktrees that sessions and agents left which are no more, a line for each.
pub async fn sweep_worktrees(
    options: &RunOptions,
    configuration: &Configuration,
) -> Result<Vec<String>, WorktreeError> {
    let settings = &configuration.settings().worktree;
    let is_kept = configuration
        .environment()
        .is_on(names::CALIBAN_KEEP_WORKTREES)
        || settings.keep_on_exit == Some(true);
    if is_kept {
        return Ok(Vec::new());
    }
    let repository = match repository(configuration).await {
        Ok(repository) => repository,
        Err(WorktreeError::NoRepository(_) | WorktreeError::Bare(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let ended = repository.sweep(&settings.rebuildable).await?;
    let mut told = Vec::new();
    for (entry, ending) in ended {
        let name = entry.name.as_str();
        let became = match &ending {
            Ok(ending) => crate::grounds::became(ending),
            Err(error) => error.to_string(),
        };
        told.push(format!(
            "the worktree `{name}` of an agent that is gone: {became}"
        ));
        if let Ok(ending) = &ending {
            let event = farewell(name, entry.path.clone(), ending);
            told.extend(
                hooks_outside::tell(options, configuration, &entry.session, &[event]).await,
            );
        }
    }
    Ok(told)
}
