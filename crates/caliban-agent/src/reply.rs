//! One answer of the model, read to its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use caliban_model::{
    Block, CancellationToken, Error, ErrorKind, Message, Origin, Provider, Request, Role, Shown,
    StopReason, StreamEvent, Usage, Warning,
};
use futures::StreamExt;

use crate::event::{AnswerStep, Event};
use crate::listener::Listener;

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) message: Arc<Message>,
    /// Who wrote it.
    pub(crate) origin: Origin,
    pub(crate) usage: Usage,
    pub(crate) stop: StopReason,
    pub(crate) detail: Option<String>,
}

/// An answer that did not come to its end, what had come of it, and what it cost all the same.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) error: Error,
    pub(crate) text: String,
    pub(crate) spent: Option<Spent>,
}

/// What a call cost, and who is paid.
pub(crate) type Spent = (Origin, Usage);

/// The end of a call: the answer or the failure, with what attempts that were given up cost.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) result: Result<Reply, Broken>,
    pub(crate) wasted: Vec<Spent>,
}

impl Call {
    /// Everything that was spent, whatever came of it.
    pub(crate) fn spent(&self) -> Vec<Spent> {
        let last = match &self.result {
            Ok(reply) => Some((reply.origin.clone(), reply.usage)),
            Err(broken) => broken.spent.clone(),
        };
        self.wasted.iter().cloned().chain(last).collect()
    }
}

/// Asks the provider and tells of the answer while it comes.
pub(crate) async fn ask(
    provider: &dyn Provider,
    request: Request,
    cancel: &CancellationToken,
    listener: &dyn Listener,
) -> Call {
    let mut origin = Origin::new(provider.id(), Arc::clone(&request.model));
    let mut answer = Answer::default();
    let mut wasted = Vec::new();
    let mut events = provider.stream(request, cancel.clone());
    let error = loop {
        match events.next().await {
            None => {
                break Error::new(
                    ErrorKind::Malformed,
                    &*origin.provider,
                    &*origin.model,
                    "the answer ended without saying so",
                );
            }
            Some(Err(error)) => break error,
            Some(Ok(StreamEvent::Stopped { reason, detail })) => {
                let step = AnswerStep::Stopped {
                    reason: reason.clone(),
                };
                listener.hear(Event::Answer(step)).await;
                let reply = answer.complete(origin, reason, detail);
                return Call {
                    result: Ok(reply),
                    wasted,
                };
            }
            Some(Ok(StreamEvent::Retrying(retry))) => {
                wasted.extend(answer.usage.map(|usage| (origin.clone(), usage)));
                if retry.shown == Shown::Superseded {
                    answer = Answer::default();
                } else {
                    answer.usage = None;
                }
                listener.hear(Event::Retrying(retry)).await;
            }
            Some(Ok(StreamEvent::Routed { origin: other })) => origin = other,
            Some(Ok(StreamEvent::Wasted { origin, usage })) => wasted.push((origin, usage)),
            Some(Ok(StreamEvent::Rerouted(hop))) => {
                wasted.extend(answer.usage.map(|usage| (origin.clone(), usage)));
                answer = Answer::default();
                origin = hop.to.clone();
                listener.hear(Event::Warning(Warning::rerouted(hop))).await;
            }
            Some(Ok(event)) => {
                if let Some(told) = answer.take(event) {
                    listener.hear(told).await;
                }
            }
        }
    };
    Call {
        result: Err(Broken {
            error,
            text: answer.text,
            spent: answer.usage.map(|usage| (origin, usage)),
        }),
        wasted,
    }
}

#[derive(Debug, Default)]
struct Answer {
    /// As far as it has come.
    text: String,
    blocks: BTreeMap<usize, Arc<Block>>,
    usage: Option<Usage>,
}

impl Answer {
    fn take(&mut self, event: StreamEvent) -> Option<Event> {
        let step = match event {
            StreamEvent::TextDelta { text, .. } => {
                self.text.push_str(&text);
                return Some(Event::TextDelta { text });
            }
            StreamEvent::ThinkingDelta { text, .. } => return Some(Event::ThinkingDelta { text }),
            StreamEvent::Started { model } => Some(AnswerStep::Started {
                model: Arc::from(model),
            }),
            StreamEvent::ToolStarted { id, name, .. } => Some(AnswerStep::ToolBegun {
                id: Arc::from(id),
                name: Arc::from(name),
            }),
            StreamEvent::ToolInputDelta { json, .. } => Some(AnswerStep::ToolInput { json }),
            StreamEvent::BlockEnded { index, block } => {
                let block = Arc::new(block);
                self.blocks.insert(index, Arc::clone(&block));
                Some(AnswerStep::BlockEnded { block })
            }
            StreamEvent::Usage { usage } => {
                self.usage = Some(usage);
                Some(AnswerStep::Measured { usage })
            }
            StreamEvent::Warning(warning) => return Some(Event::Warning(warning)),
            StreamEvent::Stopped { .. }
            | StreamEvent::Routed { .. }
            | StreamEvent::Rerouted(_)
            | StreamEvent::Wasted { .. }
            | StreamEvent::Retrying(_) => None,
        };
        step.map(Event::Answer)
    }

    fn complete(self, origin: Origin, stop: StopReason, detail: Option<String>) -> Reply {
        Reply {
            message: Arc::new(Message {
                role: Role::Assistant,
                content: self
                    .blocks
                    .into_values()
                    .map(Arc::unwrap_or_clone)
                    .collect(),
                origin: Some(origin.clone()),
            }),
            origin,
            usage: self.usage.unwrap_or_default(),
            stop,
            detail,
        }
    }
}
