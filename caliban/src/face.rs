//! The face a run shows: plain text for people, frames for programs.

use caliban_agent::{Event, RunTotals};
use caliban_protocol::{Encoder, Init, failure, failure_after, line, question, result};
use caliban_session::{Place, Refused, What};
use serde_json::Value;

use crate::console::{Console, note};
use crate::exit::Failure;
use crate::print::Attends;
use crate::text_face::TextFace;

/// How a run is shown.
pub(crate) enum Face<'a> {
    Text(TextFace<'a>),
    Frames(FrameFace<'a>),
}

impl Face<'_> {
    /// Shows what the session tells; programs see it when the face is flushed.
    pub(crate) fn show(&mut self, what: &What, attends: Attends) -> Result<(), Failure> {
        match self {
            Self::Text(face) => face.show(what),
            Self::Frames(face) => face.show(what, attends),
        }
    }

    /// There is nothing more to show at this moment.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        match self {
            Self::Text(_) => Ok(()),
            Self::Frames(face) => face.console.flush(),
        }
    }

    /// The input made no sense after so much had been done; people are told by the exit.
    pub(crate) fn fail(&mut self, message: &str, totals: &RunTotals) -> Result<(), Failure> {
        match self {
            Self::Text(_) => Ok(()),
            Self::Frames(face) => face.end(failure_after(message, totals, &face.session_id)),
        }
    }

    /// After the last exchange.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        match self {
            Self::Text(_) => Ok(()),
            Self::Frames(face) => face.finish(),
        }
    }
}

/// Says to a person what an event warns of, where no frame carries it.
pub(crate) fn warn(event: &Event) {
    let message = match event {
        Event::Warning(warning) => &warning.message,
        Event::Notice { message, .. } => message,
        Event::PromptAccepted { .. }
        | Event::Interrupted { .. }
        | Event::Steered { .. }
        | Event::TurnStarted { .. }
        | Event::TextDelta { .. }
        | Event::ThinkingDelta { .. }
        | Event::Answer(_)
        | Event::ToolReady { .. }
        | Event::PermissionAsked { .. }
        | Event::PermissionAnswered { .. }
        | Event::ToolStarted { .. }
        | Event::SentOn { .. }
        | Event::HistoryReplaced { .. }
        | Event::ToolProgress { .. }
        | Event::ToolFinished { .. }
        | Event::AssistantMessage { .. }
        | Event::ToolResults { .. }
        | Event::TurnEnded { .. }
        | Event::Retrying(_)
        | Event::HookFired { .. }
        | Event::HookPassed { .. }
        | Event::CompactionStarted { .. }
        | Event::CompactionFinished { .. }
        | Event::Nested { .. }
        | Event::Finished { .. } => return,
    };
    note(&format!("warning: {message}"));
}

/// Writes frames, each as one line when it is complete.
pub(crate) struct FrameFace<'a> {
    console: &'a mut Console,
    session_id: String,
    stream: Stream,
    /// The result that is the only output, until it is known to be the last.
    held: Option<Value>,
    between: Between,
    /// What was told between two exchanges.
    later: Vec<Event>,
}

/// What is told between two exchanges and waits for the next; more is told at once.
const LATER: usize = 256;

/// Where the session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Between {
    /// Before the first exchange, or in one.
    Nothing,
    Exchanges,
}

/// Which frames are written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stream {
    ResultOnly,
    All(Encoder),
}

impl<'a> FrameFace<'a> {
    pub(crate) fn new(console: &'a mut Console, session_id: String, stream: Stream) -> Self {
        Self {
            console,
            session_id,
            stream,
            held: None,
            between: Between::Nothing,
            later: Vec::new(),
        }
    }

    fn begin(&mut self, init: &Init) -> Result<(), Failure> {
        for warning in &init.warnings {
            note(&format!("warning: {warning}"));
        }
        match self.stream {
            Stream::ResultOnly => Ok(()),
            Stream::All(_) => self.write(&init.frame()),
        }
    }

    fn show(&mut self, what: &What, attends: Attends) -> Result<(), Failure> {
        match what {
            What::Opened(facts) => self.begin(&Init::from(&**facts)),
            What::Run(event) => match self.between {
                // The result is the last frame of its exchange, so this waits for the next one.
                Between::Exchanges if self.later.len() < LATER => {
                    self.later.push(event.clone());
                    Ok(())
                }
                Between::Exchanges | Between::Nothing => self.step(event),
            },
            What::Began { .. } => {
                self.between = Between::Nothing;
                let later = std::mem::take(&mut self.later);
                later.iter().try_for_each(|event| self.step(event))
            }
            What::Ended {
                outcome, totals, ..
            } => {
                self.between = Between::Exchanges;
                self.end(result(outcome, totals, &self.session_id))
            }
            What::Refused(Refused {
                what: Place::Prompt(_),
                reason,
            }) => self.end(failure(reason, &self.session_id)),
            What::Asked(asked) if attends == Attends::Yes => self.write(&question(asked)),
            What::Closing => {
                self.later.drain(..).for_each(|event| warn(&event));
                self.finish()
            }
            What::Queued { .. }
            | What::TakenBack { .. }
            | What::Repeated { .. }
            | What::Refused(_)
            | What::Asked(_)
            | What::Answered(_)
            | What::ModeChanged { .. }
            | What::ModelChanged { .. }
            | What::ReasoningChanged { .. }
            | What::RuleChanged(_)
            | What::Idle
            | What::Closed { .. } => Ok(()),
        }
    }

    fn step(&mut self, event: &Event) -> Result<(), Failure> {
        match self.stream {
            Stream::All(encoder) => {
                for line in encoder.lines(event) {
                    self.console.put(&line)?;
                }
            }
            // There is no frame that would carry it.
            Stream::ResultOnly => warn(event),
        }
        Ok(())
    }

    /// The result of an exchange.
    fn end(&mut self, frame: Value) -> Result<(), Failure> {
        match self.stream {
            Stream::All(_) => self.write(&frame),
            Stream::ResultOnly => {
                self.held = Some(frame);
                Ok(())
            }
        }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        match self.held.take() {
            Some(frame) => self.write(&frame),
            None => Ok(()),
        }
    }

    fn write(&mut self, frame: &Value) -> Result<(), Failure> {
        self.console.write(&line(frame))
    }
}
