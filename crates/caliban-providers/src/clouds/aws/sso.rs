//! Keys of a person who logged in through a browser with `aws sso login`.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use ring::digest;
use serde_json::{Value, json};

use super::profile::Profile;
use super::sign::{Keys, hex};
use crate::clouds::fetch::{get, parse, request};
use crate::clouds::kept::Lease;
use crate::clouds::surroundings::{Surroundings, read};

pub(super) fn is_configured(profile: Profile<'_>) -> bool {
    profile.get("sso_account_id").is_some() && profile.get("sso_role_name").is_some()
}

pub(super) async fn keys(
    surroundings: &Surroundings,
    profile: Profile<'_>,
) -> Result<Lease<Keys>, String> {
    let session = profile.get("sso_session");
    let shared = |key: &str| match session {
        Some(session) => profile.profiles().session(session, key),
        None => profile.get(key),
    };
    let missing = |key: &str| format!("profile `{}` has no `{key}`", profile.name);
    let region = shared("sso_region").ok_or_else(|| missing("sso_region"))?;
    let name = session.or_else(|| profile.get("sso_start_url"));
    let name = name.ok_or_else(|| missing("sso_start_url"))?;
    let file = cache_file(surroundings, name).ok_or("there is no home directory")?;
    let token = access_token(surroundings, &file, region, profile.name).await?;
    let base = match surroundings.variable("AWS_ENDPOINT_URL_SSO") {
        Some(endpoint) => endpoint.trim_end_matches('/').to_owned(),
        None => format!("https://portal.sso.{region}.{}", super::domain(region)),
    };
    let mut url = parse(&format!("{base}/federation/credentials"))?;
    url.query_pairs_mut()
        .append_pair(
            "role_name",
            profile.get("sso_role_name").unwrap_or_default(),
        )
        .append_pair(
            "account_id",
            profile.get("sso_account_id").unwrap_or_default(),
        );
    let request = get(url, &[("x-amz-sso_bearer_token", &token)])?;
    let answer = surroundings.fetcher.send(request).await?;
    let keys = answer.json().filter(|_| answer.is_success());
    let keys = keys.as_ref().and_then(|body| {
        let text = |name: &str| body.pointer(&format!("/roleCredentials/{name}"))?.as_str();
        let millis = body.pointer("/roleCredentials/expiration");
        Some(Lease {
            value: Keys {
                id: text("accessKeyId")?.to_owned(),
                secret: text("secretAccessKey")?.into(),
                token: text("sessionToken").map(Into::into),
            },
            expires: millis
                .and_then(Value::as_i64)
                .and_then(|millis| Timestamp::from_millisecond(millis).ok()),
        })
    });
    keys.ok_or_else(|| {
        format!(
            "single sign-on gives no keys for profile `{}` ({})",
            profile.name,
            answer.complaint()
        )
    })
}

fn cache_file(surroundings: &Surroundings, name: &str) -> Option<PathBuf> {
    let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, name.as_bytes());
    let directory = surroundings.home()?.join(".aws/sso/cache");
    Some(directory.join(format!("{}.json", hex(digest.as_ref()))))
}

/// The token of the last login, renewed where that can be done without a browser.
async fn access_token(
    surroundings: &Surroundings,
    file: &Path,
    region: &str,
    profile: &str,
) -> Result<String, String> {
    let login = || format!("run `aws sso login --profile {profile}`");
    let text = read(file)
        .await?
        .ok_or_else(|| format!("nobody logged in: {}", login()))?;
    let mut kept: Value =
        serde_json::from_str(&text).map_err(|error| format!("`{}`: {error}", file.display()))?;
    let field =
        |kept: &Value, name: &str| kept.get(name).and_then(Value::as_str).map(str::to_owned);
    let expires: Option<Timestamp> =
        field(&kept, "expiresAt").and_then(|text| text.replace("UTC", "Z").parse().ok());
    let lasts = expires.is_some_and(|at| Timestamp::now() + SignedDuration::from_mins(1) < at);
    if let Some(token) = field(&kept, "accessToken").filter(|_| lasts) {
        return Ok(token);
    }
    let (Some(client), Some(secret), Some(refresh)) = (
        field(&kept, "clientId"),
        field(&kept, "clientSecret"),
        field(&kept, "refreshToken"),
    ) else {
        return Err(format!("the login is over: {}", login()));
    };
    let base = match surroundings.variable("AWS_ENDPOINT_URL_SSO_OIDC") {
        Some(endpoint) => endpoint.trim_end_matches('/').to_owned(),
        None => format!("https://oidc.{region}.{}", super::domain(region)),
    };
    let body = json!({"grantType": "refresh_token", "clientId": client, "clientSecret": secret, "refreshToken": refresh});
    let kind = [("content-type", "application/json")];
    let asked = request(
        Method::POST,
        parse(&format!("{base}/token"))?,
        &kind,
        body.to_string().into_bytes(),
    )?;
    let answer = surroundings.fetcher.send(asked).await?;
    let renewed = answer.json().filter(|_| answer.is_success());
    let token = renewed
        .as_ref()
        .and_then(|body| body.get("accessToken")?.as_str());
    let (Some(renewed), Some(token)) = (&renewed, token) else {
        return Err(format!("the login is over: {}", login()));
    };
    let seconds = renewed
        .get("expiresIn")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    kept["accessToken"] = token.into();
    kept["expiresAt"] = (Timestamp::now() + SignedDuration::from_secs(seconds))
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
        .into();
    if let Some(refresh) = renewed.get("refreshToken").filter(|it| it.is_string()) {
        kept["refreshToken"] = refresh.clone();
    }
    // Other tools share the login: the token that was used up must not stay there. If it cannot be
    // written, this process still has the new one.
    let _ = replace(file, &kept.to_string()).await;
    Ok(token.to_owned())
}

/// Writes a file that nobody else may read, whole or not at all.
async fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    use tokio::io::AsyncWriteExt;

    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let temporary = PathBuf::from(name);
    let mut options = tokio::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    options.mode(0o600);
    let mut handle = options.open(&temporary).await?;
    let written = async {
        handle.write_all(text.as_bytes()).await?;
        handle.sync_all().await?;
        tokio::fs::rename(&temporary, file).await
    };
    let result = written.await;
    if result.is_err() {
        let _ = tokio::fs::remove_file(&temporary).await;
    }
    result
}
