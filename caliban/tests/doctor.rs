//! `caliban doctor`: its rows, its exit code, and that it leaves and runs nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use caliban_testkit::{ModelEntry, Script};
use rstest::rstest;
use serde_json::Value;
use support::homes::{project, user, write};
use support::{Bench, Ran, Wire, bare, run};

/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:1";

fn bench(script: Script) -> Bench {
    Bench::new(Wire::Anthropic, script)
}

/// The binary without any provider's variables.
fn doctor(bench: &Bench) -> Command {
    let mut command = bare(bench.home.path(), bench.workspace.path());
    command.arg("doctor");
    command
}

/// The line of a check.
fn row<'a>(ran: &'a Ran, name: &str) -> &'a str {
    let is_its = |line: &&str| line.split(' ').nth(1) == Some(name);
    let mut rows = ran.stdout.lines().skip(1).filter(is_its);
    rows.next()
        .unwrap_or_else(|| panic!("no `{name}` in {ran:?}"))
}

fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).unwrap().next().is_none()
}

#[test]
fn the_documented_rows_come_first_and_nothing_is_left_behind() {
    let bench = bench(Script::new([]));
    let ran = run(&mut doctor(&bench));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let names: Vec<&str> = ran
        .stdout
        .lines()
        .skip(1)
        .map(|line| line.split(' ').nth(1).unwrap())
        .collect();
    assert_eq!(
        names[..11],
        [
            "settings",
            "sandbox",
            "checkpoint_store",
            "session_store",
            "skills",
            "claudemd",
            "workspace",
            "ollama",
            "openai",
            "anthropic",
            "google"
        ]
    );
    let header = format!("caliban doctor — {} check(s):", names.len());
    assert_eq!(ran.stdout.lines().next(), Some(header.as_str()));
    assert_eq!(
        row(&ran, "openai"),
        "– openai — OPENAI_BASE_URL unset (no probe attempted; use --deep to ping api.openai.com)"
    );
    assert!(row(&ran, "sandbox").starts_with("! sandbox — off"));
    assert!(row(&ran, "claudemd").starts_with("! claudemd — no CLAUDE.md found in ancestry"));
    assert!(row(&ran, "model").contains("set `ANTHROPIC_API_KEY`"));
    let workspace = bench.workspace.path().canonicalize().unwrap();
    assert_eq!(
        row(&ran, "workspace"),
        format!("✓ workspace — {} (writable)", workspace.display())
    );
    assert!(is_empty(bench.home.path()) && is_empty(bench.workspace.path()));
}

#[test]
fn what_is_there_is_counted() {
    let bench = bench(Script::new([]));
    user(
        &bench,
        "model = 'gpt-5.5'\nmodle = 'x'\n[[permissions.rules]]\npattern = 'Bash:ls'\naction = 'allow'\n[[permissions.rules]]\npattern = 'Bash:ls'\naction = 'allow'\n",
    );
    write(&bench.workspace.path().join("CLAUDE.md"), "Be brief.");
    let skill = bench.workspace.path().join(".caliban/skills/good/SKILL.md");
    write(&skill, "---\nname: good\ndescription: d\n---\nText");
    let skill = bench.workspace.path().join(".caliban/skills/bad/SKILL.md");
    write(&skill, "no front matter");
    let ran = run(doctor(&bench).env("OPENAI_API_KEY", "k"));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert_eq!(row(&ran, "settings"), "! settings — 1 scope file(s) loaded");
    assert!(
        ran.stdout
            .contains("unknown key `modle`; did you mean `model`?"),
        "{}",
        ran.stdout
    );
    assert_eq!(
        row(&ran, "claudemd"),
        "✓ claudemd — 1 CLAUDE.md ancestor(s) found"
    );
    assert!(row(&ran, "skills").starts_with("! skills — 2 skill(s) loaded (scanned: "));
    assert!(ran.stdout.contains("bad/SKILL.md` is not used"));
    assert_eq!(row(&ran, "model"), "✓ model — openai/gpt-5.5");
    assert_eq!(
        row(&ran, "permissions"),
        "! permissions — 2 rule(s) beside the built-in ones, mode default"
    );
    assert!(ran.stdout.contains("user: duplicate: pattern=\"Bash:ls\""));
}

