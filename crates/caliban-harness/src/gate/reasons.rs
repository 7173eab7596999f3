//! Why a call is refused or asked about, in words.

use caliban_agent::{Denial, DenialSource, Effect, PartVerdict, QuestionPart, ToolCall};
use caliban_permissions::{DecidedBy, Decision, Judge, Why};
use caliban_settings::{PermissionMode, RuleAction};

use super::{SetBy, Settled, rule};

/// What a call was taken apart into, for whoever is asked about it.
pub(super) fn parts(judge: &Judge, decision: &Decision) -> Vec<QuestionPart> {
    if decision.parts.len() < 2 {
        return Vec::new();
    }
    let parts = decision.parts.iter().filter_map(|part| {
        let rule = judge.book.rules().get(part.rule)?;
        Some(QuestionPart {
            item: part.item.to_string(),
            verdict: match part.action {
                RuleAction::Allow => PartVerdict::Allow,
                RuleAction::Ask => PartVerdict::Ask,
                RuleAction::Deny => PartVerdict::Deny,
            },
            rule: rule.pattern.text().to_owned(),
            origin: rule.origin.described().to_owned(),
        })
    });
    parts.collect()
}

pub(super) fn refuse(judge: &Judge, decision: &Decision) -> Settled {
    let rule = rule(judge, decision);
    let by_rule = || {
        format!(
            "the rule `{}` ({}) denies it",
            rule.pattern.text(),
            rule.origin
        )
    };
    let reason = match &decision.why {
        Why::Catastrophe(why) => format!("no rule or mode allows this: {why}"),
        Why::Unproved(why) => format!("{}: {why}", by_rule()),
        _ => rule.reason.clone().unwrap_or_else(by_rule),
    };
    Settled::Deny(
        DecidedBy::Rule,
        Denial {
            source: DenialSource::Rule,
            reason,
            rule: Some(rule.pattern.text().to_owned()),
            remedy: None,
        },
    )
}

/// What ends a plan mode that the operator chose.
pub(super) const ENDING_PLAN_MODE: &str =
    "The user chose plan mode and ends it, by running caliban in another `--permission-mode`.";

/// What no word of an adviser can change: a rule that denies, or plan mode.
pub(super) fn static_denial(
    call: &ToolCall,
    judge: &Judge,
    decision: &Decision,
    mode: PermissionMode,
    set_by: SetBy,
) -> Option<Settled> {
    if mode == PermissionMode::Plan
        && let Some(denial) = blocked_by_plan(call, set_by)
    {
        return Some(Settled::Deny(DecidedBy::Mode, denial));
    }
    (decision.action == RuleAction::Deny).then(|| refuse(judge, decision))
}

/// In plan mode nothing is changed and nothing is run. Other agents may work: each of their calls
/// passes here.
pub(super) fn blocked_by_plan(call: &ToolCall, set_by: SetBy) -> Option<Denial> {
    let remedy = match set_by {
        SetBy::Model => "Finish the plan and call ExitPlanMode first.".to_owned(),
        SetBy::Operator => format!("{ENDING_PLAN_MODE} Answer with the plan."),
    };
    match call.effect {
        Effect::ReadOnly | Effect::Session | Effect::Delegates => None,
        Effect::Writes | Effect::Executes => Some(Denial {
            source: DenialSource::Rule,
            reason: format!("{} may not run in plan mode", call.name),
            rule: None,
            remedy: Some(remedy),
        }),
    }
}

pub(super) fn why_asked(call: &ToolCall, decision: &Decision) -> String {
    let name = &call.name;
    match &decision.why {
        Why::Protected { name: place, path } => {
            format!("{name} needs consent for `{path}`, because `{place}` is protected")
        }
        Why::Unproved(why) => format!("{name} needs consent, because {why}"),
        Why::Unresolved(path) => {
            format!("{name} needs consent, because `{path}` cannot be resolved safely")
        }
        Why::Catastrophe(why) => format!("{name} needs the consent of a person: {why}"),
        Why::Rule | Why::Guard(_) => format!("{name} needs consent"),
    }
}
