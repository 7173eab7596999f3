//! Application Default Credentials: who this machine or its user is to Google.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use caliban_model::{Error, Freshness, Origin};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use url::{Host, Url};

use super::assertion::Assertion;
use crate::clouds::fetch::{Fetched, METADATA_TRIES, form, get, parse, request};
use crate::clouds::kept::{Kept, Lease};
use crate::clouds::surroundings::{Surroundings, no_login, read};

/// What tokens are for.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// What a token is for that is only exchanged for another.
const IAM_SCOPE: &str = "https://www.googleapis.com/auth/iam";
const TOKENS: &str = "https://oauth2.googleapis.com/token";
const METADATA: &str = "metadata.google.internal";
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
/// How long finding a token may take altogether, and a program that logs in.
const CHAIN_LIMIT: Duration = Duration::from_mins(1);
const LOGIN_LIMIT: Duration = Duration::from_mins(3);
const LOGIN: &str = "run `gcloud auth application-default login`, or set `GOOGLE_APPLICATION_CREDENTIALS` to a key file";

/// A token, and the project that its use is charged to where that is another one.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) secret: SecretString,
    pub(super) quota_project: Option<String>,
}

/// Tokens of one account.
#[derive(Debug)]
pub(super) struct Adc {
    surroundings: Arc<Surroundings>,
    kept: Kept<Token>,
}

/// A file of credentials.
#[derive(Debug, Deserialize)]
struct File {
    #[serde(flatten)]
    kind: Kind,
    quota_project_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Kind {
    ServiceAccount {
        client_email: String,
        private_key: String,
        private_key_id: Option<String>,
        token_uri: Option<String>,
    },
    AuthorizedUser {
        client_id: String,
        client_secret: String,
        refresh_token: String,
        token_uri: Option<String>,
    },
    ImpersonatedServiceAccount {
        service_account_impersonation_url: String,
        #[serde(default)]
        delegates: Vec<String>,
        source_credentials: Box<Kind>,
    },
    ExternalAccount {
        audience: String,
        subject_token_type: String,
        token_url: String,
        credential_source: Source,
        service_account_impersonation_url: Option<String>,
    },
}

/// Where the token of somebody else's account lies.
#[derive(Debug, Deserialize)]
struct Source {
    file: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
    format: Option<Format>,
}

#[derive(Debug, Deserialize)]
struct Format {
    subject_token_field_name: Option<String>,
}

impl Adc {
    pub(super) fn new(surroundings: Arc<Surroundings>) -> Self {
        Self {
            kept: Kept::new(surroundings.refresh.early),
            surroundings,
        }
    }

    pub(super) async fn token(
        &self,
        freshness: Freshness,
        origin: &Origin,
    ) -> Result<Token, Error> {
        self.kept
            .get(freshness, self.fetch(freshness, origin))
            .await
    }

    /// Looks everywhere; where that is in vain and a program logs in, once more after it.
    async fn fetch(&self, freshness: Freshness, origin: &Origin) -> Result<Lease<Token>, Error> {
        let none = |reason: String| {
            no_login(
                origin,
                format!("no usable Google credentials: {reason}"),
                LOGIN,
            )
        };
        let command = self.surroundings.refresh.command.as_ref();
        let Some(command) = command else {
            return self.look().await.map_err(none);
        };
        if freshness == Freshness::Cached
            && let Ok(found) = self.look().await
        {
            return Ok(found);
        }
        let login = self.surroundings.run(command.clone(), LOGIN_LIMIT).await;
        login.map_err(|reason| none(format!("`gcp_auth_refresh_command` failed: {reason}")))?;
        self.look().await.map_err(none)
    }

    async fn look(&self) -> Result<Lease<Token>, String> {
        match timeout(CHAIN_LIMIT, self.chain()).await {
            Ok(found) => found,
            Err(_) => Err(format!("nothing within {} s", CHAIN_LIMIT.as_secs())),
        }
    }

    async fn chain(&self) -> Result<Lease<Token>, String> {
        let named = self
            .surroundings
            .variable("GOOGLE_APPLICATION_CREDENTIALS")
            .map(PathBuf::from);
        let path = named.clone().or_else(|| self.well_known());
        let text = match &path {
            Some(path) => read(path).await?,
            None => None,
        };
        let (Some(path), Some(text)) = (&path, text) else {
            if let Some(path) = named {
                return Err(format!(
                    "`GOOGLE_APPLICATION_CREDENTIALS` names `{}`, which is not there",
                    path.display()
                ));
            }
            return self.metadata().await;
        };
        let file: File = serde_json::from_str(&text)
            .map_err(|error| format!("`{}`: {error}", path.display()))?;
        let mut found = self.exchange(&file.kind, SCOPE).await?;
        found.value.quota_project = file.quota_project_id;
        Ok(found)
    }

