//! Many at once, slow ones and large ones.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use caliban_testkit::{After, Block, Prose, Reply, Script};
use serde_json::json;

use super::Http;
use super::exchange::head;
use crate::bench;
use crate::support::{Bench, Wire};

#[test]
fn a_hundred_clients_with_one_id_make_one_call() {
    let script = Script::new([Reply::text("once").delay_ms(50)]).after(After::RepeatLast);
    let bench = Bench::new(Wire::Anthropic, script);
    let http = Http::start(&bench, &[]);
    http.call("POST", "/v1/sessions", &json!({"tab": "a"}));
    let prompt = json!({"request_id": "r", "content": "go"});
    let statuses: Vec<u16> = thread::scope(|scope| {
        let clients: Vec<_> = (0..100)
            .map(|_| {
                scope.spawn(|| {
                    let path = "/v1/sessions/a/prompts?wait=true";
                    let sent = http.call("POST", path, &prompt);
                    assert_eq!(sent.json()["result"]["result"], "once", "{}", sent.text);
                    sent.status
                })
            })
            .collect();
        clients.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(statuses, [200; 100]);
    assert_eq!(bench.server.model_requests().len(), 1);
    http.stop();
}

/// Strangers may take every place at the address: they are not answered, the user is.
#[test]
fn a_thousand_silent_connections_keep_nobody_out() {
    let bench = bench([Reply::text("hello")]);
    let http = Http::start(&bench, &[]);
    let mut silent = Vec::new();
    for _ in 0..1000 {
        // The queue of the system may be full before ours is.
        let address = ([127, 0, 0, 1], http.port).into();
        let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_secs(2)) else {
            break;
        };
        stream.write_all(b"GET / HT").unwrap();
        silent.push(stream);
    }
    assert!(silent.len() > 512, "{} connections", silent.len());
    http.call("POST", "/v1/sessions", &json!({"tab": "a"}));
    let prompt = json!({"request_id": "r", "content": "go"});
    let sent = http.call("POST", "/v1/sessions/a/prompts?wait=true", &prompt);
    assert_eq!(sent.json()["result"]["result"], "hello");
    // They are let go of, and then there is room at the address again.
    drop(silent);
    let page = super::Exchange::new(
        TcpStream::connect(("127.0.0.1", http.port)).unwrap(),
        "GET",
        "/",
    );
    let page = page.header("host", &format!("127.0.0.1:{}", http.port));
    assert_eq!(page.answer().status, 200);
    http.stop();
}

#[test]
fn streams_are_counted_and_one_too_many_is_refused() {
    let bench = bench([]);
    let http = Http::start(&bench, &[]);
    http.call("POST", "/v1/sessions", &json!({"tab": "a"}));
    let mut streams: Vec<_> = (0..64)
        .map(|_| http.local("GET", "/v1/sessions/a/events").stream())
        .collect();
    for stream in &mut streams {
        assert_eq!(stream.event().1["event"]["type"], "snapshot");
    }
    let refused = http.local("GET", "/v1/sessions/a/events").answer();
    assert_eq!(
        (refused.status, &refused.json()["code"]),
        (429, &json!("too_many_streams"))
    );
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(http.local("GET", "/healthz").answer().status, 200);
    drop(streams);
    http.stop();
}

/// A frame that says it is larger than anything may be ends the connection, not the server.
#[test]
fn a_huge_frame_is_not_waited_for() {
    let bench = bench([]);
    let http = Http::start(&bench, &[]);
    http.call("POST", "/v1/sessions", &json!({"tab": "a"}));
    for path in ["/v1/sessions/a/ws", "/v1/ws"] {
        let mut socket = http.local("GET", path).upgraded();
        assert_eq!(head(&mut socket).0, 101);
        let mut frame = vec![0x81, 0x80 | 127];
        frame.extend_from_slice(&(1_u64 << 40).to_be_bytes());
        frame.extend_from_slice(&[0; 1024]);
        socket.get_mut().write_all(&frame).unwrap();
        let mut rest = Vec::new();
        // The end comes, as an end or as a reset.
        let _ = socket.read_to_end(&mut rest);
    }
    assert_eq!(http.local("GET", "/healthz").answer().status, 200);
    http.stop();
}

/// A reader that takes nothing holds neither the session nor another reader up, and what it is
/// given in the end has no hole.
#[test]
fn a_slow_reader_holds_nobody_up() {
    let piece = "x".repeat(4096);
    let many = Block::Text(Prose::Pieces(vec![piece; 1200]));
    let bench = bench([Reply::default().block(many), Reply::text("after")]);
    let http = Http::start(&bench, &[]);
    http.call("POST", "/v1/sessions", &json!({"tab": "a"}));
    let mut slow = http.local("GET", "/v1/sessions/a/events").stream();
    let (first, _) = slow.event();
    for (request, content) in [("r", "much"), ("s", "more")] {
        let prompt = json!({"request_id": request, "content": content});
        let sent = http.call("POST", "/v1/sessions/a/prompts?wait=true", &prompt);
        assert_eq!(sent.json()["result"]["subtype"], "success");
    }
    let mut last = first.rsplit_once('-').unwrap().1.parse::<u64>().unwrap();
    let mut results = 0;
    while results < 2 {
        let (_, line) = slow.event();
        let seq = line["seq"].as_u64().unwrap();
        assert_eq!(line["first"].as_u64().unwrap_or(seq), last + 1, "a hole");
        last = seq;
        let kind = &line["event"]["type"];
        results += usize::from(kind == "result");
        assert_ne!(kind, "snapshot");
    }
    http.stop();
}