#[rstest]
#[case("ollama", "OLLAMA_BASE_URL", "")]
#[case("openai", "OPENAI_BASE_URL", "/v1")]
#[case("anthropic", "ANTHROPIC_BASE_URL", "")]
#[case("google", "GEMINI_BASE_URL", "")]
fn a_configured_address_is_called(#[case] name: &str, #[case] variable: &str, #[case] path: &str) {
    let bench = bench(Script::new([]));
    let keys = |command: &mut Command, key: &str| {
        for variable in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"] {
            command.env(variable, key);
        }
    };
    let url = format!("{}{path}", bench.server.url());
    let mut command = doctor(&bench);
    keys(&mut command, "k");
    let ran = run(command.env(variable, &url));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert_eq!(
        row(&ran, name),
        format!("✓ {name} — {url} reachable (1 model(s))")
    );
    // Nobody else was called, and the model was not asked anything.
    assert_eq!(bench.server.requests().len(), 1);
    assert!(bench.server.model_requests().is_empty());

    let ran = run(doctor(&bench).env(variable, NOWHERE));
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    let failed = format!("✗ {name} — {NOWHERE} cannot be used: ");
    assert!(row(&ran, name).starts_with(&failed), "{}", ran.stdout);

    let ran = run(doctor(&bench).env(variable, "not a url"));
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(row(&ran, name).contains("is not a usable base URL"));
}

#[rstest]
#[case("openai", "OPENAI", "/v1")]
#[case("anthropic", "ANTHROPIC", "")]
#[case("google", "GEMINI", "")]
fn a_wrong_key_fails_and_a_missing_one_warns(
    #[case] name: &str,
    #[case] prefix: &str,
    #[case] path: &str,
) {
    let bench = bench(Script::new([]).require_key("right"));
    let url = format!("{}{path}", bench.server.url());
    let with = |key: &str| {
        run(doctor(&bench)
            .env(format!("{prefix}_BASE_URL"), &url)
            .env(format!("{prefix}_API_KEY"), key))
    };
    let ran = with("wrong");
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    let failed = format!("✗ {name} — {url} reachable, but the key is not accepted: ");
    assert!(row(&ran, name).starts_with(&failed), "{}", ran.stdout);
    let ran = with("");
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert_eq!(
        row(&ran, name),
        format!("! {name} — {url} reachable, but asks for a key: set `{prefix}_API_KEY`")
    );
    assert_eq!(with("right").code, Some(0));
}

#[rstest]
#[case(&["doctor", "--deep", "--model", "claude-haiku-4-5"], 0, "; `claude-haiku-4-5` is among them")]
#[case(&["--model", "claude-haiku-4-5", "doctor", "--deep"], 0, "; `claude-haiku-4-5` is among them")]
#[case(&["doctor", "--deep", "--model", "claude-9"], 1, ", but `claude-9` is not among them")]
#[case(&["doctor", "--deep", "--provider", "anthropic", "--model", "gpt-5.5"], 1, "add `--provider openai`")]
#[case(&["doctor", "--model", "claude-9"], 0, "reachable (1 model(s))")]
fn deep_looks_the_model_up(#[case] args: &[&str], #[case] code: i32, #[case] text: &str) {
    let bench = bench(Script::new([]).model(ModelEntry::new("claude-haiku-4-5-20251001")));
    let mut command = bare(bench.home.path(), bench.workspace.path());
    let ran = run(command
        .args(args)
        .env("ANTHROPIC_API_KEY", "k")
        .env("ANTHROPIC_BASE_URL", bench.server.url())
        .env("OLLAMA_BASE_URL", bench.server.url()));
    assert_eq!(ran.code, Some(code), "{}", ran.stdout);
    assert!(row(&ran, "anthropic").contains(text), "{}", ran.stdout);
    assert!(
        row(&ran, "ollama").starts_with("✓ ollama"),
        "{}",
        ran.stdout
    );
}

