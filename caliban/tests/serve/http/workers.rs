//! Sessions are processes of their own: a server that is killed or ended takes none of them along,
//! and the next one goes on with them.

use std::process::Stdio;
use std::time::{Duration, Instant};

use caliban_testkit::{After, Match, Presence, Reply, Script};
use serde_json::{Value, json};

use super::{Http, Swept};
use crate::bench;
use crate::support::{Bench, Wire};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

impl Http {
    /// Opens a tab; returns the id of its session.
    fn open(&self, body: &Value) -> String {
        let opened = self.call("POST", "/v1/sessions", body);
        assert_eq!(opened.status, 201, "{}", opened.text);
        opened.json()["session"].as_str().unwrap().to_owned()
    }

    fn resume(&self, session: &str) {
        self.open(&json!({"tab": "a", "resume": session}));
    }

    fn send(&self, request: &str) -> Value {
        let content = format!("do {request}");
        let prompt = json!({"request_id": request, "content": content});
        let sent = self.call("POST", "/v1/sessions/a/prompts", &prompt);
        assert!(sent.status < 300, "{}", sent.text);
        sent.json()
    }

    fn result(&self, request: &str) -> Value {
        let path = format!("/v1/sessions/a/prompts/{request}?wait=true");
        self.local("GET", &path).answer().json()["result"].clone()
    }

    /// The question that is open, once there is one.
    fn question(&self) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let open = self.local("GET", "/v1/sessions/a/questions").answer();
            if let Some(question) = open.json()["questions"].get(0) {
                return question.clone();
            }
            assert!(Instant::now() < deadline, "{}", open.text);
        }
    }
}

impl Swept {
    /// Waits until the agents are as wanted.
    fn until(&self, is_wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let agents = self.agents();
            if is_wanted(&agents) {
                return agents;
            }
            assert!(Instant::now() < deadline, "{agents:?}");
        }
    }
}

fn is_alive(pid: &Value) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with('Z'))
}

/// How often each prompt reached the model: what was typed last, in each call.
fn calls(bench: &Bench, request: &str) -> usize {
    let wanted = format!("do {request}");
    let bodies = bench.server.model_requests().into_iter();
    let typed = bodies.map(|call| {
        let body = call.json();
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let blocks = messages.last().map(|last| last["content"].clone());
        let blocks = blocks.unwrap_or_default();
        let texts = blocks.as_array().cloned().unwrap_or_default();
        let mut texts = texts.iter().filter_map(|block| block["text"].as_str());
        texts
            .rfind(|text| text.starts_with("do "))
            .map(str::to_owned)
    });
    typed.flatten().filter(|typed| *typed == wanted).count()
}

fn held() -> Bench {
    bench([
        Reply::text("finished after all")
            .hold_after(0)
            .when(Match::last_user("do long")),
        Reply::text("later").when(Match::last_user("do waits")),
        Reply::text("typed").when(Match::last_user("by hand")),
    ])
}

