//! A provider whose models know tools by the names of this dialect. History and engine keep ours,
//! so a session can go on in either dialect.

use std::sync::Arc;

use caliban_model::{
    Block, CancellationToken, Capabilities, Error, EventStream, Message, ModelInfo, Provider,
    Request, Role, StreamEvent, ToolSpec,
};
use caliban_protocol::claude::{
    input_ours, input_theirs, ours, schema_theirs, theirs, wording_theirs,
};
use caliban_tools::AgentKind;
use futures::StreamExt;
use futures::future::BoxFuture;
use serde_json::json;

#[derive(Debug)]
pub(crate) struct Renaming {
    pub(crate) inner: Arc<dyn Provider>,
    /// The kinds of sub-agents that a model may choose from.
    pub(crate) agents: Vec<AgentKind>,
}

impl Provider for Renaming {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        self.inner.capabilities(model)
    }

    fn stream(&self, request: Request, cancel: CancellationToken) -> EventStream {
        let request = self.outgoing(request);
        self.inner
            .stream(request, cancel)
            .map(|event| event.map(incoming))
            .boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>> {
        self.inner.models()
    }
}

impl Renaming {
    fn outgoing(&self, request: Request) -> Request {
        let messages = request.messages().iter().map(message).collect();
        let Ok(mut renamed) = Request::new(Arc::clone(&request.model), messages) else {
            // The form of the conversation is the same, so this cannot fail.
            return request;
        };
        renamed.tools = request.tools.iter().map(|spec| self.spec(spec)).collect();
        renamed.tool_choice = request.tool_choice;
        renamed.parallel_calls = request.parallel_calls;
        renamed.max_tokens = request.max_tokens;
        renamed.temperature = request.temperature;
        renamed.stop_sequences = request.stop_sequences;
        renamed.reasoning = request.reasoning;
        renamed.output = request.output;
        renamed.cache = request.cache;
        renamed.metadata = request.metadata;
        renamed
    }

    fn spec(&self, spec: &ToolSpec) -> ToolSpec {
        let mut input_schema = schema_theirs(&spec.name, &spec.input_schema);
        if spec.name == "AgentTool" {
            let kinds = self.agents.iter();
            let kinds = kinds.map(|kind| format!("{}: {}", kind.name, kind.description));
            let choice = std::iter::once("general-purpose".to_owned()).chain(kinds);
            let choice: Vec<String> = choice.collect();
            input_schema["properties"]["subagent_type"] = json!({
                "type": "string",
                "description": format!("The kind of agent. {}", choice.join("; ")),
            });
        }
        ToolSpec {
            name: theirs(&spec.name).to_owned(),
            description: wording_theirs(&spec.description).into_owned(),
            input_schema,
        }
    }
}

/// A message with their names; the same one where it has none.
fn message(message: &Arc<Message>) -> Arc<Message> {
    let is_renamed = |block: &Block| match block {
        Block::ToolUse { .. } => true,
        Block::Text { text, .. } => {
            message.role == Role::System && wording_theirs(text) != text.as_str()
        }
        _ => false,
    };
    if !message.content.iter().any(is_renamed) {
        return Arc::clone(message);
    }
    let mut renamed = Message::clone(message);
    for block in &mut renamed.content {
        match block {
            Block::ToolUse { name, input, .. } => {
                *input = input_theirs(name, input);
                *name = theirs(name).to_owned();
            }
            Block::Text { text, .. } if message.role == Role::System => {
                *text = wording_theirs(text).into_owned();
            }
            _ => {}
        }
    }
    Arc::new(renamed)
}

fn incoming(event: StreamEvent) -> StreamEvent {
    match event {
        StreamEvent::ToolStarted { index, id, name } => StreamEvent::ToolStarted {
            index,
            id,
            name: ours(&name).to_owned(),
        },
        StreamEvent::BlockEnded {
            index,
            block:
                Block::ToolUse {
                    id,
                    name,
                    input,
                    private,
                },
        } => {
            let name = ours(&name).to_owned();
            StreamEvent::BlockEnded {
                index,
                block: Block::ToolUse {
                    input: input_ours(&name, &input),
                    id,
                    name,
                    private,
                },
            }
        }
        event => event,
    }
}
