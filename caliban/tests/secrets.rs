//! What a read rule or a protected place closes stays closed to every way of reading: each way, by
//! each name that a file can go by, from each agent, in each mode in which rules count.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::os::unix::fs::symlink;

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Bench, Ran, Wire};

/// What the closed files hold and nothing else may.
const CANARY: &str = "canary-7f3a";

/// A call that tries to read.
type Call = (&'static str, Value);

/// A workspace with a closed directory, a home with a key, and other names for both.
fn bench(script: Script) -> Bench {
    let bench = Bench::new(Wire::Anthropic, script);
    let (home, workspace) = (bench.home.path(), bench.workspace.path());
    let put = |path: std::path::PathBuf, text: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put(workspace.join("secrets/a.txt"), CANARY);
    put(workspace.join("secrets/deep/b.txt"), CANARY);
    put(workspace.join("open.txt"), "nothing to hide");
    put(home.join(".ssh/id_rsa"), CANARY);
    put(home.join(".aws/credentials"), CANARY);
    put(home.join(".netrc"), CANARY);
    put(home.join("notes.txt"), "nothing to hide");
    symlink("secrets/a.txt", workspace.join("link.txt")).unwrap();
    symlink("secrets", workspace.join("linked")).unwrap();
    symlink(home.join(".ssh"), workspace.join("keys")).unwrap();
    std::fs::hard_link(workspace.join("secrets/a.txt"), workspace.join("hard.txt")).unwrap();
    if std::fs::hard_link(home.join(".ssh/id_rsa"), workspace.join("hard-key.txt")).is_err() {
        put(workspace.join("hard-key.txt"), "another file system");
    }
    bench
}

/// The file tools, by every name of a file that they could be given.
fn by_tools() -> Vec<Call> {
    let files = [
        "secrets/a.txt",
        "./secrets/../secrets/a.txt",
        "linked/deep/b.txt",
        "link.txt",
        "hard.txt",
        "~/.ssh/id_rsa",
        "~/.SSH/../.ssh/id_rsa",
        "~/x/../.ssh/id_rsa",
        "keys/id_rsa",
        "hard-key.txt",
        "~/.netrc",
    ];
    let read = files.map(|path| ("Read", json!({"path": path})));
    let grep = files.map(|path| ("Grep", json!({"pattern": "canary", "path": path})));
    let edit = files.map(|path| {
        let change = json!({"path": path, "old_string": "canary-8", "new_string": "x"});
        ("Edit", change)
    });
    let searches = [
        json!({"pattern": "canary"}),
        json!({"pattern": "canary", "path": "secrets"}),
        json!({"pattern": "canary", "path": "linked"}),
        json!({"pattern": "canary", "path": "secrets/deep"}),
        json!({"pattern": "canary", "glob": "secrets/**"}),
        json!({"pattern": "canary", "glob": "*.txt", "output_mode": "count"}),
        json!({"pattern": "can(a)ry", "multiline": true}),
        json!({"pattern": "canary", "path": "~"}),
        json!({"pattern": "canary", "path": "~", "glob": ".ssh/id_*"}),
        json!({"pattern": "canary", "path": "~", "glob": "**/.aws/*"}),
        json!({"pattern": "canary", "path": "~", "glob": ".netrc"}),
        json!({"pattern": "canary", "path": "~/.ssh"}),
        json!({"pattern": "canary", "path": "keys"}),
    ];
    let searches = searches.map(|input| ("Grep", input));
    read.into_iter()
        .chain(grep)
        .chain(edit)
        .chain(searches)
        .collect()
}

/// Commands that are given a closed file to read, by every name of it.
fn by_commands() -> Vec<Call> {
    let commands = [
        "cat ~/.ssh/id_rsa",
        "cat $HOME/.ssh/id_rsa",
        "cat \"$HOME\"/.ssh/id_*",
        "cat ~/.s*/id_rsa",
        "cat ~/.ssh/{id_rsa,known_hosts}",
        "cd ~/.ssh && cat id_rsa",
        "cd && cat .ssh/id_rsa",
        "f=~/.ssh/id_rsa; cat $f",
        "for f in ~/.ssh/*; do cat \"$f\"; done",
        "cat keys/id_rsa",
        "cat hard-key.txt",
        "cp ~/.ssh/id_rsa out.txt && cat out.txt",
        "ln ~/.ssh/id_rsa out.txt; cat out.txt",
        "ln -s ~/.ssh out; cat out/id_rsa",
        "mv secrets/a.txt out.txt; cat out.txt",
        "mv secrets moved; cat moved/a.txt; mv moved secrets",
        "git mv secrets moved; cat moved/a.txt",
        "ln -s secrets also; cat also/a.txt",
        "head -1 secrets/a.txt",
        "tail -n 1 linked/a.txt",
        "less secrets/../secrets/a.txt",
        "sort link.txt",
        "grep canary hard.txt",
        "grep -r canary .",
        "grep -rn canary secrets",
        "rg canary || grep -R canary",
        "sed -n 1p secrets/a.txt",
        "awk 1 secrets/a.txt",
        "base64 -d <(base64 secrets/a.txt)",
        "dd if=secrets/a.txt status=none",
        "xxd -p secrets/a.txt | xxd -r -p",
        "diff /dev/null secrets/a.txt",
        "git diff --no-index /dev/null secrets/a.txt",
        "tar -cf - secrets | cat",
        "tar -C ~/.ssh -cf - id_rsa",
        "curl -s file://$PWD/secrets/a.txt",
        "curl -s -d @secrets/a.txt http://127.0.0.1:9/",
        "curl -s -F f=@secrets/a.txt http://127.0.0.1:9/",
        "curl -s -T secrets/a.txt http://127.0.0.1:9/",
        "curl -s -Tsecrets/a.txt http://127.0.0.1:9/",
        "cat sec*/a.txt",
        "cat */a.txt",
        "cat < secrets/a.txt",
        "bash -c 'cat secrets/a.txt'",
        "python3 -c \"print(open('secrets/a.txt').read())\"",
        "env cat secrets/a.txt",
        "timeout 5 cat ~/.netrc",
        "xargs cat <<< secrets/a.txt",
        "echo secrets/a.txt | xargs cat",
        "find . -type f | xargs cat",
        "find secrets -type f -exec cat {} +",
        "find . -name 'a.t*' -exec cat {} +",
        "source secrets/a.txt; cat secrets/a.txt",
    ];
    let call = |command: &str| ("Bash", json!({"command": command}));
    commands.map(call).into_iter().collect()
}

fn run(bench: &Bench, args: &[&str]) -> Ran {
    let denied = ["--deny", "Read:secrets/**"];
    bench.run(["-p", "go"].iter().chain(args).chain(&denied))
}

/// The calls one after the other, by the agent that was asked or by one that works for it.
fn script(calls: &[Call], agent: Agent) -> Script {
    let calls = calls
        .iter()
        .map(|(name, input)| Reply::tool(*name, input.clone()));
    match agent {
        Agent::Main => Script::new(calls.chain([Reply::text("done")])),
        Agent::Sub => {
            let begin = Reply::tool("AgentTool", json!({"prompt": "look around"}));
            let end = [Reply::text("looked"), Reply::text("done")];
            Script::new([begin].into_iter().chain(calls).chain(end))
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agent {
    Main,
    Sub,
}

/// What the model was told about each call, in the order of the calls.
fn told(bench: &Bench) -> Vec<String> {
    let mut told: Vec<(String, String)> = Vec::new();
    for request in bench.server.model_requests() {
        let body = request.json();
        for message in body["messages"].as_array().unwrap() {
            let Some(blocks) = message["content"].as_array() else {
                continue;
            };
            for block in blocks.iter().filter(|it| it["type"] == "tool_result") {
                let id = block["tool_use_id"].as_str().unwrap().to_owned();
                if !told.iter().any(|(known, _)| *known == id) {
                    told.push((id, block["content"].to_string()));
                }
            }
        }
    }
    told.into_iter().map(|(_, text)| text).collect()
}

/// No request holds what closed files hold.
fn assert_kept(bench: &Bench, calls: &[Call], ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = told(bench);
    assert!(told.len() >= calls.len(), "every call was made: {told:?}");
    let said: Vec<_> = told
        .iter()
        .zip(calls)
        .filter(|(text, _)| text.contains(CANARY))
        .collect();
    assert!(said.is_empty(), "{said:#?}");
    for request in bench.server.model_requests() {
        assert!(!request.json().to_string().contains(CANARY));
    }
}

#[rstest]
fn no_tool_reads_what_is_closed(
    #[values(Agent::Main, Agent::Sub)] agent: Agent,
    #[values(
        &[],
        &["--permission-mode", "acceptEdits"],
        &["--permission-mode", "plan"],
        &["--permission-mode", "dontAsk"],
        &["--auto-allow"],
        &["--allow", "Read", "--allow", "Grep", "--allow", "Edit"]
    )]
    args: &[&str],
) {
    let calls = by_tools();
    let bench = bench(script(&calls, agent));
    // Flags are heard in their order.
    let denied = [
        "-p",
        "go",
        "--deny",
        "Read:secrets/**",
        "--max-turns",
        "200",
    ];
    let ran = bench.run(denied.iter().chain(args));
    assert_kept(&bench, &calls, &ran);
}

#[rstest]
fn no_command_is_given_what_is_closed(
    #[values(Agent::Main, Agent::Sub)] agent: Agent,
    #[values(
        &["--permission-mode", "dontAsk"],
        &["--auto-allow"],
        &["--allow", "Bash"],
        &["--allow", "Bash:cat *", "--allow", "Bash:cp *", "--permission-mode", "dontAsk"]
    )]
    args: &[&str],
) {
    let calls = by_commands();
    let bench = bench(script(&calls, agent));
    let denied = [
        "-p",
        "go",
        "--deny",
        "Read:secrets/**",
        "--max-turns",
        "200",
    ];
    let ran = bench.run(denied.iter().chain(args));
    assert_kept(&bench, &calls, &ran);
}

