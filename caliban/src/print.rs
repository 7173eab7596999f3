//! Print mode: prompts in, answers out, one exchange after the other.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use caliban_agent::{Event, Hooks, Outcome, RunTotals};
use caliban_harness::Session;
use caliban_model::{CancellationToken, Message};
use caliban_protocol::{Command, Init};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::config_watch::{ConfigWatch, Files};
use crate::console::note;
use crate::debug_log::DebugLog;
use crate::exit::Failure;
use crate::face::Face;
use crate::stdin::Input;

/// Events that wait to be shown; a run waits for a face that is further behind.
const EVENT_QUEUE: usize = 256;
/// Prompts that wait behind the one that is worked on; then standard input waits.
const PROMPT_QUEUE: usize = 256;
/// How long background jobs may keep the program after its result.
const SHUTDOWN: Duration = Duration::from_millis(1500);

/// What is still to be done: the prompts that are known, and where more may come from.
pub(crate) struct Prompts {
    waiting: VecDeque<Input>,
    more: Option<mpsc::Receiver<Input>>,
}

/// Whether calls that were not permitted fail the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denials {
    Tolerated,
    Fail,
}

impl Prompts {
    pub(crate) fn one(prompt: Message) -> Self {
        Self {
            waiting: VecDeque::from([Ok(Command::User(prompt))]),
            more: None,
        }
    }

    pub(crate) fn stream(more: mpsc::Receiver<Input>) -> Self {
        Self {
            waiting: VecDeque::new(),
            more: Some(more),
        }
    }

    /// The next prompt; nothing when there will be no more.
    async fn next(&mut self) -> Option<Result<Message, Failure>> {
        loop {
            let input = match self.waiting.pop_front() {
                Some(input) => input,
                None => self.more.as_mut()?.recv().await?,
            };
            match input {
                Ok(Command::User(prompt)) => return Some(Ok(prompt)),
                // There is nothing to interrupt.
                Ok(Command::Interrupt) => {}
                Err(failure) => return Some(Err(failure)),
            }
        }
    }

    /// Hears what comes while a prompt is worked on; returns at an interrupt.
    async fn until_interrupted(&mut self) {
        loop {
            let Some(more) = &mut self.more else {
                return std::future::pending().await;
            };
            if self.waiting.len() >= PROMPT_QUEUE {
                return std::future::pending().await;
            }
            match more.recv().await {
                Some(Ok(Command::Interrupt)) => return,
                Some(input) => self.waiting.push_back(input),
                None => self.more = None,
            }
        }
    }
}

/// A session and those who watch it.
pub(crate) struct Print<'a, 'face> {
    pub(crate) session: Session,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) watch: Option<ConfigWatch>,
    pub(crate) face: &'a mut Face<'face>,
    pub(crate) denials: Denials,
    pub(crate) debug: Option<DebugLog>,
}

impl Print<'_, '_> {
    /// Works on all prompts and shows what happens. If nobody reads the output any more, the run
    /// is cancelled.
    pub(crate) async fn run(mut self, mut prompts: Prompts, init: &Init) -> Result<(), Failure> {
        self.face.begin(init)?;
        let ended = self.exchanges(&mut prompts).await;
        let shown = self.face.finish();
        // The result is out; what takes longer to end, its guardian ends without us.
        if let Ok(Err(trouble)) = timeout(SHUTDOWN, self.session.shutdown()).await {
            note(&format!("warning: the session was not saved: {trouble}"));
        }
        ended.and(shown)
    }

    async fn exchanges(&mut self, prompts: &mut Prompts) -> Result<(), Failure> {
        let mut last: Option<(Outcome, RunTotals)> = None;
        while let Some(prompt) = prompts.next().await {
            let prompt = match prompt {
                Ok(prompt) => prompt,
                Err(failure) => {
                    let totals = last.map(|(_, totals)| totals).unwrap_or_default();
                    self.face.fail(&failure.to_string(), &totals)?;
                    return Err(failure);
                }
            };
            let files = match last {
                None => Files::JustRead,
                Some(_) => Files::Older,
            };
            let (outcome, totals) = self.exchange(prompt, files, prompts).await?;
            let is_over =
                self.cancel.is_cancelled() || matches!(outcome, Outcome::BudgetExceeded { .. });
            last = Some((outcome, totals));
            if is_over {
                break;
            }
        }
        let Some((outcome, totals)) = last else {
            let failure = Failure::NoInput("there was no prompt on standard input".to_owned());
            self.face
                .fail(&failure.to_string(), &RunTotals::default())?;
            return Err(failure);
        };
        match outcome {
            Outcome::Success { .. } => match self.denials {
                Denials::Fail if !totals.denials.is_empty() => {
                    let tools: Vec<&str> =
                        totals.denials.iter().map(|(_, tool, _)| &**tool).collect();
                    let tools = tools.join(", ");
                    Err(Failure::Runtime(format!("not permitted: {tools}")))
                }
                Denials::Fail | Denials::Tolerated => Ok(()),
            },
            failure => Err(Failure::Outcome(failure)),
        }
    }

    /// Works on one prompt to its end.
    async fn exchange(
        &mut self,
        prompt: Message,
        files: Files,
        prompts: &mut Prompts,
    ) -> Result<(Outcome, RunTotals), Failure> {
        let (sender, mut events) = mpsc::channel::<Event>(EVENT_QUEUE);
        let stop = self.cancel.child_token();
        let hooks = Arc::clone(&self.session.agent().hooks);
        let watch = self.watch.as_ref();
        let session = &mut self.session;
        let running = async {
            if let Some(watch) = watch {
                // Rarely more than a look, so it need not make every run larger.
                Box::pin(watch.catch_up(files, &*hooks, &sender)).await;
            }
            let run = session.run(prompt, &sender, &stop);
            let ended = with_watch(run, watch, &*hooks, &sender, prompts, &stop).await;
            drop(sender);
            ended
        };
        let face = &mut *self.face;
        let debug = &mut self.debug;
        let showing = async {
            let mut shown = Ok(());
            let mut ready = Vec::new();
            // What is there is written in one piece; nothing waits for what is not.
            while events.recv_many(&mut ready, EVENT_QUEUE).await > 0 {
                for event in ready.drain(..) {
                    if let Some(debug) = debug {
                        debug.note(&event);
                    }
                    shown = shown.and_then(|()| face.show(&event));
                }
                shown = shown.and_then(|()| face.flush());
                if shown.is_err() {
                    stop.cancel();
                }
            }
            shown
        };
        let (ended, shown) = tokio::join!(running, showing);
        shown?;
        Ok(ended)
    }
}

/// Drives a run while its settings and its input are watched.
async fn with_watch(
    run: impl Future<Output = (Outcome, RunTotals)>,
    watch: Option<&ConfigWatch>,
    hooks: &dyn Hooks,
    events: &mpsc::Sender<Event>,
    prompts: &mut Prompts,
    stop: &CancellationToken,
) -> (Outcome, RunTotals) {
    tokio::select! {
        ended = run => ended,
        never = follow(watch, hooks, events) => match never {},
        never = pass_interrupts(prompts, stop) => match never {},
    }
}

async fn follow(
    watch: Option<&ConfigWatch>,
    hooks: &dyn Hooks,
    events: &mpsc::Sender<Event>,
) -> Infallible {
    match watch {
        Some(watch) => watch.follow(hooks, events).await,
        None => std::future::pending().await,
    }
}

async fn pass_interrupts(prompts: &mut Prompts, stop: &CancellationToken) -> Infallible {
    loop {
        prompts.until_interrupted().await;
        stop.cancel();
    }
}
