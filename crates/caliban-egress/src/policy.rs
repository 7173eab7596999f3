//! What the operator allowed and denied, and what was allowed while the session ran.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::audit::Rule;
use crate::entry::{Entry, EntryError, List};
use crate::host::Target;

/// How many entries a list may have; each connection is compared with all of them.
const ENTRIES: usize = 4096;
/// How many targets a session can be allowed one by one.
const GRANTS: usize = 4096;

/// Which targets may be reached, and how. Shared by all commands of a session.
#[derive(Debug)]
pub struct Policy {
    allowed: Vec<Entry>,
    denied: Vec<Entry>,
    upstream: Option<NonZeroU16>,
    /// What the user allowed for the session.
    granted: Mutex<BTreeSet<Entry>>,
}

/// Why lists of domains cannot be enforced, and so nothing may be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("the entry `{entry}` of the domains cannot be used: {reason}")]
    Entry { entry: String, reason: EntryError },
    #[error("a list of domains has {0} entries; {ENTRIES} is the most")]
    TooMany(usize),
    #[error("the port of the operator's proxy must be from 1 to 65535")]
    Upstream,
}

/// What the policy says of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Judgement {
    Allowed(Rule),
    Denied {
        entry: String,
    },
    /// No list names it.
    Unlisted,
}

/// What the lists make of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Explained {
    Reached {
        by: String,
    },
    Denied {
        by: String,
    },
    /// This entry would name it.
    Unlisted {
        entry: String,
    },
    /// The same, and nothing else opens it: it lies outside the public internet.
    Private {
        entry: String,
    },
}

impl Policy {
    /// Reads the lists, and the port of a proxy on this machine through which everything goes. With
    /// such a proxy and nothing in `allowed`, what is not denied is left to that proxy.
    pub fn parse(
        allowed: &[String],
        denied: &[String],
        upstream: Option<u16>,
    ) -> Result<Self, PolicyError> {
        let upstream = match upstream.map(NonZeroU16::new) {
            None => None,
            Some(None) => return Err(PolicyError::Upstream),
            Some(port) => port,
        };
        Ok(Self {
            allowed: entries(allowed, List::Allowed)?,
            denied: entries(denied, List::Denied)?,
            upstream,
            granted: Mutex::default(),
        })
    }

