//! The vendors' own libraries look at what we send and at what the test server answers. Without
//! them the tests say so and do nothing.

use std::io::Write;
use std::process::{Command, Stdio};

use caliban_testkit::{ErrorKind, Fault, Reply, Script};
use rstest::rstest;
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

/// The body that we sent, sent by the vendor's client: the same address, key and body come of it,
/// and the answer is read.
#[rstest]
#[case::dated("dated", "gpt-4.1", Some("2024-10-21"))]
#[case::undated("undated", "gpt-5.5", None)]
fn openais_client_asks_azure_as_we_do(
    #[case] form: &str,
    #[case] model: &str,
    #[case] version: Option<&str>,
) {
    let cloud = Cloud::new(answer());
    cloud.config(&format!(
        "[provider.azure]\ndeployments = {{ '{model}' = 'our gpt' }}\n"
    ));
    let mut command = cloud.azure();
    command.args(["--model", model]);
    if let Some(version) = version {
        command.env("AZURE_OPENAI_API_VERSION", version);
    }
    let (ran, _) = ask(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let given = json!({
        "form": form,
        "url": cloud.server.url(),
        "deployment": "our gpt",
        "body": cloud.calls()[0].json(),
    });
    let Some(said) = consult("azure", &given) else {
        return;
    };
    assert_eq!(said, json!({"said": "hello"}));
    let [ours, theirs] = cloud.calls().try_into().unwrap();
    assert_eq!(ours.api, theirs.api);
    assert_eq!(ours.method, theirs.method);
    assert_eq!(ours.path, theirs.path);
    for name in ["api-key", "content-type"] {
        assert_eq!(ours.header(name), theirs.header(name), "{name}");
    }
    assert_eq!(ours.json(), theirs.json());
}

/// Logins that are exchanged for a token: the same form is posted by both.
#[test]
fn google_auth_federates_as_we_do() {
    let exchanged = json!({
        "access_token": "federated",
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "expires_in": 3600,
        "token_type": "Bearer",
    });
    let cloud = Cloud::new(answer().document("POST", "/v1/token", exchanged));
    cloud.write_home("subject", "who-i-am");
    let file = json!({
        "type": "external_account",
        "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": format!("{}/v1/token", cloud.server.url()),
        "credential_source": {"file": cloud.home.path().join("subject")},
        "universe_domain": "googleapis.com",
    });
    let Some(said) = consult("token", &json!({"file": file})) else {
        return;
    };
    assert_eq!(said, json!({"token": "federated"}));
    cloud.write_home("login.json", &file.to_string());
    let mut command = cloud.vertex();
    command.env(
        "GOOGLE_APPLICATION_CREDENTIALS",
        cloud.home.path().join("login.json"),
    );
    let ran = run(command.args(["-p", "hi"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let asked: Vec<std::collections::BTreeMap<String, String>> = cloud
        .server
        .requests()
        .into_iter()
        .filter(|request| request.path == "/v1/token")
        .map(|request| {
            url::form_urlencoded::parse(&request.body)
                .into_owned()
                .filter(|(name, _)| name != "options")
                .collect()
        })
        .collect();
    let [theirs, ours] = asked.try_into().unwrap();
    assert_eq!(theirs, ours);
}
