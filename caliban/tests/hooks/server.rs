//! A permission server as an application would write it: a secret and a run's token in its path,
//! one answer per question.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

const SECRET: &str = "app-secret-7f3a";
const TOKEN: &str = "run-token-91bc";

/// What the server does with a question.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Json(Value),
    Text(&'static str),
    Status(u16),
    /// Takes the question and never answers.
    Hang,
    /// Takes the question and closes the connection.
    Close,
}

impl Answer {
    pub(crate) fn decision(decision: &str) -> Self {
        Self::Json(json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": format!("the person says {decision}"),
        }}))
    }

    pub(crate) fn rewrite(input: &Value) -> Self {
        Self::Json(json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "updatedInput": input,
        }}))
    }
}

/// Answers every question alike until the test ends.
pub(crate) struct PermissionServer {
    port: u16,
    questions: Receiver<Value>,
}

impl PermissionServer {
    pub(crate) fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, questions) = channel();
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let Some(question) = question(&stream) else {
                    respond(&mut stream, 403, "");
                    continue;
                };
                if sender.send(question).is_err() {
                    return;
                }
                match &answer {
                    Answer::Json(body) => respond(&mut stream, 200, &body.to_string()),
                    Answer::Text(body) => respond(&mut stream, 200, body),
                    Answer::Status(status) => respond(&mut stream, *status, ""),
                    Answer::Hang => kept.push(stream),
                    Answer::Close => {}
                }
            }
        });
        Self { port, questions }
    }

    pub(crate) fn url(&self) -> String {
        self.url_with(TOKEN)
    }

    pub(crate) fn url_with(&self, token: &str) -> String {
        format!(
            "http://127.0.0.1:{}/hook/pre-tool-use/{SECRET}/{token}",
            self.port
        )
    }

    /// What was asked so far.
    pub(crate) fn questions(&self) -> Vec<Value> {
        self.questions.try_iter().collect()
    }

    /// Waits for a question.
    pub(crate) fn next_question(&self) -> Value {
        self.questions.recv().unwrap()
    }

    pub(crate) fn secrets() -> [&'static str; 2] {
        [SECRET, TOKEN]
    }
}

/// The body of a request that knows the secret and the token.
fn question(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let expected = format!("POST /hook/pre-tool-use/{SECRET}/{TOKEN} HTTP/1.1");
    (first.trim_end() == expected).then(|| serde_json::from_slice(&body).unwrap())
}

fn respond(stream: &mut TcpStream, status: u16, body: &str) {
    // Who asked may have gone away.
    let _ = write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
}
