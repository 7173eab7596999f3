//! The face for clients of Claude Code: the handshake, prompts, the control protocol.

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::face::{Answer, Consent, Exchange, Face, Outcome, Point, Setup};
use crate::process::Process;

pub(crate) struct Claude {
    process: Process,
    /// The question that was seen last.
    question: Value,
}

impl Claude {
    pub(crate) fn start(bench: &Bench, setup: &Setup<'_>) -> Self {
        let attends: &[&str] = match setup.consent {
            Consent::Nobody => &[],
            Consent::Client => &["--permission-prompt-tool", "stdio"],
        };
        let mut command = bench.command();
        command
            .args(["--dialect", "claude", "--verbose"])
            .args(["--input-format", "stream-json"])
            .args(["--output-format", "stream-json"])
            .arg("--include-partial-messages")
            .args(attends)
            .args(setup.flags)
            // Without it nothing may be bypassed by root.
            .env("IS_SANDBOX", "1")
            .envs(setup.variables.iter().copied());
        let mut claude = Self {
            process: Process::start(&mut command, read),
            question: Value::Null,
        };
        claude.request("initialize");
        let is_answer = |frame: &Value| frame["type"] == "control_response";
        claude.process.until("the handshake", is_answer, |_| false);
        claude
    }

    fn request(&mut self, subtype: &str) {
        self.process.write(&json!({
            "type": "control_request",
            "request_id": subtype,
            "request": {"subtype": subtype},
        }));
    }
}

/// A line that is a frame: one object, `type` first.
fn read(line: &str) -> Value {
    assert!(line.starts_with("{\"type\":"), "{line}");
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// Whether a frame is a piece of this kind.
fn is_delta(frame: &Value, kind: &str) -> bool {
    frame["type"] == "stream_event" && frame["event"]["delta"]["type"] == kind
}

impl Face for Claude {
    fn prompt(&mut self, text: &str) {
        let message = json!({"role": "user", "content": text});
        self.process
            .write(&json!({"type": "user", "message": message}));
    }

    fn interrupt(&mut self) {
        self.request("interrupt");
    }

    fn until(&mut self, point: Point) {
        let is_wanted = |frame: &Value| match point {
            Point::Thinking => is_delta(frame, "thinking_delta"),
            Point::Text => is_delta(frame, "text_delta"),
            Point::Tool => frame["message"]["content"][0]["type"] == "tool_use",
            Point::Question => frame["request"]["subtype"] == "can_use_tool",
        };
        let is_vain = |frame: &Value| frame["type"] == "result";
        let found = self.process.until(point.what(), is_wanted, is_vain);
        if point == Point::Question {
            self.question = found;
        }
    }

    fn answer(&mut self, answer: Answer) {
        let response = match answer {
            Answer::Allow => json!({"behavior": "allow"}),
            Answer::Deny(message) => json!({"behavior": "deny", "message": message}),
        };
        self.process.write(&json!({
            "type": "control_response",
            "response": {
                "subtype": "success",
                "request_id": self.question["request_id"],
                "response": response,
            },
        }));
    }

    fn result(&mut self) -> Exchange {
        let is_result = |frame: &Value| frame["type"] == "result";
        let result = self.process.until("a result", is_result, |_| false);
        let errors = result["errors"].to_string();
        let reason = result["terminal_reason"].as_str().unwrap_or_default();
        let denials = result["permission_denials"].as_array().unwrap().iter();
        Exchange {
            outcome: match result["subtype"].as_str().unwrap() {
                "success" if result["is_error"] == false => Outcome::Success,
                "error_max_budget_usd" => Outcome::OverBudget,
                "error_during_execution" if reason.starts_with("aborted_") => Outcome::Cancelled,
                "error_during_execution" if errors.contains("internal error") => Outcome::Internal,
                _ => Outcome::Failed(result.to_string()),
            },
            text: result["result"].as_str().unwrap_or_default().to_owned(),
            denied: denials
                .map(|denial| denial["tool_name"].as_str().unwrap().to_owned())
                .collect(),
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
