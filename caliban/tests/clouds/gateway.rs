//! A gateway, `LiteLLM`'s own proxy, between the built binary and the test server: whole tool loops
//! in both of its formats, and what it says when it refuses.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use caliban_testkit::{Api, Reply, Script};
use serde_json::{Value, json};

use crate::Cloud;
use crate::support::{bare, run};

/// The proxy on a port of its own choice, ended with the test.
struct Gateway {
    child: Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl Gateway {
    /// Two models, one of each format, behind the key `sk-gate`.
    fn start(upstream: &str) -> Option<Self> {
        let Some(program) = std::env::var_os("CALIBAN_TEST_LITELLM") else {
            eprintln!("skipped: CALIBAN_TEST_LITELLM is not set; run `cargo xtask test`");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        let model = |name: &str, model: &str, base: &str| {
            json!({
                "model_name": name,
                "litellm_params": {"model": model, "api_base": base, "api_key": "test-key"},
            })
        };
        let config = json!({
            "model_list": [
                model("tide", "openai/gpt-4.1", &format!("{upstream}/v1")),
                model("claude-sonnet-4-6", "anthropic/claude-sonnet-4-6", upstream),
            ],
            "general_settings": {"master_key": "sk-gate"},
        });
        // What is JSON is YAML, too.
        fs::write(&file, config.to_string()).unwrap();
        let mut child = Command::new(program)
            .arg("--config")
            .arg(&file)
            .args(["--host", "127.0.0.1", "--port", "0", "--telemetry", "False"])
            .env_clear()
            .env("HOME", folder.path())
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        // It says where it listens, or ends, which ends the lines.
        let url = loop {
            let line = lines.next().unwrap_or_else(|| panic!("{said:?}")).unwrap();
            if let Some((_, rest)) = line.split_once("Uvicorn running on ") {
                break rest.split(' ').next().unwrap().to_owned();
            }
            said.push(line);
        };
        // Whoever does not read what it says would hold it up one day.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self {
            child,
            url,
            _folder: folder,
        })
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn tool_loop() -> [Reply; 2] {
    [
        Reply::tool("Read", json!({"file_path": "note.txt"})),
        Reply::text("It says: tide"),
    ]
}

#[test]
fn litellm_carries_tool_loops_and_refuses_as_we_expect() {
    let cloud = Cloud::new(Script::new(
        tool_loop()
            .into_iter()
            .chain(tool_loop())
            .collect::<Vec<_>>(),
    ));
    fs::write(cloud.workspace.path().join("note.txt"), "tide\n").unwrap();
    let Some(gateway) = Gateway::start(&cloud.server.url()) else {
        return;
    };
    let openai = |model: &str, key: &str| {
        let mut command = bare(cloud.home.path(), cloud.workspace.path());
        command
            .args([
                "--provider",
                "openai",
                "--model",
                model,
                "-p",
                "what does it say?",
            ])
            .args(["--output-format", "stream-json"])
            .env("OPENAI_BASE_URL", format!("{}/v1", gateway.url))
            .env("OPENAI_API_KEY", key)
            .env("CALIBAN_MAX_RETRIES", "0");
        run(&mut command)
    };
    let ran = openai("tide", "sk-gate");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let result: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(result["result"], "It says: tide", "{ran:?}");
    assert!(
        result["total_input_tokens"].as_u64().unwrap() > 0,
        "{result}"
    );

    let mut command = bare(cloud.home.path(), cloud.workspace.path());
    command
        .args(["--model", "claude-sonnet-4-6", "-p", "what does it say?"])
        .env("ANTHROPIC_BASE_URL", &gateway.url)
        .env("ANTHROPIC_API_KEY", "sk-gate")
        .env("CALIBAN_MAX_RETRIES", "0");
    let ran = run(&mut command);
    assert_eq!(ran.stdout, "It says: tide\n", "{ran:?}");

    // What came out at the other end: the results of the calls that were made here.
    let calls = cloud.calls();
    let formats: Vec<Option<Api>> = calls.iter().map(|call| call.api).collect();
    assert_eq!(
        formats,
        [
            Api::OpenAiChat,
            Api::OpenAiChat,
            Api::AnthropicMessages,
            Api::AnthropicMessages
        ]
        .map(Some)
    );
    for second in [&calls[1], &calls[3]] {
        let body = second.json();
        let last = body["messages"].as_array().unwrap().last().unwrap();
        assert!(last.to_string().contains("tide"), "{body}");
        assert!(last.to_string().contains("call") || last.to_string().contains("tool_use_id"));
    }

    let ran = openai("nobody", "sk-gate");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("nobody"), "{ran:?}");
    assert!(
        ran.stderr.contains("check the model name with `--model`"),
        "{ran:?}"
    );
    let ran = openai("tide", "sk-other");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("OPENAI_API_KEY"), "{ran:?}");
    assert_eq!(cloud.calls().len(), 4, "nothing else went through");
}
