//! A provider whose models know tools by the names of this dialect. History and engine keep ours,
//! so a session can go on in either dialect.

use std::sync::{Arc, Mutex, PoisonError};

use caliban_model::{
    Block, CancellationToken, Capabilities, Error, EventStream, Message, Messages, ModelInfo,
    Provider, Request, Role, RouteAccount, StreamEvent, ToolSpec,
};
use caliban_protocol::claude::{
    input_ours, input_theirs, ours, schema_theirs, theirs, wording_theirs,
};
use caliban_tools::GENERAL;
use futures::StreamExt;
use futures::future::BoxFuture;
use serde_json::json;

#[derive(Debug)]
pub(crate) struct Renaming {
    inner: Arc<dyn Provider>,
    last: Mutex<Renamed>,
}

/// What the last request had, ours and theirs side by side: what a request shares with the one
/// before it stays the same message, of which a provider knows how it is written.
#[derive(Debug, Default)]
struct Renamed {
    ours: Messages,
    theirs: Messages,
    our_tools: Arc<[ToolSpec]>,
    their_tools: Arc<[ToolSpec]>,
}

impl Provider for Renaming {
    fn accounts(&self) -> Vec<RouteAccount> {
        self.inner.accounts()
    }

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
    pub(crate) fn new(inner: Arc<dyn Provider>) -> Self {
        Self {
            inner,
            last: Mutex::default(),
        }
    }

    fn outgoing(&self, request: Request) -> Request {
        // Whoever panicked left pairs that belong together.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let messages = last.messages(request.messages());
        let tools = last.tools(&request.tools, renamed_spec);
        drop(last);
        let Ok(mut renamed) = Request::new(Arc::clone(&request.model), messages) else {
            // The form of the conversation is the same, so this cannot fail.
            return request;
        };
        renamed.tools = tools;
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
}

/// A tool as this dialect describes it.
fn renamed_spec(spec: &ToolSpec) -> ToolSpec {
    let mut input_schema = schema_theirs(&spec.name, &spec.input_schema);
    // Models of this dialect name a kind in every call, also where there is but one.
    if spec.name == "AgentTool" && input_schema["properties"]["subagent_type"].is_null() {
        input_schema["properties"]["subagent_type"] = json!({
            "type": "string",
            "description": format!("The kind of agent. {GENERAL}"),
        });
    }
    ToolSpec {
        name: theirs(&spec.name).to_owned(),
        description: wording_theirs(&spec.description).into_owned(),
        input_schema,
    }
}

impl Renamed {
    fn messages(&mut self, ours: &[Arc<Message>]) -> Messages {
        let known = self.ours.iter().zip(ours);
        let known = known.take_while(|(before, now)| Arc::ptr_eq(before, now));
        let known = known.count();
        if known < self.ours.len() {
            self.ours = ours[..known].iter().cloned().collect();
            self.theirs = self.theirs[..known].iter().cloned().collect();
        }
        for new in &ours[known..] {
            let renamed = message(new);
            self.ours.push(Arc::clone(new));
            self.theirs.push(renamed);
        }
        self.theirs.clone()
    }

    fn tools(
        &mut self,
        ours: &Arc<[ToolSpec]>,
        rename: impl Fn(&ToolSpec) -> ToolSpec,
    ) -> Arc<[ToolSpec]> {
        if !Arc::ptr_eq(&self.our_tools, ours) {
            self.their_tools = ours.iter().map(rename).collect();
            self.our_tools = Arc::clone(ours);
        }
        Arc::clone(&self.their_tools)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Arc<Message> {
        let call = Block::ToolUse {
            id: id.to_owned(),
            name: "AgentTool".to_owned(),
            input: json!({"prompt": "p"}),
            private: None,
        };
        Arc::new(Message::new(Role::Assistant, vec![call]))
    }

    #[test]
    fn what_a_request_shares_with_the_last_stays_the_same() {
        let mut last = Renamed::default();
        let [question, first, second] = [Arc::new(Message::user("q")), call("1"), call("2")];
        let ours = [question, first, second];
        let short = last.messages(&ours[..2]);
        assert!(Arc::ptr_eq(&short[0], &ours[0]));
        assert_eq!(short[1].tool_uses().next().unwrap().1, "Task");
        let long = last.messages(&ours);
        assert!(
            long.iter()
                .zip(&*short)
                .all(|(now, before)| Arc::ptr_eq(now, before))
        );
        // Another beginning is another conversation.
        let other = last.messages(&ours[1..]);
        assert_eq!(other.len(), 2);
        assert_eq!(other[1], long[2]);
    }
}
