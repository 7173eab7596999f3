//! Which route a conversation stays on after another one stood in: providers keep what they have
//! read, so every hop there and back is paid for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use caliban_model::Purpose;

use crate::facts::Facts;

/// The most conversations that are kept in mind; the one unused for longest goes.
const MAX_STAYS: usize = 64;

/// Whose conversation, and for what.
type Key = (Option<Arc<str>>, Purpose);

#[derive(Debug, Default)]
pub(crate) struct Affinity(HashMap<Key, Stay>);

/// A conversation that another route than the first has answered.
#[derive(Debug)]
struct Stay {
    route: Arc<str>,
    /// The model that was asked for then.
    asked: Arc<str>,
    since: Duration,
    used: Duration,
    messages: usize,
    ttl: Duration,
}

/// Whether the route that should be first works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Primary {
    Works,
    Ails,
}

impl Affinity {
    /// The route that a conversation stays on, if any. It ends when the cache there is cold, when
    /// the conversation was condensed, when another model is asked for, and when it has lasted
    /// long enough and the first route works again.
    pub(crate) fn stay(
        &self,
        facts: &Facts,
        now: Duration,
        primary: Primary,
        return_after: Duration,
    ) -> Option<Arc<str>> {
        let stay = self.0.get(&key(facts))?;
        let is_over = now.saturating_sub(stay.used) > stay.ttl
            || facts.messages < stay.messages
            || facts.model != stay.asked
            || (primary == Primary::Works && now.saturating_sub(stay.since) >= return_after);
        (!is_over).then(|| Arc::clone(&stay.route))
    }

    /// Some route other than the first has answered.
    pub(crate) fn stood_in(&mut self, facts: &Facts, route: &Arc<str>, now: Duration) {
        let key = key(facts);
        let since = match self.0.get(&key) {
            Some(stay) if stay.route == *route => stay.since,
            Some(_) | None => now,
        };
        self.0.insert(
            key,
            Stay {
                route: Arc::clone(route),
                asked: Arc::clone(&facts.model),
                since,
                used: now,
                messages: facts.messages,
                ttl: facts.cache_ttl,
            },
        );
        while self.0.len() > MAX_STAYS {
            let oldest = self.0.iter().min_by_key(|(_, stay)| stay.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            self.0.remove(&oldest);
        }
    }

    /// The first route has answered, or the one that stood in has failed.
    pub(crate) fn over(&mut self, facts: &Facts) {
        self.0.remove(&key(facts));
    }

    /// The route that stood in last, if the same model is asked for.
    pub(crate) fn last(&self, facts: &Facts) -> Option<Arc<str>> {
        let stay = self.0.get(&key(facts))?;
        (stay.asked == facts.model).then(|| Arc::clone(&stay.route))
    }

    /// The route that stands in for a purpose at the moment, in whichever conversation.
    pub(crate) fn current(&self, purpose: Purpose) -> Option<Arc<str>> {
        let mut stays = self.0.iter();
        let found = stays.find(|((_, of), _)| *of == purpose);
        found.map(|(_, stay)| Arc::clone(&stay.route))
    }
}

fn key(facts: &Facts) -> Key {
    (facts.session.clone(), facts.purpose)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn facts(messages: usize) -> Facts {
        Facts {
            messages,
            session: Some("s".into()),
            ..Facts::plain(Purpose::MainLoop, "m")
        }
    }

    #[test]
    fn a_stay_ends_by_cold_caches_new_prefixes_other_models_and_time() {
        let route: Arc<str> = "b".into();
        let mut affinity = Affinity::default();
        affinity.stood_in(&facts(4), &route, at(0));
        let stay = |affinity: &Affinity, facts: &Facts, now, primary| {
            affinity.stay(facts, now, primary, at(600)).is_some()
        };
        assert!(stay(&affinity, &facts(6), at(200), Primary::Works));
        assert!(!stay(&affinity, &facts(6), at(301), Primary::Works), "cold");
        assert!(!stay(&affinity, &facts(3), at(10), Primary::Works), "new");
        let mut other = facts(6);
        other.model = "n".into();
        assert!(!stay(&affinity, &other, at(10), Primary::Works));
        other = facts(6);
        other.purpose = Purpose::SubAgent;
        assert!(!stay(&affinity, &other, at(10), Primary::Works));
        // Used all the time, it lasts until the first one works again.
        for second in (0..900).step_by(100) {
            affinity.stood_in(&facts(6), &route, at(second));
        }
        assert!(stay(&affinity, &facts(6), at(800), Primary::Ails));
        assert!(!stay(&affinity, &facts(6), at(800), Primary::Works));
        affinity.over(&facts(6));
        assert_eq!(affinity.current(Purpose::MainLoop), None);
    }

    #[test]
    fn only_so_many_are_kept_in_mind() {
        let mut affinity = Affinity::default();
        for number in 0..200_u64 {
            let mut facts = facts(1);
            facts.session = Some(Arc::from(number.to_string()));
            affinity.stood_in(&facts, &"b".into(), at(number));
        }
        assert_eq!(affinity.0.len(), MAX_STAYS);
        let mut latest = facts(1);
        latest.session = Some("199".into());
        let stay = affinity.stay(&latest, at(199), Primary::Ails, at(600));
        assert_eq!(stay.as_deref(), Some("b"));
    }
}
