//! Every way to log in, each against servers that stand for the platform's own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use caliban_testkit::{ErrorKind, Fault, Reply, Script};
use serde_json::{Value, json};

use crate::{Cloud, answer, ask, token, write};

const FAR: &str = "2099-01-01T00:00:00Z";

fn keys(id: &str) -> Value {
    json!({"AccessKeyId": id, "SecretAccessKey": "s", "SessionToken": "tok", "Expiration": FAR})
}

/// STS's answer, with keys of this name.
fn role(id: &str) -> String {
    format!(
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>{id}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>tok</SessionToken><Expiration>{FAR}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>"
    )
}

/// Asks, and tells with whose key the call was signed.
fn signed_by(cloud: &Cloud, command: &mut Command) -> String {
    let (ran, _) = ask(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let calls = cloud.calls();
    let call = calls.last().unwrap();
    let authorization = call.header("authorization").unwrap();
    let (_, rest) = authorization.split_once("Credential=").unwrap();
    rest.split('/').next().unwrap().to_owned()
}

/// A program in the home.
fn program(cloud: &Cloud, name: &str, script: &str) -> String {
    let path = cloud.home.path().join(name);
    write(&path, &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path.display().to_string()
}

#[test]
fn a_bearers_token_goes_before_all_keys() {
    let cloud = Cloud::new(answer());
    let mut command = cloud.signed();
    let (ran, _) = ask(command.env("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let call = &cloud.calls()[0];
    assert_eq!(call.header("authorization"), Some("Bearer bedrock-api-key"));
    assert!(call.header("x-amz-date").is_none());
}

#[test]
fn keys_and_region_of_a_profile() {
    let cloud = Cloud::new(answer());
    cloud.write_home(
        ".aws/credentials",
        "[work]\naws_access_key_id = AKIAWORK\naws_secret_access_key = s\naws_session_token = t\n",
    );
    cloud.write_home(".aws/config", "[profile work]\nregion = eu-west-3\n");
    let mut command = cloud.bedrock();
    command.env_remove("AWS_REGION").env("AWS_PROFILE", "work");
    assert_eq!(signed_by(&cloud, &mut command), "AKIAWORK");
    let call = &cloud.calls()[0];
    assert_eq!(call.header("x-amz-security-token"), Some("t"));
    assert!(
        call.path.starts_with("/model/eu.anthropic."),
        "{}",
        call.path
    );
    let authorization = call.header("authorization").unwrap();
    assert!(
        authorization.contains("/eu-west-3/bedrock/"),
        "{authorization}"
    );
}

#[test]
fn a_role_is_taken_on_with_the_keys_of_another_profile() {
    let cloud = Cloud::new(answer().document("POST", "/", role("ASIAROLE")));
    cloud.write_home(
        ".aws/config",
        "[default]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\nexternal_id = x y\n[profile base]\naws_access_key_id = AKIABASE\naws_secret_access_key = s\n",
    );
    let mut command = cloud.bedrock();
    command.env("AWS_ENDPOINT_URL_STS", cloud.server.url());
    assert_eq!(signed_by(&cloud, &mut command), "ASIAROLE");
    let asked = &cloud.server.requests()[0];
    let form = String::from_utf8(asked.body.to_vec()).unwrap();
    assert_eq!(
        form,
        "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=caliban&ExternalId=x+y"
    );
    let authorization = asked.header("authorization").unwrap();
    assert!(
        authorization.contains("Credential=AKIABASE/"),
        "{authorization}"
    );
    assert!(
        authorization.contains("/sts/aws4_request"),
        "{authorization}"
    );
}

#[test]
fn a_role_is_taken_on_with_a_token_from_a_file() {
    let cloud = Cloud::new(answer().document("POST", "/", role("ASIAWEB")));
    cloud.write_home("web.jwt", "eyJ.web.token\n");
    let mut command = cloud.bedrock();
    command
        .env("AWS_ENDPOINT_URL_STS", cloud.server.url())
        .env("AWS_ROLE_ARN", "arn:aws:iam::1:role/pod")
        .env(
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            cloud.home.path().join("web.jwt"),
        );
    assert_eq!(signed_by(&cloud, &mut command), "ASIAWEB");
    let asked = &cloud.server.requests()[0];
    let form = String::from_utf8(asked.body.to_vec()).unwrap();
    assert!(form.contains("Action=AssumeRoleWithWebIdentity"), "{form}");
    assert!(form.contains("WebIdentityToken=eyJ.web.token"), "{form}");
    assert!(asked.header("authorization").is_none());
}

/// The file is named by the hash of the session's name, as AWS's tools have it.
#[test]
fn single_sign_on_renews_its_token_and_writes_it_back() {
    let credentials = json!({"roleCredentials": {"accessKeyId": "ASIASSO", "secretAccessKey": "s", "sessionToken": "t", "expiration": 4_070_908_800_000_i64}});
    let renewed = json!({"accessToken": "new-token", "expiresIn": 3600, "refreshToken": "r2"});
    let cloud = Cloud::new(
        answer()
            .document("GET", "/federation/credentials", credentials)
            .document("POST", "/token", renewed),
    );
    cloud.write_home(
        ".aws/config",
        "[profile sso]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = Dev\nregion = us-east-1\n[sso-session corp]\nsso_region = us-west-2\nsso_start_url = https://corp.awsapps.com/start\n",
    );
    // The hash of `corp`.
    let file = ".aws/sso/cache/ed50acacc4e1e25e1c4ea9d88e4ae83d4d41e1a7.json";
    let hash = sha1_of_corp();
    let file = file.replace("ed50acacc4e1e25e1c4ea9d88e4ae83d4d41e1a7", &hash);
    let kept = json!({"accessToken": "old", "expiresAt": "2020-01-01T00:00:00Z", "clientId": "c", "clientSecret": "cs", "refreshToken": "r1", "region": "us-west-2"});
    cloud.write_home(&file, &kept.to_string());
    let mut command = cloud.bedrock();
    command
        .env("AWS_PROFILE", "sso")
        .env("AWS_ENDPOINT_URL_SSO", cloud.server.url())
        .env("AWS_ENDPOINT_URL_SSO_OIDC", cloud.server.url());
    assert_eq!(signed_by(&cloud, &mut command), "ASIASSO");
    let asked = cloud.server.requests();
    assert_eq!(asked[0].json()["refreshToken"], "r1");
    assert_eq!(
        asked[1].path,
        "/federation/credentials?role_name=Dev&account_id=123456789012"
    );
    assert_eq!(asked[1].header("x-amz-sso_bearer_token"), Some("new-token"));
    let written = fs::read_to_string(cloud.home.path().join(&file)).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["accessToken"], "new-token");
    assert_eq!(written["refreshToken"], "r2");
    assert_eq!(written["region"], "us-west-2");
}

/// From a program that is on every machine these tests run on.
fn sha1_of_corp() -> String {
    let output = Command::new("sh")
        .args(["-c", "printf corp | sha1sum"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_container_and_an_instance_say_who_they_are() {
    let cloud = Cloud::new(answer().document("GET", "/creds", keys("ASIATASK")));
    let mut command = cloud.bedrock();
    command
        .env(
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            format!("{}/creds", cloud.server.url()),
        )
        .env("AWS_CONTAINER_AUTHORIZATION_TOKEN", "agent");
    assert_eq!(signed_by(&cloud, &mut command), "ASIATASK");
    assert_eq!(
        cloud.server.requests()[0].header("authorization"),
        Some("agent")
    );

    let place = "/latest/meta-data/iam/security-credentials/";
    let cloud = Cloud::new(
        answer()
            .document("PUT", "/latest/api/token", "imds-token")
            .document("GET", place, "my-role")
            .document("GET", &format!("{place}my-role"), keys("ASIAVM")),
    );
    let mut command = cloud.bedrock();
    command
        .env("AWS_EC2_METADATA_DISABLED", "false")
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", cloud.server.url());
    assert_eq!(signed_by(&cloud, &mut command), "ASIAVM");
    let asked = cloud.server.requests();
    assert_eq!(
        asked[2].header("x-aws-ec2-metadata-token"),
        Some("imds-token")
    );
}

#[test]
fn programs_print_keys() {
    let cloud = Cloud::new(answer());
    let line = program(&cloud, "keys.sh", &format!("echo '{}'", keys("ASIAPROC")));
    cloud.write_home(
        ".aws/config",
        &format!("[default]\ncredential_process = {line}\n"),
    );
    assert_eq!(signed_by(&cloud, &mut cloud.bedrock()), "ASIAPROC");

    let export = json!({"Credentials": keys("ASIAEXPORT")});
    let line = program(&cloud, "export.sh", &format!("echo '{export}'"));
    cloud.write_home(
        ".config/caliban/settings.toml",
        &format!("aws_credential_export = '{line}'\n"),
    );
    assert_eq!(signed_by(&cloud, &mut cloud.signed()), "ASIAEXPORT");
}

#[test]
fn keys_that_are_refused_are_renewed_once_by_the_configured_login() {
    let expired = Fault::Status {
        code: 403,
        kind: Some(ErrorKind::Auth),
        retry_after: None,
        retry_after_ms: None,
        headers: std::collections::BTreeMap::default(),
        body: None,
    };
    let cloud = Cloud::new(Script::new([Reply::fault(expired), Reply::text("hello")]));
    cloud.write_home(
        ".aws/credentials",
        "[default]\naws_access_key_id = AKIAOLD\naws_secret_access_key = s\n",
    );
    let file = cloud.home.path().join(".aws/credentials");
    let line = program(
        &cloud,
        "login.sh",
        &format!(
            "printf '[default]\\naws_access_key_id = AKIANEW\\naws_secret_access_key = s\\n' > {}",
            file.display()
        ),
    );
    cloud.write_home(
        ".config/caliban/settings.toml",
        &format!("aws_auth_refresh_command = '{line}'\n"),
    );
    assert_eq!(signed_by(&cloud, &mut cloud.bedrock()), "AKIANEW");
    let calls = cloud.calls();
    assert_eq!(calls.len(), 2);
    assert!(
        calls[0]
            .header("authorization")
            .unwrap()
            .contains("AKIAOLD")
    );
}

#[test]
fn without_any_keys_the_run_ends_within_seconds_and_names_the_remedy() {
    let cloud = Cloud::new(answer());
    let (ran, _) = ask(&mut cloud.bedrock());
    assert_ne!(ran.code, Some(0));
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("no usable AWS credentials"), "{said}");
    assert!(said.contains("aws sso login"), "{said}");
    assert!(cloud.server.requests().is_empty());
}

#[test]
fn a_service_account_signs_for_its_token() {
    let cloud = Cloud::new(answer().document("POST", "/token", token("sa-token")));
    let key = Command::new("openssl")
        .args([
            "genpkey",
            "-algorithm",
            "RSA",
            "-pkeyopt",
            "rsa_keygen_bits:2048",
        ])
        .output()
        .unwrap();
    assert!(key.status.success(), "{key:?}");
    let pem = String::from_utf8(key.stdout).unwrap();
    cloud.write_home(
        "sa.json",
        &json!({
            "type": "service_account",
            "client_email": "robot@my-project.iam.gserviceaccount.com",
            "private_key_id": "kid-1",
            "private_key": pem,
            "token_uri": format!("{}/token", cloud.server.url()),
        })
        .to_string(),
    );
    cloud.write_home("key.pem", &pem);
    let mut command = cloud.vertex();
    command.env(
        "GOOGLE_APPLICATION_CREDENTIALS",
        cloud.home.path().join("sa.json"),
    );
    let (ran, _) = ask(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        cloud.calls()[0].header("authorization"),
        Some("Bearer sa-token")
    );
    let form = String::from_utf8(cloud.server.requests()[0].body.to_vec()).unwrap();
    let (_, assertion) = form.split_once("assertion=").unwrap();
    let (signed, signature) = assertion.rsplit_once('.').unwrap();
    // The signature holds for what was signed, says somebody else's program.
    cloud.write_home("signed", signed);
    cloud.write_home(
        "signature.txt",
        &signature.replace('-', "+").replace('_', "/"),
    );
    let check = "openssl pkey -in key.pem -pubout -out pub.pem && (cat signature.txt; case $(( $(wc -c < signature.txt) % 4 )) in 2) printf '==';; 3) printf '=';; esac) | openssl base64 -d -A > signature && openssl dgst -sha256 -verify pub.pem -signature signature signed";
    let checked = Command::new("sh")
        .args(["-c", check])
        .current_dir(cloud.home.path())
        .output()
        .unwrap();
    assert!(checked.status.success(), "{checked:?}");
}

#[test]
fn an_account_of_somebody_else_is_exchanged_and_impersonates() {
    let impersonated = json!({"accessToken": "final-token", "expireTime": FAR});
    let cloud = Cloud::new(
        answer()
            .document("POST", "/sts", token("federated"))
            .document("POST", "/impersonate", impersonated),
    );
    cloud.write_home("subject.json", r#"{"id_token": "theirs"}"#);
    let url = cloud.server.url();
    cloud.write_home(
        "external.json",
        &json!({
            "type": "external_account",
            "audience": "//iam.googleapis.com/pool",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": format!("{url}/sts"),
            "service_account_impersonation_url": format!("{url}/impersonate"),
            "credential_source": {
                "file": cloud.home.path().join("subject.json"),
                "format": {"type": "json", "subject_token_field_name": "id_token"},
            },
        })
        .to_string(),
    );
    let mut command = cloud.vertex();
    command.env(
        "GOOGLE_APPLICATION_CREDENTIALS",
        cloud.home.path().join("external.json"),
    );
    let (ran, _) = ask(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        cloud.calls()[0].header("authorization"),
        Some("Bearer final-token")
    );
    let asked = cloud.server.requests();
    let form = String::from_utf8(asked[0].body.to_vec()).unwrap();
    assert!(form.contains("subject_token=theirs"), "{form}");
    assert_eq!(asked[1].header("authorization"), Some("Bearer federated"));
}

#[test]
fn a_file_cannot_send_credentials_to_strangers() {
    let cloud = Cloud::new(answer());
    cloud.write_home(
        "sa.json",
        &json!({
            "type": "authorized_user", "client_id": "c", "client_secret": "s",
            "refresh_token": "r", "token_uri": "https://evil.example/token",
        })
        .to_string(),
    );
    let mut command = cloud.vertex();
    command.env(
        "GOOGLE_APPLICATION_CREDENTIALS",
        cloud.home.path().join("sa.json"),
    );
    let (ran, _) = ask(&mut command);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("evil.example"), "{said}");
    assert!(said.contains("not Google's"), "{said}");
}

#[test]
fn azure_takes_a_token_of_the_directory_where_there_is_no_key() {
    let cloud = Cloud::new(answer().document("POST", "/tenant/oauth2/v2.0/token", token("entra")));
    let mut command = cloud.azure();
    command
        .env_remove("AZURE_OPENAI_API_KEY")
        .env("AZURE_CLIENT_ID", "client")
        .env("AZURE_TENANT_ID", "tenant")
        .env("AZURE_CLIENT_SECRET", "hush")
        .env("AZURE_AUTHORITY_HOST", cloud.server.url());
    let (ran, _) = ask(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        cloud.calls()[0].header("authorization"),
        Some("Bearer entra")
    );
    let form = String::from_utf8(cloud.server.requests()[0].body.to_vec()).unwrap();
    assert_eq!(
        form,
        "client_id=client&scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default&grant_type=client_credentials&client_secret=hush"
    );
}

#[test]
fn azure_asks_az_last() {
    let cloud = Cloud::new(answer());
    let printed = json!({"accessToken": "from-az", "expires_on": 4_070_908_800_i64});
    program(&cloud, "bin/az", &format!("echo '{printed}'"));
    let mut command = cloud.azure();
    let path = std::env::var("PATH").unwrap();
    command.env_remove("AZURE_OPENAI_API_KEY").env(
        "PATH",
        format!("{}/bin:{path}", cloud.home.path().display()),
    );
    let (ran, _) = ask(&mut command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        cloud.calls()[0].header("authorization"),
        Some("Bearer from-az")
    );
}
