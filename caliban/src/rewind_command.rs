//! `caliban rewind`: takes back what prompts changed in the workspace.

use std::fmt::Write as _;

use caliban_checkpoints::{Error, History, Kind, Others, Plan, RealTree, Restored, Session};
use caliban_harness::{Configuration, checkpoint_store};
use caliban_sessions::{SessionName, Store};
use jiff::Timestamp;

use crate::args::RewindArgs;
use crate::console::{Console, note};
use crate::exit::Failure;

pub(crate) fn run(
    args: &RewindArgs,
    sessions: &Store,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    if args.conversation || args.both {
        return Err(Failure::Usage(
            "the conversation cannot be taken back in this version; `--code` restores the files"
                .to_owned(),
        ));
    }
    let Some(checkpoints) = checkpoint_store(configuration)? else {
        return Err(Failure::Usage(
            "`CALIBAN_CHECKPOINT_DISABLED` switches checkpoints off".to_owned(),
        ));
    };
    let name = wanted(args, sessions, configuration)?;
    let session = checkpoints.session(name.as_str())?;
    let tree = RealTree::new(configuration.workspace.clone());
    let Some(to) = args.to else {
        return console.write(&list(&session.history()?));
    };
    // Nobody works in the session while its files go back.
    let _held = sessions.open(&name)?;
    if !args.dry_run
        && let Some(restored) = session.resume(&tree)?
    {
        note("a rewind that was interrupted is finished first");
        report(&restored, console)?;
    }
    let others = if args.force {
        Others::Overwritten
    } else {
        Others::Spared
    };
    let plan = session.plan(&tree, to, others)?;
    if args.dry_run {
        return console.write(&preview(&session, &tree, &plan));
    }
    let restored = session.restore(&tree, &plan, Timestamp::now())?;
    report(&restored, console)?;
    console.write(&remainder(&plan))?;
    if plan.conflicts.is_empty() && restored.failed.is_empty() {
        return Ok(());
    }
    Err(Failure::Runtime(
        "not everything was restored; `--force` overwrites what was changed since, and keeps it"
            .to_owned(),
    ))
}

fn wanted(
    args: &RewindArgs,
    sessions: &Store,
    configuration: &Configuration,
) -> Result<SessionName, Failure> {
    if let Some(session) = &args.session {
        return Ok(sessions.find(session)?);
    }
    let (latest, _) = sessions.latest(|cwd| cwd == configuration.workspace)?;
    latest.map(|summary| summary.name).ok_or_else(|| {
        Failure::NoInput("there is no session of this workspace; `--session` names one".to_owned())
    })
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::NoSuchPoint { .. } => Self::NoInput(error.to_string()),
            Error::Name(_) | Error::Unfinished | Error::Damaged { .. } | Error::Io { .. } => {
                Self::Runtime(error.to_string())
            }
        }
    }
}

fn list(history: &History) -> String {
    let mut text = String::new();
    for (index, manifest) in history.checkpoints.iter().rev() {
        let kind = match manifest.kind {
            Kind::Files => "",
            Kind::Plan => " (plan)",
            Kind::Cleared => " (contents cleared)",
            Kind::Rewind => " (rewind)",
        };
        let files = manifest.entries.len();
        let at = manifest.created_at.strftime("%Y-%m-%d %H:%M");
        let title = shown(&manifest.title);
        let _ = writeln!(text, "{index:>4}  {at}  {files:>4} changed{kind}  {title}");
    }
    for (index, problem) in history.damaged.iter().rev() {
        let _ = writeln!(text, "{index:>4}  damaged: {}", shown(problem));
    }
    text.push_str("   0  before the first prompt\n");
    text
}

fn preview(session: &Session, tree: &RealTree, plan: &Plan) -> String {
    let mut text = String::new();
    for action in &plan.actions {
        let _ = writeln!(
            text,
            "would restore {}",
            shown(&action.path.to_string_lossy())
        );
        if let Some(difference) = session.difference(tree, action) {
            text.push_str(&harmless(&difference, '\n'));
        }
    }
    text + &remainder(plan)
}

/// What a restore leaves as it is, and why.
fn remainder(plan: &Plan) -> String {
    let mut text = String::new();
    for conflict in &plan.conflicts {
        let path = conflict.path.to_string_lossy();
        let _ = writeln!(text, "left alone {}: {}", shown(&path), conflict.why);
    }
    for lost in &plan.lost {
        let _ = writeln!(
            text,
            "cannot bring back {}: {}",
            shown(&lost.path),
            shown(&lost.why)
        );
    }
    for shortfall in &plan.shortfalls {
        let _ = writeln!(text, "not everything was seen: {}", shown(shortfall));
    }
    text
}

fn report(restored: &Restored, console: &mut Console) -> Result<(), Failure> {
    let mut text = String::new();
    for path in &restored.done {
        let _ = writeln!(text, "restored {}", shown(&path.to_string_lossy()));
    }
    for failed in &restored.failed {
        let path = failed.path.to_string_lossy();
        let _ = writeln!(
            text,
            "not restored {}: {}",
            shown(&path),
            shown(&failed.why)
        );
    }
    match restored.checkpoint {
        Some(index) => {
            let before = index.saturating_sub(1);
            let _ = writeln!(text, "`caliban rewind --to {before}` takes this back");
        }
        None => text.push_str("nothing to restore\n"),
    }
    console.write(&text)
}

/// Names and titles may hold anything; on a terminal they stay on their line.
fn shown(text: &str) -> String {
    harmless(text, ' ')
}

fn harmless(text: &str, but: char) -> String {
    let seen = |it: char| {
        if it.is_control() && it != but && it != '\t' {
            '\u{fffd}'
        } else {
            it
        }
    };
    text.chars().map(seen).collect()
}
