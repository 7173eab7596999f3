//! The rules that are built in.

use caliban_settings::{RuleAction, RuleSpec};

use crate::origin::Origin;
use crate::rule::Rule;

/// What answers when no rule does.
const DEFAULTS: &[(&str, RuleAction)] = &[
    ("Read", RuleAction::Allow),
    ("Grep", RuleAction::Allow),
    ("Glob", RuleAction::Allow),
    ("TodoWrite", RuleAction::Allow),
    ("EnterPlanMode", RuleAction::Allow),
    ("ExitPlanMode", RuleAction::Allow),
    ("WebFetch", RuleAction::Ask),
    ("Bash", RuleAction::Ask),
    ("Write", RuleAction::Ask),
    ("Edit", RuleAction::Ask),
    // They act through other calls only, each of which is asked about by itself.
    ("AgentTool", RuleAction::Allow),
    ("BashOutput", RuleAction::Allow),
    ("KillShell", RuleAction::Allow),
    ("ReadMemoryTopic", RuleAction::Allow),
    ("WriteMemoryTopic", RuleAction::Allow),
    ("Skill", RuleAction::Allow),
    ("ToolSearch", RuleAction::Allow),
    ("*", RuleAction::Ask),
];

/// What answers when nobody has a wish.
pub(crate) fn defaults() -> impl Iterator<Item = Rule> {
    DEFAULTS.iter().filter_map(|(pattern, action)| {
        Rule::new(RuleSpec::new(*pattern, *action), Origin::BuiltIn).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_about_tools_that_there_are() {
        for (name, _) in DEFAULTS.iter().filter(|(name, _)| *name != "*") {
            assert!(caliban_model::BuiltInTool::named(name).is_some(), "{name}");
        }
    }
}
