//! A program for the tests: a server that does what its script says, a guardian, or a session
//! that is there to be killed.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use caliban_mcp::{Parts, Servers, Status, Variables};
use caliban_model::CancellationToken;
use caliban_process::{GUARD_ARGUMENT, Guard, guard_main};
use caliban_settings::McpServer;
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Failure> {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_deref().and_then(OsStr::to_str) {
        Some(GUARD_ARGUMENT) => Ok(guard_main(args)),
        Some("server") => {
            let script = args.next().ok_or("no script")?;
            let script = script.to_str().ok_or("not UTF-8")?;
            // A long one is in a file.
            let script = match script.strip_prefix('@') {
                Some(path) => std::fs::read_to_string(path)?,
                None => script.to_owned(),
            };
            Scripted::new(serde_json::from_str(&script)?).serve()
        }
        Some("session") => session(&args.next().ok_or("no directory")?),
        Some(_) | None => Err("use `server SCRIPT`, `session DIRECTORY` or `__guard …`".into()),
    }
}

/// Runs a server whose `spawn` tool has been called, and waits to be killed.
fn session(directory: &OsString) -> Result<ExitCode, Failure> {
    let executable = std::env::current_exe()?;
    let server: McpServer = serde_json::from_value(json!({
        "command": executable,
        "args": ["server", json!({"tools": [{"name": "spawn", "inputSchema": {"type": "object"}}]}).to_string()],
    }))?;
    let parts = Parts::new(
        directory.into(),
        std::env::vars_os().collect(),
        Variables::new(|_| None),
        Guard::ReExec(executable),
    );
    tokio::runtime::Runtime::new()?.block_on(async {
        let servers = Servers::start([("srv".to_owned(), server.into())], parts);
        let cancel = CancellationToken::new();
        let output = servers.call("srv", "spawn", json!({}), &cancel).await;
        let connected = matches!(servers.status()[0].status, Status::Connected { .. });
        let text = format!(
            "{}\n{}\n",
            output.text(),
            if connected { "done" } else { "failed" }
        );
        std::fs::write(Path::new(directory).join("pids"), text)?;
        std::future::pending().await
    })
}

/// A server that follows a script: `tools` to list, `changed` to list after `change` was called,
/// `page` entries a page, `instructions`, `stderr` lines to write, `noise` on its output, and
/// how it behaves at the start: `exit`, `hang`, `gate`, `loop`, `starts`.
struct Scripted {
    script: Value,
    tools: Vec<Value>,
    output: std::io::Stdout,
    input: std::io::Lines<std::io::StdinLock<'static>>,
    /// A call that is never answered, and where its cancellation is noted.
    unanswered: Option<(Value, String)>,
}

impl Scripted {
    fn new(script: Value) -> Self {
        Self {
            tools: script["tools"].as_array().cloned().unwrap_or_default(),
            script,
            output: std::io::stdout(),
            input: std::io::stdin().lock().lines(),
            unanswered: None,
        }
    }

