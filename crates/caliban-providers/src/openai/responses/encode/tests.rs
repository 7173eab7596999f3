use std::sync::Arc;

use caliban_model::{Effort, ParallelCalls, Reasoning, Role};
use rstest::rstest;

use super::*;
use crate::openai::testing::{self, bash, hello, image, request, result, text, thinking, tool_use};
use crate::testing::{any_conversation, assert_memory_changes_no_byte, sent};
use proptest::prelude::*;

fn reasoning_item() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Plan"}], "encrypted_content": "gAAAA"})
}

fn conversation(model: &str) -> Vec<Message> {
    vec![
        Message::system("Be brief."),
        Message::system("Be kind."),
        Message::new(
            Role::User,
            vec![Block::text("what is this"), Block::Image(image("iVBOR"))],
        ),
        Message {
            role: Role::Assistant,
            content: vec![
                thinking("Plan", Some(reasoning_item())),
                Block::Text {
                    text: "Looking.".into(),
                    private: Some(json!({"phase": "commentary"})),
                },
                tool_use(
                    "call_1",
                    "Bash",
                    json!({"command": "ls"}),
                    Some(json!({"id": "fc_1"})),
                ),
                tool_use(
                    "call_2",
                    "Read",
                    json!("{oops"),
                    Some(json!({"id": "fc_2"})),
                ),
                Block::Opaque {
                    value: json!({"type": "web_search_call", "id": "ws_1"}),
                },
            ],
            origin: Some(Origin::new("openai", model)),
        },
        Message::new(
            Role::User,
            vec![
                Block::text("and hurry"),
                result(
                    "call_1",
                    vec![text("a.png"), ToolContent::Image(image("AAAA"))],
                    true,
                ),
                result("call_2", vec![text("bad input")], true),
            ],
        ),
        Message::assistant("A picture."),
        Message::user("thanks"),
    ]
}

fn body(request: &Request) -> Value {
    sent(encode(request, &Memory::default()))
}

fn dropped(request: &Request) -> Vec<String> {
    testing::dropped(encode(request, &Memory::default()).warnings)
}

