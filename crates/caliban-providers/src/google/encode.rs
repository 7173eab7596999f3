//! Requests in Gemini's form, without what the model would reject.

use caliban_model::{
    Effort, ForcedTools, ModelTraits, OutputFormat, ParallelCalls, Reasoning, Request, Sampling,
    ThinkingDefault, ThinkingForm, ToolChoice, Warning, traits,
};
use serde_json::{Map, Value, json};

use super::contents::contents;
use crate::body::Body;
use crate::memory::Memory;

/// More stop sequences than this are refused.
const MAX_STOP_SEQUENCES: usize = 5;

/// What a model knows beyond the table of traits: from Gemini 3 on, calls are signed, tool
/// results hold images, and JSON output goes along with tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// Up to Gemini 2.5.
    Second,
    Third,
}

impl Generation {
    /// Levels of thinking came with Gemini 3.
    fn of(traits: &ModelTraits) -> Self {
        match traits.thinking {
            ThinkingForm::Level => Self::Third,
            ThinkingForm::None
            | ThinkingForm::Manual
            | ThinkingForm::Adaptive
            | ThinkingForm::AdaptiveOrManual
            | ThinkingForm::Effort
            | ThinkingForm::Probed => Self::Second,
        }
    }
}

/// The body of a request. The conversation comes last, so that a longer one continues the bytes
/// of the shorter.
pub(crate) fn body(request: &Request, memory: &Memory<()>) -> (Body, Vec<Warning>) {
    let traits = traits(super::ID, &request.model);
    let mut encoder = Encoder {
        request,
        generation: Generation::of(&traits),
        traits,
        warnings: Vec::new(),
    };
    let mut body = Body::default();
    if let Some(system) = encoder.system() {
        body.set("systemInstruction", system);
    }
    if !request.tools.is_empty() {
        body.set_written("tools", memory.tools(request, || encoder.tools()));
    }
    if let Some(config) = encoder.tool_config() {
        body.set("toolConfig", config);
    }
    body.set("generationConfig", encoder.generation_config());
    let author = memory.author(super::ID, &request.model);
    let written = memory.turns(&request.model, request.turns(), |turns, ()| {
        let messages = turns.iter().map(AsRef::as_ref);
        contents(messages, author, encoder.generation)
    });
    body.set_list("contents", written.turns);
    (body, encoder.warnings)
}

struct Encoder<'a> {
    request: &'a Request,
    traits: ModelTraits,
    generation: Generation,
    warnings: Vec<Warning>,
}

