//! JSON-RPC: a line of the client's taken apart, and lines for it put together.

use std::borrow::Cow;

use agent_client_protocol_schema::v1::{
    AGENT_METHOD_NAMES, AuthenticateRequest, CLIENT_METHOD_NAMES, CancelNotification,
    CancelRequestNotification, CloseSessionRequest, DeleteSessionRequest, Error, InitializeRequest,
    ListSessionsRequest, LoadSessionRequest, NewSessionRequest, PROTOCOL_LEVEL_METHOD_NAMES,
    PromptRequest, RequestId, ResumeSessionRequest, SessionId, SessionNotification, SessionUpdate,
    SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::line::written;

const VERSION: &str = "2.0";

/// What a client says with one line.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    Request {
        id: RequestId,
        call: Box<Call>,
    },
    /// What the session works on is not wanted any more.
    Cancel(SessionId),
    /// This request is not wanted any more.
    CancelRequest(RequestId),
    /// The answer to a request of ours.
    Response {
        id: RequestId,
        answer: Result<Value, Error>,
    },
    /// Something that needs no answer and is not known here.
    Ignored,
}

/// A method with what it is called with.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    Initialize(Box<InitializeRequest>),
    Authenticate(AuthenticateRequest),
    Logout,
    New(NewSessionRequest),
    Load(LoadSessionRequest),
    Resume(ResumeSessionRequest),
    List(ListSessionsRequest),
    Close(CloseSessionRequest),
    Delete(DeleteSessionRequest),
    SetMode(SetSessionModeRequest),
    SetOption(SetSessionConfigOptionRequest),
    Prompt(PromptRequest),
}

/// A line that is no message, and what it is answered with.
#[derive(Debug, Clone, PartialEq)]
pub struct Unusable {
    /// Null where the line does not say.
    pub id: RequestId,
    pub error: Error,
}

impl Unusable {
    /// Something that cannot be read as a message at all.
    pub fn unread(reason: impl Into<String>) -> Self {
        Self {
            id: RequestId::Null,
            error: Error::parse_error().data(Value::String(reason.into())),
        }
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present_text")]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Error>,
}

/// An id that is null is one all the same.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A result that is null is one all the same.
fn present_text<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a line; nothing where it is blank.
pub fn read(line: &str) -> Result<Option<Incoming>, Unusable> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    let envelope: Envelope<'_> = serde_json::from_str(line).map_err(|error| {
        if error.is_data() {
            invalid(RequestId::Null, &error.to_string())
        } else {
            Unusable::unread(error.to_string())
        }
    })?;
    let id = envelope
        .id
        .map(serde_json::from_value::<RequestId>)
        .transpose();
    let id = id.map_err(|_| {
        let reason = "`id` is neither a string nor a whole number";
        invalid(RequestId::Null, reason)
    })?;
    if envelope.jsonrpc.is_some_and(|version| version != VERSION) {
        let reason = "`jsonrpc` is not \"2.0\"";
        return Err(invalid(id.unwrap_or(RequestId::Null), reason));
    }
    let params = envelope.params.map_or("{}", RawValue::get);
    match (envelope.method, id) {
        (Some(method), Some(id)) => match call(&method, params) {
            Ok(call) => Ok(Some(Incoming::Request {
                id,
                call: Box::new(call),
            })),
            Err(error) => Err(Unusable { id, error }),
        },
        (Some(method), None) => Ok(Some(notification(&method, params))),
        (None, Some(id)) => {
            let answer = match (envelope.result, envelope.error) {
                (_, Some(error)) => Err(error),
                (Some(result), None) => Ok(serde_json::from_str(result.get()).unwrap_or_default()),
                (None, None) => {
                    let reason = "it has neither `method` nor `result` nor `error`";
                    return Err(invalid(id, reason));
                }
            };
            Ok(Some(Incoming::Response { id, answer }))
        }
        (None, None) => Err(invalid(RequestId::Null, "it has no `method`")),
    }
}

fn invalid(id: RequestId, reason: &str) -> Unusable {
    let error = Error::invalid_request().data(Value::String(reason.to_owned()));
    Unusable { id, error }
}

fn call(method: &str, params: &str) -> Result<Call, Error> {
    let names = &AGENT_METHOD_NAMES;
    Ok(match method {
        it if it == names.initialize => Call::Initialize(typed(params)?),
        it if it == names.authenticate => Call::Authenticate(typed(params)?),
        it if it == names.logout => Call::Logout,
        it if it == names.session_new => Call::New(typed(params)?),
        it if it == names.session_load => Call::Load(typed(params)?),
        it if it == names.session_resume => Call::Resume(typed(params)?),
        it if it == names.session_list => Call::List(typed(params)?),
        it if it == names.session_close => Call::Close(typed(params)?),
        it if it == names.session_delete => Call::Delete(typed(params)?),
        it if it == names.session_set_mode => Call::SetMode(typed(params)?),
        it if it == names.session_set_config_option => Call::SetOption(typed(params)?),
        it if it == names.session_prompt => Call::Prompt(typed(params)?),
        it => {
            let reason = format!("there is no method `{it}`");
            return Err(Error::method_not_found().data(Value::String(reason)));
        }
    })
}

fn notification(method: &str, params: &str) -> Incoming {
    let known = match method {
        it if it == AGENT_METHOD_NAMES.session_cancel => {
            typed(params).map(|cancel: CancelNotification| Incoming::Cancel(cancel.session_id))
        }
        it if it == PROTOCOL_LEVEL_METHOD_NAMES.cancel_request => typed(params)
            .map(|cancel: CancelRequestNotification| Incoming::CancelRequest(cancel.request_id)),
        _ => Ok(Incoming::Ignored),
    };
    // Nobody waits for an answer to it.
    known.unwrap_or(Incoming::Ignored)
}

