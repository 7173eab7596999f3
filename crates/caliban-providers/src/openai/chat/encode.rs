//! A request as a Chat Completions body. The messages come last and earlier ones never change,
//! so that a body is a prefix of the next turn's.

use std::collections::HashMap;

use caliban_model::{
    Block, ChatTools, Error, ErrorKind, Image, Message, ModelTraits, Origin, OutputFormat, Request,
    Sampling, ToolChoice, ToolContent, ToolSpec, Warning, traits,
};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{RESPONSES_REMEDY, Server};
use crate::adapter::Encoded;
use crate::body::{Body, List};
use crate::failure::fail;
use crate::memory::{Author, Memory};
use crate::openai::content::{self, PARAGRAPH, Turn};
use crate::openai::reasoning::{self, Activity, Thinking};
use crate::openai::{ID, schema};
use crate::transport::Call;

/// The most stop sequences the API takes.
const MAX_STOPS: usize = 4;

pub(super) fn encode(
    request: &Request,
    server: Server,
    memory: &Memory<()>,
) -> Result<Encoded, Error> {
    let traits = traits(ID, &request.model);
    let mut warnings = Vec::new();
    let wished = Thinking::wished(request, &traits, &mut warnings);
    let thinking = with_tools(wished, request, &traits, server, &mut warnings)?;
    let activity = thinking.activity(&traits);

    let mut body = Body::default();
    body.set("model", json!(request.model));
    body.set("stream", json!(true));
    match server {
        Server::OpenAi => {
            body.set("stream_options", json!({"include_usage": true}));
            body.set("store", json!(false));
            if let Some(key) = content::cache_key(request) {
                body.set("prompt_cache_key", json!(key));
            }
        }
        Server::Compatible => {
            body.set("stream_options", json!({"include_usage": true}));
        }
        // Its last chunk carries the usage anyway.
        Server::Mistral => {}
    }
    body.set(server.limit(&traits), json!(request.max_tokens));
    if let Some(temperature) = reasoning::temperature(request, &traits, activity, &mut warnings) {
        body.set("temperature", json!(temperature));
    }
    if let Some(stops) = stops(request, &traits, &mut warnings) {
        body.set("stop", json!(stops));
    }
    if let Some(effort) = thinking.name() {
        body.set("reasoning_effort", json!(effort));
    }
    if let OutputFormat::JsonSchema { name, schema } = &request.output {
        let format = schema::format(schema);
        body.set(
            "response_format",
            json!({"type": "json_schema", "json_schema": {
                "name": content::format_name(name),
                "schema": format.schema,
                "strict": format.strict,
            }}),
        );
    }
    if !request.tools.is_empty() {
        tools(request, &traits, activity, memory, &mut body, &mut warnings);
    }
    body.set_list("messages", messages(request, server, memory));
    Ok(Encoded {
        call: Call {
            origin: Origin::new(ID, request.model.clone()),
            method: Method::POST,
            path: "chat/completions".to_owned(),
            body: Some(body),
            headers: Vec::new(),
        },
        warnings,
    })
}

/// Newer models reason and call tools together on the Responses API only. That is a rule of
/// OpenAI's own server: others that offer these models translate for them.
fn with_tools(
    thinking: Thinking,
    request: &Request,
    traits: &ModelTraits,
    server: Server,
    warnings: &mut Vec<Warning>,
) -> Result<Thinking, Error> {
    if request.tools.is_empty() || server != Server::OpenAi {
        return Ok(thinking);
    }
    let allowed = match traits.chat_tools {
        ChatTools::Accepted => return Ok(thinking),
        ChatTools::WhenIdle => Thinking::Unset,
        ChatTools::ExplicitNone => Thinking::Off,
        ChatTools::Rejected => {
            return Err(fail(
                &Origin::new(ID, request.model.clone()),
                ErrorKind::Invalid,
                "the model takes no tools on the Chat Completions API",
            )
            .with_remedy(RESPONSES_REMEDY));
        }
    };
    match thinking {
        Thinking::Off => Ok(Thinking::Off),
        Thinking::Unset => Ok(allowed),
        Thinking::Level(_) => {
            warnings.push(Warning::dropped(
                "effort",
                &request.model,
                "with tools the model reasons on the Responses API only",
            ));
            Ok(allowed)
        }
    }
}

fn stops<'a>(
    request: &'a Request,
    traits: &ModelTraits,
    warnings: &mut Vec<Warning>,
) -> Option<&'a [String]> {
    let stops = request.stop_sequences.as_slice();
    let mut drop = |why| warnings.push(Warning::dropped("stop", &request.model, why));
    match traits.sampling {
        _ if stops.is_empty() => None,
        Sampling::Rejected | Sampling::WhenIdle => {
            drop("reasoning models take no stop sequences");
            None
        }
        Sampling::Accepted => {
            if stops.len() > MAX_STOPS {
                drop("only the first four stop sequences are taken");
            }
            Some(&stops[..stops.len().min(MAX_STOPS)])
        }
    }
}

fn tools(
    request: &Request,
    traits: &ModelTraits,
    activity: Activity,
    memory: &Memory<()>,
    body: &mut Body,
    warnings: &mut Vec<Warning>,
) {
    let function = |tool: &ToolSpec| {
        json!({"type": "function", "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": content::parameters(tool),
        }})
    };
    let tools = memory.tools(request, || request.tools.iter().map(function).collect());
    body.set_written("tools", tools);
    let choice = match reasoning::tool_choice(request, traits, activity, warnings) {
        ToolChoice::Auto => None,
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Named(name) => Some(json!({"type": "function", "function": {"name": name}})),
        ToolChoice::None => Some(json!("none")),
    };
    if let Some(choice) = choice {
        body.set("tool_choice", choice);
    }
    if let Some(parallel) = reasoning::parallel(request) {
        body.set("parallel_tool_calls", json!(parallel));
    }
}