impl Encoder<'_> {
    fn leave_out(&mut self, parameter: &str, why: &str) {
        self.warnings
            .push(Warning::dropped(parameter, &self.request.model, why));
    }

    fn system(&self) -> Option<Value> {
        let parts: Vec<Value> = self
            .request
            .system()
            .iter()
            .map(|message| message.text())
            .filter(|text| !text.is_empty())
            .map(|text| json!({"text": text}))
            .collect();
        (!parts.is_empty()).then(|| json!({"parts": parts}))
    }

    fn tools(&self) -> Value {
        let declarations: Vec<Value> = self
            .request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "parametersJsonSchema": tool.input_schema,
                })
            })
            .collect();
        json!([{"functionDeclarations": declarations}])
    }

    fn tool_config(&mut self) -> Option<Value> {
        if self.request.tools.is_empty() {
            return None;
        }
        if self.request.parallel_calls == ParallelCalls::OneAtATime {
            self.leave_out("parallel_calls", "the API has no such switch");
        }
        let config = match &self.request.tool_choice {
            ToolChoice::Auto => return None,
            ToolChoice::None => json!({"mode": "NONE"}),
            ToolChoice::Required => json!({"mode": "ANY"}),
            ToolChoice::Named(name) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
        };
        let forced = match &self.request.tool_choice {
            ToolChoice::Required | ToolChoice::Named(_) => true,
            ToolChoice::Auto | ToolChoice::None => false,
        };
        if forced && self.traits.forced_tools != ForcedTools::Accepted {
            self.leave_out("tool_choice", "the model cannot be made to call a tool");
            return None;
        }
        Some(json!({"functionCallingConfig": config}))
    }

    fn generation_config(&mut self) -> Value {
        let mut config = Map::new();
        config.insert("maxOutputTokens".into(), self.request.max_tokens.into());
        if let Some(temperature) = self.request.temperature {
            match self.traits.sampling {
                Sampling::Accepted => {
                    config.insert("temperature".into(), temperature.into());
                }
                Sampling::Rejected | Sampling::WhenIdle => {
                    self.leave_out("temperature", "the model chooses its own");
                }
            }
        }
        let mut stops = self.request.stop_sequences.clone();
        if stops.len() > MAX_STOP_SEQUENCES {
            stops.truncate(MAX_STOP_SEQUENCES);
            self.leave_out(
                "stop_sequences",
                &format!("only the first {MAX_STOP_SEQUENCES} are accepted"),
            );
        }
        if !stops.is_empty() {
            config.insert("stopSequences".into(), stops.into());
        }
        if let OutputFormat::JsonSchema { schema, .. } = &self.request.output {
            match self.generation {
                Generation::Second if !self.request.tools.is_empty() => {
                    self.leave_out("output_format", "the model cannot combine it with tools");
                }
                Generation::Second | Generation::Third => {
                    config.insert("responseMimeType".into(), "application/json".into());
                    config.insert("responseJsonSchema".into(), (**schema).clone());
                }
            }
        }
        if let Some(thinking) = self.thinking() {
            config.insert("thinkingConfig".into(), thinking);
        }
        Value::Object(config)
    }

    /// Level and budget exclude each other; thoughts are shown whenever the model thinks.
    fn thinking(&mut self) -> Option<Value> {
        let reasoning = match self.request.reasoning {
            Reasoning::Budget(0) => Reasoning::Off,
            other => other,
        };
        let thoughts = json!({"includeThoughts": true});
        match self.traits.thinking {
            ThinkingForm::Manual => match reasoning {
                Reasoning::Auto => Some(thoughts),
                Reasoning::Off => self.no_thinking(json!({"thinkingBudget": 0})),
                Reasoning::Effort(effort) => Some(self.budget(tokens_for(effort))),
                Reasoning::Budget(tokens) => Some(self.budget(tokens)),
            },
            ThinkingForm::Level => match reasoning {
                Reasoning::Auto => Some(thoughts),
                Reasoning::Off => self.no_thinking(json!({"thinkingLevel": "MINIMAL"})),
                Reasoning::Effort(effort) => Some(self.level(effort)),
                Reasoning::Budget(tokens) => {
                    self.leave_out(
                        "thinking_budget",
                        "it takes a level, so the nearest one is used",
                    );
                    Some(self.level(Effort::from_budget(tokens)))
                }
            },
            ThinkingForm::None
            | ThinkingForm::Adaptive
            | ThinkingForm::AdaptiveOrManual
            | ThinkingForm::Effort
            | ThinkingForm::Probed => {
                match reasoning {
                    Reasoning::Auto | Reasoning::Off => {}
                    Reasoning::Effort(_) => self.leave_out("effort", "the model does not think"),
                    Reasoning::Budget(_) => {
                        self.leave_out("thinking_budget", "the model does not think");
                    }
                }
                None
            }
        }
    }

    fn no_thinking(&mut self, off: Value) -> Option<Value> {
        match self.traits.default {
            ThinkingDefault::On => Some(off),
            ThinkingDefault::Off => None,
            ThinkingDefault::Always => {
                self.leave_out("thinking: off", "the model always thinks");
                Some(json!({"includeThoughts": true}))
            }
        }
    }

    fn budget(&self, tokens: u32) -> Value {
        let tokens = match self.traits.budget {
            Some((least, most)) => tokens.max(least).min(most),
            None => tokens,
        };
        json!({"includeThoughts": true, "thinkingBudget": tokens})
    }

    fn level(&self, effort: Effort) -> Value {
        match self.traits.efforts.fit(effort) {
            Some(level) => json!({
                "includeThoughts": true,
                "thinkingLevel": level.as_str().to_ascii_uppercase(),
            }),
            None => json!({"includeThoughts": true}),
        }
    }
}

