//! Writes a request as the body of a Messages call, leaving out what the model would reject.

use caliban_model::{
    ForcedTools, ModelTraits, Origin, ParallelCalls, Request, Sampling, ToolChoice, ToolSpec,
    Warning, traits,
};
use reqwest::Method;
use reqwest::header::HeaderName;
use serde_json::{Map, Value, json};

use super::messages::ToolLoop;
use super::thinking::{self, Plan, Thinking};
use super::{BETA, ID, cache, messages, schema};
use crate::adapter::Encoded;
use crate::answer_form;
use crate::body::Body;
use crate::memory::Memory;
use crate::transport::Call;

/// Lets the model think between tool calls; automatic unless it was given a budget.
const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";

/// What was asked for and is not sent.
#[derive(Debug)]
pub(super) struct Omissions<'a> {
    model: &'a str,
    warnings: Vec<Warning>,
}

impl<'a> Omissions<'a> {
    fn new(model: &'a str) -> Self {
        Self {
            model,
            warnings: Vec::new(),
        }
    }

    pub(super) fn dropped(&mut self, parameter: &str, why: &str) {
        self.warnings
            .push(Warning::dropped(parameter, self.model, why));
    }
}

/// The call for a request. The messages come last in the body, so that the next turn's body
/// begins with the same bytes.
pub(crate) fn encode(request: &Request, memory: &Memory<ToolLoop>) -> Encoded {
    let traits = traits(ID, &request.model);
    let mut omissions = Omissions::new(&request.model);
    let author = memory.author(ID, &request.model);
    let marked = request.marked_turns();
    let open = marked.last().map_or(usize::MAX, |mark| mark.message);
    let turns = request.turns();
    let mut written = memory.turns_up_to(open, &request.model, turns, |turns, tool_loop| {
        messages::written(turns, author, tool_loop)
    });
    let plan = thinking::plan(request, &traits, written.state, &mut omissions);
    cache::mark_turns(request.cache, &marked, &mut written.turns.tail);

    let mut body = Body::default();
    body.set("model", json!(&*request.model));
    body.set("max_tokens", json!(plan.max_tokens));
    body.set("stream", json!(true));
    let optional = [
        ("metadata", metadata(request)),
        ("stop_sequences", stop_sequences(request, &mut omissions)),
        (
            "temperature",
            temperature(request, &traits, plan.thinking, &mut omissions),
        ),
        ("thinking", plan.thinking.to_value()),
        ("output_config", output_config(request, plan)),
        (
            "tool_choice",
            tool_choice(request, &traits, plan.thinking, &mut omissions),
        ),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            body.set(name, value);
        }
    }
    if !request.tools.is_empty() {
        body.set_written("tools", memory.tools(request, || tools(request)));
    }
    let mut system = messages::system(request, author);
    if let Some(schema) = answer_form::wanted(request).filter(|schema| !schema::can_close(schema)) {
        let text = answer_form::instruction(schema);
        system.push(json!({"type": "text", "text": text}));
    }
    if !system.is_empty() {
        cache::mark_last(request.cache, &mut system);
        body.set("system", system.into());
    }
    body.set_list("messages", written.turns);

    Encoded {
        call: Call {
            origin: Origin::new(ID, request.model.clone()),
            method: Method::POST,
            path: "v1/messages".to_owned(),
            body: Some(body),
            headers: match plan.thinking {
                Thinking::Manual { .. } => {
                    vec![(HeaderName::from_static(BETA), INTERLEAVED.to_owned())]
                }
                Thinking::Unsaid | Thinking::Disabled | Thinking::Adaptive => Vec::new(),
            },
        },
        warnings: omissions.warnings,
    }
}

fn tools(request: &Request) -> Value {
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    cache::mark_last(request.cache, &mut tools);
    tools.into()
}

fn tool(spec: &ToolSpec) -> Value {
    let mut tool = json!({"name": spec.name});
    if !spec.description.is_empty() {
        tool["description"] = json!(spec.description);
    }
    tool["input_schema"] = spec.input_schema.clone();
    tool
}

fn metadata(request: &Request) -> Option<Value> {
    let session = request.metadata.session.as_ref()?;
    Some(json!({"user_id": session}))
}

fn stop_sequences(request: &Request, omissions: &mut Omissions<'_>) -> Option<Value> {
    let (kept, blank): (Vec<&String>, Vec<&String>) = request
        .stop_sequences
        .iter()
        .partition(|sequence| !sequence.trim().is_empty());
    if !blank.is_empty() {
        omissions.dropped("stop_sequences", "a stop sequence must not be blank");
    }
    (!kept.is_empty()).then(|| json!(kept))
}

