//! Each line of what keeps others out, and what happens without it.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::json;

use super::exchange::{Answer, Exchange, head};
use super::{Http, Swept};
use crate::support::{Bench, Wire, run};

fn empty() -> Bench {
    Bench::new(Wire::Anthropic, Script::new([]))
}

impl Http {
    /// A request over the network, without anything.
    fn bare(&self, method: &str, path: &str) -> Exchange {
        Exchange::new(
            TcpStream::connect(("127.0.0.1", self.port)).unwrap(),
            method,
            path,
        )
    }

    /// The same by the right name.
    fn named(&self, method: &str, path: &str) -> Exchange {
        self.bare(method, path)
            .header("host", &format!("127.0.0.1:{}", self.port))
    }

    /// The same with the token.
    fn known(&self, method: &str, path: &str) -> Exchange {
        self.named(method, path)
            .header("authorization", &format!("Bearer {}", self.token))
    }
}

fn code(answer: &Answer) -> (u16, String) {
    let code = answer.json_or_null()["code"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    (answer.status, code)
}

#[test]
fn nothing_is_reached_without_the_token() {
    let bench = empty();
    let http = Http::start(&bench, &[]);
    assert_eq!(http.known("GET", "/v1/sessions").answer().status, 200);
    let document = caliban_serve_http::openapi();
    let paths: Vec<_> = document["paths"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    for path in
        paths
            .iter()
            .map(String::as_str)
            .chain(["/nothing", "/page/main.js/x", "/page/", "/v1/"])
    {
        if path == "/v1/login" {
            continue;
        }
        let answer = http.named("GET", path).answer();
        assert_eq!(code(&answer), (401, "unauthorized".to_owned()), "{path}");
    }
    // Neither a wrong one, nor the right one in another place.
    let wrong = http
        .named("GET", "/v1/sessions")
        .header("authorization", "Bearer x")
        .answer();
    assert_eq!(
        (wrong.status, wrong.header("www-authenticate")),
        (401, Some("Bearer"))
    );
    // The word before it is one, however it is written.
    let small = http
        .named("GET", "/v1/sessions")
        .header("authorization", &format!("bearer {}", http.token))
        .answer();
    assert_eq!(small.status, 200);
    let query = format!("/v1/sessions?token={}", http.token);
    assert_eq!(http.named("GET", &query).answer().status, 401);
    let mut upgrade = http.named("GET", "/v1/sessions/a/ws").upgraded();
    assert_eq!(head(&mut upgrade).0, 401);
    // The file is for the user alone.
    let mode = std::fs::metadata(&http.file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    http.stop();
}

#[test]
fn other_names_and_other_origins_are_refused_before_any_route() {
    let bench = empty();
    let http = Http::start(
        &bench,
        &[
            "--host-name",
            "box.test",
            "--allow-origin",
            "https://ok.test",
        ],
    );
    let bearer = format!("Bearer {}", http.token);
    let with = |host: &str, extra: &[(&str, &str)]| {
        let request = http.bare("GET", "/v1/sessions").header("host", host);
        let request = request.header("authorization", &bearer);
        let request = extra
            .iter()
            .fold(request, |it, (name, value)| it.header(name, value));
        code(&request.answer())
    };
    let own = format!("localhost:{}", http.port);
    assert_eq!(with(&own, &[]).0, 200);
    assert_eq!(with(&format!("box.test:{}", http.port), &[]).0, 200);
    // A name that leads here by a trick, the right one with another port, none, two.
    for host in [
        "evil.test",
        "127.0.0.1",
        "localhost:1",
        &format!("evil.test:{}", http.port),
    ] {
        assert_eq!(with(host, &[]), (421, "misdirected".to_owned()), "{host}");
    }
    let line = http.known("GET", "http://evil.test/v1/sessions").answer();
    assert_eq!(code(&line), (421, "misdirected".to_owned()));
    let two = http
        .known("GET", "/v1/sessions")
        .header("host", "evil.test")
        .answer();
    assert!(two.status == 421 || two.status == 400, "{two:?}");
    // Pages of others, whatever they know.
    let foreign = (403, "foreign_origin".to_owned());
    for origin in [
        "https://evil.test",
        "null",
        "http://localhost",
        "http://localhost:1",
    ] {
        assert_eq!(with(&own, &[("origin", origin)]), foreign, "{origin}");
    }
    assert_eq!(with(&own, &[("sec-fetch-site", "cross-site")]), foreign);
    assert_eq!(with(&own, &[("origin", &format!("http://{own}"))]).0, 200);
    assert_eq!(with(&own, &[("origin", "https://ok.test")]).0, 200);
    // The same before a WebSocket.
    let upgrade = http
        .known("GET", "/v1/sessions/a/ws")
        .header("origin", "https://evil.test");
    assert_eq!(head(&mut upgrade.upgraded()).0, 403);
    // No answer says that others may read it.
    let answer = http
        .known("OPTIONS", "/v1/sessions")
        .header("origin", "https://ok.test")
        .answer();
    assert_eq!(answer.header("access-control-allow-origin"), None);
    http.stop();
}

#[test]
fn a_page_gets_a_cookie_that_only_itself_can_use() {
    let bench = empty();
    let http = Http::start(&bench, &[]);
    let page = http.named("GET", "/").answer();
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let size: usize = caliban_serve_http::page_paths()
        .map(|path| http.named("GET", path).answer())
        .inspect(|answer| assert_eq!(answer.status, 200))
        .map(|answer| answer.text.len())
        .sum();
    assert!(size < 200_000, "the page has {size} bytes");
    let wrong = http
        .named("POST", "/v1/login")
        .json(&json!({"token": "x"}))
        .answer();
    assert_eq!(wrong.status, 401);
    let login = http
        .named("POST", "/v1/login")
        .json(&json!({"token": http.token}))
        .answer();
    assert_eq!(login.status, 204, "{}", login.text);
    let cookie = login.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(&http.token));
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let with = |method: &str, path: &str| http.named(method, path).header("cookie", &cookie);
    assert_eq!(with("GET", "/v1/sessions").answer().status, 200);
    // What changes anything must say where it comes from.
    let change = || with("POST", "/v1/sessions").json(&json!({"tab": "a"}));
    assert_eq!(change().answer().status, 403);
    let own = format!("http://127.0.0.1:{}", http.port);
    assert_eq!(change().header("origin", &own).answer().status, 201);
    assert_eq!(
        head(&mut with("GET", "/v1/sessions/a/ws").upgraded()).0,
        403
    );
    http.stop();
}

#[rstest]
#[case::everywhere("0.0.0.0:0")]
#[case::everywhere_six("[::]:0")]
#[case::another_machine("192.168.7.7:0")]
#[case::a_name("example.com:80")]
fn other_machines_are_kept_out(#[case] address: &str) {
    let bench = empty();
    let ran = run(bench.command().args(["serve", "--listen", address]));
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(ran.stderr.contains(address), "{ran:?}");
}

#[rstest]
#[case::origin("--allow-origin", "example.com")]
#[case::name("--host-name", "https://box")]
#[case::root("--root", "/no/such/place")]
fn what_makes_no_sense_on_the_command_line_is_said(#[case] flag: &str, #[case] value: &str) {
    let bench = empty();
    let ran = run(bench.command().args(["serve", flag, value]));
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(
        ran.stderr.contains(flag) && ran.stderr.contains(value),
        "{ran:?}"
    );
}

#[test]
fn a_session_that_is_not_there_cannot_be_shown() {
    let bench = empty();
    let ran = run(bench.command().args(["serve", "web", "zzz"]));
    assert_eq!(ran.code, Some(66), "{ran:?}");
}

#[test]
fn sessions_stay_in_their_roots_and_modes() {
    let bench = empty();
    let http = Http::start(&bench, &[]);
    for cwd in ["/", "..", "/tmp/../"] {
        let opened = http.call("POST", "/v1/sessions", &json!({"cwd": cwd}));
        assert_eq!(code(&opened), (400, "bad_request".to_owned()), "{cwd}");
    }
    let inside = bench.workspace.path().join("inside");
    std::fs::create_dir(&inside).unwrap();
    let link = bench.workspace.path().join("link");
    std::os::unix::fs::symlink("/", &link).unwrap();
    assert_eq!(
        http.call("POST", "/v1/sessions", &json!({"cwd": link}))
            .status,
        400
    );
    assert_eq!(
        http.call("POST", "/v1/sessions", &json!({"cwd": inside}))
            .status,
        201
    );
    let bypass = http.call(
        "POST",
        "/v1/sessions",
        &json!({"mode": "bypassPermissions"}),
    );
    assert_eq!(code(&bypass), (403, "refused".to_owned()), "{bypass:?}");
    // What makes no sense is the client's fault, too.
    for settings in [
        json!({"permissions": 7}),
        json!({"permissions": {"defaultMode": "x"}}),
    ] {
        let open = json!({"settings": settings});
        let opened = http.call("POST", "/v1/sessions", &open);
        assert_eq!(code(&opened), (400, "bad_request".to_owned()), "{opened:?}");
    }
    // There is no way to a shell, a file or the settings.
    for path in [
        "/v1/shell",
        "/v1/files",
        "/v1/settings",
        "/v1/sessions/a/shell",
        "/../etc/passwd",
    ] {
        assert_eq!(http.local("GET", path).answer().status, 404, "{path}");
    }
    http.stop();
}

/// Settings come from whoever reaches the server: nothing in them runs a program here or loosens
/// what its owner said.
#[rstest]
#[case::command_hook(json!({"hooks": {"SessionStart": [{"type": "command", "command": "touch ran"}]}}), "hooks.SessionStart")]
#[case::program_among_urls(
    json!({"hooks": {"Stop": [{"hooks": [{"type": "http", "url": "http://127.0.0.1:1/"}, {"type": "command", "command": "touch ran"}]}]}}),
    "hooks.Stop"
)]
#[case::server(json!({"mcpServers": {"s": {"command": "touch", "args": ["ran"]}}}), "mcp_servers.s.command")]
#[case::helper(json!({"api_key_helper": "touch ran"}), "api_key_helper")]
#[case::variables(json!({"env": {"PATH": "/evil"}}), "env")]
#[case::status_line(json!({"statusLine": {"type": "command", "command": "touch ran"}}), "statusLine")]
#[case::place_of_keys(json!({"router": {"providers": {}}}), "router")]
#[case::rules(json!({"permissions": {"allow": ["Bash"]}}), "permissions.allow")]
#[case::mode(json!({"permissions": {"default_mode": "bypassPermissions"}}), "permissions.default_mode")]
#[case::sandbox(json!({"sandbox": {"enabled": false}}), "sandbox.enabled")]
#[case::directories(json!({"additional_directories": ["/etc"]}), "additional_directories")]
#[case::out_of_the_root(json!({"additionalDirectories": [".."]}), "additional_directories")]
fn settings_of_clients_run_and_loosen_nothing(
    #[case] settings: serde_json::Value,
    #[case] key: &str,
) {
    let bench = empty();
    let http = Http::start(&bench, &[]);
    let mut open = json!({"tab": "a", "settings": settings});
    let posted = http.call("POST", "/v1/sessions", &open);
    assert_eq!(code(&posted), (403, "refused".to_owned()), "{posted:?}");
    assert!(posted.text.contains(key), "{posted:?}");
    // The same over a WebSocket, which a session is needed for.
    assert_eq!(
        http.call("POST", "/v1/sessions", &json!({"tab": "b"}))
            .status,
        201
    );
    let mut socket = http.local("GET", "/v1/sessions/b/ws").websocket();
    let fields = open.as_object_mut().unwrap();
    fields.insert("op".to_owned(), "open".into());
    fields.insert("id".to_owned(), "o".into());
    socket.write(&open);
    let refused = loop {
        let line = socket.read();
        if line["re"] == "o" {
            break line;
        }
    };
    assert_eq!(refused["error"]["code"], "refused", "{refused}");
    assert!(
        refused["error"]["message"].as_str().unwrap().contains(key),
        "{refused}"
    );
    assert!(!bench.workspace.path().join("ran").exists());
    http.stop();
}

