use std::sync::Arc;

use caliban_model::{Effort, ParallelCalls, Reasoning, Role};
use rstest::rstest;

use super::*;
use crate::openai::testing::{self, bash, hello, image, request, result, text, thinking, tool_use};
use crate::testing::{any_conversation, assert_memory_changes_no_byte, sent};
use proptest::prelude::*;

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
                thinking("hm", Some(json!({"field": "reasoning_content"}))),
                Block::text("Let me look."),
                tool_use("call_1", "Bash", json!({"command": "ls"}), None),
                tool_use(
                    "functions.Read:1",
                    "Read",
                    json!("{\"path\": oops"),
                    Some(json!({"extra_content": {"google": {"thought_signature": "s"}}})),
                ),
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
                    false,
                ),
                result("functions.Read:1", vec![text("bad input")], true),
            ],
        ),
        Message::assistant("A picture."),
        Message::user("thanks"),
    ]
}

fn body(request: &Request, server: Server) -> Value {
    sent(encode(request, server, &Memory::default()).unwrap())
}

fn dropped(request: &Request, server: Server) -> Vec<String> {
    testing::dropped(
        encode(request, server, &Memory::default())
            .unwrap()
            .warnings,
    )
}

#[test]
fn a_rich_conversation_for_a_compatible_server() {
    let mut request = request("qwen3", conversation("qwen3"));
    request.tools = Arc::from([bash()]);
    request.temperature = Some(0.2);
    request.stop_sequences = vec!["END".into()];
    request.metadata.session = Some("s1".into());
    assert_eq!(
        body(&request, Server::Compatible),
        json!({
            "model": "qwen3",
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": 8192,
            "temperature": 0.2,
            "stop": ["END"],
            "tools": [{"type": "function", "function": {
                "name": "Bash", "description": "Runs a command",
                "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
            }}],
            "messages": [
                {"role": "system", "content": "Be brief.\n\nBe kind."},
                {"role": "user", "content": [
                    {"type": "text", "text": "what is this"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBOR"}},
                ]},
                {"role": "assistant", "content": "Let me look.", "reasoning_content": "hm", "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "Bash", "arguments": "{\"command\":\"ls\"}"}},
                    {"id": "functions.Read:1", "type": "function", "function": {"name": "Read", "arguments": "{\"path\": oops"},
                     "extra_content": {"google": {"thought_signature": "s"}}},
                ]},
                {"role": "tool", "tool_call_id": "call_1", "content": "a.png\n[image]"},
                {"role": "tool", "tool_call_id": "functions.Read:1", "content": "Error: bad input"},
                {"role": "user", "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                    {"type": "text", "text": "and hurry"},
                ]},
                {"role": "assistant", "content": "A picture."},
                {"role": "user", "content": "thanks"},
            ],
        })
    );
    assert_eq!(dropped(&request, Server::Compatible), [""; 0]);
}

#[test]
fn openai_gets_its_own_fields() {
    let mut request = hello("gpt-4.1");
    request.metadata.session = Some("s1".into());
    assert_eq!(
        body(&request, Server::OpenAi),
        json!({
            "model": "gpt-4.1",
            "stream": true,
            "stream_options": {"include_usage": true},
            "store": false,
            "prompt_cache_key": "s1",
            "max_completion_tokens": 8192,
            "messages": [{"role": "user", "content": "hi"}],
        })
    );
}