fn temperature(
    request: &Request,
    traits: &ModelTraits,
    thinking: Thinking,
    omissions: &mut Omissions<'_>,
) -> Option<Value> {
    let wish = request.temperature?;
    let inside = wish.clamp(0.0, 1.0);
    match traits.sampling {
        Sampling::Rejected => {
            omissions.dropped("temperature", "this model does not take it");
            None
        }
        // One is the default and the only value that goes with thinking.
        Sampling::Accepted | Sampling::WhenIdle if thinking.is_on() && inside < 1.0 => {
            omissions.dropped("temperature", "it cannot be set while the model thinks");
            None
        }
        Sampling::Accepted | Sampling::WhenIdle => {
            if (wish - inside).abs() > f64::EPSILON {
                omissions.dropped(
                    "temperature",
                    &format!("{wish} is out of range; {inside} is used instead"),
                );
            }
            Some(json!(inside))
        }
    }
}

fn output_config(request: &Request, plan: Plan) -> Option<Value> {
    let mut config = Map::new();
    if let Some(effort) = plan.effort {
        config.insert("effort".to_owned(), json!(effort.as_str()));
    }
    if let Some(schema) = answer_form::wanted(request).filter(|schema| schema::can_close(schema)) {
        let format = json!({"type": "json_schema", "schema": schema::adapted(schema)});
        config.insert("format".to_owned(), format);
    }
    (!config.is_empty()).then_some(Value::Object(config))
}

