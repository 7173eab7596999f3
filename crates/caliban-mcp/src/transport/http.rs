//! Streamable HTTP: the SDK drives the protocol, the requests are ours.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpClientTransportConfig,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::broken;
use super::web::{Web, WebError, complaint, content_type, events, message};

type HttpError = StreamableHttpError<WebError>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The transport to a server.
pub(crate) fn transport(web: Web) -> StreamableHttpClientTransport<Web> {
    let config = StreamableHttpClientTransportConfig::with_uri(web.url().as_str());
    StreamableHttpClientTransport::with_client(web, config)
}

impl From<WebError> for HttpError {
    fn from(error: WebError) -> Self {
        match error {
            WebError::NeedsAuth(reason) => Self::AuthRequired(AuthRequiredError::new(reason)),
            WebError::Failed(_) => Self::Client(error),
        }
    }
}

/// What the SDK wants said with a request.
struct Extras {
    session: Option<Arc<str>>,
    last_event: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
}

impl Extras {
    fn on(&self, request: RequestBuilder) -> RequestBuilder {
        let mut request = request;
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(session) = &self.session {
            request = request.header(HEADER_SESSION_ID, session.as_ref());
        }
        if let Some(event) = &self.last_event {
            request = request.header(HEADER_LAST_EVENT_ID, event);
        }
        request
    }
}

impl StreamableHttpClient for Web {
    type Error = WebError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        sent: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let body = serde_json::to_vec(&sent)?;
        let has_session = session.is_some();
        let extras = Extras {
            session,
            last_event: None,
            headers,
        };
        let request = |client: &Client| {
            let request = client
                .post(uri.as_ref())
                .header(
                    ACCEPT,
                    format!("{JSON_MIME_TYPE}, {EVENT_STREAM_MIME_TYPE}"),
                )
                .header(CONTENT_TYPE, JSON_MIME_TYPE)
                .body(body.clone());
            extras.on(request)
        };
        let response = self.send(request).await?;
        if has_session && response.status() == StatusCode::NOT_FOUND {
            return Err(HttpError::SessionExpired);
        }
        answer(response, is_request(&sent)).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        let extras = Extras {
            session: Some(session),
            last_event: None,
            headers,
        };
        // A server need not support it, and we are leaving anyway.
        self.send(|client: &Client| extras.on(client.delete(uri.as_ref())))
            .await?;
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, HttpError> {
        let extras = Extras {
            session,
            last_event,
            headers,
        };
        let request = |client: &Client| {
            let request = client.get(uri.as_ref());
            extras.on(request.header(ACCEPT, EVENT_STREAM_MIME_TYPE))
        };
        let response = self.send(request).await?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(HttpError::ServerDoesNotSupportSse);
        }
        if !response.status().is_success() || !is_events(&response) {
            let complaint = complaint(response).await;
            return Err(HttpError::UnexpectedServerResponse(complaint.into()));
        }
        Ok(sse(response))
    }
}

/// Whether the server owes an answer to a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Request,
    Other,
}

fn is_request(message: &ClientJsonRpcMessage) -> Sent {
    match message {
        ClientJsonRpcMessage::Request(_) => Sent::Request,
        ClientJsonRpcMessage::Response(_)
        | ClientJsonRpcMessage::Notification(_)
        | ClientJsonRpcMessage::Error(_) => Sent::Other,
    }
}

async fn answer(response: Response, sent: Sent) -> Result<StreamableHttpPostResponse, HttpError> {
    let status = response.status();
    if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    let session = response
        .headers()
        .get(HEADER_SESSION_ID)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    if status.is_success() && is_events(&response) {
        return Ok(StreamableHttpPostResponse::Sse(sse(response), session));
    }
    let is_json = content_type(&response).starts_with(JSON_MIME_TYPE);
    if !is_json && status.is_success() && sent == Sent::Other {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if !is_json {
        let complaint = complaint(response).await;
        return Err(HttpError::UnexpectedServerResponse(complaint.into()));
    }
    let body = message(response).await?;
    match serde_json::from_slice(&body) {
        Ok(message @ ServerJsonRpcMessage::Error(_)) => {
            Ok(StreamableHttpPostResponse::Json(message, session))
        }
        Ok(message) if status.is_success() => {
            Ok(StreamableHttpPostResponse::Json(message, session))
        }
        Ok(_) | Err(_) if status.is_success() && sent == Sent::Other => {
            Ok(StreamableHttpPostResponse::Accepted)
        }
        Ok(_) | Err(_) => {
            let said = crate::text::line(&String::from_utf8_lossy(&body), 300);
            let complaint = format!("the server answered HTTP {status}: {said}");
            Err(HttpError::UnexpectedServerResponse(complaint.into()))
        }
    }
}

/// The data of an event, or the failure that it stands for: the SDK skips what it cannot read.
fn readable(data: String) -> String {
    match serde_json::from_str::<ServerJsonRpcMessage>(&data) {
        Ok(_) => data,
        Err(_) => broken::answer_value(data.as_bytes()).map_or(data, |answer| answer.to_string()),
    }
}

fn is_events(response: &Response) -> bool {
    content_type(response).starts_with(EVENT_STREAM_MIME_TYPE)
}

fn sse(response: Response) -> Events {
    events(response)
        .map(|event| match event {
            Ok(event) => Ok(Sse {
                event: event.kind,
                data: event.data.map(readable),
                id: event.id,
                retry: event.retry,
            }),
            Err(error) => Err(SseError::Body(Box::new(error))),
        })
        .boxed()
}
