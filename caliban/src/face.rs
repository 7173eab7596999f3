//! The face a run shows: plain text for people, frames for programs.

use caliban_agent::{Event, RunTotals};
use caliban_protocol::{Encoder, Init, failure_after, line, result};
use serde_json::Value;

use crate::console::{Console, note};
use crate::exit::Failure;
use crate::text_face::TextFace;

/// How a run is shown.
pub(crate) enum Face<'a> {
    Text(TextFace<'a>),
    Frames(FrameFace<'a>),
}

impl Face<'_> {
    /// Before anything happens.
    pub(crate) fn begin(&mut self, init: &Init) -> Result<(), Failure> {
        match self {
            Self::Text(face) => {
                face.begin(init);
                Ok(())
            }
            Self::Frames(face) => face.begin(init),
        }
    }

    /// Shows an event; programs see it when the face is flushed.
    pub(crate) fn show(&mut self, event: &Event) -> Result<(), Failure> {
        match self {
            Self::Text(face) => face.show(event),
            Self::Frames(face) => face.show(event),
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

/// Writes frames, each as one line when it is complete.
pub(crate) struct FrameFace<'a> {
    console: &'a mut Console,
    session_id: String,
    stream: Stream,
    /// The result that is the only output, until it is known to be the last.
    held: Option<Value>,
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

    fn show(&mut self, event: &Event) -> Result<(), Failure> {
        match self.stream {
            Stream::All(encoder) => {
                for line in encoder.lines(event) {
                    self.console.put(&line)?;
                }
            }
            // There is no frame that would carry it.
            Stream::ResultOnly => match event {
                Event::Warning(warning) => note(&format!("warning: {}", warning.message)),
                Event::Notice { message, .. } => note(&format!("warning: {message}")),
                _ => {}
            },
        }
        if let Event::Finished { outcome, totals } = event {
            let frame = result(outcome, totals, &self.session_id);
            self.end(frame)?;
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
