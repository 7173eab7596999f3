//! A server, a store, and somebody who plays the browser.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use caliban_mcp::Variables;
use caliban_mcp::authorization::{AuthError, Authorization};
use caliban_mcp::oauth::{Clock, LoggedIn, Login, Oauth, OauthServer, TokenStore};
use caliban_testkit::oauth::{AuthServer, Behaviour};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Bench {
    pub(crate) server: AuthServer,
    pub(crate) home: tempfile::TempDir,
    now: Arc<AtomicI64>,
}

impl Bench {
    pub(crate) fn new(behaviour: Behaviour) -> Self {
        Self {
            server: AuthServer::with(behaviour).unwrap(),
            home: tempfile::tempdir().unwrap(),
            now: Arc::new(AtomicI64::new(1_800_000_000)),
        }
    }

    pub(crate) fn pass(&self, seconds: i64) {
        self.now.fetch_add(seconds, Ordering::SeqCst);
    }

    pub(crate) fn tokens(&self) -> PathBuf {
        self.home.path().join("mcp-tokens.json")
    }

    pub(crate) fn url(&self) -> Url {
        Url::parse(&self.server.mcp_url()).unwrap()
    }

    /// As a process of its own would have it: nothing is shared but the files.
    pub(crate) fn oauth(&self) -> Oauth {
        self.oauth_with(&json!({}))
    }

    pub(crate) fn oauth_with(&self, change: &Value) -> Oauth {
        let mut settings = json!({"type": "http", "url": self.server.mcp_url(), "oauth": "auto"});
        for (key, value) in change.as_object().unwrap() {
            settings[key] = value.clone();
        }
        let settings = serde_json::from_value(settings).unwrap();
        let server = OauthServer::from_settings("s", &settings, &Variables::new(|_| None))
            .unwrap()
            .unwrap();
        let now = self.now.clone();
        Oauth::new(
            BTreeMap::from([("s".to_owned(), server)]),
            TokenStore::new(None, self.tokens()),
            self.home.path().join("mcp-locks"),
            Clock::new(move || Timestamp::from_second(now.load(Ordering::SeqCst)).unwrap()),
        )
    }

    pub(crate) async fn log_in(&self) -> LoggedIn {
        let login = self.oauth().begin_login("s", 0).await.unwrap();
        consent(login).await.unwrap()
    }

    pub(crate) async fn token(&self, oauth: &Oauth) -> Result<Option<String>, AuthError> {
        oauth.token("s", &self.url()).await
    }

    pub(crate) async fn refused(&self, oauth: &Oauth) -> Result<Option<String>, AuthError> {
        oauth.refused("s", &self.url(), None).await
    }

    /// The status that the MCP server answers a call with this token with.
    pub(crate) async fn call(&self, token: &str) -> u16 {
        let header = format!("Authorization: Bearer {token}\r\n");
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        exchange(&self.url(), "POST", &header, body).await.status
    }
}

/// Follows the address of a login as a browser does, to the end.
pub(crate) async fn consent(login: Login) -> Result<LoggedIn, AuthError> {
    let url = login.url().clone();
    let browser = tokio::spawn(async move {
        let answer = exchange(&url, "GET", "", "").await;
        assert_eq!(answer.status, 302, "{answer:?}");
        let back = Url::parse(&answer.location.unwrap()).unwrap();
        exchange(&back, "GET", "", "").await
    });
    let finished = login.finish(PATIENCE).await;
    assert_eq!(browser.await.unwrap().status, 200);
    finished
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) location: Option<String>,
}

pub(crate) async fn exchange(url: &Url, method: &str, headers: &str, body: &str) -> Answer {
    let address = url.socket_addrs(|| None).unwrap()[0];
    let mut stream = TcpStream::connect(address).await.unwrap();
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let location = text
        .lines()
        .find_map(|line| line.strip_prefix("Location: "))
        .map(str::to_owned);
    Answer {
        status: text[9..12].parse().unwrap(),
        location,
    }
}
