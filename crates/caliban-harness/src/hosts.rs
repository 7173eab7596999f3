//! Hosts that the list of the sandbox does not name: the rules of the session are heard about them,
//! and then whoever attends. Where nobody does, they stay closed.

use std::sync::{Arc, OnceLock, Weak};

use caliban_agent::{
    Answer, Effect, HookEvent, Inquiry, NotificationKind, Observer, Opinion, Question, Remember,
    SharedOperator, ToolCall, TypedTool, Unattended,
};
use caliban_egress::Target;
use caliban_permissions::{Judge, Origin, Place, suggestions};
use caliban_settings::RuleAction;
use caliban_tools::WebFetch;
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::gate::Gate;
use crate::servers::Onlookers;

/// What questions about hosts are called where questions are about tools.
pub const NETWORK_ACCESS: &str = "SandboxNetworkAccess";
/// How much of a command is shown with a question.
const SHOWN: usize = 200;
/// A host that nobody means.
const NOBODY: &str = "https://nobody.invalid/";

/// Who is asked about hosts.
#[derive(Debug)]
pub struct HostQuestions {
    operator: SharedOperator,
    /// The rules of the session, once there is one.
    gate: OnceLock<Weak<Gate>>,
    /// Who looks on at it.
    onlookers: Onlookers,
}

/// What rules say of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ruling {
    Allow,
    Deny,
    /// Nothing; these would allow it.
    Silent(Vec<String>),
}

impl HostQuestions {
    pub(crate) fn new(operator: SharedOperator) -> Arc<Self> {
        Arc::new(Self {
            operator,
            gate: OnceLock::new(),
            onlookers: Onlookers::default(),
        })
    }

    /// Where there is nobody to ask.
    pub fn unattended() -> Arc<Self> {
        Self::new(Arc::new(Unattended))
    }

    /// Hears the rules of this session from now on, and tells those who look on at it.
    pub(crate) fn follow(&self, gate: &Arc<Gate>, observers: &[Arc<dyn Observer>]) {
        // There is one at most.
        let _ = self.gate.set(Arc::downgrade(gate));
        self.onlookers.set(observers);
    }

    /// Whether the program that this command runs may reach a target.
    pub(crate) async fn ask(
        &self,
        question: &caliban_egress::Question,
        command: &str,
    ) -> caliban_egress::Answer {
        let target = &question.target;
        let suggestions = match self.ruling(target) {
            Ruling::Allow => return caliban_egress::Answer::AllowOnce,
            Ruling::Deny => return caliban_egress::Answer::Deny,
            Ruling::Silent(suggestions) => suggestions,
        };
        let shown: String = command.chars().take(SHOWN).collect();
        let call = ToolCall {
            id: format!("net_{}", Uuid::new_v4().simple()).into(),
            agent: None,
            name: NETWORK_ACCESS.into(),
            input: json!({
                "host": target.host.to_string(),
                "port": target.port,
                "command": shown,
            }),
            effect: Effect::Executes,
            first_arg: Some(target.to_string()),
            turn: 0,
            opinion: Opinion::None,
        };
        let inquiry = Inquiry::new(
            call,
            Question {
                reason: format!(
                    "the command wants to reach `{target}`, which `sandbox.network.allowed_domains` does not name"
                ),
                rule: None,
                remedy: format!(
                    "Add \"{}\" to `sandbox.network.allowed_domains` to allow it without asking.",
                    question.entry
                ),
                suggestions,
                target: None,
                input: None,
                parts: Vec::new(),
                place: None,
            },
        );
        let asked = HookEvent::PermissionRequest {
            call: inquiry.call.clone(),
        };
        self.onlookers.tell(&asked).await;
        let asked = HookEvent::Notification {
            kind: NotificationKind::Question,
            message: inquiry.question.reason.clone(),
        };
        self.onlookers.tell(&asked).await;
        match self.operator.decide_aside(&inquiry).await {
            Answer::Allow { remember, .. } => match remember {
                Remember::Once => caliban_egress::Answer::AllowOnce,
                Remember::Session { .. } => caliban_egress::Answer::AllowSession,
            },
            Answer::Deny { .. } => caliban_egress::Answer::Deny,
            Answer::Nobody | Answer::TimedOut => caliban_egress::Answer::NobodyAttends,
        }
    }

    /// A rule about fetching from a host is a rule about the host. Rules know no ports, so they
    /// are heard for those of the web alone.
    fn ruling(&self, target: &Target) -> Ruling {
        let scheme = match target.port {
            80 => "http",
            443 => "https",
            _ => return Ruling::Silent(Vec::new()),
        };
        let Some(gate) = self.gate.get().and_then(Weak::upgrade) else {
            return Ruling::Silent(Vec::new());
        };
        judged(&gate.judge_by(), &format!("{scheme}://{}/", target.host))
    }
}

fn judged(judge: &Judge, url: &str) -> Ruling {
    let now = Timestamp::now();
    let decide = |url: &str| {
        let input = json!({ "url": url });
        judge.decide(WebFetch::NAME, &input, now)
    };
    let decision = decide(url);
    let rule = judge.book.rules().get(decision.rule);
    let is_somebodys = rule.is_some_and(|rule| rule.origin != Origin::BuiltIn);
    // A rule that lets everything be fetched is not about this host, and opens no sandbox.
    let is_about_it = || {
        let other = decide(NOBODY);
        other.rule != decision.rule
    };
    match decision.action {
        RuleAction::Deny if is_somebodys => Ruling::Deny,
        RuleAction::Allow if is_somebodys && is_about_it() => Ruling::Allow,
        RuleAction::Allow | RuleAction::Deny | RuleAction::Ask => {
            let input: Value = json!({ "url": url });
            let place = Place::Session;
            let mut found = suggestions(judge, WebFetch::NAME, &input, &decision, place, now);
            found.retain(|pattern| pattern != WebFetch::NAME);
            Ruling::Silent(found)
        }
    }
}
