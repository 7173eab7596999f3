//! Every command about agents, from the first to the last.

use std::os::unix::fs::PermissionsExt;

use caliban_testkit::Reply;
use serde_json::Value;

use crate::fleet::{Fleet, is_alive};

#[test]
fn an_agent_works_is_listed_read_ended_and_removed() {
    let fleet = Fleet::new([Reply::text("All done here.")]);
    let id = fleet.spawn("do the thing");
    let agent = fleet.until_state(&id, "idle");
    assert_eq!(agent["prompt"], "do the thing");
    assert_eq!(agent["needs"]["kind"], "input");
    assert_eq!(agent["turns"], 1);
    let workspace = fleet.bench.workspace.path().canonicalize().unwrap();
    assert_eq!(agent["cwd"], workspace.to_str().unwrap());
    assert!(is_alive(&agent["pid"]));
    let requests = fleet.bench.server.model_requests();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].json().to_string().contains("do the thing"));

    let table = fleet.ok(&["agents", "list"]);
    assert!(table.starts_with("ID        STATE"), "{table}");
    assert!(table.contains(&format!("{id}  idle")), "{table}");
    let log = fleet.ok(&["logs", &id[..6]]);
    assert!(
        log.contains("do the thing") && log.contains("All done here."),
        "{log}"
    );
    assert_eq!(
        fleet
            .ok(&["agents", "logs", &id, "--tail", "1"])
            .lines()
            .count(),
        1
    );

    // Its file can be read while it waits.
    let waiting: Value = serde_json::from_str(&fleet.ok(&["logs", &id, "--json"])).unwrap();
    assert_eq!(waiting, fleet.file(&id, "session.json"));
    let messages = waiting["messages"].to_string();
    assert!(messages.contains("All done here."), "{messages}");

    let refused = fleet.run(&["rm", &id]);
    assert_eq!(refused.code, Some(64), "{}", refused.stderr);
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    let killed = fleet.ok(&["stop", &id]);
    assert_eq!(killed, format!("{id} killed\n"));
    assert!(!is_alive(&agent["pid"]));
    assert_eq!(fleet.agent(&id)["state"], "killed");
    let end = fleet.file(&id, "end.json");
    assert_eq!(
        (&end["state"], &end["exit_code"]),
        (&"killed".into(), &124.into())
    );
    // Once more changes nothing.
    assert_eq!(fleet.ok(&["kill", &id]), format!("{id} killed\n"));
    let session: Value = serde_json::from_str(&fleet.ok(&["logs", &id, "--json"])).unwrap();
    assert_eq!(session, fleet.file(&id, "session.json"));

    // What cannot be read is not nothing.
    std::fs::write(fleet.directory(&id).join("session.json"), "no JSON").unwrap();
    let unread = fleet.run(&["logs", &id]);
    assert_eq!(unread.code, Some(1), "{}", unread.stderr);
    assert!(unread.stderr.contains("session.json"), "{}", unread.stderr);

    assert_eq!(fleet.ok(&["rm", &id]), format!("removed {id}\n"));
    assert!(!fleet.directory(&id).exists());
    assert_eq!(fleet.ok(&["agents", "list"]), "no agents\n");
    for command in ["attach", "logs", "stop", "kill", "respawn", "rm"] {
        let unknown = fleet.run(&[command, &id]);
        assert_eq!(unknown.code, Some(66), "{command}: {}", unknown.stderr);
    }
}

#[test]
fn what_is_written_down_is_private_and_holds_no_key() {
    let fleet = Fleet::new([Reply::text("ok")]);
    let id = fleet.ok(&[
        "--settings",
        r#"{"env": {"MY_VALUE": "hidden-in-settings"}}"#,
        "agents",
        "spawn",
        "--bg",
        "--prompt",
        "x",
        "--label",
        "a name",
    ]);
    let id = id.trim();
    let agent = fleet.until_state(id, "idle");
    assert_eq!(agent["label"], "a name");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    let directory = fleet.directory(id);
    assert_eq!(mode(&directory) & 0o777, 0o700);
    assert_eq!(mode(&fleet.runtime()) & 0o777, 0o700);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&directory).unwrap() {
        let entry = entry.unwrap();
        if !entry.path().is_file() {
            continue;
        }
        let name = entry.file_name().into_string().unwrap();
        // What only marks a time holds nothing.
        assert!(
            name.starts_with('.') || mode(&entry.path()) & 0o777 == 0o600,
            "{name}"
        );
        names.push(name);
        let text = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned();
        assert!(!text.contains("test-key"), "{:?}", entry.path());
        assert!(!text.contains("hidden-in-settings"), "{:?}", entry.path());
    }
    for name in ["spec.json", "state.json", "worker.lock", "worker.log"] {
        assert!(
            names.iter().any(|found| found == name),
            "{name} in {names:?}"
        );
    }
    for entry in std::fs::read_dir(fleet.runtime()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()) & 0o077, 0, "{:?}", entry.path());
    }
    // What was not kept must be given again.
    fleet.ok(&["kill", id]);
    let refused = fleet.run(&["respawn", id]);
    assert_eq!(refused.code, Some(64), "{}", refused.stderr);
    assert!(refused.stderr.contains("--settings"), "{}", refused.stderr);
}

