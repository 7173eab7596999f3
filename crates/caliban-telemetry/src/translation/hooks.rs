//! Hooks that ran.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value as Json;

use crate::data::{Attributes, Severity, Span, SpanKind};

use super::Translator;

impl Translator {
    /// A handler has run. It is told of once it is over, with the time that it took.
    pub(super) fn hooked(
        &mut self,
        event: &str,
        output: &Json,
        agent: Option<&Arc<str>>,
        at: Timestamp,
    ) {
        let text = |key: &str| output.get(key).and_then(Json::as_str);
        let taken = output.get("duration_ms").and_then(Json::as_u64);
        let mut attributes = Attributes::default()
            .with("hook_event", event.to_owned())
            .with_known("hook_type", text("handler").map(ToOwned::to_owned))
            .with_known("decision", text("decision").map(ToOwned::to_owned))
            .with_known("duration_ms", taken);
        if self.contents.tool_details {
            attributes = attributes.with_known("hook_name", text("name").map(ToOwned::to_owned));
        }
        self.log(
            at,
            "hook_execution_complete",
            Severity::Info,
            attributes.clone(),
        );
        let Some(above) = self.agent(agent, at).map(|agent| agent.context) else {
            return;
        };
        let taken =
            SignedDuration::from_millis(taken.and_then(|it| it.try_into().ok()).unwrap_or(0));
        let span = Span {
            context: above.child(),
            parent: Some(above.span),
            name: "caliban.hook".to_owned(),
            kind: SpanKind::Internal,
            began: at.checked_sub(taken).unwrap_or(at),
            ended: at,
            attributes,
            error: None,
        };
        self.push_span(span);
    }
}