#[test]
fn a_killed_server_takes_no_turn_along() {
    let bench = held();
    let http = Http::start(&bench, &[]);
    let session = http.open(&json!({"tab": "a"}));
    http.send("long");
    http.send("waits");
    bench.server.wait_for_requests(1);
    let _swept = http.kill();

    let http = Http::start(&bench, &[]);
    http.resume(&session);
    let view = http.local("GET", "/v1/sessions/a").answer().json();
    assert_eq!(
        (&view["running"], &view["queue"]),
        (&json!("long"), &json!(["waits"])),
        "{view}"
    );
    let mut stream = http.local("GET", "/v1/sessions/a/events?after=0").stream();
    bench.server.release();
    assert_eq!(http.result("long")["result"], "finished after all");
    assert_eq!(http.result("waits")["result"], "later");
    for request in ["long", "waits"] {
        let again = http.send(request);
        assert_eq!(
            (&again["state"], &again["duplicate"]),
            (&json!("ended"), &json!(true))
        );
        assert_eq!(calls(&bench, request), 1, "{request}");
    }
    // The stream goes on, and each request has one result in it.
    let mut results = Vec::new();
    while results.last().map(String::as_str) != Some("waits") {
        let (_, line) = stream.event();
        if line["event"]["type"] == "result" {
            results.push(line["request"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(results, ["long", "waits"]);
    http.stop();
}

#[test]
fn what_ends_while_no_server_is_there_has_its_result() {
    let bench = held();
    let http = Http::start(&bench, &[]);
    let session = http.open(&json!({"tab": "a"}));
    http.send("long");
    bench.server.wait_for_requests(1);
    let swept = http.kill();
    swept.until(|agents| agents[0]["state"] == "running");
    bench.server.release();
    swept.until(|agents| agents[0]["state"] == "idle");

    let http = Http::start(&bench, &[]);
    http.resume(&session);
    assert_eq!(http.result("long")["result"], "finished after all");
    assert_eq!(bench.server.model_requests().len(), 1);
    let said = http.local("GET", "/v1/sessions/a/messages").answer().json();
    assert_eq!(said["messages"].as_array().unwrap().len(), 2, "{said}");
    http.stop();
}

#[test]
fn a_question_is_open_again_for_the_next_server() {
    let bench = bench([
        Reply::tool("Bash", json!({"command": "echo once >> made"})),
        Reply::text("done"),
    ]);
    let http = Http::start(&bench, &[]);
    let session = http.open(&json!({"tab": "a"}));
    http.send("ask");
    let before = http.question();
    let _swept = http.kill();

    let http = Http::start(&bench, &[]);
    http.resume(&session);
    let after = http.question();
    assert_eq!(before["question"], after["question"]);
    assert_eq!(before["deadline"], after["deadline"]);
    let path = format!(
        "/v1/sessions/a/questions/{}",
        after["question"].as_str().unwrap()
    );
    assert_eq!(
        http.call("POST", &path, &json!({"option": "allow"})).status,
        200
    );
    assert_eq!(http.result("ask")["result"], "done");
    let made = std::fs::read_to_string(bench.workspace.path().join("made")).unwrap();
    assert_eq!(made, "once\n");
    assert_eq!(bench.server.model_requests().len(), 2);
    http.stop();
}

#[test]
fn a_server_that_ends_leaves_those_that_work() {
    let bench = held();
    let http = Http::start(&bench, &[]);
    let session = http.open(&json!({"tab": "a"}));
    let idle = http.open(&json!({"tab": "idle"}));
    http.send("long");
    bench.server.wait_for_requests(1);
    let (swept, said) = http.leave();
    assert!(said.contains(&session) && !said.contains(&idle), "{said}");
    let left = swept.until(|agents| agents.len() == 1);
    assert_eq!(left[0]["session_id"], session.as_str());
    bench.server.release();
    swept.until(|agents| agents[0]["state"] == "idle");

    let http = Http::start(&bench, &[]);
    http.resume(&session);
    assert_eq!(http.result("long")["result"], "finished after all");
    assert_eq!(bench.server.model_requests().len(), 1);
    http.stop();
    assert!(swept.agents().is_empty());
}

#[test]
fn an_attached_terminal_and_an_application_share_a_session() {
    let bench = held();
    let http = Http::start(&bench, &[]);
    let session = http.open(&json!({"tab": "a", "name": "shared-work"}));
    let swept = Swept::of(&bench);
    let agents = swept.agents();
    assert_eq!(
        (&agents[0]["label"], &agents[0]["session_id"]),
        (&json!("shared-work"), &json!(session))
    );
    let mut terminal = bench
        .command()
        .args(["attach", agents[0]["id"].as_str().unwrap()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stream = http.local("GET", "/v1/sessions/a/events").stream();
    stream.event();
    let mut input = terminal.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"by hand\n").unwrap();
    // What is typed there is heard here, and is no request of ours.
    let typed = loop {
        let (_, line) = stream.event();
        if line["event"]["type"] == "result" {
            break line;
        }
    };
    assert_eq!(typed["event"]["result"], "typed");
    let foreign = typed["request"].as_str().unwrap().to_owned();
    let standing = http.local("GET", &format!("/v1/sessions/a/prompts/{foreign}"));
    assert_eq!(standing.answer().status, 404);
    // What is asked for here is heard there.
    http.send("waits");
    assert_eq!(http.result("waits")["result"], "later");
    let logs = swept.run(&["logs", agents[0]["id"].as_str().unwrap()]);
    assert!(logs.contains("typed") && logs.contains("later"), "{logs}");
    drop(input);
    let output = terminal.wait_with_output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.contains("typed") && shown.contains("later"),
        "{shown}"
    );
    let view = http.local("GET", "/v1/sessions/a").answer().json();
    assert_eq!(
        (&view["state"], &view["prompts"]),
        (&json!("idle"), &json!(1))
    );
    http.stop();
}

#[test]
fn a_deleted_session_leaves_no_process() {
    let bench = held();
    let http = Http::start(&bench, &[]);
    http.open(&json!({"tab": "a"}));
    http.send("long");
    bench.server.wait_for_requests(1);
    let swept = Swept::of(&bench);
    let pid = swept.agents()[0]["pid"].clone();
    assert!(is_alive(&pid));
    assert_eq!(http.local("DELETE", "/v1/sessions/a").answer().status, 200);
    assert!(!is_alive(&pid));
    assert!(swept.agents().is_empty());
    http.stop();
}

#[test]
fn what_another_operator_began_is_not_gone_on_with() {
    let bench = held();
    let mut command = bench.command();
    command.args(["--max-turns", "7"]);
    let http = Http::launch(&bench, command, &[], "http");
    let session = http.open(&json!({"tab": "a"}));
    http.send("waits");
    http.result("waits");
    http.send("long");
    bench.server.wait_for_requests(2);
    let swept = http.kill();

    let mut command = bench.command();
    command.args(["--max-turns", "7"]);
    let http = Http::launch(&bench, command, &[], "http");
    let busy = |http: &Http, open: &Value| {
        let busy = http.call("POST", "/v1/sessions", open);
        assert_eq!((busy.status, &busy.json()["code"]), (409, &json!("busy")));
    };
    // Neither an application that wants it otherwise, nor a server of another operator.
    busy(&http, &json!({"resume": session, "deny": ["Read"]}));
    let _swept = http.kill();
    let http = Http::start(&bench, &[]);
    busy(&http, &json!({"resume": session}));
    bench.server.release();
    let before = swept.until(|agents| agents[0]["state"] == "idle");
    // One that does nothing is ended, and begins again as this operator says.
    http.resume(&session);
    let after = swept.agents();
    assert_eq!(after.len(), 1, "{after:?}");
    assert_ne!(before[0]["pid"], after[0]["pid"]);
    // What the earlier process had come to is not lost with it.
    assert_eq!(http.result("long")["result"], "finished after all");
    assert_eq!(calls(&bench, "long"), 1);
    http.stop();
}

#[test]
fn sessions_stay_in_the_server_where_that_is_wanted() {
    let bench = bench([Reply::text("here")]);
    let http = Http::start(&bench, &["--in-process"]);
    http.open(&json!({"tab": "a"}));
    http.send("x");
    assert_eq!(http.result("x")["result"], "here");
    assert!(
        !bench
            .home
            .path()
            .join(".local/share/caliban/agents")
            .exists()
    );
    http.stop();
}

#[test]
fn without_a_daemon_nothing_is_opened_and_the_way_out_is_named() {
    let bench = bench([]);
    let runtime = bench.home.path().join("x".repeat(120));
    let server = |flags: &[&str]| {
        let mut command = bench.command();
        command.env("CALIBAN_DAEMON_RUNTIME_DIR", &runtime);
        Http::launch(&bench, command, flags, "http")
    };
    let http = server(&[]);
    let opened = http.call("POST", "/v1/sessions", &json!({"tab": "a"}));
    assert_eq!(opened.json()["code"], "cannot_start", "{}", opened.text);
    assert!(opened.text.contains("--in-process"), "{}", opened.text);
    http.stop();
    let http = server(&["--in-process"]);
    http.open(&json!({"tab": "a"}));
    http.stop();
}

/// Kills at many places: every acknowledged request is worked on once and has its own result, however
/// often its server dies.
#[test]
fn kills_of_the_server_at_any_moment_lose_and_repeat_nothing() {
    let rounds: u32 = std::env::var("CALIBAN_TEST_KILLS").map_or(4, |text| text.parse().unwrap());
    for round in 0..rounds {
        let reply = Reply::text("ok").when(Match::tool_result(Presence::Absent));
        let script = Script::new([reply.delay_ms(20)]).after(After::RepeatLast);
        let bench = Bench::new(Wire::Anthropic, script);
        let mut http = Http::start(&bench, &[]);
        let session = http.open(&json!({"tab": "a"}));
        let requests: Vec<String> = (0..4).map(|number| format!("r{number}")).collect();
        let mut swept = Vec::new();
        for (number, request) in (0_u32..).zip(&requests) {
            http.send(request);
            if (number + round) % 2 == 0 {
                let mut stream = http.local("GET", "/v1/sessions/a/events?after=0").stream();
                for _ in 0..=round {
                    stream.event();
                }
                swept.push(http.kill());
                http = Http::start(&bench, &[]);
                http.resume(&session);
            }
        }
        for request in &requests {
            let result = http.result(request);
            assert_eq!(result["result"], "ok", "round {round}: {request} {result}");
            assert_eq!(calls(&bench, request), 1, "round {round}: {request}");
        }
        http.stop();
    }
}
