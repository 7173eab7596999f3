//! Servers that imitate OpenAI's API, through the built binary: who they are is found out or said,
//! and what their models print is understood where that is usual.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::process::Command;

use caliban_testkit::{After, BlockingServer, Checks, Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Ran, bare, run};

/// A home, a workspace with a file, and a server without keys.
struct Local {
    home: tempfile::TempDir,
    workspace: tempfile::TempDir,
    server: BlockingServer,
}

impl Local {
    fn new(script: Script) -> Self {
        let local = Self {
            home: tempfile::tempdir().unwrap(),
            workspace: tempfile::tempdir().unwrap(),
            server: BlockingServer::start(script.checks(Checks::Keyless)).unwrap(),
        };
        fs::write(local.workspace.path().join("note.txt"), "tide\n").unwrap();
        local
    }

    fn command(&self) -> Command {
        let mut command = bare(self.home.path(), self.workspace.path());
        command
            .args(["--provider", "openai", "--model", "small"])
            .env("OPENAI_BASE_URL", format!("{}/v1", self.server.url()))
            .env("CALIBAN_RETRY_BASE_DELAY_MS", "1");
        command
    }

    fn named(&self, server: &str) {
        let path = self.home.path().join(".config/caliban/caliban.toml");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("[provider.openai]\nserver = '{server}'\n")).unwrap();
    }

    fn ask(&self) -> Ran {
        run(self.command().args(["-p", "read it"]))
    }

    /// How often the list of models was asked for.
    fn probes(&self) -> usize {
        let requests = self.server.requests();
        requests
            .iter()
            .filter(|request| request.path == "/v1/models")
            .count()
    }
}

const PRINTED: &str =
    "<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"file_path\": \"note.txt\"}}\n</tool_call>";

fn prints() -> Script {
    Script::new([Reply::text(PRINTED), Reply::text("It says tide")]).after(After::RepeatLast)
}

fn list(owner: &str) -> Value {
    json!({"object": "list", "data": [{"id": "small", "owned_by": owner, "max_model_len": 4096}]})
}

#[rstest]
#[case::found("vllm", None, 1)]
#[case::found("llamacpp", None, 1)]
#[case::named("somebody", Some("lmstudio"), 0)]
fn a_printed_call_is_made_where_that_is_usual(
    #[case] owner: &str,
    #[case] named: Option<&str>,
    #[case] probes: usize,
) {
    let local = Local::new(prints().document("GET", "/v1/models", list(owner)));
    if let Some(server) = named {
        local.named(server);
    }
    let ran = local.ask();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "It says tide\n");
    assert_eq!(local.probes(), probes);
    let second = local.server.model_requests()[1].json();
    let messages = second["messages"].as_array().unwrap();
    let [.., call, result] = messages.as_slice() else {
        panic!("{second}");
    };
    assert_eq!(call["tool_calls"][0]["function"]["name"], "Read");
    assert!(
        result["content"].as_str().unwrap().contains("tide"),
        "{result}"
    );
}

#[rstest]
#[case::unknown("somebody", None)]
#[case::gateway("vllm", Some("litellm"))]
fn elsewhere_it_is_text(#[case] owner: &str, #[case] named: Option<&str>) {
    let local = Local::new(prints().document("GET", "/v1/models", list(owner)));
    if let Some(server) = named {
        local.named(server);
    }
    let ran = local.ask();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, format!("{PRINTED}\n"));
    assert_eq!(local.server.model_requests().len(), 1);
}

#[test]
fn a_server_that_lists_nothing_is_used_all_the_same() {
    let script = Script::new([Reply::text("hello")]).document("GET", "/v1/models", "not json");
    let local = Local::new(script);
    let ran = local.ask();
    assert_eq!(ran.stdout, "hello\n", "{ran:?}");
}

#[test]
fn a_server_that_nobody_knows_by_that_name_is_an_error() {
    let local = Local::new(prints());
    local.named("vlmm");
    let ran = local.ask();
    assert_eq!(ran.code, Some(78), "{ran:?}");
    assert!(ran.stderr.contains("openrouter, litellm, vllm"), "{ran:?}");
}