#[test]
fn deep_without_keys_calls_nobody_but_ollama() {
    let bench = bench(Script::new([]));
    let ran = run(doctor(&bench)
        .args(["--deep", "--provider", "ollama"])
        .env("OLLAMA_BASE_URL", bench.server.url()));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    for (name, variable) in [
        ("openai", "OPENAI"),
        ("anthropic", "ANTHROPIC"),
        ("google", "GEMINI"),
    ] {
        assert_eq!(
            row(&ran, name),
            format!("! {name} — no API key (no probe attempted): set `{variable}_API_KEY`")
        );
    }
    // A run that needs the key could not begin.
    let ran = run(doctor(&bench)
        .args(["--deep", "--provider", "openai"])
        .env("OLLAMA_BASE_URL", bench.server.url()));
    assert_eq!(ran.code, Some(1));
    assert!(row(&ran, "openai").starts_with("✗ openai — no API key"));
}

#[rstest]
#[case("model = \n", "settings.toml:1:")]
#[case("[permissions]\ndefaultMod = 'plan'\n", "did you mean `default_mode`?")]
fn broken_settings_are_a_row_and_the_rest_is_checked(#[case] text: &str, #[case] says: &str) {
    let bench = bench(Script::new([]));
    user(&bench, text);
    let ran = run(doctor(&bench)
        .env("ANTHROPIC_BASE_URL", bench.server.url())
        .env("ANTHROPIC_API_KEY", "k"));
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(1), ""),
        "{}",
        ran.stdout
    );
    assert!(row(&ran, "settings").starts_with("✗ settings — "));
    assert!(ran.stdout.contains(says), "{}", ran.stdout);
    assert!(row(&ran, "anthropic").ends_with("reachable (1 model(s))"));
    assert_eq!(
        row(&ran, "hooks"),
        "– hooks — not checked: the settings cannot be read"
    );
}

#[test]
fn broken_hooks_and_rules_have_their_own_rows() {
    let bench = bench(Script::new([]));
    write(&bench.workspace.path().join("CLAUDE.md"), "Be brief.");
    user(
        &bench,
        "[[hooks.PreToolUse]]\ntype = 'comand'\n[permissions]\nallow = ['Bash(']\n",
    );
    let ran = run(&mut doctor(&bench));
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(
        row(&ran, "hooks").starts_with("✗ hooks — "),
        "{}",
        ran.stdout
    );
    assert!(row(&ran, "permissions").starts_with("✗ permissions — "));
    assert!(row(&ran, "settings").starts_with("✓ "));
    assert!(row(&ran, "claudemd").starts_with("✓ "), "{}", ran.stdout);
}

/// Settings of a workspace whose every program would leave a mark.
fn canaries(bench: &Bench) -> std::path::PathBuf {
    let mark = bench.home.path().join("ran");
    let script = bench.workspace.path().join("canary");
    write(
        &script,
        &format!("#!/bin/sh\ntouch '{}'\necho key\n", mark.display()),
    );
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.display();
    project(
        bench,
        &format!(
            "[[api_key_helper]]\ncommand = '{script}'\n[[hooks.SessionStart]]\ntype = 'command'\ncommand = '{script}'\n[[hooks.PreToolUse]]\nmatcher = 'Bash'\nhooks = [{{ type = 'command', command = '{script}' }}]\n"
        ),
    );
    mark
}

#[test]
fn an_untrusted_workspace_is_told_and_nothing_of_it_runs() {
    let bench = bench(Script::new([]));
    let mark = canaries(&bench);
    let ran = run(doctor(&bench)
        .arg("--deep")
        .env("ANTHROPIC_BASE_URL", bench.server.url())
        .env("OLLAMA_BASE_URL", bench.server.url()));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert_eq!(
        row(&ran, "trust"),
        "! trust — the workspace is not trusted; look at its settings and run `caliban trust`"
    );
    assert!(
        ran.stdout
            .contains("    ignored: `api_key_helper` (project)"),
        "{}",
        ran.stdout
    );
    assert_eq!(row(&ran, "hooks"), "✓ hooks — 0 handler(s)");
    assert!(!mark.exists());
}

