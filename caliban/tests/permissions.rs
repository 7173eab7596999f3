//! Permissions through the built binary: rules, modes, the remedy a refusal names, the log.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;

use caliban_testkit::{Match, Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Bench, Ran, Wire, bare, run};

fn calls(calls: &[(&str, Value)]) -> Script {
    let turns = calls
        .iter()
        .map(|(name, input)| Reply::tool(*name, input.clone()));
    Script::new(turns.chain([Reply::text("done")]))
}

fn write() -> Vec<(&'static str, Value)> {
    vec![("Write", json!({"path": "out.txt", "content": "x"}))]
}

fn bash(command: &str) -> Vec<(&'static str, Value)> {
    vec![("Bash", json!({"command": command}))]
}

/// Runs calls with these arguments and returns the result frame.
fn result(bench: &Bench, args: &[&str]) -> Value {
    let ran = bench.run(["-p", "go", "--output-format", "json"].iter().chain(args));
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

fn denied(result: &Value) -> usize {
    result["denials"].as_array().map_or(0, Vec::len)
}

fn perms(home: &Path, workspace: &Path, args: &[&str]) -> Ran {
    run(bare(home, workspace).arg("perms").args(args))
}

#[rstest]
#[case(&[], 1)]
#[case(&["--auto-allow"], 0)]
#[case(&["--allow", "Write"], 0)]
#[case(&["--allow", "Write:out.txt"], 0)]
#[case(&["--allow", "Write(./out.txt)"], 0)]
#[case(&["--allow", "Write:*.md"], 1)]
#[case(&["--allow", "Write", "--deny", "Write:*.txt"], 0)]
#[case(&["--deny", "Write:*.txt", "--allow", "Write"], 1)]
#[case(&["--deny", "Write", "--auto-allow"], 1)]
#[case(&["--ask", "Write", "--allow", "*"], 1)]
#[case(&["--permission-mode", "acceptEdits"], 0)]
#[case(&["--permission-mode", "acceptEdits", "--deny", "Write"], 1)]
#[case(&["--permission-mode", "dontAsk"], 0)]
#[case(&["--permission-mode", "dontAsk", "--deny", "Write"], 1)]
#[case(&["--permission-mode", "plan", "--auto-allow"], 1)]
#[case(&["--permission-mode", "default"], 1)]
#[case(&["--allow-dangerously-skip-permissions", "--permission-mode", "bypassPermissions", "--deny", "Write"], 0)]
#[case(&["--allow-dangerously-skip-permissions"], 1)]
#[case(&["--no-permissions"], 0)]
#[case(&["--permission-mode", "auto", "--disable-auto-mode"], 1)]
fn flags_decide_whether_a_file_is_written(#[case] args: &[&str], #[case] denials: usize) {
    let bench = Bench::new(Wire::Anthropic, calls(&write()));
    let result = result(&bench, args);
    assert_eq!(denied(&result), denials, "{result}");
    let written = bench.workspace.path().join("out.txt").exists();
    assert_eq!(written, denials == 0);
}

#[rstest]
#[case("", true)]
#[case("disable_auto_mode = true", false)]
#[case("disableAutoMode = true", false)]
fn settings_switch_the_classifier_off(#[case] settings: &str, #[case] is_asked: bool) {
    let bench = Bench::new(Wire::Anthropic, calls(&write()));
    let directory = bench.home.path().join(".config/caliban");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("settings.toml"), settings).unwrap();
    let flags = [
        "--output-format",
        "stream-json",
        "--permission-mode",
        "auto",
    ];
    let ran = bench.run(["-p", "go"].iter().chain(&flags));
    let init: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    let mode = if is_asked { "auto" } else { "default" };
    assert_eq!(init["permission_mode"], mode, "{init}");
    let warned = init["warnings"].to_string();
    assert_eq!(warned.contains("disable_auto_mode"), !is_asked, "{warned}");
    assert!(!bench.workspace.path().join("out.txt").exists());
    // The call and what follows its refusal; anything more is the classifier's.
    assert_eq!(bench.server.model_requests().len() > 2, is_asked);
}

