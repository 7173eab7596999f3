//! A request as a Responses body. The input comes last and earlier items never change, so that
//! a body is a prefix of the next turn's.

use caliban_model::{
    Block, Message, ModelTraits, Origin, OutputFormat, Request, ThinkingForm, ToolChoice,
    ToolContent, ToolSpec, Warning, traits,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::adapter::Encoded;
use crate::body::{Body, List};
use crate::memory::{Author, Memory};
use crate::openai::content::{self, Turn};
use crate::openai::reasoning::{self, Activity, Thinking};
use crate::openai::tool_id::IdRule;
use crate::openai::{ID, schema};
use crate::transport::Call;

const CALL_IDS: IdRule = IdRule::UpTo(64);
/// The least the API takes as a limit.
const MIN_OUTPUT: u32 = 16;

pub(crate) fn encode(request: &Request, memory: &Memory<()>) -> Encoded {
    let traits = traits(ID, &request.model);
    let mut warnings = Vec::new();
    let thinking = Thinking::wished(request, &traits, &mut warnings);
    let activity = thinking.activity(&traits);

    let mut body = Body::default();
    body.set("model", json!(request.model));
    body.set("stream", json!(true));
    body.set("store", json!(false));
    if let Some(key) = content::cache_key(request) {
        body.set("prompt_cache_key", json!(key));
    }
    let limit = request.max_tokens.max(MIN_OUTPUT);
    body.set("max_output_tokens", json!(limit));
    if let Some(temperature) = reasoning::temperature(request, &traits, activity, &mut warnings) {
        body.set("temperature", json!(temperature));
    }
    if !request.stop_sequences.is_empty() {
        warnings.push(Warning::dropped(
            "stop",
            &request.model,
            "the Responses API has no stop sequences",
        ));
    }
    if traits.thinking == ThinkingForm::Effort {
        // Nothing is stored at OpenAI, so reasoning travels with us, encrypted.
        body.set("include", json!(["reasoning.encrypted_content"]));
        body.set("reasoning", reasoning_field(thinking));
    }
    if let OutputFormat::JsonSchema { name, schema } = &request.output {
        let format = schema::format(schema);
        body.set(
            "text",
            json!({"format": {
                "type": "json_schema",
                "name": content::format_name(name),
                "schema": format.schema,
                "strict": format.strict,
            }}),
        );
    }
    if !request.tools.is_empty() {
        tools(request, &traits, activity, memory, &mut body, &mut warnings);
    }
    if let Some(text) = content::system(request) {
        body.set("instructions", json!(text));
    }
    body.set_list("input", input(request, memory));
    Encoded {
        call: Call {
            origin: Origin::new(ID, request.model.clone()),
            method: Method::POST,
            path: "responses".to_owned(),
            body: Some(body),
            headers: Vec::new(),
        },
        warnings,
    }
}

fn reasoning_field(thinking: Thinking) -> Value {
    match thinking {
        Thinking::Unset => json!({"summary": "auto"}),
        Thinking::Off => json!({"effort": "none"}),
        Thinking::Level(effort) => json!({"effort": effort.as_str(), "summary": "auto"}),
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
        json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": content::parameters(tool),
            // Left out it would mean strict.
            "strict": false,
        })
    };
    let tools = memory.tools(request, || request.tools.iter().map(function).collect());
    body.set_written("tools", tools);
    let choice = match reasoning::tool_choice(request, traits, activity, warnings) {
        ToolChoice::Auto => None,
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Named(name) => Some(json!({"type": "function", "name": name})),
        ToolChoice::None => Some(json!("none")),
    };
    if let Some(choice) = choice {
        body.set("tool_choice", choice);
    }
    if let Some(parallel) = reasoning::parallel(request) {
        body.set("parallel_tool_calls", json!(parallel));
    }
}

