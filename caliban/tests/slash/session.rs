//! Commands about the session: questions beside it, repetition, names, copies, accounts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use caliban_testkit::{Fault, Reply, Usage};
use serde_json::{Value, json};

use crate::support::{Bench, Ran};
use crate::{after_an_exchange, bench};

fn settings(bench: &Bench, text: &str) {
    let directory = bench.home.path().join(".config/caliban");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("settings.toml"), text).unwrap();
}

fn in_session(bench: &Bench, prompt: &str) -> Ran {
    bench.run(["-p", prompt, "--session", "s"])
}

fn listed(bench: &Bench) -> Vec<Value> {
    let ran = bench.run(["sessions", "list", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str::<Value>(&ran.stdout)
        .unwrap()
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn a_side_question_goes_to_the_small_model_and_leaves_no_trace_but_its_cost() {
    let bench = bench(["Hello.", "A word.", "Yes."].map(Reply::text));
    settings(
        &bench,
        "[model_overrides]\nfast_classifier = 'claude-haiku-4-5'\n",
    );
    let ran = after_an_exchange(&bench, "/btw What is a noun?");
    assert_eq!(ran.stdout, "A word.\n", "{}", ran.stderr);
    let asked = bench.server.model_requests().remove(1).json();
    assert_eq!(asked["model"], "claude-haiku-4-5");
    let text = asked.to_string();
    assert!(text.contains("What is a noun?") && !text.contains("Say hello."));
    let cost = in_session(&bench, "/cost").stdout;
    assert!(cost.contains("anthropic/claude-haiku-4-5"), "{cost}");
    assert!(
        cost.contains("for judging calls and side questions"),
        "{cost}"
    );
    assert_eq!(in_session(&bench, "Go on?").code, Some(0));
    let last = bench.server.model_requests().remove(2).json()["messages"].to_string();
    assert!(
        last.contains("Say hello.") && !last.contains("noun"),
        "{last}"
    );
}

#[test]
fn a_side_question_that_fails_is_a_failure() {
    let bench = bench([Reply::fault(Fault::status(400))]);
    let ran = bench.run(["-p", "/btw why?"]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_prompt_is_repeated_and_the_last_answer_is_the_result() {
    let bench = bench(["one", "two", "three", "four"].map(Reply::text));
    let ran = after_an_exchange(&bench, "/loop --interval=0");
    assert_eq!(
        (ran.stdout.as_str(), ran.code),
        ("four\n", Some(0)),
        "{}",
        ran.stderr
    );
    let requests = bench.server.model_requests();
    assert_eq!(requests.len(), 4);
    let last = requests[3].json()["messages"].to_string();
    assert_eq!(last.matches("Say hello.").count(), 4, "{last}");
    assert!(!last.contains("/loop"));
}

#[test]
fn a_repetition_ends_at_the_first_failure() {
    let replies = [
        Reply::text("one"),
        Reply::text("two"),
        Reply::fault(Fault::status(400)),
        Reply::text("never"),
    ];
    let bench = bench(replies);
    let ran = after_an_exchange(&bench, "/loop --n=5 --interval=0");
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(bench.server.model_requests().len(), 3);
}

#[test]
fn all_repetitions_together_have_the_turns_of_one() {
    let bench = bench(["one", "two", "three", "four"].map(Reply::text));
    assert_eq!(in_session(&bench, "Say hello.").code, Some(0));
    let args = [
        "-p",
        "/loop --n=9 --interval=0",
        "--session",
        "s",
        "--max-turns",
        "2",
    ];
    let ran = bench.run(args);
    assert_eq!(ran.code, Some(75), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(bench.server.model_requests().len(), 3);
}

#[test]
fn there_must_be_something_to_repeat() {
    let ran = bench([Reply::text("never")]).run(["-p", "/loop"]);
    assert_eq!(ran.code, Some(64));
    assert!(ran.stderr.contains("there is none yet"), "{}", ran.stderr);
}

#[test]
fn a_renamed_session_goes_on_by_its_new_name_and_its_id() {
    let bench = bench(["Hello.", "Yes.", "Again."].map(Reply::text));
    assert_eq!(in_session(&bench, "Say hello.").code, Some(0));
    let id = listed(&bench)[0]["session_id"].clone();
    let ran = in_session(&bench, "/rename Greetings and more!");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let all = listed(&bench);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0]["title"], "Greetings and more!");
    assert_eq!(all[0]["name"], "Greetings-and-more");
    assert_eq!(all[0]["session_id"], id);
    let gone = bench.run(["-p", "Go on?", "--resume", "s"]);
    assert_eq!(gone.code, Some(66), "{}", gone.stdout);
    for name in ["Greetings-and-more", id.as_str().unwrap()] {
        let ran = bench.run(["-p", "Go on?", "--resume", name]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let last = bench.server.model_requests().remove(1).json();
    assert!(last["messages"].to_string().contains("Say hello."));
}

#[test]
fn a_name_that_is_taken_or_is_none_is_no_name() {
    let bench = bench(["Hello.", "Other."].map(Reply::text));
    let other = bench.run(["-p", "Say other.", "--session", "other"]);
    assert_eq!(other.code, Some(0), "{}", other.stderr);
    let ran = after_an_exchange(&bench, "/rename other");
    assert_eq!(ran.code, Some(64), "{}", ran.stdout);
    assert!(ran.stderr.contains("exists already"), "{}", ran.stderr);
    let ran = in_session(&bench, "/rename 名前");
    assert!(
        ran.stdout.contains("`--resume s` opens it"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_title_alone_does_not_take_the_system_prompt_away() {
    let bench = bench([Reply::text("Hello.")]);
    assert_eq!(in_session(&bench, "/rename First").code, Some(0));
    let ran = bench.run(["-p", "Say hello.", "--resume", "First"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let asked = bench.server.model_requests().remove(0).json();
    assert!(asked["system"].to_string().len() > 20, "{asked}");
    assert_eq!(listed(&bench)[0]["title"], "First");
}

#[test]
fn a_copy_is_a_session_of_its_own() {
    let bench = bench(["Hello.", "In the copy.", "In the first."].map(Reply::text));
    let ran = after_an_exchange(&bench, "/fork other");
    assert!(
        ran.stdout.contains("--resume other"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    let copy = bench.run(["-p", "Copy?", "--resume", "other"]);
    assert_eq!(copy.stdout, "In the copy.\n", "{}", copy.stderr);
    assert_eq!(in_session(&bench, "First?").stdout, "In the first.\n");
    let last = bench.server.model_requests().remove(2).json()["messages"].to_string();
    assert!(
        last.contains("Say hello.") && !last.contains("Copy?"),
        "{last}"
    );
    let again = in_session(&bench, "/fork other");
    assert_eq!(again.code, Some(64), "{}", again.stdout);
}

#[test]
fn what_is_not_there_cannot_be_copied() {
    let ran = bench([Reply::text("never")]).run(["-p", "/fork"]);
    assert_eq!(ran.code, Some(64));
    assert!(ran.stderr.contains("nothing to copy"), "{}", ran.stderr);
}

#[test]
fn models_are_listed_with_a_mark() {
    let bench = bench([Reply::text("never")]);
    let ran = bench.run(["-p", "/model"]);
    assert!(
        ran.stdout.contains("\n* claude-sonnet-4-6\n"),
        "{}",
        ran.stdout
    );
    assert!(bench.server.model_requests().is_empty());
    let silent = bench
        .command()
        .args(["-p", "/model"])
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
        .output()
        .unwrap();
    let text = String::from_utf8(silent.stdout).unwrap();
    assert!(
        text.contains("did not say") && text.contains("* claude-sonnet-4-6"),
        "{text}"
    );
}

#[test]
fn costs_tell_what_the_cache_saved() {
    let usage = Usage {
        input: 10,
        output: 10,
        cache_read: 100_000,
        ..Usage::default()
    };
    let bench = bench([Reply::text("Hello.").usage(usage)]);
    let lines = ["Say hello.", "/cost"]
        .map(|text| format!("{}\n", json!({"type": "user", "content": text})));
    let mut command = bench.command();
    command.args([
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
    ]);
    let ran = crate::support::run_with_input(&mut command, lines.concat().as_bytes());
    // $3.00 for a million without a cache, $0.30 from it.
    assert!(
        ran.stdout.contains("$0.2700 saved by the cache"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_full_window_is_warned_of() {
    let usage = |input| Usage {
        input,
        output: 10,
        ..Usage::default()
    };
    for (input, is_warned) in [(1_000, false), (170_000, true)] {
        let bench = bench([Reply::text("Hello.").usage(usage(input))]);
        settings(&bench, "auto_compact_threshold = false\n");
        let lines = ["Say hello.", "/context"]
            .map(|text| format!("{}\n", json!({"type": "user", "content": text})));
        let mut command = bench.command();
        command.args([
            "-p",
            "--model",
            "claude-haiku-4-5",
            "--input-format",
            "stream-json",
        ]);
        command.args(["--output-format", "stream-json"]);
        let ran = crate::support::run_with_input(&mut command, lines.concat().as_bytes());
        assert_eq!(
            ran.stdout
                .contains("approaching limit (warn threshold: 80%)"),
            is_warned,
            "{}",
            ran.stdout
        );
        assert!(ran.stdout.contains("largest parts"));
    }
}

#[test]
fn an_export_that_cannot_be_written_is_no_wrong_command() {
    let bench = bench([Reply::text("Hello.")]);
    let ran = after_an_exchange(&bench, "/export none/out.md");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("none/out.md` cannot be written: No such"),
        "{}",
        ran.stderr
    );
    std::fs::write(bench.workspace.path().join("taken.md"), "mine").unwrap();
    let ran = in_session(&bench, "/export taken.md");
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(ran.stderr.contains("name another file"), "{}", ran.stderr);
}

#[test]
fn exports_of_a_day_get_names_of_their_own() {
    let bench = bench([Reply::text("Hello.")]);
    let first = after_an_exchange(&bench, "/export");
    let second = in_session(&bench, "/export");
    assert_eq!(
        (first.code, second.code),
        (Some(0), Some(0)),
        "{}",
        second.stderr
    );
    assert!(second.stdout.contains("-2.md"), "{}", second.stdout);
    let outside = bench.home.path().join("out.md");
    let path = format!("/export {}", outside.display());
    let ran = bench.run(["-p", &path, "--session", "s", "--restrict-paths"]);
    assert_eq!(ran.code, Some(64), "{}", ran.stdout);
    assert!(!outside.exists());
}

/// Takes one request and returns its head and body.
fn take_one(listener: &TcpListener) -> (String, Value) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    stream
        .write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        .unwrap();
    (head, serde_json::from_slice(&body).unwrap())
}

#[test]
fn feedback_is_the_words_and_nothing_else() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let bench = bench([Reply::text("Hello.")]);
    settings(
        &bench,
        &format!("feedback_url = 'http://{address}/box?to=us'\n"),
    );
    let taking = std::thread::spawn(move || take_one(&listener));
    let ran = after_an_exchange(&bench, "/bug It  broke.");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.contains("to=us"), "{}", ran.stdout);
    let (head, body) = taking.join().unwrap();
    assert!(head.starts_with("POST /box?to=us "), "{head}");
    let mut keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    keys.sort_unstable();
    assert_eq!(keys, ["platform", "text", "version"]);
    assert_eq!(body["text"], "It  broke.");
}

#[test]
fn feedback_that_nobody_takes_is_an_error() {
    let bench = bench([]);
    let none = bench.run(["-p", "/feedback hm"]);
    assert!(
        none.stderr.contains("no `feedback_url` is set"),
        "{}",
        none.stderr
    );
    settings(&bench, "feedback_url = 'http://127.0.0.1:9/'\n");
    let closed = bench.run(["-p", "/feedback hm"]);
    assert_eq!(closed.code, Some(64));
    assert!(
        closed.stderr.contains("did not take it"),
        "{}",
        closed.stderr
    );
    settings(&bench, "feedback_url = 'file:///etc/passwd'\n");
    let odd = bench.run(["-p", "/feedback hm"]);
    assert!(odd.stderr.contains("not an address"), "{}", odd.stderr);
}

#[test]
fn tasks_are_listed() {
    let todo = json!({"todos": [{"id": "a", "content": "Paint it", "status": "in_progress"}]});
    let bench = bench([Reply::tool("TodoWrite", todo), Reply::text("Noted.")]);
    let ran = after_an_exchange(&bench, "/tasks");
    assert!(ran.stdout.contains("no background jobs"), "{}", ran.stdout);
    assert!(ran.stdout.contains("Paint it"), "{}", ran.stdout);
}

#[test]
fn a_review_is_a_prompt_that_a_command_of_the_same_name_replaces() {
    let bench = bench(["Fine.", "Own."].map(Reply::text));
    let ran = bench.run(["-p", "/review src/a.rs"]);
    assert_eq!(ran.stdout, "Fine.\n", "{}", ran.stderr);
    let asked = bench.server.model_requests().remove(0).json()["messages"].to_string();
    assert!(
        asked.contains("git diff HEAD") && asked.contains("src/a.rs"),
        "{asked}"
    );
    let commands = bench.workspace.path().join(".caliban/commands");
    std::fs::create_dir_all(&commands).unwrap();
    std::fs::write(commands.join("review.md"), "My own way: $ARGUMENTS").unwrap();
    let own = bench.run(["-p", "/review src/a.rs"]);
    assert_eq!(own.stdout, "Own.\n", "{}", own.stderr);
    let asked = bench.server.model_requests().remove(1).json()["messages"].to_string();
    assert!(
        asked.contains("My own way: src/a.rs") && !asked.contains("colleague"),
        "{asked}"
    );
}

#[test]
fn hooks_are_counted_by_event() {
    let bench = bench([]);
    let handler = "{ type = 'command', command = 'true' }";
    settings(
        &bench,
        &format!(
            "[[hooks.Stop]]\nhooks = [{handler}, {handler}]\n[[hooks.PreToolUse]]\nhooks = [{handler}]\n"
        ),
    );
    let text = bench.run(["-p", "/hooks"]).stdout;
    assert!(
        text.contains("2 handlers") && text.contains("1 handler\n"),
        "{text}"
    );
}

/// What the next run of the session begins with.
fn begins_with(bench: &Bench, more: &[&str]) -> (Value, Value) {
    let form = ["--output-format", "stream-json"];
    let args = ["-p", "Go on.", "--session", "s"];
    let ran = bench.run(args.iter().chain(&form).chain(more));
    let init: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    (init["model"].clone(), init["permission_mode"].clone())
}

#[test]
fn a_model_that_was_chosen_answers_after_a_resume() {
    let bench = bench(["Hello.", "Yes."].map(Reply::text));
    let ran = after_an_exchange(&bench, "/model claude-haiku-4-5");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let (model, _) = begins_with(&bench, &[]);
    assert_eq!(model, "anthropic/claude-haiku-4-5");
    let asked = bench.server.model_requests().remove(1).json();
    assert_eq!(asked["model"], "claude-haiku-4-5");
}

#[test]
fn an_effort_that_was_chosen_lasts_until_another_one_is() {
    let bench = bench(["Hello.", "Yes.", "In a copy.", "No."].map(Reply::text));
    let sent = |nth: usize| bench.server.model_requests().remove(nth).json();
    let ran = after_an_exchange(&bench, "/effort low");
    assert_eq!(ran.stdout, "effort: low\n", "{}", ran.stderr);
    assert_eq!(sent(0)["output_config"], Value::Null, "nobody had said any");
    // The settings count for sessions that were told nothing.
    settings(&bench, "effort = 'high'\n");
    assert_eq!(in_session(&bench, "Go on.").code, Some(0));
    assert_eq!(sent(1)["output_config"]["effort"], "low");
    let copied = ["-p", "Go on.", "-r", "s", "--fork-session"];
    assert_eq!(bench.run(copied).code, Some(0));
    assert_eq!(sent(2)["output_config"]["effort"], "low");
    assert_eq!(in_session(&bench, "/effort medium").code, Some(0));
    assert_eq!(in_session(&bench, "Go on.").code, Some(0));
    assert_eq!(sent(3)["output_config"]["effort"], "medium");
}

#[test]
fn an_effort_of_the_settings_is_not_kept() {
    let bench = bench(["Hello.", "Yes."].map(Reply::text));
    settings(&bench, "effort = 'high'\n");
    assert_eq!(in_session(&bench, "Say hello.").code, Some(0));
    settings(&bench, "effort = 'low'\n");
    assert_eq!(in_session(&bench, "Go on.").code, Some(0));
    let sent = bench.server.model_requests();
    let efforts = sent
        .iter()
        .map(|it| it.json()["output_config"]["effort"].clone());
    assert_eq!(efforts.collect::<Vec<_>>(), ["high", "low"]);
}

#[test]
fn plan_mode_lasts_until_the_operator_ends_it() {
    let replies = [
        Reply::text("Hello."),
        Reply::tool("ExitPlanMode", json!({"plan": "p"})),
        Reply::text("Planned."),
        Reply::text("Yes."),
    ];
    let bench = bench(replies);
    let ran = after_an_exchange(&bench, "/plan");
    assert!(ran.stdout.starts_with("Plan mode is on"), "{}", ran.stdout);
    // The model cannot end what the operator began, in a later run either.
    let ran = in_session(&bench, "Go on.");
    assert_eq!(ran.stdout, "Planned.\n", "{}", ran.stderr);
    let ran = in_session(&bench, "/status");
    assert!(ran.stdout.contains("mode       plan"), "{}", ran.stdout);
    let ran = in_session(&bench, "/plan");
    assert_eq!(ran.stdout, "Plan mode is off.\n", "{}", ran.stderr);
    assert_eq!(begins_with(&bench, &[]).1, "default");
}

#[test]
fn a_flag_ends_the_plan_mode_of_an_earlier_run() {
    let bench = bench(["Hello.", "Yes.", "Again."].map(Reply::text));
    after_an_exchange(&bench, "/plan");
    let (_, mode) = begins_with(&bench, &["--permission-mode", "acceptEdits"]);
    assert_eq!(mode, "acceptEdits");
    assert_eq!(begins_with(&bench, &[]).1, "acceptEdits");
}

#[test]
fn a_named_session_may_begin_with_a_choice() {
    let bench = bench([Reply::text("Hello.")]);
    for command in ["/model claude-haiku-4-5", "/plan"] {
        let ran = in_session(&bench, command);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(bench.run(["-p", command]).code, Some(0));
    }
    assert_eq!(listed(&bench).len(), 1, "only what was named is kept");
    let (model, mode) = begins_with(&bench, &[]);
    assert_eq!(
        (model, mode),
        (json!("anthropic/claude-haiku-4-5"), json!("plan"))
    );
}

#[test]
fn a_model_of_another_vendor_is_not_asked_of_this_one() {
    let bench = bench(["Hello.", "Yes."].map(Reply::text));
    let ran = after_an_exchange(&bench, "/model gpt-5.5");
    assert_eq!(ran.code, Some(64), "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains("start caliban with `--model gpt-5.5`"),
        "{}",
        ran.stderr
    );
    assert_eq!(begins_with(&bench, &[]).0, "anthropic/claude-sonnet-4-6");
}

#[test]
fn a_command_with_nothing_to_do_begins_no_session() {
    let bench = bench([Reply::text("never")]);
    for command in ["/compact", "/recap", "/status", "/clear"] {
        let ran = in_session(&bench, command);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    assert_eq!(listed(&bench), Vec::<Value>::new());
}

#[test]
fn the_cost_of_a_copy_adds_up() {
    let usage = Usage {
        input: 1_000_000,
        ..Usage::default()
    };
    let bench = bench([Reply::text("Hello.").usage(usage), Reply::text("Again.")]);
    let ran = after_an_exchange(&bench, "/fork Copy");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = bench.run(["-p", "Go on.", "--session", "Copy"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let row = |report: &str, name: &str| {
        let row = report.lines().find(|line| line.starts_with(name));
        let amount = row.and_then(|row| row.split('$').nth(1)?.split(',').next());
        amount
            .unwrap_or_else(|| panic!("{name}: {report}"))
            .parse::<f64>()
            .unwrap()
    };
    let told = bench.run(["-p", "/cost", "--session", "Copy"]).stdout;
    let parts = row(&told, "anthropic/") + row(&told, "before the copy");
    assert!((row(&told, "session") - parts).abs() < 0.000_2, "{told}");
    let told = bench.run(["-p", "/usage", "--session", "Copy"]).stdout;
    let row = told
        .lines()
        .find(|line| line.starts_with("before the copy"));
    assert!(row.is_some_and(|row| row.contains("1000000 in")), "{told}");
}
