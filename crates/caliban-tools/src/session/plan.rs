//! Plan mode: the session looks and thinks, and changes nothing. The loop enforces it; here is
//! only the switch and the two tools that turn it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use caliban_agent::{Effect, ToolContext, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::sync::watch;

/// The switch, shared by the tools, the loop and whoever shows it.
#[derive(Debug)]
pub struct PlanMode {
    active: watch::Sender<bool>,
    /// Somebody is asked whether it ends, and may end it before the tool does.
    is_end_asked: AtomicBool,
}

/// Whether turning the switch changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Changed,
    AlreadyThere,
}

impl Default for PlanMode {
    fn default() -> Self {
        Self::new()
    }
}

impl PlanMode {
    /// Starts in normal execution.
    pub fn new() -> Self {
        Self {
            active: watch::Sender::new(false),
            is_end_asked: AtomicBool::new(false),
        }
    }

    pub fn is_active(&self) -> bool {
        *self.active.borrow()
    }

    /// Somebody is asked whether it ends.
    pub fn ask_end(&self) {
        self.is_end_asked.store(true, Ordering::Relaxed);
    }

    pub fn enter(&self) {
        self.turn(true);
    }

    pub fn exit(&self) {
        self.turn(false);
    }

    /// Tells of every change; only real changes wake it.
    pub fn watch(&self) -> watch::Receiver<bool> {
        self.active.subscribe()
    }

    fn turn(&self, active: bool) -> Turn {
        let changed = self
            .active
            .send_if_modified(|current| std::mem::replace(current, active) != active);
        if changed {
            Turn::Changed
        } else {
            Turn::AlreadyThere
        }
    }
}

/// Starts plan mode.
#[derive(Debug)]
pub struct EnterPlanMode(Arc<PlanMode>);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EnterPlanModeInput {}

impl EnterPlanMode {
    pub fn new(mode: Arc<PlanMode>) -> Self {
        Self(mode)
    }
}

impl TypedTool for EnterPlanMode {
    type Input = EnterPlanModeInput;

    const NAME: &'static str = "EnterPlanMode";
    const DESCRIPTION: &'static str = "Starts plan mode, in which only tools that look may run. \
         Use it to explore and settle on a plan before a larger change.";
    const EFFECT: Effect = Effect::Session;

    fn first_arg(&self, _: &EnterPlanModeInput) -> Option<String> {
        None
    }

    async fn run(&self, _: EnterPlanModeInput, _: ToolContext) -> ToolOutput {
        let rules = "Only tools that read or search may run, and the session's own tools such as \
                     TodoWrite; files cannot be changed and commands cannot be run. When the plan \
                     is ready, call ExitPlanMode with it.";
        ToolOutput::ok(match self.0.turn(true) {
            Turn::Changed => format!("Plan mode is on. {rules}"),
            Turn::AlreadyThere => format!("Plan mode was on already. {rules}"),
        })
    }
}

/// Ends plan mode.
#[derive(Debug)]
pub struct ExitPlanMode(Arc<PlanMode>);

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExitPlanModeInput {
    /// The plan to carry out, for the user to read.
    #[serde(default)]
    plan: Option<String>,
    /// What the plan would have allowed beforehand; nothing is, it is asked about when it comes.
    #[serde(default, rename = "allowedPrompts")]
    #[schemars(skip)]
    _allowed_prompts: IgnoredAny,
}

impl ExitPlanMode {
    pub fn new(mode: Arc<PlanMode>) -> Self {
        Self(mode)
    }
}

impl TypedTool for ExitPlanMode {
    type Input = ExitPlanModeInput;

    const NAME: &'static str = "ExitPlanMode";
    const DESCRIPTION: &'static str =
        "Ends plan mode and returns to normal execution. Call it when the plan is ready.";
    const EFFECT: Effect = Effect::Session;

    fn first_arg(&self, _: &ExitPlanModeInput) -> Option<String> {
        None
    }

    async fn run(&self, input: ExitPlanModeInput, _: ToolContext) -> ToolOutput {
        let turn = self.0.turn(false);
        // Whoever consented may have chosen the mode that comes next, which ended it.
        let was_asked = self.0.is_end_asked.swap(false, Ordering::Relaxed);
        if turn == Turn::AlreadyThere && !was_asked {
            return ToolOutput::failed("Plan mode is not on, so there is nothing to leave.");
        }
        ToolOutput::ok(match input.plan {
            Some(_) => "Plan mode is off: all tools may run again. Carry out the plan.",
            None => "Plan mode is off: all tools may run again.",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_told() {
        let mode = PlanMode::new();
        let mut watch = mode.watch();
        mode.exit();
        assert!(!watch.has_changed().unwrap());
        mode.enter();
        assert!(mode.is_active());
        assert!(*watch.borrow_and_update());
        mode.enter();
        assert!(!watch.has_changed().unwrap());
        mode.exit();
        assert!(!*watch.borrow_and_update());
    }
}
