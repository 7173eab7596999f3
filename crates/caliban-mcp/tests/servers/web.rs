//! Servers over HTTP that refuse, redirect and flood, answered by hand.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Place, settings, status, tool};
use caliban_agent::ToolStatus;
use caliban_mcp::{AuthError, Authorization, Servers, Status};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use url::Url;

/// A request as it arrived.
#[derive(Debug, Clone)]
struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Value,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Answers every request with what a function says, and keeps the requests.
struct Web {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Web {
    async fn new(answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let answer = Arc::new(answer);
        let kept = Arc::clone(&requests);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (answer, kept) = (Arc::clone(&answer), Arc::clone(&kept));
                tokio::spawn(async move {
                    let request = read(&mut stream).await;
                    kept.lock().unwrap().push(request.clone());
                    // Whoever asked may be gone.
                    let _ = stream.write_all(&answer(&request)).await;
                });
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

async fn read(stream: &mut tokio::net::TcpStream) -> Request {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).await.unwrap();
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        let Some((name, value)) = line.trim().split_once(": ") else {
            break;
        };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let mut request = Request {
        method,
        path,
        headers,
        body: Value::Null,
    };
    let length = request
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.unwrap();
    request.body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    request
}

fn respond(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn message(body: &Value) -> Vec<u8> {
    respond(
        "200 OK",
        "content-type: application/json\r\n",
        &body.to_string(),
    )
}

/// What a well-behaved server answers.
fn usual(request: &Request) -> Vec<u8> {
    if request.method != "POST" {
        return respond("405 Method Not Allowed", "", "");
    }
    let result = match request.body["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "web", "version": "1"},
        }),
        "tools/list" => json!({"tools": [tool("hello", "A tool."), tool("huge", "A tool.")]}),
        "tools/call" if request.body["params"]["name"] == "huge" => {
            json!({"content": [{"type": "text", "text": "x".repeat(20_000_000)}]})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "called"}]}),
        _ => return respond("202 Accepted", "", ""),
    };
    message(&json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result}))
}

async fn start(place: &Place, config: Value) -> Servers {
    let servers = Servers::start([("srv".to_owned(), settings(config))], place.parts());
    servers.settle(Duration::from_secs(30)).await;
    servers
}