    /// Where `gcloud` leaves them.
    fn well_known(&self) -> Option<PathBuf> {
        let directory = match self.surroundings.variable("CLOUDSDK_CONFIG") {
            Some(directory) => PathBuf::from(directory),
            None => self.surroundings.home()?.join(".config/gcloud"),
        };
        Some(directory.join("application_default_credentials.json"))
    }

    fn exchange<'a>(
        &'a self,
        kind: &'a Kind,
        scope: &'a str,
    ) -> BoxFuture<'a, Result<Lease<Token>, String>> {
        async move {
            match kind {
                Kind::ServiceAccount {
                    client_email,
                    private_key,
                    private_key_id,
                    token_uri,
                } => {
                    let assertion = Assertion {
                        issuer: client_email,
                        key_id: private_key_id.as_deref(),
                        // Whatever the file says: that is whom the statement is for.
                        audience: TOKENS,
                        scope,
                    };
                    let assertion = assertion.sign(private_key, Timestamp::now())?;
                    let fields = [
                        ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                        ("assertion", assertion.as_str()),
                    ];
                    self.granted(token_uri.as_deref(), &fields).await
                }
                Kind::AuthorizedUser {
                    client_id,
                    client_secret,
                    refresh_token,
                    token_uri,
                } => {
                    let fields = [
                        ("grant_type", "refresh_token"),
                        ("client_id", client_id.as_str()),
                        ("client_secret", client_secret.as_str()),
                        ("refresh_token", refresh_token.as_str()),
                    ];
                    self.granted(token_uri.as_deref(), &fields).await
                }
                Kind::ImpersonatedServiceAccount {
                    service_account_impersonation_url,
                    delegates,
                    source_credentials,
                } => {
                    let source = self.exchange(source_credentials, SCOPE).await?;
                    let url = googles(service_account_impersonation_url)?;
                    self.impersonated(url, delegates, &source.value).await
                }
                Kind::ExternalAccount {
                    audience,
                    subject_token_type,
                    token_url,
                    credential_source,
                    service_account_impersonation_url,
                } => {
                    let subject = self.subject(credential_source).await?;
                    let scope = match service_account_impersonation_url {
                        Some(_) => IAM_SCOPE,
                        None => scope,
                    };
                    let fields = [
                        ("grant_type", EXCHANGE),
                        ("audience", audience.as_str()),
                        ("scope", scope),
                        ("requested_token_type", ACCESS_TOKEN),
                        ("subject_token", subject.as_str()),
                        ("subject_token_type", subject_token_type.as_str()),
                    ];
                    let token = self.granted(Some(token_url), &fields).await?;
                    match service_account_impersonation_url {
                        Some(url) => self.impersonated(googles(url)?, &[], &token.value).await,
                        None => Ok(token),
                    }
                }
            }
        }
        .boxed()
    }

    async fn granted(
        &self,
        url: Option<&str>,
        fields: &[(&str, &str)],
    ) -> Result<Lease<Token>, String> {
        let url = googles(url.unwrap_or(TOKENS))?;
        let answer = self.surroundings.fetcher.send(form(url, fields)?).await?;
        token(&answer)
    }

    async fn impersonated(
        &self,
        url: Url,
        delegates: &[String],
        source: &Token,
    ) -> Result<Lease<Token>, String> {
        use secrecy::ExposeSecret;

        let body = json!({"delegates": delegates, "scope": [SCOPE], "lifetime": "3600s"});
        let bearer = format!("Bearer {}", source.secret.expose_secret());
        let headers = [
            ("content-type", "application/json"),
            ("authorization", bearer.as_str()),
        ];
        let asked = request(Method::POST, url, &headers, body.to_string().into_bytes())?;
        let answer = self.surroundings.fetcher.send(asked).await?;
        let document = answer.json().filter(|_| answer.is_success());
        let text = |name: &str| document.as_ref()?.get(name)?.as_str().map(str::to_owned);
        match text("accessToken") {
            Some(secret) => Ok(Lease {
                value: bare(secret),
                expires: text("expireTime").and_then(|time| time.parse().ok()),
            }),
            None => Err(format!(
                "impersonation was refused ({})",
                answer.complaint()
            )),
        }
    }

    /// A file's content, or what an address answers.
    async fn subject(&self, source: &Source) -> Result<String, String> {
        let text = if let Some(path) = &source.file {
            let text = read(path.as_ref()).await?;
            text.ok_or_else(|| format!("there is no token in `{path}`"))?
        } else if let Some(url) = &source.url {
            let mut asked = get(parse(url)?, &[])?;
            for (name, value) in &source.headers {
                let unusable = || format!("the header `{name}` of `credential_source` is unusable");
                let name = reqwest::header::HeaderName::from_bytes(name.as_bytes());
                let value = reqwest::header::HeaderValue::from_str(value);
                asked.headers.insert(
                    name.map_err(|_| unusable())?,
                    value.map_err(|_| unusable())?,
                );
            }
            let answer = self.surroundings.fetcher.send(asked).await?;
            if !answer.is_success() {
                return Err(format!("`credential_source`: {}", answer.complaint()));
            }
            answer.text()
        } else {
            return Err(
                "this kind of `credential_source` is not supported: use a file or a url".to_owned(),
            );
        };
        let field = source.format.as_ref();
        match field.and_then(|format| format.subject_token_field_name.as_ref()) {
            None => Ok(text.trim().to_owned()),
            Some(field) => {
                let document: Value = serde_json::from_str(&text).unwrap_or_default();
                let token = document.get(field).and_then(Value::as_str);
                let token = token.map(str::to_owned);
                token.ok_or_else(|| format!("`credential_source` has no `{field}`"))
            }
        }
    }

    /// The service account of the machine.
    async fn metadata(&self) -> Result<Lease<Token>, String> {
        let host = self.surroundings.variable("GCE_METADATA_HOST");
        let host = host.unwrap_or(METADATA);
        let url = parse(&format!(
            "http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
        ))?;
        let mut reason = String::new();
        for _ in 0..METADATA_TRIES {
            let asked = get(url.clone(), &[("metadata-flavor", "Google")])?;
            match self.surroundings.fetcher.nearby(asked).await {
                Ok(answer) if answer.headers.get("metadata-flavor").is_none() => {
                    reason = format!("{host} is not Google's");
                }
                Ok(answer) => return token(&answer),
                Err(failure) => reason = failure,
            }
        }
        Err(format!(
            "no file holds any, and this is no machine of Google's ({reason})"
        ))
    }
}

