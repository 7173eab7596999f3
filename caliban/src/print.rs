//! Print mode as a face of the session: prompts in, answers out, one exchange after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use caliban_agent::{Answer, Interrupt, Outcome, Remember, RunTotals};
use caliban_model::Message;
use caliban_protocol::{Command as Line, Decision};
use caliban_session::{
    Attach, Attendance, Command, Delivery, EventBatch, Events, Place, Prompt, QuestionKind,
    RuleChange, SessionEvent, SessionHandle, Shutdown, What,
};
use caliban_settings::RuleAction;
use tokio::sync::{mpsc, oneshot};

use crate::console::note;
use crate::exit::Failure;
use crate::face::Face;
use crate::signals::{self, Interrupts};
use crate::stdin::Input;
use crate::tally::Tally;

/// Questions whose suggestions are remembered for an answer that shall hold for longer.
const QUESTIONS: usize = 64;

/// Where prompts come from.
pub(crate) enum Prompts {
    /// One, with everything that it names.
    One(Box<Message>),
    Lines(mpsc::Receiver<Input>),
}

/// Whether calls that were not permitted fail the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denials {
    Tolerated,
    Fail,
}

/// Whether the program at the other end answers questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attends {
    Yes,
    No,
}

/// A session and what it is shown with.
pub(crate) struct Print<'a, 'face> {
    pub(crate) handle: SessionHandle,
    pub(crate) events: Events,
    pub(crate) interrupts: &'a Interrupts,
    pub(crate) face: &'a mut Face<'face>,
    pub(crate) denials: Denials,
    pub(crate) attends: Attends,
}

/// What can still come after an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// Another one, for all that is known.
    Exchanges,
    /// Nothing but the end of the session.
    End,
}

/// What was asked so far, as whoever passes it on knows it.
#[derive(Debug, Default)]
struct Passed {
    prompts: AtomicU64,
    is_all: AtomicBool,
}

impl Passed {
    /// What comes after so many exchanges.
    fn ahead(&self, ended: u64) -> Ahead {
        if self.is_all.load(Ordering::SeqCst) && self.prompts.load(Ordering::SeqCst) <= ended {
            Ahead::End
        } else {
            Ahead::Exchanges
        }
    }
}

/// What the exchanges so far came to.
struct Account {
    ended: u64,
    tally: Tally,
    last: Option<(Outcome, RunTotals)>,
    /// The failure with the highest code; an interrupt counts only where it is the last.
    worst: Option<Outcome>,
}

impl Print<'_, '_> {
    /// Works on all prompts and shows what happens. If nobody reads the output any more, the
    /// session ends.
    pub(crate) async fn run(mut self, prompts: Prompts) -> Result<(), Failure> {
        let (broken, mut input) = oneshot::channel();
        let (asked, questions) = mpsc::channel(QUESTIONS);
        // Whoever cannot say anything any more cannot answer either.
        let attendance = match self.attends {
            Attends::Yes => Some(self.handle.attend()),
            Attends::No => None,
        };
        let passed = Arc::new(Passed::default());
        let feeding = feed(
            self.handle.clone(),
            prompts,
            Arc::clone(&passed),
            broken,
            questions,
            attendance,
        );
        let feeding = tokio::spawn(feeding);
        let mut account = Account {
            ended: 0,
            tally: Tally::new(),
            last: None,
            worst: None,
        };
        let shown = self.show(&mut account, &passed, &asked).await;
        feeding.abort();
        shown?;
        if let Ok(failure) = input.try_recv() {
            let totals = account.last.map(|(_, totals)| totals).unwrap_or_default();
            self.face.fail(&failure.to_string(), &totals)?;
            self.face.finish()?;
            return Err(failure);
        }
        self.end(account)
    }

