//! A tool-call exchange with a server that none of us wrote: llama.cpp, serving a model whose
//! weights are set by hand (`tests/llama/serve.py`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may panic and say why it did nothing"
)]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use caliban_model::{
    Block, CancellationToken, Message, Origin, Provider, ProviderKind, Request, Role, StopReason,
    StreamEvent, ToolContent, ToolSpec,
};
use caliban_providers::{Connection, connect};
use futures::StreamExt;
use serde_json::json;

struct Llama {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Llama {
    /// Nothing without the interpreter that `cargo xtask test` installs.
    fn start() -> Option<Self> {
        let Some(python) = std::env::var_os("CALIBAN_TEST_PYTHON") else {
            eprintln!("skipped: CALIBAN_TEST_PYTHON is not set; run `cargo xtask test`");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let mut child = Command::new(python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/llama/serve.py"))
            .arg(folder.path().join("scripted.gguf"))
            .arg(port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let ready = said.lines().any(|line| line.unwrap().starts_with("ready"));
        assert!(ready, "the server did not start");
        Some(Self {
            child,
            port,
            _folder: folder,
        })
    }

    fn variable(&self, name: &str) -> Option<String> {
        let base = format!("http://127.0.0.1:{}", self.port);
        match name {
            "ANTHROPIC_BASE_URL" => Some(base),
            "OPENAI_BASE_URL" => Some(format!("{base}/v1")),
            "ANTHROPIC_API_KEY" | "OPENAI_API_KEY" => Some("none".to_owned()),
            _ => None,
        }
    }
}

impl Drop for Llama {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn exchange(provider: &dyn Provider, messages: &[Message]) -> (Message, StopReason) {
    let mut request =
        Request::new("scripted", messages.iter().cloned().map(Arc::new).collect()).unwrap();
    request.temperature = Some(0.0);
    request.tools = [ToolSpec {
        name: "Bash".to_owned(),
        description: "Runs a command.".to_owned(),
        input_schema: json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}),
    }]
    .into();
    let mut content = Vec::new();
    let mut events = provider.stream(request, CancellationToken::new());
    while let Some(event) = events.next().await {
        match event.unwrap() {
            StreamEvent::BlockEnded { block, .. } => content.push(block),
            StreamEvent::Stopped { reason, .. } => {
                let message = Message {
                    role: Role::Assistant,
                    content,
                    origin: Some(Origin::new(provider.id(), "scripted")),
                };
                return (message, reason);
            }
            _ => {}
        }
    }
    panic!("the answer has no end");
}

#[tokio::test]
async fn a_real_server_completes_a_tool_call_in_both_formats() {
    let Some(llama) = Llama::start() else {
        return;
    };
    for kind in [ProviderKind::OpenAi, ProviderKind::Anthropic] {
        let variable = |name: &str| llama.variable(name);
        let provider = connect(kind, &variable, &Connection::default()).unwrap();
        let mut messages = vec![Message::user("Say hi with the shell.")];
        let (call, stop) = exchange(&*provider, &messages).await;
        assert_eq!(stop, StopReason::ToolUse, "{kind}");
        let calls: Vec<_> = call.tool_uses().collect();
        let [(id, name, input)] = calls[..] else {
            panic!("{kind}: one call, not {calls:?}");
        };
        assert_eq!((name, input), ("Bash", &json!({"command": "echo hi"})));
        let result = Block::ToolResult {
            tool_use_id: id.to_owned(),
            content: vec![ToolContent::Text { text: "hi".into() }],
            is_error: false,
        };
        messages.extend([call, Message::new(Role::User, vec![result])]);
        let (answer, stop) = exchange(&*provider, &messages).await;
        assert_eq!(
            (answer.text().trim(), stop),
            ("All done.", StopReason::EndTurn)
        );
    }
}
