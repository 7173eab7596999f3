//! The face without drawing: lines that are only ever added, for screen readers and for terminals
//! that can do no more. What goes on is said in sentences, and choices are numbers.

use std::collections::{HashMap, VecDeque};
use std::io::Write as _;
use std::sync::Arc;

use caliban_agent::{Event, Inquiry, Outcome, Reply, ToolStatus};
use caliban_model::CancellationToken;
use caliban_session::{
    Attach, Command, Delivery, EventBatch, Events, Prompt, QuestionKind, RuleChange, SessionEvent,
    SessionHandle, Shutdown, What,
};
use caliban_settings::RuleAction;
use caliban_text::{Strength, sanitise};
use tokio::sync::mpsc;

use crate::farewell::{Departure, Farewell};
use crate::host::{Host, ImportVerdict, Opened, Which};
use crate::plain_questions::{Choice, consent, offered};
use crate::setup::{FaceError, Setup};

/// Lines that may wait to be heard.
const LINES: usize = 16;
/// Lines of a result that are read out; the rest is counted.
const RESULT_LINES: usize = 12;

/// Makes a token that the next Ctrl+C cancels.
pub type Interruption<'a> = &'a (dyn Fn() -> CancellationToken + Sync);

/// Talks in lines until the operator leaves.
pub async fn run_plain(
    setup: Setup,
    host: Arc<dyn Host>,
    cancel: &CancellationToken,
    interruption: Interruption<'_>,
) -> Result<Farewell, FaceError> {
    let mut lines = typed_lines();
    let look = host.look().map_err(|_| FaceError::NotBegun)?;
    if !look.untrusted.is_empty() {
        say("This workspace has settings of its own. Without trust, this of them does not count:");
        for key in &look.untrusted {
            say(&format!("- {key}"));
        }
        say("1. Trust it with its files as they are. 2. Go on without. Type a number and Enter.");
        if lines.recv().await.as_deref().map(str::trim) == Some("1")
            && let Err(error) = host.trust()
        {
            say(&format!("It is not trusted: {error}"));
        }
    }
    if !look.imports.is_empty() {
        say("Instructions import files from outside of the workspace:");
        for import in &look.imports {
            say(&format!("- {import}"));
        }
        say("1. Import them as they are. 2. Go on without. Type a number and Enter.");
        let verdict = match lines.recv().await.as_deref().map(str::trim) {
            Some("1") => ImportVerdict::Approve,
            Some(_) | None => ImportVerdict::Refuse,
        };
        if let Err(error) = host.judge_imports(verdict) {
            say(&error);
        }
    }
    let opened = host.open(Which::Asked).await;
    let Opened {
        handle,
        events,
        name,
        past,
        ..
    } = opened.map_err(|_| FaceError::NotBegun)?;
    let mut events = events.ok_or(FaceError::NotBegun)?;
    events.attend();
    say("caliban. Write what you want done and press Enter. /help lists commands, /quit leaves.");
    let mut plain = Plain {
        handle,
        questions: VecDeque::new(),
        agents: HashMap::new(),
        is_open: false,
        is_running: false,
        count: 0,
        stop: interruption(),
        has_said: !past.is_empty(),
    };
    if let Some(prompt) = setup.prompt {
        plain.line(&prompt).await;
    } else {
        plain.invite();
    }
    let way = plain
        .live(&mut lines, &mut events, cancel, interruption)
        .await;
    let when = Shutdown::Now;
    let _ = plain.handle.send(Command::Shutdown { when }).await;
    while events.next().await.is_some() {}
    let session = name.as_deref().filter(|_| plain.has_said);
    let farewell = |way: Departure| Farewell {
        transcript: String::new(),
        resume: session.map(|name| format!("caliban --resume {name}")),
        next: way.next(session),
    };
    match way {
        Ok(way) => Ok(farewell(way)),
        Err(FaceError::Cancelled(_)) => {
            let farewell = Box::new(farewell(Departure::Out));
            Err(FaceError::Cancelled(Some(farewell)))
        }
        Err(error) => Err(error),
    }
}

