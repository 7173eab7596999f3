//! Sessions over HTTP, and who is let in.

mod blobs;
mod encryption;
mod exchange;
mod load;
mod security;
mod workers;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use caliban_testkit::{Reply, Script};
use serde_json::{Value, json};

use crate::bench;
use crate::support::{Bench, Wire, bare, run};
use exchange::{Answer, Exchange};

/// A server at a socket and at an address.
pub(super) struct Http {
    child: Child,
    pub(super) socket: PathBuf,
    pub(super) port: u16,
    pub(super) token: String,
    pub(super) file: PathBuf,
    /// What is ended with it.
    swept: Option<Swept>,
}

/// Ends what servers of a home have begun that outlives them: workers, and their daemon.
pub(super) struct Swept {
    home: PathBuf,
    workspace: PathBuf,
    /// Where sockets are, where that is said.
    runtime: Option<PathBuf>,
}

impl Swept {
    pub(super) fn of(bench: &Bench) -> Self {
        Self {
            home: bench.home.path().to_owned(),
            workspace: bench.workspace.path().to_owned(),
            runtime: None,
        }
    }

    pub(super) fn at(bench: &Bench, runtime: &Path) -> Self {
        let mut swept = Self::of(bench);
        swept.runtime = Some(runtime.to_owned());
        swept
    }

    fn run(&self, args: &[&str]) -> String {
        self.run_in(&self.workspace, args)
    }

    fn run_in(&self, directory: &Path, args: &[&str]) -> String {
        let mut command = bare(&self.home, directory);
        if let Some(runtime) = &self.runtime {
            command.env("CALIBAN_DAEMON_RUNTIME_DIR", runtime);
        }
        run(command.args(args)).stdout
    }

    /// The agents of the workspace.
    pub(super) fn agents(&self) -> Vec<Value> {
        let text = self.run(&["agents", "list", "--json"]);
        serde_json::from_str(&text).unwrap_or_default()
    }
}

