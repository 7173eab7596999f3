//! The description of the resources, as `OpenAPI` 3.1: made from the types that read and write them.

use caliban_serve::{Heard, Open, Opened, Problem, PromptView, Saved, Settled, TabView};
use schemars::generate::SchemaSettings;
use schemars::transform::RestrictFormats;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::routes::{Change, Interrupting, Login, NewAnswer, NewPrompt, Prompt};

/// One session, and one prompt of it.
const ONE: &str = "/v1/sessions/{id}";
const PAGE: &[(&str, &str)] = &[("cursor", "string"), ("limit", "integer")];
const PROMPT: &str = "/v1/sessions/{id}/prompts/{prompt}";

/// What can be done at a path.
struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    takes: Option<Value>,
    /// The status when it goes well, and what comes then.
    gives: (&'static str, Option<Value>),
    /// Another status with the same, and when it comes.
    also: Option<(&'static str, &'static str)>,
    query: &'static [(&'static str, &'static str)],
}

/// The document.
pub fn openapi() -> Value {
    let settings = || {
        let mut settings =
            SchemaSettings::draft2020_12().with_transform(RestrictFormats::default());
        settings.definitions_path = "/components/schemas".into();
        settings
    };
    let mut read = settings().for_deserialize().into_generator();
    let mut written = settings().for_serialize().into_generator();
    let operations = operations(&mut read, &mut written);
    let mut paths: Map<String, Value> = Map::new();
    for operation in &operations {
        let place = paths
            .entry(operation.path)
            .or_insert_with(|| json!({"parameters": places(operation.path)}));
        place[operation.method] = described(operation);
    }
    schema::<Problem>(&mut written);
    let mut schemas = written.take_definitions(true);
    for (name, schema) in read.take_definitions(true) {
        schemas.entry(name).or_insert(schema);
    }
    schemas.insert("ProblemDetails".to_owned(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "caliban serve",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions for applications. Every path needs the token of the server, \
                            except over a Unix socket.",
            "license": {"name": "AGPL-3.0-only", "identifier": "AGPL-3.0-only"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn schema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

#[expect(
    clippy::too_many_lines,
    reason = "a table, one entry for each operation"
)]
fn operations(read: &mut SchemaGenerator, written: &mut SchemaGenerator) -> Vec<Operation> {
    let view = schema::<TabView>(written);
    let sent = schema::<Prompt>(written);
    let settled = schema::<Settled>(written);
    let list = json!({"type": "object", "properties": {
        "sessions": {"type": "array", "items": view}, "cursor": {"type": ["string", "null"]}}});
    let saved = json!({"type": "object", "properties": {
        "sessions": {"type": "array", "items": schema::<Saved>(written)},
        "cursor": {"type": ["string", "null"]}}});
    let prompts = json!({"type": "object", "properties": {
        "prompts": {"type": "array", "items": schema::<PromptView>(written)}}});
    let some = |name: &str| Some(json!({"type": "object", "required": [name]}));
    let stream = Some(json!({"type": "string", "contentMediaType": "text/event-stream"}));
    schema::<Heard>(written);
    let operation = |method, path, summary, takes, gives| Operation {
        method,
        path,
        summary,
        takes,
        gives,
        also: None,
        query: &[],
    };
    vec![
        operation(
            "get",
            "/healthz",
            "Whether it is there.",
            None,
            ("200", some("ok")),
        ),
        operation(
            "post",
            "/v1/login",
            "A cookie for a page that has the token.",
            Some(schema::<Login>(read)),
            ("204", None),
        ),
        operation(
            "get",
            "/v1/openapi.json",
            "This document.",
            None,
            ("200", some("openapi")),
        ),
        operation(
            "get",
            "/v1/events",
            "The states of all sessions, as they change.",
            None,
            ("200", stream.clone()),
        ),
        operation(
            "get",
            "/v1/ws",
            "The same over a WebSocket.",
            None,
            ("101", None),
        ),
        operation(
            "get",
            "/v1/models",
            "The models that can be chosen from.",
            None,
            ("200", some("models")),
        ),
        Operation {
            query: PAGE,
            ..operation(
                "get",
                "/v1/saved",
                "The sessions that can be gone on with, the newest first.",
                None,
                ("200", Some(saved)),
            )
        },
        Operation {
            query: PAGE,
            ..operation(
                "get",
                "/v1/sessions",
                "The sessions that are open.",
                None,
                ("200", Some(list)),
            )
        },
        operation(
            "post",
            "/v1/sessions",
            "Begins a session, or goes on with an earlier one.",
            Some(schema::<Open>(read)),
            ("201", Some(schema::<Opened>(written))),
        ),
        operation(
            "get",
            ONE,
            "How a session is doing.",
            None,
            ("200", Some(view.clone())),
        ),
        operation(
            "patch",
            ONE,
            "Changes the name, the model, the mode or the effort.",
            Some(schema::<Change>(read)),
            ("200", Some(view)),
        ),
        Operation {
            query: &[("purge", "boolean")],
            ..operation(
                "delete",
                ONE,
                "Ends a session; `purge` also forgets it.",
                None,
                ("200", some("closed")),
            )
        },
        operation(
            "get",
            "/v1/sessions/{id}/prompts",
            "What is worked on and what waits.",
            None,
            ("200", Some(prompts)),
        ),
        Operation {
            query: &[("wait", "boolean")],
            also: Some((
                "200",
                "The same prompt was sent before, or it has ended and `wait` was asked for.",
            )),
            ..operation(
                "post",
                "/v1/sessions/{id}/prompts",
                "Something to work on.",
                Some(schema::<NewPrompt>(read)),
                ("202", Some(sent.clone())),
            )
        },
        Operation {
            query: &[("wait", "boolean")],
            ..operation(
                "get",
                PROMPT,
                "Where a prompt stands.",
                None,
                ("200", Some(sent)),
            )
        },
        operation(
            "delete",
            PROMPT,
            "Takes a prompt back, or interrupts it.",
            None,
            ("200", Some(settled.clone())),
        ),
        operation(
            "post",
            "/v1/sessions/{id}/interrupt",
            "Stops what is worked on.",
            Some(schema::<Interrupting>(read)),
            ("200", Some(settled.clone())),
        ),
        operation(
            "get",
            "/v1/sessions/{id}/questions",
            "What waits for an answer.",
            None,
            ("200", some("questions")),
        ),
        operation(
            "post",
            "/v1/sessions/{id}/questions/{question}",
            "Answers a question.",
            Some(schema::<NewAnswer>(read)),
            ("200", Some(settled)),
        ),
        Operation {
            query: &[("after", "integer"), ("limit", "integer")],
            ..operation(
                "get",
                "/v1/sessions/{id}/messages",
                "What was said, in pages: `next` is the `after` of the next one.",
                None,
                ("200", some("messages")),
            )
        },
        operation(
            "post",
            "/v1/sessions/{id}/blobs",
            "Keeps a picture, which prompts can show by its digest.",
            Some(json!({"type": "string", "contentMediaType": "image/png"})),
            ("201", some("digest")),
        ),
        operation(
            "get",
            "/v1/sessions/{id}/blobs/{digest}",
            "A picture that was uploaded, or is in a message.",
            None,
            (
                "200",
                Some(json!({"type": "string", "contentMediaType": "image/*"})),
            ),
        ),
        Operation {
            query: &[("after", "integer")],
            ..operation(
                "get",
                "/v1/sessions/{id}/events",
                "What happens: after the event that `Last-Event-ID` or `after` names, else a \
                 snapshot and what follows.",
                None,
                ("200", stream),
            )
        },
        Operation {
            query: &[("after", "integer"), ("last", "string")],
            ..operation(
                "get",
                "/v1/sessions/{id}/ws",
                "The line protocol over a WebSocket, one line a message.",
                None,
                ("101", None),
            )
        },
    ]
}

/// The parameters that a path has in braces.
fn places(path: &str) -> Vec<Value> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| {
            json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
        })
        .collect()
}

