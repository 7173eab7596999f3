//! Other agents in a terminal, where they are installed: how long until their prompt is seen.

use std::time::{Duration, Instant};

use caliban_testkit::terminal::Terminal;

use super::super::process::milliseconds;
use super::super::samples::{Better, Summary};
use super::super::stage::Stage;
use super::program;
use crate::environment::is_installed;
use crate::shell::say;

/// Their names, and what stands at their prompts.
const KNOWN: [(&str, &str); 3] = [
    ("codex", "›"),
    ("claude", "❯"),
    ("opencode", "Ask anything"),
];
/// One that shows no prompt in this time, because it wants a login first, say, is left out.
const PATIENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(2);

/// One of them, and how long it took.
pub(super) struct Peer {
    pub(super) name: &'static str,
    prompt: &'static str,
    times: Option<Vec<f64>>,
}

pub(super) fn installed() -> Vec<Peer> {
    let there = KNOWN.into_iter().filter(|(name, _)| is_installed(name));
    there
        .map(|(name, prompt)| Peer {
            name,
            prompt,
            times: Some(Vec::new()),
        })
        .collect()
}

impl Peer {
    /// One run, unless it was left out before.
    pub(super) fn measure(&mut self, stage: &Stage) {
        let Some(times) = &mut self.times else {
            return;
        };
        let started = Instant::now();
        let terminal = Terminal::start(program(stage, self.name, &[]));
        while !terminal.screen().contains(self.prompt) {
            if started.elapsed() > PATIENCE {
                say(&format!("{} shows no prompt and is left out", self.name));
                self.times = None;
                return;
            }
            std::thread::sleep(AGAIN);
        }
        times.push(milliseconds(started.elapsed()));
    }

    pub(super) fn summary(self) -> Option<Summary> {
        Summary::of(self.times?, Better::Less)
    }
}
