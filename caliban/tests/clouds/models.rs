//! `caliban models`, `caliban doctor` and `router test` where clouds are configured.

use caliban_testkit::{ModelEntry, Reply, Script};
use serde_json::{Value, json};

use crate::support::run;
use crate::{Cloud, answer};

#[test]
fn what_bedrock_offers_is_listed_with_price_window_and_route() {
    let script = Script::new([])
        .model(ModelEntry::new("us.anthropic.claude-sonnet-4-6"))
        .model(ModelEntry::new("us.amazon.nova-pro-v1:0"));
    let cloud = Cloud::new(script);
    let mut command = cloud.signed();
    command
        .env("AWS_ENDPOINT_URL_BEDROCK", cloud.server.url())
        .args(["models", "--json"]);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
    let sonnet = &listed[0];
    assert_eq!(sonnet["id"], "us.anthropic.claude-sonnet-4-6");
    assert_eq!(sonnet["provider"], "bedrock");
    assert_eq!(sonnet["context_window"], 1_000_000);
    assert_eq!(sonnet["price"]["input"], 3.3);
    assert_eq!(sonnet["capabilities"]["thinking"], true);
    assert_eq!(
        sonnet["routes"],
        json!(["bedrock:claude-sonnet-4-6:main_loop"])
    );
    let nova = &listed[1];
    assert_eq!(nova["id"], "us.amazon.nova-pro-v1:0");
    assert_eq!(nova["price"]["output"], 3.2);
    assert_eq!(nova["routes"], json!([]));
    let asked = &cloud.server.requests()[0];
    assert_eq!(
        asked.path,
        "/inference-profiles?maxResults=1000&type=SYSTEM_DEFINED"
    );
    assert!(asked.header("authorization").unwrap().starts_with("AWS4"));
}

#[test]
fn everybody_who_is_configured_is_asked() {
    let cloud = Cloud::new(Script::new([]).model(ModelEntry::new("m1").context_length(1000)));
    cloud.config("[provider.azure]\nresource = 'r'\ndeployments = { 'gpt-5.5' = 'd' }\n");
    let mut command = cloud.command();
    command
        .env("ANTHROPIC_API_KEY", "k")
        .env("ANTHROPIC_BASE_URL", cloud.server.url())
        .env("OLLAMA_BASE_URL", cloud.server.url())
        .args(["models"]);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rows: Vec<Vec<&str>> = ran
        .stdout
        .lines()
        .map(|line| line.split('\t').take(2).collect())
        .collect();
    assert_eq!(
        rows,
        [["m1", "anthropic"], ["m1", "ollama"], ["gpt-5.5", "azure"]],
        "{ran:?}"
    );
    let azure = ran.stdout.lines().last().unwrap();
    assert!(azure.contains("$5 in, $30 out"), "{azure}");
}

#[test]
fn nobodys_credentials_are_no_list() {
    let cloud = Cloud::new(answer());
    let ran = run(cloud.bedrock().arg("models"));
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("no usable AWS credentials"), "{ran:?}");
}

#[test]
fn the_doctor_looks_at_the_cloud_and_the_routes() {
    let cloud = Cloud::new(answer());
    let mut command = cloud.signed();
    command
        .env("AWS_ENDPOINT_URL_BEDROCK", cloud.server.url())
        .args(["doctor", "--deep"]);
    let ran = run(&mut command);
    let row = |name: &str| {
        let mut lines = ran.stdout.lines();
        let found = lines.find(|line| line.contains(&format!(" {name} — ")));
        found
            .unwrap_or_else(|| panic!("{name}: {ran:?}"))
            .to_owned()
    };
    assert!(row("bedrock").contains("model(s) known"), "{ran:?}");
    assert!(
        row("router").contains("1 route(s); main_loop: bedrock:claude-sonnet-4-6:main_loop"),
        "{ran:?}"
    );
}

#[test]
fn the_full_test_of_a_route_tries_calls_and_images() {
    let script = Script::new([
        Reply::text("ok"),
        Reply::tool("ping", json!({"text": "ok"})),
        Reply::text("red"),
        Reply::text("ok"),
        Reply::text("I will not"),
        Reply::text("red"),
    ]);
    let cloud = Cloud::new(script);
    let ran = run(cloud.signed().args(["router", "test", "--full", "--yes"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "+ bedrock:claude-sonnet-4-6:main_loop  answered as claude-sonnet-4-6",
            "+ bedrock:claude-sonnet-4-6:main_loop  calls tools",
            "+ bedrock:claude-sonnet-4-6:main_loop  takes images",
        ]
    );
    let image = cloud.calls()[2].json();
    let image = image.pointer("/messages/0/content/1/source/media_type");
    assert_eq!(image, Some(&json!("image/png")));
    let ran = run(cloud.signed().args(["router", "test", "--full", "--yes"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("made no tool call"), "{ran:?}");
}

/// `/usage` tells what each route came to.
#[test]
fn usage_is_told_by_route() {
    let down = caliban_testkit::Fault::Status {
        code: 503,
        kind: None,
        retry_after: None,
        retry_after_ms: None,
        headers: std::collections::BTreeMap::default(),
        body: None,
    };
    let cloud = Cloud::new(Script::new([
        Reply::fault(down).times(2),
        Reply::text("hello"),
    ]));
    cloud.config(
        "
[[router.route]]
id = 'aws'
purpose = 'main_loop'
provider = 'bedrock'
model = 'claude-sonnet-4-6'
[[router.route]]
id = 'azure'
purpose = 'main_loop'
provider = 'azure'
model = 'claude-sonnet-4-6'
",
    );
    let mut command = cloud.command();
    for other in [cloud.signed(), cloud.azure()] {
        for (name, value) in other.get_envs() {
            command.env(name, value.unwrap());
        }
    }
    command.args([
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
    ]);
    let prompt = |text: &str| json!({"type": "user", "content": text}).to_string();
    let input = format!("{}\n{}\n", prompt("hi"), prompt("/usage"));
    let ran = crate::support::run_with_input(&mut command, input.as_bytes());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let result: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    let text = result["result"].as_str().unwrap();
    assert!(text.contains("route aws (main_loop)"), "{text}");
    assert!(
        text.contains("2 failed") || text.contains("1 failed"),
        "{text}"
    );
    assert!(text.contains("route azure (main_loop)"), "{text}");
    assert!(text.contains("1 answers"), "{text}");
}
