//! What the table says of its commands, held against what they do.

use caliban_slash::{Asks, BUILT_IN, Category, Does, Entry};
use caliban_testkit::{After, Reply, Script};
use serde_json::{Value, json};

use crate::support::{Bench, Wire, run, run_with_input};

/// Every command with something to work on.
fn line(entry: &Entry) -> String {
    let arguments = match entry.name {
        "btw" => " What is a noun?",
        "rename" => " Better",
        "loop" => " --n=1 --interval=0",
        "add-dir" => " /",
        "feedback" => " It is fine.",
        _ => "",
    };
    format!("/{}{arguments}", entry.name)
}

/// A session with one exchange, in which a model has an answer to everything.
fn begun() -> Bench {
    let script = Script::new([Reply::text("Hello.")]).after(After::RepeatLast);
    let bench = Bench::new(Wire::Anthropic, script);
    let first = bench.run(["-p", "Say hello.", "--session", "s"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    bench
}

#[test]
fn every_command_does_what_it_says_and_asks_a_model_only_if_it_says_so() {
    for entry in BUILT_IN {
        let bench = begun();
        let ran = bench.run(["-p", &line(entry), "--session", "s"]);
        let about = format!("/{}: {}{}", entry.name, ran.stdout, ran.stderr);
        let asked = bench.server.model_requests().len() > 1;
        assert_eq!(asked, entry.asks == Asks::Model, "{about}");
        match entry.does {
            // Without the setting it says that nothing was sent; without a repository, that.
            Does::Act(_) if matches!(entry.name, "feedback" | "diff") => {
                assert_eq!(ran.code, Some(64), "{about}");
            }
            Does::Act(_) => {
                assert_eq!(ran.code, Some(0), "{about}");
                assert!(!ran.stdout.trim().is_empty(), "{about}");
            }
            Does::NeedsScreen { instead } => {
                assert_eq!(ran.code, Some(64), "{about}");
                assert!(ran.stderr.contains(instead), "{about}");
            }
            Does::Missing { part, instead } => {
                assert_eq!(ran.code, Some(64), "{about}");
                assert!(
                    ran.stderr.contains(part) && ran.stderr.contains(instead),
                    "{about}"
                );
            }
        }
    }
}

#[test]
fn the_first_frame_lists_exactly_what_works() {
    let bench = begun();
    let ran = run(bench
        .command()
        .args(["-p", "hi", "--output-format", "stream-json"]));
    let init: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    let mut listed: Vec<&str> = init["slash_commands"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let works = BUILT_IN.iter().filter(|entry| entry.works_anywhere());
    // The one skill that is built in can be typed, too.
    let mut expected: Vec<&str> = works
        .map(|entry| entry.name)
        .chain(["auto-memory"])
        .collect();
    listed.sort_unstable();
    expected.sort_unstable();
    assert_eq!(listed, expected);
}

#[test]
fn help_has_a_line_for_everything_that_works() {
    let help = begun().run(["-p", "/help"]).stdout;
    for entry in BUILT_IN {
        let is_named = help.contains(&entry.usage());
        let is_missing = matches!(entry.does, Does::Missing { .. });
        assert_eq!(is_named, !is_missing, "/{}\n{help}", entry.name);
    }
    let has_title = |category: &Category| help.contains(category.title());
    assert!(Category::ALL.iter().all(has_title), "{help}");
}

#[test]
fn the_page_of_commands_is_current() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/reference/slash-commands.md"
    );
    let page = std::fs::read_to_string(path).unwrap();
    assert!(
        page == caliban_slash::reference_page(),
        "{path} is out of date: run `cargo xtask docs`"
    );
}

/// A hook that keeps what it is told, and then does this.
fn hook(bench: &Bench, then: &str) {
    let settings = bench.home.path().join(".config/caliban");
    std::fs::create_dir_all(&settings).unwrap();
    let hook = format!(
        "[[hooks.UserPromptSubmit]]\nhooks = [{{ type = \"command\", command = \"cat > seen.json; {then}\" }}]\n"
    );
    std::fs::write(settings.join("settings.toml"), hook).unwrap();
}

#[test]
fn hooks_see_every_command_and_may_refuse_it() {
    let bench = begun();
    hook(&bench, "exit 2");
    for entry in BUILT_IN.iter().filter(|entry| entry.works_anywhere()) {
        let line = line(entry);
        let ran = bench.run(["-p", &line, "--session", "s"]);
        assert_eq!(ran.code, Some(1), "{line}: {}{}", ran.stdout, ran.stderr);
        let seen = bench.workspace.path().join("seen.json");
        let text = std::fs::read_to_string(&seen).unwrap();
        std::fs::remove_file(seen).unwrap();
        let told: Value = serde_json::from_str(&text).unwrap();
        let arguments = line.split_once(' ').map_or("", |(_, rest)| rest);
        let told = (&told["is_slash"], &told["command"], &told["args"]);
        let expected = (&json!(true), &json!(entry.name), &json!(arguments));
        assert_eq!(told, expected, "{line}");
    }
    assert_eq!(
        bench.server.model_requests().len(),
        1,
        "only the first prompt"
    );
    let ours = bench.workspace.path().join("CLAUDE.draft.md");
    assert!(!ours.exists());
}

#[test]
fn a_hook_may_put_another_command_in_place() {
    let bench = begun();
    let answer = r#"{"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "updatedInput": {"prompt": "/effort low"}}}"#;
    std::fs::write(bench.workspace.path().join("answer.json"), answer).unwrap();
    hook(&bench, "cat answer.json");
    let ran = bench.run(["-p", "/clear", "--session", "s"]);
    assert_eq!(ran.stdout, "effort: low\n", "{}", ran.stderr);
}

#[test]
fn commands_and_prompts_take_turns_in_one_stream() {
    let bench = begun();
    let user = |text: &str| format!("{}\n", json!({"type": "user", "content": text}));
    let lines = [
        "/rename Streamed",
        "/effort low",
        "/login",
        "Go on.",
        "/cost",
    ]
    .map(user);
    let mut command = bench.command();
    command.args(["-p", "--input-format", "stream-json"]);
    command.args(["--output-format", "stream-json"]);
    let ran = run_with_input(&mut command, lines.concat().as_bytes());
    let frames = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let results: Vec<Value> = frames
        .filter(|frame: &Value| frame["type"] == "result")
        .collect();
    let said = |index: usize| results[index]["result"].as_str().unwrap_or_default();
    assert_eq!(results.len(), 5, "{}{}", ran.stdout, ran.stderr);
    assert!(said(0).contains("Streamed"));
    assert!(said(1).contains("effort: low"));
    assert_eq!(results[2]["is_error"], true);
    assert_eq!(said(3), "Hello.");
    assert!(said(4).contains("claude-sonnet-4-6"));
}
