//! How a run ends. Exit code and result subtype both follow from this one type.

use caliban_model::{Error, ErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The model finished its turn; this is its last message's text.
    Success { text: String },
    /// A command of the operator was obeyed; this is what it has to say. No model was asked for
    /// an answer.
    Obeyed {
        text: String,
        /// The same for programs, where there is more to it than the words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Box<Value>>,
    },
    /// The turn limit was reached.
    MaxTurns { limit: u32 },
    /// The budget is spent, or the next call would overspend it.
    BudgetExceeded { message: String },
    /// An answer was cut at the output limit.
    MaxTokens,
    /// A signal or a command stopped it.
    Cancelled,
    /// The provider failed for good.
    Provider(Error),
    /// A hook refused the prompt.
    HookDenied { reason: String },
    /// The model declined to answer.
    Refusal { detail: Option<String> },
    /// The provider's filter stopped the answer.
    ContentFilter { detail: Option<String> },
    /// The conversation does not fit and could not be made to.
    ContextFull { message: String },
    /// The model kept making the same call.
    Looping { tool: String, times: u32 },
    /// The final answer does not fit the schema that was asked for.
    SchemaMismatch { message: String },
    /// The prompt names something that cannot go along with it.
    Unusable { message: String },
    /// A command that cannot be obeyed, and how to write it.
    Misused { message: String },
    /// Something in the harness itself failed, or in what it stands on.
    Internal { message: String },
}

impl Outcome {
    /// A command was obeyed, and this is all there is to say.
    pub fn obeyed(text: impl Into<String>) -> Self {
        Self::Obeyed {
            text: text.into(),
            report: None,
        }
    }

    /// What the process exits with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Success { .. } | Self::Obeyed { .. } => 0,
            Self::SchemaMismatch { .. } => 2,
            Self::MaxTurns { .. } => 75,
            Self::Cancelled => 124,
            Self::BudgetExceeded { .. } => 137,
            Self::Misused { .. } => 64,
            Self::Unusable { .. } => 78,
            Self::MaxTokens
            | Self::Provider(_)
            | Self::HookDenied { .. }
            | Self::Refusal { .. }
            | Self::ContentFilter { .. }
            | Self::ContextFull { .. }
            | Self::Looping { .. }
            | Self::Internal { .. } => 1,
        }
    }

    /// The `subtype` of the result frame.
    pub fn subtype(&self) -> &'static str {
        match self {
            Self::Success { .. } | Self::Obeyed { .. } => "success",
            Self::MaxTurns { .. } => "max_turns",
            Self::BudgetExceeded { .. } => "budget_exceeded",
            Self::MaxTokens => "max_tokens",
            Self::Cancelled => "cancelled",
            Self::Provider(_)
            | Self::HookDenied { .. }
            | Self::Refusal { .. }
            | Self::ContentFilter { .. }
            | Self::ContextFull { .. }
            | Self::Looping { .. }
            | Self::SchemaMismatch { .. }
            | Self::Unusable { .. }
            | Self::Misused { .. }
            | Self::Internal { .. } => "error",
        }
    }

    /// The answer of a run that finished.
    pub fn answer(&self) -> Option<&str> {
        match self {
            Self::Success { text } | Self::Obeyed { text, .. } => Some(text),
            Self::MaxTurns { .. }
            | Self::BudgetExceeded { .. }
            | Self::MaxTokens
            | Self::Cancelled
            | Self::Provider(_)
            | Self::HookDenied { .. }
            | Self::Refusal { .. }
            | Self::ContentFilter { .. }
            | Self::ContextFull { .. }
            | Self::Looping { .. }
            | Self::SchemaMismatch { .. }
            | Self::Unusable { .. }
            | Self::Misused { .. }
            | Self::Internal { .. } => None,
        }
    }

    /// The failure of the provider that ended it.
    pub fn provider_error(&self) -> Option<&Error> {
        match self {
            Self::Provider(error) => Some(error),
            Self::Success { .. }
            | Self::Obeyed { .. }
            | Self::MaxTurns { .. }
            | Self::BudgetExceeded { .. }
            | Self::MaxTokens
            | Self::Cancelled
            | Self::HookDenied { .. }
            | Self::Refusal { .. }
            | Self::ContentFilter { .. }
            | Self::ContextFull { .. }
            | Self::Looping { .. }
            | Self::SchemaMismatch { .. }
            | Self::Unusable { .. }
            | Self::Misused { .. }
            | Self::Internal { .. } => None,
        }
    }

    /// One line for people; nothing for a success.
    pub fn message(&self) -> Option<String> {
        let because = |detail: &Option<String>| {
            detail
                .as_ref()
                .map_or_else(String::new, |detail| format!(": {detail}"))
        };
        Some(match self {
            Self::Success { .. } | Self::Obeyed { .. } => return None,
            Self::MaxTurns { limit } => {
                let turns = if *limit == 1 { "turn" } else { "turns" };
                format!("stopped after {limit} {turns}; raise `--max-turns` to go on")
            }
            Self::MaxTokens => {
                "the answer was cut at the token limit; raise `--max-tokens`".to_owned()
            }
            Self::Cancelled => "cancelled".to_owned(),
            Self::Provider(error) => error.to_string(),
            Self::HookDenied { reason } => format!("a hook refused the prompt: {reason}"),
            Self::Refusal { detail } => format!("the model refused to answer{}", because(detail)),
            Self::ContentFilter { detail } => format!(
                "the provider's content filter stopped the answer{}",
                because(detail)
            ),
            Self::Looping { tool, times } => format!(
                "the model made the same call to {tool} {times} times in a row; rephrase the task"
            ),
            Self::BudgetExceeded { message }
            | Self::ContextFull { message }
            | Self::SchemaMismatch { message }
            | Self::Unusable { message }
            | Self::Misused { message }
            | Self::Internal { message } => message.clone(),
        })
    }
}

impl From<Error> for Outcome {
    fn from(error: Error) -> Self {
        match error.kind {
            ErrorKind::Cancelled => Self::Cancelled,
            _ => Self::Provider(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_counted_in_words() {
        let said = |limit| Outcome::MaxTurns { limit }.message().unwrap_or_default();
        assert!(said(1).starts_with("stopped after 1 turn;"), "{}", said(1));
        assert!(said(2).starts_with("stopped after 2 turns;"), "{}", said(2));
    }
}
