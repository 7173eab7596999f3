//! How a session comes and goes while its tab is there, and how both end.

use std::sync::Arc;

use caliban_session::{Command, Shutdown};
use tokio::time::Instant;

use super::{Kept, Outcome, Parting, Tab, gone, next, not_kept};
use crate::answer::{Code, Done, Problem};
use crate::host::{News, SessionWanted, Wanted};
use crate::ledger::Ledger;
use crate::request::Purge;

impl Tab {
    /// Writes the session away. It is there again as soon as something is wanted from it.
    pub(super) async fn park(&mut self) {
        self.end_session(Shutdown::WhenIdle).await;
        self.log.forget_heard();
    }

    /// Ends the session and hears it out.
    pub(super) async fn end_session(&mut self, when: Shutdown) {
        self.tell_end(when).await;
        while self.hosted.is_some() {
            let heard = next(&mut self.hosted).await;
            let is_reached_anew = matches!(heard, Some(News::Standing(_)));
            self.hear(heard).await;
            if is_reached_anew {
                // What was said before may have been lost on the way.
                self.tell_end(when).await;
            }
        }
    }

    async fn tell_end(&mut self, when: Shutdown) {
        if let Some(hosted) = &self.hosted {
            // It may have ended by itself.
            let _ = hosted.send(Command::Shutdown { when }).await;
        }
    }

    /// Whether anything is worked on in the session.
    pub(super) fn is_working(&self) -> bool {
        self.running.is_some() || self.foreign.is_some()
    }

    /// Names the process of the session, where that outlives this one.
    pub(super) fn life(&self) -> Option<Arc<str>> {
        self.hosted.as_ref()?.life()
    }

    /// The server ends. A session that outlives it goes on with what it works on; what waits is
    /// written down and waits for the next server.
    pub(super) async fn leave(&mut self) -> Parting {
        if self.hosted.is_some() && self.life().is_none() {
            let _ = self.close(Purge::Keep).await;
            return Parting::Closed;
        }
        self.over = Some("the server has ended".to_owned());
        self.publish();
        if self.is_working() {
            self.hosted = None;
            return Parting::GoesOn;
        }
        self.end_session(Shutdown::WhenIdle).await;
        Parting::Closed
    }

    /// Brings the session back where it was written away.
    pub(super) async fn wake(&mut self) -> Result<(), Problem> {
        if self.hosted.is_some() {
            return Ok(());
        }
        let session = match self.kept {
            Kept::OnDisk => SessionWanted::Earlier {
                session: self.facts.session_id.clone(),
                copy: None,
            },
            Kept::NotYet => match self.facts.session_id.parse() {
                Ok(id) => SessionWanted::New(id),
                Err(_) => return Err(gone()),
            },
        };
        let wanted = Wanted {
            open: Arc::new(self.open.clone()),
            session,
            patience: self.shared.limits.patience,
        };
        let hosted = self.shared.host.open(wanted).await?;
        self.facts = Arc::new(hosted.facts().clone());
        self.messages = self.facts.messages;
        self.hosted = Some(hosted);
        self.idle_since = Instant::now();
        // Another process may have worked in it meanwhile.
        let ledger = Ledger::open(&self.shared.ledgers, &self.facts.session_id);
        self.ledger = ledger.map_err(|error| not_kept(&error))?;
        self.recover().await;
        Ok(())
    }

    /// Ends everything. What is worked on or waits is cancelled, and each has its result.
    pub(super) async fn close(&mut self, purge: Purge) -> Outcome {
        self.over = Some("the tab is closed".to_owned());
        self.clear_queue().await;
        self.end_session(Shutdown::Now).await;
        self.publish();
        if purge == Purge::Remove {
            let session = &self.facts.session_id;
            if self.kept == Kept::OnDisk {
                let removed = self.shared.host.remove(session).await;
                removed.map_err(|reason| Problem::new(Code::Refused, reason))?;
            }
            self.ledger.remove();
        }
        Ok(Done::Closed(crate::answer::Closed {
            closed: vec![self.log.tab().to_string()],
        }))
    }
}
