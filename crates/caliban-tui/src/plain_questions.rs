//! Questions about calls where nothing is drawn: all of it is read out, and numbers answer.

use caliban_agent::{Answer, Inquiry, Interrupt, Remember};
use caliban_settings::RuleAction;
use caliban_text::{Strength, sanitise};

use crate::asking;

/// What a question about a call says, and the numbers that answer it.
pub(crate) fn consent(inquiry: &Inquiry, agent: Option<&str>) -> Vec<String> {
    let mut lines: Vec<String> = asking::lines(inquiry, agent)
        .into_iter()
        .map(|line| line.text)
        .collect();
    if let Some(first) = lines.first_mut() {
        *first = format!("Permission required. {first}");
    }
    if let Some(plan) = asking::plan(inquiry) {
        lines.push(sanitise(plan, Strength::Name).into_owned());
    }
    lines.extend(asking::change(inquiry).into_iter().map(|line| line.text));
    let suggestions = &inquiry.question.suggestions;
    if suggestions.is_empty() {
        if asking::is_command(inquiry) {
            let text = "For this session only a rule about every command could answer.";
            lines.push(text.to_owned());
        }
        lines.push("1. Allow once. 3. Deny once. Type a number and Enter.".to_owned());
    } else {
        let rules = suggestions.join(" and ");
        let rules = sanitise(&rules, Strength::Name);
        lines.push(format!("rule of 2 and 4: {rules}"));
        lines.push("1. Allow once. 2. Allow for this session. 3. Deny once. 4. Deny for this session. Type a number and Enter.".to_owned());
    }
    lines
}

/// The numbers that answer a question.
pub(crate) fn offered(inquiry: &Inquiry) -> &'static str {
    if inquiry.question.suggestions.is_empty() {
        "1 or 3"
    } else {
        "1, 2, 3 or 4"
    }
}

/// What a number means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Once(RuleAction),
    /// For the rest of the session, by the rules that are suggested.
    Always(RuleAction),
}

impl Choice {
    pub(crate) fn of(inquiry: &Inquiry, text: &str) -> Option<Self> {
        let has_rules = !inquiry.question.suggestions.is_empty();
        match text {
            "1" => Some(Self::Once(RuleAction::Allow)),
            "2" if has_rules => Some(Self::Always(RuleAction::Allow)),
            "3" => Some(Self::Once(RuleAction::Deny)),
            "4" if has_rules => Some(Self::Always(RuleAction::Deny)),
            _ => None,
        }
    }

    pub(crate) fn answer(self) -> Answer {
        let remember = Remember::Once;
        match self {
            Self::Once(RuleAction::Allow) | Self::Always(RuleAction::Allow) => Answer::Allow {
                input: None,
                remember,
            },
            Self::Once(_) | Self::Always(_) => Answer::Deny {
                reason: None,
                remember,
                interrupt: Interrupt::No,
            },
        }
    }
}
