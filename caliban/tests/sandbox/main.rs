//! The sandbox through the built binary: what it confines, what it says, and whom it asks.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may panic, and says why it is skipped"
)]

mod asking;
mod builds;
mod consent;
mod escalation;
mod floods;
mod keys;
mod planted;
mod repositories;

#[path = "../faces/process.rs"]
#[allow(dead_code, reason = "not every test needs all of it")]
mod process;
#[path = "../support/mod.rs"]
mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::OnceLock;

use caliban_testkit::{After, Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Bench, Ran, Wire, bare, run};

const ON: &str = "[sandbox]\nenabled = true\nfail_if_unavailable = true\n";

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The model makes these calls and is done.
fn calls(calls: Vec<(&str, Value)>) -> Script {
    let turns = calls
        .into_iter()
        .map(|(name, input)| Reply::tool(name, input));
    Script::new(turns.chain([Reply::text("done")])).after(After::RepeatLast)
}

fn bash(command: &str) -> Script {
    calls(vec![("Bash", json!({"command": command}))])
}

fn bench(settings: &str, script: Script) -> Bench {
    let bench = Bench::new(Wire::Anthropic, script);
    let file = bench.home.path().join(".config/caliban/settings.toml");
    write(&file, settings);
    bench
}

/// Why nothing can be confined here, if so; found out by the program itself, once.
fn unavailable() -> bool {
    static FOUND_OUT: OnceLock<bool> = OnceLock::new();
    *FOUND_OUT.get_or_init(try_it)
}

fn try_it() -> bool {
    let bench = bench(ON, bash("true"));
    let ran = run(
        bare(bench.home.path(), bench.workspace.path()).args(["sandbox", "exec", "--", "true"])
    );
    if ran.code != Some(0) {
        eprintln!("skipped, no sandbox here: {}", ran.stderr);
    }
    ran.code != Some(0)
}

fn ask(bench: &Bench, flags: &[&str]) -> (Ran, Vec<Value>) {
    let ran = bench.run(
        ["--output-format", "stream-json", "-p", "go"]
            .iter()
            .chain(flags),
    );
    let frames = ran.stdout.lines();
    let frames = frames.map(|line| serde_json::from_str(line).unwrap());
    let frames = frames.collect();
    (ran, frames)
}

/// What the model was told of its calls.
fn results(bench: &Bench) -> Vec<String> {
    let body = bench.server.model_requests().pop().unwrap().json();
    let mut found = Vec::new();
    for message in body["messages"].as_array().unwrap() {
        for block in message["content"].as_array().into_iter().flatten() {
            if block["type"] == "tool_result" {
                found.push(block["content"].to_string());
            }
        }
    }
    found
}

fn result(bench: &Bench) -> String {
    results(bench).join("\n")
}

