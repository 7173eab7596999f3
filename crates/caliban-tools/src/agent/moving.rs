//! Sub-agents at work, and on their way to the background where the operator wants them there.

use std::sync::Arc;

use caliban_agent::{Agent, Conversation, Denial, Outcome, RunTotals, ToolContext};
use caliban_model::Message;

use super::{AgentInput, AgentKind, AgentTool, Ground, NO_BACKGROUND, Relay};
use crate::background_agent::Handover;

/// The most characters of its task that name one which was moved to the background.
const MAX_LABEL: usize = 80;
/// How the run of a sub-agent came to its end.
enum Run {
    Over(Outcome, Box<RunTotals>),
    /// It was interrupted, to go on in the background.
    Moved(Box<RunTotals>),
}

/// What an agent is told that goes on in the background.
const MOVED: &str = "The user moved you to the background, where you go on by yourself. What you \
were waiting for was ended; look what became of it before you do it again. Go on with your task.";
/// What it is told where that was not possible.
const STAYED: &str = "You were interrupted for a moment. What you were waiting for was ended; look \
what became of it before you do it again. Go on with your task.";

/// A sub-agent and what it is to do.
pub(super) struct Task<'a> {
    pub(super) input: &'a AgentInput,
    pub(super) kind: Option<&'a AgentKind>,
    pub(super) agent: &'a Agent,
    pub(super) ground: Option<&'a dyn Ground>,
    pub(super) context: &'a ToolContext,
}

/// What became of it.
pub(super) struct Done {
    pub(super) outcome: Outcome,
    pub(super) last_text: Option<String>,
    pub(super) denials: Vec<(Arc<str>, Arc<str>, Denial)>,
    /// What is said of one that went to the background.
    pub(super) moved: Option<String>,
}

impl AgentTool {
    /// Lets a sub-agent work until it is done or has gone to the background. One that cannot go
    /// there goes on here.
    pub(super) async fn see_through(
        &self,
        task: &Task<'_>,
        conversation: &mut Conversation,
    ) -> Done {
        let mut prompt = Message::user(task.input.prompt.clone());
        let mut denials = Vec::new();
        loop {
            match self.work(task, conversation, prompt).await {
                Run::Over(outcome, totals) => {
                    denials.extend(totals.denials);
                    return Done {
                        outcome,
                        last_text: totals.last_text,
                        denials,
                        moved: None,
                    };
                }
                Run::Moved(totals) => {
                    denials.extend(totals.denials);
                    match self.move_away(task, conversation).await {
                        Ok(told) => {
                            return Done {
                                outcome: Outcome::Cancelled,
                                last_text: None,
                                denials,
                                moved: Some(told),
                            };
                        }
                        Err(reason) => prompt = Message::user(format!("{STAYED} ({reason})")),
                    }
                }
            }
        }
    }

    /// Lets a sub-agent work until it is done, or wanted in the background where it can go there:
    /// one in a directory of its own stays with it.
    async fn work(&self, task: &Task<'_>, conversation: &mut Conversation, prompt: Message) -> Run {
        let context = task.context;
        let relay = Relay(context);
        let cancel = context.cancel.child_token();
        // A sub-agent's future is as large as its parent's; on the heap it does not add up.
        let mut running = Box::pin(task.agent.run(conversation, prompt, &relay, &cancel));
        let jobs = self.jobs.as_ref();
        let movable = jobs.filter(|_| self.background.is_some() && task.ground.is_none());
        let Some(movable) = movable.map(|jobs| jobs.movable()) else {
            let (outcome, totals) = running.await;
            return Run::Over(outcome, Box::new(totals));
        };
        tokio::select! {
            (outcome, totals) = &mut running => return Run::Over(outcome, Box::new(totals)),
            () = movable.wanted_in_background() => cancel.cancel(),
        }
        match running.await {
            (Outcome::Cancelled, totals) if !context.cancel.is_cancelled() => {
                Run::Moved(Box::new(totals))
            }
            (outcome, totals) => Run::Over(outcome, Box::new(totals)),
        }
    }

    /// Hands a sub-agent that was interrupted to the background, with all that it did; what its
    /// parent is told, or why it stays.
    async fn move_away(
        &self,
        moved: &Task<'_>,
        conversation: &Conversation,
    ) -> Result<String, String> {
        let (input, agent) = (moved.input, moved.agent);
        let background = self.background.as_ref().ok_or(NO_BACKGROUND)?;
        let mut task = self.task(input.clone(), moved.kind);
        task.description
            .get_or_insert_with(|| input.prompt.chars().take(MAX_LABEL).collect());
        MOVED.clone_into(&mut task.prompt);
        // It keeps what it was told before its task.
        task.kind = task.kind.map(|(name, _)| (name, String::new()));
        task.handover = Some(Handover {
            messages: conversation.messages().to_vec(),
            provider: agent.provider.id().to_owned(),
            model: agent.settings.model.to_string(),
        });
        background.start(task).await
    }
}
