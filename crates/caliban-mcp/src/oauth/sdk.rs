//! The SDK's OAuth client behind what this crate needs of it: no type of the SDK gets out, and
//! nothing goes to an address we would not send a secret to.

use caliban_http::install_crypto;
use rmcp::transport::auth::{
    AuthError as SdkError, AuthorizationManager, AuthorizationMetadata, CredentialStore,
    InMemoryCredentialStore, OAuthClientConfig, OAuthTokenResponse, StoredCredentials,
};
use serde_json::{Value, json};
use url::Url;

use super::address::{endpoint, shown};
use super::record::{Record, Secret, Tokens};
use super::server::{Client, Identity, OauthServer};

/// The name that people see when they are asked to consent.
const CLIENT_NAME: &str = "caliban";
/// Asks for a refresh token, where a server knows it.
const OFFLINE: &str = "offline_access";

/// What the token endpoint gave.
pub(crate) struct Granted {
    pub(crate) access: String,
    pub(crate) refresh: Option<String>,
    pub(crate) expires_in: Option<u64>,
    pub(crate) scopes: Vec<String>,
}

#[derive(Debug)]
pub(crate) enum RenewalError {
    /// The refresh token is worth nothing any more.
    Rejected,
    /// The tokens are not this authorization server's, and are not shown to it.
    OtherIssuer,
    /// It may work another time.
    Failed(String),
}

/// A conversation with the authorization server of one server.
pub(crate) struct Negotiation {
    manager: AuthorizationManager,
    authorization_endpoint: Url,
    pub(crate) token_endpoint: Url,
    pub(crate) issuer: Option<String>,
    supported_scopes: Vec<String>,
    /// In manual mode there is no metadata that could name the issuer.
    is_manual: bool,
}

impl std::fmt::Debug for Negotiation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Negotiation")
            .field("issuer", &self.issuer)
            .field("token_endpoint", &self.token_endpoint)
            .finish_non_exhaustive()
    }
}

impl Negotiation {
    /// Finds the authorization server, from what the server said when it refused a request or from
    /// the places where it is told.
    pub(crate) async fn open(
        server: &OauthServer,
        challenge: Option<&str>,
    ) -> Result<Self, String> {
        install_crypto();
        let mut manager = AuthorizationManager::new(server.url.clone())
            .await
            .map_err(reason)?;
        let (metadata, is_manual) = match &server.client {
            Client::Registered | Client::Known(_) => {
                let resolution = manager
                    .resolve_metadata_from_challenge(challenge)
                    .await
                    .map_err(reason)?;
                (resolution.metadata, false)
            }
            Client::Manual {
                authorization_endpoint,
                token_endpoint,
                ..
            } => {
                let mut metadata = AuthorizationMetadata::default();
                metadata.authorization_endpoint = authorization_endpoint.to_string();
                metadata.token_endpoint = token_endpoint.to_string();
                (metadata, true)
            }
        };
        let checked = |what: &str, text: &str| {
            endpoint(text, &server.url)
                .map_err(|reason| format!("its {what} endpoint cannot be used: {reason}"))
        };
        let authorization_endpoint = checked("authorization", &metadata.authorization_endpoint)?;
        let token_endpoint = checked("token", &metadata.token_endpoint)?;
        if let Some(registration) = &metadata.registration_endpoint {
            checked("registration", registration)?;
        }
        let issuer = metadata.issuer.clone();
        let supported_scopes = metadata.scopes_supported.clone().unwrap_or_default();
        manager.set_metadata(metadata);
        Ok(Self {
            manager,
            authorization_endpoint,
            token_endpoint,
            issuer,
            supported_scopes,
            is_manual,
        })
    }

    /// What to ask for: what the operator wants, else what the server suggests; after a lack of
    /// scope, what there was and what was missing.
    pub(crate) async fn scopes(
        &self,
        configured: &[String],
        earlier: Option<&Record>,
    ) -> Vec<String> {
        let mut scopes = match (configured, earlier) {
            ([], Some(record)) if !record.missed.is_empty() => {
                let granted = record.tokens.iter().flat_map(|tokens| &tokens.scopes);
                granted.chain(&record.missed).cloned().collect()
            }
            ([], _) => self.manager.select_initial_scopes(&[]).await,
            (configured, _) => configured.to_vec(),
        };
        let is_known = self.supported_scopes.iter().any(|scope| scope == OFFLINE);
        if is_known && !scopes.is_empty() {
            scopes.push(OFFLINE.to_owned());
        }
        let mut seen = Vec::new();
        scopes.retain(|scope| {
            let is_new = !seen.contains(scope);
            seen.push(scope.clone());
            is_new
        });
        scopes
    }

    /// Becomes a client of the authorization server: the configured one, or a new one.
    pub(crate) async fn identify(
        &mut self,
        client: &Client,
        redirect_uri: &str,
        scopes: &[String],
    ) -> Result<Identity, String> {
        match client {
            Client::Known(identity) | Client::Manual { identity, .. } => {
                self.configure(identity, redirect_uri)?;
                Ok(identity.clone())
            }
            Client::Registered => {
                let registered = self
                    .manager
                    .register_client(CLIENT_NAME, redirect_uri, &borrowed(scopes))
                    .await
                    .map_err(|error| {
                        format!(
                            "{}; if the service gave you a client id, set it as `oauth_config.client_id`",
                            reason(error)
                        )
                    })?;
                Ok(Identity {
                    id: registered.client_id,
                    secret: registered.client_secret,
                })
            }
        }
    }