/// What is known while one talks.
struct Plain {
    handle: SessionHandle,
    /// What waits for a number; the first is the one that was read out.
    questions: VecDeque<Open>,
    /// What the agents are for that calls run, by those calls.
    agents: HashMap<Arc<str>, String>,
    /// Whether a line of the model's is not ended yet.
    is_open: bool,
    is_running: bool,
    count: u64,
    stop: CancellationToken,
    has_said: bool,
}

/// A question that is open.
struct Open {
    id: Arc<str>,
    /// The call that runs the agent which asks.
    agent: Option<Arc<str>>,
    kind: QuestionKind,
}

impl Plain {
    async fn live(
        &mut self,
        lines: &mut mpsc::Receiver<String>,
        events: &mut Events,
        cancel: &CancellationToken,
        interruption: Interruption<'_>,
    ) -> Result<Departure, FaceError> {
        loop {
            let stop = self.stop.clone();
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(FaceError::Cancelled(None)),
                () = stop.cancelled() => {
                    self.stop = interruption();
                    if !self.is_running {
                        return Ok(Departure::Out);
                    }
                    let _ = self.handle.send(Command::Interrupt).await;
                }
                batch = events.next() => match batch {
                    Some(EventBatch::Events(events)) => {
                        for event in events {
                            self.hear(&event);
                        }
                    }
                    Some(EventBatch::Missed(count)) => self.tell(&format!("{count} events were missed.")),
                    None => return Ok(Departure::Out),
                },
                line = lines.recv() => match line {
                    None => return Ok(Departure::Out),
                    Some(line) if matches!(line.trim(), "/quit" | "/exit") => return Ok(Departure::Out),
                    Some(line) if line.trim() == "/web" => return Ok(Departure::Page),
                    Some(line) => self.line(&line).await,
                },
            }
        }
    }

    /// What was typed: an answer where one is wanted, else a prompt.
    async fn line(&mut self, line: &str) {
        let text = line.trim();
        if !self.questions.is_empty() {
            return self.answer(text).await;
        }
        if text.is_empty() {
            return self.invite();
        }
        self.count += 1;
        let id: Arc<str> = format!("typed-{}", self.count).into();
        let command = match text.strip_prefix('!') {
            Some(line) => Command::Shell {
                id,
                line: line.trim().to_owned(),
            },
            None => Command::Prompt {
                prompt: Prompt {
                    attach: Attach::Named,
                    ..Prompt::typed(id, text)
                },
                delivery: if text.starts_with('/') {
                    Delivery::Queue
                } else {
                    Delivery::Steer
                },
            },
        };
        let _ = self.handle.send(command).await;
    }

    /// Answers the first question; what is no answer to it leaves it open.
    async fn answer(&mut self, text: &str) {
        let Some(open) = self.questions.front() else {
            return;
        };
        let question = Arc::clone(&open.id);
        let command = match &open.kind {
            QuestionKind::Permission(inquiry) => {
                let inquiry = inquiry.clone();
                let Some(choice) = Choice::of(&inquiry, text) else {
                    return self.tell(&format!("Type {}.", offered(&inquiry)));
                };
                if let Choice::Always(action) = choice {
                    self.keep_rules(&inquiry, action).await;
                }
                let answer = choice.answer();
                Command::Answer { question, answer }
            }
            QuestionKind::Elicitation(_) => {
                let reply = match serde_json::from_str(text) {
                    Ok(value @ serde_json::Value::Object(_)) => Reply::Accept(value),
                    Ok(_) | Err(_) => Reply::Decline,
                };
                Command::AnswerElicitation { question, reply }
            }
        };
        self.questions.pop_front();
        let _ = self.handle.send(command).await;
        self.ask();
    }

    /// All rules that the question suggests: each part of a command needs its own.
    async fn keep_rules(&mut self, inquiry: &Inquiry, action: RuleAction) {
        for pattern in inquiry.question.suggestions.clone() {
            let shown = sanitise(&pattern, Strength::Name).into_owned();
            self.tell(&format!("For this session the rule {shown} counts."));
            let change = RuleChange::Add { pattern, action };
            let _ = self.handle.send(Command::Rule(change)).await;
        }
    }

    /// A question is over; the next one is read out.
    fn over(&mut self, question: &str) {
        let was_first = self.questions.front().is_some_and(|it| *it.id == *question);
        self.questions.retain(|open| *open.id != *question);
        if was_first {
            self.ask();
        }
    }

    fn hear(&mut self, event: &SessionEvent) {
        match &event.what {
            What::Opened(facts) => {
                for warning in &facts.warnings {
                    self.tell(&format!("Warning: {warning}"));
                }
            }
            What::Began { .. } => {
                self.is_running = true;
                self.has_said = true;
            }
            What::Run(event) => self.step(event),
            What::Ended { outcome, .. } => {
                self.is_running = false;
                self.end_line();
                match outcome {
                    Outcome::Success { .. } => {}
                    Outcome::Cancelled => self.tell("Stopped."),
                    Outcome::Obeyed { text, .. } => {
                        if !text.is_empty() {
                            self.tell(text);
                        }
                    }
                    outcome => {
                        if let Some(message) = outcome.message() {
                            self.tell(&format!("Error: {message}"));
                        }
                    }
                }
            }
            What::Idle => self.invite(),
            What::Asked(asked) => {
                self.questions.push_back(Open {
                    id: Arc::clone(&asked.question),
                    agent: asked.agent.clone(),
                    kind: asked.kind.clone(),
                });
                if self.questions.len() == 1 {
                    self.ask();
                }
            }
            What::Answered(answered) => self.over(&answered.question),
            What::Refused(refused) => self.tell(&refused.reason),
            What::ModeChanged { mode } => self.tell(&format!("Mode: {}.", mode.as_str())),
            What::ModelChanged { model } => self.tell(&format!("Model: {model}.")),
            What::Queued { .. }
            | What::TakenBack { .. }
            | What::Interrupted { .. }
            | What::Repeated { .. }
            | What::ReasoningChanged { .. }
            | What::RuleChanged(_)
            | What::Closing
            | What::Closed { .. } => {}
        }
    }

    fn step(&mut self, event: &Event) {
        self.note_agents(event);
        match event {
            Event::TextDelta { text } => {
                let text = sanitise(text, Strength::Prose);
                self.is_open = !text.ends_with('\n');
                write(&text);
            }
            Event::ToolStarted {
                name, first_arg, ..
            } => {
                let about = first_arg.as_deref().unwrap_or_default();
                self.tell(&format!("Running {name}: {about}"));
            }
            Event::ToolFinished {
                name,
                output,
                duration,
                denial,
                ..
            } => {
                let seconds = duration.as_secs_f64();
                match (denial, output.status) {
                    (Some(denial), _) => self.tell(&format!("{name} denied: {}", denial.reason)),
                    (None, ToolStatus::Ok) => self.tell(&format!("Done in {seconds:.1} s.")),
                    (None, _) => self.tell(&format!("{name} failed after {seconds:.1} s.")),
                }
                let text = output.text();
                let lines: Vec<&str> = text.lines().collect();
                for line in lines.iter().take(RESULT_LINES) {
                    self.tell(line);
                }
                if let Some(more) = lines.len().checked_sub(RESULT_LINES + 1) {
                    self.tell(&format!("{} more lines.", more + 1));
                }
            }
            Event::Retrying(retry) => self.tell(&format!("Trying again: {}", retry.message)),
            Event::Warning(warning) => self.tell(&format!("Warning: {}", warning.message)),
            Event::Notice { message, .. } => self.tell(&format!("Notice: {message}")),
            Event::AssistantMessage { .. } => self.end_line(),
            Event::PromptAccepted { .. }
            | Event::TurnStarted { .. }
            | Event::ThinkingDelta { .. }
            | Event::Answer(_)
            | Event::ToolReady { .. }
            | Event::PermissionAsked { .. }
            | Event::PermissionAnswered { .. }
            | Event::SentOn { .. }
            | Event::HistoryReplaced { .. }
            | Event::ToolProgress { .. }
            | Event::Interrupted { .. }
            | Event::Steered { .. }
            | Event::ToolResults { .. }
            | Event::TurnEnded { .. }
            | Event::HookFired { .. }
            | Event::HookPassed { .. }
            | Event::CompactionStarted { .. }
            | Event::CompactionFinished { .. }
            | Event::Nested { .. }
            | Event::Finished { .. } => {}
        }
    }

    /// Remembers what agents are for while they work.
    fn note_agents(&mut self, event: &Event) {
        match event {
            Event::ToolReady { id, input, .. } => {
                let text = |key: &str| input.get(key).and_then(serde_json::Value::as_str);
                let about = text("description").or_else(|| text("subagent_type"));
                if let Some(about) = about.filter(|_| input.get("prompt").is_some()) {
                    self.agents.insert(Arc::clone(id), about.to_owned());
                }
            }
            Event::ToolFinished { id, .. } => {
                self.agents.remove(id);
            }
            Event::Nested { event, .. } => self.note_agents(event),
            Event::PromptAccepted { .. }
            | Event::TurnStarted { .. }
            | Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::Answer(_)
            | Event::PermissionAsked { .. }
            | Event::PermissionAnswered { .. }
            | Event::ToolStarted { .. }
            | Event::SentOn { .. }
            | Event::HistoryReplaced { .. }
            | Event::ToolProgress { .. }
            | Event::AssistantMessage { .. }
            | Event::Interrupted { .. }
            | Event::Steered { .. }
            | Event::ToolResults { .. }
            | Event::TurnEnded { .. }
            | Event::Retrying(_)
            | Event::Warning(_)
            | Event::Notice { .. }
            | Event::HookFired { .. }
            | Event::HookPassed { .. }
            | Event::CompactionStarted { .. }
            | Event::CompactionFinished { .. }
            | Event::Finished { .. } => {}
        }
    }

    /// Reads out the first question, all that one has to know to answer it.
    fn ask(&mut self) {
        let Some(open) = self.questions.front() else {
            return;
        };
        let lines = match &open.kind {
            QuestionKind::Permission(inquiry) => {
                let agent = open.agent.as_ref().map(|call| {
                    let known = self.agents.get(call).cloned();
                    known.unwrap_or_else(|| format!("of call {call}"))
                });
                consent(inquiry, agent.as_deref())
            }
            QuestionKind::Elicitation(elicitation) => {
                let asks = format!(
                    "The server {} asks: {}",
                    elicitation.server, elicitation.message
                );
                let wants = format!("It wants JSON like {}", elicitation.schema);
                let how = "Type a JSON object, or nothing to decline, and Enter.";
                [asks.as_str(), &wants, how]
                    .map(|text| sanitise(text, Strength::Name).into_owned())
                    .to_vec()
            }
        };
        self.end_line();
        write("\x07");
        for line in lines {
            self.tell(&line);
        }
    }

    fn tell(&mut self, text: &str) {
        self.end_line();
        say(text);
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_open) {
            write("\n");
        }
    }

    fn invite(&mut self) {
        self.end_line();
        write("> ");
    }
}

fn say(text: &str) {
    write(&format!("{}\n", sanitise(text, Strength::Output)));
}

fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    // A terminal that is gone is found out by reading.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Lines of standard input, read by a thread: the terminal itself lets them be edited.
fn typed_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(LINES);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let Ok(line) = line else {
                return;
            };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}
