//! What survives what: workers and daemons that are killed in the middle of their work.

use std::process::Command;
use std::time::{Duration, Instant};

use caliban_testkit::{After, Reply, Script};
use serde_json::{Value, json};

use crate::fleet::{Fleet, PATIENCE, is_alive, kill};

fn sleeping() -> Reply {
    Reply::tool("Bash", json!({"command": "sleep 300"}))
}

/// Processes that an agent started and that still live.
fn left(id: &str) -> Vec<String> {
    let mark = format!("CALIBAN_AGENT_ID={id}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(variables) = std::fs::read(entry.path().join("environ")) else {
            continue;
        };
        let is_marked = variables
            .split(|byte| *byte == 0)
            .any(|it| it == mark.as_bytes());
        let pid: Value = entry
            .file_name()
            .into_string()
            .unwrap()
            .parse::<u64>()
            .unwrap_or(0)
            .into();
        if is_marked && is_alive(&pid) {
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&words).replace('\0', " "));
        }
    }
    found
}

fn wait_for_nobody(id: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !left(id).is_empty() {
        assert!(Instant::now() < deadline, "{:?}", left(id));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_killed_worker_has_crashed_and_goes_on_where_it_was() {
    let fleet = Fleet::new([sleeping(), Reply::text("finished after all")]);
    let id = fleet.ok(&["--allow", "Bash:sleep *", "--bg", "take your time"]);
    let id = id.trim();
    let agent = fleet.until(id, |_| !left(id).iter().all(|it| !it.contains("sleep 300")));
    assert_eq!(agent["state"], "running");
    kill(&agent["pid"]);
    let agent = fleet.until_state(id, "crashed");
    assert_eq!(agent["reason"], "its process ended without a word");
    assert!(!fleet.directory(id).join("end.json").exists());
    wait_for_nobody(id);
    assert!(fleet.ok(&["logs", id]).contains("take your time"));

    fleet.ok(&["agents", "resume", "--all-crashed"]);
    let agent = fleet.until_state(id, "idle");
    assert_eq!(agent["id"], id);
    let body = fleet.bench.server.model_requests()[1].json().to_string();
    assert!(
        body.contains("take your time") && body.contains("You were cut off"),
        "{body}"
    );
    assert!(fleet.ok(&["logs", id]).contains("finished after all"));
}

#[test]
fn a_killed_daemon_takes_nobody_along() {
    let mut held = Reply::text("slow answer");
    held.hold_after = Some(0);
    let fleet = Fleet::new([held]);
    let id = fleet.spawn("x");
    fleet.bench.server.wait_for_requests(1);
    let agent = fleet.until_state(&id, "running");
    let mut viewer = fleet.attach(&id, &["--read-only"]);
    viewer.until(|line| line == "> x");
    let mut watching = fleet.command();
    watching.args(["agents", "watch", "--json"]);
    let mut watcher = crate::fleet::Attached::start(&mut watching);
    watcher.until(|line| line.contains("\"running\""));
    kill(&fleet.daemon()["pid"]);
    fleet.bench.server.release();
    viewer.until(|line| line.contains("slow answer"));
    // Who watches goes on with the next daemon.
    watcher.until(|line| line.contains("\"idle\""));
    drop(watcher);
    // The next command starts another daemon, which finds the agent alive.
    let found = fleet.until_state(&id, "idle");
    assert_eq!(found["pid"], agent["pid"]);
    assert_eq!(fleet.daemon()["alive"], 1);
    fleet.ok(&["kill", &id]);
    assert_eq!(fleet.agent(&id)["state"], "killed");
    assert!(!is_alive(&agent["pid"]));
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A login that ends takes the directory of sockets with it.
#[test]
fn a_directory_of_sockets_that_vanishes_strands_nobody() {
    let fleet = Fleet::new((0..3).map(|_| Reply::text("one")));
    fleet.settings("[fleet]\nmax_running = 1\n");
    let id = fleet.spawn("x");
    fleet.until_state(&id, "idle");
    let daemon = fleet.daemon()["pid"].clone();
    std::fs::remove_dir_all(fleet.runtime()).unwrap();
    // It sees that nobody finds it.
    until("the first daemon ends", || !is_alive(&daemon));
    // One that nobody reaches keeps no place from others.
    let second = fleet.spawn("y");
    fleet.until_state(&second, "idle");
    let begun = Instant::now();
    let ran = fleet.run(&["attach", &id, "--read-only"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(begun.elapsed() < Duration::from_secs(15), "{ran:?}");
    for words in [
        "somebody removed its socket",
        "agents kill",
        "agents resume",
    ] {
        assert!(ran.stderr.contains(words), "{ran:?}");
    }
    fleet.ok(&["kill", &id]);
    fleet.ok(&["agents", "resume", &id]);
    fleet.until_state(&id, "idle");
    fleet
        .attach(&id, &["--read-only"])
        .until(|line| line == "> x");
}

#[test]
fn a_daemon_that_cannot_be_reached_is_named_and_ended() {
    let fleet = Fleet::new([Reply::text("one")]);
    let id = fleet.spawn("x");
    fleet.until_state(&id, "idle");
    let daemon = fleet.daemon();
    let pid = daemon["pid"].to_string();
    let socket = std::path::PathBuf::from(daemon["socket"].as_str().unwrap());
    // One that hangs does not see what becomes of its socket.
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    std::fs::remove_file(&socket).unwrap();
    let ran = fleet.run(&["agents", "list"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr.contains(&format!("the process {pid}")),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("caliban daemon stop"), "{ran:?}");
    let stopped = fleet.ok(&["daemon", "stop"]);
    assert!(stopped.contains(&pid), "{stopped}");
    signal("-CONT");
    until("the daemon ends", || !is_alive(&daemon["pid"]));
    assert_eq!(fleet.agent(&id)["state"], "idle");
    fleet.ok(&["daemon", "stop"]);
    // What is in its place is named.
    std::fs::create_dir(&socket).unwrap();
    let ran = fleet.run(&["agents", "list"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains(socket.to_str().unwrap()), "{ran:?}");
    std::fs::remove_dir(&socket).unwrap();
}

#[test]
fn a_daemon_that_hangs_is_named_and_ended() {
    let fleet = Fleet::new([Reply::text("one")]);
    let id = fleet.spawn("x");
    fleet.until_state(&id, "idle");
    let daemon = fleet.daemon();
    let pid = daemon["pid"].to_string();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    let ran = fleet.run(&["agents", "list"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let socket = daemon["socket"].as_str().unwrap();
    assert!(ran.stderr.contains(socket), "{ran:?}");
    assert!(ran.stderr.contains("caliban daemon stop"), "{ran:?}");
    let stopped = fleet.ok(&["daemon", "stop"]);
    assert!(stopped.contains(&pid), "{stopped}");
    signal("-CONT");
    until("the daemon ends", || !is_alive(&daemon["pid"]));
    assert_eq!(fleet.agent(&id)["state"], "idle");
}

#[test]
fn one_that_crashes_is_begun_again_where_that_is_wanted() {
    let fleet = Fleet::new([sleeping(), Reply::text("second life")]);
    fleet.settings("[fleet]\nrestart = \"on-crash\"\n");
    let id = fleet.ok(&["--allow", "Bash:sleep *", "--bg", "x"]);
    let id = id.trim();
    fleet.bench.server.wait_for_requests(1);
    let before = fleet.until_state(id, "running");
    kill(&before["pid"]);
    let agent = fleet.until_state(id, "idle");
    assert_ne!(agent["pid"], before["pid"]);
    assert!(fleet.ok(&["logs", id]).contains("second life"));
}

#[test]
fn what_does_not_end_in_time_is_killed_all_the_same() {
    let fleet = Fleet::new([sleeping()]);
    fleet.settings("[fleet]\ngrace = \"10s\"\n");
    let id = fleet.ok(&["--allow", "Bash:sleep *", "--bg", "x"]);
    let id = id.trim();
    let agent = fleet.until(id, |_| left(id).iter().any(|it| it.contains("sleep 300")));
    // A process that is stopped hears no request.
    let pid = agent["pid"].to_string();
    assert!(
        Command::new("kill")
            .args(["-STOP", &pid])
            .status()
            .unwrap()
            .success()
    );
    let killed = fleet.ok(&["kill", id, "--now"]);
    assert_eq!(killed, format!("{id} killed: it was ended at once\n"));
    assert_eq!(fleet.agent(id)["state"], "killed");
    wait_for_nobody(id);
}

/// Kills workers, daemons or both at any moment; `CALIBAN_TEST_FLEET_ROUNDS` does it as often as
/// it says. Every agent is in a true state after each, and nothing it started is left.
#[test]
fn kills_at_any_moment_leave_true_states_and_nobody_behind() {
    let rounds = std::env::var("CALIBAN_TEST_FLEET_ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(4_u64);
    let mut script = Script::new([sleeping()]);
    script.after = After::RepeatLast;
    let fleet = Fleet::scripted(script);
    for round in 0..rounds {
        let id = fleet.ok(&["--allow", "Bash:sleep *", "--bg", &format!("round {round}")]);
        let id = id.trim();
        // From before it speaks for the first time to in the middle of its call.
        std::thread::sleep(Duration::from_millis((round * 97) % 400));
        let agent = fleet.agent(id);
        let daemon = fleet.daemon()["pid"].clone();
        match round % 3 {
            0 => kill(&daemon),
            1 if agent["pid"].is_u64() => kill(&agent["pid"]),
            _ => {
                kill(&daemon);
                if agent["pid"].is_u64() {
                    kill(&agent["pid"]);
                }
            }
        }
        let deadline = Instant::now() + PATIENCE;
        let state = loop {
            let found = fleet.agent(id);
            let state = found["state"].as_str().unwrap().to_owned();
            let is_true = match state.as_str() {
                "running" | "idle" => is_alive(&found["pid"]),
                "crashed" => left(id).is_empty(),
                _ => false,
            };
            if is_true {
                break state;
            }
            assert!(Instant::now() < deadline, "{round}: {found} {:?}", left(id));
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(fleet.directory(id).join("spec.json").exists());
        // What its model was asked is in its conversation, which can be read.
        let said = fleet.ok(&["logs", id]);
        let task = format!("round {round}");
        let requests = fleet.bench.server.model_requests();
        let mut asked = requests.iter().rev();
        if asked
            .any(|request| String::from_utf8_lossy(&request.body).contains(&format!("{task}\"")))
        {
            assert!(said.contains(&task), "{round}: {said}");
        }
        if state == "crashed" {
            fleet.ok(&["rm", id]);
        } else {
            fleet.ok(&["rm", id, "--force"]);
        }
        wait_for_nobody(id);
    }
    assert!(fleet.list().is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_killed_agent_left_behind_is_found_and_ended() {
    let fleet = Fleet::new([Reply::text("one"), Reply::text("two")]);
    let id = fleet.spawn("begin");
    let agent = fleet.until_state(&id, "idle");
    let socket = agent["socket"].as_str().unwrap().to_owned();
    kill(&fleet.daemon()["pid"]);
    kill(&agent["pid"]);
    // A command that got away from its guardian is marked like this.
    let escaped = |fleet: &Fleet, start: &[&str]| {
        let mut left = Command::new("sleep")
            .arg("300")
            .env("CALIBAN_AGENT_ID", &id)
            .spawn()
            .unwrap();
        let said = fleet.ok(start);
        assert!(!left.wait().unwrap().success());
        said
    };
    // The next daemon finds it.
    escaped(&fleet, &["agents", "list"]);
    assert_eq!(fleet.agent(&id)["state"], "crashed");
    assert!(!std::path::Path::new(&socket).exists());
    // So does whoever cleans up, and says so.
    std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let said = escaped(&fleet, &["agents", "prune"]);
    assert!(said.contains("`sleep 300`"), "{said}");
    assert!(
        said.contains(&format!("the agent {id} had started")),
        "{said}"
    );
    assert!(
        said.contains(&format!("removed the socket `{socket}`")),
        "{said}"
    );
    // A living agent's processes are its own.
    fleet.ok(&["agents", "resume", &id]);
    let agent = fleet.until_state(&id, "idle");
    let said = fleet.ok(&["agents", "prune"]);
    assert_eq!(said, "nothing to remove\n");
    assert!(is_alive(&agent["pid"]));
}

/// A full disk is said to be full, and no agent is listed that is none.
#[test]
#[cfg(target_os = "linux")]
fn a_registry_without_room_refuses_with_the_reason() {
    const FULL: &str = "mkdir -p \"$1\" && mount -t tmpfs -o size=4k,mode=700 none \"$1\" || exit 99\n\
        \"$2\" --bg x; echo \"exit $?\"; \"$2\" agents list";
    let fleet = Fleet::new([Reply::text("never")]);
    let agents = fleet.directory("x");
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "sh", "-c", FULL, "sh"]);
    inside.args([
        agents.parent().unwrap().as_os_str(),
        env!("CARGO_BIN_EXE_caliban").as_ref(),
    ]);
    let here = fleet.command();
    let given = here
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    inside.env_clear().envs(given);
    inside.current_dir(here.get_current_dir().unwrap());
    let ran = match inside.output() {
        Ok(ran) if ran.status.code() != Some(99) && !ran.stdout.is_empty() => ran,
        other => {
            eprintln!("skipped: nothing can be mounted here: {other:?}");
            return;
        }
    };
    let (said, told) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    assert!(
        said.contains("exit 1\n") && said.ends_with("no agents\n"),
        "{said}\n{told}"
    );
    assert!(told.contains("No space left"), "{told}");
    assert!(fleet.bench.server.requests().is_empty());
}
