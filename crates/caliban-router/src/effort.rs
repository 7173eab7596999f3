//! How hard a route's model thinks: what the caller wishes, what the route says, and what is sent.

use std::collections::BTreeMap;

use caliban_model::{Effort, Knob, Reasoning};

/// What a route says about effort.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RouteEffort {
    /// For callers that say nothing. Without it nothing is sent.
    pub default: Option<Effort>,
    /// What each level means to this route's model; one that is missing means what the next lower
    /// one does.
    pub map: BTreeMap<Effort, Knob>,
}

impl RouteEffort {
    /// What is sent for a wish: the caller's goes before the route's, and where neither says
    /// anything, nothing is.
    pub fn sent(&self, wish: Reasoning) -> Reasoning {
        match wish {
            Reasoning::Effort(level) => self.turned(level),
            Reasoning::Auto => self
                .default
                .map_or(Reasoning::Auto, |level| self.turned(level)),
            Reasoning::Off | Reasoning::Budget(_) => wish,
        }
    }

    fn turned(&self, level: Effort) -> Reasoning {
        let knob = self.map.range(..=level).next_back().map(|(_, knob)| *knob);
        match knob {
            Some(Knob::Budget(tokens)) => Reasoning::Budget(tokens),
            Some(Knob::Level(other)) => Reasoning::Effort(other),
            Some(Knob::Off) => Reasoning::Off,
            None => Reasoning::Effort(level),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_goes_before_the_route_and_gaps_fall_to_the_next_lower() {
        let effort = RouteEffort {
            default: Some(Effort::Medium),
            map: [
                (Effort::Low, Knob::Budget(1_024)),
                (Effort::High, Knob::Budget(32_768)),
            ]
            .into(),
        };
        assert_eq!(effort.sent(Reasoning::Auto), Reasoning::Budget(1_024));
        assert_eq!(
            effort.sent(Reasoning::Effort(Effort::Max)),
            Reasoning::Budget(32_768)
        );
        assert_eq!(effort.sent(Reasoning::Off), Reasoning::Off);
        assert_eq!(effort.sent(Reasoning::Budget(7)), Reasoning::Budget(7));
        let plain = RouteEffort::default();
        assert_eq!(plain.sent(Reasoning::Auto), Reasoning::Auto);
        assert_eq!(
            plain.sent(Reasoning::Effort(Effort::Low)),
            Reasoning::Effort(Effort::Low)
        );
    }
}
