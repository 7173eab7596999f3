//! The gate before every call of every agent of a session: rules, then mode, then the operator.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use caliban_agent::{
    Answer, Consultant, Denial, DenialSource, Effect, Event, Opinion, Question, Remember, ToolCall,
    TypedTool, Verdict,
};
use caliban_model::CancellationToken;
use caliban_permissions::{
    AuditLog, AutoAllow, AutoRules, AutoVerdict, CLASSIFIER_PROMPT, DecidedBy, Decision, Entry,
    Judge, MatchedRule, Origin, Regime, Relaxed, Rule, RuleBook, RuleError, VerdictCache, Why,
    classifier_question, classifier_verdict, relax, remedy, suggestions,
};
use caliban_settings::{PermissionMode, RuleAction, RuleSpec};
use caliban_tools::{ExitPlanMode, PlanMode};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::json;

use crate::notice_sink::NoticeSink;

/// How a session is recorded whose calls were all allowed that would have been asked about.
pub(crate) const AUTO_ALLOW: &str = "autoAllow";
/// Calls whose answer is awaited; more than a turn can hold.
const MAX_PENDING: usize = 1024;

/// Stands before every call.
#[derive(Debug)]
pub(crate) struct Gate {
    judge: ArcSwap<Judge>,
    regime: ArcSwap<Regime>,
    plan_set_by: ArcSwap<SetBy>,
    parts: GateParts,
    /// What the operator decided for the rest of the session, the latest last.
    remembered: Mutex<Vec<Rule>>,
    /// What needs no consent until the next prompt, because the command that was called says so.
    lent: ArcSwapOption<RuleBook>,
    /// Calls that the operator is being asked about, by id.
    pending: Mutex<HashMap<Arc<str>, Decision>>,
    /// Whether it was told that the log cannot be written.
    complained: AtomicBool,
}

/// What a gate is made of besides its judge.
#[derive(Debug)]
pub(crate) struct GateParts {
    pub(crate) regime: Regime,
    pub(crate) auto_allow: AutoAllow,
    pub(crate) plan: Arc<PlanMode>,
    pub(crate) plan_set_by: SetBy,
    pub(crate) auto: Option<Auto>,
    pub(crate) audit: Option<AuditLog>,
    pub(crate) session_id: Arc<str>,
    pub(crate) notice_sink: NoticeSink,
}

/// Who turned plan mode on. What the operator set is not the model's to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetBy {
    Model,
    Operator,
}

/// What auto mode asks.
#[derive(Debug)]
pub(crate) struct Auto {
    pub(crate) rules: AutoRules,
    pub(crate) classifier: Consultant,
    pub(crate) cache: Mutex<VerdictCache>,
}

/// What became of a call, and by whose word.
enum Settled {
    Allow(DecidedBy),
    Deny(DecidedBy, Denial),
    Ask(String),
}

impl Gate {
    pub(crate) fn new(judge: Judge, parts: GateParts) -> Self {
        Self {
            judge: ArcSwap::from_pointee(judge),
            regime: ArcSwap::from_pointee(parts.regime),
            plan_set_by: ArcSwap::from_pointee(parts.plan_set_by),
            parts,
            remembered: Mutex::default(),
            lent: ArcSwapOption::empty(),
            pending: Mutex::default(),
            complained: AtomicBool::new(false),
        }
    }

    /// How calls are judged outside plan mode.
    pub(crate) fn base_regime(&self) -> Regime {
        **self.regime.load()
    }