#[test]
fn mistral_gets_nothing_it_does_not_know_and_nine_character_ids() {
    let request = request("mistral-large", conversation("mistral-large"));
    let body = body(&request, Server::Mistral);
    assert_eq!(body.get("stream_options"), None);
    let ids: Vec<&str> = body["messages"][2]["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["id"].as_str().unwrap())
        .collect();
    assert!(ids.iter().all(|id| id.len() == 9), "{ids:?}");
    assert_eq!(body["messages"][3]["tool_call_id"], ids[0]);
    assert_eq!(body["messages"][4]["tool_call_id"], ids[1]);
}

#[test]
fn a_body_is_a_prefix_of_the_next_turns() {
    let all = conversation("qwen3");
    // Up to each user turn that a request can end with.
    let ends = [3, 5, 7];
    let written: Vec<String> = ends
        .iter()
        .map(|end| {
            let mut request = request("qwen3", all[..*end].to_vec());
            request.tools = Arc::from([bash()]);
            body(&request, Server::Compatible).to_string()
        })
        .collect();
    for pair in written.windows(2) {
        let prefix = pair[0].strip_suffix("]}").unwrap();
        assert!(pair[1].starts_with(prefix), "{}\n{}", pair[0], pair[1]);
    }
}

#[test]
fn what_another_model_wrote_loses_its_private_parts() {
    let request = request("qwen3", conversation("other"));
    let body = body(&request, Server::Compatible);
    let assistant = &body["messages"][2];
    assert_eq!(assistant.get("reasoning_content"), None);
    assert_eq!(assistant["tool_calls"][1].get("extra_content"), None);
    let id = assistant["tool_calls"][1]["id"].as_str().unwrap();
    assert!(id.starts_with("call_") && id.len() == 37, "{id}");
    assert_eq!(body["messages"][4]["tool_call_id"], id);
}

#[test]
fn reasoning_goes_back_in_the_field_it_came_in_and_within_tool_loops_only() {
    let answer = |block: Block, call: bool| {
        let mut content = vec![block, Block::text("x")];
        content.extend(call.then(|| tool_use("c", "Bash", json!({}), None)));
        let message = Message {
            role: Role::Assistant,
            content,
            origin: Some(Origin::new("openai", "m")),
        };
        let turns = vec![Message::user("a"), message, Message::user("b")];
        body(&request("m", turns), Server::Compatible)["messages"][1].clone()
    };
    let details = json!([{"type": "reasoning.encrypted", "data": "x"}]);
    let with_details = answer(
        thinking("t", Some(json!({"reasoning_details": details}))),
        true,
    );
    assert_eq!(with_details["reasoning_details"], details);
    assert_eq!(with_details.get("reasoning_content"), None);
    let unmarked = answer(thinking("t", None), true);
    assert_eq!(unmarked.get("reasoning_content"), None);
    let marked = || thinking("t", Some(json!({"field": "reasoning_content"})));
    assert_eq!(answer(marked(), true)["reasoning_content"], "t");
    assert_eq!(answer(marked(), false).get("reasoning_content"), None);
    // What the other format keeps means nothing here.
    let item = answer(
        thinking("t", Some(json!({"type": "reasoning", "id": "rs_1"}))),
        true,
    );
    assert_eq!(item.as_object().unwrap().len(), 3);
}

#[test]
fn empty_texts_and_messages_vanish_and_neighbours_merge() {
    let request = request(
        "m",
        vec![
            Message::system(""),
            Message::user("a"),
            Message::new(Role::Assistant, vec![thinking("t", None), Block::text("")]),
            Message::user(""),
            Message::user("b"),
            Message::user("c"),
        ],
    );
    assert_eq!(
        body(&request, Server::Compatible)["messages"],
        json!([{"role": "user", "content": "a"}, {"role": "user", "content": "b\n\nc"}])
    );
}

#[test]
fn tool_choices_have_their_forms() {
    let choice = |choice: ToolChoice| {
        let mut request = hello("gpt-4.1");
        request.tools = Arc::from([bash()]);
        request.tool_choice = choice;
        body(&request, Server::OpenAi).get("tool_choice").cloned()
    };
    assert_eq!(choice(ToolChoice::Auto), None);
    assert_eq!(choice(ToolChoice::Required), Some(json!("required")));
    assert_eq!(choice(ToolChoice::None), Some(json!("none")));
    assert_eq!(
        choice(ToolChoice::Named("Bash".into())),
        Some(json!({"type": "function", "function": {"name": "Bash"}}))
    );
    let mut request = hello("gpt-4.1");
    request.tool_choice = ToolChoice::Required;
    request.parallel_calls = ParallelCalls::OneAtATime;
    let without_tools = body(&request, Server::OpenAi);
    assert_eq!(without_tools.get("tool_choice"), None);
    assert_eq!(without_tools.get("parallel_tool_calls"), None);
    request.tools = Arc::from([bash()]);
    assert_eq!(
        body(&request, Server::OpenAi)["parallel_tool_calls"],
        json!(false)
    );
}

#[test]
fn structured_output_is_strict_where_it_can_be() {
    let format = |schema: Value| {
        let mut request = hello("gpt-4.1");
        request.output = OutputFormat::JsonSchema {
            name: "my answer".into(),
            schema: Arc::new(schema),
        };
        body(&request, Server::OpenAi)["response_format"].clone()
    };
    assert_eq!(
        format(json!({"type": "object", "properties": {"a": {"type": "string"}}})),
        json!({"type": "json_schema", "json_schema": {"name": "my_answer", "strict": true, "schema": {
            "type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"], "additionalProperties": false,
        }}})
    );
    let open = json!({"type": "object", "additionalProperties": {"type": "string"}});
    assert_eq!(
        format(open.clone())["json_schema"],
        json!({"name": "my_answer", "strict": false, "schema": open})
    );
}

