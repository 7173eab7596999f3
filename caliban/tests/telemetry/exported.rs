//! What is documented about telemetry, held against what a session really exports: the metrics of
//! the guide, the queries of the dashboard, the trace that programs and servers are told of, and
//! calls as they are sent.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use caliban_testkit::{ErrorKind, Fault, Reply, Script, Usage};
use serde_json::{Value, json};

use crate::receiver::{Told, attribute, points};
use crate::support::{Bench, Wire, bare, run, run_with_input};

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

/// A command that tells everything on its standard error.
fn telling(bench: &Bench) -> Command {
    let mut command = bench.command();
    tells(&mut command);
    command
}

/// Everything is told on the standard error.
pub(crate) fn tells(command: &mut Command) {
    command.env("CALIBAN_ENABLE_TELEMETRY", "1");
    for signal in ["METRICS", "LOGS", "TRACES"] {
        command.env(format!("OTEL_{signal}_EXPORTER"), "console");
    }
}

pub(crate) fn told(stderr: &str) -> Told {
    let lines = stderr.lines().filter(|line| line.starts_with('{'));
    let bodies = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    Told(bodies.map(|body| json!({ "body": body })).collect())
}

/// A session in which everything happens that there is a metric for.
fn eventful() -> Told {
    let usage = Usage {
        input: 100,
        output: 10,
        cache_read: 1_000,
        cache_write_5m: 50,
        ..Usage::default()
    };
    let replies = [
        Reply::tool("Write", json!({"path": "a.rs", "content": "fn a() {}\n"})),
        Reply::tool(
            "Edit",
            json!({"path": "a.rs", "old_string": "fn a() {}", "new_string": "fn b() {}"}),
        ),
        Reply::tool("Bash", json!({"command": "true || git commit -m x"})),
        Reply::tool("Bash", json!({"command": "true || gh pr create"})),
        Reply::text("Done."),
        Reply::text("A summary."),
    ];
    let replies = replies.map(|reply| reply.usage(usage));
    let bench = Bench::new(Wire::Anthropic, Script::new(replies));
    let lines =
        ["go", "/compact"].map(|text| format!("{}\n", json!({"type": "user", "content": text})));
    let mut command = telling(&bench);
    command
        .args(["-p", "--auto-allow", "--input-format", "stream-json"])
        .args(["--output-format", "stream-json"]);
    let ran = run_with_input(&mut command, lines.concat().as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    told(&ran.stderr)
}

/// A prompt that another model answers than the one that was asked.
fn rerouted() -> Told {
    let gone = Reply::fault(Fault::status_of(404, ErrorKind::ModelNotFound));
    let bench = Bench::new(Wire::Anthropic, Script::new([gone, Reply::text("Done.")]));
    let folder = bench.home.path().join(".config/caliban");
    fs::create_dir_all(&folder).unwrap();
    let route = |provider: &str, model: &str| {
        format!(
            "[[router.route]]\npurpose = 'main_loop'\nprovider = '{provider}'\nmodel = '{model}'\n"
        )
    };
    let routes = route("anthropic", "claude-sonnet-4-6") + &route("ollama", "llama3.1");
    fs::write(folder.join("caliban.toml"), routes).unwrap();
    let url = bench.server.url();
    let mut command = bare(bench.home.path(), bench.workspace.path());
    command
        .envs(Wire::Anthropic.variables(&url))
        .envs(Wire::Ollama.variables(&url));
    tells(&mut command);
    let ran = run(command.args(["-p", "hi"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = told(&ran.stderr);
    let of_hop = [("kind", "fallback"), ("purpose", "main_loop")];
    assert!((told.sum("caliban.router.hop", &of_hop) - 1.0).abs() < 1e-9);
    let marks = told.sum("caliban.router.cache.markers_cleared", &of_hop);
    assert!(marks > 0.0, "{marks}");
    let said = ran
        .stderr
        .lines()
        .find(|line| line.contains("route_changed"));
    let said = said.unwrap();
    for part in ["route_id", "anthropic/claude-sonnet-4-6", "ollama/llama3.1"] {
        assert!(said.contains(part), "{said}");
    }
    told
}

/// A prompt for which two models race.
fn raced() -> Told {
    let slow = Reply::text("late").hold_after(0);
    let bench = Bench::new(Wire::Anthropic, Script::new([slow, Reply::text("Done.")]));
    let folder = bench.home.path().join(".config/caliban");
    fs::create_dir_all(&folder).unwrap();
    let routes = "[router.hedge]\nhedge_after_ms = 20\nmax_hedges = 1\n\
        [[router.route]]\nid = 'a'\npurpose = 'main_loop'\nprovider = 'anthropic'\n\
        model = 'claude-sonnet-4-6'\n\
        [[router.route]]\npurpose = 'main_loop'\nprovider = 'ollama'\nmodel = 'llama3.1'\n";
    fs::write(folder.join("caliban.toml"), routes).unwrap();
    let url = bench.server.url();
    let mut command = bare(bench.home.path(), bench.workspace.path());
    command
        .envs(Wire::Anthropic.variables(&url))
        .envs(Wire::Ollama.variables(&url));
    tells(&mut command);
    let ran = run(command.args(["-p", "hi"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = told(&ran.stderr);
    let of_loss = [("model", "claude-sonnet-4-6"), ("purpose", "main_loop")];
    assert!((told.sum("caliban.router.hedge_loss", &of_loss) - 1.0).abs() < 1e-9);
    for name in ["tokens", "cost"] {
        let name = format!("caliban.router.hedge_loss.{name}");
        assert!(told.sum(&name, &of_loss) > 0.0, "{name}");
    }
    let event = "\"hedge_loss\"";
    assert!(
        ran.stderr.lines().any(|line| line.contains(event)),
        "{}",
        ran.stderr
    );
    told
}

/// The names of metrics that were told, each with the names of its attributes.
fn exported(told: &Told) -> BTreeMap<String, BTreeSet<String>> {
    let mut exported = BTreeMap::<String, BTreeSet<String>>::new();
    for metric in told.metrics() {
        let name = metric["name"].as_str().unwrap().to_owned();
        let names = exported.entry(name).or_default();
        let distribution = metric["histogram"]["dataPoints"].as_array();
        let distribution = distribution.map_or(&[][..], Vec::as_slice);
        for point in points(metric).iter().chain(distribution) {
            let attributes = point["attributes"].as_array().unwrap().iter();
            names.extend(attributes.map(|it| it["key"].as_str().unwrap().to_owned()));
        }
    }
    exported
}

/// What stands between back quotes.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn every_metric_of_the_guide_is_seen_with_its_attributes() {
    let told = eventful();
    let mut exported = exported(&told);
    exported.extend(self::exported(&rerouted()));
    exported.extend(self::exported(&raced()));
    let guide = fs::read_to_string(format!("{DOCS}/telemetry.md")).unwrap();
    let mut documented = BTreeSet::new();
    for row in guide.lines().filter(|line| line.starts_with("| `caliban.")) {
        let cells: Vec<&str> = row.split('|').collect();
        for name in quoted(cells[1]) {
            documented.insert(name.to_owned());
            let known = exported.get(name);
            let known = known.unwrap_or_else(|| panic!("{name} is not among {exported:?}"));
            assert!(known.contains("session.id"), "{name}");
            // Names of attributes; their values stand in parentheses.
            let outside: String =
                cells[3]
                    .split('(')
                    .enumerate()
                    .fold(String::new(), |text, (place, part)| match place {
                        0 => text + part,
                        _ => text + part.split_once(')').map_or("", |(_, rest)| rest),
                    });
            let outside = outside.replace("the same without `type`", "`model`, `provider`");
            for attribute in quoted(&outside) {
                assert!(known.contains(attribute), "{name}: {attribute} {known:?}");
            }
        }
    }
    let listed = guide
        .lines()
        .find(|line| line.contains("histograms of the GenAI"));
    let names = quoted(listed.unwrap()).into_iter();
    for name in names.filter(|name| name.starts_with("gen_ai.")) {
        documented.insert(name.to_owned());
        assert!(exported.contains_key(name), "{name} {exported:?}");
    }
    let all: BTreeSet<String> = exported.into_keys().collect();
    assert_eq!(documented, all, "what is exported is documented");
    for kind in ["input", "output", "cacheRead", "cacheCreation"] {
        assert!(
            told.sum("caliban.token.usage", &[("type", kind)]) > 0.0,
            "{kind}"
        );
    }
}

/// The name that a metric has for Prometheus, as collectors derive it.
fn prometheus(metric: &Value) -> BTreeSet<String> {
    let name = metric["name"].as_str().unwrap().replace('.', "_");
    let unit = match metric["unit"].as_str().unwrap_or_default() {
        "s" => "_seconds".to_owned(),
        unit if unit.is_empty() || unit.starts_with('{') => String::new(),
        unit => format!("_{unit}"),
    };
    let name = format!("{name}{unit}");
    match metric.get("histogram") {
        Some(_) => ["bucket", "sum", "count"]
            .map(|part| format!("{name}_{part}"))
            .into(),
        // The word stands at the end, and once.
        None => [format!("{}_total", name.replace("_total", ""))].into(),
    }
}

/// The words of a query.
fn words(query: &str) -> impl Iterator<Item = &str> {
    query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

#[test]
fn the_dashboard_asks_for_nothing_that_is_not_exported() {
    let told = eventful();
    let exported = exported(&told);
    let mut names = BTreeMap::new();
    for metric in told.metrics() {
        let attributes = &exported[metric["name"].as_str().unwrap()];
        let labels = attributes.iter().map(|name| name.replace('.', "_"));
        let labels: BTreeSet<String> = labels.chain(["le".to_owned()]).collect();
        for name in prometheus(metric) {
            names.insert(name, labels.clone());
        }
    }
    let text = fs::read_to_string(format!("{DOCS}/telemetry/dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut asked = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            let metric = words(query).find(|word| {
                word.starts_with("caliban_")
                    || word.starts_with("gen_ai_") && word.contains("_seconds_")
                    || word.starts_with("gen_ai_client_token_usage")
            });
            let metric = metric.unwrap_or_else(|| panic!("{query} asks for no metric"));
            let labels = names.get(metric);
            let labels = labels.unwrap_or_else(|| panic!("{metric} is not among {names:#?}"));
            asked.insert(metric.to_owned());
            let grouped = query
                .split("by (")
                .skip(1)
                .filter_map(|rest| rest.split(')').next());
            let legend = target["legendFormat"].as_str().unwrap();
            let shown = legend
                .split("{{")
                .skip(1)
                .filter_map(|rest| rest.split("}}").next());
            let selected = query
                .split('{')
                .skip(1)
                .filter_map(|rest| rest.split('=').next());
            for label in grouped
                .flat_map(|by| by.split(", "))
                .chain(shown)
                .chain(selected)
            {
                assert!(labels.contains(label), "{query}: {label} {labels:?}");
            }
        }
    }
    // Every metric of ours has its place on it.
    for name in names.keys().filter(|name| name.starts_with("caliban_")) {
        assert!(asked.contains(name), "{name} is on no panel");
    }
}

#[test]
fn the_collector_of_the_guide_takes_what_is_sent() {
    let text = fs::read_to_string(format!("{DOCS}/telemetry/collector.yaml")).unwrap();
    // The parts that a pipeline names are described.
    for part in [
        "deltatocumulative",
        "memory_limiter",
        "prometheus",
        "transform/sessions",
    ] {
        let named = text.matches(part).count();
        assert!(named >= 2, "{part} is described and used");
    }
    // Series of several sessions are put together before they are added up.
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}"));
    assert!(place("delete_key(attributes, \"session.id\")") < place("set(time, Now())"));
    assert!(text.contains("[memory_limiter, transform/sessions, deltatocumulative, batch]"));
    let told = eventful();
    assert!(exported(&told)["caliban.cost.usage"].contains("session.id"));
}

/// The spans of a name.
fn spans<'a>(told: &'a Told, name: &str) -> Vec<&'a Value> {
    told.spans().filter(|span| span["name"] == name).collect()
}

/// Reasons and operations have the names of the conventions.
#[test]
fn spans_say_how_answers_ended_and_which_call_it_was() {
    let script = Script::new([
        Reply::tool("Bash", json!({"command": "true"})),
        Reply::text("ok"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let mut command = telling(&bench);
    let ran = run(command.args(["-p", "go", "--auto-allow"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = told(&ran.stderr);
    let reasons: Vec<String> = spans(&told, "chat claude-sonnet-4-6")
        .iter()
        .map(|span| span["attributes"].to_string())
        .collect();
    assert!(reasons[0].contains("\"tool_use\""), "{reasons:?}");
    assert!(reasons[1].contains("\"end_turn\""), "{reasons:?}");
    let tools = spans(&told, "execute_tool Bash");
    let id = attribute(tools[0], "gen_ai.tool.call.id");
    assert!(id.is_some(), "{}", tools[0]);
    let duration = told
        .metrics()
        .find(|metric| metric["name"] == "gen_ai.invoke_agent.duration")
        .unwrap();
    let point = &duration["histogram"]["dataPoints"][0];
    let operation = attribute(point, "gen_ai.operation.name");
    assert_eq!(operation, Some("invoke_agent"), "{point}");
}

#[test]
fn programs_are_told_their_place_in_the_trace() {
    let script = Script::new([
        Reply::tool(
            "Bash",
            json!({"command": "echo $TRACEPARENT > t; echo \"<$TRACESTATE>\" >> t"}),
        ),
        Reply::text("ok"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let mut command = telling(&bench);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    command
        .args(["-p", "go", "--auto-allow"])
        .env("TRACEPARENT", format!("00-{trace}-00f067aa0ba902b7-01"))
        .env("TRACESTATE", "other=1");
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = told(&ran.stderr);
    let execution = spans(&told, "caliban.tool.execution");
    assert_eq!(execution.len(), 1);
    let span = execution[0]["spanId"].as_str().unwrap();
    assert_eq!(execution[0]["traceId"], trace);
    let seen = fs::read_to_string(bench.workspace.path().join("t")).unwrap();
    assert_eq!(seen, format!("00-{trace}-{span}-01\n<>\n"));
}

#[test]
fn without_telemetry_programs_see_the_trace_that_there_is() {
    let script = Script::new([
        Reply::tool("Bash", json!({"command": "echo \"<$TRACEPARENT>\" > t"})),
        Reply::text("ok"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let mut command = bench.command();
    command
        .args(["-p", "go", "--auto-allow"])
        .env("TRACEPARENT", "x");
    assert_eq!(run(&mut command).code, Some(0));
    let seen = fs::read_to_string(bench.workspace.path().join("t")).unwrap();
    assert_eq!(seen, "<x>\n");
}

#[test]
fn servers_are_told_their_place_in_the_trace() {
    let script = Script::new([
        Reply::tool("mcp__calc__add", json!({"a": 1, "b": 2})),
        Reply::text("ok"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let seen = bench.workspace.path().join("seen");
    let configuration = bench.workspace.path().join("servers.json");
    let servers = json!({"mcpServers": {"calc": {
        "command": "python3", "args": [server], "env": {"SEEN": seen}}}});
    fs::write(&configuration, servers.to_string()).unwrap();
    let mut command = telling(&bench);
    command
        .args(["-p", "go", "--auto-allow", "--mcp-config"])
        .arg(&configuration);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = told(&ran.stderr);
    let execution = spans(&told, "caliban.tool.execution");
    assert_eq!(execution.len(), 1, "{}", ran.stderr);
    let part = |name: &str| execution[0][name].as_str().unwrap().to_owned();
    let expected = format!("00-{}-{}-01", part("traceId"), part("spanId"));
    let log = fs::read_to_string(seen).unwrap();
    let calls = log.lines().filter(|line| line.contains("tools/call"));
    let calls: Vec<&str> = calls.collect();
    assert_eq!(calls.len(), 1, "{log}");
    assert!(calls[0].contains(&expected), "{} {expected}", calls[0]);
}

const KEY: &str = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz";

fn talkative(value: &str) -> (Bench, Told) {
    let script = Script::new([Reply::text("An answer that is heard.")]);
    let bench = Bench::new(Wire::Anthropic, script);
    let mut command = telling(&bench);
    command
        .args(["-p", &format!("a prompt with {KEY} in it")])
        .env("OTEL_LOG_RAW_API_BODIES", value);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    (bench, told(&ran.stderr))
}

#[test]
fn calls_are_logged_as_they_are_where_somebody_asks_for_it() {
    let (_, told) = talkative("0");
    assert_eq!(told.events("api_request_body").count(), 0);
    let (_, told) = talkative("1");
    assert!(!told.text().contains(KEY), "{}", told.text());
    let request = told.events("api_request_body").next().unwrap().clone();
    let body = attribute(&request, "body").unwrap();
    assert!(body.contains("a prompt with {redacted} in it"), "{body}");
    assert!(body.contains("\"model\""), "{body}");
    let response = told.events("api_response_body").next().unwrap().clone();
    let body = attribute(&response, "body").unwrap();
    assert!(
        body.contains("message_start") && body.contains("heard"),
        "{body}"
    );
}

#[test]
fn calls_are_files_that_only_their_owner_reads() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("bodies");
    let (_, told) = talkative(&format!("file:{}", directory.display()));
    assert!(!told.text().contains("a prompt with"), "{}", told.text());
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for (event, part) in [
        ("api_request_body", "a prompt with {redacted} in it"),
        ("api_response_body", "message_start"),
    ] {
        let record = told.events(event).next().unwrap();
        let path = std::path::PathBuf::from(attribute(record, "body_ref").unwrap());
        assert_eq!(path.parent(), Some(directory.as_path()));
        assert_eq!(mode(&path), 0o600);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(part) && !text.contains(KEY), "{text}");
    }
}

#[test]
fn a_wrong_word_about_bodies_is_an_error() {
    let bench = Bench::new(Wire::Anthropic, Script::new([]));
    let mut command = telling(&bench);
    command
        .args(["-p", "go"])
        .env("OTEL_LOG_RAW_API_BODIES", "yes please");
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("OTEL_LOG_RAW_API_BODIES"),
        "{}",
        ran.stderr
    );
}

/// A collector that lets in only whom it knows, and writes down what it got.
const DOORKEEPER: &str = r#"
import http.server, ssl, sys
place = sys.argv[1]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        subject = dict(pair[0] for pair in self.connection.getpeercert()["subject"])
        with open(place + "/got", "a") as log:
            log.write(f"{subject['commonName']} {self.path} {len(body)}\n")
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    def log_message(self, *rest):
        pass
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(place + "/server.pem", place + "/server.key")
context.load_verify_locations(place + "/ca.pem")
context.verify_mode = ssl.CERT_REQUIRED
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

/// Makes an authority, and a certificate of a server and of a client; false where there is no
/// program for that.
fn certificates(place: &std::path::Path) -> bool {
    let script = "set -e; cd \"$0\"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout ca.key -out ca.pem -subj /CN=authority \
  -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
printf 'subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n' > extensions
for who in server client; do
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $who.key -out $who.csr -subj /CN=the-$who
  openssl x509 -req -in $who.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out $who.pem -extfile extensions
done";
    let made = Command::new("sh").args(["-c", script]).arg(place).output();
    made.is_ok_and(|made| made.status.success())
}

#[test]
fn both_sides_show_certificates() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    let place = tempfile::tempdir().unwrap();
    if !certificates(place.path()) {
        eprintln!("skipped: there is no openssl");
        return;
    }
    let script = place.path().join("doorkeeper.py");
    fs::write(&script, DOORKEEPER).unwrap();
    let mut keeper = Command::new("python3")
        .arg(&script)
        .arg(place.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    let mut out = BufReader::new(keeper.stdout.take().unwrap());
    out.read_line(&mut port).unwrap();
    let export = |known: bool| {
        let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("ok")]));
        let mut command = bench.command();
        command
            .args(["-p", "go"])
            .env("CALIBAN_ENABLE_TELEMETRY", "1")
            .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
            .env(
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                format!("https://127.0.0.1:{}", port.trim()),
            )
            .env(
                "OTEL_EXPORTER_OTLP_CERTIFICATE",
                place.path().join("ca.pem"),
            );
        if known {
            command
                .env(
                    "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
                    place.path().join("client.pem"),
                )
                .env(
                    "OTEL_EXPORTER_OTLP_CLIENT_KEY",
                    place.path().join("client.key"),
                );
        }
        run(&mut command)
    };
    let stranger = export(false);
    assert_eq!(stranger.code, Some(0), "{}", stranger.stderr);
    assert!(
        stranger.stderr.contains("telemetry is not exported"),
        "{}",
        stranger.stderr
    );
    assert!(!place.path().join("got").exists());
    let known = export(true);
    keeper.kill().unwrap();
    keeper.wait().unwrap();
    assert_eq!(known.code, Some(0), "{}", known.stderr);
    let got = fs::read_to_string(place.path().join("got")).unwrap();
    for path in ["/v1/metrics", "/v1/logs", "/v1/traces"] {
        assert!(got.contains(&format!("the-client {path} ")), "{got}");
    }
}
