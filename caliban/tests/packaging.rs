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
            .env("GITHUB_EVENT_NAME", "pull_request")
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

/// Events of people who could not push, with the names that they go by.
fn foreign(kind: &str) -> (&'static str, Value) {
    let mut event = own();
    let name = match kind {
        "fork" => {
            event["pull_request"]["head"]["repo"]["full_name"] = json!("stranger/repository");
            "pull_request_target"
        }
        // A deleted fork leaves a pull request without a repository.
        "gone" => {
            event["pull_request"]["head"]["repo"] = Value::Null;
            "pull_request"
        }
        "comment" => {
            event["comment"] = json!({"author_association": "NONE"});
            event["issue"] = json!({"number": 7, "author_association": "OWNER"});
            "issue_comment"
        }
        "review" => {
            event["review"] = json!({"author_association": "CONTRIBUTOR"});
            "pull_request_review"
        }
        "review of a fork" => {
            event["pull_request"]["head"]["repo"]["full_name"] = json!("stranger/repository");
            event["review"] = json!({"author_association": "OWNER"});
            "pull_request_review"
        }
        "discussion" => {
            event["discussion"] = json!({"author_association": "NONE"});
            "discussion"
        }
        "issue of nobody" => "issues",
        "run of a fork" => {
            event["workflow_run"] = json!({
                "event": "pull_request",
                "head_repository": {"full_name": "stranger/repository"},
            });
            "workflow_run"
        }
        "run of a comment" => {
            event["workflow_run"] = json!({
                "event": "issue_comment",
                "head_repository": {"full_name": "owner/repository"},
            });
            "workflow_run"
        }
        _ => "gollum",
    };
    (name, event)
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
fn outsiders_get_nothing_by_default(
    #[values(
        "fork",
        "gone",
        "comment",
        "review",
        "review of a fork",
        "discussion",
        "issue of nobody",
        "run of a fork",
        "run of a comment",
        "what nobody knows"
    )]
    kind: &str,
) {
    let (name, event) = foreign(kind);
    let job = Job::new([Reply::text("never")]).with("GITHUB_EVENT_NAME", name);
    let ran = job.run(&event);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(job.output("subtype").as_deref(), Some("skipped"));
    assert!(job.bench.server.requests().is_empty());
}

#[rstest]
#[case("push", json!({}))]
#[case("schedule", json!({"schedule": "0 0 * * *"}))]
#[case("issues", json!({"issue": {"number": 7, "author_association": "OWNER"}}))]
#[case("issue_comment", json!({
    "issue": {"number": 7, "author_association": "NONE"},
    "comment": {"author_association": "MEMBER"},
}))]
#[case("discussion", json!({"discussion": {"author_association": "COLLABORATOR"}}))]
#[case("workflow_run", json!({
    "workflow_run": {"event": "push", "head_repository": {"full_name": "owner/repository"}},
}))]
fn who_belongs_to_the_repository_is_served(#[case] name: &str, #[case] event: Value) {
    let job = Job::new([Reply::text("Done.")]).with("GITHUB_EVENT_NAME", name);
    let ran = job.run(&event);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(job.output("subtype").as_deref(), Some("success"));
}

/// A path on which everything is that a job has, but for one program.
fn path_without(name: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for directory in std::env::split_paths(&std::env::var_os("PATH").unwrap()) {
        for program in fs::read_dir(directory).into_iter().flatten().flatten() {
            if program.file_name() != name {
                // One that comes later on the path is not found.
                let link = place.path().join(program.file_name());
                let _ = std::os::unix::fs::symlink(program.path(), link);
            }
        }
    }
    place
}

#[test]
fn an_event_that_cannot_be_read_lets_nothing_run() {
    let (name, fork) = foreign("fork");
    let path = path_without("jq");
    let job = Job::new([Reply::text("never")])
        .with("GITHUB_EVENT_NAME", name)
        .with("PATH", path.path().to_str().unwrap());
    let ran = job.run(&fork);
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(ran.stdout.contains("`jq` is not there"), "{ran:?}");
    assert!(job.bench.server.requests().is_empty());
    for (variable, value, said) in [
        (
            "GITHUB_EVENT_PATH",
            "/nonexistent",
            "cannot be read from `/nonexistent`",
        ),
        ("GITHUB_EVENT_NAME", "", "does not say which event"),
    ] {
        let job = Job::new([Reply::text("never")]).with(variable, value);
        let ran = job.run(&own());
        assert_eq!(ran.code, Some(64), "{ran:?}");
        assert!(ran.stdout.contains(said), "{ran:?}");
        assert!(job.bench.server.requests().is_empty());
    }
    let job = Job::new([Reply::text("never")]);
    let ran = job.run(&json!([]));
    assert_eq!(ran.code, Some(64), "{ran:?}");
}

