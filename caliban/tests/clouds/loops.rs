//! A whole tool loop on each platform: the call, its result, the end, and what it cost.

use std::fs;
use std::process::Command;

use caliban_testkit::{Api, Recorded, Reply, Script, Usage};
use serde_json::{Value, json};

use crate::support::run;
use crate::{Cloud, token};

const USAGE: Usage = Usage {
    input: 1_000,
    cache_read: 0,
    cache_write_5m: 0,
    cache_write_1h: 0,
    output: 100,
    reasoning: 0,
};

fn script() -> Script {
    Script::new([
        Reply::tool("Read", json!({"file_path": "note.txt"})).usage(USAGE),
        Reply::text("It says: tide").usage(USAGE),
    ])
    .document("POST", "/token", token("ya29.token"))
}

/// Runs the loop and returns the two calls and the result.
fn finished(cloud: &Cloud, command: &mut Command) -> (Recorded, Recorded, Value) {
    fs::write(cloud.workspace.path().join("note.txt"), "tide\n").unwrap();
    let ran = run(command.args(["-p", "what does it say?", "--output-format", "stream-json"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let frames: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let result = frames.last().unwrap().clone();
    assert_eq!(result["result"], "It says: tide", "{result}");
    let warned = frames.iter().any(|frame| frame["subtype"] == "warning");
    assert!(!warned, "{ran:?}");
    let [first, second] = cloud.calls().try_into().unwrap();
    (first, second, result)
}

fn cost(result: &Value) -> f64 {
    result["total_cost_usd"].as_f64().unwrap()
}

#[test]
fn claude_on_bedrock() {
    let cloud = Cloud::new(script());
    let (first, second, result) = finished(&cloud, &mut cloud.signed());
    for call in [&first, &second] {
        assert_eq!(
            call.path,
            "/model/us.anthropic.claude-sonnet-4-6/invoke-with-response-stream"
        );
        let body = call.json();
        assert_eq!(body["anthropic_version"], "bedrock-2023-05-31");
        for left_out in ["model", "stream", "metadata"] {
            assert!(body.get(left_out).is_none(), "{body}");
        }
        let authorization = call.header("authorization").unwrap();
        assert!(
            authorization.starts_with("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"),
            "{authorization}"
        );
        assert!(
            authorization.contains("/us-east-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature="),
            "{authorization}"
        );
        assert!(call.header("x-api-key").is_none());
    }
    let messages = second.json()["messages"].clone();
    assert_eq!(messages[1]["content"][0]["type"], "tool_use");
    assert_eq!(messages[2]["content"][0]["type"], "tool_result");
    // Two calls at the price of a region: 2 × (1000 × 3.3 + 100 × 16.5) millionths.
    assert!((cost(&result) - 0.0099).abs() < 1e-9, "{result}");
}

#[test]
fn other_models_on_bedrock() {
    let cloud = Cloud::new(script());
    let mut command = cloud.signed();
    command.args(["--model", "nova-pro"]);
    let (first, second, result) = finished(&cloud, &mut command);
    assert_eq!(first.api, Some(Api::Converse));
    assert_eq!(
        first.path,
        "/model/us.amazon.nova-pro-v1%3A0/converse-stream"
    );
    assert!(
        first
            .json()
            .pointer("/toolConfig/tools/0/toolSpec")
            .is_some(),
        "{}",
        first.json()
    );
    let messages = second.json()["messages"].clone();
    assert_eq!(messages[1]["content"][0]["toolUse"]["name"], "Read");
    assert_eq!(messages[2]["content"][0]["toolResult"]["status"], "success");
    assert!(
        (cost(&result) - 2.0 * (0.0008 + 0.00032)).abs() < 1e-9,
        "{result}"
    );
}

#[test]
fn claude_on_vertex() {
    let cloud = Cloud::new(script());
    let (first, second, result) = finished(&cloud, &mut cloud.vertex());
    for call in [&first, &second] {
        assert_eq!(
            call.path,
            "/v1/projects/my-project/locations/global/publishers/anthropic/models/claude-sonnet-4-6:streamRawPredict"
        );
        assert_eq!(call.header("authorization"), Some("Bearer ya29.token"));
        assert_eq!(call.header("x-goog-user-project"), Some("payer"));
        let body = call.json();
        assert_eq!(body["anthropic_version"], "vertex-2023-10-16");
        assert_eq!(body["stream"], true);
        assert!(body.get("model").is_none(), "{body}");
    }
    assert!((cost(&result) - 0.009).abs() < 1e-9, "{result}");
    let tokens = cloud.server.requests();
    let tokens = tokens.iter().filter(|request| request.path == "/token");
    assert_eq!(tokens.count(), 1, "a token is kept");
}

#[test]
fn gemini_on_vertex() {
    let cloud = Cloud::new(script());
    cloud.config("[provider.vertex]\nlocation = 'us-central1'\n[provider.vertex.locations]\n'gemini-3.8-flash' = 'global'\n");
    let mut command = cloud.vertex();
    command.args(["--model", "gemini-3.8-flash"]);
    let (first, second, result) = finished(&cloud, &mut command);
    for call in [&first, &second] {
        assert_eq!(
            call.path,
            "/v1/projects/my-project/locations/global/publishers/google/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
        );
        assert_eq!(call.header("authorization"), Some("Bearer ya29.token"));
    }
    // The signature of its own call goes back to it.
    let signature = second.json();
    let signature = signature.pointer("/contents/1/parts/0/thoughtSignature");
    assert!(signature.is_some(), "{}", second.json());
    assert!(cost(&result) > 0.0, "{result}");
}

#[test]
fn openai_on_azure() {
    let cloud = Cloud::new(script());
    cloud.config("[provider.azure]\ndeployments = { 'gpt-5.5' = 'our-gpt' }\n");
    let (first, second, result) = finished(&cloud, &mut cloud.azure());
    for call in [&first, &second] {
        assert_eq!(call.path, "/openai/v1/responses");
        assert_eq!(call.header("api-key"), Some("azure-key"));
        assert!(call.header("authorization").is_none());
        assert_eq!(call.json()["model"], "our-gpt");
    }
    assert!((cost(&result) - 2.0 * 0.008).abs() < 1e-9, "{result}");
}

#[test]
fn openai_on_azure_with_a_version() {
    let cloud = Cloud::new(script());
    cloud.config("[provider.azure]\ndeployments = { 'gpt-4.1' = 'old gpt' }\n");
    let mut command = cloud.azure();
    command
        .args(["--model", "gpt-4.1"])
        .env("AZURE_OPENAI_API_VERSION", "2024-10-21");
    let (first, _, _) = finished(&cloud, &mut command);
    assert_eq!(
        first.path,
        "/openai/deployments/old%20gpt/chat/completions?api-version=2024-10-21"
    );
    assert!(first.json().get("store").is_none(), "{}", first.json());
}

#[test]
fn claude_on_foundry() {
    let cloud = Cloud::new(script());
    let mut command = cloud.azure();
    command.args(["--model", "claude-sonnet-4-6"]);
    let (first, second, result) = finished(&cloud, &mut command);
    for call in [&first, &second] {
        assert_eq!(call.path, "/anthropic/v1/messages");
        assert_eq!(call.header("x-api-key"), Some("azure-key"));
        assert_eq!(call.header("anthropic-version"), Some("2023-06-01"));
        assert_eq!(call.json()["model"], "claude-sonnet-4-6");
    }
    assert!((cost(&result) - 0.009).abs() < 1e-9, "{result}");
}

#[test]
fn a_route_may_lead_to_a_cloud_and_from_there_to_another() {
    let cloud = Cloud::new(
        Script::new([
            Reply::fault(caliban_testkit::Fault::Status {
                code: 503,
                kind: None,
                retry_after: None,
                retry_after_ms: None,
                headers: std::collections::BTreeMap::default(),
                body: None,
            })
            .times(2),
            Reply::text("from the other"),
        ])
        .document("POST", "/token", token("t")),
    );
    cloud.config(
        "
[[router.route]]
id = 'aws'
purpose = 'main_loop'
provider = 'bedrock'
model = 'claude-sonnet-4-6'
[[router.route]]
id = 'gcp'
purpose = 'main_loop'
provider = 'vertex'
model = 'claude-sonnet-4-6'
[provider.bedrock]
region = 'eu-west-1'
prefix = 'global'
",
    );
    let vertex = cloud.vertex();
    let mut command = cloud.command();
    for (name, value) in vertex.get_envs().chain(cloud.signed().get_envs()) {
        command.env(name, value.unwrap());
    }
    command.env_remove("AWS_REGION");
    let ran = run(command.args(["-p", "hi"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "from the other\n");
    let paths: Vec<String> = cloud.calls().into_iter().map(|call| call.path).collect();
    assert_eq!(
        paths,
        [
            "/model/global.anthropic.claude-sonnet-4-6/invoke-with-response-stream",
            "/model/global.anthropic.claude-sonnet-4-6/invoke-with-response-stream",
            "/v1/projects/my-project/locations/global/publishers/anthropic/models/claude-sonnet-4-6:streamRawPredict",
        ]
    );
}