    /// The mode as it is written down: everything allowed is one of its own.
    pub(crate) fn recorded_mode(&self) -> &'static str {
        match self.parts.auto_allow {
            AutoAllow::On => AUTO_ALLOW,
            AutoAllow::Off => self.base_regime().as_str(),
        }
    }

    /// Judges by another mode from the next call on. Plan mode has its own switch.
    pub(crate) fn set_mode(&self, mode: PermissionMode) {
        if mode == PermissionMode::Plan {
            self.plan_set_by.store(Arc::new(SetBy::Operator));
            self.parts.plan.enter();
            return;
        }
        self.leave_plan();
        self.regime.store(Arc::new(Regime::Rules(mode)));
    }

    /// Ends plan mode, whoever began it.
    pub(crate) fn leave_plan(&self) {
        self.parts.plan.exit();
        self.plan_set_by.store(Arc::new(SetBy::Model));
    }

    /// The rules as they are at this moment.
    pub(crate) fn book(&self) -> RuleBook {
        self.judge.load().book.clone()
    }

    pub(crate) fn regime(&self) -> Regime {
        match self.base_regime() {
            Regime::Rules(_) if self.parts.plan.is_active() => Regime::Rules(PermissionMode::Plan),
            regime => regime,
        }
    }

    /// What becomes of a call, after the rules were read and advisers were heard. The first that
    /// applies counts:
    ///
    /// 1. Without permissions everything is allowed.
    /// 2. In `bypassPermissions` everything is allowed but a catastrophe.
    /// 3. In plan mode what changes or runs something is refused, and the model may leave it only
    ///    with consent, unless it entered by itself, the operator has said so, or an adviser has
    ///    an opinion.
    /// 4. A rule that denies.
    /// 5. An adviser that wants the operator asked: neither rule nor mode answers that.
    /// 6. A rule that allows.
    /// 7. An adviser that approves what a rule would ask about, except for a catastrophe.
    /// 8. What the command that was called lends, where only a built-in rule asks.
    /// 9. The mode: it allows, asks, or lets the lists of auto mode and then the classifier say.
    async fn settle(&self, call: &ToolCall, decision: &Decision) -> Settled {
        let judge = self.judge.load();
        let mode = match self.regime() {
            Regime::Disabled => return Settled::Allow(DecidedBy::Mode),
            Regime::Rules(PermissionMode::BypassPermissions) => {
                return match &decision.why {
                    Why::Catastrophe(_) => refuse(&judge, decision),
                    _ => Settled::Allow(DecidedBy::Mode),
                };
            }
            Regime::Rules(mode) => mode,
        };
        if mode == PermissionMode::Plan
            && let Some(denial) = blocked_by_plan(call)
        {
            return Settled::Deny(DecidedBy::Mode, denial);
        }
        if mode == PermissionMode::Plan
            && &*call.name == ExitPlanMode::NAME
            && call.opinion == Opinion::None
            && decision.action != RuleAction::Deny
            && !self.may_leave_plan(&judge, decision)
        {
            return Settled::Ask("leaving plan mode needs the consent of the user".to_owned());
        }
        let asked = match (decision.action, &call.opinion) {
            (RuleAction::Deny, _) => return refuse(&judge, decision),
            (RuleAction::Allow, Opinion::None | Opinion::Approved { .. }) => {
                return Settled::Allow(DecidedBy::Rule);
            }
            // Only a person may say yes to a catastrophe.
            (RuleAction::Ask, Opinion::Approved { .. })
                if !matches!(decision.why, Why::Catastrophe(_)) =>
            {
                return Settled::Allow(DecidedBy::Hook);
            }
            // The operator's hook wants this very call to be asked about; no mode answers that.
            (_, Opinion::Ask { reason }) => return Settled::Ask(reason.clone()),
            (RuleAction::Ask, Opinion::None | Opinion::Approved { .. }) => {
                why_asked(call, decision)
            }
        };
        if self.is_lent(call, &judge, decision) {
            return Settled::Allow(DecidedBy::Rule);
        }
        match relax(mode, self.parts.auto_allow, &call.name, decision) {
            Relaxed::Allow => Settled::Allow(DecidedBy::Mode),
            Relaxed::Ask => Settled::Ask(asked),
            Relaxed::Classify => self.classify(call, &judge, asked).await,
        }
    }

    /// Whether the model may leave plan mode by itself: where it entered by itself, and where the
    /// operator has said so.
    fn may_leave_plan(&self, judge: &Judge, decision: &Decision) -> bool {
        **self.plan_set_by.load() == SetBy::Model
            || self.parts.auto_allow == AutoAllow::On
            || (decision.action == RuleAction::Allow
                && rule(judge, decision).origin != Origin::BuiltIn)
    }

    /// Asks the lists of auto mode, then its classifier. Whatever fails is asked.
    async fn classify(&self, call: &ToolCall, judge: &Judge, asked: String) -> Settled {
        let Some(auto) = &self.parts.auto else {
            return Settled::Ask(asked);
        };
        let now = Timestamp::now();
        let verdict = match auto.rules.verdict(judge, &call.name, &call.input, now) {
            Some(verdict) => Some(verdict),
            None => auto.verdict(call, judge).await,
        };
        match verdict {
            Some(AutoVerdict::Allow) => Settled::Allow(DecidedBy::Classifier),
            Some(AutoVerdict::SoftDeny { reason }) => Settled::Ask(reason),
            Some(AutoVerdict::HardDeny { reason }) => Settled::Deny(
                DecidedBy::Classifier,
                Denial {
                    source: DenialSource::Classifier,
                    reason,
                    rule: None,
                    remedy: None,
                },
            ),
            None => Settled::Ask(format!("{asked} (the classifier gave no verdict)")),
        }
    }

    fn question(&self, call: &ToolCall, decision: &Decision, reason: String) -> Question {
        if let Opinion::Ask { .. } = call.opinion {
            return Question {
                reason,
                rule: None,
                remedy: "The user can permit it when asked, or change the hook that asks."
                    .to_owned(),
                // No rule keeps a hook from asking.
                suggestions: Vec::new(),
                target: None,
                input: None,
            };
        }
        let judge = self.judge.load();
        let suggestions = suggestions(&judge, &call.name, &call.input, decision, Timestamp::now());
        Question {
            reason,
            rule: Some(rule(&judge, decision).pattern.text().to_owned()),
            remedy: remedy(&call.name, decision, &suggestions),
            suggestions,
            target: match &decision.why {
                Why::Protected { path, .. } => Some(path.clone()),
                _ => None,
            },
            input: None,
        }
    }

    /// Tells those who watch hooks what became of a call here.
    fn tell(&self, call: &ToolCall, settled: &Settled) {
        let (decision, reason) = match settled {
            Settled::Allow(_) => (RuleAction::Allow, None),
            Settled::Deny(_, denial) => (RuleAction::Deny, Some(&denial.reason)),
            Settled::Ask(reason) => (RuleAction::Ask, Some(reason)),
        };
        let mut output = json!({
            "matcher": &*call.name,
            "decision": decision,
            "handler": "permissions",
        });
        if let Some(reason) = reason {
            output["reason"] = reason.as_str().into();
        }
        self.parts.notice_sink.say(Event::HookPassed {
            event: "PreToolUse".into(),
            output,
        });
    }

    fn log(&self, call: &ToolCall, decision: &Decision, action: RuleAction, by: DecidedBy) {
        let Some(audit) = &self.parts.audit else {
            return;
        };
        let judge = self.judge.load();
        let rule = rule(&judge, decision);
        let now = Timestamp::now();
        let entry = Entry {
            ts: Entry::stamp(now),
            session_id: self.parts.session_id.to_string(),
            turn_index: call.turn,
            tool_use_id: call.id.to_string(),
            tool_name: call.name.to_string(),
            input_excerpt: Entry::excerpt(&call.input.to_string()),
            action,
            matched_rule: MatchedRule {
                pattern: rule.pattern.text().to_owned(),
                action: rule.action,
            },
            decided_by: by,
            permission_mode: self.regime().as_str().to_owned(),
        };
        if let Err(error) = audit.append(&entry, now)
            && !self.complained.swap(true, Ordering::Relaxed)
        {
            self.parts.notice_sink.say(Event::Notice {
                subtype: "audit_log".into(),
                message: format!("decisions cannot be logged: {error}"),
            });
        }
    }

    /// Decides like this for the rest of the session; a pattern that is none is an error.
    pub(crate) fn remember(&self, pattern: &str, action: RuleAction) -> Result<(), RuleError> {
        let rule = Rule::new(RuleSpec::new(pattern, action), Origin::Runtime)?;
        let judge = self.judge.load().with_first(rule.clone());
        self.judge.store(Arc::new(judge));
        lock(&self.remembered).push(rule);
        Ok(())
    }

    /// Takes back what was to be decided like this: one rule, or all with this action.
    pub(crate) fn forget(&self, pattern: Option<&str>, action: RuleAction) {
        let is_meant = |rule: &Rule| {
            rule.origin == Origin::Runtime
                && rule.action == action
                && pattern.is_none_or(|pattern| rule.pattern.text() == pattern)
        };
        lock(&self.remembered).retain(|rule| !is_meant(rule));
        let judge = Judge::clone(&self.judge.load());
        let book = judge.book.without(is_meant);
        self.judge.store(Arc::new(Judge { book, ..judge }));
    }

    /// Until this is called again, calls that match need no consent, unless a rule of somebody's
    /// asks for it. What is no pattern lends nothing.
    pub(crate) fn lend(&self, patterns: &[String]) {
        let rules: Vec<Rule> = patterns
            .iter()
            .map(|pattern| RuleSpec::new(pattern, RuleAction::Allow))
            .filter_map(|spec| Rule::new(spec, Origin::Runtime).ok())
            .collect();
        let book = (!rules.is_empty()).then(|| Arc::new(RuleBook::of(rules)));
        self.lent.store(book);
    }

    fn is_lent(&self, call: &ToolCall, judge: &Judge, decision: &Decision) -> bool {
        let Some(book) = &*self.lent.load() else {
            return false;
        };
        let judge_of_lent = Judge {
            book: RuleBook::clone(book),
            ..judge.clone()
        };
        let lent = || judge_of_lent.decide(&call.name, &call.input, Timestamp::now());
        rule(judge, decision).origin == Origin::BuiltIn && lent().action == RuleAction::Allow
    }

    /// Judges by other rules from now on; what the operator decided stays.
    pub(crate) fn replace_rules(&self, book: RuleBook) {
        let judge = Judge {
            book,
            ..Judge::clone(&self.judge.load())
        };
        let judge = lock(&self.remembered)
            .iter()
            .fold(judge, |judge, rule| judge.with_first(rule.clone()));
        self.judge.store(Arc::new(judge));
    }
}

