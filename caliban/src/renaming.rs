//! A provider whose models know tools by the names of a dialect. History and engine keep ours, so a
//! session can go on in any other.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use caliban_model::{
    Block, CancellationToken, Capabilities, Error, EventStream, Message, Messages, ModelInfo,
    Provider, Request, Role, RouteAccount, StreamEvent, ToolSpec,
};
use futures::StreamExt;
use futures::future::BoxFuture;
use serde_json::Value;

/// What a world calls our tools and their fields.
pub(crate) trait Names: std::fmt::Debug + Send + Sync {
    /// Its name for one of our tools.
    fn theirs<'n>(&self, ours: &'n str) -> &'n str;
    /// Our name for one of its tools; ours are understood, too.
    fn ours<'n>(&self, theirs: &'n str) -> &'n str;
    /// The input of our tool with its names of fields.
    fn input_theirs(&self, ours: &str, input: &Value) -> Value;
    /// The input of our tool, whichever names of fields it was written with.
    fn input_ours(&self, ours: &str, input: &Value) -> Value;
    /// A tool as it is described there.
    fn spec(&self, ours: &ToolSpec) -> ToolSpec;
    /// A text of ours that names tools.
    fn wording<'t>(&self, ours: &'t str) -> Cow<'t, str>;
}

#[derive(Debug)]
pub(crate) struct Renaming {
    inner: Arc<dyn Provider>,
    names: Arc<dyn Names>,
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
        let names = Arc::clone(&self.names);
        self.inner
            .stream(request, cancel)
            .map(move |event| event.map(|event| incoming(&*names, event)))
            .boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>> {
        self.inner.models()
    }
}

impl Renaming {
    pub(crate) fn new(inner: Arc<dyn Provider>, names: Arc<dyn Names>) -> Self {
        Self {
            inner,
            names,
            last: Mutex::default(),
        }
    }

    fn outgoing(&self, request: Request) -> Request {
        // Whoever panicked left pairs that belong together.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let messages = last.messages(&*self.names, request.messages());
        let tools = last.tools(&*self.names, &request.tools);
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

impl Renamed {
    fn messages(&mut self, names: &dyn Names, ours: &[Arc<Message>]) -> Messages {
        let known = self.ours.iter().zip(ours);
        let known = known.take_while(|(before, now)| Arc::ptr_eq(before, now));
        let known = known.count();
        if known < self.ours.len() {
            self.ours = ours[..known].iter().cloned().collect();
            self.theirs = self.theirs[..known].iter().cloned().collect();
        }
        for new in &ours[known..] {
            let renamed = message(names, new);
            self.ours.push(Arc::clone(new));
            self.theirs.push(renamed);
        }
        self.theirs.clone()
    }

    fn tools(&mut self, names: &dyn Names, ours: &Arc<[ToolSpec]>) -> Arc<[ToolSpec]> {
        if !Arc::ptr_eq(&self.our_tools, ours) {
            self.their_tools = ours.iter().map(|spec| names.spec(spec)).collect();
            self.our_tools = Arc::clone(ours);
        }
        Arc::clone(&self.their_tools)
    }
}

/// A message with their names; the same one where it has none.
fn message(names: &dyn Names, message: &Arc<Message>) -> Arc<Message> {
    let is_renamed = |block: &Block| match block {
        Block::ToolUse { .. } => true,
        Block::Text { text, .. } => {
            message.role == Role::System && names.wording(text) != text.as_str()
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
                *input = names.input_theirs(name, input);
                *name = names.theirs(name).to_owned();
            }
            Block::Text { text, .. } if message.role == Role::System => {
                *text = names.wording(text).into_owned();
            }
            _ => {}
        }
    }
    Arc::new(renamed)
}

fn incoming(names: &dyn Names, event: StreamEvent) -> StreamEvent {
    match event {
        StreamEvent::ToolStarted { index, id, name } => StreamEvent::ToolStarted {
            index,
            id,
            name: names.ours(&name).to_owned(),
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
            let name = names.ours(&name).to_owned();
            StreamEvent::BlockEnded {
                index,
                block: Block::ToolUse {
                    input: names.input_ours(&name, &input),
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
    use serde_json::json;

    use super::*;
    use crate::claude::ClaudeNames;

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
        let short = last.messages(&ClaudeNames, &ours[..2]);
        assert!(Arc::ptr_eq(&short[0], &ours[0]));
        assert_eq!(short[1].tool_uses().next().unwrap().1, "Task");
        let long = last.messages(&ClaudeNames, &ours);
        assert!(
            long.iter()
                .zip(&*short)
                .all(|(now, before)| Arc::ptr_eq(now, before))
        );
        // Another beginning is another conversation.
        let other = last.messages(&ClaudeNames, &ours[1..]);
        assert_eq!(other.len(), 2);
        assert_eq!(other[1], long[2]);
    }
}
