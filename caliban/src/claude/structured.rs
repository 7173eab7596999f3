//! The answer as a value: a tool that takes it, and a reminder for models that do not call it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use caliban_agent::{
    Advice, Adviser, AnswerSchema, Effect, Ending, PromptStage, PromptVerdict, StopStage,
    StopVerdict, Tool, ToolCall, ToolContext, ToolOutput, ToolStatus, Workspace,
};
use caliban_model::{Message, ToolSpec};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

const NAME: &str = "StructuredOutput";
/// How often an answer may have the wrong form.
const MAX_FAILURES: u32 = 5;

/// Takes the final answer and ends the run with it.
#[derive(Debug)]
pub(crate) struct StructuredOutput {
    spec: ToolSpec,
    schema: AnswerSchema,
    failures: AtomicU32,
}

impl StructuredOutput {
    /// The error says what is wrong with the schema.
    pub(crate) fn new(schema: Value) -> Result<Self, String> {
        Ok(Self {
            spec: ToolSpec {
                name: NAME.to_owned(),
                description: "Takes your final answer in the form that was asked for. Call it \
                              exactly once, when everything else is done."
                    .to_owned(),
                input_schema: schema.clone(),
            },
            schema: AnswerSchema::new(schema)?,
            failures: AtomicU32::new(0),
        })
    }
}

impl Tool for StructuredOutput {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self) -> Effect {
        Effect::Session
    }

    fn first_arg(&self, _: &Value) -> Option<String> {
        None
    }

    fn conflict_key(&self, _: &Value, _: &Workspace) -> Option<String> {
        None
    }

    fn supersession_key(&self, _: &Value) -> Option<String> {
        None
    }

    /// What does not fit is counted, so it is judged here.
    fn understands(&self, _: &Value) -> bool {
        true
    }

    fn run(&self, input: Value, _: ToolContext) -> BoxFuture<'_, ToolOutput> {
        let output = match self.schema.check(&input.to_string()) {
            Ok(value) => ToolOutput::ok("Structured output provided successfully")
                .ending(Ending::Answer(value)),
            Err(problem) => {
                let text = format!("The output does not match the required schema: {problem}");
                let output = ToolOutput::new(ToolStatus::Failed, text.clone());
                if self.failures.fetch_add(1, Ordering::Relaxed) + 1 < MAX_FAILURES {
                    output
                } else {
                    output.ending(Ending::GiveUp(format!("{text} ({MAX_FAILURES} attempts)")))
                }
            }
        };
        async move { output }.boxed()
    }
}

/// Reminds a model, once for each prompt, that it has to call the tool.
#[derive(Debug, Default)]
pub(crate) struct Reminder {
    has_reminded: AtomicBool,
}

impl Adviser for Reminder {
    /// Giving the answer that was asked for needs nobody's consent.
    fn advise<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Advice> {
        let advice = if &*call.name == NAME {
            Advice::Approve {
                reason: None,
                input: None,
            }
        } else {
            Advice::Allow
        };
        async move { advice }.boxed()
    }
}

impl PromptStage for Reminder {
    fn before_prompt<'a>(&'a self, _: &'a Message) -> BoxFuture<'a, PromptVerdict> {
        self.has_reminded.store(false, Ordering::Relaxed);
        async { PromptVerdict::Accept }.boxed()
    }
}

impl StopStage for Reminder {
    fn before_stop<'a>(&'a self, _: &'a str) -> BoxFuture<'a, StopVerdict> {
        let verdict = if self.has_reminded.swap(true, Ordering::Relaxed) {
            StopVerdict::Stop
        } else {
            StopVerdict::Continue {
                message: format!("Call the {NAME} tool now with your final answer."),
            }
        };
        async move { verdict }.boxed()
    }
}

/// Tools of the client's own that are always there.
#[derive(Debug)]
pub(crate) struct Fixed(pub(crate) Vec<Arc<dyn Tool>>);

impl caliban_agent::ToolSource for Fixed {
    fn generation(&self) -> u64 {
        0
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.clone()
    }

    fn find<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Arc<dyn Tool>>> {
        let found = self.0.iter().find(|tool| tool.spec().name == name).cloned();
        async move { found }.boxed()
    }
}
