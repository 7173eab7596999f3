//! Hears tabs. What it has not taken waits in their streams, so a reader holds nothing and nobody
//! waits for it.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;

use crate::log::Found;
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
    tab: TabHandle,
    id: u64,
    /// What it wants next.
    next: u64,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.tab.log.unsubscribe(self.id);
    }
}

impl Reader {
    /// Hears a tab from this event on, without one from now on. One that was heard already is
    /// heard from there. Returns the number of the first event that will be told.
    pub(crate) fn listen(&mut self, tab: &TabHandle, from: Option<u64>) -> u64 {
        self.feeds.retain(|feed| !Arc::ptr_eq(&feed.tab.log, &tab.log));
        let (id, next) = tab.log.subscribe(from, Arc::clone(&self.wake));
        self.feeds.push_back(Feed {
            tab: tab.clone(),
            id,
            next,
        });
        next
    }

    /// Whether a tab is heard.
    pub(crate) fn hears(&self, tab: &TabHandle) -> bool {
        self.feeds.iter().any(|feed| Arc::ptr_eq(&feed.tab.log, &tab.log))
    }

    /// Whether anything can come.
    pub fn is_over(&self) -> bool {
        self.feeds.is_empty() && self.waiting.is_empty()
    }

    /// What is told next; waits until there is something. May be dropped without a loss.
    pub async fn next(&mut self) -> Vec<Told> {
        loop {
            if !self.waiting.is_empty() {
                return std::mem::take(&mut self.waiting);
            }
            let mut is_lost = None;
            for place in 0..self.feeds.len() {
                let feed = &mut self.feeds[place];
                match feed.tab.log.take(feed.id, SHARE) {
                    Found::Lines(lines) => {
                        feed.next = lines.last().map_or(feed.next, |line| line.seq + 1);
                        self.waiting.extend(lines);
                    }
                    Found::Gone => is_lost = Some(place),
                    Found::Nothing => {}
                    Found::End => feed.next = u64::MAX,
                }
            }
            self.feeds.retain(|feed| feed.next != u64::MAX);
            self.feeds.rotate_left(usize::from(self.feeds.len() > 1));
            if !self.waiting.is_empty() {
                continue;
            }
            if is_lost.is_some() {
                self.catch_up().await;
                continue;
            }
            if self.feeds.is_empty() {
                return std::future::pending().await;
            }
            self.wake.notified().await;
        }
    }

    /// Gives a snapshot to every feed whose place is gone.
    async fn catch_up(&mut self) {
        for feed in &mut self.feeds {
            if !matches!(feed.tab.log.take(feed.id, 0), Found::Gone) {
                continue;
            }
            let (seq, event) = match feed.tab.snapshot().await {
                Some(snapshot) => snapshot,
                // Nobody knows more: the tab is being closed.
                None => (feed.tab.log.last(), json!({"type": "gap"})),
            };
            feed.tab.log.move_to(feed.id, seq + 1);
            let first = feed.next;
            feed.next = seq + 1;
            if let Ok(event) = serde_json::value::to_raw_value(&event) {
                self.waiting.push(Told {
                    tab: Arc::clone(feed.tab.log.tab()),
                    first: (first != seq).then_some(first),
                    seq,
                    request: None,
                    event: Arc::from(event),
                });
            }
        }
    }
}
