//! What stands around the program: the GitHub Action as the runner runs it, the hook for commits, the feature
//! for development containers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Bench, Ran, Wire, finish};

fn packaging(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    root.join("packaging").join(path)
}

/// A job on a runner: what the action is given, and the files by which it tells things.
struct Job {
    bench: Bench,
    files: tempfile::TempDir,
    inputs: Vec<(&'static str, String)>,
}

impl Job {
    fn new(replies: impl Into<Vec<Reply>>) -> Self {
        Self {
            bench: Bench::new(Wire::Anthropic, Script::new(replies.into())),
            files: tempfile::tempdir().unwrap(),
            inputs: vec![(
                "INPUT_PROMPT",
                "Is it good?\n$(touch hacked) `touch hacked`".to_owned(),
            )],
        }
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.inputs.push((name, value.to_owned()));
        self
    }

    fn run(&self, event: &Value) -> Ran {
        let file = |name: &str| self.files.path().join(name);
        fs::write(file("event"), event.to_string()).unwrap();
        let mut script = Command::new(packaging("action/run.sh"));
        script
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.bench.home.path())
            .envs(self.bench.wire.variables(&self.bench.server.url()))
            .env("INPUT_PROGRAM", env!("CARGO_BIN_EXE_caliban"))
            .env("GITHUB_EVENT_PATH", file("event"))
            .env("GITHUB_OUTPUT", file("output"))
            .env("GITHUB_STEP_SUMMARY", file("summary"))
            .env("GITHUB_ENV", file("env"))
            .env("GITHUB_TOKEN", "job-token")
            .env("GITHUB_REPOSITORY", "owner/repository")
            .env("GITHUB_SHA", "0123abc")
            .envs(self.inputs.iter().map(|(name, value)| (name, value)))
            .current_dir(self.bench.workspace.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        finish(script.spawn().unwrap())
    }

    /// An output, read as the runner reads it.
    fn output(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.files.path().join("output")).unwrap();
        let (_, rest) = text.split_once(&format!("{name}<<"))?;
        let (mark, rest) = rest.split_once('\n')?;
        Some(rest.split_once(&format!("\n{mark}\n"))?.0.to_owned())
    }

    fn summary(&self) -> Option<String> {
        fs::read_to_string(self.files.path().join("summary")).ok()
    }
}

/// What the model was sent.
fn asked(bench: &Bench, number: usize) -> String {
    let requests = bench.server.requests();
    String::from_utf8(requests[number].body.to_vec()).unwrap()
}

fn own() -> Value {
    json!({
        "repository": {"full_name": "owner/repository"},
        "pull_request": {"number": 7, "head": {"sha": "fedc", "repo": {"full_name": "owner/repository"}}},
    })
}

/// Events of people who could not push: from a fork, from a fork that is gone, by a comment.
fn foreign(kind: &str) -> Value {
    let mut event = own();
    match kind {
        "fork" => event["pull_request"]["head"]["repo"]["full_name"] = json!("stranger/repository"),
        "gone" => event["pull_request"]["head"]["repo"] = Value::Null,
        _ => event["comment"] = json!({"author_association": "NONE"}),
    }
    event
}

/// Takes one request and answers that it was done.
fn service() -> (String, thread::JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let taken = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
            head += &line;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        stream
            .write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
            .unwrap();
        (head, serde_json::from_slice(&body).unwrap())
    });
    (url, taken)
}

#[test]
fn a_job_gets_the_answer_and_what_it_cost() {
    let job = Job::new([Reply::text(
        "Line one.\n::set-output name=x::y\nresult<<EOF",
    )]);
    let ran = job.run(&own());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let answer = "Line one.\n::set-output name=x::y\nresult<<EOF";
    assert_eq!(job.output("result").as_deref(), Some(answer));
    assert_eq!(job.output("subtype").as_deref(), Some("success"));
    assert_eq!(job.output("exit-code").as_deref(), Some("0"));
    let cost: f64 = job.output("cost-usd").unwrap().parse().unwrap();
    assert!(cost > 0.0);
    assert_eq!(job.summary().as_deref(), Some(&*format!("{answer}\n")));
    assert!(!ran.stdout.contains("set-output"), "{ran:?}");
    assert!(!job.bench.workspace.path().join("hacked").exists());
    let asked = asked(&job.bench, 0);
    assert!(
        asked.contains("$(touch hacked)"),
        "the prompt is sent as it is: {asked}"
    );
}

#[test]
fn the_agent_sees_neither_tokens_nor_the_files_of_the_job() {
    let command = "env; echo seen > $HOME/ran";
    let job = Job::new([
        Reply::text("I look.").and_tool("Bash", json!({"command": command})),
        Reply::text("Done."),
    ])
    .with("INPUT_ALLOW", "Bash");
    assert_eq!(job.run(&own()).code, Some(0));
    assert!(job.bench.home.path().join("ran").exists());
    let told = asked(&job.bench, 1);
    assert!(
        !told.contains("job-token") && !told.contains("GITHUB_ENV"),
        "{told}"
    );
}

#[test]
fn what_no_rule_covers_is_denied() {
    let call = Reply::text("I try.").and_tool("Bash", json!({"command": "touch made"}));
    let job = Job::new([call, Reply::text("Denied.")]);
    assert_eq!(job.run(&own()).code, Some(0));
    assert!(!job.bench.workspace.path().join("made").exists());
}

#[rstest]
fn outsiders_get_nothing_by_default(#[values("fork", "gone", "comment")] kind: &str) {
    let job = Job::new([Reply::text("never")]);
    let ran = job.run(&foreign(kind));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(job.output("subtype").as_deref(), Some("skipped"));
    assert!(job.bench.server.requests().is_empty());
}

