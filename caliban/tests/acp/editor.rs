//! An editor: sends requests, reads answers and updates, and holds all of them to the schema.

use std::collections::HashMap;
use std::process::Command;

use serde_json::{Value, json};

use crate::process::{Ended, Process};
use crate::schema::{hold_result, read};
use crate::support::Bench;
use crate::text;

pub(crate) struct Editor {
    pub(crate) process: Process,
    requests: i64,
    /// The methods of requests, by their id.
    methods: HashMap<String, String>,
}

impl Editor {
    /// An editor that understands everything.
    pub(crate) fn start(bench: &Bench) -> Self {
        Self::able(bench.command(), &everything())
    }

    /// An editor that can do this.
    pub(crate) fn able(command: Command, capabilities: &Value) -> Self {
        let mut editor = Self::silent(command);
        let request = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        let answer = editor.ask("initialize", request);
        assert_eq!(answer["protocolVersion"], 1);
        editor
    }

    /// An editor that has not introduced itself; flags of a run are in the command already.
    pub(crate) fn silent(mut command: Command) -> Self {
        Self {
            process: Process::start(command.args(["serve", "acp"]), read),
            requests: 0,
            methods: HashMap::new(),
        }
    }

    /// Sends a request and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> i64 {
        self.requests += 1;
        let id = self.requests;
        self.methods.insert(id.to_string(), method.to_owned());
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.process.write(&request);
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        let notification = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.process.write(&notification);
    }

    pub(crate) fn respond(&mut self, request: &Value, result: Value) {
        let response = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        self.process.write(&response);
    }

    /// Reads on to the answer to a request.
    pub(crate) fn answer(&mut self, id: i64) -> Value {
        let is_answer = |frame: &Value| frame["id"] == id && frame.get("method").is_none();
        let answer = self.process.until("an answer", is_answer, |_| false);
        hold_result(&self.methods[&id.to_string()], &answer);
        answer
    }

    /// Sends a request and reads on to its result.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Sends a request and reads on to its error.
    pub(crate) fn fail(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.request(method, params);
        let answer = self.answer(id);
        let error = answer.get("error").unwrap_or_else(|| panic!("{answer}"));
        let message = error["message"].as_str().unwrap().to_owned();
        (error["code"].as_i64().unwrap(), message)
    }

    /// Begins a session in the workspace of the bench.
    pub(crate) fn open(&mut self, bench: &Bench) -> String {
        let params = json!({"cwd": bench.workspace.path(), "mcpServers": []});
        let session = self.ask("session/new", params);
        session["sessionId"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt and returns the id of the request.
    pub(crate) fn send(&mut self, session: &str, prompt: &str) -> i64 {
        let params = json!({"sessionId": session, "prompt": text(prompt)});
        self.request("session/prompt", params)
    }

    /// Sends a prompt and reads on to the reason why it stopped.
    pub(crate) fn prompt(&mut self, session: &str, prompt: &str) -> String {
        let id = self.send(session, prompt);
        self.stopped(id)
    }

    /// Reads on to the reason why a prompt stopped.
    pub(crate) fn stopped(&mut self, id: i64) -> String {
        let answer = self.answer(id);
        let reason = answer["result"]["stopReason"].as_str();
        reason.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub(crate) fn cancel(&mut self, session: &str) {
        self.notify("session/cancel", json!({"sessionId": session}));
    }

    /// Reads on to an update of this kind.
    pub(crate) fn until(&mut self, kind: &str) -> Value {
        let is_wanted = |frame: &Value| frame["params"]["update"]["sessionUpdate"] == kind;
        let found = self.process.until(kind, is_wanted, |_| false);
        found["params"]["update"].clone()
    }

    /// Reads on to a request of the program.
    pub(crate) fn asked(&mut self, method: &str) -> Value {
        let is_wanted = |frame: &Value| frame["method"] == method;
        self.process.until(method, is_wanted, |_| false)
    }

    /// Reads on to a question about a call, and chooses an option.
    pub(crate) fn choose(&mut self, option: &str) -> Value {
        let request = self.asked("session/request_permission");
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        self.respond(&request, outcome);
        request["params"].clone()
    }

    /// All updates of a session so far.
    pub(crate) fn updates(&self, session: &str) -> Vec<Value> {
        let frames = self.process.frames().iter();
        frames
            .filter(|frame| frame["params"]["sessionId"] == session)
            .map(|frame| frame["params"]["update"].clone())
            .filter(|update| !update.is_null())
            .collect()
    }

    /// The updates of this kind so far.
    pub(crate) fn told(&self, session: &str, kind: &str) -> Vec<Value> {
        let mut updates = self.updates(session);
        updates.retain(|update| update["sessionUpdate"] == kind);
        updates
    }

    /// What the model has said so far.
    pub(crate) fn said(&self, session: &str) -> String {
        let chunks = self.told(session, "agent_message_chunk");
        let texts = chunks
            .iter()
            .map(|chunk| chunk["content"]["text"].as_str().unwrap());
        texts.collect()
    }

    /// A call with everything that was told of it, the later over the earlier.
    pub(crate) fn call(&self, session: &str, id: &str) -> Value {
        let mut call = json!({});
        for update in self.updates(session) {
            if update["toolCallId"] == id {
                for (key, value) in update.as_object().unwrap() {
                    call[key] = value.clone();
                }
            }
        }
        call
    }

    /// Closes the input and waits for the end.
    pub(crate) fn end(mut self) -> Ended {
        self.process.finish()
    }
}

/// What an editor says that understands everything.
pub(crate) fn everything() -> Value {
    json!({
        "fs": {"readTextFile": true, "writeTextFile": true},
        "terminal": true,
        "auth": {"terminal": true},
        "elicitation": {"form": {}, "url": {}},
        "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
    })
}
