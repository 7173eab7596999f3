//! Time as the router sees it: the machine's, or one that only goes on when nothing else can.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt;
use futures::future::BoxFuture;

/// Tells the time and waits.
pub trait Clock: Send + Sync + Debug {
    /// Time since some moment that stays the same.
    fn now(&self) -> Duration;

    /// Milliseconds since 1970, for what other processes read.
    fn wall(&self) -> u64;

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()>;
}

/// The machine's time.
#[derive(Debug, Clone)]
pub struct SystemClock(tokio::time::Instant);

impl SystemClock {
    pub fn new() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn wall(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(pause).boxed()
    }
}

/// A time that stands still while there is work, and jumps to the next moment that anybody waits
/// for when there is none.
#[derive(Debug, Clone, Default)]
pub struct VirtualClock(Arc<Mutex<Timers>>);

#[derive(Debug, Default)]
struct Timers {
    now: Duration,
    made: u64,
    /// By when they are due, and in the order they were made.
    waiting: BTreeMap<(Duration, u64), Waker>,
}

impl VirtualClock {
    fn timers(&self) -> MutexGuard<'_, Timers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on a future until it is done. Nothing where it waits for something that is not this
    /// clock, and would wait for ever.
    pub fn run<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let called = Arc::new(Called(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&called));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Some(output);
            }
            if !called.0.swap(false, Ordering::Relaxed) && !self.go_on() {
                return None;
            }
        }
    }

    /// Jumps to the next moment that is waited for, if there is one.
    fn go_on(&self) -> bool {
        let due = {
            let mut timers = self.timers();
            let Some(((at, _), waker)) = timers.waiting.pop_first() else {
                return false;
            };
            timers.now = timers.now.max(at);
            waker
        };
        due.wake();
        true
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Duration {
        self.timers().now
    }

    fn wall(&self) -> u64 {
        u64::try_from(self.now().as_millis()).unwrap_or(u64::MAX)
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        let mut timers = self.timers();
        timers.made += 1;
        let key = (timers.now.saturating_add(pause), timers.made);
        drop(timers);
        Sleep {
            clock: self.clone(),
            key,
        }
        .boxed()
    }
}

/// Somebody who waits for a moment of a virtual clock.
struct Sleep {
    clock: VirtualClock,
    key: (Duration, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut timers = self.clock.timers();
        if timers.now >= self.key.0 {
            return Poll::Ready(());
        }
        timers.waiting.insert(self.key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.timers().waiting.remove(&self.key);
    }
}

/// Whether there is work although no time has passed.
struct Called(AtomicBool);

impl Wake for Called {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_jumps_to_whoever_waits_the_shortest() {
        let clock = VirtualClock::default();
        let order = Mutex::new(Vec::new());
        let wait = |name, millis| {
            let pause = clock.sleep(Duration::from_millis(millis));
            let (clock, order) = (clock.clone(), &order);
            async move {
                pause.await;
                order.lock().unwrap().push((name, clock.now().as_millis()));
            }
        };
        let all = futures::future::join3(wait("late", 5_000), wait("soon", 10), wait("now", 0));
        assert!(clock.run(all).is_some());
        assert_eq!(
            *order.lock().unwrap(),
            [("now", 0), ("soon", 10), ("late", 5_000)]
        );
    }

    #[test]
    fn what_waits_for_something_else_is_given_up() {
        let clock = VirtualClock::default();
        assert_eq!(clock.run(futures::future::pending::<()>()), None);
    }
}
