//! The face a run shows: plain text for people, frames for programs.

use caliban_agent::{Event, Outcome, RunTotals};
use caliban_protocol::{Encoder, HookEvents, Init, failure, failure_after, line, question, result};
use caliban_session::{Place, Refused, What};
use serde_json::Value;

use crate::console::{Console, note};
use crate::exit::Failure;
use crate::print::{Ahead, Attends};
use crate::text_face::TextFace;

/// How a run is shown.
pub(crate) enum Face<'a> {
    Text(TextFace<'a>),
    Frames(FrameFace<'a>),
}

impl Face<'_> {
    /// Shows what the session tells; programs see it when the face is flushed.
    pub(crate) fn show(
        &mut self,
        what: &What,
        attends: Attends,
        ahead: Ahead,
    ) -> Result<(), Failure> {
        match self {
            Self::Text(face) => face.show(what),
            Self::Frames(face) => face.show(what, attends, ahead),
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

    /// Nothing more will come; the last frame is a result all the same.
    pub(crate) fn cut_off(&mut self, totals: &RunTotals) -> Result<(), Failure> {
        match self {
            Self::Text(_) => Ok(()),
            Self::Frames(face) => face.cut_off(totals),
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
    /// The result that is the only output, until it is known to be the last; or the last one while
    /// hooks still tell of the end of the session.
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

    fn show(&mut self, what: &What, attends: Attends, ahead: Ahead) -> Result<(), Failure> {
        match what {
            What::Opened(facts) => self.begin(&Init::from(&**facts)),
            What::Run(event) => match self.between {
                // The result is the last frame of its exchange, so this waits for the next one,
                // unless the result itself waits.
                Between::Exchanges if self.held.is_none() && self.later.len() < LATER => {
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
                let frame = result(outcome, totals, &self.session_id);
                if ahead == Ahead::End && self.tells_hooks() {
                    self.held = Some(frame);
                    return Ok(());
                }
                self.end(frame)
            }
            What::Refused(Refused {
                what: Place::Prompt(_),
                reason,
            }) => self.end(failure(reason, &self.session_id)),
            What::Asked(asked) if attends == Attends::Yes => self.write(&question(asked)),
            What::Closing => {
                self.later.drain(..).for_each(|event| warn(&event));
                match self.stream {
                    Stream::ResultOnly => self.finish(),
                    Stream::All(_) => Ok(()),
                }
            }
            What::Closed { .. } => self.finish(),
            What::Queued { .. }
            | What::TakenBack { .. }
            | What::Interrupted { .. }
            | What::Repeated { .. }
            | What::Refused(_)
            | What::Asked(_)
            | What::Answered(_)
            | What::ModeChanged { .. }
            | What::ModelChanged { .. }
            | What::ReasoningChanged { .. }
            | What::RuleChanged(_)
            | What::Idle => Ok(()),
        }
    }

    /// Whether hooks that fire have frames. How long they may take at the end is bounded where they
    /// run.
    fn tells_hooks(&self) -> bool {
        match self.stream {
            Stream::All(encoder) => encoder.hooks == HookEvents::Included,
            Stream::ResultOnly => false,
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

    fn cut_off(&mut self, totals: &RunTotals) -> Result<(), Failure> {
        if self.between == Between::Nothing {
            self.end(result(&Outcome::Cancelled, totals, &self.session_id))?;
        }
        self.finish()
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