    /// Shows everything that the session tells, to its end.
    async fn show(
        &mut self,
        account: &mut Account,
        passed: &Passed,
        asked: &mpsc::Sender<Arc<SessionEvent>>,
    ) -> Result<(), Failure> {
        let mut shown = Ok(());
        let mut is_leaving = false;
        loop {
            let heard = tokio::select! {
                heard = self.events.next() => heard,
                () = self.interrupts.insisted.cancelled() => self.cut_off(account),
                () = self.interrupts.cancel.cancelled(), if !is_leaving => {
                    is_leaving = true;
                    self.leave().await;
                    continue;
                }
            };
            let events = match heard {
                None => return shown,
                Some(EventBatch::Events(events)) => events,
                // The first hearer misses nothing.
                Some(EventBatch::Missed(_)) => continue,
            };
            for event in events {
                if let What::Asked(_) = event.what {
                    // One that is not remembered can still be answered, but not for longer.
                    let _ = asked.try_send(Arc::clone(&event));
                }
                account.note(&event.what);
                let ahead = passed.ahead(account.ended);
                shown = shown.and_then(|()| self.face.show(&event.what, self.attends, ahead));
            }
            // What is there is written in one piece; nothing waits for what is not.
            shown = shown.and_then(|()| self.face.flush());
            if shown.is_err() && !is_leaving {
                is_leaving = true;
                self.leave().await;
            }
        }
    }

    /// The user insists: what can be said is said, and nothing is waited for.
    fn cut_off(&mut self, account: &Account) -> ! {
        self.interrupts.take_last_words();
        // It cannot be helped where nobody reads.
        let _ = self.face.cut_off(&account.tally.now());
        signals::leave(130)
    }

    async fn leave(&self) {
        let when = Shutdown::Now;
        // It may have ended by itself.
        let _ = self.handle.send(Command::Shutdown { when }).await;
    }

    fn end(&mut self, account: Account) -> Result<(), Failure> {
        let Some((last, totals)) = account.last else {
            if self.interrupts.cancel.is_cancelled() {
                self.face.cut_off(&account.tally.now())?;
                return Err(Failure::Outcome(Outcome::Cancelled));
            }
            let failure = Failure::NoInput("there was no prompt on standard input".to_owned());
            self.face
                .fail(&failure.to_string(), &RunTotals::default())?;
            self.face.finish()?;
            return Err(failure);
        };
        let worst = match (account.worst, last) {
            (Some(worst), Outcome::Cancelled)
                if worst.exit_code() < Outcome::Cancelled.exit_code() =>
            {
                Some(Outcome::Cancelled)
            }
            (None, Outcome::Cancelled) => Some(Outcome::Cancelled),
            (worst, _) => worst,
        };
        match worst {
            Some(failure) => Err(Failure::Outcome(failure)),
            None if self.denials == Denials::Fail && !totals.denials.is_empty() => {
                let tools: Vec<&str> = totals.denials.iter().map(|(_, tool, _)| &**tool).collect();
                let tools = tools.join(", ");
                Err(Failure::Runtime(format!("not permitted: {tools}")))
            }
            None => Ok(()),
        }
    }
}

impl Account {
    fn note(&mut self, what: &What) {
        self.tally.note(what);
        match what {
            What::Ended {
                outcome, totals, ..
            } => {
                self.ended += 1;
                let code = |outcome: &Outcome| outcome.exit_code();
                let is_worse = self.worst.as_ref().map_or(0, code) < code(outcome);
                // Work may go on after an interrupt.
                if is_worse && *outcome != Outcome::Cancelled {
                    self.worst = Some(outcome.clone());
                }
                self.last = Some((outcome.clone(), (**totals).clone()));
            }
            What::Refused(refused) => match &refused.what {
                Place::Question(_) => note(&format!("an answer was not used: {}", refused.reason)),
                Place::Prompt(_) => {
                    self.ended += 1;
                    let message = refused.reason.clone();
                    self.worst.get_or_insert(Outcome::Internal { message });
                }
                Place::TakeBack(_)
                | Place::Mode
                | Place::Model
                | Place::Rule
                | Place::Server(_)
                | Place::Job(_) => {}
            },
            What::Closed {
                trouble: Some(trouble),
                ..
            } => note(&format!("warning: the session was not saved: {trouble}")),
            What::Opened(_)
            | What::Queued { .. }
            | What::Began { .. }
            | What::Run(_)
            | What::TakenBack { .. }
            | What::Interrupted { .. }
            | What::Repeated { .. }
            | What::Asked(_)
            | What::Answered(_)
            | What::ModeChanged { .. }
            | What::ModelChanged { .. }
            | What::ReasoningChanged { .. }
            | What::RuleChanged(_)
            | What::Idle
            | What::Closing
            | What::Closed { trouble: None, .. } => {}
        }
    }
}

