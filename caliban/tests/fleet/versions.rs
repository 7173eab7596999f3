//! Daemons of other versions: what is said to them, and how they make room.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc;
use std::thread::JoinHandle;

use caliban_testkit::Reply;
use serde_json::{Value, json};

use crate::fleet::{Fleet, is_alive};

/// A daemon of another version in the place of ours, until it is told to stop; returns what it was
/// asked.
fn stand_in(socket: &Path, protocol: u32, waiting: u64) -> JoinHandle<Vec<String>> {
    let listener = UnixListener::bind(socket).unwrap();
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600)).unwrap();
    let socket = socket.to_owned();
    let (ready, is_ready) = mpsc::channel();
    let serving = std::thread::spawn(move || {
        ready.send(()).unwrap();
        let mut asked = Vec::new();
        for stream in listener.incoming() {
            if converse(stream.unwrap(), &socket, protocol, waiting, &mut asked) {
                break;
            }
        }
        asked
    });
    is_ready.recv().unwrap();
    serving
}

/// One connection; whether it was the last.
fn converse(
    stream: UnixStream,
    socket: &Path,
    protocol: u32,
    waiting: u64,
    asked: &mut Vec<String>,
) -> bool {
    let mut writer = stream.try_clone().unwrap();
    let mut say = |line: &Value| writeln!(writer, "{line}").is_ok();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let Some(hello) = lines.next() else {
        return false;
    };
    let hello: Value = serde_json::from_str(&hello).unwrap();
    say(&json!({
        "type": "hello", "protocol": protocol, "build": "0.0.9", "alive": 1, "pid": 1,
    }));
    if hello["protocol"] != protocol {
        say(&json!({"type": "refused", "why": "version", "message": "no"}));
        return false;
    }
    for line in lines {
        let request: Value = serde_json::from_str(&line).unwrap();
        let op = request["op"].as_str().unwrap().to_owned();
        asked.push(op.clone());
        match op.as_str() {
            "status" => say(&json!({
                "type": "status", "pid": 1, "build": "0.0.9", "protocol": protocol,
                "started": "2026-01-01T00:00:00Z", "root": "/", "socket": socket,
                "alive": 1, "waiting": waiting, "agents": 1,
            })),
            "list" => say(&json!({"type": "agents", "agents": []})),
            "stop" => {
                std::fs::remove_file(socket).unwrap();
                say(&json!({"type": "gone", "alive": 1}));
                return true;
            }
            other => panic!("{other}"),
        };
    }
    false
}

#[test]
fn an_older_daemon_hands_over_and_no_agent_is_lost() {
    let fleet = Fleet::new([Reply::text("one")]);
    let id = fleet.spawn("begin");
    let agent = fleet.until_state(&id, "idle");
    let socket = fleet.daemon()["socket"].as_str().unwrap().to_owned();
    fleet.ok(&["daemon", "stop"]);
    let old = stand_in(Path::new(&socket), 1, 0);
    let again = fleet.agent(&id);
    assert_eq!(
        (&again["state"], &again["pid"]),
        (&json!("idle"), &agent["pid"])
    );
    assert!(is_alive(&agent["pid"]));
    assert_eq!(old.join().unwrap(), ["status", "stop"]);
    assert_eq!(fleet.daemon()["protocol"], 2);
}

#[test]
fn an_older_daemon_with_agents_that_wait_is_spoken_to_in_its_version() {
    let fleet = Fleet::new([]);
    fleet.list();
    let socket = fleet.daemon()["socket"].as_str().unwrap().to_owned();
    fleet.ok(&["daemon", "stop"]);
    let old = stand_in(Path::new(&socket), 1, 3);
    assert!(fleet.list().is_empty());
    let stopped = fleet.ok(&["daemon", "stop"]);
    assert!(stopped.contains("1 agent goes on"), "{stopped}");
    assert_eq!(old.join().unwrap(), ["status", "list", "stop"]);
}

#[test]
fn a_newer_daemon_is_left_alone_and_named() {
    let fleet = Fleet::new([]);
    fleet.list();
    let socket = fleet.daemon()["socket"].as_str().unwrap().to_owned();
    fleet.ok(&["daemon", "stop"]);
    let newer = stand_in(Path::new(&socket), 3, 0);
    let ran = fleet.run(&["agents", "list"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("caliban 0.0.9"), "{}", ran.stderr);
    assert!(ran.stderr.contains("version 3"), "{}", ran.stderr);
    assert!(ran.stderr.contains("speaks 1 to 2"), "{}", ran.stderr);
    // It is told by somebody who speaks as it does.
    let mut stream = UnixStream::connect(&socket).unwrap();
    writeln!(stream, "{}", json!({"type": "hello", "protocol": 3})).unwrap();
    writeln!(stream, "{}", json!({"op": "stop"})).unwrap();
    assert_eq!(newer.join().unwrap(), ["stop"]);
}

#[test]
fn a_client_of_the_version_before_is_understood() {
    let fleet = Fleet::new([Reply::text("one")]);
    let id = fleet.spawn("begin");
    let agent = fleet.until_state(&id, "idle");
    let control = fleet.daemon()["socket"].as_str().unwrap().to_owned();
    let mut stream = UnixStream::connect(control).unwrap();
    writeln!(stream, "{}", json!({"type": "hello", "protocol": 1})).unwrap();
    writeln!(stream, "{}", json!({"op": "list"})).unwrap();
    let mut lines = BufReader::new(stream).lines();
    let hello: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(hello["protocol"], 2);
    let list: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(list["agents"][0]["id"], id.as_str());
    let mut stream = UnixStream::connect(agent["socket"].as_str().unwrap()).unwrap();
    writeln!(stream, "{}", json!({"type": "hello", "protocol": 1})).unwrap();
    let mut lines = BufReader::new(stream).lines();
    let attached: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(attached["type"], "attached", "{attached}");
}
