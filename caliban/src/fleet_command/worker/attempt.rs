//! One attempt at a job: begun, run, and brought to a result, or given up.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use caliban_fleet_nats::{
    Artefact, Board, BoardError, Claim, JobId, JobRecord, JobResult, JobSpec, Outcome, Settled,
    State,
};
use caliban_harness::options::{EarlierMode, SessionChoice};
use caliban_harness::{RunOptions, SystemPrompt};
use caliban_model::CancellationToken;
use caliban_sessions::{SessionName, Store, Transcript};
use caliban_settings::PermissionMode;
use caliban_settings::variables::names;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::Shop;
use super::checkout::Checkout;
use super::journal::{self, Journal};
use super::lease::{Hold, Lost, keep};
use super::outbox::{Teller, outbox};
use super::room::Room;
use super::terms::{Operator, Terms, allows, terms};
use crate::console::note;

/// How often a record is written anew when somebody else was faster.
const TRIES: usize = 16;
/// Bytes of an answer that the result carries; all of it is in the transcript.
const LONGEST_TEXT: usize = 256 * 1024;
/// What the session of a job is called.
const SESSION: &str = "session";

/// What the model is told that goes on with what another worker began.
const GO_ON: &str = "You were cut off before you had finished: the machine that you worked on is \
                     gone, and you are on another. The files are as they were after your last \
                     completed step. Look at what is done and what is not, and go on with your \
                     task.";

/// How an attempt ended.
pub(super) enum Verdict {
    /// There is a result to be recorded.
    Result(Box<Concluded>),
    /// Somebody else may go on, after a while.
    GivenUp(String),
    /// The worker was told to stop; another goes on at once.
    Released,
}

/// A result, and the checkout that it came from.
pub(super) struct Concluded {
    pub(super) result: JobResult,
    /// It goes with its room, which is why that is here.
    pub(super) checkout: Option<(Checkout, Room)>,
}

impl Concluded {
    fn bare(result: JobResult) -> Verdict {
        Verdict::Result(Box::new(Self {
            result,
            checkout: None,
        }))
    }
}

/// An attempt that has begun.
pub(super) struct Attempt<'a, B: Board> {
    pub(super) board: &'a B,
    pub(super) shop: &'a Shop<'a>,
    pub(super) spec: &'a JobSpec,
    pub(super) number: u32,
    pub(super) hold: &'a Hold,
    pub(super) teller: Teller,
    pub(super) cancel: &'a CancellationToken,
}

/// Works on a job that was taken, until it has a result or is given up.
pub(super) async fn attempt<B: Board>(
    board: &B,
    shop: &Shop<'_>,
    claim: Claim<B::Lease>,
    cancel: &CancellationToken,
) {
    let spec = match JobSpec::decode(&claim.spec) {
        Ok(spec) => spec,
        Err(error) => return refuse(board, shop, &claim, &error.to_string()).await,
    };
    let job = spec.job;
    let hold = Hold::default();
    let (teller, outbox) = outbox(job);
    let working = async {
        match board.result(job).await {
            Ok(Some(result)) => return close(board, &claim.lease, &result).await,
            Ok(None) => {}
            Err(error) => return warn(job, &error.to_string()),
        }
        let running = begin(board, shop, &spec, &hold, teller, cancel);
        let (verdict, ()) = futures::future::join(Box::pin(running), outbox.run(board)).await;
        conclude(board, shop, &claim.lease, &spec, &hold, verdict).await;
    };
    tokio::select! {
        biased;
        lost = keep(board, &claim.lease, job, shop.lease, &hold) => fenced(job, lost),
        () = working => {}
    }
}

fn fenced(job: JobId, lost: Lost) {
    // The run went with the future that was dropped.
    warn(job, &format!("stopped: {}", lost.as_str()));
}

fn warn(job: JobId, text: &str) {
    note(&format!("warning: job {job}: {text}"));
}

/// Takes off the queue what is no job, with a result where it says which one it would be.
async fn refuse<B: Board>(board: &B, shop: &Shop<'_>, claim: &Claim<B::Lease>, reason: &str) {
    let value: Value = serde_json::from_slice(&claim.spec).unwrap_or_default();
    let id = value["job"].as_str().and_then(|text| text.parse().ok());
    if let Some(job) = id {
        let result = failed(job, shop, 0, 78, reason);
        let settled = board.settle(&result).await;
        if let Err(error) = settled {
            return warn(job, &error.to_string());
        }
    }
    note(&format!("warning: a job was refused: {reason}"));
    // Where this fails it comes back, and is refused again.
    let _ = board.finish(&claim.lease).await;
}

