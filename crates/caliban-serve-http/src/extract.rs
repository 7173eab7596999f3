//! What requests bring, read by axum and refused in our own words: every problem has a code.

use std::error::Error;

use axum::extract::rejection::{BytesRejection, JsonRejection, PathRejection, QueryRejection};
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{FromRequest, FromRequestParts, Request, WebSocketUpgrade};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;

use crate::body::TooSlow;
use crate::problem::Refusal;

/// Names in the path.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

/// What stands behind the path.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

/// The body, as JSON.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

/// The body, as JSON; nothing where there is none.
#[derive(Debug)]
pub(crate) struct MaybeJson<T>(pub(crate) T);

/// The body, as it is.
#[derive(Debug)]
pub(crate) struct Bytes(pub(crate) axum::body::Bytes);

/// The wish for a WebSocket.
#[derive(Debug)]
pub(crate) struct Upgrade(pub(crate) WebSocketUpgrade);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let read = axum::extract::Path::from_request_parts(parts, state).await;
        let axum::extract::Path(path) = read?;
        Ok(Self(path))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let read = axum::extract::Query::from_request_parts(parts, state).await;
        let axum::extract::Query(query) = read?;
        Ok(Self(query))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let upgrade = WebSocketUpgrade::from_request_parts(parts, state).await?;
        Ok(Self(upgrade))
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        if let Some(refusal) = no_json(request.headers()) {
            return Err(refusal);
        }
        let Bytes(body) = Bytes::from_request(request, state).await?;
        Ok(Self(object(&body)?))
    }
}

/// Whether a body says that it is something else.
fn no_json(headers: &HeaderMap) -> Option<Refusal> {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let is_json =
        kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"));
    (!is_json).then(|| {
        Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "bad_request",
            "send the body as `Content-Type: application/json`",
        )
    })
}

/// Reads an object. A list would do for the reader of a type with fields, and means nothing here.
fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    if first.is_some_and(|byte| *byte != b'{') {
        return Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "bad_request",
            "the body must be a JSON object",
        ));
    }
    let axum::Json(read) = axum::Json::from_bytes(body)?;
    Ok(read)
}

impl<S: Send + Sync, T: DeserializeOwned + Default> FromRequest<S> for MaybeJson<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let Bytes(body) = Bytes::from_request(request, state).await?;
        if body.is_empty() {
            return Ok(Self(T::default()));
        }
        Ok(Self(object(&body)?))
    }
}

impl<S: Send + Sync> FromRequest<S> for Bytes {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let body = axum::body::Bytes::from_request(request, state).await?;
        Ok(Self(body))
    }
}

/// A refusal of something that could not be read.
fn refused(status: StatusCode, text: String, error: &(dyn Error + 'static)) -> Refusal {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<TooSlow>() {
            let status = StatusCode::REQUEST_TIMEOUT;
            return Refusal::new(status, "too_slow", error.to_string());
        }
        cause = error.source();
    }
    let code = match status {
        StatusCode::PAYLOAD_TOO_LARGE => "too_large",
        StatusCode::UPGRADE_REQUIRED => "no_websocket",
        _ => "bad_request",
    };
    Refusal::new(status, code, text)
}

macro_rules! refusals {
    ($($rejection:ty),+) => {$(
        impl From<$rejection> for Refusal {
            fn from(rejection: $rejection) -> Self {
                refused(rejection.status(), rejection.body_text(), &rejection)
            }
        }
    )+};
}

refusals!(
    BytesRejection,
    JsonRejection,
    PathRejection,
    QueryRejection,
    WebSocketUpgradeRejection
);
