//! What was killed, to be yanked back.

use std::collections::VecDeque;

/// Kills that are remembered.
const MOST_KILLS: usize = 60;

/// The bytes they may hold together; the newest is always kept.
const MOST_BYTES: usize = 32 << 20;

/// The side of a kill that was taken last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// Whether a kill follows another without anything between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follows {
    Kill,
    Else,
}

/// The kill ring, the newest first.
#[derive(Debug, Default)]
pub(crate) struct KillRing {
    kills: VecDeque<String>,
    /// How far yanking has turned it.
    turned: usize,
}

impl KillRing {
    pub(crate) fn kill(&mut self, text: &str, side: Side, follows: Follows) {
        self.turned = 0;
        if text.is_empty() {
            return;
        }
        match (follows, self.kills.front_mut(), side) {
            (Follows::Kill, Some(last), Side::Before) => last.insert_str(0, text),
            (Follows::Kill, Some(last), Side::After) => last.push_str(text),
            (Follows::Kill, None, _) | (Follows::Else, _, _) => {
                self.kills.push_front(text.to_owned());
            }
        }
        while self.kills.len() > MOST_KILLS || (self.bytes() > MOST_BYTES && self.kills.len() > 1) {
            self.kills.pop_back();
        }
    }

    fn bytes(&self) -> usize {
        self.kills.iter().map(String::len).sum()
    }

    /// The newest kill.
    pub(crate) fn yank(&mut self) -> Option<&str> {
        self.turned = 0;
        self.kills.front().map(String::as_str)
    }

    /// The kill before the one that was yanked last.
    pub(crate) fn turn(&mut self) -> Option<&str> {
        self.turned = (self.turned + 1) % self.kills.len().max(1);
        self.kills.get(self.turned).map(String::as_str)
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.kills.iter().map(String::as_str)
    }
}
