//! What would become of a call, in words: for somebody who tries one and makes none.

use caliban_agent::{Opinion, ToolCall};
use caliban_model::Effect;
use caliban_permissions::{Decision, Judge, Regime, Relaxed, Why, relax};
use caliban_settings::{PermissionMode, RuleAction};
use jiff::Timestamp;
use serde_json::Value;

use super::{Gate, rule};
use crate::gate::reasons::blocked_by_plan;

impl Gate {
    /// What rules and mode say about a call at this moment, and which of them decides. Hooks and
    /// the classifier of auto mode are not asked: they judge calls that are made.
    pub(crate) fn foreseen(&self, tool: &str, input: &Value, effect: Effect) -> String {
        let judge = self.judge.load();
        let decision = judge.decide(tool, input, Timestamp::now());
        let call = ToolCall {
            id: "".into(),
            agent: None,
            name: tool.into(),
            input: input.clone(),
            effect,
            first_arg: None,
            turn: 0,
            opinion: Opinion::None,
        };
        let by_rule = || by_rule(&judge, &decision);
        let by_mode = |action: RuleAction, mode: PermissionMode| {
            format!("{action} by mode {mode}; without it {}", by_rule())
        };
        let mode = match self.regime() {
            Regime::Disabled => return format!("allow: permissions are off; else {}", by_rule()),
            Regime::Rules(mode) => mode,
        };
        let set_by = **self.plan_set_by.load();
        match mode {
            PermissionMode::BypassPermissions => match &decision.why {
                Why::Catastrophe(why) => return format!("deny in every mode: {why}"),
                _ => return by_mode(RuleAction::Allow, mode),
            },
            PermissionMode::Plan if blocked_by_plan(&call, set_by).is_some() => {
                return by_mode(RuleAction::Deny, mode);
            }
            _ => {}
        }
        if let RuleAction::Deny | RuleAction::Allow = decision.action {
            return by_rule();
        }
        if self.is_confined(&call, &judge, &decision) {
            return format!("allow, confined by the sandbox; without it {}", by_rule());
        }
        match relax(mode, self.parts.auto_allow, tool, &decision) {
            Relaxed::Allow => by_mode(RuleAction::Allow, mode),
            Relaxed::Ask => by_rule(),
            Relaxed::Classify => format!(
                "the classifier of mode {mode} judges it; without it {}",
                by_rule()
            ),
        }
    }
}

fn by_rule(judge: &Judge, decision: &Decision) -> String {
    let rule = rule(judge, decision);
    format!(
        "{} by `{}`, {}",
        decision.action,
        rule.pattern.text(),
        rule.origin.described()
    )
}
