//! Requests in Ollama's form, without what the model would reject.

use caliban_model::{
    Effort, Error, ForcedTools, ParallelCalls, Reasoning, Request, Sampling, ToolChoice, ToolSpec,
    Warning, traits,
};
use serde_json::{Map, Value, json};

use super::error;
use super::facts::{Facts, Support, Thinking};
use super::messages::{Omissions, messages, system};
use crate::answer_form;
use crate::body::{Body, List};
use crate::memory::Memory;

/// The body of a request. The conversation comes last, so that a longer one continues the bytes
/// of the shorter.
pub(super) fn body(
    request: &Request,
    facts: Facts,
    num_ctx: u64,
    memory: &Memory<Omissions>,
) -> Result<(Body, Vec<Warning>), Error> {
    let mut encoder = Encoder {
        request,
        facts,
        warnings: Vec::new(),
    };
    let mut body = Body::default();
    body.set("model", Value::from(&*request.model));
    body.set("stream", true.into());
    // Without these the server forgets old messages, or the middle of its answer, silently.
    body.set("truncate", false.into());
    body.set("shift", false.into());
    if let Some(think) = encoder.think() {
        body.set("think", think);
    }
    // A grammar for the answer would keep the model from calling tools; then it is only told.
    let mut told = None;
    if let Some(schema) = answer_form::wanted(request) {
        if request.tools.is_empty() {
            body.set("format", schema.clone());
        } else {
            told = Some(answer_form::instruction(schema));
        }
    }
    body.set("options", encoder.options(num_ctx));
    if encoder.takes_tools()? {
        body.set_written("tools", memory.tools(request, || tools(request)));
    }
    let reader = format!("{} {:?}", request.model, facts.vision);
    let written = memory.turns(&reader, request.turns(), |turns, omissions| {
        let turns = turns.iter().map(AsRef::as_ref);
        messages(turns, &request.model, facts.vision, omissions)
    });
    for why in written.state {
        encoder.leave_out("images", why);
    }
    let messages = List {
        head: system(request, told).into_iter().collect(),
        ..written.turns
    };
    body.set_list("messages", messages);
    Ok((body, encoder.warnings))
}

struct Encoder<'a> {
    request: &'a Request,
    facts: Facts,
    warnings: Vec<Warning>,
}

impl Encoder<'_> {
    fn leave_out(&mut self, parameter: &str, why: &str) {
        self.warnings
            .push(Warning::dropped(parameter, &self.request.model, why));
    }

    fn options(&mut self, num_ctx: u64) -> Value {
        let mut options = Map::new();
        options.insert("num_ctx".to_owned(), num_ctx.into());
        options.insert("num_predict".to_owned(), self.request.max_tokens.into());
        if let Some(temperature) = self.request.temperature {
            match traits(super::ID, &self.request.model).sampling {
                Sampling::Accepted => {
                    options.insert("temperature".to_owned(), temperature.into());
                }
                Sampling::Rejected | Sampling::WhenIdle => {
                    self.leave_out("temperature", "the model chooses its own");
                }
            }
        }
        if !self.request.stop_sequences.is_empty() {
            let stop = self.request.stop_sequences.clone();
            options.insert("stop".to_owned(), stop.into());
        }
        Value::Object(options)
    }

    /// Unset means on for models that think; a wish for thinking is refused by those that do
    /// not.
    fn think(&mut self) -> Option<Value> {
        let effort = match self.request.reasoning {
            Reasoning::Auto => return None,
            Reasoning::Off | Reasoning::Budget(0) => None,
            Reasoning::Effort(effort) => Some(effort),
            Reasoning::Budget(tokens) => Some(Effort::from_budget(tokens)),
        };
        match (self.facts.thinking, effort) {
            (Thinking::Optional | Thinking::LevelsOnly, Some(effort)) => {
                let known = traits(super::ID, &self.request.model).efforts;
                known.fit(effort).map(|level| level.as_str().into())
            }
            (Thinking::Optional, None) => Some(false.into()),
            (Thinking::Never, None) => None,
            (Thinking::LevelsOnly, None) => {
                self.leave_out("thinking: off", "the model always thinks");
                None
            }
            (Thinking::Never, Some(_)) => {
                self.leave_out("effort", "the model does not think");
                None
            }
            (Thinking::Unknown, _) => {
                self.leave_out(
                    "effort",
                    "the server does not tell whether the model thinks",
                );
                None
            }
        }
    }

    /// Whether tools are offered.
    fn takes_tools(&mut self) -> Result<bool, Error> {
        let forced = match self.request.tool_choice {
            ToolChoice::None => return Ok(false),
            ToolChoice::Auto => false,
            ToolChoice::Required | ToolChoice::Named(_) => true,
        };
        if self.request.tools.is_empty() {
            return Ok(false);
        }
        if self.facts.tools == Support::No {
            return Err(error::toolless(&self.request.model));
        }
        let accepted = traits(super::ID, &self.request.model).forced_tools;
        if forced && accepted != ForcedTools::Accepted {
            self.leave_out("tool_choice", "the server cannot make a model call a tool");
        }
        if self.request.parallel_calls == ParallelCalls::OneAtATime {
            self.leave_out("parallel_calls", "the API has no such switch");
        }
        Ok(true)
    }
}