#[test]
fn programs_of_a_trusted_workspace_are_listed_and_not_run() {
    let bench = bench(Script::new([]));
    let mark = canaries(&bench);
    let ran = run(doctor(&bench)
        .args(["--deep", "--trust-workspace"])
        .env("ANTHROPIC_BASE_URL", bench.server.url())
        .env("OPENAI_BASE_URL", bench.server.url())
        .env("GEMINI_BASE_URL", bench.server.url())
        .env("OLLAMA_BASE_URL", bench.server.url()));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert_eq!(row(&ran, "trust"), "✓ trust — the workspace is trusted");
    assert_eq!(row(&ran, "hooks"), "✓ hooks — 2 handler(s)");
    assert!(
        ran.stdout.contains("    PreToolUse(Bash): command "),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains(" [project]"), "{}", ran.stdout);
    assert!(
        row(&ran, "anthropic").contains("`api_key_helper` of the project settings is not run here"),
        "{}",
        ran.stdout
    );
    assert!(!mark.exists());
}

#[test]
fn the_operators_own_key_program_is_asked() {
    let bench = bench(Script::new([]).require_key("from-helper"));
    user(
        &bench,
        "[[api_key_helper]]\ncommand = '/bin/echo from-helper'\n",
    );
    let ran = run(doctor(&bench).env("ANTHROPIC_BASE_URL", bench.server.url()));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert!(row(&ran, "anthropic").starts_with("✓ "), "{}", ran.stdout);
}

#[test]
fn a_store_that_cannot_be_used_fails() {
    let bench = bench(Script::new([]));
    write(&bench.home.path().join(".local"), "in the way");
    let ran = run(&mut doctor(&bench));
    assert_eq!(ran.code, Some(1));
    let store = row(&ran, "session_store");
    assert!(store.starts_with("✗ session_store — "), "{}", ran.stdout);
    assert!(store.contains("not a directory"), "{}", ran.stdout);
}

#[test]
fn the_store_is_the_one_that_a_flag_names() {
    let bench = bench(Script::new([]));
    let elsewhere = bench.home.path().join("elsewhere");
    write(&elsewhere, "in the way");
    let mut command = bare(bench.home.path(), bench.workspace.path());
    let ran = run(command.arg("--sessions-dir").arg(&elsewhere).arg("doctor"));
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    let store = row(&ran, "session_store");
    assert!(
        store.starts_with("✗") && store.contains("elsewhere"),
        "{store}"
    );
}

#[test]
fn a_workspace_that_is_not_there_is_a_row() {
    let bench = bench(Script::new([]));
    let mut command = bare(bench.home.path(), bench.workspace.path());
    let ran = run(command.args(["--workspace", "missing", "doctor"]));
    assert_eq!(ran.code, Some(1));
    assert!(row(&ran, "workspace").starts_with("✗ workspace — "));
}

#[test]
fn an_interrupt_does_not_wait_for_a_silent_provider() {
    let bench = bench(Script::new([]));
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let child = doctor(&bench).env("OLLAMA_BASE_URL", url).spawn().unwrap();
    let _connection = silent.accept().unwrap();
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(sent.unwrap().success());
    let ran = support::finish(child);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(124), ""));
}