/// A result of a job that did not run to its end.
fn failed(job: JobId, shop: &Shop<'_>, attempt: u32, exit_code: u8, reason: &str) -> JobResult {
    JobResult {
        job,
        outcome: Outcome::Failed,
        subtype: None,
        exit_code,
        text: None,
        reason: Some(reason.to_owned()),
        cost_usd: json!(0),
        turns: 0,
        attempt,
        worker: Some(shop.name.clone()),
        files: None,
        artefacts: Vec::new(),
        left_out: Vec::new(),
        at: Timestamp::now(),
    }
}

/// Begins the next attempt, unless there is to be none.
async fn begin<B: Board>(
    board: &B,
    shop: &Shop<'_>,
    spec: &JobSpec,
    hold: &Hold,
    teller: Teller,
    cancel: &CancellationToken,
) -> Verdict {
    let job = spec.job;
    for _ in 0..TRIES {
        let (mut record, revision) = match board.record(job).await {
            Ok(Some(found)) => (found.value, found.revision),
            Ok(None) => (JobRecord::queued(spec), 0),
            Err(error) => return Verdict::GivenUp(error.to_string()),
        };
        if record.state == State::Cancelling {
            let result = JobResult {
                outcome: Outcome::Cancelled,
                ..failed(
                    job,
                    shop,
                    record.attempt,
                    124,
                    "cancelled before it was begun",
                )
            };
            return Concluded::bare(result);
        }
        if record.lost() >= shop.attempts {
            let last = record
                .trouble
                .as_deref()
                .unwrap_or("their workers vanished");
            let reason = format!("{} attempts ended without a result: {last}", record.lost());
            return Concluded::bare(failed(job, shop, record.attempt, 1, &reason));
        }
        let is_late = spec
            .deadline
            .is_some_and(|deadline| deadline < Timestamp::now());
        if record.attempt == 0 && is_late {
            let reason = "nobody had begun it in time";
            return Concluded::bare(failed(job, shop, 0, 1, reason));
        }
        record.attempt += 1;
        record.state = State::Running;
        record.worker = Some(shop.name.clone());
        record.updated = Timestamp::now();
        match board.write_record(&record, revision).await {
            Ok(_) => {}
            Err(BoardError::Fenced) => continue,
            Err(error) => return Verdict::GivenUp(error.to_string()),
        }
        hold.attempt.store(record.attempt, Ordering::SeqCst);
        let attempt = Attempt {
            board,
            shop,
            spec,
            number: record.attempt,
            hold,
            teller,
            cancel,
        };
        return Box::pin(attempt.work()).await;
    }
    Verdict::GivenUp("its record changes too fast".to_owned())
}

