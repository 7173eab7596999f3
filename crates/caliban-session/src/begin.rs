//! How a session begins.

use std::collections::HashMap;
use std::sync::Arc;

use caliban_agent::{Mailbox, RunTotals};
use tokio::sync::{mpsc, watch};

use crate::actor::Actor;
use crate::crash::guarded;
use crate::engine::{Controls, Engine};
use crate::event::{ClosedWhy, What};
use crate::fanout::Fanout;
use crate::handle::{Events, Lead, SessionHandle, State};
use crate::inbox::{Inbox, Room};
use crate::questions::Questions;

/// Commands that wait to be taken in; who sends faster waits itself.
const COMMANDS: usize = 64;

/// How much may wait in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Prompts that wait behind the one that is worked on; one more is refused by an event.
    pub prompts: usize,
    /// Bytes of all of them.
    pub bytes: usize,
}

impl Bounds {
    /// For applications, which can send again.
    pub const APPLICATION: Self = Self {
        prompts: 32,
        bytes: 64 * 1024 * 1024,
    };
    /// For a program whose input is a file or a pipe, all of which shall be worked on.
    pub const PIPE: Self = Self {
        prompts: 100_000,
        bytes: 256 * 1024 * 1024,
    };
}

/// What a session is made of.
#[derive(Debug)]
pub struct Parts {
    pub engine: Box<dyn Engine>,
    pub controls: Arc<dyn Controls>,
    /// Where messages wait that join the work between two turns.
    pub mailbox: Mailbox,
    pub fanout: Arc<Fanout>,
    pub questions: Arc<Questions>,
    pub bounds: Bounds,
}

/// Begins a session. The events that come with it are heard by its first hearer, which the work
/// waits for.
pub fn begin(parts: Parts) -> (SessionHandle, Events) {
    let (commands, wishes) = mpsc::channel(COMMANDS);
    let (told, state) = watch::channel(State::default());
    let Parts {
        engine,
        controls,
        mailbox,
        fanout,
        questions,
        bounds,
    } = parts;
    let handle = SessionHandle {
        commands,
        fanout: Arc::clone(&fanout),
        questions: Arc::clone(&questions),
        state,
    };
    let events = Events {
        fanout: Arc::clone(&fanout),
        next: 1,
        lead: Lead::Leads,
        attendance: None,
        questions: Arc::clone(&questions),
    };
    let actor = Actor {
        engine: Some(engine),
        controls,
        mailbox,
        fanout: Arc::clone(&fanout),
        questions,
        inbox: Inbox::new(Room {
            prompts: bounds.prompts,
            bytes: bounds.bytes,
        }),
        steering: HashMap::new(),
        running: None,
        leaving: None,
        totals: RunTotals::default(),
        state: told,
    };
    tokio::spawn(async move {
        if let Err(crash) = guarded(actor.live(wishes)).await {
            let (why, trouble) = (ClosedWhy::Crashed, Some(crash));
            fanout.tell(What::Closed { why, trouble });
        }
        fanout.close();
    });
    (handle, events)
}
