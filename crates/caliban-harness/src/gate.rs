//! The gate before every call of every agent of a session: rules, then mode, then the operator.

mod foreseen;
mod lasting;
mod reading;
mod reasons;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use caliban_agent::{
    Advice, Adviser, Answer, Consultant, Denial, DenialSource, Event, Opinion, Question, ReadGuard,
    Remember, ToolCall, TypedTool, Verdict, Workspace,
};
use caliban_model::CancellationToken;
use caliban_permissions::{
    AuditLog, AutoAllow, AutoRules, AutoVerdict, CLASSIFIER_PROMPT, DecidedBy, Decision, Entry,
    Judge, MatchedRule, Origin, Place, Places, Protected, Regime, Relaxed, Rule, RuleBook,
    VerdictCache, Why, classifier_question, classifier_verdict, relax, remedy, suggestions,
};
use caliban_sandbox::Sandbox;
use caliban_settings::{PermissionMode, RuleAction};
use caliban_tools::{Bash, ExitPlanMode, OpenedHosts, PlanMode, WebFetch};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::escalation::Escalation;
use crate::notice_sink::NoticeSink;
use crate::permissions::judge;

use reasons::{ENDING_PLAN_MODE, parts, place, refuse, static_denial, why_asked};

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
    /// The files of calls that somebody consented to and that have not begun, by id.
    consented: Mutex<HashMap<Arc<str>, Vec<PathBuf>>>,
    /// Agents that work in a directory of their own, by the call they work for, and how paths are
    /// judged there.
    elsewhere: Mutex<HashMap<Arc<str>, Standpoint>>,
    /// Whether it was told that the log cannot be written.
    complained: AtomicBool,
}