fn typed<T: DeserializeOwned>(params: &str) -> Result<T, Error> {
    serde_json::from_str(params)
        .map_err(|error| Error::invalid_params().data(Value::String(error.to_string())))
}

#[derive(Serialize)]
struct Answered<'a, T> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error>,
}

#[derive(Serialize)]
struct Asked<'a, T> {
    jsonrpc: &'static str,
    id: i64,
    method: &'a str,
    params: T,
}

#[derive(Serialize)]
struct Told<'a, T> {
    jsonrpc: &'static str,
    method: &'a str,
    params: T,
}

/// The answer to a request, as a line.
pub fn answered<T: Serialize>(id: &RequestId, answer: Result<T, Error>) -> String {
    let (result, error) = match answer {
        Ok(result) => (Some(result), None),
        Err(error) => (None, Some(error)),
    };
    written(&Answered {
        jsonrpc: VERSION,
        id,
        result,
        error,
    })
}

/// A request of ours, as a line.
pub fn asked<T: Serialize>(id: i64, method: &str, params: &T) -> String {
    written(&Asked {
        jsonrpc: VERSION,
        id,
        method,
        params,
    })
}

/// Something that happened in a session, as a line.
pub fn updated(session: &SessionId, update: SessionUpdate) -> String {
    written(&Told {
        jsonrpc: VERSION,
        method: CLIENT_METHOD_NAMES.session_update,
        params: SessionNotification::new(session.clone(), update),
    })
}

/// A request of ours needs no answer any more, as a line.
pub fn withdrawn(id: i64) -> String {
    written(&Told {
        jsonrpc: VERSION,
        method: PROTOCOL_LEVEL_METHOD_NAMES.cancel_request,
        params: CancelRequestNotification::new(RequestId::Number(id)),
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn code(line: &str) -> (RequestId, i32) {
        let Unusable { id, error } = read(line).unwrap_err();
        (id, error.code.into())
    }

    #[rstest]
    #[case("{", RequestId::Null, -32700)]
    #[case("nonsense", RequestId::Null, -32700)]
    #[case("[]", RequestId::Null, -32600)]
    #[case("7", RequestId::Null, -32600)]
    #[case("{}", RequestId::Null, -32600)]
    #[case(r#"{"id":1.5,"method":"initialize"}"#, RequestId::Null, -32600)]
    #[case(r#"{"id":{},"method":"initialize"}"#, RequestId::Null, -32600)]
    #[case(r#"{"id":4}"#, RequestId::Number(4), -32600)]
    #[case(r#"{"jsonrpc":"1.0","id":4,"method":"logout"}"#, RequestId::Number(4), -32600)]
    #[case(r#"{"id":"x","method":"_mine/do"}"#, RequestId::Str("x".to_owned()), -32601)]
    #[case(r#"{"id":2,"method":"session/teleport","params":{}}"#, RequestId::Number(2), -32601)]
    #[case(r#"{"id":2,"method":"session/new","params":{"cwd":1}}"#, RequestId::Number(2), -32602)]
    #[case(r#"{"id":2,"method":"session/prompt"}"#, RequestId::Number(2), -32602)]
    fn what_is_wrong_has_its_code_and_the_id_it_came_with(
        #[case] line: &str,
        #[case] id: RequestId,
        #[case] expected: i32,
    ) {
        assert_eq!(code(line), (id, expected), "{line}");
    }

    #[test]
    fn ids_are_told_apart_from_none() {
        let of = |line| match read(line).unwrap().unwrap() {
            Incoming::Request { id, .. } => Some(id),
            Incoming::Ignored => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            of(r#"{"id":null,"method":"logout"}"#),
            Some(RequestId::Null)
        );
        assert_eq!(of(r#"{"method":"logout"}"#), None);
        assert_eq!(of(r#"{"method":"_mine/heard","params":[1]}"#), None);
        assert_eq!(read("  \r\n").unwrap(), None);
    }

    #[test]
    fn notifications_and_answers_are_read() {
        let cancel = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#;
        assert_eq!(
            read(cancel).unwrap(),
            Some(Incoming::Cancel(SessionId::new("s")))
        );
        // Nobody can be told what is wrong with it.
        let broken = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{}}"#;
        assert_eq!(read(broken).unwrap(), Some(Incoming::Ignored));
        let request = r#"{"method":"$/cancel_request","params":{"requestId":"p1"}}"#;
        let expected = Incoming::CancelRequest(RequestId::Str("p1".to_owned()));
        assert_eq!(read(request).unwrap(), Some(expected));
        let answer = |line| match read(line).unwrap().unwrap() {
            Incoming::Response { answer, .. } => answer,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            answer(r#"{"id":3,"result":{"a":1}}"#).unwrap(),
            json!({"a": 1})
        );
        assert_eq!(answer(r#"{"id":3,"result":null}"#).unwrap(), Value::Null);
        let error = answer(r#"{"id":3,"error":{"code":-32603,"message":"no"}}"#);
        assert_eq!(error.unwrap_err().message, "no");
    }

    #[test]
    fn lines_have_the_form_of_json_rpc() {
        let value = |line: String| serde_json::from_str::<Value>(&line).unwrap();
        assert_eq!(
            value(answered(&RequestId::Number(1), Ok(json!({"a": 1})))),
            json!({"jsonrpc": "2.0", "id": 1, "result": {"a": 1}})
        );
        let failed = answered::<Value>(&RequestId::Null, Err(Error::parse_error()));
        assert_eq!(
            value(failed),
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "Parse error"}})
        );
        assert_eq!(
            value(withdrawn(7)),
            json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 7}})
        );
    }
}