    fn serve(mut self) -> Result<ExitCode, Failure> {
        if let Some(path) = self.script["starts"].as_str() {
            let mut file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)?;
            writeln!(file, "start")?;
        }
        let mut stderr = std::io::stderr();
        for number in 0..self.script["stderr"].as_u64().unwrap_or(0) {
            writeln!(stderr, "\u{1b}[31mline {number}\u{1b}[0m")?;
        }
        if let Some(code) = self.script["exit"].as_u64() {
            writeln!(stderr, "fatal: out of cheese")?;
            return Ok(ExitCode::from(u8::try_from(code)?));
        }
        if let Some(path) = self.script["gate"].as_str() {
            // Opening a pipe waits for the other end.
            std::fs::File::open(path)?;
        }
        if let Some(noise) = self.script["noise"].as_str() {
            writeln!(self.output, "{noise}")?;
        }
        while let Some(line) = self.input.next() {
            let message: Value = serde_json::from_str(&line?)?;
            if self.script["hang"] == true {
                continue;
            }
            match message["method"].as_str().unwrap_or_default() {
                "initialize" => {
                    let mut result = json!({
                        "protocolVersion": message["params"]["protocolVersion"],
                        "capabilities": {"tools": {"listChanged": true}, "resources": {"listChanged": true}, "prompts": {}},
                        "serverInfo": {"name": "scripted\u{1b}[2J", "version": "1"},
                    });
                    if self.script["instructions"].is_string() {
                        result["instructions"] = self.script["instructions"].clone();
                    }
                    self.answer(&message, &result)?;
                }
                "tools/list" => self.list(&message)?,
                "tools/call" => {
                    if let Some(code) = self.call(&message)? {
                        return Ok(ExitCode::from(code));
                    }
                }
                "resources/list" => {
                    self.note("listed")?;
                    self.answer(&message, &json!({"resources": [
                        {"uri": "test://one", "name": "one", "description": "The\u{200b} first."},
                    ]}))?;
                }
                "resources/templates/list" => self.answer(&message,
                    &json!({"resourceTemplates": [{"uriTemplate": "test://{a}/{b}", "name": "two"}]}),
                )?,
                "resources/read" => {
                    let uri = message["params"]["uri"].clone();
                    self.answer(&message, &json!({"contents": [{"uri": uri, "text": "content"}]}))?;
                }
                "prompts/list" => self.answer(&message, &json!({"prompts": [
                    {"name": "greet", "description": "Greets.", "arguments": [{"name": "who", "required": true}]},
                ]}))?,
                "prompts/get" => {
                    let text = format!("Hello {}", message["params"]["arguments"]["who"]);
                    self.answer(&message, &json!({"messages": [
                        {"role": "user", "content": {"type": "text", "text": text}},
                    ]}))?;
                }
                "notifications/initialized" if self.script["loop"] == true => {
                    // Lists its tools and dies.
                    if let Some(line) = self.input.next() {
                        self.list(&serde_json::from_str(&line?)?)?;
                    }
                    writeln!(stderr, "fatal: cannot live like this")?;
                    return Ok(ExitCode::from(9));
                }
                "notifications/cancelled" => {
                    if let Some((id, path)) = &self.unanswered
                        && message["params"]["requestId"] == *id
                    {
                        std::fs::write(path, "cancelled\n")?;
                    }
                }
                _ => {}
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn list(&mut self, message: &Value) -> Result<(), Failure> {
        let page =
            usize::try_from(self.script["page"].as_u64().unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let from: usize = message["params"]["cursor"]
            .as_str()
            .unwrap_or("0")
            .parse()?;
        let tools: Vec<&Value> = self.tools.iter().skip(from).take(page).collect();
        let mut result = json!({"tools": tools});
        let end = from.saturating_add(page);
        if self.script["endless"] == true || end < self.tools.len() {
            result["nextCursor"] = end.min(self.tools.len()).to_string().into();
        }
        self.answer(message, &result)
    }

    fn call(&mut self, message: &Value) -> Result<Option<u8>, Failure> {
        let arguments = &message["params"]["arguments"];
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        match message["params"]["name"].as_str().unwrap_or_default() {
            // Answers with whatever it is given.
            "raw" => self.answer(message, &arguments["result"])?,
            "huge" => {
                let size = usize::try_from(arguments["size"].as_u64().unwrap_or(0))?;
                let huge = format!("begin{}end", "x".repeat(size));
                self.answer(message, &text(&huge))?;
            }
            "never" => {
                let path = arguments["path"].as_str().unwrap_or_default().to_owned();
                std::fs::write(format!("{path}.called"), "called\n")?;
                self.unanswered = Some((message["id"].clone(), path));
            }
            "refuse" => self.send(&json!({
                "jsonrpc": "2.0", "id": message["id"],
                "error": {"code": -32000, "message": "not\u{1b}[1m today"},
            }))?,
            "progress" => {
                let token = &message["params"]["_meta"]["progressToken"];
                for number in 1..=3 {
                    self.send(&json!({
                        "jsonrpc": "2.0", "method": "notifications/progress",
                        "params": {"progressToken": token, "progress": number, "total": 3, "message": "step\u{7}"},
                    }))?;
                }
                self.answer(message, &text("stepped"))?;
            }
            "crash" => {
                writeln!(std::io::stderr(), "fatal: crashed as asked")?;
                return Ok(Some(3));
            }
            "change" => {
                self.tools = self.script["changed"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                self.answer(message, &text("changed"))?;
                self.send(
                    &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
                )?;
            }
            "change_resources" => {
                self.send(
                    &json!({"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}),
                )?;
                self.answer(message, &text("changed"))?;
            }
            "ask" => {
                self.send(&json!({
                    "jsonrpc": "2.0", "id": "question", "method": "elicitation/create",
                    "params": {
                        "message": "Really?\u{1b}[31m",
                        "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}},
                    },
                }))?;
                let answer: Value = match self.input.next() {
                    Some(line) => serde_json::from_str(&line?)?,
                    None => Value::Null,
                };
                self.answer(message, &text(&answer["result"].to_string()))?;
            }
            "environment" => {
                let variables: Vec<String> = std::env::vars()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                self.answer(message, &text(&variables.join("\n")))?;
            }
            "directory" => {
                let directory = std::env::current_dir()?;
                self.answer(message, &text(&directory.to_string_lossy()))?;
            }
            // Starts somebody who wants to outlive it.
            "spawn" => {
                let child = Command::new("setsid")
                    .args(["sh", "-c", "trap '' TERM HUP; while :; do sleep 1; done"])
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()?;
                let pids = format!("{} {}", std::process::id(), child.id());
                self.answer(message, &text(&pids))?;
            }
            other => self.answer(message, &text(&format!("called {other}")))?,
        }
        Ok(None)
    }

    /// Notes that something was asked for, where the script says.
    fn note(&self, what: &str) -> Result<(), Failure> {
        if let Some(path) = self.script["notes"].as_str() {
            let mut file = std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)?;
            writeln!(file, "{what}")?;
        }
        Ok(())
    }

    fn answer(&mut self, request: &Value, result: &Value) -> Result<(), Failure> {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
    }

    fn send(&mut self, message: &Value) -> Result<(), Failure> {
        writeln!(self.output, "{message}")?;
        self.output.flush()?;
        Ok(())
    }
}
