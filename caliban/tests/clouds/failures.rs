//! What platforms refuse, and what is wrong before they are asked.

use caliban_testkit::{ErrorKind, Fault, Reply, Script};
use rstest::rstest;

use crate::support::run;
use crate::{Cloud, answer, ask};

fn status(code: u16, kind: Option<ErrorKind>) -> Fault {
    Fault::Status {
        code,
        kind,
        retry_after: None,
        retry_after_ms: None,
        headers: std::collections::BTreeMap::default(),
        body: None,
    }
}

#[rstest]
#[case(status(429, Some(ErrorKind::RateLimit)))]
#[case(status(503, None))]
#[case(status(500, None))]
#[case(Fault::ErrorEvent { after_events: 0, kind: ErrorKind::RateLimit })]
#[case(Fault::ErrorEvent { after_events: 3, kind: ErrorKind::Overloaded })]
#[case(Fault::CloseMidStream { after_events: 2 })]
#[case(Fault::TruncatedEvent { after_events: 1 })]
#[case(Fault::ResetBeforeHeaders)]
fn what_passes_is_tried_again(#[case] fault: Fault) {
    for model in ["claude-sonnet-4-6", "nova-pro"] {
        let script = Script::new([
            Reply::text("void").with_fault(fault.clone()),
            Reply::text("hello"),
        ]);
        let cloud = Cloud::new(script);
        let (ran, result) = ask(cloud.signed().args(["--model", model]));
        assert_eq!(ran.code, Some(0), "{model} {ran:?}");
        assert_eq!(result["result"], "hello", "{model} {result}");
        assert_eq!(cloud.calls().len(), 2, "{model}");
    }
}

#[rstest]
#[case(404, ErrorKind::ModelNotFound, "caliban models --provider bedrock")]
#[case(403, ErrorKind::Permission, "bedrock:InvokeModelWithResponseStream")]
#[case(400, ErrorKind::InvalidRequest, "bedrock")]
fn what_stays_is_told_once_with_its_remedy(
    #[case] code: u16,
    #[case] kind: ErrorKind,
    #[case] remedy: &str,
) {
    let script = Script::new([Reply::fault(status(code, Some(kind))).times(9)]);
    let cloud = Cloud::new(script);
    let (ran, _) = ask(&mut cloud.signed());
    assert_ne!(ran.code, Some(0));
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains(remedy), "{said}");
    assert!(!said.contains("ANTHROPIC_API_KEY"), "{said}");
    // Keys may have been renewed once where it looked like theirs.
    assert!(cloud.calls().len() <= 2, "{}", cloud.calls().len());
}

#[rstest]
#[case("bedrock", "AWS_REGION", "region = \"us-east-1\"")]
#[case("vertex", "GOOGLE_CLOUD_PROJECT", "project = \"my-project\"")]
#[case("azure", "AZURE_OPENAI_RESOURCE", "resource = \"my-resource\"")]
fn a_missing_place_is_told_with_the_lines_to_write(
    #[case] provider: &str,
    #[case] variable: &str,
    #[case] lines: &str,
) {
    let cloud = Cloud::new(answer());
    let ran = run(cloud.command().args(["--provider", provider, "-p", "hi"]));
    assert_eq!(ran.code, Some(78), "{ran:?}");
    assert!(ran.stderr.contains(variable), "{ran:?}");
    assert!(ran.stderr.contains(lines), "{ran:?}");
}

#[rstest]
#[case(&[("AWS_REGION", "us-east-1.evil.example/")], "names no place")]
#[case(&[("AWS_REGION", "us-east-1"), ("CALIBAN_AWS_AUTH_REFRESH", "aws sso login")], "aws_auth_refresh_command")]
#[case(&[("AWS_REGION", "us-east-1"), ("ANTHROPIC_BEDROCK_BASE_URL", "ftp://x")], "scheme `ftp`")]
fn what_is_set_wrongly_ends_the_start(#[case] variables: &[(&str, &str)], #[case] said: &str) {
    let cloud = Cloud::new(answer());
    let mut command = cloud.command();
    command.envs(variables.iter().copied());
    let ran = run(command.args(["--provider", "bedrock", "-p", "hi"]));
    assert_eq!(ran.code, Some(78), "{ran:?}");
    assert!(ran.stderr.contains(said), "{ran:?}");
}

#[test]
fn an_unknown_key_in_a_block_is_an_error() {
    let cloud = Cloud::new(answer());
    cloud.config("[provider.bedrock]\nregoin = 'us-east-1'\n");
    let ran = run(cloud.bedrock().args(["-p", "hi"]));
    assert_eq!(ran.code, Some(78), "{ran:?}");
    assert!(ran.stderr.contains("`regoin`"), "{ran:?}");
}

#[test]
fn credentials_do_not_travel_in_the_clear() {
    let cloud = Cloud::new(answer());
    let mut command = cloud.signed();
    command.env("ANTHROPIC_BEDROCK_BASE_URL", "http://gateway.example");
    let (ran, _) = ask(&mut command);
    assert_ne!(ran.code, Some(0));
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("not encrypted"), "{said}");
}

#[test]
fn a_deployment_that_is_not_there_is_told_apart_from_a_path() {
    let fault = Fault::Status {
        code: 404,
        kind: None,
        retry_after: None,
        retry_after_ms: None,
        headers: std::collections::BTreeMap::default(),
        body: Some(serde_json::json!({"error": {"code": "404", "message": "Resource not found"}})),
    };
    let cloud = Cloud::new(Script::new([Reply::fault(fault).times(9)]));
    let (ran, _) = ask(&mut cloud.azure());
    assert_ne!(ran.code, Some(0));
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("`api_version`"), "{said}");
}

#[test]
fn a_key_helper_for_all_is_not_asked_for_a_clouds_key() {
    let cloud = Cloud::new(answer());
    cloud.write_home(
        ".config/caliban/settings.toml",
        "api_key_helper = '/bin/echo anthropic-key'\n",
    );
    let (ran, _) = ask(&mut cloud.signed());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let call = &cloud.calls()[0];
    assert!(call.header("authorization").unwrap().starts_with("AWS4"));
}
