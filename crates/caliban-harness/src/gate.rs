//! Which calls may run when nobody can be asked.

use std::sync::Arc;

use caliban_agent::{Denial, DenialSource, Effect, Hooks, ToolCall, Verdict};
use caliban_tools::PlanMode;
use futures::FutureExt;
use futures::future::BoxFuture;

/// What happens to calls that would need a person's consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permissions {
    /// They are refused.
    Default,
    /// They are allowed.
    AutoAllow,
}

/// Allowed without asking: they look, or change only the session itself.
const HARMLESS: [&str; 8] = [
    "AgentTool",
    "BashOutput",
    "EnterPlanMode",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "Read",
    "TodoWrite",
];

/// Stands before every call of every agent of a session.
#[derive(Debug)]
pub(crate) struct Gate {
    permissions: Permissions,
    plan: Arc<PlanMode>,
}

impl Gate {
    pub(crate) fn new(permissions: Permissions, plan: Arc<PlanMode>) -> Self {
        Self { permissions, plan }
    }

    fn decide(&self, call: &ToolCall) -> Verdict {
        if self.plan.is_active() {
            match call.effect {
                Effect::ReadOnly | Effect::Session => {}
                Effect::Writes | Effect::Executes => {
                    return Verdict::Deny(Denial {
                        source: DenialSource::Rule,
                        reason: format!("{} may not run in plan mode", call.name),
                        rule: None,
                        remedy: Some("Finish the plan and call ExitPlanMode first.".to_owned()),
                    });
                }
            }
        }
        match self.permissions {
            Permissions::AutoAllow => Verdict::Allow,
            Permissions::Default if HARMLESS.contains(&&*call.name) => Verdict::Allow,
            Permissions::Default => Verdict::Deny(Denial {
                source: DenialSource::Unattended,
                reason: format!("{} needs consent and nobody can be asked", call.name),
                rule: None,
                remedy: Some(
                    "The user can permit it by running caliban with `--auto-allow`.".to_owned(),
                ),
            }),
        }
    }
}

impl Hooks for Gate {
    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Verdict> {
        async move { self.decide(call) }.boxed()
    }
}
