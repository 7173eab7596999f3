//! Requests to servers over HTTP: with their token, to their own origin only, and with answers
//! of bounded size.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_http::{Event, EventTooLarge, Events, Proxies, causes};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use url::Url;

use super::{MAX_MESSAGE, TooLarge};
use crate::authorization::Authorization;
use crate::endpoint::Address;
use crate::text;

/// How often a server may send a request on within its own origin.
const MAX_REDIRECTS: usize = 5;
/// How much of an answer that is no message is read and shown.
const MAX_COMPLAINT: usize = 4096;
const SHOWN_COMPLAINT: usize = 300;

/// A server's address and everything that asking it takes.
#[derive(Debug, Clone)]
pub(crate) struct Web {
    client: Client,
    server: Arc<str>,
    address: Address,
    authorization: Option<Arc<dyn Authorization>>,
    refusal: Arc<Mutex<Option<String>>>,
}

#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum WebError {
    /// Somebody has to log in.
    #[error("{0}")]
    NeedsAuth(String),
    #[error("{0}")]
    Failed(String),
}

impl Web {
    pub(crate) fn new(
        server: Arc<str>,
        address: Address,
        authorization: Option<Arc<dyn Authorization>>,
        connect_timeout: Duration,
    ) -> Result<Self, WebError> {
        let client = client(&address.url, connect_timeout).map_err(|error| {
            WebError::Failed(format!("the HTTP client cannot be set up: {error}"))
        })?;
        Ok(Self {
            client,
            server,
            address,
            authorization,
            refusal: Arc::default(),
        })
    }

    pub(crate) fn url(&self) -> &Url {
        &self.address.url
    }

    /// Why the server wants somebody to log in, if it does.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.refusal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Sends a request, and once more with another token if the first is refused.
    pub(crate) async fn send(
        &self,
        request: impl Fn(&Client) -> RequestBuilder + Send + Sync,
    ) -> Result<Response, WebError> {
        let authorization = self
            .authorization
            .as_ref()
            .filter(|_| !self.address.headers.contains_key(AUTHORIZATION));
        let token = match authorization {
            Some(authorization) => authorization
                .token(&self.server, &self.address.url)
                .await
                .map_err(|error| self.refused(&error.to_string()))?,
            None => None,
        };
        let response = self.attempt(request(&self.client), token).await?;
        if !wants_another_token(&response) {
            return checked(response);
        }
        let challenge = response
            .headers()
            .get(WWW_AUTHENTICATE)
            .and_then(|header| header.to_str().ok());
        let other = match authorization {
            Some(authorization) => authorization
                .refused(&self.server, &self.address.url, challenge)
                .await
                .map_err(|error| self.refused(&error.to_string()))?,
            None => None,
        };
        let Some(other) = other else {
            let code = response.status().as_u16();
            return Err(self.refused(&format!("the server wants a login (HTTP {code})")));
        };
        let response = self.attempt(request(&self.client), Some(other)).await?;
        if wants_another_token(&response) {
            let code = response.status().as_u16();
            return Err(self.refused(&format!("the server refuses the token (HTTP {code})")));
        }
        checked(response)
    }

    async fn attempt(
        &self,
        request: RequestBuilder,
        token: Option<String>,
    ) -> Result<Response, WebError> {
        let request = request.headers(self.address.headers.clone());
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        request
            .send()
            .await
            .map_err(|error| WebError::Failed(chain(&error)))
    }

    fn refused(&self, reason: &str) -> WebError {
        let reason = text::line(reason, SHOWN_COMPLAINT);
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.clone());
        WebError::NeedsAuth(reason)
    }
}

/// Whether the server refuses the token, or what it allows.
fn wants_another_token(response: &Response) -> bool {
    let names_scope = || {
        let challenge = response.headers().get(WWW_AUTHENTICATE);
        challenge
            .and_then(|header| header.to_str().ok())
            .is_some_and(|challenge| challenge.contains("insufficient_scope"))
    };
    match response.status() {
        StatusCode::UNAUTHORIZED => true,
        StatusCode::FORBIDDEN => names_scope(),
        _ => false,
    }
}

