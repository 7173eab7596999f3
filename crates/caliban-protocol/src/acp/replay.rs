//! What was said before, as the updates it would have been.

use std::collections::HashMap;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    ContentChunk, Plan, SessionUpdate, ToolCall, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use caliban_model::{Block, Message, Role, ToolContent, file_path};
use serde_json::{Value, json};

use super::shown;
use super::tools;
use super::updates::Projection;

/// The updates of a conversation, in its order.
pub fn replay(messages: &[Arc<Message>], projection: &mut Projection) -> Vec<SessionUpdate> {
    let mut told = Vec::new();
    // The tools of calls whose result is still to come.
    let mut names: HashMap<&str, &str> = HashMap::new();
    for message in messages {
        if message.role == Role::System {
            continue;
        }
        let (said, thought) = (projection.next_id(), projection.next_id());
        for block in &message.content {
            let chunk = |content| ContentChunk::new(content).message_id(said.clone());
            match (message.role, block) {
                (Role::User, Block::Text { text, .. }) => {
                    told.push(SessionUpdate::UserMessageChunk(chunk(shown::text(text))));
                }
                (Role::User, Block::Image(image)) => {
                    told.push(SessionUpdate::UserMessageChunk(chunk(shown::image(image))));
                }
                (_, Block::Text { text, .. }) => {
                    told.push(SessionUpdate::AgentMessageChunk(chunk(shown::text(text))));
                }
                (_, Block::Thinking { text, .. }) if !text.is_empty() => {
                    let chunk = ContentChunk::new(shown::text(text)).message_id(thought.clone());
                    told.push(SessionUpdate::AgentThoughtChunk(chunk));
                }
                (
                    _,
                    Block::ToolUse {
                        id, name, input, ..
                    },
                ) if name == tools::TASKS => {
                    names.insert(id, name);
                    told.push(SessionUpdate::Plan(Plan::new(tools::written_plan(input))));
                }
                (
                    _,
                    Block::ToolUse {
                        id, name, input, ..
                    },
                ) => {
                    names.insert(id, name);
                    told.push(SessionUpdate::ToolCall(made(id, name, input, projection)));
                }
                (
                    _,
                    Block::ToolResult {
                        tool_use_id,
                        content,
                        is_error,
                    },
                ) => {
                    let name = names.remove(tool_use_id.as_str());
                    if name != Some(tools::TASKS) {
                        told.push(ended(tool_use_id, name, content, *is_error));
                    }
                }
                (
                    _,
                    Block::Image(_)
                    | Block::Thinking { .. }
                    | Block::RedactedThinking { .. }
                    | Block::Opaque { .. },
                ) => {}
            }
        }
    }
    // What has no result was cut off.
    let mut open: Vec<&str> = names
        .into_iter()
        .filter(|(_, name)| *name != tools::TASKS)
        .map(|(id, _)| id)
        .collect();
    open.sort_unstable();
    told.extend(open.into_iter().map(|id| ended(id, None, &[], true)));
    told
}

fn made(id: &str, name: &str, input: &Value, projection: &Projection) -> ToolCall {
    let cwd = projection.cwd();
    let field = |name: &str| input.get(name).and_then(Value::as_str);
    let about = file_path(input)
        .or_else(|| field("command"))
        .or_else(|| field("pattern"))
        .or_else(|| field("url"))
        .or_else(|| field("query"))
        .or_else(|| field("description"));
    ToolCall::new(id.to_owned(), tools::title(name, about))
        .name(name.to_owned())
        .kind(tools::kind(name))
        .raw_input(input.clone())
        .locations(tools::locations(name, input, cwd))
        .content(tools::changes(name, input, cwd))
}

fn ended(id: &str, name: Option<&str>, content: &[ToolContent], is_error: bool) -> SessionUpdate {
    let status = if is_error {
        ToolCallStatus::Failed
    } else {
        ToolCallStatus::Completed
    };
    // Of an edit that worked the change says it all.
    let is_change = !is_error && name.is_some_and(|name| tools::kind(name) == ToolKind::Edit);
    let shown = shown::outputs(content);
    let fields = ToolCallUpdateFields::new()
        .status(status)
        .raw_output(json!({"output": shown::texts(content)}))
        .content((!shown.is_empty() && !is_change).then_some(shown));
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_owned(), fields))
}
