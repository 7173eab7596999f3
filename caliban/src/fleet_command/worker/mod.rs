//! A worker: takes jobs from the board, so many at once, and runs each as a process of its own in a
//! checkout of its own.

mod attempt;
mod checkout;
mod course;
mod journal;
mod lease;
mod outbox;
mod room;
mod run;
mod terms;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use caliban_fleet_nats::{Board, BoardError, OnQuestion, Pool};
use caliban_harness::{Configuration, Permissions, RunOptions};
use caliban_model::CancellationToken;
use tokio::time::{Instant, sleep};

use super::submit::{host, on_question};
use crate::args::WorkerArgs;
use crate::console::note;
use crate::exit::Failure;

/// How long one question for a job waits at the server; then it is asked again.
const CLAIM: Duration = Duration::from_secs(5);
/// The pause after trouble with the server.
const PAUSE: Duration = Duration::from_secs(1);

/// What a worker works with: what its operator decided.
pub(crate) struct Shop<'a> {
    pub(super) name: String,
    pub(super) pool: Pool,
    pub(super) options: &'a RunOptions,
    pub(super) configuration: &'a Configuration,
    pub(super) directory: PathBuf,
    pub(super) allowed: Vec<String>,
    pub(super) on_question: OnQuestion,
    pub(super) patience: Duration,
    pub(super) lease: Duration,
    pub(super) attempts: u32,
    pub(super) max_time: Duration,
    pub(super) max_artefact: u64,
    slots: u16,
    jobs: Option<u64>,
    idle: Option<Duration>,
    taken: AtomicU64,
}

impl<'a> Shop<'a> {
    pub(super) fn new(
        args: &WorkerArgs,
        options: &'a RunOptions,
        configuration: &'a Configuration,
    ) -> Result<Self, Failure> {
        // What no job could begin with is said before one is taken.
        Permissions::of_new_run(&options.permissions, configuration)?;
        let name = match &args.name {
            Some(name) => name.clone(),
            None => format!("{}-{}", host(), std::process::id()),
        };
        let directory = match &args.work_dir {
            Some(directory) => configuration.process.current_directory.join(directory),
            None => configuration.locations.cache_dir().join("fleet-worker"),
        };
        room::sweep(&directory)
            .map_err(|error| Failure::Runtime(format!("`{}`: {error}", directory.display())))?;
        Ok(Self {
            name,
            pool: args.pool.clone(),
            options,
            configuration,
            directory,
            allowed: args.allow_repo.clone(),
            on_question: on_question(args.on_question),
            patience: args.question_patience,
            lease: args.lease,
            attempts: args.attempts,
            max_time: args.max_time,
            max_artefact: args.max_artefact.saturating_mul(1 << 20),
            slots: args.slots,
            jobs: args.jobs,
            idle: args.idle,
            taken: AtomicU64::new(0),
        })
    }

    /// Counts a job that may be taken, if there may be one more.
    fn may_take(&self) -> bool {
        let most = self.jobs.unwrap_or(u64::MAX);
        let counted = |taken: u64| (taken < most).then(|| taken + 1);
        let order = Ordering::SeqCst;
        self.taken.fetch_update(order, order, counted).is_ok()
    }

    /// There was none to take.
    fn took_none(&self) {
        self.taken.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Works until it is interrupted, or has done what it should.
pub(super) async fn work<B: Board>(
    board: &B,
    shop: &Shop<'_>,
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    note(&format!(
        "{} takes jobs of the pool {}, {} at once",
        shop.name, shop.pool, shop.slots
    ));
    let slots = (0..shop.slots).map(|_| slot(board, shop, cancel));
    let ended = futures::future::join_all(slots).await;
    ended.into_iter().collect()
}

/// Takes one job after the other.
async fn slot<B: Board>(
    board: &B,
    shop: &Shop<'_>,
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    let mut since = Instant::now();
    while !cancel.is_cancelled() && shop.may_take() {
        let claiming = board.claim(&shop.pool, CLAIM.min(shop.idle.unwrap_or(CLAIM)));
        match cancel.run_until_cancelled(claiming).await {
            None => break,
            Some(Ok(Some(claim))) => {
                Box::pin(attempt::attempt(board, shop, claim, cancel)).await;
                since = Instant::now();
            }
            Some(Ok(None)) => {
                shop.took_none();
                // Who may not ask is given nothing, for ever.
                if board.refusal().is_some() {
                    return Err(Failure::Runtime("no job can be taken".to_owned()));
                }
                if shop.idle.is_some_and(|idle| since.elapsed() >= idle) {
                    break;
                }
            }
            Some(Err(error @ BoardError::Missing(_))) => return Err(error.into()),
            Some(Err(error)) => {
                shop.took_none();
                if board.refusal().is_some() {
                    return Err(error.into());
                }
                note(&format!("warning: {error}"));
                cancel.run_until_cancelled(sleep(PAUSE)).await;
            }
        }
    }
    Ok(())
}
