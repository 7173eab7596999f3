//! Keeping a job, and knowing when it is lost: a worker that could not renew in time ends its run
//! before another may begin.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use caliban_fleet_nats::{Board, JobId, State};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

/// Why an attempt must stop at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// The board could not be reached for too long.
    Silence,
    /// Another attempt has begun.
    TakenOver,
}

impl Lost {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Silence => "the lease could not be renewed",
            Self::TakenOver => "another attempt has taken over",
        }
    }
}

/// What whoever keeps the lease knows about the attempt, and learns for it.
#[derive(Debug, Default)]
pub(super) struct Hold {
    /// The attempt, once it has begun.
    pub(super) attempt: AtomicU32,
    /// Somebody wants the job to end.
    pub(super) is_cancelled: AtomicBool,
    pub(super) news: Notify,
}

/// Renews until the job is lost.
pub(super) async fn keep<B: Board>(
    board: &B,
    lease: &B::Lease,
    job: JobId,
    length: Duration,
    hold: &Hold,
) -> Lost {
    let mut renewed = Instant::now();
    loop {
        sleep(length / 3).await;
        let fence = renewed + length * 3 / 4;
        let renewing = async {
            while board.renew(lease).await.is_err() {
                sleep(length / 12).await;
            }
        };
        if timeout_at(fence, renewing).await.is_err() {
            return Lost::Silence;
        }
        renewed = Instant::now();
        let Ok(Some(record)) = board.record(job).await else {
            continue;
        };
        let mine = hold.attempt.load(Ordering::SeqCst);
        if mine > 0 && record.value.attempt != mine {
            return Lost::TakenOver;
        }
        if record.value.state == State::Cancelling {
            hold.is_cancelled.store(true, Ordering::SeqCst);
            hold.news.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use caliban_fleet_nats::{JobRecord, MemoryBoard};

    use super::super::attempt::tests::spec;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn another_attempt_is_noticed_at_the_next_renewal() {
        let length = Duration::from_mins(1);
        let board = MemoryBoard::new(length, 10);
        let spec = spec();
        board.submit(&spec).await.unwrap();
        let claim = board.claim(&spec.pool, length).await.unwrap().unwrap();
        let hold = Hold::default();
        hold.attempt.store(1, Ordering::SeqCst);
        let mut record = JobRecord::queued(&spec);
        record.attempt = 1;
        record.state = State::Cancelling;
        let revision = board.record(spec.job).await.unwrap().unwrap().revision;
        let revision = board.write_record(&record, revision).await.unwrap();
        let keeping = keep(&board, &claim.lease, spec.job, length, &hold);
        tokio::pin!(keeping);
        tokio::select! {
            _ = &mut keeping => panic!("nothing is lost yet"),
            () = hold.news.notified() => assert!(hold.is_cancelled.load(Ordering::SeqCst)),
        }
        record.attempt = 2;
        board.write_record(&record, revision).await.unwrap();
        assert_eq!(keeping.await, Lost::TakenOver);
    }
}
