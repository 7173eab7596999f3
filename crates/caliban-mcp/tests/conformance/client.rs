//! The client that the MCP conformance suite runs: it uses a server as a session does, or logs in
//! where a server wants that, and makes a few calls. The suite appends the server's address; the browser is played here.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test client may fail loudly"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use caliban_agent::ToolSource;
use caliban_mcp::authorization::{AuthError, Authorization};
use caliban_mcp::oauth::{Clock, Oauth, OauthServer, TokenStore};
use caliban_mcp::{Elicited, Elicitor, Parts, Servers, Variables};
use caliban_model::CancellationToken;
use caliban_process::Guard;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use url::Url;

const SERVER: &str = "conformance";
/// How often one call may lead to a login.
const LOGINS: usize = 2;

#[tokio::main]
async fn main() {
    let address = std::env::args().next_back().expect("an address");
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    if !scenario.starts_with("auth/") {
        return use_server(&address).await;
    }
    let url = Url::parse(&address).expect("an address");
    let home = tempfile::tempdir().unwrap();
    let settings = settings(&address);
    let server = OauthServer::from_settings(SERVER, &settings, &Variables::new(|_| None))
        .unwrap()
        .unwrap();
    let oauth = Oauth::new(
        BTreeMap::from([(SERVER.to_owned(), server)]),
        TokenStore::new(None, home.path().join("mcp-tokens.json")),
        home.path().join("mcp-locks"),
        Clock::system(),
    );
    let mut session = Session {
        http: http(),
        url,
        oauth,
        id: None,
    };
    session
        .call(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "caliban", "version": env!("CARGO_PKG_VERSION")},
            }),
        )
        .await;
    session.notify("notifications/initialized").await;
    let tools = session.call("tools/list", json!({})).await;
    let offered = tools["tools"].as_array().into_iter().flatten();
    let mut names: Vec<Value> = offered.map(|tool| tool["name"].clone()).collect();
    if names.is_empty() {
        names.push("test-tool".into());
    }
    for name in names {
        let parameters = json!({"name": name, "arguments": {}});
        session.call("tools/call", parameters).await;
    }
}

/// Uses a server as a session would: all of its tools are called once.
async fn use_server(address: &str) {
    let settings = json!({"type": "http", "url": address});
    let settings: caliban_settings::McpServer = serde_json::from_value(settings).unwrap();
    let variables = Variables::new(|_| None);
    let here = std::env::current_dir().unwrap();
    let mut parts = Parts::new(here, Vec::new(), variables, Guard::None);
    parts.elicitor = Some(Arc::new(Agreeable));
    let servers = Servers::start([(SERVER.to_owned(), settings.into())], parts);
    servers.settle(Duration::from_secs(20)).await;
    for tool in servers.tools() {
        let spec = tool.spec();
        let fields = spec.input_schema["properties"].as_object();
        let fields = fields.into_iter().flatten();
        let input: Value = fields.map(|(name, _)| (name.clone(), json!(1))).collect();
        let cancel = CancellationToken::new();
        let output = servers.call_named(&spec.name, input, &cancel).await;
        eprintln!("{}: {}", spec.name, output.text());
    }
    servers.shutdown(Duration::from_secs(1)).await;
}

/// Agrees to everything without changing it.
#[derive(Debug)]
struct Agreeable;

impl Elicitor for Agreeable {
    fn elicit<'a>(&'a self, _: &'a str, _: &'a str, _: &'a Value) -> BoxFuture<'a, Elicited> {
        async { Elicited::Accept(json!({})) }.boxed()
    }
}

/// The server as a settings file would have it; the suite may know a client for it.
fn settings(address: &str) -> caliban_settings::McpServer {
    let context: Value = std::env::var("MCP_CONFORMANCE_CONTEXT")
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let mut settings = json!({"type": "http", "url": address, "oauth": "auto"});
    if context["client_id"].is_string() {
        settings["oauth_config"] = json!({
            "client_id": context["client_id"],
            "client_secret": context["client_secret"],
        });
    }
    serde_json::from_value(settings).unwrap()
}

fn http() -> reqwest::Client {
    caliban_http::install_crypto();
    #[expect(clippy::disallowed_methods, reason = "an example has no other client")]
    let builder = reqwest::Client::builder();
    builder
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap()
}

/// Just enough of the protocol to be let in.
struct Session {
    http: reqwest::Client,
    url: Url,
    oauth: Oauth,
    id: Option<String>,
}

impl Session {
    async fn call(&mut self, method: &str, parameters: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters});
        let text = self.exchange(&message).await;
        // A stream carries the answer in one of its events.
        let events = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let answers = std::iter::once(text.as_str()).chain(events);
        let answer = answers
            .filter_map(|text| serde_json::from_str::<Value>(text).ok())
            .find(|value| value.get("result").is_some());
        answer.map_or(Value::Null, |mut answer| answer["result"].take())
    }

    async fn notify(&mut self, method: &str) {
        self.exchange(&json!({"jsonrpc": "2.0", "method": method}))
            .await;
    }

    async fn exchange(&mut self, message: &Value) -> String {
        let mut token = self.oauth.token(SERVER, &self.url).await.unwrap();
        for _ in 0..=LOGINS {
            let response = self.post(message, token.as_deref()).await;
            let status = response.status().as_u16();
            if !matches!(status, 401 | 403) {
                // Past the door, revisions that this client does not speak are no concern here.
                if let Some(id) = response.headers().get("mcp-session-id") {
                    self.id = Some(id.to_str().unwrap().to_owned());
                }
                return response.text().await.unwrap();
            }
            let challenge = response.headers().get("www-authenticate").cloned();
            let challenge = challenge.as_ref().and_then(|value| value.to_str().ok());
            let refused = self.oauth.refused(SERVER, &self.url, challenge).await;
            token = match refused {
                Ok(token) => token,
                Err(AuthError::NeedsLogin { reason, .. }) => {
                    eprintln!("login: {reason}");
                    self.log_in().await;
                    self.oauth.token(SERVER, &self.url).await.unwrap()
                }
                Err(error) => panic!("{error}"),
            };
        }
        panic!("not let in after {LOGINS} logins");
    }

    async fn post(&self, message: &Value, token: Option<&str>) -> reqwest::Response {
        let mut request = self
            .http
            .post(self.url.clone())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25")
            .body(message.to_string());
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(id) = &self.id {
            request = request.header("mcp-session-id", id);
        }
        request.send().await.unwrap()
    }

    /// A login in which the browser follows every redirect.
    async fn log_in(&self) {
        let login = self.oauth.begin_login(SERVER, 0).await.unwrap();
        let (http, mut url) = (self.http.clone(), login.url().clone());
        let browser = tokio::spawn(async move {
            while let Ok(response) = http.get(url.clone()).send().await {
                let Some(location) = response.headers().get("location") else {
                    break;
                };
                url = url.join(location.to_str().unwrap()).unwrap();
            }
        });
        login.finish(Duration::from_secs(20)).await.unwrap();
        browser.await.unwrap();
    }
}
