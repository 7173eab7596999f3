//! The shell tools as a model uses them.

use std::time::{Duration, Instant};

use crate::support::{Session, await_death};
use caliban_agent::{Effect, Progress, ProgressKind, ToolStatus};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_the_output_and_a_status() {
    let session = Session::new();
    let output = session.bash("echo out; echo err >&2").await;
    assert_eq!(output.status, ToolStatus::Ok);
    assert!(output.text().starts_with("out\nerr\n[exit 0 in "));
    let output = session.bash("cat; exit 3").await;
    assert_eq!(output.status, ToolStatus::Failed);
    assert!(output.text().starts_with("(no output)\n[exit 3 in "));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_kept_between_calls() {
    let session = Session::new();
    session.bash("cd /; export KEPT=yes").await;
    let output = session.bash("pwd; echo \"[$KEPT]\"").await;
    let root = session.context.workspace.root().display().to_string();
    assert!(output.text().starts_with(&format!("{root}\n[]\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_directory_must_exist_within_the_workspace() {
    let session = Session::new();
    std::fs::create_dir(session.root.path().join("inner")).unwrap();
    std::fs::write(session.root.path().join("file"), "").unwrap();
    let inner = json!({"command": "basename $PWD", "cwd": "inner"});
    let output = session.call(&session.bash, inner).await;
    assert!(output.text().starts_with("inner\n"));
    for cwd in ["missing", "file", "..", "/"] {
        let input = json!({"command": "true", "cwd": cwd});
        let output = session.call(&session.bash, input).await;
        assert_eq!(output.status, ToolStatus::InvalidInput, "{cwd}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_that_make_no_sense_are_refused() {
    let session = Session::new();
    for input in [
        json!({}),
        json!({"command": ""}),
        json!({"command": "a\0b"}),
        json!({"command": "x".repeat(128 * 1024 + 1)}),
        json!({"command": "true", "timeout_seconds": 0}),
        json!({"command": "true", "timeout": 1000}),
    ] {
        let output = session.call(&session.bash, input).await;
        assert_eq!(output.status, ToolStatus::InvalidInput, "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_command_runs() {
    let session = Session::new();
    let output = session
        .bash(&format!("true {}", "x".repeat(126 * 1024)))
        .await;
    assert_eq!(output.status, ToolStatus::Ok, "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_above_the_maximum_is_lowered_and_said() {
    let session = Session::new();
    let input = json!({"command": "true", "timeout_seconds": 601, "description": "Does nothing"});
    let output = session.call(&session.bash, input).await;
    assert_eq!(output.status, ToolStatus::Ok);
    assert!(
        output
            .text()
            .contains("[timeout_seconds was lowered to 600")
    );
    let input = json!({"command": "true", "timeout_seconds": 600});
    let output = session.call(&session.bash, input).await;
    assert!(!output.text().contains("lowered"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_costs_neither_memory_nor_much_time() {
    let session = Session::new();
    let started = Instant::now();
    let text = session
        .bash("echo first; yes | head -c 1G; echo last")
        .await
        .text();
    assert!(started.elapsed() < Duration::from_mins(1));
    assert!(text.starts_with("first\ny\n"));
    assert!(text.contains("y\nlast\n[exit 0 in "));
    let omitted = format!("[… {} bytes left out …]", (1 << 30) + 11 - 512 * 1024);
    assert!(text.contains(&omitted));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kilobytes: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kilobytes < 200_000, "{peak}");
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_output_is_made_readable() {
    let session = Session::new();
    let output = session
        .bash("yes x | tr '\\n' '\\r' | head -c 4000000; printf '\\rend\\n\\033[31mred\\033[0m\\n'")
        .await
        .text();
    let shown: Vec<&str> = output.lines().collect();
    assert!(matches!(shown[..], ["x", _, "end", "red", _]), "{shown:?}");
    let output = session.bash("head -c 100000 /bin/sh").await;
    assert!(output.text().starts_with("(binary output of 100000 bytes"));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_run_at_the_same_time() {
    let session = Session::new();
    let started = Instant::now();
    let (first, second) = tokio::join!(session.bash("sleep 1"), session.bash("sleep 1"));
    assert_eq!(
        (first.status, second.status),
        (ToolStatus::Ok, ToolStatus::Ok)
    );
    assert!(started.elapsed() < Duration::from_millis(1900));
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_shown_while_it_comes() {
    let mut session = Session::new();
    let (sender, mut reports) = tokio::sync::mpsc::channel(100);
    session.context.progress = Progress::new(sender, "call".into());
    let command = "echo early; until [ -e go ]; do sleep 0.01; done; yes | head -c 100000";
    let go = session.root.path().join("go");
    let (output, early) = tokio::join!(session.bash(command), async {
        let early = reports.recv().await;
        std::fs::write(go, "").unwrap();
        early
    });
    assert_eq!(output.status, ToolStatus::Ok);
    assert_eq!(early.unwrap().kind, ProgressKind::Output("early\n".into()));
    while let Ok(report) = reports.try_recv() {
        let ProgressKind::Output(text) = report.kind else {
            panic!("{report:?}");
        };
        assert!(text.len() <= 4096);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_is_read_and_is_killed() {
    let session = Session::new();
    let command = "echo $$; until [ -e go ]; do sleep 0.01; done; echo two; echo three; sleep 100";
    let input = json!({"command": command, "run_in_background": true});
    let started = session.call(&session.bash, input).await;
    assert!(
        started
            .text()
            .starts_with("Started in background as bash_1.")
    );

    let pid = read_until(&session, json!({"id": "bash_1"}), "\n[bash_1: running").await;
    let pid = pid.lines().next().unwrap().to_owned();
    std::fs::write(session.root.path().join("go"), "").unwrap();
    let filtered = json!({"bash_id": "bash_1", "filter": "^t.r"});
    let text = read_until(&session, filtered, "three").await;
    assert!(!text.contains("two") && text.contains("; last output 0 s ago]"));

    let killed = session
        .call(&session.kill, json!({"shell_id": "bash_1"}))
        .await;
    assert!(
        killed
            .text()
            .starts_with("bash_1: killed on request after ")
    );
    await_death(&pid);
    let again = session.call(&session.kill, json!({"id": "bash_1"})).await;
    assert!(
        again
            .text()
            .starts_with("bash_1 had already ended: killed on request")
    );
    let nothing = session.call(&session.output, json!({"id": "bash_1"})).await;
    assert!(
        nothing
            .text()
            .starts_with("(no new output)\n[bash_1: killed on request")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_ended_says_how() {
    let session = Session::new();
    let input = json!({"command": "echo out; exit 7", "background": true});
    session.call(&session.bash, input).await;
    read_until(&session, json!({"id": "bash_1"}), "[bash_1: exit 7 after ").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_job_names_the_known_ones() {
    let session = Session::new();
    let none = session.call(&session.output, json!({"id": "bash_1"})).await;
    assert!(none.text().ends_with("There are none."));
    for _ in 0..2 {
        let input = json!({"command": "true", "background": true});
        session.call(&session.bash, input).await;
    }
    for tool in [&session.output, &session.kill] {
        let output = session.call(tool, json!({"id": "bash_9"})).await;
        assert_eq!(output.status, ToolStatus::InvalidInput);
        assert!(output.text().ends_with("Known: bash_1, bash_2."));
    }
    let wrong = json!({"id": "bash_1", "filter": "("});
    let output = session.call(&session.output, wrong).await;
    assert_eq!(output.status, ToolStatus::InvalidInput);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_session_ends_its_jobs() {
    let session = Session::new();
    let input = json!({"command": "echo $$ $PPID; sleep 100", "background": true});
    session.call(&session.bash, input).await;
    let text = read_until(&session, json!({"id": "bash_1"}), "\n[bash_1: running").await;
    session.jobs.shutdown().await;
    await_death(text.lines().next().unwrap());
    let left = std::fs::read_dir(session.root.path().join("jobs")).unwrap();
    assert_eq!(left.count(), 0);
}

/// Reads a job again and again until the text holds `part` and some output.
async fn read_until(session: &Session, input: Value, part: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut all = String::new();
    loop {
        let output = session.call(&session.output, input.clone()).await;
        if !output.text().starts_with('(') {
            all += &output.text();
        }
        if all.contains(part) || output.text().contains(part) && !all.is_empty() {
            return all;
        }
        assert!(Instant::now() < deadline, "{all}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn specifications_are_small_and_effects_are_right() {
    let session = Session::new();
    for (tool, effect, limit) in [
        (&session.bash, Effect::Executes, 900),
        (&session.output, Effect::ReadOnly, 600),
        (&session.kill, Effect::Executes, 600),
    ] {
        assert_eq!(tool.effect(), effect);
        let size = serde_json::to_string(tool.spec()).unwrap().len();
        assert!(size <= limit, "{} takes {size} bytes", tool.spec().name);
    }
    let input = json!({"command": "ls -l"});
    assert_eq!(session.bash.first_arg(&input).as_deref(), Some("ls -l"));
}
