//! A login: the address for the browser, and what comes back.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use url::Url;

use super::callback::{Answer, Callback};
use super::challenge::probe;
use super::keeper::Inner;
use super::record::{Key, Record, Secret};
use super::sdk::Negotiation;
use super::server::{Client, Identity};
use crate::authorization::AuthError;

/// A login that waits for a person.
#[derive(Debug)]
pub struct Login {
    oauth: Arc<Inner>,
    server: String,
    key: Key,
    negotiation: Negotiation,
    identity: Identity,
    callback: Callback,
    url: Url,
    state: String,
}

/// What a login came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedIn {
    /// When the first token ends; most are renewed then.
    pub expires_at: Option<Timestamp>,
    pub scopes: Vec<String>,
}

impl Login {
    pub(super) async fn begin(oauth: Arc<Inner>, name: &str, port: u16) -> Result<Self, AuthError> {
        let failed = |reason: String| AuthError::Login {
            server: name.to_owned(),
            reason,
        };
        let server = oauth
            .server(name)
            .ok_or_else(|| failed("it is not configured with OAuth".to_owned()))?
            .clone();
        let callback = Callback::bind(port)
            .await
            .map_err(|error| failed(format!("cannot listen on 127.0.0.1:{port}: {error}")))?;
        let key = Key::new(name, &server.url);
        let earlier = oauth.load(&key).await?;
        let challenge = match (&server.client, oauth.challenge(name)) {
            (Client::Manual { .. }, _) => None,
            (Client::Registered | Client::Known(_), Some(known)) => Some(known),
            (Client::Registered | Client::Known(_), None) => probe(&server.url).await,
        };
        let mut negotiation = Negotiation::open(&server, challenge.as_deref())
            .await
            .map_err(failed)?;
        let scopes = negotiation.scopes(&server.scopes, earlier.as_ref()).await;
        let redirect_uri = callback.redirect_uri();
        let identity = negotiation
            .identify(&server.client, &redirect_uri, &scopes)
            .await
            .map_err(failed)?;
        let url = negotiation
            .authorization_url(&scopes)
            .await
            .map_err(failed)?;
        let state = url
            .query_pairs()
            .find(|(key, _)| key == "state")
            .map(|(_, value)| value.into_owned())
            .ok_or_else(|| failed("the address for the browser has no state".to_owned()))?;
        Ok(Self {
            oauth,
            server: name.to_owned(),
            key,
            negotiation,
            identity,
            callback,
            url,
            state,
        })
    }

    /// Where the person consents: https, or on this machine.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Waits for the browser to come back, and keeps the tokens.
    pub async fn finish(self, patience: Duration) -> Result<LoggedIn, AuthError> {
        let failed = |reason: String| AuthError::Login {
            server: self.server.clone(),
            reason,
        };
        let answer = self
            .callback
            .wait(&self.state, patience)
            .await
            .map_err(|error| failed(error.to_string()))?;
        let (code, issuer) = match answer {
            Answer::Code { code, issuer } => (code, issuer),
            Answer::Refusal(error) => {
                return Err(failed(format!("the authorization server said `{error}`")));
            }
        };
        let granted = self
            .negotiation
            .exchange(&code, &self.state, issuer.as_deref())
            .await
            .map_err(failed)?;
        let now = self.oauth.now();
        let tokens = granted.tokens(now);
        let outcome = LoggedIn {
            expires_at: tokens.expires_at,
            scopes: tokens.scopes.clone(),
        };
        let record = Record {
            client_id: self.identity.id,
            client_secret: Secret(self.identity.secret),
            issuer: self.negotiation.issuer.clone(),
            token_endpoint: self.negotiation.token_endpoint.to_string(),
            tokens: Some(tokens),
            missed: Vec::new(),
            saved_at: now,
        };
        let _turn = self.oauth.turn(&self.key).await?;
        self.oauth.save(&self.key, record).await?;
        self.oauth.forget_handed_out(&self.server);
        Ok(outcome)
    }
}
