//! Handlers that nobody waits for: a bounded number at a time, a bounded number waiting, and an
//! end at which they are given a while and then stopped.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_model::CancellationToken;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How many run at the same time.
const RUNNING: usize = 16;
/// How many wait for their turn; what comes after them is dropped.
const WAITING: usize = 64;

/// How long a job may take to end once it is told to.
const STOP: Duration = Duration::from_secs(1);

/// Runs jobs beside everything else. Dropping it stops them.
#[derive(Debug)]
pub(crate) struct Pool {
    slots: Arc<Semaphore>,
    jobs: Mutex<Jobs>,
    /// How many were started and have not ended.
    open: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Jobs {
    tasks: JoinSet<()>,
    /// Tells the jobs to end.
    stop: CancellationToken,
}

/// Counts a job until it is dropped, however it ends.
struct Open(watch::Sender<usize>);

impl Open {
    fn new(count: &watch::Sender<usize>) -> Self {
        count.send_modify(|open| *open += 1);
        Self(count.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

/// The job was not taken: too many are under way.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Pool {
    pub(crate) fn new() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(RUNNING)),
            jobs: Mutex::default(),
            open: watch::Sender::new(0),
        }
    }

    /// Starts a job when there is room for it. A job must end soon once its token is cancelled.
    pub(crate) fn start<F>(&self, job: impl FnOnce(CancellationToken) -> F) -> Result<(), Full>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        while jobs.tasks.try_join_next().is_some() {}
        if jobs.tasks.len() >= RUNNING + WAITING {
            return Err(Full);
        }
        let slots = Arc::clone(&self.slots);
        let stop = jobs.stop.clone();
        let job = job(stop.clone());
        let open = Open::new(&self.open);
        jobs.tasks.spawn(async move {
            // Told to stop, a job runs at once, since then it only has to say that it ended.
            let slot = stop.run_until_cancelled(slots.acquire_owned()).await;
            job.await;
            drop((slot, open));
        });
        Ok(())
    }

    /// Waits until no job is under way, at most this long.
    pub(crate) async fn settle(&self, patience: Duration) {
        let mut open = self.open.subscribe();
        let _ = timeout(patience, open.wait_for(|open| *open == 0)).await;
    }

    /// Waits for the jobs, at most this long, then stops those that are left.
    pub(crate) async fn drain(&self, patience: Duration) {
        let Jobs { mut tasks, stop } = {
            let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *jobs)
        };
        let all = async { while tasks.join_next().await.is_some() {} };
        if timeout(patience, all).await.is_err() {
            stop.cancel();
            let rest = async { while tasks.join_next().await.is_some() {} };
            // Who does not heed the token is cut off.
            let _ = timeout(STOP, rest).await;
            tasks.shutdown().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct Count {
        running: AtomicUsize,
        most: AtomicUsize,
        ended: AtomicUsize,
    }

    async fn job(count: Arc<Count>, gate: Arc<Semaphore>, stop: CancellationToken) {
        let now = count.running.fetch_add(1, Ordering::SeqCst) + 1;
        count.most.fetch_max(now, Ordering::SeqCst);
        let _ = stop.run_until_cancelled(gate.acquire()).await;
        count.running.fetch_sub(1, Ordering::SeqCst);
        count.ended.fetch_add(1, Ordering::SeqCst);
    }

    #[tokio::test]
    async fn no_more_than_the_bounds_run_and_wait() {
        let (pool, count) = (Pool::new(), Arc::new(Count::default()));
        let gate = Arc::new(Semaphore::new(0));
        let start = || pool.start(|stop| job(Arc::clone(&count), Arc::clone(&gate), stop));
        for _ in 0..RUNNING + WAITING {
            assert_eq!(start(), Ok(()));
        }
        assert_eq!(start(), Err(Full));
        while count.running.load(Ordering::SeqCst) < RUNNING {
            tokio::task::yield_now().await;
        }
        gate.add_permits(RUNNING + WAITING);
        pool.drain(Duration::from_mins(1)).await;
        assert_eq!(count.most.load(Ordering::SeqCst), RUNNING);
        assert_eq!(count.ended.load(Ordering::SeqCst), RUNNING + WAITING);
        assert_eq!(start(), Ok(()), "there is room again");
    }

    #[tokio::test]
    async fn jobs_are_waited_for_and_go_on() {
        let (pool, count) = (Pool::new(), Arc::new(Count::default()));
        let gate = Arc::new(Semaphore::new(0));
        pool.start(|stop| job(Arc::clone(&count), Arc::clone(&gate), stop))
            .unwrap();
        pool.settle(Duration::from_millis(20)).await;
        assert_eq!(count.ended.load(Ordering::SeqCst), 0);
        gate.add_permits(1);
        pool.settle(Duration::from_mins(1)).await;
        assert_eq!(count.ended.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn what_is_left_is_stopped() {
        let (pool, count) = (Pool::new(), Arc::new(Count::default()));
        let gate = Arc::new(Semaphore::new(0));
        for _ in 0..=RUNNING {
            pool.start(|stop| job(Arc::clone(&count), Arc::clone(&gate), stop))
                .unwrap();
        }
        pool.drain(Duration::from_millis(20)).await;
        assert_eq!(count.ended.load(Ordering::SeqCst), RUNNING + 1);
    }
}
