//! What becomes of a job: its result, its end before the time, the answer to its question.

use std::path::Path;
use std::time::Duration;

use caliban_fleet_nats::{
    AnswerRecord, Answered, Board, BoardError, Files, JobId, JobResult, Nudge, Outcome, State,
};
use caliban_model::CancellationToken;
use futures::StreamExt as _;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::args::{JobAnswerArgs, ResultArgs};
use crate::console::{Console, note};
use crate::exit::Failure;

/// How often it is looked whether there is a result.
const LOOK: Duration = Duration::from_millis(500);
/// How often a record is written anew when somebody else was faster.
const TRIES: usize = 16;
/// The largest artefact that is fetched.
const LARGEST: u64 = 1 << 30;

pub(super) fn unknown(job: JobId) -> Failure {
    Failure::NoInput(format!("there is no job {job}"))
}

pub(super) async fn result<B: Board>(
    board: &B,
    args: &ResultArgs,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let result = found(board, args, cancel).await?;
    if let Some(directory) = &args.download {
        download(board, &result, directory).await?;
    }
    if args.json {
        let json = serde_json::to_string(&result);
        let json = json.map_err(|error| Failure::Runtime(error.to_string()))?;
        console.write(&format!("{json}\n"))?;
    } else {
        show(&result, console)?;
    }
    match result.exit_code {
        0 => Ok(()),
        code => Err(Failure::Silent(code)),
    }
}

async fn found<B: Board>(
    board: &B,
    args: &ResultArgs,
    cancel: &CancellationToken,
) -> Result<JobResult, Failure> {
    let job = args.job;
    let deadline = args.timeout.map(|timeout| Instant::now() + timeout);
    loop {
        match board.result(job).await {
            Ok(Some(result)) => return Ok(result),
            Ok(None) => {}
            // A server that is away for a moment is waited for like the result.
            Err(BoardError::Trouble { .. }) if args.wait => {}
            Err(error) => return Err(error.into()),
        }
        if !args.wait {
            let record = board.record(job).await?.ok_or_else(|| unknown(job))?;
            let state = record.value.state.as_str();
            return Err(Failure::Busy(format!("job {job} is {state}")));
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Failure::Busy(format!("job {job} has no result yet")));
        }
        if cancel.run_until_cancelled(sleep(LOOK)).await.is_none() {
            return Err(Failure::Silent(124));
        }
    }
}

fn show(result: &JobResult, console: &mut Console) -> Result<(), Failure> {
    if let Some(text) = &result.text {
        console.write(text)?;
        console.write("\n")?;
    }
    let outcome = match result.outcome {
        Outcome::Done => "done",
        Outcome::Failed => "failed",
        Outcome::Cancelled => "cancelled",
    };
    let reason = result.reason.as_deref();
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    note(&format!(
        "{outcome} in attempt {}, ${}{reason}",
        result.attempt, result.cost_usd
    ));
    if let Some(files) = &result.files {
        note(&format!("changes: {}", fetched(result.job, files)));
    }
    result
        .left_out
        .iter()
        .for_each(|text| note(&format!("left out: {text}")));
    Ok(())
}

/// Where changed files are, and how one gets at them.
fn fetched(job: JobId, files: &Files) -> String {
    let download = format!("`caliban fleet result {job} --download DIR`");
    let file = |name: &str| {
        let file = Path::new(name).file_name().unwrap_or_default();
        file.to_string_lossy().into_owned()
    };
    match files {
        Files::Branch { name, commit } => format!(
            "the branch `{name}` of the repository (commit {commit}); `git fetch origin {name}` and \
             `git merge FETCH_HEAD` bring it here"
        ),
        Files::Bundle { name, commit } => format!(
            "a bundle (commit {commit}); {download} and `git fetch DIR/{} {commit}` bring it here",
            file(name)
        ),
        Files::Patch { name } => {
            format!(
                "a patch; {download} and `git apply DIR/{}` bring it here",
                file(name)
            )
        }
    }
}

/// Writes artefacts under their last names.
async fn download<B: Board>(
    board: &B,
    result: &JobResult,
    directory: &Path,
) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::Runtime(format!("`{}`: {error}", path.display()))
    };
    std::fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    for artefact in &result.artefacts {
        let Some(bytes) = board.fetch(&artefact.name, LARGEST).await? else {
            note(&format!(
                "warning: `{}` is not kept any more",
                artefact.name
            ));
            continue;
        };
        // The name comes from a worker, and must not lead out of the directory.
        let Some(name) = Path::new(&artefact.name).file_name() else {
            continue;
        };
        let path = directory.join(name);
        std::fs::write(&path, &bytes).map_err(|error| failed(&path, error))?;
        note(&format!("wrote {}", path.display()));
    }
    Ok(())
}

pub(super) async fn cancel<B: Board>(
    board: &B,
    job: JobId,
    console: &mut Console,
) -> Result<(), Failure> {
    for _ in 0..TRIES {
        let record = board.record(job).await?.ok_or_else(|| unknown(job))?;
        let mut value = record.value;
        if value.state.is_final() {
            return console.write(&format!("{job} is {} already\n", value.state.as_str()));
        }
        value.state = State::Cancelling;
        value.updated = Timestamp::now();
        match board.write_record(&value, record.revision).await {
            Ok(_) => {
                board.nudge(job, Nudge::Look).await?;
                return console.write(&format!("{job} cancelling\n"));
            }
            Err(BoardError::Fenced) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::Runtime(format!("job {job} changes too fast")))
}

pub(super) async fn answer<B: Board>(
    board: &B,
    args: &JobAnswerArgs,
    by: String,
    console: &mut Console,
) -> Result<(), Failure> {
    let job = args.job;
    let question = if args.question == "-" {
        open_question(board, job).await?
    } else {
        args.question.clone()
    };
    let is_plain = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
    let is_asked =
        question.chars().all(is_plain) && board.question(job, &question).await?.is_some();
    if !is_asked {
        return Err(Failure::NoInput(format!(
            "job {job} has no question `{question}`; `caliban fleet logs {job}` shows its questions"
        )));
    }
    let record = AnswerRecord {
        decision: args.answer.as_str().to_owned(),
        message: args.message.clone(),
        by,
        at: Timestamp::now(),
    };
    match board.answer(job, &question, &record).await? {
        Answered::Taken => {
            board.nudge(job, Nudge::Look).await?;
            console.write(&format!("{job} {}\n", record.decision))
        }
        Answered::Already(first) => Err(Failure::Runtime(format!(
            "{} has answered `{}` already",
            first.by, first.decision
        ))),
    }
}

/// The first question that nobody has answered.
pub(super) async fn open_question<B: Board>(board: &B, job: JobId) -> Result<String, Failure> {
    let last = board.last_event(job).await?;
    let mut open: Vec<String> = Vec::new();
    if last > 0 {
        let mut events = board.events(job, 0).await?;
        while let Some(told) = events.next().await {
            let told = told?;
            let frame: Value = serde_json::from_slice(&told.frame).unwrap_or_default();
            let question = frame["question"].as_str().map(str::to_owned);
            match (frame["type"].as_str(), question) {
                (Some("question"), Some(question)) => open.push(question),
                (Some("answered"), Some(question)) => open.retain(|known| *known != question),
                _ => {}
            }
            if told.seq >= last {
                break;
            }
        }
    }
    let first = open.into_iter().next();
    first.ok_or_else(|| Failure::NoInput(format!("job {job} waits with no question")))
}
