//! A request in Converse's form.

use caliban_model::{
    Block, Image, ImageMime, ImageSource, Message, Origin, Request, Role, ToolChoice, ToolContent,
};
use reqwest::Method;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::super::ID;
use super::super::sign::hex;
use crate::adapter::Encoded;
use crate::answer_form;
use crate::body::Body;
use crate::memory::{Author, Memory};
use crate::transport::Call;

/// The longest id of a call that is taken.
const LONGEST_ID: usize = 64;

pub(crate) fn encode(request: &Request, memory: &Memory<()>) -> Encoded {
    let mut body = Body::default();
    let mut inference = json!({"maxTokens": request.max_tokens});
    if let Some(temperature) = request.temperature {
        inference["temperature"] = json!(temperature);
    }
    if !request.stop_sequences.is_empty() {
        inference["stopSequences"] = json!(request.stop_sequences);
    }
    body.set("inferenceConfig", inference);
    if !request.tools.is_empty() && request.tool_choice != ToolChoice::None {
        body.set("toolConfig", tools(request));
    }
    let mut system: Vec<Value> = request
        .system()
        .iter()
        .map(|message| message.text())
        .filter(|text| !text.trim().is_empty())
        .map(|text| json!({"text": text}))
        .collect();
    if let Some(schema) = answer_form::wanted(request) {
        system.push(json!({"text": answer_form::instruction(schema)}));
    }
    if !system.is_empty() {
        body.set("system", system.into());
    }
    let author = memory.author(ID, &request.model);
    let written = memory.turns(&request.model, request.turns(), |turns, ()| {
        messages(turns.iter().map(AsRef::as_ref), author)
    });
    body.set_list("messages", written.turns);
    Encoded {
        call: Call {
            origin: Origin::new(ID, request.model.clone()),
            method: Method::POST,
            path: String::new(),
            body: Some(body),
            headers: Vec::new(),
        },
        warnings: Vec::new(),
    }
}

fn tools(request: &Request) -> Value {
    let tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            let mut spec = json!({"name": tool.name, "inputSchema": {"json": tool.input_schema}});
            if !tool.description.is_empty() {
                spec["description"] = json!(tool.description);
            }
            json!({"toolSpec": spec})
        })
        .collect();
    let mut config = json!({"tools": tools});
    match &request.tool_choice {
        ToolChoice::Auto | ToolChoice::None => {}
        ToolChoice::Required => config["toolChoice"] = json!({"any": {}}),
        ToolChoice::Named(name) => config["toolChoice"] = json!({"tool": {"name": name}}),
    }
    config
}

/// Turns of one side that follow each other become one, as the form wants it.
fn messages<'a>(messages: impl Iterator<Item = &'a Message>, author: Author<'_>) -> Vec<Value> {
    let mut turns: Vec<(&'static str, Vec<Value>)> = Vec::new();
    for message in messages {
        let role = match message.role {
            Role::Assistant => "assistant",
            Role::User | Role::System => "user",
        };
        let own = author.wrote(message);
        let content: Vec<Value> = message
            .content
            .iter()
            .filter_map(|block| written(block, own))
            .collect();
        match turns.last_mut() {
            _ if content.is_empty() => {}
            Some((last, blocks)) if *last == role => blocks.extend(content),
            Some(_) | None => turns.push((role, content)),
        }
    }
    turns
        .into_iter()
        .map(|(role, content)| json!({"role": role, "content": content}))
        .collect()
}

fn written(block: &Block, own: bool) -> Option<Value> {
    match block {
        Block::Text { text, .. } => (!text.trim().is_empty()).then(|| json!({"text": text})),
        Block::Thinking {
            text,
            signature: Some(signature),
            ..
        } if own => Some(json!({"reasoningContent": {
            "reasoningText": {"text": text, "signature": signature}
        }})),
        Block::RedactedThinking { data } if own => {
            Some(json!({"reasoningContent": {"redactedContent": data}}))
        }
        Block::Thinking { .. } | Block::RedactedThinking { .. } | Block::Opaque { .. } => None,
        Block::ToolUse {
            id, name, input, ..
        } => Some(json!({"toolUse": {
            "toolUseId": tool_id(id),
            "name": name,
            "input": object(input),
        }})),
        Block::ToolResult {
            tool_use_id,
            content,
            is_error,
        } => {
            let status = if *is_error { "error" } else { "success" };
            Some(json!({"toolResult": {
                "toolUseId": tool_id(tool_use_id),
                "content": results(content),
                "status": status,
            }}))
        }
        Block::Image(image) => Some(picture(image)),
    }
}

