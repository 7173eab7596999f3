//! How long things may take, and waiting for it.

use std::time::Duration;

use caliban_settings::variables::{Environment, names};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until};

use crate::exit::Failure;

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Between two signs of life; none are sent where it is zero.
    pub(super) heartbeat: Duration,
    /// For an answer to a question.
    pub(super) permission: Duration,
    /// For the work that goes on when the input has ended.
    pub(super) shutdown: Duration,
}

impl Pace {
    pub(super) fn read(environment: &Environment) -> Result<Self, Failure> {
        let millis = |name, default| -> Result<Duration, Failure> {
            Ok(environment.millis(name)?.unwrap_or(default))
        };
        Ok(Self {
            heartbeat: millis(names::HEDDLE_HEARTBEAT_INTERVAL, Duration::from_secs(5))?,
            permission: millis(names::HEDDLE_PERMISSION_TIMEOUT, Duration::from_mins(1))?,
            shutdown: millis(names::HEDDLE_SHUTDOWN_TIMEOUT, Duration::from_secs(30))?,
        })
    }

    pub(super) fn heartbeats(&self, from: Instant) -> Option<Interval> {
        if self.heartbeat.is_zero() {
            return None;
        }
        let mut beats = interval_at(from + self.heartbeat, self.heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Some(beats)
    }
}

/// Waits for the next sign of life, for ever where there are none.
pub(super) async fn tick(beats: Option<&mut Interval>) {
    match beats {
        Some(beats) => {
            beats.tick().await;
        }
        None => std::future::pending().await,
    }
}

/// Waits for a moment, for ever where there is none.
pub(super) async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
