//! Routes, with the built binary against several servers: who is asked in which order, what is
//! told, what is paid, and how it ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

use std::path::Path;
use std::process::Command;

use caliban_testkit::{After, BlockingServer, ErrorKind, Fault, Recorded, Reply, Script, Usage};
use rstest::rstest;
use serde_json::{Value, json};

mod support;

use support::{Ran, Wire, bare, run, run_with_input};

/// A home, a workspace, and a server for each of two providers.
struct Two {
    home: tempfile::TempDir,
    workspace: tempfile::TempDir,
    anthropic: BlockingServer,
    ollama: BlockingServer,
}

const ROUTES: &str = "
[[router.route]]
id = 'first'
purpose = 'main_loop'
provider = 'anthropic'
model = 'claude-sonnet-4-6'
[[router.route]]
id = 'second'
purpose = 'main_loop'
provider = 'ollama'
model = 'llama3.1'
";

fn answers(text: &str) -> Script {
    Script::new([Reply::text(text)]).after(After::RepeatLast)
}

fn failing(fault: &Fault, times: usize, then: &str) -> Script {
    let faults = (0..times).map(|_| Reply::text("void").with_fault(fault.clone()));
    Script::new(faults.chain([Reply::text(then)])).after(After::RepeatLast)
}

impl Two {
    fn new(anthropic: Script, ollama: Script) -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            workspace: tempfile::tempdir().unwrap(),
            anthropic: BlockingServer::start(anthropic).unwrap(),
            ollama: BlockingServer::start(ollama).unwrap(),
        }
    }

    /// The user's own file, which needs no trust.
    fn routes(&self, text: &str) {
        let folder = self.home.path().join(".config/caliban");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("caliban.toml"), text).unwrap();
    }

    fn command(&self) -> Command {
        let mut command = bare(self.home.path(), self.workspace.path());
        command
            .envs(Wire::Anthropic.variables(&self.anthropic.url()))
            .envs(Wire::Ollama.variables(&self.ollama.url()))
            .env("CALIBAN_RETRY_BASE_DELAY_MS", "1")
            .env("CALIBAN_MAX_RETRIES", "1");
        command
    }

    fn asked(&self) -> (usize, usize) {
        let of = |server: &BlockingServer| server.model_requests().len();
        (of(&self.anthropic), of(&self.ollama))
    }

    fn ask(&self, args: &[&str]) -> Ran {
        run(self.command().args(["-p", "hi"]).args(args))
    }
}