#[rstest]
fn no_mode_opens_a_protected_place(
    #[values(
        ("Write", json!({"path": "AGENTS.md", "content": "x"})),
        ("Bash", json!({"command": "echo x > AGENTS.md"})),
        ("Bash", json!({"command": "touch AGENTS.md"})),
        ("Bash", json!({"command": "f=AGENTS.md; touch $f"}))
    )]
    call: (&str, Value),
    #[values(
        &["--permission-mode", "acceptEdits"],
        &["--permission-mode", "dontAsk"],
        &["--auto-allow"],
        &["--allow", "Write", "--allow", "Bash"]
    )]
    args: &[&str],
) {
    let bench = Bench::new(Wire::Anthropic, calls(&[call]));
    let result = result(&bench, args);
    assert_eq!(denied(&result), 1, "{result}");
    assert!(!bench.workspace.path().join("AGENTS.md").exists());
}

#[test]
fn the_log_is_read_from_a_time_or_a_day_on() {
    let (home, workspace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (since, code) in [("2026-06-01T00:00:00Z", 0), ("2026-06-01", 0), ("June", 64)] {
        let ran = perms(home.path(), workspace.path(), &["audit", "--since", since]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
    }
}

#[rstest]
#[case(&["--permission-mode", "bypassPermissions"], 78, "--allow-dangerously-skip-permissions")]
#[case(&["--permission-mode", "yolo"], 64, "acceptEdits")]
#[case(&["--no-permissions", "--allow", "Bash"], 64, "cannot be used with")]
#[case(&["--no-permissions", "--auto-allow"], 64, "cannot be used with")]
#[case(&["--allow", "Bsh:git *"], 64, "did you mean `Bash`")]
#[case(&["--settings", "{\"permissions\": {\"enforce\": true}}", "--allow-dangerously-skip-permissions"], 78, "permissions.enforce")]
#[case(&["--settings", "{\"permissions\": {\"enforce\": true}}", "--no-permissions"], 78, "permissions.enforce")]
#[case(&["--setting-sources", "nonsense"], 78, "managed, user, project or local")]
#[case(&["--settings", "{\"permissions\": {\"allow\": [\"Nope\"]}}"], 78, "no tool `Nope`")]
fn what_cannot_be_meant_does_not_start(
    #[case] args: &[&str],
    #[case] code: i32,
    #[case] says: &str,
) {
    let bench = Bench::new(Wire::Anthropic, calls(&[]));
    let ran = bench.run(["-p", "go"].iter().chain(args));
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    assert!(ran.stderr.contains(says), "{}", ran.stderr);
    assert!(bench.server.model_requests().is_empty());
}

#[test]
fn a_flag_beats_the_variable_beats_the_setting() {
    let mode = |flag: Option<&str>, variable: Option<&str>, setting: Option<&str>| {
        let bench = Bench::new(Wire::Anthropic, calls(&[]));
        if let Some(setting) = setting {
            let directory = bench.home.path().join(".config/caliban");
            std::fs::create_dir_all(&directory).unwrap();
            let text = format!("[permissions]\ndefault_mode = '{setting}'\n");
            std::fs::write(directory.join("settings.toml"), text).unwrap();
        }
        let mut command = bench.command();
        command.args(["-p", "go", "--output-format", "stream-json"]);
        command.args(flag.map(|mode| format!("--permission-mode={mode}")));
        command.envs(variable.map(|mode| ("CALIBAN_DEFAULT_PERMISSION_MODE", mode)));
        let ran = run(&mut command);
        let init: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
        init["permission_mode"]
            .as_str()
            .unwrap_or("none")
            .to_owned()
    };
    assert_eq!(mode(None, None, None), "default");
    assert_eq!(mode(None, None, Some("dontAsk")), "dontAsk");
    assert_eq!(
        mode(None, Some("acceptEdits"), Some("dontAsk")),
        "acceptEdits"
    );
    assert_eq!(
        mode(Some("plan"), Some("acceptEdits"), Some("dontAsk")),
        "plan"
    );
}

#[rstest]
#[case(write())]
#[case(bash("echo hi"))]
#[case(bash("echo 'it''s' && printf '%s' \"a b\""))]
#[case(bash("ls *.nothing; true"))]
#[case(bash("echo hi > out.txt"))]
#[case(bash("echo $(whoami)"))]
#[case(bash("eval \"$X\"; :"))]
#[case(bash("~/nothing || true"))]
#[case(vec![("Edit", json!({"path": "a[1]*.txt", "old_string": "a", "new_string": "b"}))])]
#[case(vec![("Write", json!({"path": "CLAUDE.md", "content": "x"}))])]
#[case(vec![("Write", json!({"path": ".git/hooks/pre-commit", "content": "x"}))])]
#[case(vec![("WebSearch", json!({"query": "x"}))])]
#[case(vec![("WebFetch", json!({"url": "https://example.invalid/a?b=*"}))])]
fn the_flags_that_a_refusal_names_allow_exactly_this_call(#[case] call: Vec<(&str, Value)>) {
    let bench = Bench::new(Wire::Anthropic, calls(&call));
    std::fs::write(bench.workspace.path().join("a[1]*.txt"), "a").unwrap();
    let refused = result(&bench, &[]);
    assert_eq!(denied(&refused), 1, "{refused}");
    let remedy = refused["denials"][0]["remedy"].as_str().unwrap();
    let flags = remedy.split('`').nth(1).unwrap();
    assert!(flags.contains("--allow "), "{remedy}");
    let again = Bench::new(Wire::Anthropic, calls(&call));
    std::fs::write(again.workspace.path().join("a[1]*.txt"), "a").unwrap();
    let flags = flags.replace(
        bench
            .workspace
            .path()
            .canonicalize()
            .unwrap()
            .to_str()
            .unwrap(),
        again
            .workspace
            .path()
            .canonicalize()
            .unwrap()
            .to_str()
            .unwrap(),
    );
    // As a user would: the shell takes the quotes off.
    let mut command = std::process::Command::new("sh");
    let binary = again.command();
    command
        .arg("-c")
        .arg(format!(
            "exec \"$0\" \"$@\" -p go --output-format json {flags}"
        ))
        .arg(binary.get_program())
        .args(binary.get_args())
        .env_clear()
        .envs(
            binary
                .get_envs()
                .filter_map(|(key, value)| Some((key, value?))),
        )
        .current_dir(again.workspace.path())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let ran = run(&mut command);
    let allowed: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(denied(&allowed), 0, "{flags}\n{allowed}");
}

#[test]
fn a_rule_reason_reaches_the_model() {
    let bench = Bench::new(Wire::Anthropic, calls(&bash("curl example.com")));
    let settings = json!({"permissions": {"rules": [
        {"pattern": "Bash:curl *", "action": "deny", "reason": "use WebFetch instead"}
    ]}});
    let result = result(
        &bench,
        &["--settings", &settings.to_string(), "--auto-allow"],
    );
    assert_eq!(denied(&result), 1);
    let body = bench.server.model_requests().pop().unwrap().json();
    assert!(body.to_string().contains("use WebFetch instead"));
}

#[test]
fn sub_agents_pass_the_same_gate() {
    let script = Script::new([
        Reply::tool("AgentTool", json!({"prompt": "sub"})),
        Reply::tool("Write", json!({"path": "out.txt", "content": "x"}))
            .when(Match::last_user("sub")),
        Reply::text("sub done"),
        Reply::text("done"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let args = ["--deny", "Write", "--auto-allow", "--fail-on-denial"];
    let ran = bench.run(["-p", "go", "--output-format", "json"].iter().chain(&args));
    assert!(!bench.workspace.path().join("out.txt").exists());
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["denials"][0]["tool"], "Write", "{result}");
    assert_eq!((denied(&result), ran.code), (1, Some(1)));
}

#[test]
fn decisions_are_logged_and_the_switch_stops_that() {
    let log = |bench: &Bench| {
        bench
            .home
            .path()
            .join(".local/state/caliban/permission-decisions.jsonl")
    };
    let script = || {
        calls(&[
            ("Read", json!({"path": "out.txt"})),
            ("Write", json!({"path": "out.txt", "content": "a\nb"})),
        ])
    };
    let bench = Bench::new(Wire::Anthropic, script());
    result(&bench, &[]);
    let text = std::fs::read_to_string(log(&bench)).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!(lines[0]["tool_name"], "Read");
    assert_eq!(lines[0]["action"], "allow");
    assert_eq!(
        lines[0]["matched_rule"],
        json!({"pattern": "Read", "action": "allow", "scope": "built-in"})
    );
    let rows = [
        (&lines[1], "ask", "rule"),
        (&lines[2], "deny", "unattended"),
    ];
    for (line, action, by) in rows {
        assert_eq!(line["action"], action);
        assert_eq!(
            line["matched_rule"],
            json!({"pattern": "Write", "action": "ask", "scope": "built-in"})
        );
        assert_eq!(line["decided_by"], by);
        assert_eq!(line["turn_index"], 2);
    }
    let shown = perms(
        bench.home.path(),
        bench.workspace.path(),
        &["audit", "--action", "deny"],
    );
    assert_eq!(shown.stdout.lines().count(), 1);
    let none = perms(
        bench.home.path(),
        bench.workspace.path(),
        &["audit", "--tool", "Edit"],
    );
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), "(empty)\n"));

    let quiet = Bench::new(Wire::Anthropic, script());
    result(
        &quiet,
        &["--settings", "{\"permissions\": {\"audit_log\": false}}"],
    );
    assert!(!log(&quiet).exists());
}

#[test]
fn a_log_that_cannot_be_written_is_told_once() {
    let bench = Bench::new(
        Wire::Anthropic,
        calls(&[
            ("Read", json!({"path": "a"})),
            ("Read", json!({"path": "b"})),
        ]),
    );
    let state = bench.home.path().join(".local");
    std::fs::create_dir_all(&state).unwrap();
    std::fs::write(state.join("state"), "in the way").unwrap();
    let ran = bench.run(["-p", "go", "--output-format", "stream-json"]);
    let told = ran.stdout.matches("\"audit_log\"").count();
    assert_eq!(told, 1, "{}", ran.stdout);
    assert_eq!(ran.code, Some(0));
}

/// What auto mode does with `make`, when the classifier answers like this.
#[rstest]
#[case("{\"verdict\": \"allow\", \"reason\": \"builds\"}", 0, "")]
#[case(
    "{\"verdict\": \"soft_deny\", \"reason\": \"unsure about it\"}",
    2,
    "unsure about it"
)]
#[case(
    "{\"verdict\": \"hard_deny\", \"reason\": \"it is evil\"}",
    2,
    "it is evil"
)]
#[case("I would allow it.", 2, "no verdict")]
fn auto_mode_asks_its_classifier_once_per_call(
    #[case] answer: &str,
    #[case] denials: usize,
    #[case] says: &str,
) {
    let is_classifier = || Match::any_text("without asking its user");
    let script = Script::new([
        Reply::text(answer).when(is_classifier()).times(2),
        Reply::tool("Bash", json!({"command": "true --x"})),
        Reply::tool("Bash", json!({"command": "true --x"})),
        Reply::text("done"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let result = result(&bench, &["--permission-mode", "auto"]);
    assert_eq!(denied(&result), denials, "{result}");
    let asked = bench
        .server
        .model_requests()
        .iter()
        .filter(|request| {
            request
                .json()
                .to_string()
                .contains("without asking its user")
        })
        .count();
    let unparsable = says == "no verdict";
    assert_eq!(asked, if unparsable { 2 } else { 1 });
    if denials > 0 {
        let reason = result["denials"].to_string();
        assert!(reason.contains(says), "{reason}");
    }
}

#[test]
fn auto_mode_decides_by_its_lists_first() {
    let bench = Bench::new(Wire::Anthropic, calls(&bash("sudo ls")));
    let denied_by_default = result(&bench, &["--permission-mode", "auto"]);
    assert_eq!(denied(&denied_by_default), 1);
    assert_eq!(bench.server.model_requests().len(), 2);
    let bench = Bench::new(Wire::Anthropic, calls(&bash("true")));
    let directory = bench.home.path().join(".config/caliban");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("auto-mode.toml"), "allow = ['Bash:true']").unwrap();
    let allowed = result(&bench, &["--permission-mode", "auto"]);
    assert_eq!(denied(&allowed), 0, "{allowed}");
}

#[test]
fn perms_add_list_test_and_remove_work_together() {
    let home = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    let perms = |args: &[&str]| perms(home.path(), work.path(), args);
    let git = r#"{"command": "git push"}"#;
    assert_eq!(perms(&["test", "Bash", git]).code, Some(2));
    let added = perms(&["add", "Bash:git *", "allow", "--comment", "fine"]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let tested = perms(&["test", "Bash", git]);
    assert_eq!(tested.stdout, "MATCH: pattern=Bash:git * action=allow\n");
    assert_eq!(tested.code, Some(0));
    let denied = perms(&[
        "add",
        "Bash:curl *",
        "deny",
        "--scope",
        "user",
        "--reason",
        "no",
    ]);
    assert_eq!(denied.code, Some(0), "{}", denied.stderr);
    let tested = perms(&["test", "Bash", r#"{"command": "git log && curl x"}"#]);
    assert_eq!(tested.stdout, "MATCH: pattern=Bash:curl * action=deny\n");
    assert_eq!(tested.code, Some(1));
    assert_eq!(perms(&["list"]).stdout, "1 allow Bash:git *  # fine\n");
    let json: Value =
        serde_json::from_str(&perms(&["list", "--scope", "user", "--json"]).stdout).unwrap();
    assert_eq!(
        json,
        json!([{"pattern": "Bash:curl *", "action": "deny", "scope": "user", "reason": "no"}])
    );
    let explained = perms(&["explain", "Bash", git]).stdout;
    assert!(
        explained
            .starts_with("Rule list (source order; first match wins):\n1 MATCH allow Bash:git *"),
        "{explained}"
    );
    // Flags count here too.
    assert_eq!(
        perms(&["test", "Bash", git, "--deny", "Bash:git push"]).code,
        Some(1)
    );
    assert_eq!(perms(&["remove", "--index", "2"]).code, Some(1));
    assert_eq!(perms(&["remove", "--index", "1"]).code, Some(0));
    assert_eq!(perms(&["test", "Bash", git]).code, Some(2));
    assert_eq!(perms(&["remove", "--pattern", "Bash:git *"]).code, Some(1));
}

#[test]
fn perms_checks_what_it_is_given() {
    let home = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    for (args, code) in [
        (&["test", "Bash", "{"] as &[&str], 64),
        (&["test", "Bash", "[]"], 64),
        (&["add", "Bsh", "allow"], 64),
        (&["add", "Bash", "permit"], 64),
        (&["add", "Bash", "allow", "--scope", "managed"], 64),
        (&["import", "--from", "nowhere.json"], 66),
        (&["list", "--scope", "nowhere"], 64),
    ] {
        let ran = perms(home.path(), work.path(), args);
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
        assert!(!ran.stderr.is_empty());
    }
}

#[test]
fn perms_imports_exports_and_lints() {
    let home = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    let perms = |args: &[&str]| perms(home.path(), work.path(), args);
    let claude = work.path().join("claude.json");
    let theirs =
        json!({"permissions": {"allow": ["Bash(npm run test:*)"], "deny": ["Read(./.env)"]}});
    std::fs::write(&claude, theirs.to_string()).unwrap();
    let from = claude.to_str().unwrap();
    assert_eq!(
        perms(&["import", "--from", from, "--dry-run"]).code,
        Some(0)
    );
    assert_eq!(perms(&["list", "--scope", "user"]).stdout, "(no rules)\n");
    assert_eq!(perms(&["import", "--from", from]).code, Some(0));
    let listed = perms(&["list", "--scope", "user"]).stdout;
    assert!(
        listed.contains("deny Read:.env") && listed.contains("allow Bash:npm run test:*"),
        "{listed}"
    );
    let toml = perms(&["export", "--scope", "user"]).stdout;
    assert!(toml.contains("[[permissions.rules]]"), "{toml}");
    let buckets: Value =
        serde_json::from_str(&perms(&["export", "--scope", "user", "--format", "json"]).stdout)
            .unwrap();
    assert_eq!(buckets["permissions"]["deny"], json!(["Read:.env"]));
    assert_eq!(perms(&["lint"]).stdout, "OK (no duplicate patterns)\n");
    let settings = home.path().join(".config/caliban/settings.toml");
    let double = "[[permissions.rules]]\npattern = 'Bash:git *'\naction = 'allow'\n".repeat(2);
    std::fs::write(settings, double).unwrap();
    let report = perms(&["lint", "--scope", "user"]);
    assert_eq!(report.code, Some(1));
    assert_eq!(
        report.stdout,
        "duplicate: pattern=\"Bash:git *\" action=allow\n"
    );
}

#[test]
fn a_workspace_cannot_allow_itself_anything() {
    let home = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(work.path().join(".caliban")).unwrap();
    std::fs::write(
        work.path().join(".caliban/settings.toml"),
        "[permissions]\nallow = ['Bash']\ndeny = ['Write']\n",
    )
    .unwrap();
    let test = |tool: &str, trust: bool| {
        let mut args = vec!["test", tool, r#"{"command": "ls", "path": "x"}"#];
        args.extend(trust.then_some("--trust-workspace"));
        perms(home.path(), work.path(), &args).code
    };
    assert_eq!(test("Bash", false), Some(2));
    assert_eq!(test("Bash", true), Some(0));
    assert_eq!(test("Write", false), Some(1));
    // Nor does a rule added by its owner vouch for the rest.
    let added = perms(home.path(), work.path(), &["add", "Bash:ls", "allow"]);
    assert!(added.stderr.contains("caliban trust"), "{}", added.stderr);
    assert_eq!(test("Bash", false), Some(2));
}

#[test]
fn rules_that_become_stricter_during_a_run_count_at_once() {
    // The first command waits until the settings were seen to have changed.
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            Reply::tool(
                "Bash",
                json!({"command": "while [ ! -e changed ]; do sleep 0.05; done"}),
            ),
            Reply::tool("Write", json!({"path": "out.txt", "content": "x"})),
            Reply::text("done"),
        ]),
    );
    let config = bench.home.path().join(".config/caliban");
    std::fs::create_dir_all(&config).unwrap();
    let settings = config.join("settings.toml");
    let allow = "[[permissions.rules]]\npattern = 'Bash'\naction = 'allow'\n";
    let write = |action: &str| {
        let rule = format!("[[permissions.rules]]\npattern = 'Write'\naction = '{action}'\n");
        std::fs::write(&settings, format!("{allow}{rule}")).unwrap();
    };
    write("allow");
    let mut child = bench
        .command()
        .args(["-p", "go", "--output-format", "stream-json"])
        .spawn()
        .unwrap();
    let mut denials = Value::Null;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let frame: Value = serde_json::from_str(&line.unwrap()).unwrap();
        match (frame["type"].as_str(), frame["subtype"].as_str()) {
            (Some("tool_use"), _) if frame["name"] == "Bash" => write("deny"),
            (Some("warning"), Some("config_change")) => {
                std::fs::write(bench.workspace.path().join("changed"), "").unwrap();
            }
            (Some("result"), _) => denials = frame["denials"].clone(),
            _ => {}
        }
    }
    child.wait().unwrap();
    assert_eq!(denials[0]["tool"], "Write", "{denials}");
    assert!(!bench.workspace.path().join("out.txt").exists());
}