fn input(request: &Request, memory: &Memory<()>) -> List {
    let author = memory.author(ID, &request.model);
    let written = memory.turns(&request.model, request.turns(), |turns, ()| {
        let mut items = Vec::new();
        for turn in content::turns(turns.iter().map(AsRef::as_ref)) {
            match turn {
                Turn::Assistant(message) => assistant(message, author, &mut items),
                Turn::User(blocks) => user(&blocks, &mut items),
            }
        }
        items
    });
    written.turns
}

/// Whether an item can go back: stored nowhere, it must carry what it stands for.
fn is_reasoning(item: &Value) -> bool {
    let carries = |name| match item.get(name) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(parts)) => !parts.is_empty(),
        Some(_) | None => false,
    };
    item.get("type").and_then(Value::as_str) == Some("reasoning")
        && (carries("encrypted_content") || carries("content"))
}

fn assistant(message: &Message, author: Author<'_>, items: &mut Vec<Value>) {
    let own = author.wrote(message);
    let reasoned = own && message.content.iter().any(
        |block| matches!(block, Block::Thinking { private: Some(item), .. } if is_reasoning(item)),
    );
    let first = items.len();
    for block in &message.content {
        match block {
            Block::Thinking {
                private: Some(item),
                ..
            } if own && is_reasoning(item) => items.push(item.clone()),
            Block::Text { text, private } if !text.is_empty() => {
                let mut item = json!({
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": text}],
                });
                let phase = private.as_ref().and_then(|data| data.get("phase"));
                if let Some(phase) = phase.filter(|_| own) {
                    item["phase"] = phase.clone();
                }
                items.push(item);
            }
            Block::ToolUse {
                id,
                name,
                input,
                private,
            } => {
                let mut item = json!({"type": "function_call"});
                // A native id makes the API look for the reasoning that led to the call.
                let native = private.as_ref().and_then(|data| data.get("id"));
                if let Some(native) = native.filter(|_| reasoned) {
                    item["id"] = native.clone();
                }
                item["call_id"] = json!(CALL_IDS.apply(id));
                item["name"] = json!(name);
                item["arguments"] = json!(content::arguments(input));
                items.push(item);
            }
            Block::Opaque { value } if own => items.push(value.clone()),
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolResult { .. }
            | Block::Image(_)
            | Block::Opaque { .. } => {}
        }
    }
    // An answer cut off while reasoning: the API refuses reasoning that leads to nothing.
    while items.len() > first && items.last().is_some_and(is_reasoning) {
        items.pop();
    }
}

fn user(blocks: &[&Block], items: &mut Vec<Value>) {
    for block in blocks {
        if let Block::ToolResult {
            tool_use_id,
            content,
            is_error,
        } = block
        {
            items.push(json!({
                "type": "function_call_output",
                "call_id": CALL_IDS.apply(tool_use_id),
                "output": output(content, *is_error),
            }));
        }
    }
    let parts: Vec<Value> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text, .. } if !text.is_empty() => Some(text_part(text)),
            Block::Image(image) => Some(image_part(&content::image_url(image))),
            Block::Text { .. }
            | Block::ToolResult { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolUse { .. }
            | Block::Opaque { .. } => None,
        })
        .collect();
    if !parts.is_empty() {
        items.push(json!({"role": "user", "content": parts}));
    }
}

/// A tool's result: text, or a list where it holds images.
fn output(content: &[ToolContent], is_error: bool) -> Value {
    let has_image = content
        .iter()
        .any(|part| matches!(part, ToolContent::Image(_)));
    if !has_image {
        return json!(content::result_text(content, is_error));
    }
    let failed = is_error.then(|| text_part("Error:"));
    let parts = content.iter().filter_map(|part| match part {
        ToolContent::Text { text } if text.is_empty() => None,
        ToolContent::Text { text } => Some(text_part(text)),
        ToolContent::Image(image) => Some(image_part(&content::image_url(image))),
    });
    failed.into_iter().chain(parts).collect()
}

fn text_part(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

fn image_part(url: &str) -> Value {
    json!({"type": "input_image", "detail": "auto", "image_url": url})
}

#[cfg(test)]
mod tests;
