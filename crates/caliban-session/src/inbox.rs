//! What waits to be worked on, and what is known of the prompts before.

use std::collections::VecDeque;

use caliban_agent::{Outcome, RunTotals};

use crate::command::{Prompt, PromptId, Rewind};

/// Prompts whose end is remembered, so that the same one is not worked on twice.
const REMEMBERED: usize = 256;

/// A piece of work.
#[derive(Debug)]
pub(crate) enum Work {
    Prompt(Box<Prompt>),
    Compact {
        id: PromptId,
        instructions: Option<String>,
    },
    Shell {
        id: PromptId,
        command: String,
    },
    Rewind {
        id: PromptId,
        rewind: Rewind,
    },
}

impl Work {
    pub(crate) fn id(&self) -> &PromptId {
        match self {
            Self::Prompt(prompt) => &prompt.id,
            Self::Compact { id, .. } | Self::Shell { id, .. } | Self::Rewind { id, .. } => id,
        }
    }
}

/// How much may wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) prompts: usize,
    pub(crate) bytes: usize,
}

/// What is known about a prompt id.
#[derive(Debug, PartialEq)]
pub(crate) enum Standing {
    New,
    /// It waits, or is being worked on: its end will be told.
    Pending,
    Ended(Outcome, Box<RunTotals>),
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Inbox {
    waiting: VecDeque<(Work, usize)>,
    bytes: usize,
    room: Room,
    ended: VecDeque<(PromptId, Outcome, RunTotals)>,
}

impl Inbox {
    pub(crate) fn new(room: Room) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            room,
            ended: VecDeque::new(),
        }
    }

    /// Takes work in and tells how much is before it. The error says why there is no room.
    pub(crate) fn push(&mut self, work: Work) -> Result<usize, String> {
        let size = size(&work);
        if self.waiting.len() >= self.room.prompts {
            return Err(format!(
                "{} prompts wait already; send it again when some are done",
                self.room.prompts
            ));
        }
        if self.bytes + size > self.room.bytes {
            return Err(format!(
                "the prompts that wait have {} bytes already; send it again when some are done",
                self.bytes
            ));
        }
        self.bytes += size;
        self.waiting.push_back((work, size));
        Ok(self.waiting.len() - 1)
    }

    /// Work that was promised already: it comes next, and there is room for it.
    pub(crate) fn push_first(&mut self, work: Work) {
        let size = size(&work);
        self.bytes += size;
        self.waiting.push_front((work, size));
    }

    pub(crate) fn pop(&mut self) -> Option<Work> {
        let (work, size) = self.waiting.pop_front()?;
        self.bytes -= size;
        Some(work)
    }

    pub(crate) fn take_back(&mut self, id: &str) -> bool {
        let found = self.waiting.iter().position(|(work, _)| **work.id() == *id);
        match found.and_then(|place| self.waiting.remove(place)) {
            Some((_, size)) => {
                self.bytes -= size;
                true
            }
            None => false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// What waits, in order.
    pub(crate) fn waiting(&self) -> Vec<PromptId> {
        let ids = self.waiting.iter().map(|(work, _)| work.id().clone());
        ids.collect()
    }

    /// Whether one more may wait beside so many that wait elsewhere.
    pub(crate) fn has_room(&self, elsewhere: usize) -> bool {
        self.waiting.len() + elsewhere < self.room.prompts
    }

    pub(crate) fn waits(&self, id: &str) -> bool {
        self.waiting.iter().any(|(work, _)| **work.id() == *id)
    }

    /// Remembers how a prompt ended.
    pub(crate) fn ended(&mut self, id: PromptId, outcome: Outcome, totals: RunTotals) {
        if self.ended.len() >= REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back((id, outcome, totals));
    }

    pub(crate) fn standing(&self, id: &str) -> Standing {
        if self.waits(id) {
            return Standing::Pending;
        }
        let known = self.ended.iter().rev().find(|(ended, ..)| **ended == *id);
        match known {
            Some((_, outcome, totals)) => {
                Standing::Ended(outcome.clone(), Box::new(totals.clone()))
            }
            None => Standing::New,
        }
    }
}

/// About how much memory work takes while it waits.
fn size(work: &Work) -> usize {
    use caliban_model::{Block, ImageSource};
    match work {
        Work::Compact { instructions, .. } => instructions.as_ref().map_or(0, String::len),
        Work::Shell { command, .. } => command.len(),
        Work::Rewind { .. } => 0,
        Work::Prompt(prompt) => {
            let blocks = prompt.message.content.iter();
            blocks
                .map(|block| match block {
                    Block::Text { text, .. } => text.len(),
                    Block::Image(image) => match &image.source {
                        ImageSource::Base64 { data } => data.len(),
                        ImageSource::Url { url } => url.len(),
                    },
                    Block::Thinking { .. }
                    | Block::RedactedThinking { .. }
                    | Block::ToolUse { .. }
                    | Block::ToolResult { .. }
                    | Block::Opaque { .. } => 0,
                })
                .sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(id: &str, text: &str) -> Work {
        Work::Prompt(Box::new(Prompt::typed(id, text)))
    }

    fn inbox(prompts: usize, bytes: usize) -> Inbox {
        Inbox::new(Room { prompts, bytes })
    }

    #[test]
    fn the_bounds_are_kept_and_room_comes_back() {
        let mut inbox = inbox(2, 10);
        assert_eq!(inbox.push(work("a", "12345")), Ok(0));
        assert!(inbox.push(work("b", "123456")).is_err());
        assert_eq!(inbox.push(work("b", "12345")), Ok(1));
        assert!(inbox.push(work("c", "")).is_err());
        assert!(inbox.take_back("b") && !inbox.take_back("b"));
        assert_eq!(inbox.push(work("c", "1")), Ok(1));
        assert_eq!(inbox.pop().unwrap().id().as_ref(), "a");
        assert_eq!((inbox.len(), inbox.bytes), (1, 1));
    }

    #[test]
    fn what_ended_is_remembered_for_a_while() {
        let mut inbox = inbox(9, 99);
        inbox.push(work("a", "x")).unwrap();
        assert_eq!(inbox.standing("a"), Standing::Pending);
        for number in 0..=REMEMBERED {
            let id = PromptId::from(number.to_string());
            inbox.ended(id, Outcome::Cancelled, RunTotals::default());
        }
        assert_eq!(inbox.standing("0"), Standing::New);
        let ended = Standing::Ended(Outcome::Cancelled, Box::default());
        assert_eq!(inbox.standing("1"), ended);
    }
}