/// Passes prompts and answers on, whatever the session does; then lets it end.
async fn feed(
    handle: SessionHandle,
    prompts: Prompts,
    passed: Arc<Passed>,
    broken: oneshot::Sender<Failure>,
    mut asked: mpsc::Receiver<Arc<SessionEvent>>,
    attendance: Option<Attendance>,
) {
    match prompts {
        Prompts::One(message) => {
            passed.prompts.store(1, Ordering::SeqCst);
            passed.is_all.store(true, Ordering::SeqCst);
            let _ = handle.send(queue(*message, Attach::Nothing)).await;
        }
        Prompts::Lines(mut lines) => {
            let mut questions = Vec::new();
            let mut is_whole = true;
            while let Some(line) = lines.recv().await {
                while let Ok(event) = asked.try_recv() {
                    questions.truncate(QUESTIONS - 1);
                    questions.insert(0, event);
                }
                let commands = match line {
                    Ok(line) => commands(line, &questions),
                    Err(failure) => {
                        // What came before it is worked on first, and what is wrong with it told
                        // after that.
                        let _ = broken.send(failure);
                        is_whole = false;
                        break;
                    }
                };
                for command in commands {
                    if let Command::Prompt { .. } = command {
                        passed.prompts.fetch_add(1, Ordering::SeqCst);
                    }
                    if handle.send(command).await.is_err() {
                        return;
                    }
                }
            }
            passed.is_all.store(is_whole, Ordering::SeqCst);
        }
    }
    drop(attendance);
    let when = Shutdown::WhenIdle;
    let _ = handle.send(Command::Shutdown { when }).await;
}

fn queue(message: Message, attach: Attach) -> Command {
    let id = uuid::Uuid::new_v4().to_string();
    Command::Prompt {
        prompt: Prompt {
            id: id.into(),
            message,
            attach,
        },
        delivery: Delivery::Queue,
    }
}

/// What a line means to the session.
pub(crate) fn commands(line: Line, questions: &[Arc<SessionEvent>]) -> Vec<Command> {
    match line {
        Line::User(message) => vec![queue(message, Attach::Named)],
        Line::Interrupt => vec![Command::Interrupt],
        Line::Reply { question, reply } => vec![Command::AnswerElicitation { question, reply }],
        Line::Answer {
            question,
            decision,
            input,
            message,
        } => {
            let answer = match decision {
                Decision::Allow | Decision::AllowSession => Answer::Allow {
                    input,
                    remember: Remember::Once,
                },
                Decision::Deny => Answer::Deny {
                    reason: message,
                    remember: Remember::Once,
                    interrupt: Interrupt::No,
                },
            };
            let rules = match decision {
                Decision::AllowSession => suggested(&question, questions),
                Decision::Allow | Decision::Deny => Vec::new(),
            };
            let rules = rules.into_iter().map(|pattern| {
                let action = RuleAction::Allow;
                Command::Rule(RuleChange::Add { pattern, action })
            });
            rules
                .chain([Command::Answer { question, answer }])
                .collect()
        }
    }
}

/// The rules that together permit what a question is about; where there are none, the answer
/// holds once.
fn suggested(question: &str, questions: &[Arc<SessionEvent>]) -> Vec<String> {
    let asked = questions.iter().find_map(|event| match &event.what {
        What::Asked(asked) if *asked.question == *question => Some(asked),
        _ => None,
    });
    match asked.map(|asked| &asked.kind) {
        Some(QuestionKind::Permission(inquiry)) => inquiry.question.suggestions.clone(),
        Some(QuestionKind::Elicitation(_)) | None => Vec::new(),
    }
}