    fn configure(&mut self, identity: &Identity, redirect_uri: &str) -> Result<(), String> {
        let mut config = OAuthClientConfig::new(&identity.id, redirect_uri);
        if let Some(secret) = &identity.secret {
            config = config.with_client_secret(secret);
        }
        self.manager.configure_client(config).map_err(reason)
    }

    /// Where the person consents; PKCE, state and resource included.
    pub(crate) async fn authorization_url(&self, scopes: &[String]) -> Result<Url, String> {
        let text = self
            .manager
            .get_authorization_url(&borrowed(scopes))
            .await
            .map_err(reason)?;
        Url::parse(&text).map_err(|error| error.to_string())
    }

    /// Exchanges a code for tokens, if it comes from the issuer that was asked.
    pub(crate) async fn exchange(
        &self,
        code: &str,
        state: &str,
        issuer: Option<&str>,
    ) -> Result<Granted, String> {
        let issuer = match issuer {
            Some(issuer) if self.is_manual => {
                let claimed = Url::parse(issuer).map(|url| url.origin());
                if claimed.as_ref() != Ok(&self.authorization_endpoint.origin()) {
                    return Err(format!(
                        "the answer comes from another issuer, `{}`",
                        shown(issuer)
                    ));
                }
                None
            }
            issuer => issuer,
        };
        let response = self
            .manager
            .exchange_code_for_token_with_issuer(code, state, issuer)
            .await
            .map_err(reason)?;
        self.granted(&response).await
    }

    /// Exchanges the refresh token for new tokens.
    pub(crate) async fn refresh(
        &mut self,
        record: &Record,
        tokens: &Tokens,
    ) -> Result<Granted, RenewalError> {
        let is_same = match (&record.issuer, &self.issuer) {
            (Some(then), Some(now)) => then == now,
            (None, None) => record.token_endpoint == self.token_endpoint.as_str(),
            (Some(_), None) | (None, Some(_)) => false,
        };
        if !is_same {
            return Err(RenewalError::OtherIssuer);
        }
        let failed = RenewalError::Failed;
        let identity = Identity {
            id: record.client_id.clone(),
            secret: record.client_secret.0.clone(),
        };
        // No redirect happens; the SDK wants an address nonetheless.
        self.configure(&identity, "http://127.0.0.1/callback")
            .map_err(failed)?;
        let response: OAuthTokenResponse = serde_json::from_value(json!({
            "access_token": tokens.access,
            "token_type": "bearer",
            "refresh_token": tokens.refresh.0,
        }))
        .map_err(|error| failed(error.to_string()))?;
        let store = InMemoryCredentialStore::new();
        let credentials =
            StoredCredentials::new(identity.id, Some(response), tokens.scopes.clone(), None);
        store
            .save(credentials)
            .await
            .map_err(|error| failed(reason(error)))?;
        self.manager.set_credential_store(store);
        match self.manager.refresh_token().await {
            Ok(response) => self.granted(&response).await.map_err(failed),
            Err(SdkError::TokenRefreshRejected(_)) => Err(RenewalError::Rejected),
            Err(error) => Err(failed(reason(error))),
        }
    }

    async fn granted(&self, response: &OAuthTokenResponse) -> Result<Granted, String> {
        let value = serde_json::to_value(response).map_err(|error| error.to_string())?;
        let text = |key: &str| value[key].as_str().map(str::to_owned);
        let kind = text("token_type").unwrap_or_default();
        if !kind.eq_ignore_ascii_case("bearer") {
            return Err(format!("it issues `{}` tokens", shown(&kind)));
        }
        let access = text("access_token").filter(|token| is_header_safe(token));
        Ok(Granted {
            access: access.ok_or("it issued a token that cannot be sent")?,
            refresh: text("refresh_token").filter(|token| !token.is_empty()),
            expires_in: value.get("expires_in").and_then(Value::as_u64),
            scopes: self.manager.get_current_scopes().await,
        })
    }
}

impl Granted {
    pub(crate) fn tokens(self, now: jiff::Timestamp) -> Tokens {
        let expires_at = self.expires_in.and_then(|seconds| {
            let seconds = i64::try_from(seconds).ok()?;
            now.checked_add(jiff::SignedDuration::from_secs(seconds))
                .ok()
        });
        Tokens {
            access: self.access,
            refresh: Secret(self.refresh),
            issued_at: now,
            expires_at,
            scopes: self.scopes,
        }
    }
}

/// A token goes into a header as it is.
fn is_header_safe(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
}

fn borrowed(scopes: &[String]) -> Vec<&str> {
    scopes.iter().map(String::as_str).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn reason(error: SdkError) -> String {
    shown(&error.to_string().replace('\n', " "))
}