#[test]
fn a_task_may_come_from_standard_input() {
    let fleet = Fleet::new([Reply::text("one"), Reply::text("two")]);
    for args in [&["--bg", "-"][..], &["agents", "spawn", "--prompt", "-"]] {
        let file = fleet.bench.home.path().join("task.md");
        std::fs::write(&file, "a task of\nseveral lines\n").unwrap();
        let mut command = fleet.command();
        command
            .args(args)
            .stdin(std::fs::File::open(&file).unwrap());
        let ran = crate::support::run(&mut command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let id = ran.stdout.trim();
        fleet.until_state(id, "idle");
        assert!(fleet.ok(&["logs", id]).contains("several lines"));
    }
}

#[test]
fn a_respawned_agent_has_another_id_and_the_same_task() {
    let fleet = Fleet::new([Reply::text("first"), Reply::text("second")]);
    let id = fleet.spawn("the very same");
    fleet.until_state(&id, "idle");
    let new = fleet.ok(&["respawn", &id]).trim().to_owned();
    assert_ne!(new, id);
    let agent = fleet.until_state(&new, "idle");
    assert_eq!(agent["prompt"], "the very same");
    assert_eq!(fleet.list().len(), 1);
    assert!(fleet.ok(&["logs", &new]).contains("second"));
    assert_eq!(fleet.run(&["logs", &id]).code, Some(66));
}

#[test]
fn the_daemon_says_how_it_is_doing_and_goes_without_its_agents() {
    let fleet = Fleet::new([Reply::text("ok")]);
    assert_eq!(fleet.daemon()["running"], false);
    let id = fleet.spawn("x");
    let agent = fleet.until_state(&id, "idle");
    let status = fleet.daemon();
    assert_eq!(status["alive"], 1);
    let socket = status["socket"].as_str().unwrap();
    let name = std::path::Path::new(socket).file_name().unwrap();
    assert_eq!(name.len(), "0123456789abcdef.sock".len());
    let told = fleet.ok(&["daemon", "status"]);
    assert!(told.starts_with("healthy\npid "), "{told}");
    let doctor = fleet.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("1 agents, 1 alive, daemon running"),
        "{doctor}"
    );
    let stopped = fleet.ok(&["daemon", "stop"]);
    assert_eq!(
        stopped,
        "the daemon has ended; 1 agent goes on without it\n"
    );
    assert!(is_alive(&agent["pid"]));
    // The next command starts another one, which takes the agent over.
    assert_eq!(fleet.agent(&id)["pid"], agent["pid"]);
    assert_ne!(fleet.daemon()["pid"], status["pid"]);
    assert_eq!(fleet.daemon()["alive"], 1);
}