#[test]
fn programs_get_the_same_as_json() {
    let bench = bench(Script::new([]));
    let ran = run(doctor(&bench).arg("--json").env("OLLAMA_BASE_URL", NOWHERE));
    assert_eq!(ran.code, Some(1));
    let rows: Value = serde_json::from_str(&ran.stdout).unwrap();
    let find = |name: &str| {
        let rows = rows.as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!(find("ollama")["status"], "fail");
    assert_eq!(find("sandbox")["status"], "warn");
    assert_eq!(find("workspace")["status"], "pass");
    assert!(
        find("ollama")["message"]
            .as_str()
            .unwrap()
            .contains(NOWHERE)
    );
    assert!(find("trust")["details"].is_array());
}

#[test]
fn a_tick_stands_for_what_was_looked_at() {
    let bench = bench(Script::new([]));
    let ran = run(doctor(&bench).env("ANTHROPIC_API_KEY", "k"));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    for name in ["ollama", "openai", "anthropic", "google", "auth"] {
        assert!(row(&ran, name).starts_with("– "), "{}", ran.stdout);
    }
    assert!(row(&ran, "auth").contains("is in the environment (not tried here"));
    assert_eq!(row(&ran, "mcp"), "✓ mcp — no servers are configured");
    let ran = run(&mut doctor(&bench));
    assert!(row(&ran, "auth").starts_with("! auth — there is no API key for anthropic"));
    let json = run(doctor(&bench).arg("--json"));
    let rows: Value = serde_json::from_str(&json.stdout).unwrap();
    let of = |name: &str| {
        let mut rows = rows.as_array().unwrap().iter();
        rows.find(|row| row["name"] == name).unwrap()["status"].clone()
    };
    assert_eq!(
        (of("openai"), of("workspace")),
        ("skip".into(), "pass".into())
    );
}

#[test]
fn a_key_that_was_accepted_is_one() {
    let bench = bench(Script::new([]).model(ModelEntry::new("claude-sonnet-4-6")));
    let ran = run(bench.command().arg("doctor"));
    assert!(row(&ran, "auth").starts_with("✓ auth — "), "{}", ran.stdout);
    assert!(row(&ran, "auth").ends_with("and is accepted"));
}

#[test]
fn each_mcp_server_has_a_row_and_is_connected_to_when_asked() {
    let bench = bench(Script::new([]));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let settings = format!(
        "[mcp_servers.good]\ncommand = 'python3'\nargs = ['{script}']\n\
         [mcp_servers.gone]\ncommand = 'no-such-program-here'\n\
         [mcp_servers.off]\ncommand = 'x'\ndisabled = true\n"
    );
    user(&bench, &settings);
    project(
        &bench,
        "[mcp_servers.theirs]\ncommand = 'touch'\nargs = ['ran']\n",
    );
    let shallow = run(doctor(&bench).arg("--trust-workspace"));
    assert_eq!(shallow.code, Some(0), "{}", shallow.stdout);
    for name in ["mcp:good", "mcp:gone", "mcp:off", "mcp:theirs"] {
        assert!(row(&shallow, name).starts_with("– "), "{}", shallow.stdout);
    }
    let deep = run(doctor(&bench)
        .args(["--deep", "--trust-workspace"])
        .env("OLLAMA_BASE_URL", bench.server.url())
        .env("CALIBAN_PROVIDER", "ollama"));
    let rows = |name| row(&deep, name);
    assert!(
        rows("mcp:good").starts_with("✓ mcp:good — is connected, with "),
        "{}",
        deep.stdout
    );
    assert!(rows("mcp:gone").starts_with("✗ mcp:gone — has failed: `no-such-program-here` cannot"));
    assert!(rows("mcp:off").starts_with("– "));
    assert!(rows("mcp:theirs").starts_with("– mcp:theirs — not connected: it is the workspace's"));
    assert!(!bench.workspace.path().join("ran").exists());
    assert_eq!(deep.code, Some(1));
}

#[test]
fn it_tells_where_logins_are_kept() {
    let bench = bench(Script::new([]));
    let ran = run(doctor(&bench).env("ANTHROPIC_API_KEY", "k"));
    let told = row(&ran, "secret_store");
    // There is no desktop in a test.
    assert!(told.contains("mcp-tokens.json"), "{told}");
    let names_feature = told.contains("(feature `keyring`)");
    assert_eq!(names_feature, !cfg!(feature = "keyring"), "{told}");
}
