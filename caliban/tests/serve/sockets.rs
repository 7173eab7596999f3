//! Several programs on one server.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use caliban_testkit::{After, Block, Match, Presence, Prose, Reply, Script};
use serde_json::json;

use crate::client::Wire as Lines;
use crate::support::{Bench, Wire};

struct Server {
    child: Child,
    socket: std::path::PathBuf,
}

impl Server {
    fn start(bench: &Bench) -> Self {
        let socket = bench.home.path().join("run/serve.sock");
        let mut command: Command = bench.command();
        let child = command
            .args(["serve", "app", "--listen"])
            .arg(format!("unix:{}", socket.display()))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, socket };
        while UnixStream::connect(&server.socket).is_err() {
            std::thread::yield_now();
        }
        server
    }

    fn connect(&self) -> Lines {
        let stream = UnixStream::connect(&self.socket).unwrap();
        Lines::new(stream.try_clone().unwrap(), stream)
    }

    fn wait(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_hundred_clients_with_one_id_are_one_call() {
    let script = Script::new([Reply::text("once")]).after(After::RepeatLast);
    let bench = Bench::new(Wire::Anthropic, script);
    let server = Server::start(&bench);
    let mut first = server.connect();
    first.done("open", json!({"tab": "a"}));
    // At most 64 at a time.
    for _ in 0..2 {
        let mut clients: Vec<_> = (0..50).map(|_| server.connect()).collect();
        for client in &mut clients {
            client.write(
                &json!({"op": "send", "id": "1", "tab": "a", "request": "r", "content": "hi"}),
            );
        }
        for client in &mut clients {
            let answer = client.answer("1");
            assert_eq!(answer["ok"]["request"], "r", "{answer}");
        }
    }
    assert_eq!(first.result("r")["result"], "once");
    assert_eq!(bench.server.requests().len(), 1);
    // The socket is for the user alone, and goes with the server.
    assert_eq!(mode(&server.socket), 0o600);
    assert_eq!(mode(server.socket.parent().unwrap()), 0o700);
    assert!(
        std::fs::metadata(&server.socket)
            .unwrap()
            .file_type()
            .is_socket()
    );
    first.done("shutdown", json!({}));
    let socket = server.socket.clone();
    assert_eq!(server.wait(), Some(0));
    assert!(!socket.exists());
}

#[test]
fn a_question_is_answered_by_whoever_comes_first_and_clients_come_and_go() {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            Reply::tool("Bash", json!({"command": "touch made"})),
            Reply::text("done"),
        ]),
    );
    let server = Server::start(&bench);
    let mut one = server.connect();
    one.done("open", json!({"tab": "a"}));
    one.done("send", json!({"tab": "a", "request": "r", "content": "go"}));
    let question = one.until("a", "question")["event"]["question"].clone();
    let seen = one.done("tabs", json!({}))["tabs"][0]["seq"]
        .as_u64()
        .unwrap();
    // It goes away and another comes: the question waits.
    drop(one);
    let mut two = server.connect();
    let joined = two.done("open", json!({"tab": "a"}));
    assert_eq!(joined["questions"][0]["question"], question);
    two.done("events", json!({"tab": "a", "since": seen}));
    two.done(
        "answer",
        json!({"tab": "a", "question": question, "decision": "allow"}),
    );
    assert_eq!(two.result("r")["result"], "done");
    two.done("shutdown", json!({}));
    assert_eq!(server.wait(), Some(0));
}

/// The agent has our user and knows where the socket is; it must not answer its own questions.
#[test]
fn what_a_session_runs_is_turned_away() {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            Reply::tool("Bash", json!({"command":
                "python3 -c 'import socket, os; s = socket.socket(socket.AF_UNIX); \
                 s.connect(os.environ[\"HOME\"] + \"/run/serve.sock\"); \
                 s.sendall(b\"{\\\"op\\\":\\\"tabs\\\",\\\"id\\\":\\\"1\\\"}\\n\"); print(\"got\", s.recv(99))'"}))
            .when(Match::tool_result(Presence::Absent)),
            Reply::text("done"),
        ]),
    );
    let server = Server::start(&bench);
    let mut client = server.connect();
    client.done("open", json!({"tab": "a", "allow": ["Bash"]}));
    client.done("send", json!({"tab": "a", "request": "r", "content": "go"}));
    let result = client.until("a", "tool_result")["event"].clone();
    let text = result["content"].to_string();
    assert!(!text.contains("tabs"), "{result}");
    assert!(
        text.contains("got b''") || result["is_error"] == true,
        "{result}"
    );
    client.done("shutdown", json!({}));
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn who_reads_slowly_holds_up_nobody_and_loses_nothing_that_counts() {
    // Far more than a socket and the bound of a stream hold.
    let words = vec!["x".repeat(4 * 1024); 1536];
    let long = Reply {
        blocks: vec![Block::Text(Prose::Pieces(words))],
        ..Reply::default()
    };
    let bench = Bench::new(Wire::Anthropic, Script::new([long]));
    let server = Server::start(&bench);
    let (mut slow, mut quick) = (server.connect(), server.connect());
    slow.done("open", json!({"tab": "a"}));
    slow.done("send", json!({"tab": "a", "request": "r", "content": "go"}));
    // Nothing more is read there until everything was said.
    while quick.done("tabs", json!({}))["tabs"][0]["last"] != "completed" {
        std::thread::yield_now();
    }
    let mut lines = 0;
    loop {
        let line = slow.told().unwrap();
        lines += 1;
        if line["event"]["type"] == "result" {
            let answer = line["event"]["result"].as_str().unwrap();
            assert_eq!(answer.len(), 6 * 1024 * 1024);
            break;
        }
    }
    assert!(lines < 1536, "{lines} lines: nothing was condensed");
    quick.done("shutdown", json!({}));
    assert_eq!(server.wait(), Some(0));
}
