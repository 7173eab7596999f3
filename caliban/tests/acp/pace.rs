//! A client that reads slowly: nothing is lost, it is heard all the same, and the work waits for
//! it instead of filling the memory.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use caliban_testkit::{Block, Prose, Reply};
use serde_json::{Value, json};

use crate::{bench, schema, text};

/// A long answer in this many pieces.
fn long(pieces: usize, size: usize) -> Reply {
    let pieces = (0..pieces)
        .map(|n| format!("{n:06}{}", "x".repeat(size)))
        .collect();
    Reply::default().block(Block::Text(Prose::Pieces(pieces)))
}

#[test]
fn a_thousand_updates_wait_for_their_reader_and_a_cancel_does_not() {
    const PIECES: usize = 1_000;
    let bench = bench([long(PIECES, 4_000), long(PIECES, 4_000).hold_after(PIECES)]);
    let mut child = bench
        .command()
        .args(["serve", "acp"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut write = |frame: Value| writeln!(input, "{frame}").unwrap();
    let mut next = || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        schema::read(&line)
    };
    let mut until = |id: i64| {
        let mut seen = Vec::new();
        loop {
            let frame = next();
            if frame["id"] == id {
                return (frame, seen);
            }
            seen.push(frame);
        }
    };
    write(
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}),
    );
    let params = json!({"cwd": bench.workspace.path(), "mcpServers": []});
    write(json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": params}));
    until(1);
    let session = until(2).0["result"]["sessionId"].clone();
    let prompt = |id: i64| {
        let params = json!({"sessionId": session, "prompt": text("tell")});
        json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params})
    };
    // Nobody reads while the first answer comes; all of it is there afterwards, in order.
    write(prompt(3));
    bench.server.wait_for_requests(1);
    let (answer, seen) = until(3);
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let said: Vec<u32> = seen
        .iter()
        .filter(|frame| frame["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .flat_map(|frame| {
            let text = frame["params"]["update"]["content"]["text"]
                .as_str()
                .unwrap();
            text.split('x')
                .filter(|it| !it.is_empty())
                .map(|it| it.parse().unwrap())
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(
        said,
        (0..u32::try_from(PIECES).unwrap()).collect::<Vec<_>>()
    );
    // A cancel is heard although nobody has read what came before it.
    write(prompt(4));
    bench.server.wait_for_requests(2);
    write(json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}));
    bench.server.wait_for_disconnect();
    let (answer, _) = until(4);
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_client_that_is_gone_ends_the_program() {
    let bench = bench([long(1_000, 1_000).hold_after(900)]);
    let mut child = bench
        .command()
        .args(["serve", "acp"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    writeln!(
        input,
        "{}",
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
    )
    .unwrap();
    let params = json!({"cwd": bench.workspace.path(), "mcpServers": []});
    writeln!(
        input,
        "{}",
        json!({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": params})
    )
    .unwrap();
    let session = loop {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let frame = schema::read(&line);
        if frame["id"] == 2 {
            break frame["result"]["sessionId"].clone();
        }
    };
    drop(output);
    let params = json!({"sessionId": session, "prompt": text("tell")});
    writeln!(
        input,
        "{}",
        json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": params})
    )
    .unwrap();
    // The input stays open: it is the closed output that ends it.
    child.wait().unwrap();
    drop(input);
}