/// From where paths are judged.
#[derive(Debug, Clone)]
struct Standpoint {
    places: Places,
    protected: Protected,
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
    /// Where the hosts of approved fetches are told.
    pub(crate) opened_hosts: OpenedHosts,
    pub(crate) session_id: Arc<str>,
    pub(crate) notice_sink: NoticeSink,
    pub(crate) sandbox: Option<Arc<Sandbox>>,
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
            consented: Mutex::default(),
            elsewhere: Mutex::default(),
            complained: AtomicBool::new(false),
        }
    }

    /// From now on the calls of an agent are judged as those of somebody who works there. Rules,
    /// modes and trust stay what they are.
    pub(crate) fn settle_in(&self, agent: Arc<str>, workspace: Workspace) {
        let own = self.judge.load();
        let protected = own.protected.clone();
        let protected = protected.in_worktree(workspace.root().to_owned());
        let home = own.places.home.clone();
        let Judge {
            places, protected, ..
        } = judge(own.book.clone(), protected, workspace, home);
        let standpoint = Standpoint { places, protected };
        lock(&self.elsewhere).insert(agent, standpoint);
    }

    /// The agent is done.
    pub(crate) fn leave(&self, agent: &str) {
        lock(&self.elsewhere).remove(agent);
    }

    /// Who judges a call: everybody by the same rules, and paths from where its agent works.
    fn judge_of(&self, call: &ToolCall) -> Arc<Judge> {
        let judge = self.judge.load_full();
        let Some(agent) = &call.agent else {
            return judge;
        };
        match lock(&self.elsewhere).get(agent) {
            None => judge,
            Some(standpoint) => Arc::new(Judge {
                book: judge.book.clone(),
                places: standpoint.places.clone(),
                protected: standpoint.protected.clone(),
            }),
        }
    }

    /// How calls are judged outside plan mode.
    pub(crate) fn base_regime(&self) -> Regime {
        **self.regime.load()
    }

    /// The mode as it is written down: everything allowed is one of its own, and so is the plan
    /// that the operator wants, which the model cannot end after a resume either.
    pub(crate) fn recorded_mode(&self) -> &'static str {
        match (self.parts.auto_allow, **self.plan_set_by.load()) {
            (AutoAllow::On, _) => AUTO_ALLOW,
            (AutoAllow::Off, SetBy::Operator) => self.regime().as_str(),
            (AutoAllow::Off, SetBy::Model) => self.base_regime().as_str(),
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
    /// How calls are judged at this moment.
    pub(crate) fn judge_by(&self) -> Judge {
        Judge::clone(&self.judge.load())
    }

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
    /// 0. A command that asks to leave the sandbox is for a person to decide, in every mode, after
    ///    what denies it.
    /// 1. Without permissions everything is allowed.
    /// 2. In `bypassPermissions` everything is allowed but a catastrophe.
    /// 3. In plan mode what changes or runs something is refused. Where the operator chose it, the
    ///    operator alone ends it: to leave is asked about whatever rules, modes and advisers say.
    /// 4. A rule that denies.
    /// 5. An adviser that wants the operator asked: neither rule nor mode answers that.
    /// 6. A rule that allows.
    /// 7. An adviser that approves what a rule would ask about, except for a catastrophe.
    /// 8. What the command that was called lends, where only a built-in rule asks.
    /// 9. A command that the sandbox confines, where the operator takes that for consent and only
    ///    built-in rules ask.
    /// 10. The mode: it allows, asks, or lets the lists of auto mode and then the classifier say.
    async fn settle(&self, call: &ToolCall, decision: &Decision) -> Settled {
        let judge = self.judge_of(call);
        if let Some(escalation) = self.escalation(call) {
            return self.settle_escalation(call, decision, &escalation);
        }
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
        let set_by = **self.plan_set_by.load();
        if let Some(refused) = static_denial(call, &judge, decision, mode, set_by) {
            return refused;
        }
        if self.leaves_operators_plan(call) {
            self.parts.plan.ask_end();
            return Settled::Ask("only the user ends plan mode".to_owned());
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
            (_, Opinion::Ask { reason, .. }) => return Settled::Ask(reason.clone()),
            (RuleAction::Ask, Opinion::None | Opinion::Approved { .. }) => {
                why_asked(call, decision)
            }
        };
        if self.is_lent(call, &judge, decision) {
            return Settled::Allow(DecidedBy::Rule);
        }
        if self.is_confined(call, &judge, decision) {
            return Settled::Allow(DecidedBy::Mode);
        }
        match relax(mode, self.parts.auto_allow, &call.name, decision) {
            Relaxed::Allow => Settled::Allow(DecidedBy::Mode),
            Relaxed::Ask => Settled::Ask(asked),
            Relaxed::Classify => self.classify(call, &judge, asked).await,
        }
    }

    fn escalation(&self, call: &ToolCall) -> Option<Escalation> {
        Escalation::of(call, self.parts.sandbox.as_ref())
    }

    /// What becomes of a command that asks to leave the sandbox: rules and modes deny it as ever,
    /// and none of them allows it.
    fn settle_escalation(
        &self,
        call: &ToolCall,
        decision: &Decision,
        escalation: &Escalation,
    ) -> Settled {
        let judge = self.judge.load();
        let denied = match (self.regime(), &decision.why) {
            (Regime::Rules(PermissionMode::BypassPermissions), Why::Catastrophe(_)) => {
                Some(refuse(&judge, decision))
            }
            (Regime::Disabled | Regime::Rules(PermissionMode::BypassPermissions), _) => None,
            (Regime::Rules(mode), _) => {
                let set_by = **self.plan_set_by.load();
                static_denial(call, &judge, decision, mode, set_by)
            }
        };
        let refused = || {
            let denial = escalation.refusal()?;
            Some(Settled::Deny(DecidedBy::Rule, denial))
        };
        denied
            .or_else(refused)
            .unwrap_or_else(|| Settled::Ask(escalation.reason()))
    }

    /// Whether a command needs no consent because it is confined.
    fn is_confined(&self, call: &ToolCall, judge: &Judge, decision: &Decision) -> bool {
        let Some(sandbox) = &self.parts.sandbox else {
            return false;
        };
        let only_defaults_ask = |rule: usize, why: &Why| {
            let rule = judge.book.rules().get(rule);
            rule.is_some_and(|rule| rule.origin == Origin::BuiltIn) && !why.outlasts_modes()
        };
        let mut asked = decision.parts.iter();
        &*call.name == Bash::NAME
            && only_defaults_ask(decision.rule, &decision.why)
            && asked.all(|part| {
                part.action != RuleAction::Ask || only_defaults_ask(part.rule, &part.why)
            })
            && call.input["command"]
                .as_str()
                .is_some_and(|line| sandbox.stands_for_consent(line))
    }

    /// Whether a call would end the plan mode that the operator chose.
    fn leaves_operators_plan(&self, call: &ToolCall) -> bool {
        &*call.name == ExitPlanMode::NAME
            && self.regime() == Regime::Rules(PermissionMode::Plan)
            && **self.plan_set_by.load() == SetBy::Operator
    }

    /// Refuses what a rule denies or plan mode keeps from running, before anybody is asked about
    /// it: nobody could save it.
    fn forbid(&self, call: &ToolCall) -> Option<Denial> {
        let mode = match self.regime() {
            Regime::Disabled | Regime::Rules(PermissionMode::BypassPermissions) => return None,
            Regime::Rules(mode) => mode,
        };
        let judge = self.judge_of(call);
        let decision = judge.decide(&call.name, &call.input, Timestamp::now());
        let set_by = **self.plan_set_by.load();
        let settled = static_denial(call, &judge, &decision, mode, set_by)?;
        self.tell(call, &settled);
        match settled {
            Settled::Deny(by, denial) => {
                self.log(call, &decision, RuleAction::Deny, by);
                Some(denial)
            }
            Settled::Allow(_) | Settled::Ask(_) => None,
        }
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
        // No rule keeps these from asking.
        let beyond_rules = if self.leaves_operators_plan(call) {
            Some(ENDING_PLAN_MODE)
        } else if let Opinion::Ask { remedy, .. } = &call.opinion {
            let change = "The user can permit it when asked, or change the hook that asks.";
            Some(remedy.as_deref().unwrap_or(change))
        } else {
            None
        };
        if let Some(remedy) = beyond_rules {
            return Question {
                reason,
                rule: None,
                remedy: remedy.to_owned(),
                suggestions: Vec::new(),
                target: None,
                input: None,
                parts: Vec::new(),
                place: None,
            };
        }
        let judge = self.judge_of(call);
        if let Some(escalation) = self.escalation(call) {
            // No rule permits it, so none is suggested.
            return Question {
                reason,
                rule: None,
                remedy: escalation.remedy(),
                suggestions: Vec::new(),
                target: None,
                input: None,
                parts: parts(&judge, call, decision),
                place: None,
            };
        }
        let (name, input, now) = (&call.name, &call.input, Timestamp::now());
        Question {
            reason,
            rule: Some(rule(&judge, decision).pattern.text().to_owned()),
            remedy: remedy(&judge, name, input, decision, now),
            suggestions: suggestions(&judge, name, input, decision, Place::Session, now),
            target: match &decision.why {
                Why::Protected { path, .. } => Some(path.clone()),
                _ => None,
            },
            input: None,
            parts: parts(&judge, call, decision),
            place: Some(place(rule(&judge, decision))),
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

    /// Who approves this very fetch has seen where it leads, be it this machine.
    fn open_host(&self, call: &ToolCall, input: &Value) {
        if &*call.name == WebFetch::NAME
            && let Some(url) = input["url"].as_str()
        {
            self.parts.opened_hosts.open(url);
        }
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
                scope: Some(rule.origin.as_str().to_owned()),
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
}

/// The gate as the first adviser, so that no hook and no person is asked about what is forbidden.
#[derive(Debug)]
pub(crate) struct Forbidding(pub(crate) Arc<Gate>);

impl Adviser for Forbidding {
    fn advise<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Advice> {
        async move { self.0.forbid(call).map_or(Advice::Allow, Advice::Deny) }.boxed()
    }
}

impl caliban_agent::Gate for Gate {
    fn judge<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Verdict> {
        async move {
            let judge = self.judge_of(call);
            let decision = judge.decide(&call.name, &call.input, Timestamp::now());
            let settled = self.settle(call, &decision).await;
            self.tell(call, &settled);
            match settled {
                Settled::Allow(by) => {
                    self.log(call, &decision, RuleAction::Allow, by);
                    if by == DecidedBy::Hook {
                        self.open_host(call, &call.input);
                    }
                    if decision.action == RuleAction::Ask {
                        self.consent(call, decision.files());
                    }
                    Verdict::Allow
                }
                Settled::Deny(by, denial) => {
                    self.log(call, &decision, RuleAction::Deny, by);
                    Verdict::Deny(denial)
                }
                Settled::Ask(reason) => {
                    let by = match call.opinion {
                        Opinion::Ask { .. } => DecidedBy::Hook,
                        Opinion::None | Opinion::Approved { .. } => DecidedBy::Rule,
                    };
                    self.log(call, &decision, RuleAction::Ask, by);
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

    fn refused(&self, call: &ToolCall, denial: &Denial) {
        let judge = self.judge_of(call);
        let decision = judge.decide(&call.name, &call.input, Timestamp::now());
        let by = match denial.source {
            DenialSource::Hook => DecidedBy::Hook,
            // Written down where it was judged.
            DenialSource::Rule => return,
            DenialSource::Classifier => DecidedBy::Classifier,
            DenialSource::Person => DecidedBy::Operator,
            DenialSource::Unattended => DecidedBy::Unattended,
        };
        self.log(call, &decision, RuleAction::Deny, by);
    }

    fn answered(&self, call: &ToolCall, answer: &Answer) {
        let Some(decision) = lock(&self.pending).remove(&call.id) else {
            return;
        };
        let (action, by) = match answer {
            Answer::Allow { .. } => (RuleAction::Allow, DecidedBy::Operator),
            Answer::Deny { .. } => (RuleAction::Deny, DecidedBy::Operator),
            Answer::Nobody | Answer::TimedOut => (RuleAction::Deny, DecidedBy::Unattended),
        };
        self.log(call, &decision, action, by);
        if let Answer::Allow { input, .. } = answer {
            self.open_host(call, input.as_ref().unwrap_or(&call.input));
            // Who changes the input has seen what it is now.
            let changed = input.as_ref().map(|input| {
                let judge = self.judge_of(call);
                judge.decide(&call.name, input, Timestamp::now()).files()
            });
            self.consent(call, changed.unwrap_or_else(|| decision.files()));
        }
        match answer {
            Answer::Allow { remember, .. } | Answer::Deny { remember, .. } => match remember {
                Remember::Once => {}
                Remember::Session { pattern } => {
                    // It was suggested by us, or is a wish that cannot be granted.
                    let _ = self.remember(pattern, action);
                }
            },
            Answer::Nobody | Answer::TimedOut => {}
        }
    }

    fn reading(&self, call: &ToolCall) -> Arc<dyn ReadGuard> {
        let consented = lock(&self.consented).remove(&call.id);
        self.reader_by(self.judge_of(call), consented.unwrap_or_default())
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