impl Drop for Swept {
    fn drop(&mut self) {
        if !self.home.join(".local/share/caliban/agents").exists() {
            return;
        }
        for agent in self.agents() {
            self.run(&["rm", agent["id"].as_str().unwrap_or_default(), "--force"]);
        }
        self.run(&["daemon", "stop"]);
        // A directory that is no repository has a daemon of its own.
        let inside = self.workspace.join("inside");
        if inside.exists() {
            self.run_in(&inside, &["daemon", "stop"]);
        }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Http {
    pub(super) fn start(bench: &Bench, flags: &[&str]) -> Self {
        Self::start_as(bench, flags, "http")
    }

    /// The same where addresses begin in another way.
    pub(super) fn start_as(bench: &Bench, flags: &[&str], scheme: &str) -> Self {
        Self::launch(bench, bench.command(), flags, scheme)
    }

    fn launch(bench: &Bench, mut command: Command, flags: &[&str], scheme: &str) -> Self {
        let socket = bench.home.path().join("run/http.sock");
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--listen"])
            .arg(format!("unix:{}", socket.display()))
            .args(flags)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = output.next().unwrap().unwrap();
        assert!(first.starts_with("listening at unix:"), "{first}");
        let second = output.next().unwrap().unwrap();
        let (url, file) = second.split_once("; the token is in ").unwrap();
        let port = url.rsplit_once(':').unwrap().1.parse().unwrap();
        let file = PathBuf::from(file);
        let known: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(known["url"], format!("{scheme}://127.0.0.1:{port}"));
        assert_eq!(known["pid"], child.id());
        // What comes later fills no pipe.
        std::thread::spawn(move || output.for_each(drop));
        Self {
            child,
            socket,
            port,
            token: known["token"].as_str().unwrap().to_owned(),
            file,
            swept: Some(Swept::of(bench)),
        }
    }

    /// A request over the socket.
    pub(super) fn local(&self, method: &str, path: &str) -> Exchange {
        Exchange::new(UnixStream::connect(&self.socket).unwrap(), method, path)
            .header("host", "localhost")
    }

    pub(super) fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.local(method, path).json(body).answer()
    }

    /// Ends it at once. What it began goes on until the guard is dropped.
    pub(super) fn kill(mut self) -> Swept {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.swept.take().unwrap()
    }

    /// Ends it as `stop` does; returns what it said.
    pub(super) fn leave(mut self) -> (Swept, String) {
        let mut errors = self.child.stderr.take().unwrap();
        let swept = self.swept.take().unwrap();
        self.stop();
        let mut said = String::new();
        errors.read_to_string(&mut said).unwrap();
        (swept, said)
    }

    pub(super) fn stop(mut self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        assert!(!self.socket.exists() && !self.file.exists());
    }
}

#[test]
fn a_session_over_http() {
    let bench = bench([Reply::text("Hello there."), Reply::text("Again.")]);
    let http = Http::start(&bench, &[]);
    let opened = http.call("POST", "/v1/sessions", &json!({"tab": "a"}));
    assert_eq!(opened.status, 201, "{}", opened.text);
    assert_eq!(opened.header("location"), Some("/v1/sessions/a"));
    assert_eq!(opened.json()["init"]["subtype"], "init");
    let joined = http.call("POST", "/v1/sessions", &json!({"tab": "a"}));
    assert_eq!(
        (joined.status, &joined.json()["existing"]),
        (200, &json!(true))
    );
    let list = http.call("POST", "/v1/sessions", &json!([]));
    assert_eq!(
        (list.status, &list.json()["code"]),
        (400, &json!("bad_request"))
    );
    assert_eq!(bench.server.requests().len(), 0);

    let prompt = json!({"request_id": "r", "content": "hi"});
    let sent = http.call("POST", "/v1/sessions/a/prompts?wait=true", &prompt);
    assert_eq!(sent.status, 200, "{}", sent.text);
    assert_eq!(sent.json()["result"]["result"], "Hello there.");
    let again = http.call("POST", "/v1/sessions/a/prompts", &prompt);
    assert_eq!(
        (again.status, &again.json()["duplicate"]),
        (200, &json!(true))
    );
    for name in ["id", "request_id", "request"] {
        assert_eq!(again.json()[name], "r", "{again:?}");
    }
    let other = json!({"request_id": "r", "content": "ho"});
    let other = http.call("POST", "/v1/sessions/a/prompts", &other);
    assert_eq!(
        (other.status, &other.json()["code"]),
        (409, &json!("conflict"))
    );
    assert_eq!(
        other.header("content-type"),
        Some("application/problem+json")
    );
    let standing = http.local("GET", "/v1/sessions/a/prompts/r").answer();
    assert_eq!(standing.json()["state"], "ended");
    assert_eq!(
        http.local("GET", "/v1/sessions/a/prompts/x")
            .answer()
            .status,
        404
    );

    let messages = http.local("GET", "/v1/sessions/a/messages").answer().json();
    assert_eq!(messages["messages"].as_array().unwrap().len(), 2);
    assert_eq!(messages["next"], json!(null));
    let page = |query: &str| {
        let path = format!("/v1/sessions/a/messages?{query}");
        http.local("GET", &path).answer().json()
    };
    let first = page("limit=1");
    assert_eq!(first["messages"], json!([messages["messages"][0]]));
    let second = page(&format!("limit=1&after={}", first["next"]));
    assert_eq!(second["messages"], json!([messages["messages"][1]]));
    assert_eq!(page("after=9")["messages"], json!([]));
    let changed = http.call("PATCH", "/v1/sessions/a", &json!({"mode": "plan"}));
    assert_eq!(changed.json()["mode"], "plan");
    let refused = http.call(
        "PATCH",
        "/v1/sessions/a",
        &json!({"mode": "bypassPermissions"}),
    );
    assert_eq!(refused.status, 403);
    let named = http.call("PATCH", "/v1/sessions/a", &json!({"name": "A good one"}));
    assert_eq!(named.status, 200, "{}", named.text);
    let saved = http.local("GET", "/v1/saved").answer().json();
    assert_eq!(
        (
            &saved["sessions"][0]["name"],
            &saved["sessions"][0]["title"]
        ),
        (&json!("A-good-one"), &json!("A good one"))
    );
    for name in ["", "two\nlines"] {
        let refused = http.call("PATCH", "/v1/sessions/a", &json!({"name": name}));
        assert_eq!(refused.status, 400, "{}", refused.text);
    }
    let session = opened.json()["session"].as_str().unwrap().to_owned();
    let by_session = format!("/v1/sessions/{session}");
    let view = http.local("GET", &by_session).answer().json();
    assert_eq!(view["tab"], "a");
    let listed = http.local("GET", "/v1/sessions").answer().json();
    assert_eq!(listed["sessions"][0]["last"], "completed");
    assert_eq!(
        http.local("DELETE", "/v1/sessions/a?purge=true")
            .answer()
            .status,
        200
    );
    assert_eq!(http.local("GET", "/v1/sessions/a").answer().status, 404);
    http.stop();
}

#[test]
fn events_come_with_numbers_and_go_on_from_any_of_them() {
    let bench = bench([Reply::text("one"), Reply::text("two")]);
    let http = Http::start(&bench, &[]);
    http.call("POST", "/v1/sessions", &json!({"tab": "a"}));
    let mut stream = http.local("GET", "/v1/sessions/a/events").stream();
    let (first, snapshot) = stream.event();
    assert_eq!(snapshot["event"]["type"], "snapshot");
    http.call(
        "POST",
        "/v1/sessions/a/prompts",
        &json!({"request_id": "r", "content": "hi"}),
    );
    let last = loop {
        let (id, line) = stream.event();
        if line["event"]["type"] == "result" {
            break id;
        }
    };
    drop(stream);
    // From the first on, everything comes again; from the last on, only what is new.
    let again = http
        .local("GET", "/v1/sessions/a/events")
        .header("last-event-id", &first);
    let mut again = again.stream();
    while again.event().0 != last {}
    http.call(
        "POST",
        "/v1/sessions/a/prompts",
        &json!({"request_id": "s", "content": "hi"}),
    );
    let after = http
        .local("GET", "/v1/sessions/a/events")
        .header("last-event-id", &last);
    let mut after = after.stream();
    let (id, _) = after.event();
    let number = |id: &str| id.rsplit_once('-').unwrap().1.parse::<u64>().unwrap();
    assert_eq!(number(&id), number(&last) + 1);
    // Numbers of another server mean nothing: everything there is comes first.
    let foreign = http
        .local("GET", "/v1/sessions/a/events")
        .header("last-event-id", "x-7");
    assert_eq!(foreign.stream().event().1["event"]["type"], "snapshot");
    http.stop();
}

#[test]
fn questions_are_resources() {
    let bench = bench([
        Reply::tool("Bash", json!({"command": "touch made"})),
        Reply::text("done"),
    ]);
    let http = Http::start(&bench, &[]);
    http.call("POST", "/v1/sessions", &json!({"tab": "a"}));
    http.call(
        "POST",
        "/v1/sessions/a/prompts",
        &json!({"request_id": "r", "content": "go"}),
    );
    let question = loop {
        let open = http
            .local("GET", "/v1/sessions/a/questions")
            .answer()
            .json();
        if let Some(question) = open["questions"][0]["question"].as_str() {
            break question.to_owned();
        }
        std::thread::yield_now();
    };
    let path = format!("/v1/sessions/a/questions/{question}");
    assert_eq!(
        http.call("POST", &path, &json!({"option": "allow"})).status,
        200
    );
    let late = http.call("POST", &path, &json!({"option": "deny"}));
    assert_eq!(
        (late.status, &late.json()["code"]),
        (409, &json!("already_answered"))
    );
    assert_eq!(late.json()["how"], "allow");
    let ended = http
        .local("GET", "/v1/sessions/a/prompts/r?wait=true")
        .answer();
    assert_eq!(ended.json()["result"]["result"], "done");
    assert!(bench.workspace.path().join("made").exists());
    // What was answered is written down as somebody's decision.
    let audit = run(bench.command().args(["perms", "audit", "--tool", "Bash"]));
    let decided: Vec<Value> = audit
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let last = decided.last().unwrap_or(&Value::Null);
    assert_eq!(
        (&last["decided_by"], &last["action"]),
        (&json!("operator"), &json!("allow")),
        "{audit:?}"
    );
    http.stop();
}

#[test]
fn a_full_queue_asks_for_patience_and_an_interrupt_clears_it() {
    let bench = bench([Reply::text("never").hold_after(0)]);
    let http = Http::start(&bench, &["--max-queue", "1"]);
    http.call("POST", "/v1/sessions", &json!({"tab": "a"}));
    let send = |request: &str| {
        let prompt = json!({"request_id": request, "content": request});
        http.call("POST", "/v1/sessions/a/prompts", &prompt)
    };
    assert_eq!(send("a").status, 202);
    assert_eq!(send("b").status, 202);
    let full = send("c");
    assert_eq!((full.status, full.header("retry-after")), (429, Some("1")));
    assert_eq!(full.json()["code"], "queue_full");
    http.call(
        "POST",
        "/v1/sessions/a/interrupt",
        &json!({"queue": "clear"}),
    );
    for request in ["a", "b"] {
        let path = format!("/v1/sessions/a/prompts/{request}?wait=true");
        let ended = http.local("GET", &path).answer().json();
        assert_eq!(ended["result"]["subtype"], "cancelled");
    }
    http.stop();
}

#[test]
fn the_lines_go_over_a_websocket() {
    let bench = bench([Reply::text("Hello.")]);
    let http = Http::start(&bench, &[]);
    http.call("POST", "/v1/sessions", &json!({"tab": "a"}));
    let mut socket = http.local("GET", "/v1/sessions/a/ws?after=0").websocket();
    let answer = socket.read();
    assert_eq!(
        (&answer["re"], &answer["ok"]["next"]),
        (&json!("ws"), &json!(1))
    );
    socket.write(&json!({"op": "send", "id": "r", "tab": "a", "content": "hi"}));
    loop {
        let line = socket.read();
        if line["event"]["type"] == "result" {
            assert_eq!(
                (&line["request"], &line["event"]["result"]),
                (&json!("r"), &json!("Hello."))
            );
            break;
        }
    }
    socket.write(&json!({"op": "shutdown", "id": "x"}));
    loop {
        let line = socket.read();
        if line["re"] == "x" {
            assert_eq!(line["error"]["code"], "refused");
            break;
        }
    }
    http.stop();
}

#[test]
fn every_resource_is_described() {
    let bench = Bench::new(Wire::Anthropic, Script::new([]));
    let http = Http::start(&bench, &[]);
    let document = http.local("GET", "/v1/openapi.json").answer().json();
    assert_eq!(document, caliban_serve_http::openapi());
    assert_eq!(document["openapi"], "3.1.0");
    let mut names = std::collections::HashSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            if method == "parameters" {
                continue;
            }
            let name = operations[method]["operationId"].as_str().unwrap();
            assert!(names.insert(name), "{name} names two things");
            let path = path.replace("{id}", "x").replace(['{', '}'], "");
            let answer = http
                .local(&method.to_uppercase(), &path)
                .header("content-type", "application/json");
            if path == "/v1/events" {
                continue;
            }
            let answer = answer.body(b"{}").answer();
            let code = answer.json_or_null()["code"].clone();
            assert_ne!(code, "no_such_path", "{method} {path}");
            assert_ne!(answer.status, 405, "{method} {path}");
        }
    }
    http.stop();
}