#[test]
fn a_rich_conversation() {
    let mut request = request("gpt-5.5", conversation("gpt-5.5"));
    request.tools = Arc::from([bash()]);
    request.reasoning = Reasoning::Effort(Effort::High);
    request.metadata.session = Some("s1".into());
    assert_eq!(
        body(&request),
        json!({
            "model": "gpt-5.5",
            "stream": true,
            "store": false,
            "prompt_cache_key": "s1",
            "max_output_tokens": 8192,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "high", "summary": "auto"},
            "tools": [{"type": "function", "name": "Bash", "description": "Runs a command",
                "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}, "strict": false}],
            "instructions": "Be brief.\n\nBe kind.",
            "input": [
                {"role": "user", "content": [
                    {"type": "input_text", "text": "what is this"},
                    {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBOR"},
                ]},
                reasoning_item(),
                {"type": "message", "role": "assistant", "phase": "commentary", "content": [{"type": "output_text", "text": "Looking."}]},
                {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "Bash", "arguments": "{\"command\":\"ls\"}"},
                {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "Read", "arguments": "{oops"},
                {"type": "web_search_call", "id": "ws_1"},
                {"type": "function_call_output", "call_id": "call_1", "output": [
                    {"type": "input_text", "text": "Error:"},
                    {"type": "input_text", "text": "a.png"},
                    {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AAAA"},
                ]},
                {"type": "function_call_output", "call_id": "call_2", "output": "Error: bad input"},
                {"role": "user", "content": [{"type": "input_text", "text": "and hurry"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A picture."}]},
                {"role": "user", "content": [{"type": "input_text", "text": "thanks"}]},
            ],
        })
    );
    assert_eq!(dropped(&request), [""; 0]);
}

#[test]
fn a_body_is_a_prefix_of_the_next_turns() {
    let all = conversation("gpt-5.5");
    let written: Vec<String> = [3, 5, 7]
        .iter()
        .map(|end| body(&request("gpt-5.5", all[..*end].to_vec())).to_string())
        .collect();
    for pair in written.windows(2) {
        let prefix = pair[0].strip_suffix("]}").unwrap();
        assert!(pair[1].starts_with(prefix), "{}\n{}", pair[0], pair[1]);
    }
}

#[test]
fn what_another_model_wrote_loses_reasoning_phase_and_native_ids() {
    let body = body(&request("gpt-5.4", conversation("gpt-5.5")));
    assert_eq!(
        body["input"].as_array().unwrap()[1..4],
        [
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]}),
            json!({"type": "function_call", "call_id": "call_1", "name": "Bash", "arguments": "{\"command\":\"ls\"}"}),
            json!({"type": "function_call", "call_id": "call_2", "name": "Read", "arguments": "{oops"}),
        ]
    );
    assert_eq!(body["input"][4]["type"], "function_call_output");
}

#[rstest]
#[case::stripped_by_compaction(vec![])]
#[case::never_encrypted(vec![thinking("t", Some(json!({"type": "reasoning", "id": "rs_1", "summary": []})))])]
#[case::from_the_other_format(vec![thinking("t", Some(json!({"field": "reasoning_content"})))])]
fn a_call_without_its_reasoning_has_no_native_id(#[case] mut content: Vec<Block>) {
    content.push(tool_use(
        "c",
        "Bash",
        json!({}),
        Some(json!({"id": "fc_1"})),
    ));
    let message = Message {
        role: Role::Assistant,
        content,
        origin: Some(Origin::new("openai", "gpt-5.5")),
    };
    let body = body(&request("gpt-5.5", vec![Message::user("a"), message]));
    assert_eq!(
        body["input"][1],
        json!({"type": "function_call", "call_id": "c", "name": "Bash", "arguments": "{}"})
    );
    assert_eq!(body["input"].as_array().unwrap().len(), 3);
}

#[test]
fn reasoning_that_leads_to_nothing_is_dropped() {
    let message = Message {
        role: Role::Assistant,
        content: vec![thinking("t", Some(reasoning_item()))],
        origin: Some(Origin::new("openai", "gpt-5.5")),
    };
    let body = body(&request(
        "gpt-5.5",
        vec![Message::user("a"), message, Message::user("b")],
    ));
    assert_eq!(body["input"].as_array().unwrap().len(), 2);
}

#[test]
fn long_and_odd_call_ids_are_mapped_alike_on_both_sides() {
    let id = "x".repeat(65);
    let body = body(&request(
        "gpt-5.5",
        vec![
            Message::user("a"),
            Message::new(
                Role::Assistant,
                vec![tool_use(&id, "Bash", json!({}), None)],
            ),
            Message::new(Role::User, vec![result(&id, vec![], false)]),
        ],
    ));
    let mapped = body["input"][1]["call_id"].as_str().unwrap();
    assert_eq!(mapped.len(), 37);
    assert_eq!(body["input"][2]["call_id"], mapped);
    assert_eq!(body["input"][2]["output"], "(no output)");
}

#[rstest]
#[case("gpt-4.1", Reasoning::Auto, None)]
#[case("gpt-4.1", Reasoning::Effort(Effort::Low), None)]
#[case("o3", Reasoning::Off, Some(json!({"summary": "auto"})))]
#[case("gpt-5.1", Reasoning::Auto, Some(json!({"summary": "auto"})))]
#[case("gpt-5.5", Reasoning::Off, Some(json!({"effort": "none"})))]
#[case("gpt-5.5", Reasoning::Effort(Effort::Max), Some(json!({"effort": "xhigh", "summary": "auto"})))]
#[case("gpt-6-astra", Reasoning::Effort(Effort::Max), Some(json!({"effort": "max", "summary": "auto"})))]
fn reasoning_per_model(
    #[case] model: &str,
    #[case] reasoning: Reasoning,
    #[case] field: Option<Value>,
) {
    let mut request = hello(model);
    request.reasoning = reasoning;
    // Tools change nothing here.
    request.tools = Arc::from([bash()]);
    let body = body(&request);
    assert_eq!(body.get("reasoning").cloned(), field);
    assert_eq!(body.get("include").is_some(), field.is_some());
}

#[test]
fn what_the_api_or_the_model_lacks_is_left_out() {
    let mut request = hello("gpt-5.5");
    request.temperature = Some(0.5);
    request.stop_sequences = vec!["END".into()];
    request.max_tokens = 1;
    assert_eq!(dropped(&request), ["temperature", "stop"]);
    let written = body(&request);
    assert_eq!(written.get("temperature"), None);
    assert_eq!(written.get("stop"), None);
    assert_eq!(written["max_output_tokens"], 16);
    request.reasoning = Reasoning::Off;
    assert_eq!(body(&request)["temperature"], json!(0.5));
}

#[test]
fn tool_choices_and_formats_are_flat() {
    let mut request = hello("gpt-5.5");
    request.tools = Arc::from([bash()]);
    request.parallel_calls = ParallelCalls::OneAtATime;
    request.output = OutputFormat::JsonSchema {
        name: "answer".into(),
        schema: Arc::new(
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        ),
    };
    let mut choice = |choice: ToolChoice| {
        request.tool_choice = choice;
        body(&request).get("tool_choice").cloned()
    };
    assert_eq!(choice(ToolChoice::Auto), None);
    assert_eq!(choice(ToolChoice::Required), Some(json!("required")));
    assert_eq!(choice(ToolChoice::None), Some(json!("none")));
    assert_eq!(
        choice(ToolChoice::Named("Bash".into())),
        Some(json!({"type": "function", "name": "Bash"}))
    );
    let body = body(&request);
    assert_eq!(body["parallel_tool_calls"], json!(false));
    assert_eq!(
        body["text"],
        json!({"format": {"type": "json_schema", "name": "answer", "strict": true, "schema": {
            "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false,
        }}})
    );
}

proptest! {
    #[test]
    fn what_is_remembered_changes_no_byte(history in any_conversation(ID, ["gpt-6-astra", "gpt-4.1"])) {
        assert_memory_changes_no_byte(&history, ["gpt-6-astra", "gpt-4.1"], |request, memory| {
            encode(request, memory).call.body.unwrap()
        })?;
    }
}
