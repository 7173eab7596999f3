//! The older HTTP transport, which the SDK no longer has: one stream of events from the server,
//! whose first names the address that takes our messages.

use caliban_http::Event;
use futures::StreamExt;
use futures::stream::BoxStream;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use url::Url;

use super::broken;
use super::web::{Web, WebError, complaint, content_type, events};
use crate::text;

const EVENT_STREAM: &str = "text/event-stream";
/// Events before the one that names the address.
const MAX_PRELUDE: usize = 16;

/// A connection to a server.
pub(crate) struct Sse {
    web: Web,
    /// Where our messages go; of the same origin as the server.
    endpoint: Url,
    events: BoxStream<'static, Result<Event, WebError>>,
}

impl std::fmt::Debug for Sse {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Sse")
            .field("server", &self.web.url().host_str())
            .finish_non_exhaustive()
    }
}

impl Sse {
    /// Opens the stream and waits for the address.
    pub(crate) async fn connect(web: Web) -> Result<Self, WebError> {
        let url = web.url().clone();
        let response = web
            .send(|client| client.get(url.clone()).header(ACCEPT, EVENT_STREAM))
            .await?;
        if !response.status().is_success() || !content_type(&response).starts_with(EVENT_STREAM) {
            return Err(WebError::Failed(complaint(response).await));
        }
        let mut events = events(response);
        for _ in 0..MAX_PRELUDE {
            let Some(event) = events.next().await else {
                break;
            };
            let event = event?;
            if event.kind.as_deref() == Some("endpoint") {
                let endpoint = endpoint(web.url(), event.data.as_deref().unwrap_or_default())?;
                return Ok(Self {
                    web,
                    endpoint,
                    events,
                });
            }
        }
        Err(WebError::Failed(
            "the server did not name an address for messages; is it `type = \"http\"`?".to_owned(),
        ))
    }
}

/// The address that a server names. One elsewhere would be sent what is meant for the server.
fn endpoint(server: &Url, named: &str) -> Result<Url, WebError> {
    let shown = text::line(named, 200);
    let endpoint = server
        .join(named.trim())
        .map_err(|_| WebError::Failed(format!("the server names `{shown}` for messages")))?;
    if endpoint.origin() != server.origin() {
        return Err(WebError::Failed(format!(
            "the server wants messages sent to `{shown}`, which is not its own origin"
        )));
    }
    Ok(endpoint)
}

impl Transport<RoleClient> for Sse {
    type Error = WebError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), WebError>> + Send + 'static {
        let web = self.web.clone();
        let endpoint = self.endpoint.clone();
        async move {
            let body = serde_json::to_vec(&message)
                .map_err(|error| WebError::Failed(error.to_string()))?;
            let response = web
                .send(|client| {
                    client
                        .post(endpoint.clone())
                        .header(CONTENT_TYPE, "application/json")
                        .body(body.clone())
                })
                .await?;
            if response.status().is_success() {
                Ok(())
            } else {
                Err(WebError::Failed(complaint(response).await))
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = self.events.next().await?.ok()?;
            if !matches!(event.kind.as_deref(), None | Some("message")) {
                continue;
            }
            let data = event.data.as_deref().unwrap_or_default();
            // What is no message is skipped, as on the other transports.
            let message = serde_json::from_str(data).ok();
            if let Some(message) = message.or_else(|| broken::answer(data.as_bytes())) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), WebError> {
        self.events = futures::stream::empty().boxed();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("/message?id=1", Some("https://h:8443/message?id=1"))]
    #[case("message", Some("https://h:8443/a/message"))]
    #[case("https://h:8443/m", Some("https://h:8443/m"))]
    #[case("https://h/m", None)]
    #[case("http://h:8443/m", None)]
    #[case("//evil/m", None)]
    #[case("javascript:alert(1)", None)]
    fn messages_go_to_the_servers_own_origin(#[case] named: &str, #[case] expected: Option<&str>) {
        let server = Url::parse("https://h:8443/a/sse").unwrap();
        let found = endpoint(&server, named).ok().map(String::from);
        assert_eq!(found.as_deref(), expected);
    }
}
