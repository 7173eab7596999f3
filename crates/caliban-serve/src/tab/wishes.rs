//! What a tab does when it is asked something.

use std::sync::Arc;

use caliban_session::Command;
use tokio::sync::oneshot;

use super::working::ended;
use super::{Letter, Outcome, Tab, Waiting, When, not_kept};
use crate::answer::{Code, Done, Problem, PromptView, Sent, SentState, Settled};
use crate::content::Content;
use crate::ledger::{Known, Standing};
use crate::request::{Action, Answer, Cancel, Decision, Queue};
use crate::scope;
use crate::view::Last;

impl Tab {
    pub(super) async fn obey(&mut self, letter: Letter) {
        // Whoever asked may have gone, which changes nothing about what was done.
        match letter {
            Letter::Send {
                request,
                content,
                reply,
            } => {
                let sent = self.send(request, content).await;
                let _ = reply.send(sent);
            }
            Letter::Result {
                request,
                when,
                reply,
            } => self.result(&request, when, reply),
            Letter::Cancel(cancel, reply) => {
                let cancelled = self.cancel(&cancel).await;
                let _ = reply.send(cancelled);
            }
            Letter::Answer(answer, reply) => {
                let answered = self.answer(&answer).await;
                let _ = reply.send(answered);
            }
            Letter::Set(set, reply) => self.set(set, reply).await,
            Letter::Snapshot(reply) => {
                let snapshot = self.snapshot().await;
                let _ = reply.send(snapshot);
            }
            Letter::Messages { from, most, reply } => {
                let page = self.message_page(from, most).await;
                let _ = reply.send(page);
            }
            Letter::Blob(digest, reply) => {
                let blob = self.blob(&digest).await;
                let _ = reply.send(blob);
            }
            Letter::Prompts(reply) => {
                let _ = reply.send(self.prompts());
            }
            // Seen to by the loop itself.
            Letter::Close(..) | Letter::Leave(..) => {}
        }
    }

    fn prompts(&self) -> Vec<PromptView> {
        let running = self.running.iter().map(|running| PromptView {
            request: running.request.to_string(),
            state: SentState::Running,
            content: None,
        });
        let queued = self.queue.iter().map(|waiting| PromptView {
            request: waiting.request.to_string(),
            state: SentState::Queued,
            content: Some(waiting.content.clone()),
        });
        running.chain(queued).collect()
    }

    async fn send(&mut self, request: Arc<str>, content: Content) -> Outcome {
        if let Some(reason) = &self.over {
            return Err(Problem::new(Code::Ended, reason.clone()));
        }
        let digest = content.digest();
        if let Some(known) = self.standing(&request, &digest) {
            return known;
        }
        // Only who holds the session may say what becomes of it.
        self.wake().await?;
        if let Some(known) = self.standing(&request, &digest) {
            return known;
        }
        let most = self.shared.limits.queue;
        let waits = self.running.is_some() || self.turn.is_some() || !self.queue.is_empty();
        if waits && self.queue.len() >= most {
            return Err(Problem::new(
                Code::QueueFull,
                format!(
                    "{most} prompts wait in this tab already; send it again when some are done"
                ),
            ));
        }
        self.ledger
            .accept(&request, digest, content.clone())
            .await
            .map_err(|error| not_kept(&error))?;
        self.prompts += 1;
        let position = self.queue.len() + usize::from(self.running.is_some());
        self.queue.push_back(Waiting {
            request: Arc::clone(&request),
            content,
        });
        self.seek().await;
        Ok(Done::Sent(Box::new(match self.ledger.standing(&request) {
            Some(Standing::Began { .. }) => sent(&request, SentState::Running, None),
            Some(Standing::Accepted(_)) | None => sent(&request, SentState::Queued, Some(position)),
            Some(Standing::Ended(result)) => Sent {
                result: Some(result.clone()),
                ..sent(&request, SentState::Ended, None)
            },
        })))
    }

    /// What is known of a request; nothing where it is new.
    fn standing(&self, request: &str, digest: &str) -> Option<Outcome> {
        let standing = match self.ledger.known(request, digest) {
            Known::Nothing => return None,
            Known::Otherwise => {
                return Some(Err(Problem::new(
                    Code::Conflict,
                    format!("the request `{request}` was sent before with other content"),
                )));
            }
            Known::Same(standing) => standing,
        };
        let sent = self.stands(request, standing);
        Some(Ok(Done::Sent(Box::new(Sent {
            duplicate: true,
            ..sent
        }))))
    }