impl<B: Board> Attempt<'_, B> {
    async fn work(self) -> Verdict {
        match Box::pin(self.try_work()).await {
            Ok(verdict) => verdict,
            Err(reason) => Verdict::GivenUp(reason),
        }
    }

    /// What holds for the job here, or why it is not run.
    fn terms(&self) -> Result<Terms, String> {
        if let Some(repo) = &self.spec.repo
            && !allows(&self.shop.allowed, &repo.remote)
        {
            return Err(format!(
                "this worker does not work on `{}`; its operator can say `--allow-repo`",
                repo.remote
            ));
        }
        let configuration = self.shop.configuration;
        let variable = configuration
            .environment()
            .text(names::CALIBAN_DEFAULT_PERMISSION_MODE);
        let variable = variable.and_then(|text| text.parse().ok());
        let set = configuration.settings().permissions.default_mode;
        let operator = Operator {
            options: self.shop.options,
            mode: variable.or(set).unwrap_or(PermissionMode::Default),
            on_question: self.shop.on_question,
            max_time: self.shop.max_time,
        };
        terms(operator, self.spec)
    }

    async fn try_work(self) -> Result<Verdict, String> {
        let (board, shop, spec) = (self.board, self.shop, self.spec);
        let number = self.number;
        let told = |error: BoardError| error.to_string();
        let entries = board.journal(spec.job).await.map_err(told)?;
        let restored = journal::restore(&entries)?;
        let name = format!("{}-{number}", spec.job);
        let room = Room::new(&shop.directory, &name).map_err(|error| error.to_string())?;
        let beginning = Journal::begin(
            board,
            spec.job,
            room.session(),
            restored.last,
            number,
            &shop.name,
        );
        let journal = beginning.await.map_err(told)?;
        let begun = json!({
            "type": "state", "state": "running", "attempt": number, "worker": shop.name,
        });
        self.teller.tell(number, 0, &begun).await;
        let terms = match self.terms() {
            Ok(terms) => terms,
            Err(reason) => {
                return Ok(Concluded::bare(failed(spec.job, shop, number, 78, &reason)));
            }
        };
        for (index, text) in terms.notes.iter().enumerate() {
            let frame = json!({"type": "warning", "subtype": "terms", "message": text});
            self.teller.tell(number, 1 + index as u64, &frame).await;
        }
        let making = Checkout::new(spec, number, &room, shop.max_artefact, shop.configuration);
        let mut checkout = making.await.map_err(|error| error.to_string())?;
        let is_resumed = !restored.session.is_empty();
        if is_resumed {
            let written = journal::write(&room.session(), &restored.session);
            written.map_err(|error| error.to_string())?;
            if let Some(kept) = &restored.files {
                checkout.restore(board, kept).await?;
            }
        }
        let prompt = if is_resumed {
            GO_ON.to_owned()
        } else {
            spec.prompt.clone()
        };
        let options = self.options(&terms, &room, is_resumed);
        Box::pin(self.run(terms, options, prompt, journal, checkout, room)).await
    }

    fn options(&self, terms: &Terms, room: &Room, is_resumed: bool) -> RunOptions {
        let mut options = terms.options.clone();
        options.workspace = None;
        options.session.choice = SessionChoice::Named(SESSION.to_owned());
        options.session.directory = Some(room.session());
        options.session.checkpoints = Some(format!("job-{}-{}", self.spec.job, self.number));
        options.session.earlier_mode = EarlierMode::Left;
        if is_resumed {
            // It keeps what it began with.
            options.system = SystemPrompt::Default;
        }
        options
    }

    /// The result of a run that ended, with everything that it leaves behind.
    pub(super) async fn conclude(
        &self,
        mut result: JobResult,
        mut checkout: Checkout,
        room: Room,
        log: Vec<u8>,
    ) -> Verdict {
        let prefix = format!("{}/{}", self.spec.job, self.number);
        let brought = checkout.bring(self.board).await;
        result.files = brought.files;
        result.artefacts = brought.artefacts;
        result.left_out.extend(brought.left_out);
        let transcript = SessionName::new(SESSION).ok().and_then(|name| {
            let (state, _) = Store::new(room.session()).load(&name).ok()?;
            Some(Transcript::of(&state).markdown())
        });
        let kept = [
            ("transcript.md", transcript.unwrap_or_default().into_bytes()),
            ("log.txt", log),
        ];
        for (name, bytes) in kept {
            if bytes.is_empty() {
                continue;
            }
            if bytes.len() as u64 > self.shop.max_artefact {
                result
                    .left_out
                    .push(format!("{name}: larger than what is kept"));
                continue;
            }
            let artefact = Artefact {
                name: format!("{prefix}/{name}"),
                bytes: Bytes::from(bytes),
            };
            match self.board.store(artefact).await {
                Ok(stored) => result.artefacts.push(stored),
                Err(error) => result.left_out.push(format!("{name}: {error}")),
            }
        }
        if let Some(text) = &mut result.text
            && text.len() > LONGEST_TEXT
        {
            let end = text.floor_char_boundary(LONGEST_TEXT);
            text.truncate(end);
            let left = "the rest of the answer; the transcript has it".to_owned();
            result.left_out.push(left);
        }
        Verdict::Result(Box::new(Concluded {
            result,
            checkout: Some((checkout, room)),
        }))
    }

    /// A result that says nothing yet.
    pub(super) fn blank(&self) -> JobResult {
        failed(self.spec.job, self.shop, self.number, 1, "")
    }
}

