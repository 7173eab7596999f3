//! The server as a raw HTTP client sees it: connections, chunks, faults and disconnects.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::io::ErrorKind as IoKind;
use std::time::Duration;

use caliban_testkit::{
    Api, BlockingServer, Checks, Chunking, ErrorKind, Fault, Match, ModelEntry, ModelServer,
    Outcome, Presence, Reply, Script,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);

async fn connect(server: &ModelServer) -> TcpStream {
    TcpStream::connect(server.address()).await.unwrap()
}

fn post(path: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nhost: test\r\nauthorization: Bearer k\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn chat(stream: bool) -> String {
    let body =
        json!({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}]});
    post("/v1/chat/completions", &body)
}

/// Reads one response: its head and its body with the transfer coding removed.
async fn response(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let head = read_until(stream, b"\r\n\r\n").await;
    let head = String::from_utf8(head).unwrap();
    if head.contains("transfer-encoding: chunked") {
        let mut body = Vec::new();
        loop {
            let line = String::from_utf8(read_until(stream, b"\r\n").await).unwrap();
            let size = usize::from_str_radix(line.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            stream.read_exact(&mut chunk).await.unwrap();
            if size == 0 {
                return (head, body);
            }
            body.extend_from_slice(&chunk[..size]);
        }
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    (head, body)
}

async fn read_until(stream: &mut TcpStream, end: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while !out.ends_with(end) {
        out.push(stream.read_u8().await.unwrap());
    }
    out
}

#[tokio::test]
async fn a_connection_serves_many_requests() {
    let script = Script::new([Reply::text("one"), Reply::text("two")]);
    let server = ModelServer::start(script).await.unwrap();
    let mut stream = connect(&server).await;
    stream.write_all(chat(false).as_bytes()).await.unwrap();
    let (head, body) = response(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("x-request-id: req_0001"));
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["choices"][0]["message"]["content"], "one");
    stream.write_all(chat(true).as_bytes()).await.unwrap();
    let (head, body) = response(&mut stream).await;
    assert!(head.contains("content-type: text/event-stream"));
    assert!(
        String::from_utf8(body)
            .unwrap()
            .ends_with("data: [DONE]\n\n")
    );
    let recorded = server.wait_for_requests(2).await;
    assert_eq!(recorded[1].api, Some(Api::OpenAiChat));
    assert_eq!(recorded[1].json()["stream"], true);
    assert_eq!(recorded[1].header("authorization"), Some("Bearer k"));
    assert_eq!(
        (recorded[1].outcome.clone(), server.disconnects()),
        (Outcome::Answered, 0)
    );
}

#[tokio::test]
async fn chunked_and_expecting_requests_are_understood() {
    let server = ModelServer::start(Script::new([Reply::text("one").times(2)]))
        .await
        .unwrap();
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).to_string();
    let (first, second) = body.split_at(9);
    let head = "POST /chat/completions HTTP/1.1\r\nhost: t\r\nauthorization: Bearer k\r\n";
    let mut stream = connect(&server).await;
    let request = format!(
        "{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(response(&mut stream).await.0.contains(" 200 "));
    let request = format!(
        "{head}expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(
        read_until(&mut stream, b"\r\n\r\n").await,
        b"HTTP/1.1 100 Continue\r\n\r\n"
    );
    stream.write_all(body.as_bytes()).await.unwrap();
    assert!(response(&mut stream).await.0.contains(" 200 "));
    assert_eq!(&server.requests()[0].body[..], body.as_bytes());
}

#[tokio::test]
async fn resets_reach_the_client() {
    let faults = [
        (Fault::ResetBeforeHeaders, 0),
        (Fault::ResetMidStream { after_events: 2 }, 2),
    ];
    for (fault, events) in faults {
        let server = ModelServer::start(Script::new([Reply::text("x").with_fault(fault.clone())]))
            .await
            .unwrap();
        let mut stream = connect(&server).await;
        stream.write_all(chat(true).as_bytes()).await.unwrap();
        let mut seen = Vec::new();
        let error = loop {
            match stream.read_buf(&mut seen).await {
                Ok(0) => panic!("a clean end instead of a reset"),
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), IoKind::ConnectionReset);
        let text = String::from_utf8(seen).unwrap();
        // What was in flight may be lost with a reset, but never more than was planned.
        assert!(text.matches("data: ").count() <= events, "{text}");
        assert_eq!(server.model_requests()[0].outcome, Outcome::Fault(fault));
        assert_eq!(server.disconnects(), 0);
    }
}

#[tokio::test]
async fn stalls_last_until_the_client_leaves() {
    for fault in [
        Fault::StallBeforeHeaders,
        Fault::StallMidStream { after_events: 1 },
    ] {
        let server = ModelServer::start(Script::new([Reply::text("x").with_fault(fault)]))
            .await
            .unwrap();
        let mut stream = connect(&server).await;
        stream.write_all(chat(true).as_bytes()).await.unwrap();
        server.wait_for_requests(1).await;
        assert_eq!(server.disconnects(), 0);
        drop(stream);
        timeout(PATIENCE, server.wait_for_disconnect())
            .await
            .unwrap();
        assert_eq!(server.disconnects(), 1);
    }
}

#[tokio::test]
async fn held_answers_go_on_when_they_are_released() {
    for (mode, events, end) in [
        (true, 0, "[DONE]"),
        (true, 2, "[DONE]"),
        (true, 999, "[DONE]"),
        (false, 1, "\"stop\""),
    ] {
        let reply = Reply::text("a rather long text in pieces").hold_after(events);
        let script = Script::new([reply.clone(), reply.clone(), Reply::text("free")]);
        let server = ModelServer::start(script).await.unwrap();
        // Who leaves while it waits takes no release with it.
        let mut hasty = connect(&server).await;
        hasty.write_all(chat(mode).as_bytes()).await.unwrap();
        server.wait_for_requests(1).await;
        drop(hasty);
        timeout(PATIENCE, server.wait_for_disconnect())
            .await
            .unwrap();
        let mut stream = connect(&server).await;
        stream.write_all(chat(mode).as_bytes()).await.unwrap();
        server.wait_for_requests(2).await;
        let mut other = connect(&server).await;
        other.write_all(chat(mode).as_bytes()).await.unwrap();
        // Others are not held with it, and its end has not been written by then.
        let (_, free) = response(&mut other).await;
        let mut seen = [0; 4096];
        let early = stream.try_read(&mut seen).unwrap_or(0);
        let mut text = String::from_utf8_lossy(&seen[..early]).into_owned();
        assert!(!text.contains(end), "{text}");
        assert!(String::from_utf8_lossy(&free).contains("free"));
        server.release();
        while !text.contains(end) {
            let read = timeout(PATIENCE, stream.read(&mut seen)).await.unwrap();
            text.push_str(&String::from_utf8_lossy(&seen[..read.unwrap()]));
        }
    }
}

#[tokio::test]
async fn leaving_between_chunks_is_noticed() {
    let reply = Reply::text("a rather long text in pieces").chunk_delay_ms(600_000);
    let server = ModelServer::start(Script::new([reply])).await.unwrap();
    let mut stream = connect(&server).await;
    stream.write_all(chat(true).as_bytes()).await.unwrap();
    read_until(&mut stream, b"\r\n\r\n").await;
    drop(stream);
    timeout(PATIENCE, server.wait_for_disconnect())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_clean_end_lacks_the_terminal_marker() {
    let reply = Reply::text("x").with_fault(Fault::CloseMidStream { after_events: 1 });
    let server = ModelServer::start(Script::new([reply])).await.unwrap();
    let mut stream = connect(&server).await;
    stream.write_all(chat(true).as_bytes()).await.unwrap();
    let (_, body) = response(&mut stream).await;
    assert!(!String::from_utf8(body).unwrap().contains("[DONE]"));
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn status_faults_carry_hints_and_the_familys_body() {
    let fault = || Fault::status(429).retry_after("7").retry_after_ms(7000);
    let server =
        ModelServer::start(Script::new([Reply::fault(fault()).times(5)]).checks(Checks::Off))
            .await
            .unwrap();
    let mut stream = connect(&server).await;
    for (path, pointer, expected) in [
        ("/v1/messages", "/error/type", "rate_limit_error"),
        ("/v1/chat/completions", "/error/code", "rate_limit_exceeded"),
        ("/v1/responses", "/error/code", "rate_limit_exceeded"),
        (
            "/v1beta/models/gemini-3.8-flash:generateContent",
            "/error/details/0/retryDelay",
            "7s",
        ),
        ("/api/chat", "/error", "too many requests"),
    ] {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": "x"}]});
        stream
            .write_all(post(path, &body).as_bytes())
            .await
            .unwrap();
        let (head, body) = response(&mut stream).await;
        assert!(
            head.starts_with("HTTP/1.1 429 ") && head.contains("retry-after: 7\r\n"),
            "{head}"
        );
        assert!(head.contains("retry-after-ms: 7000\r\n"));
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            body.pointer(pointer).and_then(Value::as_str),
            Some(expected),
            "{body}"
        );
    }
}

#[tokio::test]
async fn odd_bodies_arrive_as_scripted() {
    let server = ModelServer::start(Script::new([
        Reply::fault(Fault::Garbage),
        Reply::fault(Fault::HtmlBody { status: 502 }),
        Reply::fault(Fault::JsonErrorWith200),
        Reply::text("hello").with_fault(Fault::ErrorEvent {
            after_events: 1,
            kind: ErrorKind::Overloaded,
        }),
        Reply::text("héllo").chunking(Chunking::Bytes(3.try_into().unwrap())),
    ]))
    .await
    .unwrap();
    let mut stream = connect(&server).await;
    let mut next = async || {
        stream.write_all(chat(true).as_bytes()).await.unwrap();
        response(&mut stream).await
    };
    assert!(String::from_utf8(next().await.1).is_err());
    let (head, _) = next().await;
    assert!(head.starts_with("HTTP/1.1 502 ") && head.contains("text/html"));
    let (head, body) = next().await;
    assert!(head.contains(" 200 ") && head.contains("application/json"));
    assert!(String::from_utf8(body).unwrap().starts_with("{\"error\""));
    let (_, body) = next().await;
    assert!(
        String::from_utf8(body)
            .unwrap()
            .contains("server_is_overloaded")
    );
    let (_, body) = next().await;
    assert!(String::from_utf8(body).unwrap().contains("héllo"));
}

#[tokio::test]
async fn refusals_and_the_end_of_the_script_are_recorded() {
    let server = ModelServer::start(Script::new([]).require_key("k"))
        .await
        .unwrap();
    let mut stream = connect(&server).await;
    let request = "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}";
    stream.write_all(request.as_bytes()).await.unwrap();
    assert!(response(&mut stream).await.0.starts_with("HTTP/1.1 401 "));
    stream
        .write_all(post("/v1/chat/completions", &json!({"model": "m"})).as_bytes())
        .await
        .unwrap();
    assert!(response(&mut stream).await.0.starts_with("HTTP/1.1 400 "));
    stream.write_all(chat(false).as_bytes()).await.unwrap();
    assert!(response(&mut stream).await.0.starts_with("HTTP/1.1 500 "));
    stream
        .write_all(b"GET /nope HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    assert!(response(&mut stream).await.0.starts_with("HTTP/1.1 404 "));
    let statuses: Vec<_> = server
        .requests()
        .iter()
        .map(|request| match request.outcome {
            Outcome::Rejected { status, .. } => status,
            Outcome::Answered | Outcome::Fault(_) => 200,
        })
        .collect();
    assert_eq!(statuses, [401, 400, 500, 404]);
    assert_eq!(server.model_requests().len(), 3);
    server.push(Reply::text("late"));
    stream.write_all(chat(false).as_bytes()).await.unwrap();
    assert!(response(&mut stream).await.0.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn models_are_listed_in_the_shape_of_the_asker() {
    let entry = ModelEntry::new("claude-opus-4-7").context_length(1000);
    let server = ModelServer::start(Script::new([]).model(entry))
        .await
        .unwrap();
    let mut stream = connect(&server).await;
    for (path, header, pointer, expected) in [
        (
            "/v1/models",
            "anthropic-version: 2023-06-01",
            "/data/0/max_input_tokens",
            json!(1000),
        ),
        (
            "/v1/models",
            "x-a: b",
            "/data/0/id",
            json!("claude-opus-4-7"),
        ),
        ("/models", "x-a: b", "/object", json!("list")),
        (
            "/v1beta/models",
            "x-a: b",
            "/models/0/name",
            json!("models/claude-opus-4-7"),
        ),
        (
            "/v1/models/nope",
            "x-a: b",
            "/error/code",
            json!("model_not_found"),
        ),
        (
            "/api/tags",
            "x-a: b",
            "/models/0/model",
            json!("claude-opus-4-7"),
        ),
        ("/api/ps", "x-a: b", "/models/0/context_length", json!(1000)),
        ("/healthz", "x-a: b", "/status", json!("ok")),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nauthorization: Bearer k\r\n{header}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let body: Value = serde_json::from_slice(&response(&mut stream).await.1).unwrap();
        assert_eq!(body.pointer(pointer), Some(&expected), "{path}: {body}");
    }
    let show = json!({"model": "claude-opus-4-7"});
    stream
        .write_all(post("/api/show", &show).as_bytes())
        .await
        .unwrap();
    let body: Value = serde_json::from_slice(&response(&mut stream).await.1).unwrap();
    assert_eq!(body["model_info"]["llama.context_length"], 1000);
    stream
        .write_all(b"GET /v1/models HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    assert!(response(&mut stream).await.0.starts_with("HTTP/1.1 401 "));
}

#[tokio::test]
async fn a_gemini_stream_may_be_one_array() {
    let reply = |text: &str| Reply::text(text);
    let server = ModelServer::start(Script::new([
        reply("hello there, dear reader"),
        reply("x").with_fault(Fault::ErrorEvent {
            after_events: 1,
            kind: ErrorKind::Server,
        }),
    ]))
    .await
    .unwrap();
    let mut stream = connect(&server).await;
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    for (length, last) in [(3, "candidates"), (2, "error")] {
        let request = post(
            "/v1beta/models/gemini-3.8-flash:streamGenerateContent",
            &body,
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let (head, body) = response(&mut stream).await;
        assert!(head.contains("application/json"));
        let items: Vec<Value> = serde_json::from_slice(&body).unwrap();
        assert_eq!(items.len(), length);
        assert!(items[length - 1].get(last).is_some());
    }
}

#[tokio::test]
async fn dropping_the_server_ends_its_connections() {
    let server = ModelServer::start(Script::new([Reply::fault(Fault::StallBeforeHeaders)]))
        .await
        .unwrap();
    let mut stream = connect(&server).await;
    stream.write_all(chat(true).as_bytes()).await.unwrap();
    server.wait_for_requests(1).await;
    let address = server.address();
    drop(server);
    let ended = timeout(PATIENCE, stream.read(&mut [0; 1])).await.unwrap();
    assert!(matches!(ended, Ok(0) | Err(_)));
    // The listener goes with its task, at the runtime's next opportunity.
    timeout(PATIENCE, async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[test]
fn the_blocking_server_needs_no_runtime() {
    use std::io::{Read, Write};
    let script = Script::new([Reply::text("yes").when(Match::tool_result(Presence::Absent))]);
    let server = BlockingServer::start(script).unwrap();
    let address = server.url().strip_prefix("http://").unwrap().to_owned();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let request = chat(false).replace("host: test", "connection: close");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"yes\""));
    assert_eq!(server.wait_for_requests(1).len(), 1);
}
