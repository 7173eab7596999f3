//! `caliban rewind`: takes back what prompts of a session did, in files and conversation.

use std::fmt::Write as _;

use caliban_checkpoints::{Error, Plan, Restored};
use caliban_harness::{Configuration, RewindError, rewind_report, rewinder};
use caliban_session::{Others, Restore, Rewind};
use caliban_sessions::{SessionName, Store};

use crate::args::RewindArgs;
use crate::console::{Console, note};
use crate::exit::Failure;
use crate::rewind_json;
use crate::sessions_command::pretty;

pub(crate) fn run(
    args: &RewindArgs,
    sessions: &Store,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    let name = wanted(args, sessions, configuration)?;
    let Some(rewinder) = rewinder(configuration, &name)? else {
        return Err(Failure::Usage(
            "`CALIBAN_CHECKPOINT_DISABLED` switches checkpoints off".to_owned(),
        ));
    };
    let Some(to) = args.to else {
        if rewinder.is_interrupted()? {
            note(&Error::Unfinished.to_string());
        }
        let history = rewinder.history()?;
        return console.write(&if args.json {
            pretty(&rewind_json::points(&history))?
        } else {
            rewind_report::points(&history)
        });
    };
    let rewind = Rewind {
        to,
        what: if args.code {
            Restore::Code
        } else if args.conversation {
            Restore::Conversation
        } else {
            Restore::Both
        },
        others: if args.force {
            Others::Overwritten
        } else {
            Others::Spared
        },
    };
    if args.dry_run {
        // Where somebody works in the session, what runs there is not over.
        if let Ok(opened) = sessions.open(&name) {
            if let Err(error) = rewinder.recover() {
                note(&format!("what the last call did is not known: {error}"));
            }
            opened.writer.close()?;
        }
        let plan = rewinder.plan(rewind)?;
        return console.write(&if args.json {
            pretty(&rewind_json::preview(&rewinder, &plan))?
        } else {
            rewind_report::preview(&rewinder, &plan)
        });
    }
    // Nobody works in the session while it goes back.
    let mut opened = sessions.open(&name)?;
    for warning in &opened.warnings {
        note(&warning.to_string());
    }
    if let Err(error) = rewinder.recover() {
        note(&format!(
            "what the last call did when the session was cut off is not known: {error}"
        ));
    }
    if let Some(restored) = rewinder.finish(&mut opened.writer)? {
        note("a rewind that was interrupted is finished first");
        let text = rewind_report::outcome(&restored);
        if args.json {
            note(text.trim_end());
        } else {
            console.write(&text)?;
        }
    }
    let plan = rewinder.plan(rewind)?;
    let restored = rewinder.carry_out(rewind, &plan, &mut opened.writer)?;
    opened.writer.close()?;
    if args.json {
        console.write(&pretty(&rewind_json::outcome(&plan, &restored))?)?;
        return is_as_it_was(&plan, &restored, rewind.others);
    }
    let mut text = rewind_report::outcome(&restored) + &rewind_report::remainder(&plan);
    if let (Some(_), Restore::Both | Restore::Conversation) = (restored.checkpoint, rewind.what) {
        text.push_str(&rewind_report::conversation(rewind.to));
    }
    if let Some(index) = restored.checkpoint {
        let before = index.saturating_sub(1);
        let _ = writeln!(
            text,
            "`caliban rewind --session {} --to {before}` takes this back",
            name.as_str()
        );
    }
    console.write(&text)?;
    is_as_it_was(&plan, &restored, rewind.others)
}

/// The exit code says whether everything is as it was.
fn is_as_it_was(plan: &Plan, restored: &Restored, others: Others) -> Result<(), Failure> {
    let problem = if !plan.conflicts.is_empty() && others == Others::Spared {
        "not everything was restored; `--force` overwrites what was changed since, and keeps it"
    } else if !(restored.failed.is_empty() && plan.lost.is_empty() && plan.conflicts.is_empty()) {
        "not everything was restored; what is named above stays as it is"
    } else if !plan.shortfalls.is_empty() {
        "everything that is known was restored, but not everything that was done is known"
    } else {
        return Ok(());
    };
    Err(Failure::Runtime(problem.to_owned()))
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
            Error::Name(_)
            | Error::Unfinished
            | Error::Companion(_)
            | Error::Damaged { .. }
            | Error::Io { .. } => Self::Runtime(error.to_string()),
        }
    }
}

impl From<RewindError> for Failure {
    fn from(error: RewindError) -> Self {
        match error {
            RewindError::Checkpoints(error) => error.into(),
            RewindError::Forgotten(_) => Self::NoInput(error.to_string()),
        }
    }
}