/// A result must say something.
fn results(content: &[ToolContent]) -> Vec<Value> {
    let mut parts: Vec<Value> = content
        .iter()
        .filter_map(|part| match part {
            ToolContent::Text { text } => (!text.trim().is_empty()).then(|| json!({"text": text})),
            ToolContent::Image(image) => Some(picture(image)),
        })
        .collect();
    if parts.is_empty() {
        parts.push(json!({"text": "(no output)"}));
    }
    parts
}

/// Pictures elsewhere are named: nobody fetches them there.
fn picture(image: &Image) -> Value {
    let format = match image.mime {
        ImageMime::Png => "png",
        ImageMime::Jpeg => "jpeg",
        ImageMime::Gif => "gif",
        ImageMime::Webp => "webp",
    };
    match &image.source {
        ImageSource::Base64 { data } => {
            json!({"image": {"format": format, "source": {"bytes": &**data}}})
        }
        ImageSource::Url { url } => json!({"text": format!("[an image at {url}]")}),
    }
}

fn object(input: &Value) -> Value {
    match input {
        Value::Object(_) => input.clone(),
        other => Value::Object(Map::from_iter([("_raw".to_owned(), other.clone())])),
    }
}

/// Ids of others may be longer, or hold characters that are refused.
fn tool_id(id: &str) -> String {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(allowed) {
        return id.to_owned();
    }
    let digest = Sha256::digest(id.as_bytes());
    format!("tooluse_{}", hex(&digest[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use caliban_model::ToolSpec;
    use std::sync::Arc;

    #[test]
    fn a_conversation_with_tools_is_written() {
        let call = Message {
            role: Role::Assistant,
            content: vec![Block::ToolUse {
                id: "call.1".into(),
                name: "Bash".into(),
                input: json!({"command": "ls"}),
                private: None,
            }],
            origin: None,
        };
        let result = Message::new(
            Role::User,
            vec![Block::ToolResult {
                tool_use_id: "call.1".into(),
                content: Vec::new(),
                is_error: true,
            }],
        );
        let messages = vec![
            Message::new(
                Role::System,
                vec![Block::Text {
                    text: "Be brief.".into(),
                    private: None,
                }],
            ),
            Message::user("hi"),
            call,
            result,
        ];
        let messages: Vec<Arc<Message>> = messages.into_iter().map(Arc::new).collect();
        let mut request = Request::new("amazon.nova-pro-v1:0", messages.into()).unwrap();
        request.max_tokens = 64;
        request.tools = Arc::from(vec![ToolSpec {
            name: "Bash".into(),
            description: "Runs.".into(),
            input_schema: json!({"type": "object"}),
        }]);
        request.tool_choice = ToolChoice::Required;
        let id = tool_id("call.1");
        let body = encode(&request, &Memory::default()).call.body.unwrap();
        assert_eq!(
            Value::Object(body.values()),
            json!({
                "inferenceConfig": {"maxTokens": 64},
                "toolConfig": {
                    "tools": [{"toolSpec": {"name": "Bash", "description": "Runs.",
                                            "inputSchema": {"json": {"type": "object"}}}}],
                    "toolChoice": {"any": {}},
                },
                "system": [{"text": "Be brief."}],
                "messages": [
                    {"role": "user", "content": [{"text": "hi"}]},
                    {"role": "assistant", "content": [{"toolUse": {
                        "toolUseId": id, "name": "Bash", "input": {"command": "ls"}}}]},
                    {"role": "user", "content": [{"toolResult": {
                        "toolUseId": id, "content": [{"text": "(no output)"}], "status": "error"}}]},
                ],
            })
        );
    }
}