#[rstest]
fn outsiders_may_be_read_to_and_change_nothing(#[values("fork", "comment")] kind: &str) {
    let call = Reply::text("I try.").and_tool("Bash", json!({"command": "touch made"}));
    let job = Job::new([call, Reply::text("Denied.")])
        .with("INPUT_OUTSIDERS", "read-only")
        .with("INPUT_ALLOW", "Bash")
        .with("INPUT_PERMISSION_MODE", "acceptEdits");
    let ran = job.run(&foreign(kind));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!job.bench.workspace.path().join("made").exists());
}

#[test]
fn a_comment_carries_the_answer() {
    let (url, taken) = service();
    let job = Job::new([Reply::text("It is \"good\".")])
        .with("INPUT_OUTPUT", "comment")
        .with("GITHUB_API_URL", &url);
    assert_eq!(job.run(&own()).code, Some(0));
    let (head, body) = taken.join().unwrap();
    assert!(
        head.starts_with("POST /repos/owner/repository/issues/7/comments "),
        "{head}"
    );
    assert!(
        head.to_lowercase()
            .contains("authorization: bearer job-token"),
        "{head}"
    );
    assert_eq!(body, json!({"body": "It is \"good\"."}));
}

#[test]
fn a_check_says_how_it_ended() {
    let (url, taken) = service();
    let job = Job::new([Reply::text("Fine.")])
        .with("INPUT_OUTPUT", "check")
        .with("GITHUB_API_URL", &url);
    assert_eq!(job.run(&own()).code, Some(0));
    let (head, body) = taken.join().unwrap();
    assert!(
        head.starts_with("POST /repos/owner/repository/check-runs "),
        "{head}"
    );
    assert_eq!(body["head_sha"], "fedc");
    assert_eq!(body["conclusion"], "success");
}

#[test]
fn a_run_that_fails_fails_the_job() {
    let call = || Reply::text("On.").and_tool("Glob", json!({"pattern": "*"}));
    let job = Job::new([call(), call(), call()]).with("INPUT_MAX_TURNS", "2");
    let ran = job.run(&own());
    assert_eq!(ran.code, Some(75), "{ran:?}");
    assert_eq!(job.output("exit-code").as_deref(), Some("75"));
}

#[rstest]
#[case("INPUT_OUTPUT", "mail", "output: `mail`")]
#[case(
    "INPUT_PERMISSION_MODE",
    "bypassPermissions",
    "permission-mode: `bypassPermissions`"
)]
#[case("INPUT_SETTINGS", "all", "settings: `all`")]
#[case("INPUT_PROMPT", "", "prompt: it is empty")]
fn inputs_that_make_no_sense_are_refused(
    #[case] name: &'static str,
    #[case] value: &str,
    #[case] said: &str,
) {
    let job = Job::new([Reply::text("never")]).with(name, value);
    let ran = job.run(&own());
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(ran.stdout.contains(said), "{ran:?}");
    assert!(job.bench.server.requests().is_empty());
}

#[rstest]
#[case("pass", 0)]
#[case("fail", 1)]
fn a_commit_is_held_up_by_an_objection(#[case] verdict: &str, #[case] code: i32) {
    let answer = json!({"verdict": verdict, "reason": "It tells a secret."});
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new(vec![Reply::text(answer.to_string())]),
    );
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.args(words).current_dir(bench.workspace.path());
        assert!(git.output().unwrap().status.success(), "{words:?}");
    };
    git(&["init", "--quiet"]);
    fs::write(bench.workspace.path().join("key.txt"), "hunter2\n").unwrap();
    git(&["add", "key.txt"]);
    let mut hook = Command::new(packaging("pre-commit/review.sh"));
    hook.env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", bench.home.path())
        .env("CALIBAN_PROGRAM", env!("CARGO_BIN_EXE_caliban"))
        .envs(bench.wire.variables(&bench.server.url()))
        .current_dir(bench.workspace.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ran = finish(hook.spawn().unwrap());
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert_eq!(
        ran.stderr.contains("It tells a secret."),
        code == 1,
        "{ran:?}"
    );
    let asked = asked(&bench, 0);
    assert!(asked.contains("+hunter2"), "{asked}");
}

#[test]
fn a_container_takes_only_the_archive_that_was_meant() {
    let place = tempfile::tempdir().unwrap();
    let inside = place.path().join("caliban-0-x");
    for (path, text) in [
        ("caliban", "#!/bin/sh\necho here\n"),
        ("man/caliban.1", "."),
        ("completions/caliban.bash", "#"),
    ] {
        fs::create_dir_all(inside.join(path).parent().unwrap()).unwrap();
        fs::write(inside.join(path), text).unwrap();
    }
    let archive = place.path().join("a.tar.gz");
    let tar = ["-C", place.path().to_str().unwrap(), "-czf"];
    let made = Command::new("tar")
        .args(tar)
        .arg(&archive)
        .arg("caliban-0-x")
        .status();
    assert!(made.unwrap().success());
    let sum = Command::new("sha256sum").arg(&archive).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap()[..64].to_owned();
    let install = |sum: &str, prefix: &str| {
        let mut script = Command::new(packaging("devcontainer/install.sh"));
        script.env("ARCHIVE", format!("file://{}", archive.display()));
        script
            .env("SHA256", sum)
            .env("CALIBAN_PREFIX", place.path().join(prefix));
        script.output().unwrap()
    };
    assert!(!install("", "none").status.success());
    assert!(!install(&"0".repeat(64), "none").status.success());
    assert!(!place.path().join("none").exists());
    let done = install(&sum, "some");
    assert!(done.status.success(), "{done:?}");
    let ran = Command::new(place.path().join("some/bin/caliband"))
        .output()
        .unwrap();
    assert_eq!(ran.stdout, b"here\n");
}