/// Thinking tokens for models that take a number where a level was wished.
fn tokens_for(effort: Effort) -> u32 {
    match effort {
        Effort::Low => 1_024,
        Effort::Medium => 8_192,
        Effort::High | Effort::Xhigh => 24_576,
        Effort::Max => 32_768,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{any_conversation, assert_memory_changes_no_byte};
    use caliban_model::Message;
    use caliban_model::{ToolSpec, WarningKind};
    use proptest::prelude::*;
    use rstest::rstest;
    use std::sync::Arc;

    fn written_body(request: &Request) -> (Map<String, Value>, Vec<Warning>) {
        let (body, warnings) = body(request, &Memory::default());
        (body.values(), warnings)
    }

    fn request(model: &str) -> Request {
        let messages = vec![Message::system("Be brief."), Message::user("hi")];
        Request::new(model, messages.into_iter().map(Arc::new).collect()).unwrap()
    }

    fn with_tools(model: &str) -> Request {
        let mut request = request(model);
        request.tools = Arc::from([ToolSpec {
            name: "Bash".into(),
            description: "Runs a command.".into(),
            input_schema: json!({"type": "object", "properties": {"command": {"type": "string"}},
                "required": ["command"], "additionalProperties": false}),
        }]);
        request
    }

    fn dropped(warnings: &[Warning]) -> Vec<&str> {
        warnings
            .iter()
            .map(|warning| match &warning.kind {
                WarningKind::ParameterDropped { parameter } => parameter.as_str(),
                other => panic!("unexpected {other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_request_with_everything_is_written_whole() {
        let mut request = with_tools("gemini-3.8-flash");
        request.temperature = Some(0.5);
        request.stop_sequences = vec!["END".into()];
        request.reasoning = Reasoning::Effort(Effort::Max);
        request.tool_choice = ToolChoice::Named("Bash".into());
        request.output = OutputFormat::JsonSchema {
            name: "answer".into(),
            schema: Arc::new(json!({"type": "object"})),
        };
        let (body, warnings) = written_body(&request);
        assert_eq!(
            Value::Object(body),
            json!({
                "systemInstruction": {"parts": [{"text": "Be brief."}]},
                "tools": [{"functionDeclarations": [{
                    "name": "Bash",
                    "description": "Runs a command.",
                    "parametersJsonSchema": {"type": "object",
                        "properties": {"command": {"type": "string"}},
                        "required": ["command"], "additionalProperties": false},
                }]}],
                "toolConfig": {"functionCallingConfig": {
                    "mode": "ANY", "allowedFunctionNames": ["Bash"]}},
                "generationConfig": {
                    "maxOutputTokens": 8192,
                    "temperature": 0.5,
                    "stopSequences": ["END"],
                    "responseMimeType": "application/json",
                    "responseJsonSchema": {"type": "object"},
                    "thinkingConfig": {"includeThoughts": true, "thinkingLevel": "HIGH"},
                },
                "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            })
        );
        assert_eq!(warnings, vec![]);
    }

    #[rstest]
    #[case("gemini-3.8-flash", Reasoning::Auto, json!({"includeThoughts": true}), &[])]
    #[case("gemini-3.8-flash", Reasoning::Effort(Effort::Low), json!({"includeThoughts": true, "thinkingLevel": "LOW"}), &[])]
    #[case("gemini-3.8-flash", Reasoning::Effort(Effort::Medium), json!({"includeThoughts": true, "thinkingLevel": "MEDIUM"}), &[])]
    #[case("gemini-3.8-flash", Reasoning::Effort(Effort::Xhigh), json!({"includeThoughts": true, "thinkingLevel": "HIGH"}), &[])]
    #[case("gemini-3.8-flash", Reasoning::Budget(8_192), json!({"includeThoughts": true, "thinkingLevel": "MEDIUM"}), &["thinking_budget"])]
    #[case("gemini-3.8-flash", Reasoning::Off, json!({"includeThoughts": true}), &["thinking: off"])]
    #[case("gemini-3.6-flash", Reasoning::Off, json!({"thinkingLevel": "MINIMAL"}), &[])]
    #[case("gemini-3.1-pro", Reasoning::Off, json!({"includeThoughts": true}), &["thinking: off"])]
    #[case("gemini-4-argon", Reasoning::Effort(Effort::High), json!({"includeThoughts": true, "thinkingLevel": "HIGH"}), &[])]
    #[case("models/gemini-2.5-pro", Reasoning::Auto, json!({"includeThoughts": true}), &[])]
    #[case("gemini-2.5-pro", Reasoning::Effort(Effort::Max), json!({"includeThoughts": true, "thinkingBudget": 32768}), &[])]
    #[case("gemini-2.5-pro", Reasoning::Budget(5), json!({"includeThoughts": true, "thinkingBudget": 128}), &[])]
    #[case("gemini-2.5-pro", Reasoning::Off, json!({"includeThoughts": true}), &["thinking: off"])]
    #[case("gemini-2.5-flash", Reasoning::Effort(Effort::Max), json!({"includeThoughts": true, "thinkingBudget": 24576}), &[])]
    #[case("gemini-2.5-flash", Reasoning::Effort(Effort::Low), json!({"includeThoughts": true, "thinkingBudget": 1024}), &[])]
    #[case("gemini-2.5-flash", Reasoning::Budget(0), json!({"thinkingBudget": 0}), &[])]
    #[case("gemini-2.5-flash-lite", Reasoning::Budget(1), json!({"includeThoughts": true, "thinkingBudget": 512}), &[])]
    #[case("gemini-2.5-flash", Reasoning::Off, json!({"thinkingBudget": 0}), &[])]
    #[case("gemma-3", Reasoning::Effort(Effort::Low), Value::Null, &["effort"])]
    #[case("gemma-3", Reasoning::Off, Value::Null, &[])]
    fn thinking_takes_the_form_of_the_model(
        #[case] model: &str,
        #[case] reasoning: Reasoning,
        #[case] expected: Value,
        #[case] left_out: &[&str],
    ) {
        let mut request = request(model);
        request.reasoning = reasoning;
        let (body, warnings) = written_body(&request);
        let config = body["generationConfig"].get("thinkingConfig");
        assert_eq!(config.cloned().unwrap_or_default(), expected);
        assert_eq!(dropped(&warnings), left_out);
    }

    #[rstest]
    #[case(ToolChoice::Auto, Value::Null)]
    #[case(ToolChoice::None, json!({"functionCallingConfig": {"mode": "NONE"}}))]
    #[case(ToolChoice::Required, json!({"functionCallingConfig": {"mode": "ANY"}}))]
    fn tool_choice_is_a_mode(#[case] choice: ToolChoice, #[case] expected: Value) {
        let mut request = with_tools("gemini-3.8-flash");
        request.tool_choice = choice.clone();
        let (written, _) = written_body(&request);
        assert_eq!(
            written.get("toolConfig").cloned().unwrap_or_default(),
            expected
        );

        let mut toolless = self::request("gemini-3.8-flash");
        toolless.tool_choice = choice;
        let (written, _) = written_body(&toolless);
        assert!(!written.contains_key("toolConfig") && !written.contains_key("tools"));
    }

    #[test]
    fn what_the_model_would_reject_is_left_out_with_a_warning() {
        let mut request = with_tools("gemini-2.5-flash");
        request.output = OutputFormat::JsonSchema {
            name: "answer".into(),
            schema: Arc::new(json!({"type": "object"})),
        };
        request.stop_sequences = (0..7).map(|n| n.to_string()).collect();
        request.parallel_calls = ParallelCalls::OneAtATime;
        let (written, warnings) = written_body(&request);
        assert_eq!(
            dropped(&warnings),
            ["parallel_calls", "stop_sequences", "output_format"]
        );
        let config = &written["generationConfig"];
        assert_eq!(config["stopSequences"], json!(["0", "1", "2", "3", "4"]));
        assert_eq!(config.get("responseMimeType"), None);

        request.tools = Arc::from([]);
        let (written, _) = written_body(&request);
        assert_eq!(
            written["generationConfig"]["responseJsonSchema"],
            json!({"type": "object"})
        );

        let mut argon = self::request("gemini-4-argon");
        argon.temperature = Some(0.2);
        let (written, warnings) = written_body(&argon);
        assert_eq!(dropped(&warnings), ["temperature"]);
        assert_eq!(written["generationConfig"].get("temperature"), None);
    }

    #[test]
    fn a_longer_conversation_continues_the_bytes_of_the_shorter() {
        let mut messages: Vec<Arc<Message>> = with_tools("gemini-3.8-flash").messages().to_vec();
        let mut write = |new: Option<Message>| {
            messages.extend(new.map(Arc::new));
            let mut request = Request::new("gemini-3.8-flash", messages.clone().into()).unwrap();
            request.tools = with_tools("gemini-3.8-flash").tools;
            String::from_utf8(body(&request, &Memory::default()).0.bytes().unwrap()).unwrap()
        };
        let first = write(None);
        let _answered = write(Some(Message::assistant("hello")));
        let second = write(Some(Message::user("more")));
        let prefix = first.strip_suffix("]}").unwrap();
        assert!(second.starts_with(prefix));
    }

    proptest! {
        #[test]
        fn what_is_remembered_changes_no_byte(history in any_conversation(super::super::ID, ["gemini-3.8-flash", "gemini-2.5-flash"])) {
            assert_memory_changes_no_byte(&history, ["gemini-3.8-flash", "gemini-2.5-flash"], |request, memory| body(request, memory).0)?;
        }
    }
}
