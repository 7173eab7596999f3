//! What a session begins with: what was said before, what the model is told, and who reminds it.

use std::sync::{Arc, Mutex};

use caliban_agent::{Agent, AnswerSchema, Company, SessionSource, Workspace};
use caliban_context::{BasePrompt, system_prompt};
use caliban_hooks::ExternalHooks;
use caliban_mcp::Servers;
use caliban_model::{Message, Role};
use caliban_sessions::SessionState;

use super::{Added, Beginning, Shared};
use crate::choices::SystemPrompt;
use crate::hook_parts::Arrival;
use crate::reminders::TaskReminder;
use crate::servers::server_notes;
use crate::system_prompt::default_prompt;

/// Adds those who tell of what a session brings along from before: its tasks, and another place.
pub(super) fn remind(
    company: &mut Company,
    hooks: Option<&Arc<ExternalHooks>>,
    workspace: &Workspace,
    beginning: &Beginning<'_>,
) {
    if let (Some(hooks), Some(state)) = (hooks, beginning.earlier) {
        let arrival = Arrival {
            hooks: Arc::clone(hooks),
            from: Mutex::new(Some(state.cwd.clone())),
            to: workspace.root().to_owned(),
        };
        company.prompt_stages.insert(0, Arc::new(arrival));
    }
    let source = source_of(beginning.earlier);
    let tasks = TaskReminder::new(Arc::clone(beginning.todos), source);
    let tasks = Arc::new(tasks);
    company.prompt_stages.push(Arc::clone(&tasks) as _);
    company.observers.push(tasks);
}

/// How the session comes to be.
pub(super) fn source_of(earlier: Option<&SessionState>) -> SessionSource {
    match earlier {
        Some(_) => SessionSource::Resume,
        None => SessionSource::Startup,
    }
}

/// The conversation to begin with. A session keeps the system prompt it began with, unless
/// another one was asked for.
pub(super) fn history(
    earlier: Option<Box<SessionState>>,
    system: Option<Arc<Message>>,
    chosen: &SystemPrompt,
) -> Vec<Arc<Message>> {
    let earlier = earlier.map(|state| state.messages).unwrap_or_default();
    let is_system = |message: &Arc<Message>| message.role == Role::System;
    let begun = earlier.iter().any(is_system) && *chosen == SystemPrompt::Default;
    if begun {
        return earlier;
    }
    let rest = earlier.into_iter().filter(|message| !is_system(message));
    system.into_iter().chain(rest).collect()
}

/// Puts plan and tasks back as they were.
pub(super) fn restore(earlier: Option<&SessionState>, shared: &Shared) {
    let Some(state) = earlier else {
        return;
    };
    if state.plan_mode {
        shared.plan.enter();
    }
    if let Ok(todos) = serde_json::from_value(state.todos.clone()) {
        // A list that is not one any more is not worth refusing the session.
        let _ = shared.todos.replace(todos);
    }
}

/// What the model is told before everything else.
pub(super) fn system_message(
    chosen: &SystemPrompt,
    agent: &Agent,
    added: &Added,
    servers: Option<&Servers>,
) -> Option<Arc<Message>> {
    let default = default_prompt(agent.workspace.root(), &agent.tools.current());
    let base = match chosen {
        SystemPrompt::Default | SystemPrompt::Extended(_) => BasePrompt::Default {
            identity: &default.identity,
            coding: &default.coding,
        },
        SystemPrompt::Text(text) => BasePrompt::Custom(text),
        SystemPrompt::None => BasePrompt::None,
    };
    let mut text = system_prompt(base, added.style.as_ref(), &added.memory)?;
    if let (SystemPrompt::Default, Some(servers)) = (chosen, servers) {
        text.push_str(&server_notes(servers));
    }
    if let SystemPrompt::Extended(more) = chosen {
        text.push_str("\n\n");
        text.push_str(more);
    }
    if let Some(answer) = &agent.settings.answer {
        text.push_str(&answer_note(answer));
    }
    (!text.trim().is_empty()).then(|| Arc::new(Message::system(text)))
}

/// What a model is told about the form of its answer, for providers that cannot enforce it.
fn answer_note(answer: &AnswerSchema) -> String {
    format!(
        "\n\nYour final answer must be nothing but one JSON value that validates against this JSON Schema:\n{}",
        answer.schema
    )
}
