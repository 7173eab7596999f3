//! Hears tabs. What it has not taken waits in their streams, so a reader holds nothing and nobody
//! waits for it.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;

use crate::log::{Found, TabLog};
use crate::tab::TabHandle;
use crate::told::Told;

/// Bytes of one tab before it is the turn of the next.
const SHARE: usize = 64 * 1024;

/// Hears any number of tabs, each in order, all in turn.
#[derive(Debug, Default)]
pub struct Reader {
    wake: Arc<Notify>,
    feeds: VecDeque<Feed>,
    /// Taken and not handed out yet.
    waiting: Vec<Told>,
}

#[derive(Debug)]
struct Feed {
    log: Arc<TabLog>,
    /// Who knows more than the stream; nobody does where it is not a tab's.
    tab: Option<TabHandle>,
    id: u64,
    /// What it wants next.
    next: u64,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.log.unsubscribe(self.id);
    }
}

impl Reader {
    /// Hears a tab from this event on, without one from now on. One that was heard already is
    /// heard from there. Returns the number of the first event that will be told.
    pub(crate) fn listen(&mut self, tab: &TabHandle, from: Option<u64>) -> u64 {
        self.feeds.retain(|feed| !Arc::ptr_eq(&feed.log, &tab.log));
        self.follow(&tab.log, Some(tab.clone()), from)
    }

    pub(crate) fn follow(
        &mut self,
        log: &Arc<TabLog>,
        tab: Option<TabHandle>,
        from: Option<u64>,
    ) -> u64 {
        let (id, next) = log.subscribe(from, Arc::clone(&self.wake));
        self.feeds.push_back(Feed {
            log: Arc::clone(log),
            tab,
            id,
            next,
        });
        next
    }

    /// Whether a tab is heard.
    pub(crate) fn hears(&self, tab: &TabHandle) -> bool {
        self.feeds
            .iter()
            .any(|feed| Arc::ptr_eq(&feed.log, &tab.log))
    }

    /// Whether anything can come.
    pub fn is_over(&self) -> bool {
        self.feeds.is_empty() && self.waiting.is_empty()
    }

    /// What is told next; waits until there is something. Nothing once nothing can come. May be
    /// dropped without a loss.
    pub async fn next(&mut self) -> Option<Vec<Told>> {
        loop {
            if !self.waiting.is_empty() {
                return Some(std::mem::take(&mut self.waiting));
            }
            let mut is_lost = false;
            for place in 0..self.feeds.len() {
                let feed = &mut self.feeds[place];
                match feed.log.take(feed.id, SHARE) {
                    Found::Lines(lines) => {
                        feed.next = lines.last().map_or(feed.next, |line| line.seq + 1);
                        self.waiting.extend(lines);
                    }
                    Found::Gone => is_lost = true,
                    Found::Nothing => {}
                    Found::End => feed.next = u64::MAX,
                }
            }
            self.feeds.retain(|feed| feed.next != u64::MAX);
            self.feeds.rotate_left(usize::from(self.feeds.len() > 1));
            if !self.waiting.is_empty() {
                continue;
            }
            if is_lost {
                self.catch_up().await;
                continue;
            }
            if self.feeds.is_empty() {
                return None;
            }
            self.wake.notified().await;
        }
    }

    /// Gives a snapshot to every feed whose place is gone.
    async fn catch_up(&mut self) {
        for feed in &mut self.feeds {
            if !matches!(feed.log.take(feed.id, 0), Found::Gone) {
                continue;
            }
            let snapshot = match &feed.tab {
                Some(tab) => tab.snapshot().await,
                None => None,
            };
            // Where nobody knows more, at least that is said.
            let gap = || (feed.log.last(), json!({"type": "gap"}));
            let (seq, event) = snapshot.unwrap_or_else(gap);
            feed.log.move_to(feed.id, seq + 1);
            let first = feed.next.max(1);
            feed.next = seq + 1;
            if let Ok(event) = serde_json::value::to_raw_value(&event) {
                self.waiting.push(Told {
                    tab: Arc::clone(feed.log.tab()),
                    first: (first != seq).then_some(first),
                    seq,
                    request: None,
                    event: Arc::from(event),
                });
            }
        }
    }
}
