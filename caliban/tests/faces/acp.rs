//! The face of editors: JSON-RPC, answers to prompts, and questions as requests.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::face::{Answer, Consent, Exchange, Face, Outcome, Point, Setup};
use crate::process::Process;

pub(crate) struct Acp {
    process: Process,
    session: String,
    requests: u64,
    /// Prompts without an answer.
    waiting: VecDeque<u64>,
    /// The question that was seen last.
    question: Value,
    /// How much was read when the last exchange had ended.
    seen: usize,
    consent: Consent,
}

impl Acp {
    pub(crate) fn start(bench: &Bench, setup: &Setup<'_>) -> Self {
        let mut command = bench.command();
        let flags = setup.flags.iter().copied();
        // Sessions are the client's to choose.
        let resumed = flags.clone().skip_while(|flag| *flag != "--resume").nth(1);
        let mut is_value = false;
        for flag in flags {
            if flag == "--resume" || is_value {
                is_value = !is_value;
                continue;
            }
            command.arg(flag);
        }
        command
            .args(["serve", "acp"])
            .envs(setup.variables.iter().copied());
        let mut acp = Self {
            process: Process::start(&mut command, read),
            session: String::new(),
            requests: 0,
            waiting: VecDeque::new(),
            question: Value::Null,
            seen: 0,
            consent: setup.consent,
        };
        acp.ask("initialize", json!({"protocolVersion": 1}));
        let cwd = bench.file("");
        let session = match resumed {
            None => acp.ask("session/new", json!({"cwd": cwd, "mcpServers": []}))["sessionId"]
                .as_str()
                .unwrap()
                .to_owned(),
            Some(session) => {
                let params = json!({"cwd": cwd, "sessionId": session});
                acp.ask("session/resume", params);
                session.to_owned()
            }
        };
        acp.session = session;
        acp.seen = acp.process.frames().len();
        acp
    }

    #[expect(clippy::needless_pass_by_value, reason = "written where it is called")]
    fn request(&mut self, method: &str, params: Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.process.write(&request);
        id
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let is_answer = |frame: &Value| frame["id"] == id && frame.get("method").is_none();
        let answer = self.process.until(method, is_answer, |_| false);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    fn decide(&mut self, question: &Value, option: &str) {
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        let response = json!({"jsonrpc": "2.0", "id": question["id"], "result": outcome});
        self.process.write(&response);
    }

    fn updates(&self) -> impl Iterator<Item = &Value> {
        let frames = self.process.frames()[self.seen..].iter();
        frames.map(|frame| &frame["params"]["update"])
    }

    /// What was said last: the message after the last call.
    fn said(&self) -> String {
        let mut id = &Value::Null;
        let mut said = String::new();
        for update in self.updates() {
            if update["sessionUpdate"] == "agent_message_chunk" {
                if update["messageId"] != *id {
                    said.clear();
                    id = &update["messageId"];
                }
                said.push_str(update["content"]["text"].as_str().unwrap());
            }
        }
        said
    }

    /// The tools whose calls were not permitted.
    fn denied(&self) -> Vec<String> {
        let failed = self.updates().filter(|update| {
            update["status"] == "failed" && update["content"].to_string().contains("Not permitted")
        });
        let name = |id: &Value| {
            let mut calls = self
                .updates()
                .filter(|it| it["sessionUpdate"] == "tool_call");
            let call = calls.find(|call| call["toolCallId"] == *id).unwrap();
            call["name"].as_str().unwrap().to_owned()
        };
        failed.map(|update| name(&update["toolCallId"])).collect()
    }
}

fn read(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn is_question(frame: &Value) -> bool {
    frame["method"] == "session/request_permission"
}

impl Face for Acp {
    fn prompt(&mut self, text: &str) {
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": self.session, "prompt": prompt});
        let id = self.request("session/prompt", params);
        self.waiting.push_back(id);
    }

    fn interrupt(&mut self) {
        let params = json!({"sessionId": self.session});
        let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params});
        self.process.write(&cancel);
    }

    fn until(&mut self, point: Point) {
        let is_wanted = |frame: &Value| match point {
            Point::Thinking => frame["params"]["update"]["sessionUpdate"] == "agent_thought_chunk",
            Point::Text => frame["params"]["update"]["sessionUpdate"] == "agent_message_chunk",
            Point::Tool => frame["params"]["update"]["status"] == "in_progress",
            Point::Question => is_question(frame),
        };
        let is_vain = |frame: &Value| frame["result"].get("stopReason").is_some();
        let found = self.process.until(point.what(), is_wanted, is_vain);
        if point == Point::Question {
            self.question = found;
        }
    }

    fn answer(&mut self, answer: Answer) {
        let question = self.question.clone();
        match answer {
            Answer::Allow => self.decide(&question, "allow"),
            // This protocol has no words for why.
            Answer::Deny(_) => self.decide(&question, "reject"),
        }
    }

    fn result(&mut self) -> Exchange {
        let id = self
            .waiting
            .pop_front()
            .expect("a prompt without an answer");
        let is_answer = |frame: &Value| frame["id"] == id && frame.get("method").is_none();
        // What is taken back is answered before what it waited for.
        let earlier = self.process.frames().iter().find(|it| is_answer(it));
        let earlier = earlier.cloned();
        let answer = loop {
            if let Some(earlier) = earlier {
                break earlier;
            }
            let is_wanted = |frame: &Value| is_answer(frame) || is_question(frame);
            let frame = self.process.until("an answer", is_wanted, |_| false);
            if is_answer(&frame) {
                break frame;
            }
            // This protocol has no client that cannot be asked, only one that says no.
            assert_eq!(self.consent, Consent::Nobody, "{frame}");
            self.decide(&frame, "reject");
        };
        let (text, denied) = (self.said(), self.denied());
        self.seen = self.process.frames().len();
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        let outcome = match answer["result"]["stopReason"].as_str() {
            Some("end_turn") if text.contains("budget") => Outcome::OverBudget,
            Some("end_turn") => Outcome::Success,
            Some("cancelled") => Outcome::Cancelled,
            None if message.contains("internal error") => Outcome::Internal,
            Some(_) | None => Outcome::Failed(answer.to_string()),
        };
        Exchange {
            text: match outcome {
                Outcome::Success => text,
                _ => String::new(),
            },
            outcome,
            denied,
        }
    }

    fn session(&self) -> String {
        self.session.clone()
    }

    fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}