impl caliban_agent::Gate for Gate {
    fn judge<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Verdict> {
        async move {
            let judge = self.judge.load_full();
            let decision = judge.decide(&call.name, &call.input, Timestamp::now());
            let settled = self.settle(call, &decision).await;
            self.tell(call, &settled);
            match settled {
                Settled::Allow(by) => {
                    self.log(call, &decision, RuleAction::Allow, by);
                    Verdict::Allow
                }
                Settled::Deny(by, denial) => {
                    self.log(call, &decision, RuleAction::Deny, by);
                    Verdict::Deny(denial)
                }
                Settled::Ask(reason) => {
                    let question = self.question(call, &decision, reason);
                    let mut pending = lock(&self.pending);
                    if pending.len() < MAX_PENDING {
                        pending.insert(Arc::clone(&call.id), decision);
                    }
                    Verdict::Ask(Box::new(question))
                }
            }
        }
        .boxed()
    }

    fn answered(&self, call: &ToolCall, answer: &Answer) {
        let Some(decision) = lock(&self.pending).remove(&call.id) else {
            return;
        };
        let (action, by) = match answer {
            Answer::Allow { .. } => (RuleAction::Allow, DecidedBy::Operator),
            Answer::Deny { .. } => (RuleAction::Deny, DecidedBy::Operator),
            Answer::Nobody => (RuleAction::Deny, DecidedBy::Unattended),
        };
        self.log(call, &decision, action, by);
        match answer {
            Answer::Allow { remember, .. } | Answer::Deny { remember, .. } => match remember {
                Remember::Once => {}
                Remember::Session { pattern } => {
                    // It was suggested by us, or is a wish that cannot be granted.
                    let _ = self.remember(pattern, action);
                }
            },
            Answer::Nobody => {}
        }
    }
}

