//! Which tools the model is offered, which it has to search for, and who waits for whom.

use std::time::Duration;

use crate::support::{FIXTURE, Place, find, names, scripted, settings, status, tool, tools, until};
use caliban_agent::{Registry, ToolSource, ToolStatus, Toolbox};
use caliban_mcp::{Laziness, Link, Servers, Status};
use caliban_model::CancellationToken;
use serde_json::{Value, json};
use tokio::sync::mpsc;

async fn lazy(place: &Place, lazy: Option<bool>, most: usize, script: &Value) -> Servers {
    let mut parts = place.parts();
    parts.laziness = Laziness {
        lazy,
        max_active: most,
        ..Laziness::default()
    };
    let servers = Servers::start([scripted("srv", script)], parts);
    servers.settle(Duration::from_secs(30)).await;
    servers
}

async fn search(place: &Place, servers: &Servers, query: &str) -> String {
    let output = place
        .run(servers, "ToolSearch", json!({"query": query}))
        .await;
    assert_eq!(output.status, ToolStatus::Ok);
    output.text()
}

#[tokio::test]
async fn lazy_tools_are_found_shown_and_offered_from_then_on() {
    let place = Place::new();
    let script = json!({"tools": [
        {"name": "create_issue", "description": "Makes a ticket.", "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}}}},
        tool("list_issues", "Lists tickets."),
        tool("weather", "Tells the weather."),
    ]});
    let servers = lazy(&place, Some(true), 24, &script).await;
    assert_eq!(names(&servers), ["ToolSearch"]);
    assert!(servers.notice().unwrap().starts_with("3 more tools"));
    let before = servers.generation();
    let text = search(&place, &servers, "create an issue").await;
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["name"], "mcp__srv__create_issue");
    assert_eq!(
        first["input_schema"]["properties"]["title"]["type"],
        "string"
    );
    assert!(!text.contains("weather"), "{text}");
    assert!(servers.generation() > before);
    assert_eq!(
        names(&servers),
        [
            "ToolSearch",
            "mcp__srv__create_issue",
            "mcp__srv__list_issues"
        ]
    );
    assert!(servers.notice().unwrap().starts_with("1 more tools"));
    // A name that is known works without a search, and the tool is offered afterwards.
    let output = place.run(&servers, "mcp__srv__weather", json!({})).await;
    assert_eq!(output.text(), "called weather");
    assert_eq!(names(&servers).len(), 3, "{:?}", names(&servers));
    assert_eq!(servers.notice(), None);
    assert_eq!(servers.active().0.len(), 3);
}

#[tokio::test]
async fn names_are_selected_and_the_longest_unused_make_room() {
    let place = Place::new();
    let script = json!({"tools": tools(&["a", "b", "c"])});
    let servers = lazy(&place, Some(true), 2, &script).await;
    let text = search(&place, &servers, "select:mcp__srv__a,b,nothing").await;
    assert!(text.contains("Not found: nothing."), "{text}");
    assert_eq!(
        names(&servers),
        ["ToolSearch", "mcp__srv__a", "mcp__srv__b"]
    );
    place.run(&servers, "mcp__srv__a", json!({})).await;
    let text = search(&place, &servers, "select:c").await;
    assert!(
        text.contains("No longer listed, to make room: mcp__srv__b."),
        "{text}"
    );
    assert_eq!(
        names(&servers),
        ["ToolSearch", "mcp__srv__a", "mcp__srv__c"]
    );
    assert_eq!(search(&place, &servers, "zzz").await, "No tool matches.");
}

#[tokio::test]
async fn many_definitions_become_lazy_by_themselves_and_few_do_not() {
    let place = Place::new();
    let few = json!({"tools": tools(&["a", "b"])});
    assert_eq!(names(&lazy(&place, None, 24, &few).await).len(), 2);
    let long = "Words. ".repeat(250);
    let many: Vec<Value> = (0..40)
        .map(|number| tool(&format!("t{number}"), &long))
        .collect();
    let many = json!({"tools": many});
    let servers = lazy(&place, None, 24, &many).await;
    assert_eq!(names(&servers), ["ToolSearch"]);
    // What is really sent counts: the list as the model gets it stays small.
    let sent: usize = servers
        .tools()
        .iter()
        .map(|tool| tool.spec().description.len() + tool.spec().input_schema.to_string().len())
        .sum();
    assert!(sent < 2000, "{sent}");
    assert_eq!(names(&lazy(&place, Some(false), 24, &many).await).len(), 40);
    let config = json!({"command": FIXTURE, "args": ["server", many.to_string()], "lazy": false});
    let servers = Servers::start([("srv".to_owned(), settings(config))], place.parts());
    servers.settle(Duration::from_secs(30)).await;
    assert_eq!(
        names(&servers).len(),
        40,
        "a server can always be offered whole"
    );
}