#[test]
fn the_token_of_a_checkout_is_gone_before_the_agent_runs() {
    let job = Job::new([
        Reply::text("I look.").and_tool("Bash", json!({"command": "cat .git/config"})),
        Reply::text("Done."),
    ])
    .with("INPUT_ALLOW", "Bash");
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.args(words).current_dir(job.bench.workspace.path());
        assert!(git.output().unwrap().status.success(), "{words:?}");
    };
    git(&["init", "--quiet"]);
    git(&["config", "user.name", "Kept"]);
    let header = "AUTHORIZATION: basic c2VjcmV0";
    git(&["config", "http.https://example.com/.extraheader", header]);
    git(&[
        "config",
        "includeIf.gitdir:/w/.git.path",
        "/tmp/git-credentials-1.config",
    ]);
    assert_eq!(job.run(&own()).code, Some(0));
    let told = asked(&job.bench, 1);
    assert!(told.contains("Kept"), "{told}");
    assert!(
        !told.contains("c2VjcmV0") && !told.contains("git-credentials"),
        "{told}"
    );
}

#[rstest]
fn outsiders_may_be_read_to_and_change_nothing(#[values("fork", "comment")] kind: &str) {
    let call = Reply::text("I try.").and_tool("Bash", json!({"command": "touch made"}));
    let (name, event) = foreign(kind);
    let job = Job::new([call, Reply::text("Denied.")])
        .with("GITHUB_EVENT_NAME", name)
        .with("INPUT_OUTSIDERS", "read-only")
        .with("INPUT_ALLOW", "Bash")
        .with("INPUT_PERMISSION_MODE", "acceptEdits");
    let ran = job.run(&event);
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
fn a_run_without_an_answer_says_so_and_keeps_its_code() {
    let (url, taken) = service();
    let job = Job::new([Reply::text("never")])
        .with("INPUT_PROGRAM", "/bin/false")
        .with("INPUT_OUTPUT", "comment")
        .with("GITHUB_API_URL", &url);
    assert_eq!(job.run(&own()).code, Some(1));
    let (_, body) = taken.join().unwrap();
    let said = "The run ended with an error (exit code 1) and without an answer.";
    assert_eq!(body, json!({"body": said}));

    // Nobody listens there.
    let call = || Reply::text("On.").and_tool("Glob", json!({"pattern": "*"}));
    let job = Job::new([call(), call(), call()])
        .with("INPUT_MAX_TURNS", "2")
        .with("INPUT_OUTPUT", "comment")
        .with("GITHUB_API_URL", "http://127.0.0.1:1");
    let ran = job.run(&own());
    assert_eq!(ran.code, Some(75), "{ran:?}");
    assert!(ran.stdout.contains("could not be published"), "{ran:?}");
}

#[test]
fn a_comment_that_has_no_place_costs_nothing() {
    let job = Job::new([Reply::text("never")])
        .with("GITHUB_EVENT_NAME", "push")
        .with("INPUT_OUTPUT", "comment");
    let ran = job.run(&json!({}));
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(job.bench.server.requests().is_empty());
}

#[test]
fn the_program_comes_out_of_the_archive_that_was_meant() {
    let place = tempfile::tempdir().unwrap();
    let (archive, sum) = archive(
        place.path(),
        "#!/bin/sh\necho '{\"result\": \"fetched\"}'\n",
    );
    let url = format!("file://{}", archive.display());
    let job = |sum: &str| {
        Job::new([Reply::text("never")])
            .with("INPUT_PROGRAM", "caliban")
            .with("INPUT_ARCHIVE", &url)
            .with("RUNNER_TEMP", place.path().to_str().unwrap())
            .with("INPUT_SHA256", sum)
    };
    let right = job(&sum);
    assert_eq!(right.run(&own()).code, Some(0));
    assert_eq!(right.output("result").as_deref(), Some("fetched"));
    for (sum, said) in [
        ("", "checksum"),
        (&*"0".repeat(64), "not what the checksum says"),
    ] {
        let ran = job(sum).run(&own());
        assert_eq!(ran.code, Some(64), "{ran:?}");
        assert!(ran.stdout.contains(said), "{ran:?}");
    }
    let ran = Job::new([Reply::text("never")])
        .with("INPUT_PROGRAM", "no-such-program")
        .run(&own());
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(
        ran.stdout.contains("name `archive` and `sha256`"),
        "{ran:?}"
    );
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

/// An archive as `cargo xtask dist` lays it out, and its checksum.
fn archive(place: &Path, program: &str) -> (PathBuf, String) {
    use std::os::unix::fs::PermissionsExt as _;
    let inside = place.join("caliban-0-x");
    for (path, text) in [
        ("caliban", program),
        ("man/caliban.1", "."),
        ("completions/caliban.bash", "#"),
    ] {
        fs::create_dir_all(inside.join(path).parent().unwrap()).unwrap();
        fs::write(inside.join(path), text).unwrap();
    }
    fs::set_permissions(inside.join("caliban"), fs::Permissions::from_mode(0o755)).unwrap();
    let archive = place.join("a.tar.gz");
    let made = Command::new("tar")
        .args(["-C", place.to_str().unwrap(), "-czf"])
        .arg(&archive)
        .arg("caliban-0-x")
        .status();
    assert!(made.unwrap().success());
    let sum = Command::new("sha256sum").arg(&archive).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap()[..64].to_owned();
    (archive, sum)
}

#[test]
fn a_container_takes_only_the_archive_that_was_meant() {
    let place = tempfile::tempdir().unwrap();
    let (archive, sum) = archive(place.path(), "#!/bin/sh\necho here\n");
    let install = |sum: &str, prefix: &str| {
        let mut script = Command::new(packaging("devcontainer/install.sh"));
        script.env("ARCHIVE", format!("file://{}", archive.display()));
        script
            .env("SHA256", sum)
            .env("BUBBLEWRAP", "false")
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

#[test]
fn a_container_gets_bubblewrap_and_nothing_from_a_name_that_was_not_given() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().unwrap();
    let (archive, sum) = archive(place.path(), "#!/bin/sh\n");
    let path = path_without("bwrap");
    let packages = path.path().join("apt-get");
    let asked = place.path().join("asked");
    let _ = fs::remove_file(&packages);
    fs::write(
        &packages,
        format!("#!/bin/sh\necho \"$@\" >>{}\n", asked.display()),
    )
    .unwrap();
    fs::set_permissions(&packages, fs::Permissions::from_mode(0o755)).unwrap();
    let install = |archive: &str| {
        let mut script = Command::new(packaging("devcontainer/install.sh"));
        script
            .env("PATH", path.path())
            .env("ARCHIVE", archive)
            .env("SHA256", &sum)
            .env("CALIBAN_PREFIX", place.path().join("prefix"));
        script.output().unwrap()
    };
    let nothing = install("");
    assert!(!nothing.status.success());
    let said = String::from_utf8_lossy(&nothing.stderr).into_owned();
    assert!(said.contains("name an `archive`"), "{said}");
    assert!(!asked.exists());
    let done = install(&format!("file://{}", archive.display()));
    assert!(done.status.success(), "{done:?}");
    let asked = fs::read_to_string(asked).unwrap();
    assert!(
        asked.contains("install --quiet --yes bubblewrap"),
        "{asked}"
    );
}

/// The entry for the registry of ACP names what is built from here, and what it names speaks ACP.
#[test]
fn the_entry_of_the_registry_is_of_this_version() {
    let text = fs::read_to_string(packaging("acp-registry/caliban/agent.json")).unwrap();
    let entry: Value = serde_json::from_str(&text).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(entry["id"], "caliban");
    assert_eq!(entry["version"], version);
    for key in [
        "name",
        "description",
        "repository",
        "license",
        "license_url",
    ] {
        assert!(
            entry[key].as_str().is_some_and(|text| !text.is_empty()),
            "{key}"
        );
    }
    let npx = &entry["distribution"]["npx"];
    assert_eq!(npx["package"], format!("caliban@{version}"));
    let words: Vec<&str> = npx["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect();
    let bench = Bench::new(Wire::Anthropic, Script::new(Vec::<Reply>::new()));
    let mut agent = bench
        .command()
        .args(&words)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
                       "params": {"protocolVersion": 1}});
    writeln!(agent.stdin.take().unwrap(), "{hello}").unwrap();
    let ran = finish(agent);
    let answer: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(answer["result"]["protocolVersion"], 1, "{ran:?}");
    // The registry takes only agents that say how one logs in.
    assert!(answer["result"]["authMethods"].is_array(), "{answer}");
}