/// Effort with and without tools, per row of the table.
#[rstest]
#[case("gpt-4.1", Reasoning::Effort(Effort::High), None, None, 1)]
#[case("o3", Reasoning::Effort(Effort::High), Some("high"), Some("high"), 0)]
#[case("gpt-5.1", Reasoning::Effort(Effort::Low), Some("low"), Some("low"), 0)]
#[case("gpt-5.4", Reasoning::Effort(Effort::Low), Some("low"), None, 0)]
#[case("gpt-5.4", Reasoning::Auto, None, None, 0)]
#[case("gpt-5.4", Reasoning::Off, Some("none"), Some("none"), 0)]
#[case("gpt-5.5", Reasoning::Auto, None, Some("none"), 0)]
#[case(
    "gpt-5.5",
    Reasoning::Effort(Effort::Max),
    Some("xhigh"),
    Some("none"),
    0
)]
#[case("gpt-5.5", Reasoning::Off, Some("none"), Some("none"), 0)]
fn tools_and_reasoning_exclude_each_other_on_newer_models(
    #[case] model: &str,
    #[case] reasoning: Reasoning,
    #[case] alone: Option<&str>,
    #[case] with_tools: Option<&str>,
    #[case] warnings: usize,
) {
    let mut request = hello(model);
    request.reasoning = reasoning;
    let effort = |request: &Request, server| {
        let body = body(request, server);
        body.get("reasoning_effort").cloned()
    };
    assert_eq!(
        effort(&request, Server::OpenAi),
        alone.map(|name| json!(name))
    );
    assert_eq!(dropped(&request, Server::OpenAi).len(), warnings);
    request.tools = Arc::from([bash()]);
    assert_eq!(
        effort(&request, Server::OpenAi),
        with_tools.map(|name| json!(name))
    );
    let lost = matches!(reasoning, Reasoning::Effort(_)) && alone != with_tools;
    assert_eq!(
        dropped(&request, Server::OpenAi).len(),
        warnings + usize::from(lost)
    );
    // Other servers translate for these models.
    assert_eq!(
        effort(&request, Server::Compatible),
        alone.map(|name| json!(name))
    );
}

#[test]
fn a_model_that_takes_no_tools_here_names_the_other_api() {
    let mut request = hello("gpt-6-astra");
    request.tools = Arc::from([bash()]);
    let error = encode(&request, Server::OpenAi, &Memory::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    assert_eq!(
        error.remedy(),
        Some("use the Responses API: `[provider.openai] api = \"responses\"`")
    );
    assert!(encode(&request, Server::Compatible, &Memory::default()).is_ok());
    assert!(encode(&hello("gpt-6-astra"), Server::OpenAi, &Memory::default()).is_ok());
}

#[test]
fn sampling_and_stops_are_left_out_where_they_would_be_refused() {
    let sampled = |model: &str| {
        let mut request = hello(model);
        request.temperature = Some(0.5);
        request.stop_sequences = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let body = body(&request, Server::OpenAi);
        (
            body.get("temperature").cloned(),
            body.get("stop").cloned(),
            dropped(&request, Server::OpenAi),
        )
    };
    let four = Some(json!(["a", "b", "c", "d"]));
    let half = Some(json!(0.5));
    assert_eq!(
        sampled("gpt-4.1"),
        (half.clone(), four.clone(), vec!["stop".into()])
    );
    assert_eq!(
        sampled("gpt-5.4"),
        (half.clone(), None, vec!["stop".into()])
    );
    let both = vec!["temperature".to_owned(), "stop".to_owned()];
    assert_eq!(sampled("gpt-5"), (None, None, both));
    // An open model behind an OpenAI-like name is no OpenAI model.
    assert_eq!(
        sampled("openai/gpt-oss-20b"),
        (half, four, vec!["stop".into()])
    );
}

#[test]
fn results_of_neighbouring_messages_come_before_their_images() {
    let request = request(
        "m",
        vec![
            Message::user("a"),
            Message::new(
                Role::Assistant,
                vec![
                    tool_use("1", "A", json!({}), None),
                    tool_use("2", "B", json!({}), None),
                ],
            ),
            Message::new(
                Role::User,
                vec![result("1", vec![ToolContent::Image(image("AAAA"))], false)],
            ),
            Message::new(Role::User, vec![result("2", vec![text("x")], false)]),
        ],
    );
    let messages = body(&request, Server::Compatible)["messages"].clone();
    let roles: Vec<&str> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "user"]);
    assert_eq!(messages[1]["content"], Value::Null);
}

proptest! {
    #[test]
    fn what_is_remembered_changes_no_byte(history in any_conversation(ID, ["gpt-6-astra", "gpt-4.1"])) {
        assert_memory_changes_no_byte(&history, ["gpt-6-astra", "gpt-4.1"], |request, memory| {
            encode(request, Server::Compatible, memory).unwrap().call.body.unwrap()
        })?;
    }
}
