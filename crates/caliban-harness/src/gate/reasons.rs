//! Why a call is refused or asked about, in words.

use caliban_agent::{Denial, DenialSource, Effect, PartVerdict, QuestionPart, RulePlace, ToolCall};
use caliban_permissions::{DecidedBy, Decision, Judge, Rule, Why};
use caliban_settings::{PermissionMode, RuleAction};
use jiff::Timestamp;

use super::{SetBy, Settled, rule};

/// What a call was taken apart into, for whoever is asked about it.
pub(super) fn parts(judge: &Judge, call: &ToolCall, decision: &Decision) -> Vec<QuestionPart> {
    let pieces = judge.pieces(&call.name, &call.input, Timestamp::now());
    let pieces = pieces.into_iter().filter_map(|piece| match piece.verdict {
        Ok(decision) => part(judge, piece.text, decision.action, decision.rule, None),
        Err(why) => part(judge, piece.text, RuleAction::Ask, decision.rule, Some(why)),
    });
    let mut parts: Vec<QuestionPart> = pieces.collect();
    if !parts.is_empty() || decision.parts.len() > 1 {
        parts.extend(decision.parts.iter().filter_map(|known| {
            part(
                judge,
                known.item.to_string(),
                known.action,
                known.rule,
                None,
            )
        }));
    }
    parts
}

fn part(
    judge: &Judge,
    item: String,
    action: RuleAction,
    rule: usize,
    unread: Option<String>,
) -> Option<QuestionPart> {
    let rule = judge.book.rules().get(rule)?;
    Some(QuestionPart {
        item,
        verdict: match action {
            RuleAction::Allow => PartVerdict::Allow,
            RuleAction::Ask => PartVerdict::Ask,
            RuleAction::Deny => PartVerdict::Deny,
        },
        rule: rule.pattern.text().to_owned(),
        origin: rule.origin.described().to_owned(),
        unread,
    })
}

/// Where a rule stands.
pub(super) fn place(rule: &Rule) -> RulePlace {
    RulePlace {
        scope: rule.origin.as_str().to_owned(),
        written: rule.written.clone(),
        comment: rule.comment.clone(),
    }
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