/// What tightens, and what a client serves itself, is its to say.
#[test]
fn settings_of_clients_may_tighten_and_call_their_own() {
    let bench = empty();
    let http = Http::start(&bench, &[]);
    std::fs::create_dir(bench.workspace.path().join("more")).unwrap();
    let settings = json!({
        "hooks": {"PreToolUse": [{"hooks": [{"type": "http", "url": "http://127.0.0.1:1/"}]}]},
        "permissions": {"deny": ["Bash"], "default_mode": "acceptEdits"},
        "additionalDirectories": ["more"],
    });
    let opened = http.call("POST", "/v1/sessions", &json!({"settings": settings}));
    assert_eq!(opened.status, 201, "{opened:?}");
    http.stop();
}

/// Whatever goes wrong has a code, wherever it is noticed.
#[test]
fn every_problem_has_a_code() {
    let bench = empty();
    let http = Http::start(&bench, &[]);
    http.call("POST", "/v1/sessions", &json!({"tab": "a"}));
    for (method, path, status, known) in [
        ("GET", "/v1/sessions?limit=abc", 400, "bad_request"),
        ("GET", "/v1/sessions/%ff", 400, "bad_request"),
        ("GET", "/v1/sessions/a/messages?after=x", 400, "bad_request"),
        ("DELETE", "/v1/sessions/a?purge=7", 400, "bad_request"),
        ("GET", "/v1/sessions/a/ws", 400, "bad_request"),
        ("GET", "/v1/ws", 400, "bad_request"),
        ("PUT", "/v1/sessions", 405, "method_not_allowed"),
        ("GET", "/v1/login", 405, "method_not_allowed"),
    ] {
        let answer = http.local(method, path).answer();
        assert_eq!(code(&answer), (status, known.to_owned()), "{method} {path}");
        let kind = answer.header("content-type");
        assert_eq!(kind, Some("application/problem+json"), "{method} {path}");
    }
    // A body may be left out, whatever it is said to be.
    let interrupted = http
        .local("POST", "/v1/sessions/a/interrupt")
        .header("content-type", "application/json")
        .answer();
    assert!(
        interrupted.status < 500 && interrupted.status != 400,
        "{interrupted:?}"
    );
    let large = http
        .local("POST", "/v1/login")
        .header("content-type", "application/json")
        .body(&[b' '; 5000])
        .answer();
    assert_eq!(code(&large), (413, "too_large".to_owned()));
    http.stop();
}