    /// The proxy that everything goes through, if there is one.
    pub(crate) fn upstream(&self) -> Option<SocketAddr> {
        let port = self.upstream?.get();
        Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Judges by name and port alone. What denies counts before what allows.
    pub(crate) fn judge(&self, target: &Target) -> Judgement {
        let naming = |entry: &&Entry| entry.names(target);
        if let Some(entry) = self.denied.iter().find(naming) {
            return Judgement::Denied {
                entry: entry.to_string(),
            };
        }
        if let Some(entry) = self.allowed.iter().find(naming) {
            return Judgement::Allowed(Rule::Entry(entry.to_string()));
        }
        if self.granted().contains(&Entry::covering(target)) {
            return Judgement::Allowed(Rule::Session);
        }
        match self.upstream {
            Some(_) if self.allowed.is_empty() => Judgement::Allowed(Rule::OperatorsProxy),
            Some(_) | None => Judgement::Unlisted,
        }
    }

    /// What the lists make of a target, for whoever wants to know beforehand.
    pub fn explain(&self, target: &Target) -> Explained {
        match self.judge(target) {
            Judgement::Allowed(rule) => Explained::Reached {
                by: rule.to_string(),
            },
            Judgement::Denied { entry } => Explained::Denied { by: entry },
            Judgement::Unlisted => {
                let entry = Entry::covering(target).to_string();
                if target.host.is_askable() {
                    Explained::Unlisted { entry }
                } else {
                    Explained::Private { entry }
                }
            }
        }
    }

    /// Allows what the entry names until the session ends. Beyond the limit it is asked again.
    pub(crate) fn grant(&self, entry: Entry) {
        let mut granted = self.granted();
        if granted.len() < GRANTS {
            granted.insert(entry);
        }
    }

    fn granted(&self) -> MutexGuard<'_, BTreeSet<Entry>> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entries(texts: &[String], list: List) -> Result<Vec<Entry>, PolicyError> {
    if texts.len() > ENTRIES {
        return Err(PolicyError::TooMany(texts.len()));
    }
    texts
        .iter()
        .map(|text| {
            Entry::parse(text, list).map_err(|reason| PolicyError::Entry {
                entry: text.clone(),
                reason,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn policy(allowed: &[&str], denied: &[&str], upstream: Option<u16>) -> Policy {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        Policy::parse(&owned(allowed), &owned(denied), upstream).unwrap()
    }

    fn target(text: &str) -> Target {
        Target::parse(text.as_bytes()).unwrap()
    }

    #[rstest]
    #[case::listed(&["a.com"], &[], None, "a.com:443", Judgement::Allowed(Rule::Entry("a.com".into())))]
    #[case::first_names_it(&["*.a.com", "x.a.com"], &[], None, "x.a.com:80", Judgement::Allowed(Rule::Entry("*.a.com".into())))]
    #[case::empty_is_nothing(&[], &[], None, "a.com:443", Judgement::Unlisted)]
    #[case::not_listed(&["a.com"], &[], None, "b.com:443", Judgement::Unlisted)]
    #[case::denial_wins(&["*.a.com"], &["x.a.com"], None, "x.a.com:443", Judgement::Denied { entry: "x.a.com:*".into() })]
    #[case::denial_wins_over_the_same(&["a.com"], &["a.com"], None, "a.com:443", Judgement::Denied { entry: "a.com:*".into() })]
    #[case::denial_spares_others(&["*.a.com"], &["x.a.com"], None, "y.a.com:443", Judgement::Allowed(Rule::Entry("*.a.com".into())))]
    #[case::operator_decides(&[], &[], Some(8888), "b.com:22", Judgement::Allowed(Rule::OperatorsProxy))]
    #[case::operator_does_not_decide_what_is_denied(&[], &["b.com"], Some(8888), "b.com:443", Judgement::Denied { entry: "b.com:*".into() })]
    #[case::a_list_binds_before_the_operator(&["a.com"], &[], Some(8888), "b.com:443", Judgement::Unlisted)]
    fn targets_are_judged(
        #[case] allowed: &[&str],
        #[case] denied: &[&str],
        #[case] upstream: Option<u16>,
        #[case] asked: &str,
        #[case] expected: Judgement,
    ) {
        assert_eq!(
            policy(allowed, denied, upstream).judge(&target(asked)),
            expected
        );
    }

    #[test]
    fn what_is_granted_is_granted_alone_and_never_over_a_denial() {
        let policy = policy(&[], &["bad.com"], None);
        policy.grant(Entry::covering(&target("a.com:443")));
        policy.grant(Entry::covering(&target("b.com:22")));
        policy.grant(Entry::covering(&target("bad.com:443")));
        let is_allowed = |text| policy.judge(&target(text)) == Judgement::Allowed(Rule::Session);
        assert!(is_allowed("a.com:443") && is_allowed("a.com:80") && is_allowed("b.com:22"));
        assert!(!is_allowed("a.com:22") && !is_allowed("x.a.com:443") && !is_allowed("b.com:443"));
        assert!(!is_allowed("bad.com:443"));
    }

    #[test]
    fn one_entry_that_cannot_be_read_spoils_the_list() {
        let lists = [vec!["a.com".to_owned(), "*".to_owned()], vec![]];
        let error = Policy::parse(&lists[0], &lists[1], None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the entry `*` of the domains cannot be used: it would allow everything; name hosts, such as `example.com` or `*.example.com`"
        );
        assert_eq!(
            Policy::parse(&[], &[], Some(0)).unwrap_err(),
            PolicyError::Upstream
        );
        let many = vec!["a.com".to_owned(); ENTRIES + 1];
        assert_eq!(
            Policy::parse(&many, &[], None).unwrap_err(),
            PolicyError::TooMany(4097)
        );
    }
}
