//! The heddle face: requests with ids of their own, one message at a time.

use std::collections::VecDeque;

use caliban_protocol::heddle::native_name;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::face::{Answer, Consent, Exchange, Face, Outcome, Point, Setup};
use crate::process::Process;

pub(crate) struct Heddle {
    process: Process,
    session: String,
    requests: u32,
    /// The `send` that has no result yet.
    active: Option<String>,
    /// In this protocol a `send` before the last has its result is an error, so a client keeps its
    /// prompts until then.
    waiting: VecDeque<String>,
    /// The question that was seen last.
    question: Value,
}

const TOOLS: [&str; 6] = [
    "read_file",
    "write_file",
    "edit_file",
    "glob",
    "grep",
    "bash",
];

impl Heddle {
    pub(crate) fn start(bench: &Bench, setup: &Setup<'_>) -> Self {
        let mut command = bench.command();
        command
            .args(setup.flags)
            .args(["serve", "heddle"])
            .env("HEDDLE_HEARTBEAT_INTERVAL", "0")
            .envs(setup.variables.iter().copied());
        match setup.consent {
            // This protocol has no client that cannot be asked, only one that does not answer.
            Consent::Nobody => command.env("HEDDLE_PERMISSION_TIMEOUT", "1"),
            Consent::Client => command.env("HEDDLE_PERMISSION_TIMEOUT", "600000"),
        };
        let mut heddle = Self {
            process: Process::start(&mut command, read),
            session: String::new(),
            requests: 0,
            active: None,
            waiting: VecDeque::new(),
            question: Value::Null,
        };
        let tools: Vec<&str> = TOOLS.iter().chain(setup.tools).copied().collect();
        let config = json!({
            "model": "anthropic/claude-sonnet-4-6",
            "system_prompt": "Be brief.",
            "tools": tools,
            // Rules and the client decide, not the list of tools.
            "approval_mode": "suggest",
        });
        heddle.request(json!({"type": "init", "protocol_version": "0.5.0", "config": config}));
        let is_answer = |frame: &Value| frame["type"] == "init_ok";
        let is_refusal = |frame: &Value| frame["type"] == "error";
        let answer = heddle.process.until("`init_ok`", is_answer, is_refusal);
        answer["session_id"]
            .as_str()
            .unwrap()
            .clone_into(&mut heddle.session);
        heddle
    }

    /// Writes a request and returns its id.
    fn request(&mut self, mut request: Value) -> String {
        self.requests += 1;
        let id = self.requests.to_string();
        request["id"] = json!(id);
        self.process.write(&request);
        id
    }

    fn send(&mut self, text: &str) {
        self.active = Some(self.request(json!({"type": "send", "message": text})));
    }
}

fn read(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

impl Face for Heddle {
    fn prompt(&mut self, text: &str) {
        match self.active {
            None => self.send(text),
            Some(_) => self.waiting.push_back(text.to_owned()),
        }
    }

    fn interrupt(&mut self) {
        let target = self.active.clone().expect("a send to cancel");
        self.request(json!({"type": "cancel", "target_id": target}));
    }

    fn until(&mut self, point: Point) {
        let wanted = match point {
            // Thoughts are not told; that the model has the word is all there is to see.
            Point::Thinking => "turn_state",
            Point::Text => "content_delta",
            Point::Tool => "tool_start",
            Point::Question => "permission_request",
        };
        let is_wanted = |frame: &Value| frame["event"]["event"] == wanted;
        let is_vain = |frame: &Value| frame["type"] == "result" || frame["type"] == "error";
        let found = self.process.until(point.what(), is_wanted, is_vain);
        if point == Point::Question {
            self.question = found["event"].clone();
        }
    }

    fn answer(&mut self, answer: Answer) {
        let request_id = &self.question["request_id"];
        let mut request = json!({"type": "permission_response", "request_id": request_id});
        match answer {
            Answer::Allow => request["decision"] = json!("allow"),
            Answer::Deny(reason) => {
                request["decision"] = json!("deny");
                request["reason"] = json!(reason);
            }
        }
        self.request(request);
    }

    fn result(&mut self) -> Exchange {
        let id = self.active.take().expect("a send without a result");
        let is_result = |frame: &Value| frame["type"] == "result" && frame["id"] == *id;
        let is_refusal = |frame: &Value| frame["type"] == "error" && frame["id"] == *id;
        let result = self.process.until("a result", is_result, is_refusal);
        if let Some(next) = self.waiting.pop_front() {
            self.send(&next);
        }
        let error = &result["error"];
        let message = error["message"].as_str().unwrap_or_default();
        let events = self.process.frames().iter();
        let denied = events
            .filter(|frame| frame["send_id"] == *id)
            .filter(|frame| frame["event"]["event"] == "permission_denied")
            .map(|frame| native_name(frame["event"]["name"].as_str().unwrap()).to_owned());
        Exchange {
            outcome: match (result["status"].as_str().unwrap(), error["code"].as_str()) {
                ("ok", _) => Outcome::Success,
                (_, Some("cancelled")) => Outcome::Cancelled,
                (_, Some("tool_error")) if message.contains("budget") => Outcome::OverBudget,
                (_, Some("tool_error")) if message.contains("internal error") => Outcome::Internal,
                _ => Outcome::Failed(result.to_string()),
            },
            text: result["response"].as_str().unwrap_or_default().to_owned(),
            denied: denied.collect(),
        }
    }

    fn session(&self) -> String {
        self.session.clone()
    }

    fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}