#[tokio::test]
async fn a_search_waits_for_servers_only_when_it_must() {
    let place = Place::new();
    let gate = place.path("gate");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&gate)
            .status()
            .unwrap()
            .success()
    );
    let late = json!({"tools": tools(&["late_tool"]), "gate": gate});
    let early = json!({"tools": tools(&["early_tool"])});
    let servers = Servers::start(
        [scripted("late", &late), scripted("early", &early)],
        place.parts(),
    );
    until(&servers, |servers| {
        matches!(servers.status()[0].status, Status::Connected { .. })
    })
    .await;
    let text = search(&place, &servers, "early").await;
    assert!(text.contains("mcp__early__early_tool"), "{text}");
    assert!(
        text.contains("The MCP server late is still connecting."),
        "{text}"
    );
    let opening = tokio::task::spawn_blocking(move || {
        std::fs::OpenOptions::new().write(true).open(gate).unwrap()
    });
    let (text, gate) = tokio::join!(search(&place, &servers, "select:late_tool"), opening);
    assert!(text.contains("mcp__late__late_tool"), "{text}");
    drop(gate);
}

#[tokio::test]
async fn a_fleet_with_hanging_servers_delays_nobody() {
    let place = Place::new();
    let configs = (0..20).map(|number| {
        let script = if number % 4 == 0 {
            json!({"hang": true})
        } else {
            json!({"tools": tools(&["hello"])})
        };
        scripted(&format!("s{number:02}"), &script)
    });
    let servers = Servers::start(configs, place.parts());
    // Nothing has been polled yet, so nothing was started on this path.
    assert!(
        servers
            .status()
            .iter()
            .all(|server| server.status == Status::Connecting)
    );
    assert_eq!(names(&servers), ["ToolSearch"]);
    assert_eq!(servers.startup_patience(), Duration::ZERO);
    until(&servers, |servers| {
        let connected =
            |server: &&caliban_mcp::ServerStatus| matches!(server.status, Status::Connected { .. });
        servers.status().iter().filter(connected).count() == 15
    })
    .await;
    assert_eq!(names(&servers).len(), 16);
    let output = place.run(&servers, "mcp__s01__hello", json!({})).await;
    assert_eq!(output.text(), "called hello");
    let notice = servers.notice().unwrap();
    assert!(
        notice.contains("still connecting: s00, s04, s08, s12, s16."),
        "{notice}"
    );
    servers.shutdown(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn a_handful_is_waited_for_within_a_bound() {
    let place = Place::new();
    let four =
        (0..4).map(|number| scripted(&format!("s{number}"), &json!({"tools": tools(&["hello"])})));
    let servers = Servers::start(four, place.parts());
    assert_eq!(servers.startup_patience(), Duration::from_secs(1));
    let hanging = Servers::start([scripted("srv", &json!({"hang": true}))], place.parts());
    hanging.settle(Duration::from_millis(20)).await;
    assert_eq!(status(&hanging), Status::Connecting);
}

#[tokio::test]
async fn the_toolbox_prefers_its_own_tools() {
    let place = Place::new();
    let servers = place.start(json!({"tools": tools(&["hello"])})).await;
    let own = find(&servers, "mcp__srv__hello").await;
    let toolbox = Toolbox::new(
        Registry::new([own]),
        Some(std::sync::Arc::new(servers.clone())),
    );
    assert_eq!(
        toolbox.current().names().collect::<Vec<_>>(),
        ["mcp__srv__hello"]
    );
}

#[tokio::test]
async fn servers_that_look_alike_do_not_share_tools() {
    let place = Place::new();
    let script = json!({"tools": tools(&["hello"])});
    let configs = ["a.b", "a_b", "a__b"].map(|name| scripted(name, &script));
    let servers = Servers::start(configs, place.parts());
    servers.settle(Duration::from_secs(30)).await;
    let names = names(&servers);
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.contains(&"mcp__a_b__hello".to_owned()));
}

#[tokio::test]
async fn a_server_in_the_same_program_is_a_server_like_others() {
    let place = Place::new();
    let (outgoing, mut requests) = mpsc::channel::<Value>(8);
    let (answers, incoming) = mpsc::channel(8);
    let server = tokio::spawn(async move {
        while let Some(message) = requests.recv().await {
            let result = match message["method"].as_str().unwrap_or_default() {
                "initialize" => json!({
                    "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "inside", "version": "1"},
                }),
                "tools/list" => json!({"tools": [tool("inner", "Inside.")]}),
                "tools/call" => {
                    json!({"content": [{"type": "text", "text": message["params"]["arguments"].to_string()}]})
                }
                _ => continue,
            };
            answers.send(json!({"nonsense": true})).await.unwrap();
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            answers.send(answer).await.unwrap();
            if message["method"] == "tools/call" {
                return;
            }
        }
    });
    let link = Link { outgoing, incoming };
    let servers = Servers::start([("embedded".to_owned(), link.into())], place.parts());
    servers.settle(Duration::from_secs(30)).await;
    let cancel = CancellationToken::new();
    let output = servers
        .call("embedded", "inner", json!({"a": 1}), &cancel)
        .await;
    assert_eq!(output.text(), r#"{"a":1}"#);
    server.await.unwrap();
    until(&servers, |servers| {
        matches!(status(servers), Status::Failed { .. })
    })
    .await;
}
