//! The schema of the protocol, made from its own crate, and the types themselves: what is written
//! must fit the schema and lose nothing when it is read.

use std::collections::HashMap;
use std::sync::OnceLock;

use agent_client_protocol_schema::v1::{
    CancelRequestNotification, CloseSessionResponse, CreateElicitationRequest,
    DeleteSessionResponse, Error, InitializeResponse, ListSessionsResponse, LoadSessionResponse,
    LogoutResponse, NewSessionResponse, PromptResponse, RequestPermissionRequest,
    ResumeSessionResponse, SessionNotification, SetSessionConfigOptionResponse,
    SetSessionModeResponse,
};
use jsonschema::Validator;
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Holds a value to the schema of one kind of message.
type Check = Box<dyn Fn(&Value) + Send + Sync>;

fn check<T: JsonSchema + Serialize + DeserializeOwned>() -> Check {
    let schema = serde_json::to_value(schema_for!(T)).unwrap();
    let validator: Validator = jsonschema::validator_for(&schema).unwrap();
    Box::new(move |value| {
        if let Err(error) = validator.validate(value) {
            panic!("{error}: {value:#}");
        }
        let read: T = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(
            serde_json::to_value(read).unwrap(),
            *value,
            "something is lost"
        );
    })
}

fn checks() -> &'static HashMap<&'static str, Check> {
    static CHECKS: OnceLock<HashMap<&'static str, Check>> = OnceLock::new();
    CHECKS.get_or_init(|| {
        HashMap::from([
            ("initialize", check::<InitializeResponse>()),
            ("logout", check::<LogoutResponse>()),
            ("session/new", check::<NewSessionResponse>()),
            ("session/load", check::<LoadSessionResponse>()),
            ("session/resume", check::<ResumeSessionResponse>()),
            ("session/list", check::<ListSessionsResponse>()),
            ("session/close", check::<CloseSessionResponse>()),
            ("session/delete", check::<DeleteSessionResponse>()),
            ("session/set_mode", check::<SetSessionModeResponse>()),
            (
                "session/set_config_option",
                check::<SetSessionConfigOptionResponse>(),
            ),
            ("session/prompt", check::<PromptResponse>()),
            ("session/update", check::<SessionNotification>()),
            (
                "session/request_permission",
                check::<RequestPermissionRequest>(),
            ),
            ("elicitation/create", check::<CreateElicitationRequest>()),
            ("$/cancel_request", check::<CancelRequestNotification>()),
            ("error", check::<Error>()),
        ])
    })
}

fn hold(kind: &str, value: &Value) {
    let check = checks()
        .get(kind)
        .unwrap_or_else(|| panic!("nobody may write `{kind}`"));
    check(value);
}

/// Reads a line of the program; what is no answer is held to its schema here.
pub(crate) fn read(line: &str) -> Value {
    let frame: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    assert_eq!(frame["jsonrpc"], "2.0", "{frame}");
    if let Some(error) = frame.get("error") {
        hold("error", error);
    }
    if let Some(method) = frame["method"].as_str() {
        hold(method, &frame["params"]);
        let is_request = matches!(method, "session/request_permission" | "elicitation/create");
        assert_eq!(frame.get("id").is_some(), is_request, "{frame}");
    } else {
        assert!(frame.get("id").is_some(), "{frame}");
    }
    frame
}

/// Holds the answer to a request of this method to its schema.
pub(crate) fn hold_result(method: &str, frame: &Value) {
    match (frame.get("result"), frame.get("error")) {
        (Some(result), None) => hold(method, result),
        (None, Some(_)) => {}
        _ => panic!("neither a result nor an error: {frame}"),
    }
}