fn tools(request: &Request) -> Value {
    let function = |tool: &ToolSpec| {
        json!({"type": "function", "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.input_schema,
        }})
    };
    request.tools.iter().map(function).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{any_conversation, assert_memory_changes_no_byte};
    use caliban_model::{
        Block, ErrorKind, Image, ImageMime, ImageSource, Message, OutputFormat, Role, ToolSpec,
        WarningKind,
    };
    use proptest::prelude::*;
    use rstest::rstest;
    use std::sync::Arc;

    const ABLE: Facts = Facts {
        tools: Support::Yes,
        vision: Support::Yes,
        thinking: Thinking::Optional,
        context: Some(131_072),
    };

    fn request() -> Request {
        let messages = vec![Message::system("Be brief."), Message::user("hi")];
        let mut request =
            Request::new("llama3.1", messages.into_iter().map(Arc::new).collect()).unwrap();
        request.tools = Arc::from([ToolSpec {
            name: "Bash".into(),
            description: "Runs a command.".into(),
            input_schema: json!({"type": "object"}),
        }]);
        request
    }

    fn written(request: &Request, facts: Facts) -> (Value, Vec<String>) {
        let (body, warnings) = body(request, facts, 65_536, &Memory::default()).unwrap();
        let dropped = warnings
            .into_iter()
            .map(|warning| match warning.kind {
                WarningKind::ParameterDropped { parameter } => parameter,
                other => panic!("unexpected {other:?}"),
            })
            .collect();
        (Value::Object(body.values()), dropped)
    }

    #[test]
    fn a_request_with_everything_is_written_whole() {
        let mut request = request();
        request.temperature = Some(0.2);
        request.stop_sequences = vec!["END".into()];
        request.reasoning = Reasoning::Effort(Effort::Medium);
        request.output = OutputFormat::JsonSchema {
            name: "answer".into(),
            schema: Arc::new(json!({"type": "object", "properties": {}})),
        };
        let (body, dropped) = written(&request, ABLE);
        let told = answer_form::instruction(&json!({"type": "object", "properties": {}}));
        assert_eq!(
            body,
            json!({
                "model": "llama3.1",
                "stream": true,
                "truncate": false,
                "shift": false,
                "think": "medium",
                "options": {"num_ctx": 65536, "num_predict": 8192, "temperature": 0.2, "stop": ["END"]},
                "tools": [{"type": "function", "function": {
                    "name": "Bash", "description": "Runs a command.", "parameters": {"type": "object"}}}],
                "messages": [
                    {"role": "system", "content": format!("Be brief.\n\n{told}")},
                    {"role": "user", "content": "hi"},
                ],
            })
        );
        assert!(dropped.is_empty());
        // A grammar goes along only where there is nothing to call.
        request.tools = Arc::new([]);
        let (body, _) = written(&request, ABLE);
        assert_eq!(body["format"], json!({"type": "object", "properties": {}}));
        assert_eq!(body["messages"][0]["content"], "Be brief.");
    }

    #[rstest]
    #[case(Thinking::Optional, Reasoning::Auto, Value::Null, &[])]
    #[case(Thinking::Optional, Reasoning::Off, json!(false), &[])]
    #[case(Thinking::Optional, Reasoning::Effort(Effort::Low), json!("low"), &[])]
    #[case(Thinking::Optional, Reasoning::Effort(Effort::Xhigh), json!("high"), &[])]
    #[case(Thinking::Optional, Reasoning::Effort(Effort::Max), json!("max"), &[])]
    #[case(Thinking::Optional, Reasoning::Budget(8_000), json!("medium"), &[])]
    #[case(Thinking::Optional, Reasoning::Budget(0), json!(false), &[])]
    #[case(Thinking::LevelsOnly, Reasoning::Effort(Effort::High), json!("high"), &[])]
    #[case(Thinking::LevelsOnly, Reasoning::Off, Value::Null, &["thinking: off"])]
    #[case(Thinking::Never, Reasoning::Off, Value::Null, &[])]
    #[case(Thinking::Never, Reasoning::Effort(Effort::Low), Value::Null, &["effort"])]
    #[case(Thinking::Unknown, Reasoning::Effort(Effort::Low), Value::Null, &["effort"])]
    #[case(Thinking::Unknown, Reasoning::Auto, Value::Null, &[])]
    fn thinking_is_asked_for_where_it_is_known(
        #[case] thinking: Thinking,
        #[case] reasoning: Reasoning,
        #[case] expected: Value,
        #[case] left_out: &[&str],
    ) {
        let mut request = request();
        request.reasoning = reasoning;
        let (body, dropped) = written(&request, Facts { thinking, ..ABLE });
        assert_eq!(body.get("think").cloned().unwrap_or_default(), expected);
        assert_eq!(dropped, left_out);
    }

    #[rstest]
    #[case(ToolChoice::Auto, true, &[])]
    #[case(ToolChoice::None, false, &[])]
    #[case(ToolChoice::Required, true, &["tool_choice"])]
    #[case(ToolChoice::Named("Bash".into()), true, &["tool_choice"])]
    fn a_tool_choice_is_none_or_automatic(
        #[case] choice: ToolChoice,
        #[case] offered: bool,
        #[case] left_out: &[&str],
    ) {
        let mut request = request();
        request.tool_choice = choice;
        let (body, dropped) = written(&request, ABLE);
        assert_eq!(body.get("tools").is_some(), offered);
        assert_eq!(dropped, left_out);
    }

    #[test]
    fn a_model_without_tools_is_an_error_that_names_it() {
        let facts = Facts {
            tools: Support::No,
            ..ABLE
        };
        let error = body(&request(), facts, 1, &Memory::default()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid);
        assert_eq!(
            error.to_string(),
            "ollama (llama3.1): the model `llama3.1` does not support tools; choose a model that \
             supports tools (`ollama show llama3.1`) or run with `--no-tools`"
        );
        let mut unoffered = request();
        unoffered.tool_choice = ToolChoice::None;
        assert!(body(&unoffered, facts, 1, &Memory::default()).is_ok());
    }

    #[test]
    fn each_kind_of_omitted_image_is_told_once() {
        let linked = || {
            Block::Image(Image {
                mime: ImageMime::Png,
                source: ImageSource::Url {
                    url: "https://x/y.png".into(),
                },
                dims: None,
            })
        };
        let message = Message::new(Role::User, vec![linked(), linked()]);
        let request = Request::new("llava", vec![Arc::new(message)].into()).unwrap();
        assert_eq!(written(&request, ABLE).1, ["images"]);
    }

    #[test]
    fn a_longer_conversation_continues_the_bytes_of_the_shorter() {
        let mut messages: Vec<Arc<Message>> = request().messages().to_vec();
        let first = request();
        messages.push(Arc::new(Message::assistant("hello")));
        messages.push(Arc::new(Message::user("more")));
        let mut second = Request::new("llama3.1", messages.into()).unwrap();
        second.tools = first.tools.clone();
        let bytes = |request: &Request| {
            let (body, _) = body(request, ABLE, 65_536, &Memory::default()).unwrap();
            String::from_utf8(body.bytes().unwrap()).unwrap()
        };
        let first = bytes(&first);
        assert!(bytes(&second).starts_with(first.strip_suffix("]}").unwrap()));
    }

    proptest! {
        #[test]
        fn what_is_remembered_changes_no_byte(history in any_conversation(super::super::ID, ["llama3.1", "qwen3"])) {
            assert_memory_changes_no_byte(&history, ["llama3.1", "qwen3"], |request, memory| {
                body(request, ABLE, 65_536, memory).unwrap().0
            })?;
        }
    }
}
