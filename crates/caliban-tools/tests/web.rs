//! `WebFetch` and `WebSearch` through the `Tool` trait, against a server on loopback.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use caliban_agent::{
    Confinement, OpenReading, Progress, Tool, ToolContext, ToolOutput, ToolStatus, TypedTool,
    Workspace,
};
use caliban_model::CancellationToken;
use caliban_tools::{
    PrivateAddresses, SearchBackend, SearchConfig, WebFetch, WebPolicy, WebSearch,
};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What the server does after a request.
enum Reply {
    /// Sends this and closes.
    Whole(Vec<u8>),
    /// Sends this, then the second part again and again.
    Endless(Vec<u8>, Vec<u8>),
    /// Sends this and then nothing more.
    Stalled(Vec<u8>),
}

struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    /// Told of every request.
    arrival: Arc<Notify>,
}

impl Server {
    async fn start(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            requests: Arc::default(),
            arrival: Arc::default(),
        };
        let (requests, arrival) = (Arc::clone(&server.requests), Arc::clone(&server.arrival));
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (requests, arrival) = (Arc::clone(&requests), Arc::clone(&arrival));
                let answer = Arc::clone(&answer);
                tokio::spawn(async move {
                    let _ = serve(stream, &requests, &arrival, &*answer).await;
                });
            }
        });
        server
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    requests: &Mutex<Vec<String>>,
    arrival: &Notify,
    answer: &(dyn Fn(&str) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let request = read_request(&mut stream).await?;
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    requests.lock().unwrap().push(request);
    arrival.notify_one();
    match answer(&path) {
        Reply::Whole(bytes) => stream.write_all(&bytes).await,
        Reply::Endless(start, rest) => {
            stream.write_all(&start).await?;
            loop {
                stream.write_all(&rest).await?;
            }
        }
        Reply::Stalled(start) => {
            stream.write_all(&start).await?;
            // Ends when the client hangs up.
            stream.read(&mut [0; 16]).await.map(|_| ())
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .map_or(0, |(_, value)| value.trim().parse().unwrap());
            if body.len() >= length {
                return Ok(text.into_owned());
            }
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn ok(content_type: &str, body: impl AsRef<[u8]>) -> Reply {
    let headers = format!("Content-Type: {content_type}\r\n");
    Reply::Whole(response("200 OK", &headers, body.as_ref()))
}

fn found(location: &str) -> Reply {
    Reply::Whole(response(
        "302 Found",
        &format!("Location: {location}\r\n"),
        b"",
    ))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

async fn run(tool: Arc<dyn Tool>, input: Value, cancel: CancellationToken) -> ToolOutput {
    let temp = tempfile::tempdir().unwrap();
    let workspace = Workspace::new(temp.path(), &[], None, Confinement::Open).unwrap();
    let context = ToolContext {
        call_id: Arc::from("call"),
        session_id: Arc::from("session"),
        workspace: Arc::new(workspace),
        reading: OpenReading::shared(),
        cancel,
        progress: Progress::silent(),
        trace: None,
    };
    tool.run(input, context).await
}

async fn fetch(input: Value) -> ToolOutput {
    let policy = WebPolicy {
        private: PrivateAddresses::Allowed,
        ..WebPolicy::default()
    };
    run(
        WebFetch::new(policy).boxed(),
        input,
        CancellationToken::new(),
    )
    .await
}

/// The part behind the header lines of an output that must be a success.
#[track_caller]
fn content(output: &ToolOutput) -> String {
    assert_eq!(output.status, ToolStatus::Ok, "{}", output.text());
    output.text().split_once("\n\n").unwrap().1.to_owned()
}

#[tokio::test]
async fn pages_are_shown_by_their_type() {
    let page =
        "<html><head><script>x()</script></head><body><h1>Hi</h1><p>a <b>b</b></p></body></html>";
    let server = Server::start(move |path| match path {
        "/html" => ok("text/html; charset=utf-8", page),
        "/latin" => ok("text/plain; charset=ISO-8859-1", b"caf\xe9"),
        "/json" => ok("application/json", "{\"a\": 1}"),
        "/png" => ok("image/png", b"\x89PNG\0\0"),
        "/untyped" => Reply::Whole(response("200 OK", "", b"plain")),
        _ => ok("text/plain", ""),
    })
    .await;
    let get = |path: &str| fetch(json!({"url": server.url(path)}));
    let html = get("/html").await;
    assert_eq!(
        html.text(),
        format!(
            "URL: {}\nStatus: 200 OK\nContent-Type: text/html; charset=utf-8\n\n# Hi\n\na **b**",
            server.url("/html")
        )
    );
    assert_eq!(content(&get("/latin").await), "café");
    assert_eq!(content(&get("/json").await), "{\"a\": 1}");
    assert_eq!(
        content(&get("/png").await),
        "Binary content of 6 bytes; it cannot be shown as text."
    );
    assert_eq!(content(&get("/untyped").await), "plain");
    let raw = fetch(json!({"url": server.url("/html"), "raw": true})).await;
    assert_eq!(content(&raw), page);
    let seen = server.requests().join("\n").to_ascii_lowercase();
    assert!(
        !seen.contains("cookie:") && !seen.contains("authorization:"),
        "{seen}"
    );
}

#[tokio::test]
async fn redirects_are_followed_within_the_site_only() {
    let server = Server::start(|path| match path {
        "/start" => found("/middle"),
        "/middle" => found("end?x=1"),
        "/end?x=1" => ok("text/plain", "arrived"),
        "/away" => found("https://example.com/elsewhere"),
        "/loop" => found("/loop"),
        "/file" => found("file:///etc/passwd"),
        "/login" => found("http://user:pass@127.0.0.1/"),
        _ => ok("text/plain", "other"),
    })
    .await;
    let get = |path: &str| fetch(json!({"url": server.url(path)}));
    let followed = get("/start").await;
    assert_eq!(content(&followed), "arrived");
    assert!(
        followed
            .text()
            .starts_with(&format!("URL: {}\n", server.url("/end?x=1")))
    );
    let away = get("/away").await;
    assert_eq!(away.status, ToolStatus::Ok);
    assert!(
        away.text().contains("https://example.com/elsewhere"),
        "{}",
        away.text()
    );
    let before = server.requests().len();
    let endless = get("/loop").await;
    assert_eq!(endless.status, ToolStatus::Failed);
    assert!(
        endless.text().contains("more than 5 redirects"),
        "{}",
        endless.text()
    );
    assert_eq!(server.requests().len() - before, 6);
    for path in ["/file", "/login"] {
        let refused = get(path).await;
        assert_eq!(refused.status, ToolStatus::Failed, "{}", refused.text());
    }
}

#[tokio::test]
async fn every_hop_is_checked() {
    let server = Server::start(|path| match path {
        // Another spelling of the same host, which the policy does not name.
        "/start" => found("http://localhost.:1/secret"),
        _ => ok("text/plain", "here"),
    })
    .await;
    let policy = WebPolicy {
        allowed_hosts: vec!["localhost".to_owned()],
        ..WebPolicy::default()
    };
    let tool = WebFetch::new(policy).boxed();
    let get = |path: &str| {
        let url = format!("http://localhost:{}{path}", server.address.port());
        run(
            Arc::clone(&tool),
            json!({"url": url}),
            CancellationToken::new(),
        )
    };
    assert_eq!(content(&get("/plain").await), "here");
    let refused = get("/start").await;
    assert!(
        refused.status == ToolStatus::Denied || refused.text().contains("cannot be resolved"),
        "{}",
        refused.text()
    );
}

#[tokio::test]
async fn bodies_are_bounded_after_decompression() {
    let bomb = gzip(&vec![b'a'; 20 * 1024 * 1024]);
    assert!(bomb.len() < 100 * 1024);
    let small = gzip(b"squeezed");
    let encoded = "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n";
    let server = Server::start(move |path| match path {
        "/endless" => Reply::Endless(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".to_vec(),
            vec![b'x'; 64 * 1024],
        ),
        "/bomb" => Reply::Whole(response("200 OK", encoded, &bomb)),
        _ => Reply::Whole(response("200 OK", encoded, &small)),
    })
    .await;
    let get = |path: &str| fetch(json!({"url": server.url(path)}));
    for path in ["/endless", "/bomb"] {
        let output = get(path).await;
        assert_eq!(content(&output).len(), 10 * 1024 * 1024, "{path}");
        assert!(
            output
                .text()
                .contains("Note: The answer is larger than 10 MiB"),
            "{path}"
        );
    }
    assert_eq!(content(&get("/small").await), "squeezed");
}

#[tokio::test]
async fn slow_answers_time_out_and_can_be_cancelled() {
    let start = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nbeginning".to_vec();
    let server = Server::start(move |_| Reply::Stalled(start.clone())).await;
    let output = fetch(json!({"url": server.url("/"), "timeout_seconds": 1})).await;
    assert_eq!(output.status, ToolStatus::TimedOut);
    server.arrival.notified().await;

    let cancel = CancellationToken::new();
    let policy = WebPolicy {
        private: PrivateAddresses::Allowed,
        ..WebPolicy::default()
    };
    let input = json!({"url": server.url("/")});
    let running = run(WebFetch::new(policy).boxed(), input, cancel.clone());
    let cancelling = async {
        server.arrival.notified().await;
        cancel.cancel();
    };
    let (output, ()) = tokio::join!(running, cancelling);
    assert_eq!(output.status, ToolStatus::Cancelled);
}

#[tokio::test]
async fn errors_carry_status_and_text() {
    let server = Server::start(|_| {
        let body = format!("<h1>Gone</h1>{}", "x".repeat(5000));
        Reply::Whole(response(
            "404 Not Found",
            "Content-Type: text/html\r\n",
            body.as_bytes(),
        ))
    })
    .await;
    let output = fetch(json!({"url": server.url("/x")})).await;
    assert_eq!(output.status, ToolStatus::Failed);
    let text = output.text();
    assert!(
        text.contains("404 Not Found") && text.contains("# Gone"),
        "{text}"
    );
    assert!(text.chars().count() < 1200);
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let output = fetch(json!({"url": format!("http://{closed}/")})).await;
    assert_eq!(output.status, ToolStatus::Failed);
    assert!(output.text().contains("refused"), "{}", output.text());
}

#[rstest]
#[case("http://127.0.0.1/")]
#[case("http://10.1.2.3/")]
#[case("http://169.254.169.254/latest/meta-data/")]
#[case("http://[::1]/")]
#[case("http://[::ffff:10.0.0.1]/")]
#[case("http://[fd00::1]/")]
#[case("http://0.0.0.0/")]
#[case("http://0/")]
#[case("http://2130706433/")]
#[case("http://0177.0.0.1/")]
#[case("http://0x7f.1/")]
#[case("http://127.1/")]
#[case("http://１２７.0.0.1/")]
#[case("http://100.64.0.1/")]
#[case("http://localhost/")]
#[case("https://LOCALHOST:8443/")]
#[tokio::test]
async fn private_addresses_are_refused_by_default(#[case] url: &str) {
    let tool = WebFetch::new(WebPolicy::default()).boxed();
    let output = run(tool, json!({"url": url}), CancellationToken::new()).await;
    assert_eq!(output.status, ToolStatus::Denied, "{}", output.text());
    assert!(
        output.text().contains("not on the public internet"),
        "{}",
        output.text()
    );
}

#[rstest]
#[case("ftp://example.com/")]
#[case("file:///etc/passwd")]
#[case("http://user:pass@example.com/")]
#[case("example.com")]
#[tokio::test]
async fn unusable_urls_are_invalid_input(#[case] url: &str) {
    let tool = WebFetch::new(WebPolicy::default()).boxed();
    let output = run(tool, json!({"url": url}), CancellationToken::new()).await;
    assert_eq!(output.status, ToolStatus::InvalidInput, "{}", output.text());
}

fn search_tool(backend: SearchBackend, server: &Server) -> Arc<dyn Tool> {
    WebSearch::new(SearchConfig {
        backend,
        key: Some("the-key".to_owned().into()),
        base_url: Some(server.url("/").parse().unwrap()),
    })
    .boxed()
}

async fn search(backend: SearchBackend, server: &Server, input: Value) -> ToolOutput {
    run(
        search_tool(backend, server),
        input,
        CancellationToken::new(),
    )
    .await
}

#[tokio::test]
async fn each_service_is_asked_in_its_own_way() {
    let server = Server::start(|path| {
        let result = |snippet: &str| {
            json!([
                {"title": "First <strong>one</strong>", "url": "https://a.com/1", snippet: "s ".repeat(400)},
                {"title": "Second", "url": "https://b.com/2", snippet: "short"},
                {"title": "Third", "url": "https://docs.a.com/3", snippet: ""},
            ])
        };
        let answer = if path.starts_with("/res/v1/web/search") {
            json!({"web": {"results": result("description")}})
        } else {
            json!({"results": result("content")})
        };
        ok("application/json", answer.to_string())
    })
    .await;
    let input = json!({
        "query": "a b", "limit": 2, "allowed_domains": ["a.com"], "blocked_domains": ["x.com"]
    });
    for backend in [
        SearchBackend::Brave,
        SearchBackend::Tavily,
        SearchBackend::Exa,
    ] {
        let output = search(backend, &server, input.clone()).await;
        assert_eq!(output.status, ToolStatus::Ok, "{}", output.text());
        let snippet = "s ".repeat(150);
        assert_eq!(
            output.text(),
            format!(
                "1. First one\n   https://a.com/1\n   {snippet}…\n2. Third\n   https://docs.a.com/3"
            )
        );
    }
    let [brave, tavily, exa] = server.requests().try_into().unwrap();
    let query = "q=a+b+%28site%3Aa.com%29+-site%3Ax.com&count=2";
    assert!(
        brave.starts_with(&format!("GET /res/v1/web/search?{query} ")),
        "{brave}"
    );
    assert!(
        brave.contains("x-subscription-token: the-key\r\n"),
        "{brave}"
    );
    let body = |request: &str| -> Value {
        serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    assert!(tavily.starts_with("POST /search "), "{tavily}");
    assert!(
        tavily.contains("authorization: Bearer the-key\r\n"),
        "{tavily}"
    );
    assert_eq!(
        body(&tavily),
        json!({
            "query": "a b", "max_results": 2,
            "include_domains": ["a.com"], "exclude_domains": ["x.com"],
        })
    );
    assert!(exa.starts_with("POST /search "), "{exa}");
    assert!(exa.contains("x-api-key: the-key\r\n"), "{exa}");
    assert_eq!(
        body(&exa),
        json!({
            "query": "a b", "numResults": 2, "contents": {"text": {"maxCharacters": 300}},
            "includeDomains": ["a.com"], "excludeDomains": ["x.com"],
        })
    );
}

#[tokio::test]
async fn search_failures_say_what_to_do() {
    let server = Server::start(|path| match path {
        path if path.contains("q=denied") => {
            Reply::Whole(response("401 Unauthorized", "", b"bad token"))
        }
        path if path.contains("q=huge") => Reply::Endless(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n".to_vec(),
            vec![b' '; 64 * 1024],
        ),
        path if path.contains("q=garbage") => ok("text/html", "<html>"),
        _ => ok("application/json", "{}"),
    })
    .await;
    for (query, part) in [
        (
            "denied",
            "401 Unauthorized; check BRAVE_API_KEY.\nbad token",
        ),
        ("huge", "too large"),
        ("garbage", "not understood"),
    ] {
        let output = search(SearchBackend::Brave, &server, json!({"query": query})).await;
        assert_eq!(output.status, ToolStatus::Failed);
        assert!(output.text().contains(part), "{}", output.text());
    }
    let none = search(SearchBackend::Brave, &server, json!({"query": "none"})).await;
    assert_eq!(none.text(), "No results for `none`.");
    for input in [
        json!({"query": " "}),
        json!({"query": "q", "allowed_domains": ["no domain"]}),
    ] {
        let output = search(SearchBackend::Brave, &server, input).await;
        assert_eq!(output.status, ToolStatus::InvalidInput);
    }
    let config = SearchConfig::from_variables(|name| {
        (name == "CALIBAN_WEBSEARCH_PROVIDER").then(|| "tavily".to_owned())
    });
    let tool = WebSearch::new(config.unwrap()).boxed();
    let output = run(tool, json!({"query": "q"}), CancellationToken::new()).await;
    assert_eq!(output.status, ToolStatus::Failed);
    assert!(
        output.text().contains("TAVILY_API_KEY"),
        "{}",
        output.text()
    );
}

#[tokio::test]
async fn specifications_are_small_and_calls_are_named() {
    let server = Server::start(|_| ok("text/plain", "")).await;
    let fetch = WebFetch::new(WebPolicy::default()).boxed();
    let input = json!({"url": "https://a.com/"});
    assert_eq!(fetch.first_arg(&input).unwrap(), "https://a.com/");
    assert_eq!(fetch.supersession_key(&input).unwrap(), "https://a.com/");
    for tool in [fetch, search_tool(SearchBackend::Exa, &server)] {
        let size = serde_json::to_string(tool.spec()).unwrap().len();
        assert!(size <= 700, "{}: {size}", tool.spec().name);
    }
}
