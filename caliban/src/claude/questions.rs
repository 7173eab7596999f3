//! Questions of the model to the user: a tool whose input comes back with the answers in it.

use caliban_agent::{
    Advice, Adviser, Effect, Tool, ToolCall, ToolContext, ToolOutput, ToolStatus, Workspace,
};
use caliban_model::ToolSpec;
use caliban_protocol::claude::ASK_USER_QUESTION;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

/// Puts questions to the user. The answers are written into the input by whoever consents to the
/// call.
#[derive(Debug)]
pub(crate) struct AskUserQuestion(ToolSpec);

impl AskUserQuestion {
    pub(crate) fn new() -> Self {
        let option = json!({
            "type": "object",
            "properties": {
                "label": {"type": "string", "description": "What the user chooses, in a few words."},
                "description": {"type": "string", "description": "What choosing it means."},
            },
            "required": ["label"],
        });
        let question = json!({
            "type": "object",
            "properties": {
                "question": {"type": "string"},
                "header": {"type": "string", "description": "A word or two to show above it."},
                "options": {"type": "array", "items": option, "minItems": 2, "maxItems": 4},
                "multiSelect": {"type": "boolean", "description": "Several may be chosen."},
            },
            "required": ["question", "options"],
        });
        Self(ToolSpec {
            name: ASK_USER_QUESTION.to_owned(),
            description: "Asks the user up to four questions with options to choose from, when \
                          only the user can decide. The user may also answer in other words."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "questions": {"type": "array", "items": question, "minItems": 1, "maxItems": 4},
                },
                "required": ["questions"],
            }),
        })
    }
}

impl Tool for AskUserQuestion {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn effect(&self) -> Effect {
        Effect::Session
    }

    fn first_arg(&self, _: &Value) -> Option<String> {
        None
    }

    fn conflict_key(&self, _: &Value, _: &Workspace) -> Option<String> {
        // One question at a time.
        Some(ASK_USER_QUESTION.to_owned())
    }

    fn supersession_key(&self, _: &Value) -> Option<String> {
        None
    }

    fn run(&self, input: Value, _: ToolContext) -> BoxFuture<'_, ToolOutput> {
        let output = match answers(&input) {
            Some(answers) => ToolOutput::ok(format!(
                "The user has answered your questions: {answers}. Go on with these answers in mind."
            )),
            None => ToolOutput::new(
                ToolStatus::Failed,
                "The user did not answer the questions.".to_owned(),
            ),
        };
        async move { output }.boxed()
    }
}

/// The answers that came back with the input, in its order.
fn answers(input: &Value) -> Option<String> {
    let answers = input.get("answers")?.as_object()?;
    let list: Vec<String> = answers
        .iter()
        .map(|(question, answer)| match answer.as_str() {
            Some(answer) => format!("\"{question}\"=\"{answer}\""),
            None => format!("\"{question}\"={answer}"),
        })
        .collect();
    (!list.is_empty()).then(|| list.join(", "))
}

/// Sees to it that the questions reach the user, whatever rules and modes say.
#[derive(Debug)]
pub(crate) struct AlwaysAsked;

impl Adviser for AlwaysAsked {
    fn advise<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Advice> {
        let advice = if &*call.name == ASK_USER_QUESTION {
            Advice::Ask {
                reason: "only the user can answer".to_owned(),
                remedy: None,
                input: None,
            }
        } else {
            Advice::Allow
        };
        async move { advice }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_in_order() {
        let input = json!({"questions": [], "answers": {"Which?": "A", "And?": ["B", "C"]}});
        assert_eq!(
            answers(&input).unwrap(),
            r#""Which?"="A", "And?"=["B","C"]"#
        );
        for input in [json!({}), json!({"answers": {}}), json!({"answers": "A"})] {
            assert_eq!(answers(&input), None);
        }
    }
}