fn bare(secret: String) -> Token {
    Token {
        secret: secret.into(),
        quota_project: None,
    }
}

fn token(answer: &Fetched) -> Result<Lease<Token>, String> {
    let document = answer.json().filter(|_| answer.is_success());
    let secret = document
        .as_ref()
        .and_then(|body| body.get("access_token")?.as_str());
    let (Some(document), Some(secret)) = (&document, secret) else {
        return Err(format!("no token was given ({})", answer.complaint()));
    };
    let seconds = document.get("expires_in").and_then(Value::as_i64);
    Ok(Lease {
        value: bare(secret.to_owned()),
        expires: seconds.map(|seconds| Timestamp::now() + SignedDuration::from_secs(seconds)),
    })
}

/// A file can name hosts that credentials are sent to: only Google's count, and this machine's.
fn googles(text: &str) -> Result<Url, String> {
    let url = parse(text)?;
    let counts = match url.host() {
        Some(Host::Domain(name)) => {
            name == "localhost"
                || (url.scheme() == "https"
                    && (name == "googleapis.com" || name.ends_with(".googleapis.com")))
        }
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    if counts {
        Ok(url)
    } else {
        Err(format!(
            "the credentials would be sent to `{}`, which is not Google's",
            url.host_str().unwrap_or_default()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_go_to_google_only() {
        for (url, counts) in [
            ("https://oauth2.googleapis.com/token", true),
            ("https://sts.googleapis.com/v1/token", true),
            ("http://127.0.0.1:1/token", true),
            ("http://oauth2.googleapis.com/token", false),
            ("https://googleapis.com.evil.example/token", false),
            ("https://evilgoogleapis.com/token", false),
        ] {
            assert_eq!(googles(url).is_ok(), counts, "{url}");
        }
    }
}