#[test]
fn what_is_too_large_or_makes_no_sense_is_refused_and_nothing_else_happens() {
    let bench = empty();
    let http = Http::start(&bench, &[]);
    http.call("POST", "/v1/sessions", &json!({"tab": "a"}));
    let large = vec![b' '; 33 * 1024 * 1024];
    let answer = http
        .local("POST", "/v1/sessions/a/prompts")
        .header("content-type", "application/json")
        .body(&large)
        .answer();
    // Whoever sends it hears why.
    assert_eq!(code(&answer), (413, "too_large".to_owned()));
    for body in [
        "",
        "{",
        "[]",
        r#"{"content": 7}"#,
        r#"{"content": "x", "more": 1}"#,
    ] {
        let answer = http
            .local("POST", "/v1/sessions/a/prompts")
            .header("content-type", "application/json")
            .body(body.as_bytes())
            .answer();
        assert!((400..=422).contains(&answer.status), "{body}: {answer:?}");
    }
    assert_eq!(http.local("GET", "/healthz").answer().status, 200);
    http.stop();
}

/// Tries to join the process of its own session, and to type there.
const JOINS: &str = r#"python3 - <<'END'
import glob, os, socket
own = os.environ['CALIBAN_AGENT_ID'] + '.sock'
joined = refused = 0
for path in glob.glob(os.environ['RUNTIME'] + '/' + own):
    for hello in ('{"type":"join","protocol":2,"events":1,"from":"now"}',
                  '{"type":"hello","protocol":2,"input":true}'):
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        s.sendall(hello.encode() + b'\n')
        said = s.recv(999)
        refused += b'can neither type' in said
        joined += b'standing' in said or b'attached' in said
