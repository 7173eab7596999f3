//! MCP servers whose tools are not offered for the time being.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caliban_agent::{Tool, ToolSource};
use caliban_settings::{RuleAction, RuleSpec, mcp_names};
use futures::FutureExt;
use futures::future::BoxFuture;

/// Which servers were switched off while the session lives.
#[derive(Debug, Default)]
pub struct Switches {
    /// What the names of their tools begin with, by server.
    off: Mutex<BTreeMap<String, String>>,
    changes: AtomicU64,
}

impl Switches {
    /// `all` are the servers of the session, this one among them.
    pub(crate) fn turn<'a>(
        &self,
        server: &str,
        all: impl IntoIterator<Item = &'a str>,
        switch: Switch,
    ) {
        let mut off = self.off();
        match (switch, mcp_names::server_parts(all).get(server)) {
            (Switch::Off, Some(part)) => {
                off.insert(server.to_owned(), mcp_names::prefix(part));
            }
            (Switch::On, _) | (Switch::Off, None) => {
                off.remove(server);
            }
        }
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn is_off(&self, server: &str) -> bool {
        self.off().contains_key(server)
    }

    /// The same as rules, for agents that the session sends into processes of their own.
    pub(crate) fn denials(&self) -> Vec<RuleSpec> {
        let prefixes = self.off();
        let rules = prefixes
            .values()
            .map(|prefix| RuleSpec::new(format!("{prefix}*"), RuleAction::Deny));
        rules.collect()
    }

    /// Whether a tool is one of a server that is switched off.
    fn hides(&self, tool: &str) -> bool {
        self.off().values().any(|prefix| tool.starts_with(prefix))
    }

    fn off(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.off.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switch {
    On,
    Off,
}

/// The tools of servers, without those that are switched off.
#[derive(Debug)]
pub(crate) struct Switched {
    pub(crate) source: Arc<dyn ToolSource>,
    pub(crate) switches: Arc<Switches>,
}

impl ToolSource for Switched {
    fn generation(&self) -> u64 {
        self.source.generation() + self.switches.changes.load(Ordering::Relaxed)
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.source.tools();
        tools.retain(|tool| !self.switches.hides(&tool.spec().name));
        tools
    }

    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Arc<dyn Tool>>> {
        if self.switches.hides(name) {
            return std::future::ready(None).boxed();
        }
        self.source.find(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_is_denied_elsewhere() {
        let switches = Switches::default();
        assert_eq!(switches.denials(), []);
        switches.turn("calc", ["calc", "other"], Switch::Off);
        let denied = [RuleSpec::new("mcp__calc__*", RuleAction::Deny)];
        assert_eq!(switches.denials(), denied);
        switches.turn("calc", ["calc", "other"], Switch::On);
        assert_eq!(switches.denials(), []);
    }
}