#[test]
fn an_agent_that_fails_says_why() {
    let fleet = Fleet::new([]);
    let id = fleet.spawn("x");
    let agent = fleet.until_state(&id, "failed");
    assert!(
        agent["reason"]
            .as_str()
            .is_some_and(|reason| !reason.is_empty()),
        "{agent}"
    );
    assert_eq!(agent["exit_code"], 1);
    let nowhere = fleet.bench.workspace.path().join("gone");
    std::fs::create_dir(&nowhere).unwrap();
    let mut command = fleet.command();
    let ran = crate::support::run(command.current_dir(&nowhere).args(["--bg", "y"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let second = ran.stdout.trim();
    fleet.until_state(second, "failed");
    std::fs::remove_dir(&nowhere).unwrap();
    fleet.ok(&["agents", "resume", second]);
    let agent = fleet.until_state(second, "failed");
    assert!(
        agent["reason"].as_str().unwrap().contains("is gone"),
        "{agent}"
    );
    // Both have ended just now; nobody is older than a day.
    assert_eq!(
        fleet.ok(&["agents", "prune", "--days", "1"]),
        "nothing to remove\n"
    );
    assert_eq!(
        fleet
            .ok(&["agents", "prune", "--days", "0"])
            .lines()
            .count(),
        2
    );
}

#[test]
fn only_so_many_work_at_the_same_time() {
    let mut held = Reply::text("one");
    held.hold_after = Some(0);
    let fleet = Fleet::new([held, Reply::text("two")]);
    fleet.settings("[fleet]\nmax_running = 1\nmax_agents = 2\n");
    let first = fleet.spawn("first");
    fleet.bench.server.wait_for_requests(1);
    let second = fleet.spawn("second");
    assert_eq!(fleet.agent(&second)["state"], "spawning");
    assert_eq!(fleet.daemon()["waiting"], 1);
    let third = fleet.run(&["--bg", "third"]);
    assert_eq!(third.code, Some(1), "{}", third.stderr);
    assert!(
        third.stderr.contains("fleet.max_agents"),
        "{}",
        third.stderr
    );
    fleet.bench.server.release();
    fleet.until_state(&first, "idle");
    fleet.until_state(&second, "idle");
}

#[test]
fn one_that_waits_can_be_ended_before_it_began() {
    let mut held = Reply::text("one");
    held.hold_after = Some(0);
    let fleet = Fleet::new([held]);
    fleet.settings("[fleet]\nmax_running = 1\ngrace = \"5s\"\n");
    let first = fleet.spawn("first");
    fleet.bench.server.wait_for_requests(1);
    let second = fleet.spawn("second");
    let killed = fleet.ok(&["kill", &second]);
    assert!(
        killed.contains("killed: it was ended before it began"),
        "{killed}"
    );
    let killed = fleet.ok(&["kill", &first]);
    assert_eq!(killed, format!("{first} killed\n"));
    assert_eq!(fleet.bench.server.model_requests().len(), 1);
}

#[test]
fn an_agent_that_waits_alone_is_done_after_a_while() {
    let fleet = Fleet::new([Reply::text("ok"), Reply::text("more")]);
    fleet.settings("[fleet]\nidle_timeout = \"100ms\"\n");
    let id = fleet.spawn("x");
    let agent = fleet.until_state(&id, "done");
    assert_eq!(
        (&agent["exit_code"], &agent["turns"]),
        (&0.into(), &1.into())
    );
    let resumed = fleet.ok(&["agents", "resume", &id, "--prompt", "and now more"]);
    assert!(resumed.starts_with(&id), "{resumed}");
    let agent = fleet.until_state(&id, "done");
    assert_eq!(agent["id"], id);
    let log = fleet.ok(&["logs", &id]);
    assert!(
        log.contains("and now more") && log.contains("more"),
        "{log}"
    );
    let requests = fleet.bench.server.model_requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].json().to_string().contains("ok"));
}

#[test]
fn a_task_of_a_session_and_misuse_are_refused() {
    let fleet = Fleet::new([]);
    for args in [
        &["--bg", ""][..],
        &["--bg", "x", "--session", "s"],
        &["--bg", "x", "--no-save"],
        &["--bg", "x", "-p", "y"],
        &["--bg", "x", "y"],
        &["agents"],
        &["agents", "spawn"],
    ] {
        assert_eq!(fleet.run(args).code, Some(64), "{args:?}");
    }
    assert_eq!(fleet.run(&["kill", "zz"]).code, Some(66));
    assert!(fleet.list().is_empty());
}

#[test]
fn agents_are_watched_as_they_change() {
    let fleet = Fleet::new([Reply::text("ok")]);
    let mut command = fleet.command();
    command.args(["agents", "watch", "--json"]);
    let mut watch = crate::fleet::Attached::start(&mut command);
    watch.until(|line| line == "[]");
    let id = fleet.spawn("x");
    let is = |line: &str, state: &str| {
        let agents: Value = serde_json::from_str(line).unwrap();
        agents[0]["id"] == id.as_str() && agents[0]["state"] == state
    };
    watch.until(|line| is(line, "idle"));
    fleet.ok(&["kill", &id]);
    watch.until(|line| is(line, "killed"));
    fleet.ok(&["rm", &id]);
    watch.until(|line| line == "[]");
}

#[test]
fn the_daemon_can_be_started_by_its_own_name() {
    let fleet = Fleet::new([Reply::text("ok")]);
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("caliband");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_caliban"), &name).unwrap();
    let mut command = std::process::Command::new(&name);
    command
        .env_clear()
        .env("HOME", fleet.bench.home.path())
        .env("CALIBAN_DAEMON_RUNTIME_DIR", fleet.runtime())
        .current_dir(fleet.bench.workspace.path());
    let mut daemon = crate::fleet::Attached::start(&mut command);
    daemon.until(|line| line == "ready");
    assert_eq!(fleet.daemon()["pid"], daemon.id());
    let id = fleet.spawn("x");
    fleet.until_state(&id, "idle");
    fleet.ok(&["daemon", "stop"]);
    assert_eq!(daemon.detach().0, Some(0));
}