fn described(operation: &Operation) -> Value {
    let (status, gives) = &operation.gives;
    let mut response = json!({"description": match *status {
        "101" => "It is a WebSocket from here on.",
        "201" => "It was made.",
        "202" => "It was taken, and is worked on or waits for its turn.",
        "204" => "Done; there is nothing to say.",
        _ => "Done.",
    }});
    if let Some(schema) = gives {
        let kind = match schema["contentMediaType"].as_str() {
            Some(kind) => kind.to_owned(),
            None => "application/json".to_owned(),
        };
        response["content"] = json!({kind: {"schema": schema}});
    }
    let problem = json!({
        "description": "A problem, by its code.",
        "content": {"application/problem+json": {
            "schema": {"$ref": "#/components/schemas/ProblemDetails"},
        }},
    });
    let mut described = json!({
        "operationId": identifier(operation),
        "summary": operation.summary,
        "responses": {*status: response, "default": problem},
    });
    if let Some((other, when)) = operation.also {
        let mut response = described["responses"][*status].clone();
        response["description"] = when.into();
        described["responses"][other] = response;
    }
    if operation.method == "get" && operation.path.ends_with("/events") {
        described["parameters"] = json!([{
            "name": "Last-Event-ID", "in": "header", "schema": {"type": "string"},
        }]);
    }
    if let Some(schema) = &operation.takes {
        let kind = schema["contentMediaType"]
            .as_str()
            .unwrap_or("application/json");
        // An interrupt may say nothing more.
        let is_needed = !operation.path.ends_with("/interrupt");
        described["requestBody"] =
            json!({"required": is_needed, "content": {kind: {"schema": schema}}});
    }
    if !operation.query.is_empty() {
        let query = operation
            .query
            .iter()
            .map(|(name, kind)| json!({"name": name, "in": "query", "schema": {"type": kind}}));
        let mut parameters: Vec<Value> = query.collect();
        if let Some(others) = described["parameters"].as_array() {
            parameters.extend(others.iter().cloned());
        }
        described["parameters"] = parameters.into();
    }
    described
}

/// A name for programs that make a client of the document: the method and the parts of the path.
fn identifier(operation: &Operation) -> String {
    let parts = operation.path.split(['/', '.', '{', '}', '_']);
    let parts = parts.filter(|part| !part.is_empty() && *part != "v1");
    let mut name = operation.method.to_owned();
    for part in parts {
        let mut letters = part.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

fn problem() -> Value {
    json!({
        "type": "object",
        "required": ["type", "title", "status", "code", "detail"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "code": {"type": "string"},
            "detail": {"type": "string"},
            "how": {"type": "string", "description": "How the question was answered, with the code `already_answered`."},
        },
    })
}
