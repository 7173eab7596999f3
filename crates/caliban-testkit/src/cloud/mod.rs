//! Cloud platforms: the same families behind other paths, proofs, framings and errors.

mod converse;
mod event_stream;

pub(crate) use converse::{check, document, events};
pub(crate) use event_stream::{event, exception};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::ask::{Ask, Mode};
use crate::fault::{ErrorKind, Rejection};
use crate::http::{Persistence, Request};
use crate::record::Api;

/// The version of Claude's API that each platform insists on.
const BEDROCK_VERSION: &str = "bedrock-2023-05-31";
const VERTEX_VERSION: &str = "vertex-2023-10-16";

/// Which wrapping a call has, and the model in its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wrapped {
    BedrockMessages(String),
    BedrockConverse(String),
    VertexMessages(String),
}

pub(crate) fn wrapped(path: &str) -> Option<Wrapped> {
    if let Some(rest) = path.strip_prefix("/model/") {
        let (model, action) = rest.split_once('/')?;
        let model = decoded(model);
        return match action {
            "invoke-with-response-stream" => Some(Wrapped::BedrockMessages(model)),
            "converse-stream" => Some(Wrapped::BedrockConverse(model)),
            _ => None,
        };
    }
    let (_, rest) = path.split_once("/publishers/anthropic/models/")?;
    let model = rest.strip_suffix(":streamRawPredict")?;
    Some(Wrapped::VertexMessages(decoded(model)))
}

fn decoded(text: &str) -> String {
    let query = format!("v={}", text.replace('+', "%2B"));
    let pair = url::form_urlencoded::parse(query.as_bytes()).next();
    pair.map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

impl Wrapped {
    pub(crate) fn api(&self) -> Api {
        match self {
            Self::BedrockMessages(_) | Self::VertexMessages(_) => Api::AnthropicMessages,
            Self::BedrockConverse(_) => Api::Converse,
        }
    }

    fn mode(&self) -> Mode {
        match self {
            Self::BedrockMessages(_) | Self::BedrockConverse(_) => Mode::EventStream,
            Self::VertexMessages(_) => Mode::Stream,
        }
    }

    /// The call as the family's own server would get it.
    pub(crate) fn unwrap(&self, request: &Request) -> (Request, Result<Ask, Rejection>) {
        let inner = self.inner(request);
        let body = inner.as_ref().map(Value::to_string).unwrap_or_default();
        let ask = inner.map(|body| Ask {
            api: self.api(),
            model: match self {
                Self::BedrockConverse(model) => model.clone(),
                Self::BedrockMessages(model) | Self::VertexMessages(model) => {
                    plain(model).to_owned()
                }
            },
            mode: self.mode(),
            body,
        });
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut headers = vec![
            header("anthropic-version", "2023-06-01"),
            header("content-type", "application/json"),
        ];
        headers.extend(proof(request).map(|proof| header("x-api-key", proof)));
        headers.extend(
            request
                .header("anthropic-beta")
                .map(|betas| header("anthropic-beta", betas)),
        );
        let request = Request {
            method: request.method.clone(),
            path: "/v1/messages".to_owned(),
            headers,
            body: Bytes::from(body),
            persistence: Persistence::Keep,
        };
        (request, ask)
    }

    fn inner(&self, request: &Request) -> Result<Value, Rejection> {
        let body: Value = serde_json::from_slice(&request.body)
            .map_err(|error| Rejection::invalid(format!("malformed body: {error}")))?;
        let (model, version) = match self {
            Self::BedrockConverse(_) => return Ok(body),
            Self::BedrockMessages(model) => (model, BEDROCK_VERSION),
            Self::VertexMessages(model) => (model, VERTEX_VERSION),
        };
        let mut body = body;
        let Some(fields) = body.as_object_mut() else {
            return Err(Rejection::invalid("the body is no object"));
        };
        if fields.remove("anthropic_version") != Some(json!(version)) {
            return Err(Rejection::invalid(format!(
                "anthropic_version: must be {version}"
            )));
        }
        if fields.contains_key("model") {
            return Err(Rejection::invalid("model: Extra inputs are not permitted"));
        }
        let streams = fields.get("stream") == Some(&json!(true));
        if streams != (version == VERTEX_VERSION) {
            return Err(Rejection::invalid("stream: Extra inputs are not permitted"));
        }
        if version == BEDROCK_VERSION {
            fields.remove("anthropic_beta");
            if fields.contains_key("metadata") {
                return Err(Rejection::invalid(
                    "metadata: Extra inputs are not permitted",
                ));
            }
        }
        // A decorated name is that of a model that its maker knows by a plain one.
        fields.insert("model".to_owned(), json!(plain(model)));
        fields.insert("stream".to_owned(), json!(true));
        Ok(body)
    }
}

fn plain(model: &str) -> &str {
    let model = model
        .rsplit_once("anthropic.")
        .map_or(model, |(_, name)| name);
    model.split('@').next().unwrap_or(model)
}

/// What shows whose a request is: a signature of AWS, or a bearer's token.
fn proof(request: &Request) -> Option<&str> {
    let value = request.header("authorization")?;
    let signed = value.starts_with("AWS4-HMAC-SHA256 Credential=")
        && value.contains("Signature=")
        && request.header("x-amz-date").is_some();
    if signed {
        return Some(value);
    }
    value.strip_prefix("Bearer ")
}

/// The class of an error, as Bedrock names it before and inside a stream.
pub(crate) fn class(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidRequest | ErrorKind::ContextTooLong | ErrorKind::TooLarge => {
            "ValidationException"
        }
        ErrorKind::Auth => "ExpiredTokenException",
        ErrorKind::Permission => "AccessDeniedException",
        ErrorKind::Billing | ErrorKind::SpendLimit => "ServiceQuotaExceededException",
        ErrorKind::ModelNotFound => "ResourceNotFoundException",
        ErrorKind::RateLimit => "ThrottlingException",
        ErrorKind::Overloaded => "ServiceUnavailableException",
        ErrorKind::Timeout => "ModelTimeoutException",
        ErrorKind::Server => "InternalServerException",
    }
}

/// The same inside a stream.
pub(crate) fn exception_name(kind: ErrorKind) -> &'static str {
    match class(kind) {
        "ThrottlingException" => "throttlingException",
        "ServiceUnavailableException" => "serviceUnavailableException",
        "ModelTimeoutException" => "modelTimeoutException",
        "InternalServerException" => "internalServerException",
        "ValidationException" => "validationException",
        _ => "modelStreamErrorException",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_tell_platform_and_model() {
        assert_eq!(
            wrapped(
                "/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke-with-response-stream"
            ),
            Some(Wrapped::BedrockMessages(
                "us.anthropic.claude-haiku-4-5-20251001-v1:0".into()
            ))
        );
        assert_eq!(
            wrapped(
                "/v1/projects/p/locations/global/publishers/anthropic/models/claude-haiku-4-5@20251001:streamRawPredict"
            ),
            Some(Wrapped::VertexMessages("claude-haiku-4-5@20251001".into()))
        );
        assert_eq!(wrapped("/model/x/invoke"), None);
    }
}
