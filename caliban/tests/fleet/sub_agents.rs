//! Agents that a session sends into the background.

use caliban_testkit::{Match, Reply};
use serde_json::json;

use crate::fleet::Fleet;

/// What is said to whoever was asked this.
fn to(asked: &str, mut reply: Reply) -> Reply {
    reply.when = Some(Match {
        last_user: Some(asked.to_owned()),
        ..Match::default()
    });
    reply
}

#[test]
fn a_session_sends_an_agent_away_and_goes_on() {
    let input = json!({
        "prompt": "count the stars",
        "description": "stars",
        "background": true,
        "tool_allowlist": ["Read", "Grep"],
    });
    let fleet = Fleet::new([
        to("parent", Reply::tool("AgentTool", input)),
        to("parent", Reply::text("sent")),
        to("count the stars", Reply::text("many")),
    ]);
    let said = fleet.ok(&[
        "-p",
        "parent",
        "--permission-mode",
        "plan",
        "--allow",
        "AgentTool",
        "--output-format",
        "stream-json",
    ]);
    let result = said
        .lines()
        .find(|line| line.contains("\"tool_result\""))
        .unwrap();
    assert!(result.contains("works on it in the background"), "{result}");
    let agents = fleet.list();
    assert_eq!(agents.len(), 1, "{agents:?}");
    let id = agents[0]["id"].as_str().unwrap();
    assert!(result.contains(&format!("caliban attach {id}")), "{result}");
    assert_eq!(agents[0]["label"], "stars");
    fleet.until_state(id, "idle");
    assert!(fleet.ok(&["logs", id]).contains("many"));
    // No more rights than its parent, and no agents of its own.
    let options = &fleet.file(id, "spec.json")["options"];
    assert_eq!(options["permissions"]["mode"], "plan");
    assert_eq!(options["tools"]["sub_agents"], "off");
    assert_eq!(options["limits"]["max_turns"], 20);
    let requests = fleet.bench.server.model_requests();
    let request = requests
        .iter()
        .map(caliban_testkit::Recorded::json)
        .find(|it| it.to_string().contains("count the stars") && !it.to_string().contains("parent"))
        .unwrap();
    let tools: Vec<&str> = request["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(tools, ["Grep", "Read"]);
}

#[test]
fn a_session_knows_of_agents() {
    let fleet = Fleet::new([Reply::text("ok")]);
    let id = fleet.spawn("x");
    fleet.until_state(&id, "idle");
    let status = fleet.ok(&["-p", "/status"]);
    assert!(
        status.contains("1 agents, 1 alive, daemon running"),
        "{status}"
    );
}
