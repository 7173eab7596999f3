//! Where the provider's prompt cache is asked for, with the built binary: a long conversation of
//! short turns is read from the cache as one of long turns is.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};

mod support;

use support::{Bench, Wire};

/// The places of the messages that end in a mark, and how many marks there are in all.
fn marks(request: &Value) -> (Vec<usize>, usize) {
    let all = request.to_string().matches("\"cache_control\"").count();
    let messages = request["messages"].as_array().unwrap();
    let marked = messages.iter().enumerate().filter(|(_, message)| {
        let last = message["content"].as_array().and_then(|it| it.last());
        last.is_some_and(|block| block.get("cache_control").is_some())
    });
    (marked.map(|(place, _)| place).collect(), all)
}

/// How much of a request stands before a place, roughly in tokens.
fn tokens(messages: &[Value]) -> usize {
    messages.iter().map(|it| it.to_string().len() / 4).sum()
}

#[rstest]
#[case::as_it_comes("", 1_024)]
#[case::more("min_cache_block_tokens = 3000\n", 3_000)]
#[case::none("min_cache_block_tokens = 0\n", 0)]
fn a_loop_of_short_calls_is_read_from_the_cache(#[case] settings: &str, #[case] minimum: usize) {
    let call = |number: usize| {
        // About 300 tokens each, so that none is worth a mark by itself.
        let text = format!("{number} {}", "word ".repeat(200));
        Reply::tool("Bash", json!({"command": format!("echo {text}")}))
    };
    let replies = (0..24).map(call).chain([Reply::text("Done.")]);
    let bench = Bench::new(Wire::Anthropic, Script::new(replies));
    let folder = bench.home.path().join(".config/caliban");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("settings.toml"), settings).unwrap();
    let ran = bench.run(["-p", "go", "--auto-allow"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let requests = bench.server.model_requests();
    assert_eq!(requests.len(), 25);
    let mut written: Option<usize> = None;
    for request in requests {
        let request = request.json();
        let (marked, all) = marks(&request);
        assert!(all <= 4, "{all}");
        // What the request before has written is where this one looks.
        assert!(written.is_none_or(|it| marked.contains(&it)), "{marked:?}");
        let messages = request["messages"].as_array().unwrap();
        let from = marked.last().map_or(0, |last| last + 1);
        let unread = tokens(&messages[from..]);
        assert!(unread < minimum + 600, "{unread} tokens after {marked:?}");
        written = marked.last().copied();
    }
    assert!(written.is_some());
}