/// Refuses what the client did not follow: an address elsewhere, which must be written down to
/// be trusted with a token.
fn checked(response: Response) -> Result<Response, WebError> {
    if !response.status().is_redirection() {
        return Ok(response);
    }
    let target = response
        .headers()
        .get(LOCATION)
        .and_then(|location| location.to_str().ok())
        .map_or_else(
            || "nowhere".to_owned(),
            |location| text::line(location, 200),
        );
    Err(WebError::Failed(format!(
        "the server redirects to `{target}`, which is not followed; if that is right, set `url` to it"
    )))
}

/// What kind of answer a response holds.
pub(crate) fn content_type(response: &Response) -> &str {
    response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// Reads a whole message.
pub(crate) async fn message(response: Response) -> Result<Vec<u8>, WebError> {
    body(response, MAX_MESSAGE)
        .await?
        .map_err(|TooLarge| WebError::Failed(TooLarge.to_string()))
}

/// What a server says in an answer that is no message.
pub(crate) async fn complaint(response: Response) -> String {
    let status = response.status();
    let said = match body(response, MAX_COMPLAINT).await {
        Ok(Ok(body)) => text::line(&String::from_utf8_lossy(&body), SHOWN_COMPLAINT),
        Ok(Err(TooLarge)) | Err(_) => String::new(),
    };
    match said.as_str() {
        "" => format!("the server answered HTTP {status}"),
        said => format!("the server answered HTTP {status}: {said}"),
    }
}

async fn body(
    mut response: Response,
    longest: usize,
) -> Result<Result<Vec<u8>, TooLarge>, WebError> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(None) => return Ok(Ok(body)),
            Ok(Some(piece)) if body.len() + piece.len() <= longest => {
                body.extend_from_slice(&piece);
            }
            Ok(Some(_)) => return Ok(Err(TooLarge)),
            Err(error) => return Err(WebError::Failed(chain(&error))),
        }
    }
}

/// The events of a response, to its end or its first error.
pub(crate) fn events(response: Response) -> BoxStream<'static, Result<Event, WebError>> {
    struct Reading {
        response: Option<Response>,
        events: Events,
        ready: VecDeque<Event>,
    }
    let reading = Reading {
        response: Some(response),
        events: Events::default(),
        ready: VecDeque::new(),
    };
    stream::unfold(reading, async |mut reading| {
        loop {
            if let Some(event) = reading.ready.pop_front() {
                return Some((Ok(event), reading));
            }
            let problem = match reading.response.as_mut()?.chunk().await {
                Ok(None) => return None,
                Ok(Some(bytes)) => {
                    let ready = &mut reading.ready;
                    match reading.events.push(&bytes, |event| ready.push_back(event)) {
                        Ok(()) => continue,
                        Err(EventTooLarge) => TooLarge.to_string(),
                    }
                }
                Err(error) => chain(&error),
            };
            reading.response = None;
            return Some((Err(WebError::Failed(problem)), reading));
        }
    })
    .boxed()
}

fn client(url: &Url, connect_timeout: Duration) -> reqwest::Result<Client> {
    caliban_http::builder(url, Proxies::NotForThisMachine)
        .connect_timeout(connect_timeout)
        .tcp_keepalive(Duration::from_secs(30))
        .tcp_nodelay(true)
        .redirect(Policy::custom(|attempt| {
            let is_same_request = matches!(
                attempt.status(),
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            );
            let is_home = attempt
                .previous()
                .first()
                .is_some_and(|first| first.origin() == attempt.url().origin());
            if is_same_request && is_home && attempt.previous().len() <= MAX_REDIRECTS {
                attempt.follow()
            } else {
                attempt.stop()
            }
        }))
        .build()
}

/// An error with its causes, without the address, which may hold a secret.
fn chain(error: &reqwest::Error) -> String {
    let problem = match error {
        error if error.is_connect() => "the server cannot be reached",
        error if error.is_timeout() => "the server did not answer in time",
        _ => "the exchange with the server failed",
    };
    let problem = match std::error::Error::source(error) {
        Some(cause) => format!("{problem}: {}", causes(cause)),
        None => problem.to_owned(),
    };
    text::line(&problem, SHOWN_COMPLAINT)
}
