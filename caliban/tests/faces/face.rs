//! What every face can do, in words that belong to none of them.

use crate::acp::Acp;
use crate::bench::Bench;
use crate::claude::Claude;
use crate::heddle::Heddle;
use crate::native::Native;
use crate::process::{Ended, Process};

/// The faces of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// `-p` with stream-json in and out.
    Native,
    /// `--dialect claude` with stream-json in and out, and the control protocol.
    Claude,
    /// `serve heddle`.
    Heddle,
    /// `serve acp`.
    Acp,
}

impl Which {
    /// Starts the program under this face.
    pub(crate) fn start(self, bench: &Bench, setup: &Setup<'_>) -> Box<dyn Face> {
        match self {
            Self::Native => Box::new(Native::start(bench, setup)),
            Self::Claude => Box::new(Claude::start(bench, setup)),
            Self::Heddle => Box::new(Heddle::start(bench, setup)),
            Self::Acp => Box::new(Acp::start(bench, setup)),
        }
    }
}

/// How the program is started.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Setup<'a> {
    pub(crate) consent: Consent,
    /// Flags that the face has.
    pub(crate) flags: &'a [&'a str],
    pub(crate) variables: &'a [(&'a str, &'a str)],
    /// Tools beyond those to read, write and run, for clients that have to list them.
    pub(crate) tools: &'a [&'a str],
}

impl<'a> Setup<'a> {
    pub(crate) fn flags(flags: &'a [&'a str]) -> Self {
        Self {
            flags,
            ..Self::default()
        }
    }
}

/// Who says whether a call may run that no rule decides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Consent {
    /// Nobody, so it may not.
    #[default]
    Nobody,
    /// The client, by [`Face::answer`].
    Client,
}

/// Something that a client sees happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    Thinking,
    Text,
    /// A call of a tool was made.
    Tool,
    /// A question is open.
    Question,
}

impl Point {
    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Thinking => "thinking",
            Self::Text => "text",
            Self::Tool => "a call",
            Self::Question => "a question",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Allow,
    /// With what the model is told.
    Deny(&'static str),
}

/// How an exchange ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Cancelled,
    OverBudget,
    /// A fault of our own.
    Internal,
    /// Anything else, as it was told.
    Failed(String),
}

/// The result of one prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) outcome: Outcome,
    /// The answer, where there is one.
    pub(crate) text: String,
    /// The tools, by our names, whose calls were not permitted.
    pub(crate) denied: Vec<String>,
}

impl Exchange {
    pub(crate) fn success(text: &str) -> Self {
        Self {
            outcome: Outcome::Success,
            text: text.to_owned(),
            denied: Vec::new(),
        }
    }
}

/// A client of the program.
pub(crate) trait Face {
    /// Sends a prompt; it is the face's affair when it is worked on.
    fn prompt(&mut self, text: &str);

    /// Ends the exchange that is worked on.
    fn interrupt(&mut self);

    /// Waits until something is seen. Fails if the exchange ends before.
    fn until(&mut self, point: Point);

    /// Answers the question that was waited for.
    fn answer(&mut self, answer: Answer);

    /// Reads on to the next result.
    fn result(&mut self) -> Exchange;

    /// The id of the session, known after the first result at the latest.
    fn session(&self) -> String;

    fn process(&mut self) -> &mut Process;

    /// Asks nothing more and waits for the end.
    fn finish(&mut self) -> Ended {
        self.process().finish()
    }

    /// Sends a prompt and reads on to its result.
    fn exchange(&mut self, text: &str) -> Exchange {
        self.prompt(text);
        self.result()
    }
}