print('joined', joined, 'refused', refused)
END"#;

#[test]
fn an_agent_cannot_join_its_own_session() {
    let runtime = tempfile::Builder::new().prefix("cf").tempdir().unwrap();
    let runtime = runtime.path().join("r");
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            Reply::tool("Bash", json!({"command": JOINS})),
            Reply::text("done"),
        ]),
    );
    let mut server = bench.command();
    server
        .env("CALIBAN_DAEMON_RUNTIME_DIR", &runtime)
        .env("RUNTIME", &runtime);
    let mut http = Http::launch(&bench, server, &[], "http");
    http.swept = Some(Swept::at(&bench, &runtime));
    http.call(
        "POST",
        "/v1/sessions",
        &json!({"tab": "a", "allow": ["Bash"]}),
    );
    http.call(
        "POST",
        "/v1/sessions/a/prompts?wait=true",
        &json!({"request_id": "r", "content": "go"}),
    );
    let said = http.local("GET", "/v1/sessions/a/messages").answer().text;
    assert!(said.contains("joined 0 refused 2"), "{said}");
    http.stop();
}

/// The agent has our user: neither the socket nor the token may open the server to it.
#[test]
fn an_agent_cannot_answer_its_own_questions() {
    let command = "python3 - <<'END'\nimport socket, os\ns = socket.socket(socket.AF_UNIX)\n\
                   s.connect(os.environ['HOME'] + '/run/http.sock')\n\
                   s.sendall(b'GET /healthz HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n')\n\
                   print('got', s.recv(99))\nEND";
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            Reply::tool("Bash", json!({"command": command})),
            Reply::text("done"),
        ]),
    );
    // The daemon that begins the session's process is nobody's child, so the process is not
    // beneath the server.
    assert_eq!(run(bench.command().args(["agents", "list"])).code, Some(0));
    let http = Http::start(&bench, &[]);
    http.call(
        "POST",
        "/v1/sessions",
        &json!({"tab": "a", "allow": ["Bash"]}),
    );
    http.call(
        "POST",
        "/v1/sessions/a/prompts?wait=true",
        &json!({"request_id": "r", "content": "go"}),
    );
    let said = http.local("GET", "/v1/sessions/a/messages").answer().text;
    assert!(!said.contains("200 OK"), "{said}");
    // The file with the token is a secret: reading it is not for agents.
    let call = json!({"path": http.file}).to_string();
    let judged = run(bench.command().args(["perms", "test", "Read", &call]));
    assert!(!judged.stdout.starts_with("allow"), "{judged:?}");
    http.stop();
}