/// Does what a verdict says.
async fn conclude<B: Board>(
    board: &B,
    shop: &Shop<'_>,
    lease: &B::Lease,
    spec: &JobSpec,
    hold: &Hold,
    verdict: Verdict,
) {
    let job = spec.job;
    match verdict {
        Verdict::Result(concluded) => {
            let Concluded { result, checkout } = *concluded;
            let settled = loop {
                match board.settle(&result).await {
                    Ok(settled) => break settled,
                    // Until it works, or the lease is lost and this with it.
                    Err(_) => sleep(shop.lease / 12).await,
                }
            };
            let counts = match settled {
                Settled::Recorded => result,
                Settled::Already(first) => {
                    if let (Some((checkout, _)), Some(files)) = (&checkout, &result.files) {
                        checkout.withdraw(files).await;
                    }
                    *first
                }
            };
            close(board, lease, &counts).await;
            if let Some((checkout, _)) = &checkout {
                checkout.tidy().await;
            }
            note(&format!(
                "job {job} {}",
                State::from(counts.outcome).as_str()
            ));
        }
        Verdict::GivenUp(reason) => {
            warn(job, &reason);
            amend(board, job, hold, |record| {
                record.trouble = Some(reason.clone());
            })
            .await;
            // Where this fails the lease runs out.
            let _ = board.release(lease, shop.lease / 4).await;
        }
        Verdict::Released => {
            let given_back = |record: &mut JobRecord| {
                record.released += 1;
                if record.state == State::Running {
                    record.state = State::Queued;
                }
            };
            amend(board, job, hold, given_back).await;
            let _ = board.release(lease, Duration::ZERO).await;
            note(&format!("job {job} given back"));
        }
    }
}

/// Changes the record of this attempt, if it is still this one's.
async fn amend<B: Board>(board: &B, job: JobId, hold: &Hold, change: impl Fn(&mut JobRecord)) {
    let mine = hold.attempt.load(Ordering::SeqCst);
    for _ in 0..TRIES {
        let Ok(Some(found)) = board.record(job).await else {
            return;
        };
        let mut record = found.value;
        if mine == 0 || record.attempt != mine {
            return;
        }
        change(&mut record);
        record.updated = Timestamp::now();
        match board.write_record(&record, found.revision).await {
            Err(BoardError::Fenced) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// Tells that a job is over, and takes it off the queue. May be done again: whoever takes a job
/// that has a result finishes what the other could not.
async fn close<B: Board>(board: &B, lease: &B::Lease, result: &JobResult) {
    let job = result.job;
    let state = State::from(result.outcome);
    for _ in 0..TRIES {
        let Ok(Some(found)) = board.record(job).await else {
            break;
        };
        let mut record = found.value;
        if record.state == state {
            break;
        }
        record.state = state;
        record.updated = Timestamp::now();
        match board.write_record(&record, found.revision).await {
            Err(BoardError::Fenced) => {}
            Ok(_) | Err(_) => break,
        }
    }
    let mut ended = json!({"type": "ended", "state": state.as_str(), "attempt": result.attempt});
    if let Some(reason) = &result.reason {
        ended["reason"] = reason.as_str().into();
    }
    // Those who watch also look at the board.
    let _ = board
        .publish(job, &format!("{job}-ended"), ended.to_string().into())
        .await;
    if let Err(error) = board.finish(lease).await {
        warn(job, &error.to_string());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use caliban_fleet_nats::JobSpec;

    use super::*;

    pub(in super::super) fn spec() -> JobSpec {
        JobSpec::new(
            "default".parse().unwrap(),
            "say hello",
            "me@here",
            Timestamp::UNIX_EPOCH,
        )
    }

    #[tokio::test]
    async fn a_job_with_a_result_is_finished_by_whoever_takes_it() {
        let board = caliban_fleet_nats::MemoryBoard::new(Duration::from_mins(1), 10);
        let spec = spec();
        board.submit(&spec).await.unwrap();
        let claim = board
            .claim(&spec.pool, Duration::ZERO)
            .await
            .unwrap()
            .unwrap();
        let result = JobResult {
            job: spec.job,
            outcome: Outcome::Done,
            subtype: None,
            exit_code: 0,
            text: None,
            reason: None,
            cost_usd: json!(0),
            turns: 1,
            attempt: 1,
            worker: None,
            files: None,
            artefacts: Vec::new(),
            left_out: Vec::new(),
            at: Timestamp::UNIX_EPOCH,
        };
        assert_eq!(board.settle(&result).await.unwrap(), Settled::Recorded);
        close(&board, &claim.lease, &result).await;
        close(&board, &claim.lease, &result).await;
        assert_eq!(board.records().await.unwrap()[0].state, State::Done);
        assert!(
            board
                .claim(&spec.pool, Duration::ZERO)
                .await
                .unwrap()
                .is_none()
        );
        let second = JobResult {
            attempt: 2,
            ..result.clone()
        };
        let settled = board.settle(&second).await.unwrap();
        assert_eq!(settled, Settled::Already(Box::new(result)));
    }
}
