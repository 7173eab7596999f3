//! The vendors' own libraries look at what we send and at what the test server answers. Without
//! them the tests say so and do nothing.

use std::io::Write;
use std::process::{Command, Stdio};

use caliban_testkit::{ErrorKind, Fault, Reply, Script};
use serde_json::{Value, json};

use crate::support::run;
use crate::{Cloud, answer, ask};

/// Runs a driver with a document on its input, and reads one from its output.
fn consult(case: &str, input: &Value) -> Option<Value> {
    let Some(python) = std::env::var_os("CALIBAN_TEST_PYTHON") else {
        eprintln!("skipped: CALIBAN_TEST_PYTHON is not set; run `cargo xtask test`");
        return None;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clouds/counterparts.py");
    let mut child = Command::new(python)
        .args([script, case])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn botocore_computes_the_same_signatures() {
    let cloud = Cloud::new(answer());
    let mut requests = Vec::new();
    for model in [
        "claude-haiku-4-5",
        "nova-pro",
        "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a~b c",
    ] {
        for token in [None, Some("tok/en+=")] {
            let mut command = cloud.signed();
            command.args(["--model", model]);
            if let Some(token) = token {
                command.env("AWS_SESSION_TOKEN", token);
            }
            let (ran, _) = ask(&mut command);
            assert_eq!(ran.code, Some(0), "{ran:?}");
        }
    }
    for call in cloud.calls() {
        let body = String::from_utf8(call.body.to_vec()).unwrap();
        requests.push(json!({
            "method": call.method,
            "url": format!("{}{}", cloud.server.url(), call.path),
            "headers": call.headers,
            "body": body,
        }));
    }
    assert_eq!(requests.len(), 6);
    let Some(said) = consult("signatures", &json!(requests)) else {
        return;
    };
    assert_eq!(said, json!([true, true, true, true, true, true]));
}

#[test]
fn boto3_reads_the_test_servers_streams() {
    let cloud = Cloud::new(Script::new([
        Reply::text("through boto"),
        Reply::text("through converse"),
        Reply::text("void").with_fault(Fault::ErrorEvent {
            after_events: 1,
            kind: ErrorKind::RateLimit,
        }),
    ]));
    let Some(said) = consult("streams", &json!({"url": cloud.server.url()})) else {
        return;
    };
    assert_eq!(
        said,
        json!({
            "invoke": "through boto",
            "converse": "through converse",
            "exception": "throttlingException",
        })
    );
}

/// The same home and environment, given to both: the same keys come of it.
#[test]
fn botocore_finds_the_same_keys() {
    let cloud = Cloud::new(answer());
    cloud.write_home(
        ".aws/config",
        "[default]\nregion=us-east-1\n[profile role]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\n[profile base]\naws_access_key_id = AKIABASE\naws_secret_access_key = s\n[profile both]\naws_access_key_id = AKIACONFIG\naws_secret_access_key = c\n",
    );
    cloud.write_home(
        ".aws/credentials",
        "[both]\naws_access_key_id = AKIACRED\naws_secret_access_key = s # really\n",
    );
    for profile in ["base", "both"] {
        let mut command = cloud.bedrock();
        command.env("AWS_PROFILE", profile);
        let (ran, _) = ask(&mut command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let calls = cloud.calls();
        let authorization = calls.last().unwrap().header("authorization").unwrap();
        let home = cloud.home.path();
        let Some(said) = consult("keys", &json!({"home": home, "profile": profile})) else {
            return;
        };
        let expected = format!("Credential={}/", said["key"].as_str().unwrap());
        assert!(authorization.contains(&expected), "{authorization} {said}");
    }
}

#[test]
fn google_auth_asks_for_tokens_as_we_do() {
    let cloud = Cloud::new(answer().document("POST", "/token", crate::token("t")));
    let Some(made) = consult(
        "service_account",
        &json!({"token_uri": format!("{}/token", cloud.server.url())}),
    ) else {
        return;
    };
    cloud.write_home("sa.json", &made["file"].to_string());
    let mut command = cloud.vertex();
    command.env(
        "GOOGLE_APPLICATION_CREDENTIALS",
        cloud.home.path().join("sa.json"),
    );
    let ran = run(command.args(["-p", "hi"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let asked: Vec<String> = cloud
        .server
        .requests()
        .into_iter()
        .filter(|request| request.path == "/token")
        .map(|request| String::from_utf8(request.body.to_vec()).unwrap())
        .collect();
    let [theirs, ours] = asked.try_into().unwrap();
    let said = consult(
        "compare_assertions",
        &json!({"theirs": theirs, "ours": ours, "file": made["file"]}),
    );
    assert_eq!(said, Some(json!({"same": true, "verified": true})));
}