fn frames(ran: &Ran) -> Vec<Value> {
    let lines = ran.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[rstest]
#[case::overloaded(Fault::status(529), (2, 1))]
#[case::server(Fault::status(500), (2, 1))]
#[case::gateway(Fault::HtmlBody { status: 502 }, (2, 1))]
#[case::limited(Fault::status(429), (2, 1))]
#[case::limited_for_long(Fault::status(429).retry_after("600"), (1, 1))]
#[case::limited_for_days(Fault::status(429).retry_after_ms(259_200_000), (1, 1))]
#[case::no_such_model(Fault::status(404), (1, 1))]
#[case::reset(Fault::ResetBeforeHeaders, (2, 1))]
#[case::broken(Fault::ResetMidStream { after_events: 3 }, (2, 1))]
#[case::garbage(Fault::Garbage, (2, 1))]
#[case::error_event(Fault::ErrorEvent { after_events: 3, kind: ErrorKind::Overloaded }, (2, 1))]
fn another_route_answers(#[case] fault: Fault, #[case] asked: (usize, usize)) {
    let two = Two::new(failing(&fault, 2, "too late"), answers("from the other"));
    two.routes(ROUTES);
    let ran = two.ask(&["--output-format", "stream-json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(two.asked(), asked);
    let frames = frames(&ran);
    let told = frames
        .iter()
        .filter(|frame| frame["subtype"] == "fallback_model");
    assert_eq!(told.count(), 1, "{}", ran.stdout);
    let last = frames.last().unwrap();
    assert_eq!(last["result"], "from the other");
    let hop = frames
        .iter()
        .find(|frame| frame["subtype"] == "fallback_model");
    let details = hop.unwrap()["details"].clone();
    let reason = details["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("anthropic (claude-sonnet-4-6): "),
        "{reason}"
    );
    assert_eq!(
        details,
        json!({
            "route_id": "second",
            "purpose": "main_loop",
            "kind": "fallback",
            "from": "anthropic/claude-sonnet-4-6",
            "to": "ollama/llama3.1",
            "reason": reason,
            "markers_cleared": marks_of(&two.anthropic.model_requests()[0]),
        })
    );
}

/// The marks for a prompt cache in a request.
fn marks_of(request: &Recorded) -> usize {
    let marks = request.json().to_string().matches("cache_control").count();
    assert!(marks > 0);
    marks
}

#[rstest]
#[case::auth(Fault::status(401), "auth")]
#[case::billing(Fault::status_of(429, ErrorKind::SpendLimit), "billing")]
#[case::invalid(Fault::status(400), "")]
fn what_has_to_be_mended_is_not_hidden(#[case] fault: Fault, #[case] escape: &str) {
    let two = Two::new(failing(&fault, 1, "too late"), answers("from the other"));
    two.routes(ROUTES);
    let ran = two.ask(&[]);
    assert_eq!((ran.code, two.asked()), (Some(1), (1, 0)), "{}", ran.stderr);
    if escape.is_empty() {
        return;
    }
    let two = Two::new(failing(&fault, 1, "too late"), answers("from the other"));
    let id = "id = 'first'";
    two.routes(&ROUTES.replace(id, &format!("{id}\nfallback_on = ['{escape}']")));
    let ran = two.ask(&[]);
    assert_eq!(ran.stdout, "from the other\n", "{}", ran.stderr);
    assert_eq!(two.asked(), (1, 1));
}

#[test]
fn each_is_paid_for_what_it_said() {
    let usage = |input, output| Usage {
        input,
        output,
        ..Usage::default()
    };
    let broken = Reply::text("void and gone")
        .usage(usage(1_000, 50))
        .with_fault(Fault::ResetMidStream { after_events: 3 });
    let anthropic = Script::new([broken.clone(), broken]);
    let ollama = Script::new([Reply::text("done").usage(usage(70, 5))]);
    let two = Two::new(anthropic, ollama);
    two.routes(ROUTES);
    let ran = two.ask(&["--output-format", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let result: Value = serde_json::from_str(ran.stdout.trim()).unwrap();
    // Two broken answers of a thousand tokens, at three dollars a million, and a token of output each.
    assert_eq!(result["total_cost_usd"], 0.00603, "{result}");
    assert_eq!(result["total_input_tokens"], 2_070, "{result}");
    assert_eq!(result["total_output_tokens"], 7, "{result}");
}

#[test]
fn a_flag_chooses_the_main_loop_and_says_so() {
    let two = Two::new(answers("a"), answers("o"));
    two.routes(ROUTES);
    let ran = two.ask(&[
        "--provider",
        "ollama",
        "--output-format",
        "stream-json",
        "--model",
        "llama3.1",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(two.asked(), (0, 1));
    let warnings = frames(&ran)[0]["warnings"].to_string();
    assert!(warnings.contains("do not count"), "{warnings}");
}

/// Where the price of some is known, a budget is not spent on who knows what.
#[test]
fn a_route_of_unknown_price_is_passed_over_where_there_is_a_budget_and_said() {
    let two = Two::new(answers("a"), answers("o"));
    two.routes(&ROUTES.replace("claude-sonnet-4-6", "claude-nobody"));
    let asked = ["--output-format", "stream-json", "--max-budget-usd", "1"];
    let ran = two.ask(&asked);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(two.asked(), (0, 1));
    let frames = frames(&ran);
    let warning = frames.iter().find(|it| it["subtype"] == "fallback_model");
    let details = &warning.unwrap()["details"];
    assert_eq!(details["kind"], "skipped", "{details}");
    assert_eq!(details["from"], "anthropic/claude-nobody", "{details}");
    let reason = details["reason"].as_str().unwrap();
    assert!(reason.contains("its price is not known"), "{reason}");
}

#[rstest]
#[case::next("", Some("llama3.1"))]
#[case::none("fallback = []", None)]
#[case::named("fallback = ['third']", Some("llama3.2:3b"))]
fn init_names_who_would_stand_in(#[case] fallback: &str, #[case] expected: Option<&str>) {
    let two = Two::new(answers("a"), answers("o"));
    let third = "[[router.route]]\nid = 'third'\npurpose = 'other'\nprovider = 'ollama'\nmodel = 'llama3.2:3b'\n";
    let head = format!("model = 'claude-sonnet-4-6'\n{fallback}");
    two.routes(&(ROUTES.replace("model = 'claude-sonnet-4-6'", &head) + third));
    let ran = two.ask(&["--output-format", "stream-json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(frames(&ran)[0]["fallback_model"].as_str(), expected);
}

#[test]
fn a_purpose_has_its_own_model_and_provider() {
    let two = Two::new(answers("main"), answers("small"));
    two.routes(
        "[[router.route]]\npurpose = 'main_loop'\nprovider = 'anthropic'\nmodel = 'claude-sonnet-4-6'\n\
         [[router.route]]\npurpose = 'summarization'\nprovider = 'ollama'\nmodel = 'llama3.1'\n",
    );
    let ran = run(two.command().args(["--session", "s", "-p", "hi"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = run(two.command().args(["--session", "s", "-p", "/compact"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(two.asked(), (1, 1));
}

#[test]
fn a_missing_key_matters_only_for_who_comes_first() {
    let two = Two::new(answers("a"), answers("o"));
    let swapped = ROUTES
        .replace("'ollama'", "'openai'")
        .replace("'llama3.1'", "'gpt-5.5'");
    two.routes(&swapped);
    let ran = two.ask(&[]);
    assert_eq!(ran.stdout, "a\n", "{}", ran.stderr);
    assert!(
        ran.stderr.contains("`second` cannot be used"),
        "{}",
        ran.stderr
    );
    let head = two.home.path().join(".config/caliban/caliban.toml");
    let text = std::fs::read_to_string(&head).unwrap();
    let text = text.replace(
        "'main_loop'\nprovider = 'openai'",
        "'sub_agent'\nprovider = 'openai'",
    );
    std::fs::write(&head, text).unwrap();
    let ran = two.ask(&[]);
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(ran.stderr.contains("OPENAI_API_KEY"), "{}", ran.stderr);
}

#[rstest]
#[case::unknown("provider = 'ollama'", "provider = 'bard'", "unknown provider `bard`")]
#[case::purpose("purpose = 'main_loop'", "purpose = 'maim'", "unknown variant `maim`")]
#[case::lacking(
    "model = 'llama3.1'",
    "model = 'llama3.1'\nrequires = { vision = true }",
    "known to lack it"
)]
#[case::unprefixed("[[router.route]]", "[[route]]", "write `[[router.route]]`")]
fn a_bad_file_ends_the_start(#[case] part: &str, #[case] other: &str, #[case] said: &str) {
    let two = Two::new(answers("a"), answers("o"));
    two.routes(&ROUTES.replace(part, other));
    let ran = two.ask(&[]);
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert_eq!(two.asked(), (0, 0));
    let ran = run(two.command().args(["router", "debug"]));
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
}

/// What asks a model waits for trust; what only shows does not.
#[test]
fn the_routes_of_a_workspace_without_trust_are_shown_and_not_used() {
    let two = Two::new(answers("a"), answers("o"));
    std::fs::write(two.workspace.path().join("caliban.toml"), ROUTES).unwrap();
    for refused in [&["-p", "hi"][..], &["router", "test", "--yes"]] {
        let ran = run(two.command().args(refused));
        assert_eq!(ran.code, Some(78), "{refused:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("`caliban trust`"), "{}", ran.stderr);
    }
    let shown = run(two.command().args(["router", "debug"]));
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("\n+ second  ollama/llama3.1"));
    assert!(
        shown.stderr.contains("no run uses the routes"),
        "{}",
        shown.stderr
    );
    assert_eq!(two.asked(), (0, 0));
    let trusted = run(two.command().args(["--trust-workspace", "router", "debug"]));
    assert_eq!(
        (trusted.stdout, trusted.stderr),
        (shown.stdout, String::new())
    );
}

/// Short runs, each a process: the second knows what the first found out.
#[test]
fn processes_tell_each_other_of_an_outage() {
    let go = |shared: &str| {
        let two = Two::new(failing(&Fault::status(529), 9, "late"), answers("other"));
        two.routes(&format!(
            "{ROUTES}[router.breaker]\nfailure_threshold = 1\ncooldown_secs = 300\nshared = {shared}\n"
        ));
        for _ in 0..2 {
            let ran = two.ask(&["--no-save"]);
            assert_eq!(ran.stdout, "other\n", "{}", ran.stderr);
        }
        two
    };
    let two = go("true");
    assert_eq!(
        two.asked(),
        (2, 2),
        "the second process asked the first route again"
    );
    let status = run(two.command().args(["router", "status"]));
    assert!(
        status
            .stdout
            .contains("anthropic/claude-sonnet-4-6: left alone"),
        "{}",
        status.stdout
    );
    let debug = run(two.command().args(["router", "debug"]));
    assert!(debug.stdout.contains("- first"), "{}", debug.stdout);
    assert!(
        debug.stdout.contains("says another process"),
        "{}",
        debug.stdout
    );
    let files: Vec<_> = walk(two.home.path(), "router");
    assert_eq!(files.len(), 1);
    let kept = std::fs::read_to_string(&files[0]).unwrap();
    assert!(!kept.contains("test-key") && !kept.contains("hi"), "{kept}");
    assert_eq!(go("false").asked(), (4, 2));
}

/// Files below a directory of this name.
fn walk(root: &Path, name: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.parent().is_some_and(|parent| parent.ends_with(name)) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn a_slow_route_is_raced_and_the_loser_paid() {
    let slow = Script::new([Reply::text("late").hold_after(0)]);
    let two = Two::new(slow, answers("fast"));
    two.routes(&format!(
        "{ROUTES}[router.hedge]\nhedge_after_ms = 20\nmax_hedges = 1\n"
    ));
    let ran = two.ask(&["--output-format", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(two.asked(), (1, 1));
    let result: Value = serde_json::from_str(ran.stdout.trim()).unwrap();
    assert_eq!(result["result"], "fast");
    assert!(result["total_cost_usd"].as_f64().unwrap() > 0.0, "{result}");
}

/// A call that failed counts once, however often it was tried; then the route is left alone, and
/// once it has rested, asked again.
#[test]
fn a_breaker_counts_calls_and_opens_again() {
    let first = failing(&Fault::status(500), 4, "first");
    let other = || Reply::text("other");
    let others = Script::new([other(), other(), other().delay_ms(3_500)]);
    let two = Two::new(first, others);
    let breaker = "failure_threshold = 2\ncooldown_secs = 3\nshared = false";
    two.routes(&format!("{ROUTES}[router.breaker]\n{breaker}\n"));
    let prompt = format!("{}\n", json!({"type": "user", "content": "hi"}));
    let mut command = two.command();
    command
        .args(["-p", "--input-format", "stream-json"])
        .args(["--output-format", "stream-json"]);
    let ran = run_with_input(&mut command, prompt.repeat(5).as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let frames = frames(&ran);
    let results = frames.iter().filter(|it| it["type"] == "result");
    let said: Vec<&str> = results.filter_map(|it| it["result"].as_str()).collect();
    assert_eq!(said, ["other", "other", "other", "first", "first"]);
    // Twice with a retry, not while it rests, then the probe and the last.
    assert_eq!(two.asked(), (6, 3));
}

/// Two models of one provider share an account, and whoever asks for a race of them gets it.
#[rstest]
#[case::asked_for("max = 1", "fast", 2)]
#[case::not_wanted("max = 1, same_account = false", "late", 1)]
fn models_of_one_account_are_raced(#[case] more: &str, #[case] said: &str, #[case] asked: usize) {
    let slow = Reply::text("late").delay_ms(1_500);
    let two = Two::new(Script::new([slow, Reply::text("fast")]), answers("o"));
    two.routes(&format!(
        "[[router.route]]\npurpose = 'main_loop'\nprovider = 'anthropic'\nmodel = 'claude-sonnet-4-6'\n\
         hedge = {{ hedge_after_ms = 50, {more} }}\n\
         [[router.route]]\npurpose = 'main_loop'\nprovider = 'anthropic'\nmodel = 'claude-haiku-4-5'\n"
    ));
    let ran = two.ask(&[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, format!("{said}\n"));
    assert_eq!(two.asked(), (asked, 0));
}

#[test]
fn a_lost_race_is_a_frame_with_its_price() {
    let slow = Script::new([Reply::text("late").hold_after(0)]);
    let two = Two::new(slow, answers("fast"));
    two.routes(&format!(
        "{ROUTES}[router.hedge]\nhedge_after_ms = 20\nmax_hedges = 1\n"
    ));
    let ran = two.ask(&["--output-format", "stream-json"]);
    let frames: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let lost = frames.iter().find(|frame| frame["subtype"] == "hedge_loss");
    let details = &lost.unwrap()["details"];
    assert_eq!(details["route_id"], "first");
    assert_eq!(details["kind"], "hedge_loss");
    assert_eq!(details["from"], "anthropic/claude-sonnet-4-6");
    assert_eq!(details["to"], "ollama/llama3.1");
    assert!(details["input_tokens"].as_u64().unwrap() > 0, "{details}");
    assert!(details["cost_usd"].as_f64().unwrap() > 0.0, "{details}");
}

/// What is shown is what would be sent, whatever the wish was.
#[test]
fn debug_shows_the_effort_that_the_model_takes() {
    let two = Two::new(answers("a"), answers("o"));
    let route = |id: &str, provider: &str, model: &str, more: &str| {
        format!(
            "[[router.route]]\nid = '{id}'\npurpose = 'main_loop'\nprovider = '{provider}'\n\
             model = '{model}'\n{more}"
        )
    };
    two.routes(
        &[
            route("haiku", "anthropic", "claude-haiku-4-5", ""),
            route(
                "opus",
                "anthropic",
                "claude-opus-4-7",
                "[router.route.effort_map]\nmax = 'budget=32768'\n",
            ),
            route("gpt", "openai", "gpt-5.5", ""),
            route("old", "openai", "gpt-4o", ""),
        ]
        .concat(),
    );
    let ran = run(two.command().args(["router", "debug", "--effort", "max"]));
    let table = ran
        .stdout
        .split("effort sent for each wish")
        .nth(1)
        .unwrap();
    let line = |id: &str| {
        let mut lines = table.lines().map(str::trim_start);
        lines.find(|line| line.starts_with(id)).unwrap().to_owned()
    };
    assert!(line("haiku").contains("low → budget=4096"), "{table}");
    assert!(line("opus").ends_with("max → high"), "{table}");
    assert!(line("gpt").ends_with("max → xhigh"), "{table}");
    assert!(line("old").ends_with("max → nothing"), "{table}");
    let auto = run(two.command().args(["router", "debug", "--effort", "auto"]));
    assert_eq!(auto.code, Some(0), "{}", auto.stderr);
    assert!(
        auto.stdout.contains("effort sent: nothing"),
        "{}",
        auto.stdout
    );
}

#[rstest]
#[case::no_model("model = ' '\n", "must name a model")]
#[case::no_failures(
    "model = 'm'\nbreaker = { failure_threshold = 0 }\n",
    "failure_threshold"
)]
#[case::no_probes(
    "model = 'm'\nbreaker = { half_open_probes = 0 }\n",
    "half_open_probes"
)]
#[case::no_rest("model = 'm'\nbreaker = { cooldown_secs = 0 }\n", "cooldown_secs")]
fn what_says_nothing_is_an_error_with_its_place(#[case] lines: &str, #[case] told: &str) {
    let two = Two::new(answers("a"), answers("o"));
    two.routes(&format!(
        "[[router.route]]\npurpose = 'main_loop'\nprovider = 'anthropic'\n{lines}"
    ));
    let ran = two.ask(&[]);
    assert_eq!(ran.code, Some(78), "{ran:?}");
    assert!(ran.stderr.contains("caliban.toml:"), "{}", ran.stderr);
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert_eq!(two.asked(), (0, 0));
}

#[test]
fn explain_says_why_a_rule_of_the_budget_does_nothing() {
    let two = Two::new(answers("a"), answers("o"));
    two.routes(&format!(
        "{ROUTES}[[router.route]]\nid = 'odd'\npurpose = 'other'\nprovider = 'openai'\n\
         model = 'never-heard-of'\n\
         [[router.budget]]\nat = 0.8\npurpose = 'main_loop'\nuse = 'odd'\n"
    ));
    let ran = run(two.command().args(["router", "explain"]));
    let expected = "from 80 % of the budget on, `main_loop` does nothing: the price of `odd`";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
}

/// A word that stands for a route does not change what is shown of a run that does not use it.
#[test]
fn debug_shows_the_run_whatever_inherit_stands_for() {
    let two = Two::new(answers("a"), answers("o"));
    two.routes("[router.alias]\ninherit = 'claude-opus-4-7'\n");
    let ran = run(two.command().args(["router", "debug"]));
    let first = ran.stdout.lines().nth(1).unwrap();
    assert!(first.contains("claude-sonnet-4-6"), "{}", ran.stdout);
    two.ask(&[]);
    let body = two.anthropic.model_requests()[0].body.clone();
    assert!(String::from_utf8_lossy(&body).contains("claude-sonnet-4-6"));
}

/// Headers for gateways are lines; a line that is none is an error that does not repeat it.
#[test]
fn headers_of_ones_own_are_sent_to_anthropic() {
    let two = Two::new(answers("a"), answers("o"));
    let ask = |headers: &str| {
        run(two
            .command()
            .env("ANTHROPIC_CUSTOM_HEADERS", headers)
            .args(["-p", "hi"]))
    };
    let ran = ask("X-Team: tools\n\nX-Cost-Centre:  42 \n");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let call = &two.anthropic.model_requests()[0];
    assert_eq!(call.header("x-team"), Some("tools"));
    assert_eq!(call.header("x-cost-centre"), Some("42"));
    let bad = ask("X-Team: a\nno header, but a secret");
    assert_eq!(bad.code, Some(78), "{bad:?}");
    assert!(bad.stderr.contains("line 2"), "{}", bad.stderr);
    assert!(!bad.stderr.contains("secret"), "{}", bad.stderr);
}

#[test]
fn another_policy_and_a_recorded_session_are_rehearsed() {
    let two = Two::new(answers("a"), answers("o"));
    two.ask(&["--session", "s"]);
    let policy = two.workspace.path().join("policy.toml");
    std::fs::write(&policy, ROUTES).unwrap();
    let simulate = |args: &[&str]| {
        let mut command = two.command();
        command.args(["router", "simulate", "--sessions", "2", "--turns", "5"]);
        run(command.args(["--policy", "policy.toml"]).args(args))
    };
    let ran = simulate(&["--trace", "s"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let storm = two.workspace.path().join("storm.toml");
    std::fs::write(storm, "").unwrap();
    let ran = simulate(&["--outage", "storm.toml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn debug_shows_every_route_with_its_reason() {
    let two = Two::new(answers("a"), answers("o"));
    two.routes(&format!(
        "{ROUTES}effort = 'high'\n[router.route.effort_map]\nhigh = 'budget=32768'\n\
         [[router.route]]\nid = 'small'\npurpose = 'fast_classifier'\nprovider = 'ollama'\nmodel = 'llama3.2:3b'\n"
    ));
    let debug = |args: &[&str]| run(two.command().args(["router", "debug"]).args(args));
    let plain = debug(&[]);
    assert_eq!(plain.code, Some(0), "{}", plain.stderr);
    let lines: Vec<&str> = plain.stdout.lines().collect();
    assert_eq!(lines[0], "main_loop");
    assert!(
        lines[1].starts_with("+ first  anthropic/claude-sonnet-4-6  first"),
        "{}",
        lines[1]
    );
    assert!(
        lines[2].starts_with("+ second  ollama/llama3.1  if those"),
        "{}",
        lines[2]
    );
    assert!(lines[2].contains("budget=32768"), "{}", lines[2]);
    assert!(lines[3].starts_with("- small  ollama/llama3.2:3b  is for `fast_classifier`"));
    assert!(
        lines[1].contains("no state in this process"),
        "{}",
        lines[1]
    );
    let vision = debug(&["--has-vision", "--has-tools"]);
    assert!(
        vision
            .stdout
            .contains("- second  ollama/llama3.1  lacks vision"),
        "{}",
        vision.stdout
    );
    let table = debug(&["--effort-table"]);
    assert!(
        table.stdout.contains("high → budget=32768"),
        "{}",
        table.stdout
    );
    let nobody = debug(&["--purpose", "embedding"]);
    assert_eq!(nobody.code, Some(1), "{}", nobody.stdout);
    assert!(
        nobody.stderr.contains("no route is for `embedding`"),
        "{}",
        nobody.stderr
    );
    assert_eq!(debug(&["--purpose", "maim"]).code, Some(64));
    assert_eq!(two.asked(), (0, 0));
}

#[test]
fn a_route_is_one_line_whatever_it_lacks() {
    let two = Two::new(answers("a"), answers("o"));
    two.routes(
        "[[router.route]]\nid = 'cloud'\npurpose = 'main_loop'\nprovider = 'bedrock'\n\
         model = 'claude-sonnet-4-6'\n",
    );
    let ran = run(two
        .command()
        .args(["router", "debug"])
        .env_remove("AWS_REGION"));
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[1].starts_with("- cloud  bedrock/claude-sonnet-4-6  no credentials"),
        "{lines:?}"
    );
}

#[test]
fn debug_explains_a_run_without_a_file_too() {
    let two = Two::new(answers("a"), answers("o"));
    let ran = run(two
        .command()
        .args(["--fallback-model", "claude-haiku-4-5", "router", "debug"]));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(
        lines[1].starts_with("+ anthropic:claude-sonnet-4-6:main_loop"),
        "{}",
        ran.stdout
    );
    assert!(
        lines[2].starts_with("+ anthropic:claude-haiku-4-5:main_loop"),
        "{}",
        ran.stdout
    );
}

#[test]
fn explain_tells_prices_and_what_failures_lead_to() {
    let two = Two::new(answers("a"), answers("o"));
    two.routes(ROUTES);
    two.ask(&["--session", "s"]);
    let ran = run(two
        .command()
        .args(["router", "explain", "--session", "s", "--json"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(told["routes"][0]["id"], "first");
    assert!(told["input_tokens"].as_u64().unwrap() > 0);
    let auth = told["failures"].as_array().unwrap().iter();
    let auth = auth.into_iter().find(|it| it["kind"] == "auth").unwrap();
    assert!(auth["next_route"].as_str().unwrap().contains("fallback_on"));
    let missing = run(two
        .command()
        .args(["router", "explain", "--session", "nonsuch"]));
    assert_eq!(missing.code, Some(66), "{}", missing.stderr);
}

#[test]
fn test_asks_before_it_spends_and_says_who_failed() {
    let two = Two::new(failing(&Fault::status(401), 9, "late"), answers("ok"));
    two.routes(ROUTES);
    let shown = run(two.command().args(["router", "test"]));
    assert_eq!((shown.code, two.asked()), (Some(0), (0, 0)));
    assert!(shown.stdout.contains("--yes"), "{}", shown.stdout);
    let ran = run(two.command().args(["router", "test", "--yes"]));
    assert_eq!((ran.code, two.asked()), (Some(1), (1, 1)));
    assert!(ran.stdout.contains("- first"), "{}", ran.stdout);
    assert!(ran.stdout.contains("+ second"), "{}", ran.stdout);
    let one = run(two.command().args(["router", "test", "second", "--yes"]));
    assert_eq!(one.code, Some(0), "{}", one.stderr);
    assert_eq!(
        run(two.command().args(["router", "test", "nonsuch"])).code,
        Some(64)
    );
}

#[test]
fn a_rehearsal_is_the_same_every_time_and_needs_nobody() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("ws");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("routes.toml"), ROUTES).unwrap();
    std::fs::write(
        folder.join("alone.toml"),
        &ROUTES[..ROUTES.find("[[router.route]]\nid = 'second'").unwrap()],
    )
    .unwrap();
    let go = |args: &[&str]| {
        let ran = run(bare(home.path(), &folder)
            .args(["--config", "alone.toml", "router", "simulate"])
            .args(["--sessions", "3", "--turns", "40"])
            .args(args));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    assert_eq!(go(&["--seed", "5"]), go(&["--seed", "5"]));
    assert_ne!(go(&["--seed", "5"]), go(&["--seed", "6"]));
    let compared: Value =
        serde_json::from_str(&go(&["--compare", "routes.toml", "--json"])).unwrap();
    assert_eq!(compared["first"]["hops"], 0.0);
    assert_eq!(compared["second"]["turns"], 120);
    std::fs::write(folder.join("storm.toml"), "[default]\nmtfb_secs = 3\n").unwrap();
    let wrong =
        run(bare(home.path(), &folder).args(["router", "simulate", "--outages", "storm.toml"]));
    assert_eq!(wrong.code, Some(78), "{}", wrong.stderr);
}
