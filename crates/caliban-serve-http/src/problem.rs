//! Problems as HTTP knows them: `application/problem+json` with a code that stays the same.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use caliban_serve::{Code, Problem};
use serde_json::json;

/// A problem on its way out.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: String,
    detail: String,
    how: Option<String>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code: code.to_owned(),
            detail: detail.into(),
            how: None,
        }
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        let status = match problem.code {
            Code::BadRequest => StatusCode::BAD_REQUEST,
            Code::NoSuchTab | Code::NoSuchRequest | Code::NoSuchQuestion => StatusCode::NOT_FOUND,
            Code::AlreadyAnswered | Code::Conflict | Code::Busy => StatusCode::CONFLICT,
            Code::QueueFull | Code::TooManyTabs => StatusCode::TOO_MANY_REQUESTS,
            Code::Ended => StatusCode::GONE,
            Code::Refused => StatusCode::FORBIDDEN,
            Code::CannotStart | Code::NotKept | Code::Unavailable | Code::ShuttingDown => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        // A code is a word, and written as one.
        let code = serde_json::to_value(problem.code).unwrap_or_default();
        Self {
            status,
            code: code.as_str().unwrap_or_default().to_owned(),
            detail: problem.message,
            how: problem.how,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        if let Some(how) = self.how {
            body["how"] = how.into();
        }
        let mut response = (self.status, Json(body)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        let further = match self.status {
            StatusCode::UNAUTHORIZED => Some((header::WWW_AUTHENTICATE, "Bearer")),
            StatusCode::TOO_MANY_REQUESTS => Some((header::RETRY_AFTER, "1")),
            _ => None,
        };
        if let Some((name, value)) = further {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(name, value);
        }
        response
    }
}
