//! `caliban worktrees`: what sub-agents did in worktrees of their own.

use std::fmt::Write as _;

use caliban_harness::{Configuration, repository};
use caliban_worktrees::{
    Ending, Entry, IgnoredFiles, Listed, Merge, Merged, Repository, State, WorktreeError,
};
use serde_json::{Value, json};

use crate::args::{MergeArgs, RemoveArgs, WorktreesCommand};
use crate::console::Console;
use crate::exit::Failure;

pub(crate) async fn run(
    command: &WorktreesCommand,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    let repository = repository(configuration).await?;
    let rebuildable = &configuration.settings().worktree.rebuildable;
    match command {
        WorktreesCommand::List { json } => {
            let listed = repository.list().await?;
            console.write(&if *json {
                let rows: Value = listed.iter().map(reported).collect();
                format!("{rows:#}\n")
            } else {
                table(&listed)
            })
        }
        WorktreesCommand::Diff { name } => {
            let entry = repository.find(name).await?;
            let patch = repository.diff(&entry).await?;
            console.write(&String::from_utf8_lossy(&patch))
        }
        WorktreesCommand::Merge(args) => merge(args, &repository, rebuildable, console).await,
        WorktreesCommand::Rm(args) => remove(args, &repository, rebuildable, console).await,
    }
}

fn reported(listed: &Listed) -> Value {
    let entry = &listed.entry;
    json!({
        "name": entry.name.as_str(),
        "state": listed.state.as_str(),
        "reason": match &listed.state {
            State::Kept(reason) => Some(reason.as_str()),
            State::Active
            | State::Resting
            | State::Abandoned
            | State::Branch
            | State::Vanished => None,
        },
        "path": entry.path.to_string_lossy(),
        "branch": entry.branch,
        "base": entry.base,
        "commits": listed.commits,
        "uncommitted": listed.uncommitted,
        "session": entry.session,
        "agent": entry.agent,
        "purpose": entry.purpose,
        "created": entry.created.to_string(),
    })
}

fn table(listed: &[Listed]) -> String {
    if listed.is_empty() {
        return "There are no worktrees of agents.\n".to_owned();
    }
    let mut text = String::new();
    for one in listed {
        let entry = &one.entry;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}  {}  {} commits, {} uncommitted files  {}",
            entry.name,
            one.state.as_str(),
            one.commits,
            one.uncommitted,
            entry.branch
        );
        if !entry.purpose.is_empty() {
            let purpose = entry.purpose.lines().next().unwrap_or_default();
            let _ = writeln!(text, "  {purpose}");
        }
        match &one.state {
            State::Kept(reason) => {
                let _ = writeln!(
                    text,
                    "  it stays, because {reason}: {}",
                    entry.path.display()
                );
            }
            State::Abandoned => {
                let _ = writeln!(
                    text,
                    "  its session was ended; `caliban worktrees rm --abandoned` cleans up"
                );
            }
            State::Resting => {
                let agent = entry.agent.as_deref().unwrap_or_default();
                let _ = writeln!(
                    text,
                    "  the agent {agent} has no process; `caliban agents resume {agent}` lets it go \
                     on, `caliban agents rm {agent}` removes both"
                );
            }
            State::Active | State::Branch | State::Vanished => {}
        }
    }
    text
}

async fn merge(
    args: &MergeArgs,
    repository: &Repository,
    rebuildable: &[String],
    console: &mut Console,
) -> Result<(), Failure> {
    let entry = repository.find(&args.name).await?;
    let how = if args.apply {
        Merge::Apply
    } else if args.commit {
        Merge::Commit
    } else {
        Merge::Branch
    };
    let name = entry.name.clone();
    let merged = repository.merge(entry.clone(), how, rebuildable).await?;
    let done = format!("`caliban worktrees rm {name}` removes what is left of it");
    console.write(&match merged {
        Merged::Nothing => format!("Nothing was done in `{name}`.\n"),
        Merged::Already => format!("The branch that is checked out has all of it; {done}.\n"),
        Merged::Applied { files } => {
            format!("{files} files are changed here, and nothing is committed; {done}.\n")
        }
        Merged::Committed { commit } => {
            let short = commit.get(..12).unwrap_or(&commit);
            format!("It is merged by the commit {short}; {done}.\n")
        }
        Merged::Left(ending) => return left(&entry, &ending, console),
    })
}

