//! A live connection: requests with a deadline, a way to cancel them and somebody to hear of
//! their progress. Answers are plain JSON, so that what the SDK does not know is not lost.

use std::sync::Arc;
use std::time::Duration;

use caliban_agent::Progress;
use caliban_http::causes;
use caliban_model::CancellationToken;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, GetPromptRequest,
    GetPromptRequestParams, ListPromptsRequest, ListResourceTemplatesRequest, ListResourcesRequest,
    ListToolsRequest, PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::{Map, Value};

use crate::handler::Signals;
use crate::text;

/// The most pages of a list that are read.
const MAX_PAGES: usize = 64;
/// The most entries of a list that are kept.
const MAX_ENTRIES: usize = 2000;
const MAX_ERROR: usize = 2000;

#[derive(Debug, Clone)]
pub(crate) struct Connection {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) signals: Arc<Signals>,
}

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    /// The server says no.
    #[error("{0}")]
    Refused(String),
    /// It could not be sent.
    #[error("{0}")]
    NotSent(String),
    /// The connection is gone, with or without the request.
    #[error("the connection ended")]
    Lost,
    #[error("the server did not answer within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    #[error("cancelled")]
    Cancelled,
}

/// A list that servers give in pages.
#[derive(Debug, Clone, Copy)]
pub(crate) enum List {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl List {
    fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    fn request(self, cursor: Option<String>) -> ClientRequest {
        let page = cursor.map(|cursor| {
            let mut page = PaginatedRequestParams::default();
            page.cursor = Some(cursor);
            page
        });
        match self {
            Self::Tools => ClientRequest::ListToolsRequest(ListToolsRequest {
                params: page,
                ..Default::default()
            }),
            Self::Resources => ClientRequest::ListResourcesRequest(ListResourcesRequest {
                params: page,
                ..Default::default()
            }),
            Self::Templates => {
                ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest {
                    params: page,
                    ..Default::default()
                })
            }
            Self::Prompts => ClientRequest::ListPromptsRequest(ListPromptsRequest {
                params: page,
                ..Default::default()
            }),
        }
    }
}

/// The entries of a list, and whether there were more than are kept.
#[derive(Debug)]
pub(crate) struct Entries {
    pub(crate) entries: Vec<Value>,
    pub(crate) is_cut: bool,
}

impl Connection {
    /// Reads a list to its end or its bound.
    pub(crate) async fn list(&self, list: List, limit: Duration) -> Result<Entries, RequestError> {
        let mut entries = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = self
                .request(list.request(cursor), limit, None, None)
                .await?;
            let Value::Object(mut page) = page else {
                return Err(RequestError::Refused("its list is not a list".to_owned()));
            };
            if let Some(Value::Array(more)) = page.remove(list.key()) {
                let room = MAX_ENTRIES - entries.len();
                let is_cut = more.len() > room;
                entries.extend(more.into_iter().take(room));
                if is_cut {
                    return Ok(Entries { entries, is_cut });
                }
            }
            cursor = match page.remove("nextCursor") {
                Some(Value::String(cursor)) if !cursor.is_empty() => Some(cursor),
                _ => {
                    let is_cut = false;
                    return Ok(Entries { entries, is_cut });
                }
            };
        }
        let is_cut = true;
        Ok(Entries { entries, is_cut })
    }

    pub(crate) async fn call_tool(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        limit: Duration,
        cancel: &CancellationToken,
        progress: Progress,
        trace: Option<&str>,
    ) -> Result<Value, RequestError> {
        let mut params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        if let Some(trace) = trace {
            let meta = params.meta.get_or_insert_default();
            meta.insert("traceparent".to_owned(), trace.into());
        }
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        self.request(request, limit, Some(cancel), Some(progress))
            .await
    }

    pub(crate) async fn read_resource(
        &self,
        uri: &str,
        limit: Duration,
    ) -> Result<Value, RequestError> {
        let params = ReadResourceRequestParams::new(uri);
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        self.request(request, limit, None, None).await
    }

    pub(crate) async fn get_prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<Value, RequestError> {
        let mut params = GetPromptRequestParams::new(name);
        if !arguments.is_empty() {
            params.arguments = Some(arguments);
        }
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        self.request(request, limit, None, None).await
    }

    /// Sends a request and waits for its answer. Whatever ends the waiting before the answer
    /// tells the server that nobody waits any more.
    async fn request(
        &self,
        request: ClientRequest,
        limit: Duration,
        cancel: Option<&CancellationToken>,
        progress: Option<Progress>,
    ) -> Result<Value, RequestError> {
        let cancelled = async {
            match cancel {
                Some(cancel) => cancel.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let exchange = async {
            let mut pending = self.send(request, progress).await?;
            let answer = pending.answer().await;
            pending.is_answered = true;
            answer
        };
        tokio::select! {
            answer = Box::pin(exchange) => answer,
            () = cancelled => Err(RequestError::Cancelled),
            () = tokio::time::sleep(limit) => Err(RequestError::TimedOut(limit)),
        }
    }

    async fn send(
        &self,
        request: ClientRequest,
        progress: Option<Progress>,
    ) -> Result<Pending, RequestError> {
        let mut listeners = self.signals.progress.lock().await;
        let handle = self
            .peer
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await
            .map_err(error)?;
        if let Some(progress) = progress {
            listeners.insert(handle.progress_token.clone(), progress);
        }
        Ok(Pending {
            handle: Some(handle),
            signals: Arc::clone(&self.signals),
            is_answered: false,
        })
    }
}

/// A request that was sent. Dropping it before it is answered cancels it at the server.
struct Pending {
    handle: Option<RequestHandle<RoleClient>>,
    signals: Arc<Signals>,
    is_answered: bool,
}

impl Pending {
    async fn answer(&mut self) -> Result<Value, RequestError> {
        let handle = self.handle.as_mut().ok_or(RequestError::Lost)?;
        let answer = (&mut handle.rx).await;
        let answer = answer.map_err(|_| RequestError::Lost)?.map_err(error)?;
        serde_json::to_value(answer).map_err(|error| RequestError::Refused(error.to_string()))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let (Some(handle), Ok(runtime)) =
            (self.handle.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let signals = Arc::clone(&self.signals);
        let is_answered = self.is_answered;
        // Neither may hold up whoever lets go: the server may not be reading.
        runtime.spawn(async move {
            signals.progress.lock().await.remove(&handle.progress_token);
            if !is_answered {
                // A server that is gone need not be told.
                let _ = handle
                    .cancel(Some("the client no longer waits".to_owned()))
                    .await;
            }
        });
    }
}

fn error(error: ServiceError) -> RequestError {
    match error {
        ServiceError::McpError(error) => {
            let said = text::paragraph(&error.message, MAX_ERROR);
            RequestError::Refused(format!("{said} (code {})", error.code.0))
        }
        ServiceError::TransportClosed => RequestError::Lost,
        ServiceError::TransportSend(error) => {
            let problem = causes(error.error.as_ref());
            RequestError::NotSent(text::line(&problem, MAX_ERROR))
        }
        other => RequestError::Refused(text::line(&other.to_string(), MAX_ERROR)),
    }
}
