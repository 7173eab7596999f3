//! Many tabs at once.

use std::collections::HashSet;

use caliban_testkit::{After, Reply, Script};
use serde_json::json;

use crate::client::App;
use crate::support::{Bench, Wire};

#[test]
fn fifty_tabs_share_a_few_places_and_all_have_their_turn() {
    let script = Script::new([Reply::text("ok").delay_ms(5)]).after(After::RepeatLast);
    let bench = Bench::new(Wire::Anthropic, script);
    let mut app = App::start_with(&bench, &["--max-running", "8"], |command| {
        command.args(["--bare", "--no-mcp"]);
    });
    let tabs: Vec<String> = (0..50).map(|number| format!("t{number}")).collect();
    for tab in &tabs {
        app.wire.done("open", json!({"tab": tab}));
    }
    for round in 0..2 {
        for tab in &tabs {
            let request = format!("{tab}-{round}");
            app.wire.done(
                "send",
                json!({"tab": tab, "request": request, "content": "go"}),
            );
        }
    }
    let (mut running, mut most, mut results) = (HashSet::new(), 0, Vec::new());
    while results.len() < 100 {
        let line = app.wire.told().unwrap();
        let tab = line["tab"].as_str().unwrap().to_owned();
        match line["event"]["type"].as_str() {
            Some("state") if line["event"]["running"].is_string() => {
                running.insert(tab);
                most = most.max(running.len());
            }
            Some("state") => {
                running.remove(&tab);
            }
            Some("result") => {
                assert_eq!(line["event"]["result"], "ok", "{line}");
                results.push(line["request"].as_str().unwrap().to_owned());
            }
            _ => {}
        }
    }
    assert_eq!(results.iter().collect::<HashSet<_>>().len(), 100);
    assert_eq!(bench.server.requests().len(), 100);
    // Nobody has a second turn long before the last has the first.
    let first = results
        .iter()
        .rposition(|request| request.ends_with("-0"))
        .unwrap();
    let early = results[..first]
        .iter()
        .filter(|request| request.ends_with("-1"))
        .count();
    assert!(
        early <= 60,
        "{early} were served twice before all were served once"
    );
    app.end();
}