fn reason(servers: &Servers) -> String {
    match status(servers) {
        Status::Failed { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn headers_go_along_and_huge_answers_are_refused() {
    let place = Place::new();
    let web = Web::new(usual).await;
    let config = json!({"type": "http", "url": format!("{}/mcp", web.url), "headers": {"X-Key": "${GIVEN}"}});
    let servers = start(&place, config).await;
    let output = place.run(&servers, "mcp__srv__hello", json!({})).await;
    assert_eq!(output.text(), "called");
    assert!(
        web.requests()
            .iter()
            .all(|request| request.header("x-key") == Some("given"))
    );
    let output = place.run(&servers, "mcp__srv__huge", json!({})).await;
    assert_eq!(
        output.status,
        ToolStatus::CouldNotRun,
        "{}",
        output.status as u8
    );
    assert!(
        output.text().contains("more than 16 MiB"),
        "{}",
        output.text()
    );
    let output = place.run(&servers, "mcp__srv__hello", json!({})).await;
    assert_eq!(output.text(), "called", "the connection is still there");
}

#[tokio::test]
async fn redirects_stay_at_home() {
    let place = Place::new();
    let elsewhere = Web::new(usual).await;
    let target = format!("location: {}/mcp\r\n", elsewhere.url);
    let web = Web::new(move |request| match request.path.as_str() {
        "/away" => respond("307 Temporary Redirect", &target, ""),
        "/moved" => respond("308 Permanent Redirect", "location: /mcp\r\n", ""),
        "/lost" => respond("302 Found", "location: /mcp\r\n", ""),
        _ => usual(request),
    })
    .await;
    let config = |path: &str| json!({"type": "http", "url": format!("{}{path}", web.url), "headers": {"Authorization": "Bearer key"}});
    let servers = start(&place, config("/away")).await;
    assert!(
        reason(&servers).contains("which is not followed"),
        "{}",
        reason(&servers)
    );
    assert!(elsewhere.requests().is_empty());
    let servers = start(&place, config("/lost")).await;
    assert!(
        reason(&servers).contains("redirects to `/mcp`"),
        "{}",
        reason(&servers)
    );
    let servers = start(&place, config("/moved")).await;
    assert!(
        matches!(status(&servers), Status::Connected { .. }),
        "{:?}",
        servers.status()
    );
}

/// Tokens by turn.
#[derive(Debug)]
struct Tokens {
    first: Option<&'static str>,
    second: Option<&'static str>,
    asked: Mutex<Vec<Option<String>>>,
}

impl Authorization for Tokens {
    fn token<'a>(
        &'a self,
        _: &'a str,
        _: &'a Url,
    ) -> BoxFuture<'a, Result<Option<String>, AuthError>> {
        async { Ok(self.first.map(str::to_owned)) }.boxed()
    }

    fn refused<'a>(
        &'a self,
        _: &'a str,
        _: &'a Url,
        challenge: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, AuthError>> {
        self.asked
            .lock()
            .unwrap()
            .push(challenge.map(str::to_owned));
        async { Ok(self.second.map(str::to_owned)) }.boxed()
    }
}

fn guarded(request: &Request) -> Vec<u8> {
    match request.header("authorization") {
        Some("Bearer good") => usual(request),
        _ => respond(
            "401 Unauthorized",
            "www-authenticate: Bearer realm=\"x\"\r\n",
            "",
        ),
    }
}

#[tokio::test]
async fn a_refused_token_is_replaced_once_and_then_somebody_must_log_in() {
    let place = Place::new();
    let web = Web::new(guarded).await;
    let cases = [
        (Some("good"), None, true, 0),
        (Some("old"), Some("good"), true, 1),
        (None, Some("good"), true, 1),
        (Some("old"), Some("older"), false, 1),
        (None, None, false, 1),
    ];
    for (first, second, is_connected, refusals) in cases {
        let tokens = Arc::new(Tokens {
            first,
            second,
            asked: Mutex::default(),
        });
        let mut parts = place.parts();
        parts.authorization = Some(Arc::clone(&tokens) as Arc<dyn Authorization>);
        let config = json!({"type": "http", "url": format!("{}/mcp", web.url)});
        let servers = Servers::start([("srv".to_owned(), settings(config))], parts);
        servers.settle(Duration::from_secs(30)).await;
        let asked = tokens.asked.lock().unwrap().clone();
        match status(&servers) {
            Status::Connected { .. } => assert!(is_connected, "{first:?} {second:?}"),
            Status::NeedsAuth { remedy, .. } => {
                assert!(!is_connected, "{first:?} {second:?}");
                assert_eq!(remedy, "caliban mcp login srv");
                assert_eq!(asked.len(), refusals);
            }
            other => panic!("{other:?}"),
        }
        if refusals > 0 {
            assert_eq!(asked[0].as_deref(), Some("Bearer realm=\"x\""));
        }
    }
    // Without anybody who has tokens, and for a key of the settings that is wrong.
    let config = json!({"type": "sse", "url": format!("{}/sse", web.url), "headers": {"Authorization": "Bearer bad"}});
    let servers = start(&place, config).await;
    assert!(
        matches!(status(&servers), Status::NeedsAuth { .. }),
        "{:?}",
        servers.status()
    );
}

#[tokio::test]
async fn what_is_no_server_is_told() {
    let place = Place::new();
    let web = Web::new(|request| match request.path.as_str() {
        "/page" => respond(
            "200 OK",
            "content-type: text/html\r\n",
            "<h1>Hello\u{1b}[2J</h1>",
        ),
        "/broken" => respond(
            "500 Internal Server Error",
            "content-type: text/plain\r\n",
            "no disk",
        ),
        "/elsewhere" => respond(
            "200 OK",
            "content-type: text/event-stream\r\n",
            "event: endpoint\ndata: http://evil.example/m\n\n",
        ),
        "/silent" => respond(
            "200 OK",
            "content-type: text/event-stream\r\n",
            ": nothing\n\n",
        ),
        "/endless" => {
            let mut body = respond("200 OK", "content-type: text/event-stream\r\n", "");
            body = String::from_utf8(body)
                .unwrap()
                .replace("content-length: 0\r\n", "")
                .into_bytes();
            body.extend(vec![b'x'; 17 * 1024 * 1024]);
            body
        }
        other => panic!("{other}"),
    })
    .await;
    let cases = [
        ("http", "/page", "<h1>Hello</h1>"),
        ("http", "/broken", "HTTP 500 Internal Server Error: no disk"),
        ("sse", "/broken", "HTTP 500 Internal Server Error: no disk"),
        ("sse", "/elsewhere", "which is not its own origin"),
        ("sse", "/silent", "did not name an address"),
        ("sse", "/endless", "more than 16 MiB"),
    ];
    for (kind, path, expected) in cases {
        let config = json!({"type": kind, "url": format!("{}{path}", web.url)});
        let servers = start(&place, config).await;
        assert!(
            reason(&servers).contains(expected),
            "{path}: {}",
            reason(&servers)
        );
    }
}