#[test]
fn a_command_is_confined_and_the_run_says_by_what() {
    if unavailable() {
        return;
    }
    let script = "echo in > inside; echo out > $HOME/outside; cat $HOME/.ssh/id; id -u";
    let bench = bench(ON, bash(script));
    write(&bench.home.path().join(".ssh/id"), "TOPSECRET");
    let (ran, frames) = ask(&bench, &["--no-permissions"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let sandbox = &frames[0]["sandbox"];
    assert_eq!(sandbox["backend"], "bwrap");
    assert_eq!(sandbox["enabled"], true);
    assert_eq!(sandbox["reduced"], json!([]));
    assert_eq!(sandbox["egress"], "closed");
    let told = result(&bench);
    assert!(told.contains("Read-only file system"), "{told}");
    assert!(!told.contains("TOPSECRET"), "{told}");
    assert!(bench.workspace.path().join("inside").exists());
    assert!(!bench.home.path().join("outside").exists());
    // The model knows what holds.
    let body = bench.server.model_requests().remove(0).json();
    let tools = body["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "Bash").unwrap();
    let description = tool["description"].as_str().unwrap();
    assert!(
        description.contains("There is no network."),
        "{description}"
    );
}

/// Directories of the list that hold places which are shown anyway, links among them.
#[test]
fn a_list_of_directories_of_the_system_can_be_read() {
    if unavailable() {
        return;
    }
    let lists = "[sandbox.filesystem]\nallow_read = ['${WORKSPACE}', '/etc', '/usr']\ndeny_read = ['${HOME}/.ssh']\nallow_write = ['${WORKSPACE}']\ndeny_write = ['${WORKSPACE}/.git/hooks']\n";
    let command = "head -c1 /etc/hostname >/dev/null && echo yes > here && ls -d /srv $HOME";
    let bench = bench(&format!("{ON}{lists}"), bash(command));
    let (ran, frames) = ask(&bench, &["--auto-allow"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(frames[0]["sandbox"]["backend"], "bwrap");
    let told = result(&bench);
    assert!(told.contains("cannot access '/srv'"), "{told}");
    let written = std::fs::read_to_string(bench.workspace.path().join("here"));
    assert_eq!(written.unwrap(), "yes\n");
}

#[test]
fn without_the_key_nothing_is_confined() {
    let bench = bench("", bash("cat $HOME/.ssh/id"));
    write(&bench.home.path().join(".ssh/id"), "TOPSECRET");
    let (_, frames) = ask(
        &bench,
        &["--auto-allow", "--allow", "Bash:cat $HOME/.ssh/id"],
    );
    let expected = json!({"backend": "none", "enabled": false, "reduced": [], "egress": "open"});
    assert_eq!(frames[0]["sandbox"], expected);
}

#[rstest]
#[case::required("fail_if_unavailable = true\n", Some(78))]
#[case::preferred("fail_if_unavailable = false\n", Some(0))]
fn without_a_sandbox_the_operator_decides(#[case] key: &str, #[case] code: Option<i32>) {
    let settings = format!("[sandbox]\nenabled = true\nbwrap_path = '/no/such/bwrap'\n{key}");
    let bench = bench(&settings, bash("touch ran"));
    let (ran, frames) = ask(&bench, &["--allow", "Bash"]);
    assert_eq!(ran.code, code, "{}", ran.stderr);
    assert_eq!(bench.workspace.path().join("ran").exists(), code == Some(0));
    if code == Some(0) {
        assert_eq!(frames[0]["sandbox"]["backend"], "none");
        let reason = frames[0]["sandbox"]["reason"].as_str().unwrap();
        assert!(reason.contains("/no/such/bwrap"), "{reason}");
        let warnings = frames[0]["warnings"].to_string();
        assert!(warnings.contains("commands run unconfined"), "{warnings}");
    } else {
        assert!(ran.stderr.contains("/no/such/bwrap"), "{}", ran.stderr);
    }
}

#[test]
fn a_protected_place_is_asked_about_although_commands_are_confined() {
    if unavailable() {
        return;
    }
    let settings = format!("{ON}auto_allow_bash_if_sandboxed = true\n");
    let bench = bench(&settings, bash("echo x > .envrc"));
    let (ran, _) = ask(&bench, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!bench.workspace.path().join(".envrc").exists());
    assert!(!result(&bench).contains("exit 0"), "{}", result(&bench));
}

#[rstest]
#[case::listed("allow_unsandboxed_commands = ['touch']\n", "touch $HOME/x", false)]
#[case::literal("allow_unsandboxed_commands = ['touch']\n", "touch HOME/x", true)]
#[case::chained(
    "allow_unsandboxed_commands = ['touch']\n",
    "touch HOME/x; true",
    false
)]
#[case::not_listed("", "touch HOME/x", false)]
fn a_listed_command_runs_outside(#[case] key: &str, #[case] command: &str, #[case] outside: bool) {
    if unavailable() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let command = command.replace("HOME/", &format!("{}/", home.path().display()));
    let command = command.replace(&format!("${}", home.path().display()), "$HOME");
    let bench = bench(&format!("{ON}{key}"), bash(&command));
    let (ran, _) = ask(&bench, &["--allow", "Bash"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        home.path().join("x").exists(),
        outside,
        "{}",
        result(&bench)
    );
}

#[rstest]
#[case::deny_read(
    "[sandbox.filesystem]\ndeny_read = ['${WORKSPACE}/a']\n",
    "cat a/f",
    "kept"
)]
#[case::allow_read("[sandbox.filesystem]\nallow_read = ['/usr']\n", "cat $HOME/f", "kept")]
#[case::deny_write(
    "[sandbox.filesystem]\ndeny_write = ['${WORKSPACE}/a']\n",
    "echo new > a/f && cat a/f",
    "new"
)]
#[case::allow_write(
    "[sandbox.filesystem]\nallow_write = []\n",
    "echo new > a/f && cat a/f",
    "new"
)]
fn lists_of_paths_count(#[case] keys: &str, #[case] command: &str, #[case] said: &str) {
    if unavailable() {
        return;
    }
    for (settings, expected) in [(ON.to_owned(), true), (format!("{ON}{keys}"), false)] {
        let bench = bench(&settings, bash(command));
        write(&bench.workspace.path().join("a/f"), "kept");
        write(&bench.home.path().join("f"), "kept");
        let (ran, _) = ask(&bench, &["--allow", "Bash"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let told = result(&bench);
        assert_eq!(told.contains(said), expected, "{told}");
    }
}

#[test]
fn file_tools_keep_to_the_lists_and_find_what_commands_wrote() {
    if unavailable() {
        return;
    }
    let settings = format!(
        "{ON}[sandbox.filesystem]\ndeny_read = ['${{WORKSPACE}}/hidden']\ndeny_write = ['${{WORKSPACE}}/fixed']\n"
    );
    let script = calls(vec![
        ("Bash", json!({"command": "echo FROM-BASH > /tmp/note.txt"})),
        ("Read", json!({"path": "/tmp/note.txt"})),
        ("Read", json!({"path": "hidden/f"})),
        (
            "Grep",
            json!({"pattern": "NEEDLE", "output_mode": "content"}),
        ),
        ("Write", json!({"path": "fixed/f", "content": "new"})),
        (
            "Write",
            json!({"path": "/tmp/two.txt", "content": "FROM-WRITE"}),
        ),
        ("Bash", json!({"command": "cat /tmp/two.txt"})),
    ]);
    let bench = bench(&settings, script);
    write(&bench.workspace.path().join("hidden/f"), "NEEDLE-hidden");
    write(&bench.workspace.path().join("fixed/f"), "old");
    let (ran, _) = ask(&bench, &["--auto-allow"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = results(&bench);
    assert!(told[1].contains("FROM-BASH"), "{told:?}");
    assert!(told[2].contains("sandbox.filesystem.deny_read"), "{told:?}");
    assert!(!told[3].contains("NEEDLE-hidden"), "{told:?}");
    assert!(
        told[4].contains("sandbox.filesystem.deny_write"),
        "{told:?}"
    );
    assert!(told[6].contains("FROM-WRITE"), "{told:?}");
    assert!(!Path::new("/tmp/two.txt").exists());
    let fixed = std::fs::read_to_string(bench.workspace.path().join("fixed/f")).unwrap();
    assert_eq!(fixed, "old");
}

#[test]
fn what_a_command_plants_is_taken_away_and_told() {
    if unavailable() {
        return;
    }
    let bench = bench(ON, bash("mkdir .idea; echo evil > .idea/x; echo fine > ok"));
    let (ran, _) = ask(&bench, &["--no-permissions"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        !bench.workspace.path().join(".idea").exists(),
        "{}",
        result(&bench)
    );
    assert!(bench.workspace.path().join("ok").exists());
    let kept = bench.home.path().join(".local/share/caliban/quarantine");
    assert!(kept.exists());
}

#[test]
fn a_refusal_names_the_path_and_the_rule() {
    if unavailable() {
        return;
    }
    let bench = bench(ON, bash("touch /etc/caliban-test"));
    let (ran, _) = ask(&bench, &["--allow", "Bash"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = result(&bench);
    assert!(
        told.contains("sandbox: `/etc/caliban-test` is read-only"),
        "{told}"
    );
    assert!(told.contains("sandbox.filesystem.allow_write"), "{told}");
}

#[test]
fn a_background_command_is_confined_too() {
    if unavailable() {
        return;
    }
    let script = calls(vec![
        (
            "Bash",
            json!({"command": "echo x > $HOME/outside; echo ended", "background": true}),
        ),
        ("Bash", json!({"command": "sleep 1"})),
        ("BashOutput", json!({"id": "bash_1"})),
    ]);
    let bench = bench(ON, script);
    let (ran, _) = ask(&bench, &["--allow", "Bash"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        results(&bench)[2].contains("Read-only"),
        "{:?}",
        results(&bench)
    );
    assert!(!bench.home.path().join("outside").exists());
}

/// A proxy that answers everything with its own name.
fn proxy() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut head = [0; 1024];
            let _ = (&stream).read(&mut head);
            let _ = (&stream).write_all(
                b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nOPERATORS",
            );
        }
    });
    port
}

#[test]
fn the_operators_proxy_is_reached_and_nobody_else() {
    if unavailable() {
        return;
    }
    let port = proxy();
    let command = format!(
        "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://example.invalid/\").read())'; \
         python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))' 2>&1 | tail -1"
    );
    let settings = format!("{ON}[sandbox.network]\nhttp_proxy_port = {port}\n");
    let bench = bench(&settings, bash(&command));
    let (ran, frames) = ask(&bench, &["--allow", "Bash"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(frames[0]["sandbox"]["egress"], "operator");
    let told = result(&bench);
    assert!(told.contains("OPERATORS"), "{told}");
    assert!(told.contains("refused"), "{told}");
}

#[test]
fn a_host_of_the_list_is_reached_and_no_other() {
    if unavailable() {
        return;
    }
    let (listed, other) = (proxy(), proxy());
    let fetch = |port: u16| {
        format!(
            "python3 -c 'import urllib.request as u; u.install_opener(u.build_opener(u.ProxyHandler({{\"http\": \"http://127.0.0.1:\" + __import__(\"os\").environ[\"HTTP_PROXY\"].rsplit(\":\", 1)[1]}}))); \
             print(u.urlopen(\"http://127.0.0.1:{port}/\").read())' 2>&1 | tail -1"
        )
    };
    let command = format!(
        "unset NO_PROXY no_proxy; {}; {}",
        fetch(listed),
        fetch(other)
    );
    let settings = format!("{ON}[sandbox.network]\nallowed_domains = ['127.0.0.1:{listed}']\n");
    let bench = bench(&settings, bash(&command));
    let (ran, frames) = ask(&bench, &["--allow", "Bash"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(frames[0]["sandbox"]["egress"], "proxy");
    let told = result(&bench);
    assert!(told.contains("OPERATORS"), "{told}");
    assert!(told.contains("403"), "{told}");
    assert!(told.contains(&format!("127.0.0.1:{other}")), "{told}");
}

#[rstest]
#[case::closed("", false)]
#[case::visible("[sandbox.network]\nallow_unix_sockets = true\n", true)]
fn sockets_are_reached_only_where_they_may_be(#[case] keys: &str, #[case] reached: bool) {
    if unavailable() {
        return;
    }
    let Ok(folder) = tempfile::tempdir_in("/run") else {
        eprintln!("skipped: /run cannot be written");
        return;
    };
    let path = folder.path().join("s");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = (&stream).write_all(b"TOPSECRET");
        }
    });
    let command = format!(
        "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"{}\"); print(s.recv(9))'",
        path.display()
    );
    let bench = bench(&format!("{ON}{keys}"), bash(&command));
    let (ran, _) = ask(&bench, &["--allow", "Bash"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        result(&bench).contains("TOPSECRET"),
        reached,
        "{}",
        result(&bench)
    );
}

#[rstest]
#[case::an_open_brace("[sandbox.filesystem]\ndeny_read = ['${HOME/x']\n", "is not closed")]
#[case::a_missing_grant("[sandbox.filesystem]\nallow_write = ['/no/such']\n", "/no/such")]
#[case::a_wildcard("[sandbox.filesystem]\ndeny_write = ['src/*']\n", "wildcards")]
fn settings_that_make_no_sense_stop_the_run(#[case] keys: &str, #[case] said: &str) {
    let bench = bench(&format!("{ON}{keys}"), bash("touch ran"));
    let (ran, _) = ask(&bench, &["--allow", "Bash"]);
    assert_eq!(ran.code, Some(78));
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn a_project_cannot_open_the_sandbox() {
    if unavailable() {
        return;
    }
    let bench = bench(ON, bash("echo x > $HOME/outside"));
    let keys = "[sandbox]\nenabled = false\n[sandbox.filesystem]\nallow_write = ['/']\n";
    write(&bench.workspace.path().join(".caliban/settings.toml"), keys);
    let (ran, frames) = ask(&bench, &["--allow", "Bash"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(frames[0]["sandbox"]["backend"], "bwrap");
    assert!(!bench.home.path().join("outside").exists());
}

#[rstest]
#[case::confined("sandbox = true\n", ON, false)]
#[case::open("", ON, true)]
#[case::without_a_sandbox("sandbox = true\n", "", false)]
fn a_hook_may_be_confined(#[case] key: &str, #[case] settings: &str, #[case] writes: bool) {
    if unavailable() {
        return;
    }
    let hook = format!(
        "[[hooks.PreToolUse]]\nmatcher = 'Bash'\n[[hooks.PreToolUse.hooks]]\ntype = 'command'\ncommand = 'echo x > $HOME/hooked; exit 0'\n{key}"
    );
    let bench = bench(&format!("{settings}{hook}"), bash("true"));
    let (ran, _) = ask(&bench, &["--allow", "Bash"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(bench.home.path().join("hooked").exists(), writes);
    // A hook that cannot be confined cannot run, and what it guards does not either.
    let is_denied = settings.is_empty();
    assert_eq!(
        !result(&bench).contains("[exit 0"),
        is_denied,
        "{}",
        result(&bench)
    );
}

fn sandbox(bench: &Bench, args: &[&str]) -> Ran {
    run(bare(bench.home.path(), bench.workspace.path())
        .arg("sandbox")
        .args(args))
}

#[test]
fn the_sandbox_can_be_tried_out_and_explained() {
    if unavailable() {
        return;
    }
    let bench = bench("", bash("true"));
    write(&bench.home.path().join(".ssh/id"), "x");
    let ran = sandbox(
        &bench,
        &[
            "exec",
            "--",
            "sh",
            "-c",
            "echo out; echo x > /etc/caliban-test; exit 3",
        ],
    );
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("out\n"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("sandbox: `/etc/caliban-test`"),
        "{}",
        ran.stderr
    );
    let nothing = sandbox(&bench, &["exec", "--", "/no/such/program"]);
    assert_eq!(nothing.code, Some(127), "{}", nothing.stderr);
    let said = |what: &str| sandbox(&bench, &["explain", what]).stdout;
    assert!(!said("./x").contains("/./"), "{}", said("./x"));
    assert!(said("./x").contains("read and write"));
    for absent in [".envrc", "sub/.vscode/tasks.json", ".git/hooks/pre-commit"] {
        assert!(said(absent).contains("is taken away"), "{}", said(absent));
    }
    assert!(said("/etc/passwd").contains("not write it"));
    assert!(said("~/.ssh/id").contains("do not see it"));
    assert!(said("example.com").contains("closed"));
    assert_eq!(sandbox(&bench, &["exec"]).code, Some(64));
    let domains = "[sandbox.network]\nallowed_domains = ['*.a.test', 'b.test:22']\n";
    let bench = self::bench(domains, bash("true"));
    let said = |what: &str| sandbox(&bench, &["explain", what]).stdout;
    assert!(said("x.a.test").contains("reached, by the entry \"*.a.test\""));
    assert!(said("b.test:22").contains("reached, by the entry \"b.test:22\""));
    for host in ["10.0.0.1", "169.254.169.254", "localhost"] {
        let told = said(host);
        assert!(told.contains("not on the public internet"), "{told}");
        assert!(told.contains(&format!("only \"{host}\"")), "{told}");
    }
    for (host, entry) in [
        ("a.test", "a.test"),
        ("b.test", "b.test"),
        ("x.a.test:22", "x.a.test:22"),
    ] {
        let told = said(host);
        assert!(told.contains("not reached"), "{told}");
        assert!(told.contains(&format!("\"{entry}\" in")), "{told}");
    }
}

#[test]
fn the_doctor_tries_it() {
    if unavailable() {
        return;
    }
    let row = |settings: &str| {
        let bench = bench(settings, bash("true"));
        let ran = run(bare(bench.home.path(), bench.workspace.path()).arg("doctor"));
        let lines = ran.stdout.lines();
        let rows: Vec<String> = lines
            .filter(|line| line.contains(" sandbox — "))
            .map(str::to_owned)
            .collect();
        rows.join("")
    };
    assert!(row("").starts_with("! sandbox — off"));
    let works = row(ON);
    assert!(works.contains("confined by bwrap "), "{works}");
    assert!(
        works.contains("(mounts, namespaces, seccomp); egress closed"),
        "{works}"
    );
    let missing = "[sandbox]\nenabled = true\nfail_if_unavailable = true\nbwrap_path = '/no'\n";
    assert!(
        row(missing).starts_with("✗ sandbox — there is none"),
        "{}",
        row(missing)
    );
}

#[test]
fn nothing_is_left_behind() {
    if unavailable() {
        return;
    }
    let bench = bench(ON, bash("sleep 876543 & setsid sleep 876543 & true"));
    let (ran, _) = ask(&bench, &["--allow", "Bash"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    let left = lines.filter(|line| line.starts_with(b"sleep\x00876543"));
    assert_eq!(left.count(), 0);
    let cache = bench.home.path().join(".cache/caliban/sandbox");
    let left = std::fs::read_dir(cache).unwrap().flatten();
    let left = left.filter(|it| it.file_name().to_string_lossy().starts_with("session-"));
    assert_eq!(left.count(), 0);
}

#[test]
fn the_slash_command_tells_what_holds() {
    if unavailable() {
        return;
    }
    let keys = "auto_allow_bash_if_sandboxed = true\nallow_unsandboxed_commands = ['gh']\n[sandbox.filesystem]\ndeny_read = ['${HOME}/hidden']\n[sandbox.network]\nallowed_domains = ['a.test']\n";
    let bench = bench(&format!("{ON}{keys}"), bash("true"));
    let ran = bench.run(["--output-format", "json", "-p", "/sandbox"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let frame: Value = serde_json::from_str(&ran.stdout).unwrap();
    let told = frame["result"].as_str().unwrap();
    for part in [
        "backend",
        "bwrap",
        "egress",
        "proxy: a.test",
        "gh",
        "hidden",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let report = &frame["report"];
    assert_eq!(report["command"], "sandbox", "{frame}");
    assert_eq!(report["hosts"], json!(["a.test"]));
    assert_eq!(report["unsandboxed_commands"], json!(["gh"]));
    assert_eq!(report["auto_allow_bash"], true);
    assert_eq!(bench.server.model_requests().len(), 0);
}
