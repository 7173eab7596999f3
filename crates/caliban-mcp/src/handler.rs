//! What servers may ask of us and tell us, beside their answers: changed lists, progress and
//! questions to the user. Sampling and roots are not offered.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use caliban_agent::Progress;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, FormElicitationCapability, Implementation,
    ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use tokio::sync::{Mutex, Notify, Semaphore};

use crate::elicit::{Elicited, Elicitor, with_defaults};
use crate::text;

/// Questions of one server that may wait at the same time; further ones are declined.
const MAX_QUESTIONS: usize = 4;
const MAX_QUESTION: usize = 4000;
const MAX_QUESTION_SCHEMA: usize = 64 * 1024;
const MAX_PROGRESS: usize = 200;

/// What a connection has heard.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// The list of tools is not what it was.
    pub(crate) tools: Notify,
    /// Grows when the resources change.
    pub(crate) resources: AtomicU64,
    /// Grows when the prompts change.
    pub(crate) prompts: AtomicU64,
    /// Whom the progress of calls goes to. Locked while a call is sent, so that no progress
    /// arrives before its listener.
    pub(crate) progress: Mutex<HashMap<ProgressToken, Progress>>,
}

pub(crate) struct Handler {
    pub(crate) server: Arc<str>,
    pub(crate) signals: Arc<Signals>,
    elicitor: Option<Arc<dyn Elicitor>>,
    questions: Semaphore,
}

impl Handler {
    pub(crate) fn new(server: Arc<str>, elicitor: Option<Arc<dyn Elicitor>>) -> Self {
        Self {
            server,
            signals: Arc::default(),
            elicitor,
            questions: Semaphore::new(MAX_QUESTIONS),
        }
    }

    async fn ask(&self, message: &str, schema: &Value) -> Elicited {
        let Some(elicitor) = &self.elicitor else {
            return Elicited::Decline;
        };
        if schema.to_string().len() > MAX_QUESTION_SCHEMA {
            return Elicited::Decline;
        }
        let Ok(_permit) = self.questions.try_acquire() else {
            return Elicited::Decline;
        };
        let message = text::paragraph(message, MAX_QUESTION);
        let schema = text::clean_json(schema);
        elicitor.elicit(&self.server, &message, &schema).await
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.elicitor.is_some() {
            let forms = FormElicitationCapability::new();
            capabilities.elicitation = Some(ElicitationCapability::new().with_form(forms));
        }
        let who = Implementation::new("caliban", env!("CARGO_PKG_VERSION"));
        // The newest revision has no handshake, and a probe for it breaks slow servers.
        ClientConfig::new(capabilities, who)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let answer = match request {
            ElicitRequestParams::FormElicitationParams {
                message,
                requested_schema,
                ..
            } => {
                let schema = serde_json::to_value(requested_schema).unwrap_or(Value::Null);
                tokio::select! {
                    answer = self.ask(&message, &schema) => match answer {
                        Elicited::Accept(value) => Elicited::Accept(with_defaults(value, &schema)),
                        answer => answer,
                    },
                    () = context.ct.cancelled() => Elicited::Cancel,
                }
            }
            // Addresses of servers are not opened.
            _ => Elicited::Decline,
        };
        Ok(match answer {
            Elicited::Accept(value) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(value)
            }
            Elicited::Decline => ElicitResult::new(ElicitationAction::Decline),
            Elicited::Cancel => ElicitResult::new(ElicitationAction::Cancel),
        })
    }

    async fn on_progress(
        &self,
        report: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let listeners = self.signals.progress.lock().await;
        if let Some(progress) = listeners.get(&report.progress_token) {
            progress.output(progress_line(&report));
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.signals.tools.notify_one();
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.signals.resources.fetch_add(1, Ordering::Relaxed);
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.signals.prompts.fetch_add(1, Ordering::Relaxed);
    }
}

fn progress_line(report: &ProgressNotificationParam) -> String {
    let done = match report.total {
        Some(total) => format!("{}/{total}", report.progress),
        None => report.progress.to_string(),
    };
    match &report.message {
        Some(message) => format!("{} ({done})\n", text::line(message, MAX_PROGRESS)),
        None => format!("{done}\n"),
    }
}
