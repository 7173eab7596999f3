//! Where questions wait for the client's answer. A question that nobody answers in time is a
//! refusal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caliban_agent::{Answer, Event, Interrupt, Listener, Operator, Question, Remember, ToolCall};
use caliban_protocol::heddle::{Choice, PermissionResponse, native_name};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};

/// Questions that wait; agents ask one at a time each.
const MAX_WAITING: usize = 1024;

/// Why nothing is permitted once the client has gone.
const DESERTED: &str = "the client has closed its end and can no longer answer";

/// Asks the client.
#[derive(Debug)]
pub(crate) struct Desk {
    waiting: Mutex<Vec<Waiting>>,
    patience: Duration,
    /// The client can answer nothing any more.
    is_deserted: AtomicBool,
}

#[derive(Debug)]
struct Waiting {
    call: Arc<str>,
    /// Not known before the call itself arrives.
    tool: Option<Arc<str>>,
    answer: Option<oneshot::Sender<Answer>>,
    /// Taken by whoever asked.
    answered: Option<oneshot::Receiver<Answer>>,
}

impl Desk {
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            waiting: Mutex::default(),
            patience,
            is_deserted: AtomicBool::new(false),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lays a question out before the client hears of it: its answer may be faster than the
    /// hooks that are told of the question.
    fn open(&self, call: &Arc<str>) {
        let mut waiting = self.waiting();
        if waiting.len() < MAX_WAITING {
            let (answer, answered) = oneshot::channel();
            waiting.push(Waiting {
                call: Arc::clone(call),
                tool: None,
                answer: Some(answer),
                answered: Some(answered),
            });
        }
    }

    fn take(&self, call: &ToolCall) -> Option<oneshot::Receiver<Answer>> {
        let find = || {
            let mut waiting = self.waiting();
            let mut open = waiting.iter_mut();
            let found = open.find(|one| one.call == call.id && one.answered.is_some())?;
            found.tool = Some(Arc::clone(&call.name));
            found.answered.take()
        };
        find().or_else(|| {
            self.open(&call.id);
            find()
        })
    }

    fn close(&self, call: &Arc<str>) {
        let mut waiting = self.waiting();
        if let Some(place) = waiting
            .iter()
            .position(|one| one.call == *call && one.answered.is_none())
        {
            waiting.remove(place);
        }
    }

    /// The client has closed its end: what is asked, and will be asked, is refused.
    pub(crate) fn desert(&self) {
        self.is_deserted.store(true, Ordering::Release);
        for open in &mut *self.waiting() {
            if let Some(answer) = open.answer.take() {
                // Whoever asked may have stopped waiting.
                let _ = answer.send(refusal(Some(DESERTED.to_owned())));
            }
        }
    }

    /// Nobody waits any more.
    pub(crate) fn clear(&self) {
        self.waiting().clear();
    }

    /// Passes an answer on; the error says why there is nobody to take it.
    pub(crate) fn answer(&self, response: PermissionResponse) -> Result<(), String> {
        let mut waiting = self.waiting();
        let wanted = response.name.as_deref().map(native_name);
        let mut open = waiting.iter_mut().filter(|one| one.answer.is_some());
        let found = match (&response.request_id, wanted) {
            (Some(id), _) => open.find(|one| *one.call == **id),
            (None, Some(name)) => {
                // A call whose tool is not known yet may be the one.
                open.find(|one| one.tool.as_deref().is_none_or(|tool| tool == name))
            }
            (None, None) => open.next(),
        };
        let Some(answer) = found.and_then(|one| one.answer.take()) else {
            return Err("no such question is open".to_owned());
        };
        // Whoever asked may have stopped waiting.
        let _ = answer.send(match response.decision {
            Choice::Allow => Answer::Allow {
                input: None,
                remember: Remember::Once,
            },
            Choice::Deny => refusal(response.reason),
        });
        Ok(())
    }
}

fn refusal(reason: Option<String>) -> Answer {
    Answer::Deny {
        reason: Some(reason.unwrap_or_else(|| "the client denied it".to_owned())),
        remember: Remember::Once,
        interrupt: Interrupt::No,
    }
}

