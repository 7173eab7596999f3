//! Tokens of Microsoft's directory, for whom has no key.

use std::sync::Arc;
use std::time::Duration;

use caliban_model::{Error, Freshness, Origin};
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use serde_json::Value;
use tokio::time::timeout;

use crate::clouds::fetch::{Fetched, METADATA_TRIES, form, get, parse};
use crate::clouds::kept::{Kept, Lease};
use crate::clouds::surroundings::{Surroundings, no_login, read};

const AUTHORITY: &str = "https://login.microsoftonline.com";
const MACHINES: &str = "http://169.254.169.254";
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// How long finding a token may take altogether.
const CHAIN_LIMIT: Duration = Duration::from_mins(1);
const PROGRAM_LIMIT: Duration = Duration::from_mins(1);
const LOGIN: &str = "set `AZURE_OPENAI_API_KEY`, or run `az login`";

/// Tokens for one kind of resource.
#[derive(Debug)]
pub(super) struct Entra {
    surroundings: Arc<Surroundings>,
    /// E.g. `https://cognitiveservices.azure.com`.
    resource: &'static str,
    kept: Kept<SecretString>,
}

impl Entra {
    pub(super) fn new(surroundings: Arc<Surroundings>, resource: &'static str) -> Self {
        Self {
            kept: Kept::new(surroundings.refresh.early),
            surroundings,
            resource,
        }
    }

    pub(super) async fn token(
        &self,
        freshness: Freshness,
        origin: &Origin,
    ) -> Result<SecretString, Error> {
        self.kept.get(freshness, self.fetch(origin)).await
    }

    async fn fetch(&self, origin: &Origin) -> Result<Lease<SecretString>, Error> {
        let found = match timeout(CHAIN_LIMIT, self.chain()).await {
            Ok(found) => found,
            Err(_) => Err(format!("nothing within {} s", CHAIN_LIMIT.as_secs())),
        };
        found.map_err(|reason| {
            no_login(
                origin,
                format!("no usable Azure credentials: {reason}"),
                LOGIN,
            )
        })
    }

    async fn chain(&self) -> Result<Lease<SecretString>, String> {
        let surroundings = &*self.surroundings;
        let variable = |name: &str| surroundings.variable(name);
        if let (Some(client), Some(tenant)) =
            (variable("AZURE_CLIENT_ID"), variable("AZURE_TENANT_ID"))
        {
            if let Some(secret) = variable("AZURE_CLIENT_SECRET") {
                return self
                    .granted(tenant, client, &[("client_secret", secret)])
                    .await;
            }
            if let Some(path) = variable("AZURE_FEDERATED_TOKEN_FILE") {
                let token = read(path.as_ref()).await?;
                let token = token.ok_or_else(|| format!("there is no token in `{path}`"))?;
                let proof = [
                    ("client_assertion_type", ASSERTION),
                    ("client_assertion", token.trim()),
                ];
                return self.granted(tenant, client, &proof).await;
            }
        }
        if let Some(endpoint) = variable("IDENTITY_ENDPOINT") {
            return self.app_service(endpoint).await;
        }
        let wish = variable("AZURE_TOKEN_CREDENTIALS").map(str::to_ascii_lowercase);
        if wish.is_some_and(|wish| matches!(wish.as_str(), "prod" | "managedidentitycredential")) {
            return self.machine().await;
        }
        self.command_line().await
    }

    async fn granted(
        &self,
        tenant: &str,
        client: &str,
        proof: &[(&str, &str)],
    ) -> Result<Lease<SecretString>, String> {
        let authority = self.surroundings.variable("AZURE_AUTHORITY_HOST");
        let authority = authority.unwrap_or(AUTHORITY).trim_end_matches('/');
        let authority = if authority.contains("://") {
            authority.to_owned()
        } else {
            format!("https://{authority}")
        };
        let tenant = crate::google::escaped(tenant);
        let url = parse(&format!("{authority}/{tenant}/oauth2/v2.0/token"))?;
        let scope = format!("{}/.default", self.resource);
        let mut fields = vec![
            ("client_id", client),
            ("scope", scope.as_str()),
            ("grant_type", "client_credentials"),
        ];
        fields.extend_from_slice(proof);
        token(&self.surroundings.fetcher.send(form(url, &fields)?).await?)
    }

    async fn app_service(&self, endpoint: &str) -> Result<Lease<SecretString>, String> {
        let mut url = parse(endpoint)?;
        url.query_pairs_mut()
            .append_pair("api-version", "2019-08-01")
            .append_pair("resource", self.resource);
        let header = self.surroundings.variable("IDENTITY_HEADER");
        let asked = get(url, &[("x-identity-header", header.unwrap_or_default())])?;
        token(&self.surroundings.fetcher.nearby(asked).await?)
    }

    async fn machine(&self) -> Result<Lease<SecretString>, String> {
        let mut url = parse(&format!("{MACHINES}/metadata/identity/oauth2/token"))?;
        url.query_pairs_mut()
            .append_pair("api-version", "2018-02-01")
            .append_pair("resource", self.resource);
        if let Some(client) = self.surroundings.variable("AZURE_CLIENT_ID") {
            url.query_pairs_mut().append_pair("client_id", client);
        }
        let mut reason = String::new();
        for _ in 0..METADATA_TRIES {
            let asked = get(url.clone(), &[("metadata", "true")])?;
            match self.surroundings.fetcher.nearby(asked).await {
                Ok(answer) => return token(&answer),
                Err(failure) => reason = failure,
            }
        }
        Err(format!("this is no machine of Azure's ({reason})"))
    }

    /// Whoever is logged in with `az`.
    async fn command_line(&self) -> Result<Lease<SecretString>, String> {
        let line = format!(
            "az account get-access-token --output json --resource {}",
            self.resource
        );
        let printed = self.surroundings.run(line, PROGRAM_LIMIT).await;
        let printed = printed.map_err(|reason| {
            format!("no variables hold any, and `az account get-access-token` failed ({reason})")
        })?;
        let document: Value = serde_json::from_str(&printed).unwrap_or_default();
        match document.get("accessToken").and_then(Value::as_str) {
            Some(secret) => Ok(Lease {
                value: secret.into(),
                expires: document
                    .get("expires_on")
                    .and_then(Value::as_i64)
                    .and_then(|second| Timestamp::from_second(second).ok()),
            }),
            None => Err("`az account get-access-token` printed no token".to_owned()),
        }
    }
}

fn token(answer: &Fetched) -> Result<Lease<SecretString>, String> {
    let document = answer.json().filter(|_| answer.is_success());
    let secret = document
        .as_ref()
        .and_then(|body| body.get("access_token")?.as_str());
    let (Some(document), Some(secret)) = (&document, secret) else {
        return Err(format!("no token was given ({})", answer.complaint()));
    };
    // Machines write numbers as texts.
    let number = |name: &str| match document.get(name)? {
        Value::String(text) => text.parse().ok(),
        other => other.as_i64(),
    };
    let expires = match (number("expires_on"), number("expires_in")) {
        (Some(second), _) => Timestamp::from_second(second).ok(),
        (None, Some(seconds)) => Some(Timestamp::now() + SignedDuration::from_secs(seconds)),
        (None, None) => None,
    };
    Ok(Lease {
        value: secret.into(),
        expires,
    })
}
