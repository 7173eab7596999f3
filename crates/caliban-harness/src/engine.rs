//! A session as the engine of its actor.

use std::time::Duration;

use caliban_agent::{Event, Listener, Outcome};
use caliban_model::{Block, CancellationToken, Message};
use caliban_session::{Attach, Engine, ExchangeEnd, Facts, McpServer, Prompt, PromptId, Rewind};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use tokio::time::timeout;

use crate::attachments::{leave_out_known, server_names};
use crate::error::LaunchError;
use crate::mcp::server_states;
use crate::obedience::Wish;
use crate::session::Session;
use crate::typeable;

/// How long a session may take to end: what takes longer, its guardian ends without us.
const GOODBYE: Duration = Duration::from_millis(1500);

impl Engine for Session {
    fn facts(&self) -> Facts {
        let agent = &self.agent;
        let model = match &agent.dial {
            Some(dial) => dial.read().model,
            None => agent.settings.model.clone(),
        };
        let window = agent.provider.capabilities(&model).context_window;
        let mut facts = Facts {
            tools: agent.tools.current().names().map(str::to_owned).collect(),
            servers: self.servers_shown(),
            permission_mode: self.regime().as_str().to_owned(),
            messages: self.conversation.messages().len(),
            context_window: window.unwrap_or(agent.settings.compaction.assumed_window),
            model: model.to_string(),
            ..self.facts.clone()
        };
        typeable::list(&mut facts, &self.server_prompts);
        facts
    }

    fn work<'a>(
        &'a mut self,
        prompt: Prompt,
        told: &'a dyn Listener,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd> {
        async move {
            if let Some(watch) = &self.watch {
                watch.look().await;
            }
            let listing = typeable::prompts(self.servers.as_ref());
            if let Some(prompts) = cancel.run_until_cancelled(listing).await {
                self.server_prompts = prompts;
            }
            if let Some(traces) = &self.traces {
                traces.begin(&prompt.id);
            }
            let Prompt {
                id,
                message,
                attach,
            } = prompt;
            let message = match Box::pin(self.heed(message, told, cancel)).await {
                Wish::Prompt(message) => message,
                Wish::Done(outcome, totals) => {
                    let totals = *totals;
                    return ExchangeEnd { outcome, totals };
                }
            };
            if asks_nothing(&message) {
                let text = String::new();
                return self.unbegun(Outcome::obeyed(text));
            }
            let named = id.clone();
            let prompt = Prompt {
                id,
                message,
                attach,
            };
            let attached = self.attached(prompt, told);
            let message = match cancel.run_until_cancelled(attached).await {
                None => return self.unbegun(Outcome::Cancelled),
                Some(Ok(message)) => message,
                Some(Err(error)) => {
                    return self.unbegun(Outcome::Unusable {
                        message: error.to_string(),
                    });
                }
            };
            self.prompt_id = Some(named);
            let (outcome, totals) = self.run(message, told, cancel).await;
            ExchangeEnd { outcome, totals }
        }
        .boxed()
    }

    fn compact<'a>(
        &'a mut self,
        instructions: Option<String>,
        told: &'a dyn Listener,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd> {
        async move {
            let (outcome, totals) = self.condense(instructions.as_deref(), told, cancel).await;
            ExchangeEnd { outcome, totals }
        }
        .boxed()
    }

    fn shell<'a>(
        &'a mut self,
        id: PromptId,
        command: String,
        told: &'a dyn Listener,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd> {
        async move {
            let input = json!({ "command": command });
            if let Some(traces) = &self.traces {
                traces.begin(&id);
            }
            self.agent.call(&id, "Bash", input, told, cancel).await;
            self.unbegun(if cancel.is_cancelled() {
                Outcome::Cancelled
            } else {
                Outcome::obeyed(String::new())
            })
        }
        .boxed()
    }

    fn rewind<'a>(
        &'a mut self,
        rewind: Rewind,
        told: &'a dyn Listener,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, ExchangeEnd> {
        async move {
            let (outcome, totals) = self.rewind(rewind, told, cancel).await;
            ExchangeEnd { outcome, totals }
        }
        .boxed()
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Result<(), String>> {
        async move {
            match timeout(GOODBYE, self.shutdown()).await {
                Ok(closed) => closed,
                // Everything was saved first; what remains are programs.
                Err(_) => Ok(()),
            }
        }
        .boxed()
    }
}

/// Whether there is nothing in a prompt that a model could answer. Clients open a session so.
fn asks_nothing(message: &Message) -> bool {
    let mut blocks = message.content.iter();
    blocks.all(|block| matches!(block, Block::Text { text, .. } if text.trim().is_empty()))
}

impl Session {
    /// The prompt with what it names and the conversation does not hold yet.
    pub(crate) async fn attached(
        &self,
        prompt: Prompt,
        told: &dyn Listener,
    ) -> Result<Message, LaunchError> {
        let mut message = prompt.message;
        let (Attach::Named, Some(attachments)) = (prompt.attach, &self.attachments) else {
            return Ok(message);
        };
        let typed = match message.content.first() {
            Some(Block::Text { text, .. }) => text.clone(),
            Some(_) | None => return Ok(message),
        };
        let reading = self.gate.reader(Vec::new());
        let names = self.servers.as_ref().map(server_names).unwrap_or_default();
        let attached = attachments.attach(&typed, &*reading, &names)?;
        let mut notices = attached.notices;
        message
            .content
            .extend(attached.message.content.into_iter().skip(1));
        if let Some(servers) = &self.servers {
            let more = attachments.add_resources(&typed, &*reading, servers, &mut message);
            notices.extend(more.await?);
        }
        for message in notices {
            let subtype = "attachment".into();
            told.hear(Event::Notice { subtype, message }).await;
        }
        let earlier = self.conversation.messages().iter();
        leave_out_known(&mut message, earlier.map(AsRef::as_ref));
        Ok(message)
    }

    fn unbegun(&self, outcome: Outcome) -> ExchangeEnd {
        let totals = self.totals.clone();
        ExchangeEnd { outcome, totals }
    }

    fn servers_shown(&self) -> Vec<McpServer> {
        let states = server_states(self.servers.as_ref()).into_iter();
        states
            .map(|state| McpServer {
                status: if self.switches.is_off(&state.name) {
                    "disabled".to_owned()
                } else {
                    state.status.to_owned()
                },
                name: state.name,
                reason: None,
            })
            .collect()
    }
}
