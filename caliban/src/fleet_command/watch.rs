//! What a job does, as it happens and as it happened.

use std::time::Duration;

use caliban_fleet_nats::{AnswerRecord, Answered, Board, JobId, Nudge, Told};
use caliban_model::CancellationToken;
use futures::StreamExt as _;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::{MissedTickBehavior, interval};

use super::outcome::{self, unknown};
use crate::args::{LogArgs, WatchArgs};
use crate::console::{Console, note};
use crate::exit::Failure;
use crate::fleet::Reader;
use crate::typed_lines::TypedLines;

/// How often the worker is told that somebody watches.
const WATCHING: Duration = Duration::from_secs(10);

/// How frames are shown.
enum Form {
    Frames,
    Text(Box<Reader>),
}

/// Whether there is more to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ahead {
    More,
    Nothing,
}

struct View<'a> {
    console: &'a mut Console,
    form: Form,
    /// Those that are open, oldest first.
    questions: Vec<String>,
}

impl<'a> View<'a> {
    fn new(is_json: bool, console: &'a mut Console) -> Self {
        let form = if is_json {
            Form::Frames
        } else {
            Form::Text(Box::default())
        };
        Self {
            console,
            form,
            questions: Vec::new(),
        }
    }

    fn told(&mut self, told: &Told) -> Result<Ahead, Failure> {
        let mut frame: Value = serde_json::from_slice(&told.frame).unwrap_or_default();
        if let Some(object) = frame.as_object_mut() {
            object.insert("seq".to_owned(), told.seq.into());
        }
        let question = frame["question"].as_str().map(str::to_owned);
        match (frame["type"].as_str(), question) {
            (Some("question"), Some(question)) => self.questions.push(question),
            (Some("answered"), Some(question)) => self.questions.retain(|open| *open != question),
            _ => {}
        }
        self.show(&frame)?;
        Ok(if frame["type"] == "ended" {
            Ahead::Nothing
        } else {
            Ahead::More
        })
    }

    fn show(&mut self, frame: &Value) -> Result<(), Failure> {
        match &mut self.form {
            Form::Frames => self.console.write(&format!("{frame}\n")),
            Form::Text(reader) => {
                let text = reader.read(frame);
                self.console.write(&text)
            }
        }
    }
}

async fn check<B: Board>(board: &B, job: JobId) -> Result<(), Failure> {
    match board.record(job).await? {
        Some(_) => Ok(()),
        None => Err(unknown(job)),
    }
}

pub(super) async fn logs<B: Board>(
    board: &B,
    args: &LogArgs,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    check(board, args.job).await?;
    if args.follow {
        let view = View::new(args.json, console);
        return follow(board, args.job, 0, TypedLines::none(), view, cancel).await;
    }
    let last = board.last_event(args.job).await?;
    if last == 0 {
        return Ok(());
    }
    let mut view = View::new(args.json, console);
    let mut events = board.events(args.job, 0).await?;
    while let Some(told) = events.next().await {
        let told = told?;
        view.told(&told)?;
        if told.seq >= last {
            break;
        }
    }
    Ok(())
}

pub(super) async fn attach<B: Board>(
    board: &B,
    args: &WatchArgs,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    check(board, args.job).await?;
    let typed = if args.read_only || args.json {
        TypedLines::none()
    } else {
        note("/allow, /allow-session, /deny and /cancel; Ctrl+D detaches");
        TypedLines::of_standard_input()
    };
    let view = View::new(args.json, console);
    follow(board, args.job, args.since, typed, view, cancel).await
}

async fn follow<B: Board>(
    board: &B,
    job: JobId,
    after: u64,
    mut typed: TypedLines,
    mut view: View<'_>,
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    let newest = board.last_event(job).await?;
    let mut events = board.events(job, after).await?;
    let mut whispers = board.whispers(job).await?;
    let mut watching = interval(WATCHING);
    watching.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard = after;
    // How it ends, once nothing more is typed.
    let mut leaving = None;
    loop {
        // What had happened before is shown in any case.
        if heard >= newest
            && let Some(end) = leaving
        {
            return end;
        }
        tokio::select! {
            () = cancel.cancelled() => return Ok(()),
            told = events.next() => match told {
                None => return Ok(()),
                Some(Err(error)) => note(&format!("warning: {error}")),
                Some(Ok(told)) => {
                    heard = told.seq;
                    if view.told(&told)? == Ahead::Nothing {
                        return Ok(());
                    }
                }
            },
            Some(frame) = whispers.next() => {
                let frame: Value = serde_json::from_slice(&frame).unwrap_or_default();
                view.show(&frame)?;
            }
            _ = watching.tick() => {
                // It comes again; what is stored is shown in any case.
                let _ = board.nudge(job, Nudge::Watch).await;
            }
            line = typed.next(), if leaving.is_none() => match line {
                None => leaving = Some(Ok(())),
                Some(Err(failure)) => leaving = Some(Err(failure)),
                Some(Ok(line)) => {
                    let question = view.questions.first().cloned();
                    if let Err(problem) = type_in(board, job, &line, question).await {
                        note(&problem.to_string());
                    }
                }
            },
        }
    }
}

async fn type_in<B: Board>(
    board: &B,
    job: JobId,
    line: &str,
    question: Option<String>,
) -> Result<(), Failure> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let decision = match word {
        "" => return Ok(()),
        "/allow" => "allow",
        "/allow-session" => "allow-session",
        "/deny" => "deny",
        "/cancel" => return outcome::cancel(board, job, &mut Console::new()).await,
        _ => {
            return Err(Failure::Usage(
                "a job takes no messages: /allow, /allow-session, /deny or /cancel".to_owned(),
            ));
        }
    };
    let Some(question) = question else {
        return Err(Failure::Usage("the job has no question".to_owned()));
    };
    let answer = AnswerRecord {
        decision: decision.to_owned(),
        message: Some(rest.to_owned()).filter(|rest| !rest.is_empty()),
        by: "somebody who is attached".to_owned(),
        at: Timestamp::now(),
    };
    match board.answer(job, &question, &answer).await? {
        Answered::Taken => Ok(board.nudge(job, Nudge::Look).await?),
        Answered::Already(first) => Err(Failure::Usage(format!(
            "{} has answered `{}` already",
            first.by, first.decision
        ))),
    }
}
