//! The variables with which users of Claude Code choose a cloud.

use rstest::rstest;
use serde_json::Value;

use crate::support::run;
use crate::{Cloud, answer, token};

#[rstest]
#[case(
    "CLAUDE_CODE_USE_BEDROCK",
    "/model/us.anthropic.claude-sonnet-4-6/invoke-with-response-stream"
)]
#[case(
    "CLAUDE_CODE_USE_VERTEX",
    "/v1/projects/my-project/locations/us-east5/publishers/anthropic/models/claude-sonnet-4-6:streamRawPredict"
)]
#[case("CLAUDE_CODE_USE_FOUNDRY", "/anthropic/v1/messages")]
fn a_variable_chooses_the_cloud(#[case] variable: &str, #[case] path: &str) {
    let cloud = Cloud::new(answer().document("POST", "/token", token("t")));
    let mut command = cloud.command();
    for other in [cloud.signed(), cloud.vertex(), cloud.azure()] {
        for (name, value) in other.get_envs() {
            command.env(name, value.unwrap());
        }
    }
    command
        .env("CALIBAN_DIALECT", "claude")
        .env("CLOUD_ML_REGION", "us-east5")
        .env("ANTHROPIC_MODEL", "sonnet")
        .env(variable, "1")
        .args(["-p", "hi"]);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "hello\n");
    assert_eq!(cloud.calls()[0].path, path);
}

/// Nobody names a model: Foundry is asked for Claude, though Azure has others.
#[rstest]
#[case("CLAUDE_CODE_USE_BEDROCK")]
#[case("CLAUDE_CODE_USE_FOUNDRY")]
fn a_cloud_needs_no_model(#[case] variable: &str) {
    let cloud = Cloud::new(answer());
    let mut command = cloud.command();
    command
        .env("CALIBAN_DIALECT", "claude")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_BEARER_TOKEN_BEDROCK", "bk")
        .env("ANTHROPIC_BEDROCK_BASE_URL", cloud.server.url())
        .env(
            "ANTHROPIC_FOUNDRY_BASE_URL",
            format!("{}/anthropic", cloud.server.url()),
        )
        .env("ANTHROPIC_FOUNDRY_API_KEY", "fk")
        .env(variable, "1")
        .args(["-p", "hi"]);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let call = &cloud.calls()[0];
    let told = format!("{} {}", call.path, String::from_utf8_lossy(&call.body));
    assert!(told.contains("claude-sonnet-4-6"), "{told}");
}

#[test]
fn a_switch_that_is_off_chooses_nobody() {
    let cloud = Cloud::new(answer());
    let mut command = cloud.command();
    command
        .env("CALIBAN_DIALECT", "claude")
        .env("CLAUDE_CODE_USE_BEDROCK", "0")
        .env("ANTHROPIC_BASE_URL", cloud.server.url())
        .env("ANTHROPIC_API_KEY", "k")
        .args(["-p", "hi"]);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(cloud.calls()[0].path, "/v1/messages");
}

#[test]
fn a_gateway_may_sign() {
    let cloud = Cloud::new(answer().checks(caliban_testkit::Checks::Keyless));
    let mut command = cloud.bedrock();
    command
        .env("CLAUDE_CODE_SKIP_BEDROCK_AUTH", "1")
        .args(["-p", "hi"]);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(cloud.calls()[0].header("authorization").is_none());
}

#[test]
fn the_status_names_the_cloud() {
    let cloud = Cloud::new(answer());
    let mut command = cloud.signed();
    // The flags of this dialect come first.
    let mut status = cloud.command();
    for (name, value) in command.get_envs() {
        status.env(name, value.unwrap());
    }
    command.env("CALIBAN_DIALECT", "claude");
    status
        .env("CALIBAN_DIALECT", "claude")
        .env("CLAUDE_CODE_USE_BEDROCK", "true")
        .args(["auth", "status"]);
    let ran = run(&mut status);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(told["apiProvider"], "bedrock");
    assert_eq!(told["loggedIn"], true);
}

/// Each model may have a region of its own, in either order of its name.
#[rstest]
#[case("VERTEX_REGION_CLAUDE_4_6_SONNET")]
#[case("VERTEX_REGION_CLAUDE_SONNET_4_6")]
fn a_model_may_have_a_region_of_its_own(#[case] variable: &str) {
    let cloud = Cloud::new(answer().document("POST", "/token", token("t")));
    let mut command = cloud.vertex();
    command
        .env("CLOUD_ML_REGION", "us-east5")
        .env("VERTEX_REGION_CLAUDE_HAIKU_4_5", "asia-east1")
        .env(variable, "europe-west1")
        .args(["--model", "claude-sonnet-4-6", "-p", "hi"]);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let path = &cloud.calls()[0].path;
    assert!(path.contains("/locations/europe-west1/"), "{path}");
    let mut command = cloud.vertex();
    command.env(variable, "not/a region").args(["-p", "hi"]);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(78), "{ran:?}");
}

/// Whoever listens to calls hears those to clouds too.
#[test]
fn calls_to_clouds_are_logged_as_they_are() {
    let cloud = Cloud::new(answer().document("POST", "/token", token("t")));
    let mut command = cloud.vertex();
    command
        .env("CALIBAN_ENABLE_TELEMETRY", "1")
        .env("OTEL_LOGS_EXPORTER", "console")
        .env("OTEL_LOG_RAW_API_BODIES", "1")
        .args(["--model", "claude-sonnet-4-6", "-p", "a prompt to hear"]);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("api_request_body"), "{}", ran.stderr);
    assert!(ran.stderr.contains("a prompt to hear"), "{}", ran.stderr);
}

#[test]
fn a_cloud_that_is_not_built_in_is_named_with_what_to_use() {
    let cloud = Cloud::new(answer());
    let mut command = cloud.command();
    command
        .env("CALIBAN_DIALECT", "claude")
        .env("CLAUDE_CODE_USE_MANTLE", "1")
        .args(["-p", "hi"]);
    let ran = run(&mut command);
    assert_ne!(ran.code, Some(0));
    assert!(
        ran.stderr.contains("CLAUDE_CODE_USE_BEDROCK=1"),
        "{}",
        ran.stderr
    );
    cloud.config("[provider.bedrock]\napi = \"mantle\"\n");
    let ran = run(cloud.bedrock().args(["-p", "hi"]));
    assert_eq!(ran.code, Some(78), "{ran:?}");
    assert!(ran.stderr.contains("caliban.toml:2:7"), "{}", ran.stderr);
    assert!(ran.stderr.contains("InvokeModel"), "{}", ran.stderr);
}