    fn stands(&self, request: &str, standing: &Standing) -> Sent {
        match standing {
            Standing::Accepted(_) => {
                let before = self.queue.iter().position(|it| *it.request == *request);
                let running = usize::from(self.running.is_some());
                let position = before.map(|before| before + running);
                sent(request, SentState::Queued, position)
            }
            Standing::Began { .. } => sent(request, SentState::Running, None),
            Standing::Ended(result) => Sent {
                result: Some(result.clone()),
                ..sent(request, SentState::Ended, None)
            },
        }
    }

    fn result(&mut self, request: &str, when: When, reply: oneshot::Sender<Outcome>) {
        let answer = match self.ledger.standing(request) {
            None => Err(no_such_request(request)),
            Some(Standing::Ended(result)) => Ok(ended(request, result)),
            Some(standing) => match when {
                When::Now => Ok(Done::Sent(Box::new(self.stands(request, standing)))),
                When::Ended => {
                    self.waiters.entry(request.into()).or_default().push(reply);
                    return;
                }
            },
        };
        let _ = reply.send(answer);
    }

    async fn cancel(&mut self, cancel: &Cancel) -> Outcome {
        if cancel.queue == Queue::Clear {
            self.clear_queue().await;
        }
        let is_running = |request: &str| {
            let running = self.running.as_ref();
            running.is_some_and(|running| *running.request == *request)
                || self.foreign.as_deref() == Some(request)
        };
        match &cancel.request {
            Some(request) if !is_running(request) => {
                let place = self.queue.iter().position(|it| *it.request == **request);
                match place.and_then(|place| self.queue.remove(place)) {
                    Some(waiting) => {
                        let result = self.encoder.cancelled();
                        self.settle(&waiting.request, Last::Cancelled, vec![result])
                            .await;
                    }
                    // What has ended cannot be cancelled, and need not be.
                    None if self.ledger.standing(request).is_some() => {}
                    None => return Err(no_such_request(request)),
                }
            }
            Some(_) | None => {
                if let (true, Some(hosted)) = (self.is_working(), &self.hosted) {
                    let _ = hosted.send(self.stopping(cancel)).await;
                }
            }
        }
        Ok(Done::Settled(Settled {}))
    }

    /// What stops the request that is meant: it may wait behind what somebody else has worked on.
    fn stopping(&self, cancel: &Cancel) -> Command {
        match (&cancel.request, &self.running, &self.foreign) {
            (Some(request), Some(running), Some(_)) if *running.request == **request => {
                let prompt = Arc::clone(&running.request);
                Command::TakeBack { prompt }
            }
            _ => Command::Interrupt,
        }
    }

    async fn answer(&mut self, answer: &Answer) -> Outcome {
        let id = &*answer.question;
        let asked = self
            .questions
            .iter()
            .find(|(asked, _)| *asked.question == *id);
        let Some((asked, _)) = asked else {
            let first = self.answered.iter().find(|(known, _)| **known == *id);
            return Err(match first {
                Some((_, how)) => Problem {
                    how: Some((*how).to_owned()),
                    ..Problem::new(
                        Code::AlreadyAnswered,
                        format!("the question `{id}` was answered before: {how}"),
                    )
                },
                None => Problem::new(Code::NoSuchQuestion, format!("there is no question `{id}`")),
            });
        };
        let command = scope::command(asked, answer)
            .map_err(|reason| Problem::new(Code::BadRequest, reason))?;
        let question = Arc::clone(&asked.question);
        // The first answer counts, also before the session has heard of it.
        self.close_question(&question, how(answer));
        if let Some(hosted) = &self.hosted {
            let _ = hosted.send(command).await;
        }
        Ok(Done::Settled(Settled {}))
    }
}

/// What an answer says, in the word that is told of it.
fn how(answer: &Answer) -> &'static str {
    match (answer.decision, answer.action) {
        (Some(Decision::Allow), _) => "allow",
        (Some(Decision::Deny), _) => "deny",
        (None, Some(Action::Accept)) => "accept",
        (None, Some(Action::Decline)) => "decline",
        (None, Some(Action::Cancel) | None) => "cancel",
    }
}

fn sent(request: &str, state: SentState, position: Option<usize>) -> Sent {
    Sent {
        request: request.to_owned(),
        state,
        position,
        duplicate: false,
        result: None,
    }
}

fn no_such_request(request: &str) -> Problem {
    Problem::new(
        Code::NoSuchRequest,
        format!("there is no request `{request}`, or it ended long ago"),
    )
}
