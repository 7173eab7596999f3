//! Other agents in a terminal, where they are installed: how long until their prompt is seen, and
//! what they cost when nothing happens.

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
/// What they do after their prompt is there is not rest yet.
const SETTLING: Duration = Duration::from_secs(3);

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
        let started = Instant::now();
        let Some(terminal) = self.begin(stage) else {
            return;
        };
        let took = milliseconds(started.elapsed());
        drop(terminal);
        self.times.get_or_insert_default().push(took);
    }

    /// Milliseconds of CPU in so much time at rest.
    pub(super) fn rest(&mut self, stage: &Stage, while_: Duration) {
        let Some(terminal) = self.begin(stage) else {
            return;
        };
        std::thread::sleep(SETTLING);
        let before = terminal.cpu();
        std::thread::sleep(while_);
        let spent = terminal.cpu().saturating_sub(before);
        self.times.get_or_insert_default().push(milliseconds(spent));
    }

    /// Starts it and waits for its prompt; nothing where it shows none, now or before.
    fn begin(&mut self, stage: &Stage) -> Option<Terminal> {
        self.times.as_ref()?;
        let started = Instant::now();
        let terminal = Terminal::start(program(stage, self.name, &[]));
        while !terminal.screen().contains(self.prompt) {
            if started.elapsed() > PATIENCE {
                say(&format!("{} shows no prompt and is left out", self.name));
                self.times = None;
                return None;
            }
            std::thread::sleep(AGAIN);
        }
        Some(terminal)
    }

    pub(super) fn summary(self) -> Option<Summary> {
        Summary::of(self.times?, Better::Less)
    }
}
