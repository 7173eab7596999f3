//! The native face: prompts and interrupts as frames, every line held to the schema of frames.

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::face::{Answer, Consent, Exchange, Face, Outcome, Point, Setup};
use crate::process::Process;
use crate::support::frame;

pub(crate) struct Native {
    process: Process,
    /// The question that was seen last.
    question: Value,
    /// The denials of earlier exchanges: a result has those of the whole run.
    denied: usize,
}

impl Native {
    pub(crate) fn start(bench: &Bench, setup: &Setup<'_>) -> Self {
        let attends: &[&str] = match setup.consent {
            Consent::Nobody => &[],
            Consent::Client => &["--permission-prompt-tool", "events"],
        };
        let mut command = bench.command();
        command
            .args(["--input-format", "stream-json"])
            .args(["--output-format", "stream-json"])
            .args(["--include-partial-messages", "-p"])
            .args(attends)
            .args(setup.flags)
            .envs(setup.variables.iter().copied());
        Self {
            process: Process::start(&mut command, frame),
            question: Value::Null,
            denied: 0,
        }
    }
}

impl Face for Native {
    fn prompt(&mut self, text: &str) {
        self.process
            .write(&json!({"type": "user", "content": text}));
    }

    fn interrupt(&mut self) {
        let interrupt = json!({"type": "control", "subtype": "interrupt"});
        self.process.write(&interrupt);
    }

    fn until(&mut self, point: Point) {
        let wanted = match point {
            Point::Thinking => "thinking",
            Point::Text => "text",
            Point::Tool => "tool_use",
            Point::Question => "question",
        };
        let is = |kind: &'static str| move |frame: &Value| frame["type"] == kind;
        let found = self.process.until(point.what(), is(wanted), is("result"));
        if point == Point::Question {
            self.question = found;
        }
    }

    fn answer(&mut self, answer: Answer) {
        let mut frame = json!({"type": "answer", "question": self.question["question"]});
        match answer {
            Answer::Allow => frame["decision"] = json!("allow"),
            Answer::Deny(message) => {
                frame["decision"] = json!("deny");
                frame["message"] = json!(message);
            }
        }
        self.process.write(&frame);
    }

    fn result(&mut self) -> Exchange {
        let is_result = |frame: &Value| frame["type"] == "result";
        let result = self.process.until("a result", is_result, |_| false);
        let error = result["error"].as_str().unwrap_or_default();
        let denials = result["denials"].as_array().unwrap();
        let new = denials.iter().skip(self.denied);
        let denied = new.map(|denial| denial["tool"].as_str().unwrap().to_owned());
        let denied = denied.collect();
        self.denied = denials.len();
        Exchange {
            outcome: match result["subtype"].as_str().unwrap() {
                "success" => Outcome::Success,
                "cancelled" => Outcome::Cancelled,
                "budget_exceeded" => Outcome::OverBudget,
                "error" if error.contains("internal error") => Outcome::Internal,
                _ => Outcome::Failed(result.to_string()),
            },
            text: result["result"].as_str().unwrap_or_default().to_owned(),
            denied,
        }
    }

    fn session(&self) -> String {
        let mut ids = self.process.frames().iter();
        let id = ids.find_map(|frame| frame["session_id"].as_str());
        id.expect("a frame with the id").to_owned()
    }

    fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}
