//! Many jobs on a few workers while workers and the server are killed.
//!
//! `CALIBAN_FLEET_JOBS=500` runs it at full size; the figures are printed with `--nocapture`.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use caliban_testkit::{Match, Presence, Reply, Script};
use serde_json::{Value, json};

use crate::fleet::{Fleet, Worker};

/// Jobs unless the variable says otherwise.
const JOBS: usize = 24;
const WORKERS: usize = 3;
const SLOTS: &str = "4";

fn jobs() -> usize {
    let wanted = std::env::var("CALIBAN_FLEET_JOBS").ok();
    wanted.map_or(JOBS, |text| text.parse().expect("a number of jobs"))
}

fn start(fleet: &Fleet, number: usize) -> Worker {
    let name = format!("worker-{number}");
    fleet.worker(&name, &["--allow", "Bash"], &["--slots", SLOTS])
}

/// What is known of every job.
fn rows(fleet: &Fleet) -> Vec<Value> {
    let ran = fleet.fleet(["list", "--json", "--limit", "10000"]);
    let lines = ran.stdout.lines();
    lines
        .filter_map(|it| serde_json::from_str(it).ok())
        .collect()
}

fn ended(rows: &[Value]) -> usize {
    let is_over = |row: &&Value| !matches!(row["state"].as_str(), Some("queued" | "running"));
    rows.iter().filter(is_over).count()
}

#[test]
fn every_job_has_one_result_whatever_is_killed() {
    let count = jobs();
    let total = u32::try_from(count).unwrap();
    // A job may be begun again, and then asks again.
    let step = Reply::tool("Bash", json!({"command": "echo step"}));
    let mut fleet = Fleet::new(Script::new([
        step.when(Match::tool_result(Presence::Absent))
            .times(total * 4),
        Reply::text("done").times(total * 4),
    ]));
    let ids: Vec<String> = (0..count)
        .map(|_| uuid::Uuid::new_v4().to_string())
        .collect();
    let begun = Instant::now();
    for id in &ids {
        // Whoever does not know whether it arrived says it again.
        for _ in 0..2 {
            assert_eq!(&fleet.submit("do it", &["--id", id]), id);
        }
    }
    let queued = begun.elapsed();
    let begun = Instant::now();
    let mut workers: Vec<Worker> = (0..WORKERS).map(|number| start(&fleet, number)).collect();
    let mut next = WORKERS;
    let patience = Duration::from_mins(1) + Duration::from_secs(2) * total;
    let (mut workers_killed, mut servers_killed) = (0, 0);
    loop {
        let over = ended(&rows(&fleet));
        if over == count {
            break;
        }
        assert!(begun.elapsed() < patience, "{over} of {count} have ended");
        // A worker in each quarter of the work, the server in the middle of it.
        if over * 4 / count > workers_killed && workers_killed < 3 {
            workers_killed += 1;
            workers[0].kill();
            workers.rotate_left(1);
            workers[WORKERS - 1] = start(&fleet, next);
            next += 1;
        }
        if over * 2 >= count && servers_killed == 0 {
            servers_killed += 1;
            fleet.server.kill();
            fleet.server.start();
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let worked = begun.elapsed();
    assert!(servers_killed == 1 && workers_killed >= 2);
    let mut frames = 0;
    let mut again = 0;
    for id in &ids {
        let told = fleet.frames(id);
        let kind = |kind: &str| told.iter().filter(|frame| frame["type"] == kind).count();
        assert_eq!(kind("ended"), 1, "{id}: {told:?}");
        let result = fleet.result(id);
        assert_eq!(result["outcome"], "done", "{result}");
        assert_eq!(result["text"], "done", "{result}");
        again += usize::from(result["attempt"] != 1);
        let numbers: HashSet<_> = told.iter().map(|it| it["seq"].to_string()).collect();
        assert_eq!(numbers.len(), told.len(), "{id}: a frame came twice");
        frames += told.len();
    }
    let (queued, worked) = (queued.as_secs_f64(), worked.as_secs_f64());
    #[expect(clippy::cast_precision_loss, reason = "figures for the guide")]
    {
        eprintln!(
            "{count} jobs twice submitted in {queued:.1} s ({:.1} a second), worked off in {worked:.1} s \
             ({:.1} jobs and {:.1} stored events a second), {again} of them in a later attempt",
            (count * 2) as f64 / queued,
            count as f64 / worked,
            frames as f64 / worked,
        );
    }
}