async fn remove(
    args: &RemoveArgs,
    repository: &Repository,
    rebuildable: &[String],
    console: &mut Console,
) -> Result<(), Failure> {
    let Some(name) = &args.name else {
        return sweep(repository, rebuildable, console).await;
    };
    let entry = repository.find(name).await?;
    let ignored = if args.with_ignored {
        IgnoredFiles::All
    } else {
        IgnoredFiles::Rebuildable
    };
    let ending = repository
        .remove(entry.clone(), ignored, rebuildable)
        .await?;
    left(&entry, &ending, console)
}

async fn sweep(
    repository: &Repository,
    rebuildable: &[String],
    console: &mut Console,
) -> Result<(), Failure> {
    let swept = repository.sweep(rebuildable).await?;
    if swept.is_empty() {
        return console.write("No worktree was left by a session that was ended.\n");
    }
    for (entry, ending) in swept {
        match ending {
            Ok(ending) => console.write(&told(&entry, &ending))?,
            Err(error) => console.write(&format!("{}: {error}\n", entry.name))?,
        }
    }
    Ok(())
}

/// Says what became of a worktree; one that stays was not removed.
fn left(entry: &Entry, ending: &Ending, console: &mut Console) -> Result<(), Failure> {
    let told = told(entry, ending);
    match ending {
        Ending::Unchanged { .. } | Ending::Branch(_) => console.write(&told),
        Ending::Kept { .. } => Err(Failure::Runtime(told.trim_end().to_owned())),
    }
}

fn told(entry: &Entry, ending: &Ending) -> String {
    let (name, path) = (&entry.name, entry.path.display());
    let more = |besides: &[String]| {
        let lines = besides.iter().map(|more| format!("Besides, {more}.\n"));
        lines.collect::<String>()
    };
    match ending {
        Ending::Unchanged { besides } => format!("`{name}` is removed.\n{}", more(besides)),
        Ending::Branch(work) => {
            let diffstat = &work.diffstat;
            let branch = &work.branch;
            // What no branch had is under a ref of ours.
            let away = if branch.starts_with("refs/") {
                format!("git update-ref -d {branch}")
            } else {
                format!("git branch -D {branch}")
            };
            format!(
                "`{name}` has no directory any more. What was done is on `{branch}`, which is not \
                 merged; `git merge {branch}` merges it, `{away}` throws it away.\n{}{diffstat}\n",
                more(&work.besides)
            )
        }
        Ending::Kept { reason, .. } => {
            let ignored = reason.starts_with("git ignores");
            let remedy = if ignored {
                "`--with-ignored` removes it all the same".to_owned()
            } else {
                format!(
                    "put that in order in `{path}`, or throw all of it away: `git worktree remove -f \
                     -f '{path}'`"
                )
            };
            format!("`{name}` stays as it is, because {reason}; {remedy}\n")
        }
    }
}

impl From<WorktreeError> for Failure {
    fn from(error: WorktreeError) -> Self {
        match &error {
            WorktreeError::Unknown(_) => Self::NoInput(error.to_string()),
            WorktreeError::BadName(_)
            | WorktreeError::Ambiguous(..)
            | WorktreeError::InUse(_)
            | WorktreeError::BadSparsePath(_)
            | WorktreeError::NoLink { .. }
            | WorktreeError::NoCommit(_)
            | WorktreeError::InTheWay(_)
            | WorktreeError::Taken(_) => Self::Usage(error.to_string()),
            WorktreeError::NoRepository(_)
            | WorktreeError::Bare(_)
            | WorktreeError::Unborn(_)
            | WorktreeError::TooMany(_)
            | WorktreeError::Planted(_)
            | WorktreeError::Odd { .. }
            | WorktreeError::Gone { .. }
            | WorktreeError::Unsettled { .. }
            | WorktreeError::Conflict { .. }
            | WorktreeError::Busy(_)
            | WorktreeError::Io { .. }
            | WorktreeError::Git(_) => Self::Runtime(error.to_string()),
        }
    }
}