impl Auto {
    async fn verdict(&self, call: &ToolCall, judge: &Judge) -> Option<AutoVerdict> {
        if let Some(verdict) = lock(&self.cache).get(&call.name, &call.input) {
            return Some(verdict);
        }
        let root = judge.places.workspace.root();
        let question = classifier_question(&call.name, &call.input, root);
        let answer = self
            .classifier
            .ask(CLASSIFIER_PROMPT, &question, &CancellationToken::new())
            .await
            .ok()?;
        let verdict = classifier_verdict(&answer)?;
        lock(&self.cache).put(&call.name, &call.input, verdict.clone());
        Some(verdict)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn rule<'a>(judge: &'a Judge, decision: &Decision) -> &'a Rule {
    &judge.book.rules()[decision.rule]
}

fn refuse(judge: &Judge, decision: &Decision) -> Settled {
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

/// In plan mode nothing is changed and nothing is run. Other agents may work: each of their calls
/// passes here.
fn blocked_by_plan(call: &ToolCall) -> Option<Denial> {
    match call.effect {
        Effect::ReadOnly | Effect::Session | Effect::Delegates => None,
        Effect::Writes | Effect::Executes => Some(Denial {
            source: DenialSource::Rule,
            reason: format!("{} may not run in plan mode", call.name),
            rule: None,
            remedy: Some("Finish the plan and call ExitPlanMode first.".to_owned()),
        }),
    }
}

fn why_asked(call: &ToolCall, decision: &Decision) -> String {
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