/// Auto is the default and goes without saying.
fn tool_choice(
    request: &Request,
    traits: &ModelTraits,
    thinking: Thinking,
    omissions: &mut Omissions<'_>,
) -> Option<Value> {
    if request.tools.is_empty() {
        return None;
    }
    let objection = match traits.forced_tools {
        ForcedTools::Accepted => None,
        ForcedTools::Rejected => Some("this model cannot be made to call a tool"),
        ForcedTools::WhenIdle => thinking
            .is_on()
            .then_some("the model cannot be made to call a tool while it thinks"),
    };
    let mut forced = |choice: Value| match objection {
        None => choice,
        Some(why) => {
            omissions.dropped("tool_choice", why);
            json!({"type": "auto"})
        }
    };
    let mut choice = match &request.tool_choice {
        ToolChoice::Auto => json!({"type": "auto"}),
        ToolChoice::Required => forced(json!({"type": "any"})),
        ToolChoice::Named(name) => forced(json!({"type": "tool", "name": name})),
        ToolChoice::None => return Some(json!({"type": "none"})),
    };
    match request.parallel_calls {
        ParallelCalls::Allowed if choice["type"] == "auto" => return None,
        ParallelCalls::Allowed => {}
        ParallelCalls::OneAtATime => choice["disable_parallel_tool_use"] = json!(true),
    }
    Some(choice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{any_conversation, assert_memory_changes_no_byte, sent};
    use caliban_model::{
        Block, CachePolicy, CacheTtl, Effort, Image, ImageMime, ImageSource, Message, OutputFormat,
        Reasoning, Role, ToolContent,
    };
    use proptest::prelude::*;
    use std::sync::Arc;

    fn request(model: &str, messages: Vec<Message>) -> Request {
        Request::new(model, messages.into_iter().map(Arc::new).collect()).unwrap()
    }

    fn question(model: &str) -> Request {
        request(model, vec![Message::user("q")])
    }

    fn body(request: &Request) -> Value {
        sent(encode(request, &Memory::default()))
    }

    fn warnings(request: &Request) -> Vec<String> {
        encode(request, &Memory::default())
            .warnings
            .into_iter()
            .map(|warning| warning.message)
            .collect()
    }

    fn spec(name: &str) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            description: format!("{name} it"),
            input_schema: json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}}),
        }
    }

    fn image() -> Image {
        Image {
            mime: ImageMime::Jpeg,
            source: ImageSource::Base64 {
                data: "/9j/".into(),
            },
            dims: None,
        }
    }

    fn rich_history() -> Vec<Message> {
        let call = |id: &str, name: &str| Block::ToolUse {
            id: id.into(),
            name: name.into(),
            input: json!({"a": id}),
            private: None,
        };
        let answer = Message {
            role: Role::Assistant,
            content: vec![
                Block::Thinking {
                    text: "two".into(),
                    signature: Some("sig".into()),
                    private: None,
                },
                Block::text("Looking."),
                call("t1", "Bash"),
                call("t2", "Read"),
            ],
            origin: Some(Origin::new(ID, "claude-sonnet-4-6")),
        };
        let results = vec![
            Block::ToolResult {
                tool_use_id: "t1".into(),
                content: vec![ToolContent::Text {
                    text: "no such file".into(),
                }],
                is_error: true,
            },
            Block::ToolResult {
                tool_use_id: "t2".into(),
                content: vec![
                    ToolContent::Text {
                        text: "seen".into(),
                    },
                    ToolContent::Image(image()),
                ],
                is_error: false,
            },
        ];
        vec![
            Message::system("You are terse."),
            Message::system("Be kind."),
            Message::new(
                Role::User,
                vec![Block::text("what is this?"), Block::Image(image())],
            ),
            answer,
            Message::new(Role::User, results),
            Message::assistant("A cat."),
            Message::user("sure?"),
        ]
    }

    fn rich(history: Vec<Message>) -> Request {
        let mut request = request("claude-sonnet-4-6", history);
        request.tools = Arc::from([spec("Bash"), spec("Read")]);
        request.reasoning = Reasoning::Effort(Effort::High);
        request.stop_sequences = vec!["END".into()];
        request.metadata.session = Some("s-1".into());
        request.parallel_calls = ParallelCalls::OneAtATime;
        request
    }

    proptest! {
        #[test]
        fn what_is_remembered_changes_no_byte(history in any_conversation(ID, ["claude-sonnet-4-6", "claude-opus-4-6"])) {
            assert_memory_changes_no_byte(&history, ["claude-sonnet-4-6", "claude-opus-4-6"], |request, memory| {
                encode(request, memory).call.body.unwrap()
            })?;
        }
    }

    #[test]
    fn a_rich_conversation_is_written_whole() {
        let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "/9j/"}});
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}});
        let request = rich(rich_history());
        assert_eq!(
            body(&request),
            json!({
                "model": "claude-sonnet-4-6",
                "max_tokens": 8192,
                "stream": true,
                "metadata": {"user_id": "s-1"},
                "stop_sequences": ["END"],
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "high"},
                "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
                "tools": [
                    {"name": "Bash", "description": "Bash it", "input_schema": schema},
                    {
                        "name": "Read", "description": "Read it", "input_schema": schema,
                        "cache_control": {"type": "ephemeral"},
                    },
                ],
                "system": [
                    {"type": "text", "text": "You are terse."},
                    {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}},
                ],
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "what is this?"}, picture]},
                    {"role": "assistant", "content": [
                        {"type": "thinking", "thinking": "two", "signature": "sig"},
                        {"type": "text", "text": "Looking."},
                        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"a": "t1"}},
                        {"type": "tool_use", "id": "t2", "name": "Read", "input": {"a": "t2"}},
                    ]},
                    {"role": "user", "content": [
                        {
                            "type": "tool_result", "tool_use_id": "t1", "is_error": true,
                            "content": [{"type": "text", "text": "no such file"}],
                        },
                        {
                            "type": "tool_result", "tool_use_id": "t2",
                            "content": [{"type": "text", "text": "seen"}, picture],
                            "cache_control": {"type": "ephemeral"},
                        },
                    ]},
                    {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]},
                    {"role": "user", "content": [
                        {"type": "text", "text": "sure?", "cache_control": {"type": "ephemeral"}},
                    ]},
                ],
            })
        );
        let call = encode(&request, &Memory::default()).call;
        assert_eq!(
            (call.method, call.path.as_str()),
            (Method::POST, "v1/messages")
        );
        assert_eq!(call.headers, []);
        assert_eq!(warnings(&request), [""; 0]);
    }

    #[test]
    fn the_next_turn_begins_with_the_same_bytes() {
        let text = |length: usize| {
            let mut request = rich(rich_history().into_iter().take(length).collect());
            request.cache = CachePolicy::Off;
            body(&request).to_string()
        };
        let mut before = text(5);
        assert_eq!(before.split_off(before.len() - 2), "]}");
        assert!(text(7).starts_with(&before));
    }

    #[test]
    fn marks_for_the_cache_change_nothing_else() {
        fn unmarked(value: &mut Value) {
            match value {
                Value::Array(items) => items.iter_mut().for_each(unmarked),
                Value::Object(fields) => {
                    fields.shift_remove("cache_control");
                    fields.values_mut().for_each(unmarked);
                }
                _ => {}
            }
        }
        let mut request = rich(rich_history());
        request.cache = CachePolicy::Off;
        let plain = body(&request).to_string();
        assert!(!plain.contains("cache_control"));
        for ttl in [CacheTtl::FiveMinutes, CacheTtl::OneHour] {
            request.cache = CachePolicy::Ephemeral(ttl);
            let mut marked = body(&request);
            assert_eq!(marked.to_string().matches("cache_control").count(), 4);
            unmarked(&mut marked);
            assert_eq!(marked.to_string(), plain);
        }
    }

    #[test]
    fn tool_choices_have_their_own_words() {
        let mut request = question("claude-opus-4-7");
        let mut written = |choice: ToolChoice, parallel_calls, tools: &[ToolSpec]| {
            request.tool_choice = choice;
            request.parallel_calls = parallel_calls;
            request.tools = Arc::from(tools);
            assert_eq!(warnings(&request), [""; 0]);
            body(&request).get("tool_choice").cloned()
        };
        let (many, one) = (ParallelCalls::Allowed, ParallelCalls::OneAtATime);
        let tools = [spec("Bash")];
        let named = || ToolChoice::Named("Bash".into());
        assert_eq!(written(ToolChoice::Auto, many, &tools), None);
        assert_eq!(written(ToolChoice::Required, one, &[]), None);
        for (choice, parallel, expected) in [
            (
                ToolChoice::Auto,
                one,
                json!({"type": "auto", "disable_parallel_tool_use": true}),
            ),
            (ToolChoice::Required, many, json!({"type": "any"})),
            (
                ToolChoice::Required,
                one,
                json!({"type": "any", "disable_parallel_tool_use": true}),
            ),
            (named(), many, json!({"type": "tool", "name": "Bash"})),
            (
                named(),
                one,
                json!({"type": "tool", "name": "Bash", "disable_parallel_tool_use": true}),
            ),
            (ToolChoice::None, one, json!({"type": "none"})),
        ] {
            assert_eq!(written(choice, parallel, &tools), Some(expected));
        }
    }

    #[test]
    fn a_tool_is_not_forced_on_a_model_that_rejects_it() {
        let choice = |model: &str, reasoning| {
            let mut request = question(model);
            request.tools = Arc::from([spec("Bash")]);
            request.tool_choice = ToolChoice::Required;
            request.reasoning = reasoning;
            (
                body(&request).get("tool_choice").cloned(),
                warnings(&request).len(),
            )
        };
        let any = Some(json!({"type": "any"}));
        assert_eq!(choice("claude-fable-5-1", Reasoning::Auto), (None, 1));
        assert_eq!(
            choice("claude-haiku-4-5", Reasoning::Auto),
            (any.clone(), 0)
        );
        assert_eq!(
            choice("claude-haiku-4-5", Reasoning::Budget(2_000)),
            (None, 1)
        );
        assert_eq!(
            choice("claude-opus-4-7", Reasoning::Effort(Effort::Low)),
            (any, 0)
        );
    }

    #[test]
    fn temperature_is_sent_where_it_is_accepted() {
        let sent = |model: &str, temperature, reasoning| {
            let mut request = question(model);
            request.temperature = Some(temperature);
            request.reasoning = reasoning;
            (
                body(&request).get("temperature").and_then(Value::as_f64),
                warnings(&request).len(),
            )
        };
        let thinking = Reasoning::Budget(2_000);
        assert_eq!(
            sent("claude-haiku-4-5", 0.3, Reasoning::Auto),
            (Some(0.3), 0)
        );
        assert_eq!(
            sent("claude-haiku-4-5", 1.7, Reasoning::Auto),
            (Some(1.0), 1)
        );
        assert_eq!(sent("claude-haiku-4-5", 0.3, thinking), (None, 1));
        assert_eq!(sent("claude-haiku-4-5", 1.0, thinking), (Some(1.0), 0));
        assert_eq!(sent("claude-opus-4-7", 0.3, Reasoning::Auto), (None, 1));
    }

    #[test]
    fn an_answer_by_schema_is_asked_for_beside_the_effort() {
        let mut request = question("claude-opus-4-7");
        request.reasoning = Reasoning::Effort(Effort::Low);
        request.output = OutputFormat::JsonSchema {
            name: "age".into(),
            schema: Arc::new(
                json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}}),
            ),
        };
        assert_eq!(
            body(&request)["output_config"],
            json!({
                "effort": "low",
                "format": {"type": "json_schema", "schema": {
                    "type": "object",
                    "properties": {"n": {"type": "integer"}},
                    "additionalProperties": false,
                }},
            })
        );
    }

    #[test]
    fn blank_stop_sequences_are_left_out() {
        let mut request = question("claude-haiku-4-5");
        request.stop_sequences = vec!["\n".into(), "END".into(), String::new()];
        assert_eq!(body(&request)["stop_sequences"], json!(["END"]));
        assert_eq!(warnings(&request).len(), 1);
        request.stop_sequences = vec![" ".into()];
        assert_eq!(body(&request).get("stop_sequences"), None);
    }

    #[test]
    fn a_plain_question_is_a_small_body() {
        let mut request = question("claude-haiku-4-5");
        request.cache = CachePolicy::Off;
        assert_eq!(
            body(&request),
            json!({
                "model": "claude-haiku-4-5",
                "max_tokens": 8192,
                "stream": true,
                "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}],
            })
        );
    }
}
