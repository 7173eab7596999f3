//! How much of everything there may be.

use std::time::Duration;

/// The bounds of a registry.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Prompts that are worked on at the same time, over all tabs.
    pub running: usize,
    /// Prompts that wait in one tab.
    pub queue: usize,
    /// Tabs that are open at the same time.
    pub tabs: usize,
    /// How long a tab may do nothing before its session is written away; never where it is not
    /// saved.
    pub idle: Option<Duration>,
    /// How long a question may wait for its answer; then it is a refusal.
    pub patience: Duration,
    /// Bytes that a tab keeps of its stream before it is condensed.
    pub stream: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            running: 8,
            queue: 32,
            tabs: 256,
            idle: Some(Duration::from_mins(15)),
            patience: Duration::from_mins(5),
            stream: 4 * 1024 * 1024,
        }
    }
}