impl Operator for Desk {
    fn decide<'a>(&'a self, call: &'a ToolCall, _: &'a Question) -> BoxFuture<'a, Answer> {
        async move {
            let Some(answered) = self.take(call) else {
                return refusal(Some("too many questions are open".to_owned()));
            };
            let closing = Closing { desk: self, call };
            if self.is_deserted.load(Ordering::Acquire) {
                return refusal(Some(DESERTED.to_owned()));
            }
            let answer = tokio::time::timeout(self.patience, answered).await;
            drop(closing);
            match answer {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) | Err(_) => refusal(Some(format!(
                    "the client did not answer within {} ms",
                    self.patience.as_millis()
                ))),
            }
        }
        .boxed()
    }
}

/// Takes a question back, also when its run is cancelled.
struct Closing<'a> {
    desk: &'a Desk,
    call: &'a ToolCall,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.desk.close(&self.call.id);
    }
}

/// Passes events on to the loop, and lays out the questions among them.
pub(crate) struct Ear<'a> {
    pub(crate) desk: &'a Desk,
    pub(crate) events: mpsc::Sender<Event>,
}

impl Listener for Ear<'_> {
    fn hear(&self, event: Event) -> BoxFuture<'_, ()> {
        let asked = match &event {
            Event::Nested { event, .. } => event,
            event => event,
        };
        if let Event::PermissionAsked { id, .. } = asked {
            self.desk.open(id);
        }
        async move {
            // The loop outlives the run.
            let _ = self.events.send(event).await;
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use caliban_agent::{Effect, Opinion};
    use serde_json::json;

    use super::*;

    fn call(id: &str, name: &str) -> ToolCall {
        ToolCall {
            id: Arc::from(id),
            name: Arc::from(name),
            input: json!({}),
            effect: Effect::Executes,
            first_arg: None,
            turn: 1,
            opinion: Opinion::None,
        }
    }

    fn question() -> Question {
        Question {
            reason: "r".to_owned(),
            rule: None,
            remedy: String::new(),
            suggestions: Vec::new(),
            target: None,
            input: None,
        }
    }

    fn response(
        request_id: Option<&str>,
        name: Option<&str>,
        decision: Choice,
    ) -> PermissionResponse {
        PermissionResponse {
            id: "9".to_owned(),
            request_id: request_id.map(str::to_owned),
            name: name.map(str::to_owned),
            decision,
            reason: None,
        }
    }

    #[tokio::test]
    async fn a_question_without_an_answer_is_refused_and_gone() {
        let desk = Desk::new(Duration::from_millis(7));
        let answer = desk.decide(&call("1", "Bash"), &question()).await;
        let Answer::Deny { reason, .. } = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(
            reason.as_deref(),
            Some("the client did not answer within 7 ms")
        );
        assert!(desk.answer(response(None, None, Choice::Allow)).is_err());
    }

    #[tokio::test]
    async fn an_answer_may_come_before_the_question_is_asked() {
        let desk = Desk::new(Duration::from_mins(1));
        desk.open(&Arc::from("1"));
        desk.answer(response(Some("1"), None, Choice::Allow))
            .unwrap();
        let answer = desk.decide(&call("1", "Bash"), &question()).await;
        assert!(matches!(answer, Answer::Allow { .. }), "{answer:?}");
    }

    #[tokio::test]
    async fn answers_find_their_question_by_id_or_name_and_only_once() {
        let desk = Desk::new(Duration::from_mins(1));
        let (bash, write) = (call("1", "Bash"), call("2", "Write"));
        let asked = question();
        let mut first = desk.decide(&bash, &asked);
        let mut second = desk.decide(&write, &asked);
        assert!((&mut first).now_or_never().is_none());
        assert!((&mut second).now_or_never().is_none());
        assert!(
            desk.answer(response(Some("3"), None, Choice::Allow))
                .is_err()
        );
        assert!(
            desk.answer(response(None, Some("grep"), Choice::Allow))
                .is_err()
        );
        desk.answer(response(None, Some("write_file"), Choice::Deny))
            .unwrap();
        assert!(matches!(second.await, Answer::Deny { .. }));
        desk.answer(response(Some("1"), None, Choice::Allow))
            .unwrap();
        assert!(
            desk.answer(response(Some("1"), None, Choice::Allow))
                .is_err()
        );
        assert!(matches!(first.await, Answer::Allow { .. }));
    }

    #[tokio::test]
    async fn a_question_that_is_dropped_cannot_be_answered() {
        let desk = Desk::new(Duration::from_mins(1));
        let bash = call("1", "Bash");
        let asked = question();
        let mut dropped = desk.decide(&bash, &asked);
        assert!((&mut dropped).now_or_never().is_none());
        drop(dropped);
        assert!(
            desk.answer(response(Some("1"), None, Choice::Allow))
                .is_err()
        );
    }
}