fn messages(request: &Request, server: Server, memory: &Memory<()>) -> List {
    let system = content::system(request);
    let written = memory.turns(&request.model, request.turns(), |turns, ()| {
        let mut writer = Writer {
            author: memory.author(ID, &request.model),
            server,
            ids: HashMap::new(),
            messages: Vec::new(),
        };
        for turn in content::turns(turns.iter().map(AsRef::as_ref)) {
            match turn {
                Turn::Assistant(message) => writer.assistant(message),
                Turn::User(blocks) => writer.user(&blocks),
            }
        }
        writer.messages
    });
    let head = system.map(|text| json!({"role": "system", "content": text}));
    List {
        head: head.into_iter().collect(),
        ..written.turns
    }
}

struct Writer<'a> {
    author: Author<'a>,
    server: Server,
    /// What the latest call of each id is called on the wire.
    ids: HashMap<&'a str, String>,
    messages: Vec<Value>,
}

impl<'a> Writer<'a> {
    fn assistant(&mut self, message: &'a Message) {
        let own = self.author.wrote(message);
        let mut texts = Vec::new();
        let mut calls = Vec::new();
        for block in &message.content {
            match block {
                Block::Text { text, .. } if !text.is_empty() => texts.push(text.as_str()),
                Block::ToolUse {
                    id,
                    name,
                    input,
                    private,
                } => {
                    let wire_id = self.wire_id(id, own);
                    let mut call = json!({"id": wire_id, "type": "function", "function": {
                        "name": name,
                        "arguments": content::arguments(input),
                    }});
                    let extra = private.as_ref().and_then(|data| data.get("extra_content"));
                    if let Some(extra) = extra.filter(|_| own) {
                        call["extra_content"] = extra.clone();
                    }
                    self.ids.insert(id, wire_id);
                    calls.push(call);
                }
                Block::Text { .. }
                | Block::Thinking { .. }
                | Block::RedactedThinking { .. }
                | Block::ToolResult { .. }
                | Block::Image(_)
                | Block::Opaque { .. } => {}
            }
        }
        if texts.is_empty() && calls.is_empty() {
            return;
        }
        let mut written = Map::new();
        written.insert("role".into(), json!("assistant"));
        let text = (!texts.is_empty()).then(|| texts.join(PARAGRAPH));
        written.insert("content".into(), json!(text));
        if !calls.is_empty() {
            // Servers want reasoning back inside a tool loop; elsewhere some refuse it.
            if own {
                echo_reasoning(message, &mut written);
            }
            written.insert("tool_calls".into(), json!(calls));
        }
        self.messages.push(Value::Object(written));
    }

    /// A server that made an id takes it back as it is, and models may have learned its form.
    fn wire_id(&self, id: &str, own: bool) -> String {
        match self.server {
            Server::Compatible if own => id.to_owned(),
            Server::OpenAi | Server::Compatible | Server::Mistral => self.server.ids().apply(id),
        }
    }

    /// Tool messages hold text only: their images follow, once all results are told.
    fn user(&mut self, blocks: &[&'a Block]) {
        let mut parts = Vec::new();
        for block in blocks {
            if let Block::ToolResult {
                tool_use_id,
                content,
                is_error,
            } = block
            {
                let id = match self.ids.get(tool_use_id.as_str()) {
                    Some(id) => id.clone(),
                    None => self.server.ids().apply(tool_use_id),
                };
                self.messages.push(json!({
                    "role": "tool",
                    "tool_call_id": id,
                    "content": content::result_text(content, *is_error),
                }));
                parts.extend(content.iter().filter_map(|part| match part {
                    ToolContent::Image(image) => Some(Part::Image(image)),
                    ToolContent::Text { .. } => None,
                }));
            }
        }
        for block in blocks {
            match block {
                Block::Text { text, .. } if !text.is_empty() => parts.push(Part::Text(text)),
                Block::Image(image) => parts.push(Part::Image(image)),
                Block::Text { .. }
                | Block::ToolResult { .. }
                | Block::Thinking { .. }
                | Block::RedactedThinking { .. }
                | Block::ToolUse { .. }
                | Block::Opaque { .. } => {}
            }
        }
        if !parts.is_empty() {
            self.messages
                .push(json!({"role": "user", "content": user_content(&parts)}));
        }
    }
}

enum Part<'a> {
    Text(&'a str),
    Image(&'a Image),
}

/// Plain text where possible: not every server takes a list.
fn user_content(parts: &[Part<'_>]) -> Value {
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => Some(*text),
            Part::Image(_) => None,
        })
        .collect();
    if let Some(texts) = texts {
        return json!(texts.join(PARAGRAPH));
    }
    parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => json!({"type": "text", "text": text}),
            Part::Image(image) => {
                json!({"type": "image_url", "image_url": {"url": content::image_url(image)}})
            }
        })
        .collect()
}

/// Returns reasoning in the field it came in; see the decoder for what it keeps.
fn echo_reasoning(message: &Message, written: &mut Map<String, Value>) {
    let mut said = String::new();
    let mut details = Vec::new();
    for block in &message.content {
        let Block::Thinking {
            text,
            private: Some(private),
            ..
        } = block
        else {
            continue;
        };
        if private.get("field").and_then(Value::as_str) == Some("reasoning_content") {
            said.push_str(text);
        }
        if let Some(Value::Array(items)) = private.get("reasoning_details") {
            details.extend(items.iter().cloned());
        }
    }
    if !said.is_empty() {
        written.insert("reasoning_content".into(), json!(said));
    }
    if !details.is_empty() {
        written.insert("reasoning_details".into(), json!(details));
    }
}

#[cfg(test)]
mod tests;