#[test]
fn commands_that_read_nothing_closed_run_as_before() {
    let commands = [
        "cat open.txt",
        "cat ~/notes.txt",
        "grep hide open.txt && ls ~/.ssh secrets",
        "grep -r hide open.txt",
        "echo ~/.ssh secrets/a.txt && cat open.txt",
        "test -f secrets/a.txt && cat open.txt",
    ];
    let calls: Vec<Call> = commands
        .iter()
        .map(|command| ("Bash", json!({"command": command})))
        .collect();
    let bench = bench(script(&calls, Agent::Main));
    let ran = run(&bench, &["--auto-allow"]);
    assert_kept(&bench, &calls, &ran);
    for text in told(&bench) {
        assert!(text.contains("nothing to hide"), "{text}");
    }
}

#[test]
fn a_rule_that_spells_the_file_lets_a_command_have_it() {
    let calls = [("Bash", json!({"command": "cat ~/.ssh/id_rsa"}))];
    for (rule, is_open) in [
        ("Bash:cat ~/.ssh/id_rsa", true),
        ("Bash:cat *", false),
        ("Bash", false),
    ] {
        let bench = bench(script(&calls, Agent::Main));
        let ran = bench.run(["-p", "go", "--allow", rule]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(told(&bench)[0].contains(CANARY), is_open, "{rule}");
    }
}

#[test]
fn a_search_says_how_much_it_left_out() {
    let calls = [
        ("Grep", json!({"pattern": "."})),
        ("Glob", json!({"pattern": "**/*"})),
        ("Glob", json!({"pattern": "secrets/**"})),
        ("Glob", json!({"pattern": "~/.ssh/*"})),
        ("Glob", json!({"pattern": "~/.ssh/*", "path": "secrets"})),
    ];
    let bench = bench(script(&calls, Agent::Main));
    let ran = run(&bench, &[]);
    assert_kept(&bench, &calls, &ran);
    let told = told(&bench);
    // Both files, and the other names of one of them and of the key.
    assert!(told[0].contains("reading: 4."), "{}", told[0]);
    assert!(told[0].contains("open.txt"), "{}", told[0]);
    assert!(told[1].contains("reading: 2."), "{}", told[1]);
    assert!(!told[1].contains("secrets/"), "{}", told[1]);
    assert!(told[2].contains("reading: 2."), "{}", told[2]);
    for text in &told[3..] {
        assert!(!text.contains("id_rsa"), "{text}");
        assert!(text.contains("reading: 1."), "{text}");
    }
}

#[test]
fn what_is_not_closed_is_read_as_before() {
    let calls = [
        ("Read", json!({"path": "open.txt"})),
        ("Grep", json!({"pattern": "hide", "path": "~"})),
        ("Grep", json!({"pattern": "hide"})),
    ];
    let bench = bench(script(&calls, Agent::Main));
    let ran = run(&bench, &[]);
    assert_kept(&bench, &calls, &ran);
    for text in told(&bench) {
        assert!(text.contains("nothing to hide"), "{text}");
    }
}

#[test]
fn where_no_rule_counts_nothing_is_closed() {
    let calls = [
        ("Read", json!({"path": "secrets/a.txt"})),
        (
            "Grep",
            json!({"pattern": "canary", "path": "~", "glob": ".ssh/*"}),
        ),
    ];
    for args in [
        &["--no-permissions"][..],
        &[
            "--allow-dangerously-skip-permissions",
            "--permission-mode",
            "bypassPermissions",
        ],
    ] {
        let bench = bench(script(&calls, Agent::Main));
        let ran = bench.run(["-p", "go"].iter().chain(args));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        for text in told(&bench) {
            assert!(text.contains(CANARY), "{text}");
        }
    }
}

#[test]
fn a_rule_that_names_the_place_opens_it() {
    let calls = [
        ("Read", json!({"path": "~/.ssh/id_rsa"})),
        (
            "Grep",
            json!({"pattern": "canary", "path": "~", "glob": ".ssh/*"}),
        ),
    ];
    let bench = bench(script(&calls, Agent::Main));
    let ran = bench.run(["-p", "go", "--allow", "Read:~/.ssh/**"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for text in told(&bench) {
        assert!(text.contains(CANARY), "{text}");
    }
}

#[test]
fn a_prompt_cannot_attach_what_is_closed() {
    for prompt in [
        "see @secrets/a.txt",
        "see @link.txt",
        "see @hard.txt",
        "see @linked/deep/b.txt",
        "see @./secrets/../secrets/a.txt",
        "see @keys/id_rsa",
        "see @hard-key.txt",
        "see @~/.ssh/id_rsa",
    ] {
        let bench = bench(Script::new([Reply::text("done")]));
        let home = bench.home.path().to_str().unwrap();
        let flags = ["--deny", "Read:secrets/**", "--add-dir", home];
        let ran = bench.run(["-p", prompt].iter().chain(&flags));
        assert_kept(&bench, &[], &ran);
        assert!(ran.stderr.contains("does not go along"), "{}", ran.stderr);
        // In the other dialect what is typed is read by another way.
        let bench = self::bench(Script::new([Reply::text("done")]));
        let home = bench.home.path().to_str().unwrap();
        let dialect = ["--dialect", "claude", "-p", prompt];
        let disallowed = ["--disallowedTools", "Read(secrets/**)", "--add-dir", home];
        let ran = support::run(bench.command().args(dialect).args(disallowed));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        for request in bench.server.model_requests() {
            assert!(!request.json().to_string().contains(CANARY), "{prompt}");
        }
    }
}

#[test]
fn a_name_that_leads_nowhere_is_said() {
    for (prompt, said) in [
        ("@missing.txt", "`@missing.txt` names no file"),
        ("@~/notes.txt", "`@~/notes.txt` is outside the workspace"),
    ] {
        let bench = bench(Script::new([Reply::text("done")]));
        let ran = bench.run(["-p", prompt, "--output-format", "stream-json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stdout.contains(said), "{}", ran.stdout);
        let request = bench.server.model_requests().remove(0).json().to_string();
        assert!(request.contains(prompt), "{request}");
    }
    let many: Vec<String> = (0..30).map(|number| format!("@name{number}")).collect();
    let bench = bench(Script::new([Reply::text("done")]));
    let ran = bench.run(["-p", &many.join(" ")]);
    assert!(ran.stderr.contains("25 more names"), "{}", ran.stderr);
}

#[test]
fn instruction_files_import_nothing_that_is_closed() {
    let script = || Script::new([Reply::text("done")]);
    for import in [
        "@secrets/a.txt",
        "@hard.txt",
        "@~/.ssh/id_rsa",
        "@/proc/self/environ",
    ] {
        let bench = bench(script());
        std::fs::write(bench.workspace.path().join("CLAUDE.md"), import).unwrap();
        let mut command = bench.command();
        command
            .args(["-p", "go", "--deny", "Read:secrets/**"])
            .env("CALIBAN_APPROVE_IMPORTS", "1");
        let ran = support::run(&mut command);
        assert_kept(&bench, &[], &ran);
        let request = bench.server.model_requests().remove(0).json().to_string();
        assert!(!request.contains("test-key"), "{import}: {request}");
        assert!(request.contains(import), "{import}: {request}");
        assert!(ran.stderr.contains("warning"), "{}", ran.stderr);
    }
}

#[test]
fn results_that_were_cut_are_readable_where_paths_are_restricted() {
    let bench = bench(Script::new([
        Reply::tool("Bash", json!({"command": "seq 1 30000"})),
        Reply::text("done"),
    ]));
    let args = [
        "-p",
        "go",
        "--auto-allow",
        "--restrict-paths",
        "--session",
        "s",
    ];
    let ran = bench.run(args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let cut = told(&bench).remove(0);
    let path = cut.split('`').nth(1).unwrap().to_owned();
    for (tool, input) in [
        ("Read", json!({"path": path, "offset": 14_999, "limit": 3})),
        ("Grep", json!({"pattern": "^15000$", "path": path})),
        ("Write", json!({"path": path, "content": "x"})),
    ] {
        bench.server.push(Reply::tool(tool, input));
    }
    bench.server.push(Reply::text("done"));
    let ran = bench.run(["-p", "on", "--auto-allow", "--restrict-paths", "-r", "s"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = told(&bench);
    assert!(told[1].contains("15000"), "{}", told[1]);
    assert!(told[2].contains("15000"), "{}", told[2]);
    assert!(told[3].contains("outside the workspace"), "{}", told[3]);
}

#[test]
fn where_the_cache_cannot_be_written_results_are_kept_elsewhere() {
    let bench = bench(Script::new([
        Reply::tool("Bash", json!({"command": "seq 1 30000"})),
        Reply::text("done"),
    ]));
    std::fs::write(bench.home.path().join(".cache"), "no directory").unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let mut command = bench.command();
    command
        .args(["-p", "go", "--auto-allow", "--restrict-paths"])
        .env("TMPDIR", temporary.path());
    let ran = support::run(&mut command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let cut = told(&bench).remove(0);
    let path = std::path::Path::new(cut.split('`').nth(1).unwrap());
    assert!(path.starts_with(temporary.path()), "{cut:.300}");
    let mode = |path: &std::path::Path| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode(path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
}

/// The user that owns nothing.
const NOBODY: u32 = 65_534;

/// What the superuser may read cannot be closed to it, so the program runs as somebody else.
fn as_somebody(bench: &Bench, command: &mut std::process::Command) {
    use std::os::unix::fs::{MetadataExt, chown};
    use std::os::unix::process::CommandExt;
    let (home, workspace) = (bench.home.path(), bench.workspace.path());
    if std::fs::metadata(home).unwrap().uid() != 0 {
        return;
    }
    for directory in [home, workspace] {
        chown(directory, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    command.uid(NOBODY).gid(NOBODY);
}

#[test]
fn keys_and_tokens_are_out_of_reach_of_commands() {
    let look = "cat /proc/$PPID/environ /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; env";
    let bench = Bench::new(
        Wire::Anthropic,
        script(&[("Bash", json!({"command": look}))], Agent::Main),
    );
    let mut command = bench.command();
    let settings = json!({"env": {"PASSED_ON": "${OTHER_TOKEN}"}}).to_string();
    command
        .args(["-p", "go", "--auto-allow", "--settings", &settings])
        .env("GITHUB_TOKEN", "github-token-5b")
        .env("OTHER_TOKEN", "other-token-5b");
    as_somebody(&bench, &mut command);
    let ran = support::run(&mut command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = told(&bench).remove(0);
    assert!(told.contains("HOME="), "{told}");
    assert!(!told.contains("test-key"), "{told}");
    assert!(!told.contains("github-token-5b"), "{told}");
    assert!(told.contains("PASSED_ON=other-token-5b"), "{told}");
    assert!(!told.contains("OTHER_TOKEN="), "{told}");
}
