//! What a model would be told about how hard to think: the request is written as it would be sent,
//! and what it says is read from it.

use caliban_model::{ProviderKind, Request};
use serde_json::Value;

use crate::body::Body;
use crate::clouds::is_claude;
use crate::memory::Memory;
use crate::{anthropic, google, openai};

/// In words: `high`, `budget=4096`, `off`, `nothing`. None where the server that runs the model is
/// asked first.
pub fn effort_sent(kind: ProviderKind, request: &Request) -> Option<String> {
    let body = match (kind, is_claude(&request.model)) {
        (ProviderKind::Anthropic, _)
        | (ProviderKind::Bedrock | ProviderKind::Vertex | ProviderKind::Azure, true) => {
            anthropic::encode(request, &Memory::default()).call.body
        }
        (ProviderKind::OpenAi, _) | (ProviderKind::Azure, false) => {
            openai::encode(request, &Memory::default()).call.body
        }
        (ProviderKind::Google, _) | (ProviderKind::Vertex, false) => {
            Some(google::body(request, &Memory::default()).0)
        }
        #[cfg(feature = "bedrock")]
        (ProviderKind::Bedrock, false) => {
            crate::clouds::encode_converse(request, &Memory::default())
                .call
                .body
        }
        #[cfg(not(feature = "bedrock"))]
        (ProviderKind::Bedrock, false) => return None,
        (ProviderKind::Ollama, _) => return None,
    };
    Some(told(&body.unwrap_or_default()))
}

fn told(body: &Body) -> String {
    let body = Value::Object(body.values());
    let number = |path: &str| body.pointer(path).and_then(Value::as_u64);
    let word = |path: &str| body.pointer(path).and_then(Value::as_str);
    let budget = number("/thinking/budget_tokens")
        .or_else(|| number("/generationConfig/thinkingConfig/thinkingBudget"));
    let level = word("/output_config/effort")
        .or_else(|| word("/reasoning/effort"))
        .or_else(|| word("/generationConfig/thinkingConfig/thinkingLevel"));
    let parts = [
        match budget {
            Some(0) => Some("off".to_owned()),
            Some(tokens) => Some(format!("budget={tokens}")),
            None => None,
        },
        level.map(|level| match level {
            "none" => "off".to_owned(),
            level => level.to_ascii_lowercase(),
        }),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        return parts.join(" and ");
    }
    match word("/thinking/type") {
        Some("disabled") => "off".to_owned(),
        // The model decides.
        Some(other) => other.to_owned(),
        None => "nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use caliban_model::{Effort, Message, Reasoning};
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        ProviderKind::OpenAi,
        "gpt-5.5",
        Reasoning::Effort(Effort::Max),
        "xhigh"
    )]
    #[case(
        ProviderKind::OpenAi,
        "gpt-4o",
        Reasoning::Effort(Effort::Max),
        "nothing"
    )]
    #[case(
        ProviderKind::Anthropic,
        "claude-haiku-4-5",
        Reasoning::Effort(Effort::Low),
        "budget=4096"
    )]
    #[case(
        ProviderKind::Anthropic,
        "claude-opus-4-7",
        Reasoning::Budget(32_768),
        "high"
    )]
    #[case(
        ProviderKind::Anthropic,
        "claude-sonnet-5",
        Reasoning::Auto,
        "adaptive"
    )]
    #[case(ProviderKind::Anthropic, "claude-sonnet-5", Reasoning::Off, "off")]
    #[case(
        ProviderKind::Vertex,
        "gemini-3.8-flash",
        Reasoning::Effort(Effort::Xhigh),
        "high"
    )]
    #[case(
        ProviderKind::Bedrock,
        "us.anthropic.claude-haiku-4-5-v1:0",
        Reasoning::Effort(Effort::Low),
        "budget=4096"
    )]
    fn what_is_told_is_what_is_sent(
        #[case] kind: ProviderKind,
        #[case] model: &str,
        #[case] reasoning: Reasoning,
        #[case] expected: &str,
    ) {
        let mut request = Request::new(model, vec![Arc::new(Message::user("q"))].into()).unwrap();
        request.reasoning = reasoning;
        assert_eq!(effort_sent(kind, &request).as_deref(), Some(expected));
    }

    #[test]
    fn a_server_that_is_asked_first_says_what_its_model_takes() {
        let request = Request::new("m", vec![Arc::new(Message::user("q"))].into()).unwrap();
        assert_eq!(effort_sent(ProviderKind::Ollama, &request), None);
    }
}
