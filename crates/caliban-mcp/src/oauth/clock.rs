//! What time it is: the machine's clock, or what a test says.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    pub fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(clock))
    }

    /// The machine's own.
    pub fn system() -> Self {
        Self::new(Timestamp::now)
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Clock")
    }
}
