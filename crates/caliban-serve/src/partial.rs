//! What was told and is in no message yet: the beginning of an answer, and results whose siblings
//! still run. A reader that comes in the middle of a turn is given it with the messages.

use caliban_agent::Event;
use serde_json::Value;

use crate::delta::merge;

/// Bytes that are kept of it; what comes after is seen when the message is complete.
const LONGEST: usize = 1024 * 1024;

/// The frames of what is not a message yet.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    frames: Vec<Value>,
    bytes: usize,
}

impl Partial {
    /// A step was told by these frames.
    pub(crate) fn hear(&mut self, step: &Event, frames: &[Value]) {
        match step {
            Event::PromptAccepted { .. }
            | Event::AssistantMessage { .. }
            | Event::ToolResults { .. }
            | Event::Steered { .. }
            | Event::SentOn { .. }
            | Event::Interrupted { .. } => return self.clear(),
            // The message itself was counted before.
            Event::TurnEnded { .. } => return,
            Event::TurnStarted { .. }
            | Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::Answer(_)
            | Event::ToolReady { .. }
            | Event::PermissionAsked { .. }
            | Event::PermissionAnswered { .. }
            | Event::ToolStarted { .. }
            | Event::HistoryReplaced { .. }
            | Event::ToolProgress { .. }
            | Event::ToolFinished { .. }
            | Event::Retrying(_)
            | Event::Warning(_)
            | Event::Notice { .. }
            | Event::HookFired { .. }
            | Event::HookPassed { .. }
            | Event::CompactionStarted { .. }
            | Event::CompactionFinished { .. }
            | Event::Nested { .. }
            | Event::Finished { .. } => {}
        }
        for frame in frames {
            match frame["type"].as_str() {
                Some("text" | "thinking" | "tool_use" | "tool_result") => self.add(frame),
                // What was sent of this answer is void.
                Some("warning") if is_void(&frame["subtype"]) => self.clear(),
                _ => {}
            }
        }
    }

    fn add(&mut self, frame: &Value) {
        self.bytes += frame.to_string().len();
        if self.bytes > LONGEST {
            return;
        }
        let is_merged = self.frames.last_mut().is_some_and(|it| merge(it, frame));
        if !is_merged {
            self.frames.push(frame.clone());
        }
    }

    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        self.bytes = 0;
    }

    pub(crate) fn frames(&self) -> &[Value] {
        &self.frames
    }
}

fn is_void(subtype: &Value) -> bool {
    matches!(subtype.as_str(), Some("superseded" | "fallback_model"))
}

#[cfg(test)]
mod tests {
    use caliban_model::{Message, Role};
    use serde_json::json;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn it_holds_what_no_message_has_yet() {
        let text = |text: &str| Event::TextDelta {
            text: text.to_owned(),
        };
        let mut partial = Partial::default();
        for piece in ["a", "b"] {
            partial.hear(&text(piece), &[json!({"type": "text", "delta": piece})]);
        }
        let call = json!({"type": "tool_use", "id": "c", "name": "Read", "input": {}});
        partial.hear(&text(""), std::slice::from_ref(&call));
        assert_eq!(
            partial.frames(),
            [json!({"type": "text", "delta": "ab"}), call]
        );
        let message = Arc::new(Message::new(Role::User, Vec::new()));
        partial.hear(&Event::ToolResults { message }, &[]);
        assert!(partial.frames().is_empty());
        let long = "x".repeat(LONGEST);
        partial.hear(&text(""), &[json!({"type": "text", "delta": long})]);
        assert!(partial.frames().is_empty());
    }
}
