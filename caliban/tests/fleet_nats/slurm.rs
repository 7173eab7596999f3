//! Workers that Slurm places: a controller and a node of their own, and the printed script given to
//! `sbatch`.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use caliban_testkit::{Reply, Script};

use crate::apart::{Apart, ip, is_apart};
use crate::fleet::{Fleet, until};
use crate::support::{bare, run};

/// A controller and a node, ended with the test.
struct Slurm {
    daemons: Vec<Child>,
    directory: tempfile::TempDir,
}

impl Slurm {
    fn start() -> Self {
        // Without an address that is more than this machine's own, it resolves nothing.
        ip(&["addr", "add", "10.79.0.1/32", "dev", "lo"]);
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().display();
        let host = Command::new("hostname").arg("-s").output().unwrap();
        let host = String::from_utf8(host.stdout).unwrap();
        let host = host.trim();
        // The node may have more processors by this file than the machine has.
        let text = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\n\
             AuthType=auth/none\nCredType=cred/none\nSlurmdParameters=config_overrides\n\
             StateSaveLocation={place}/state\nSlurmdSpoolDir={place}/spool\n\
             SlurmctldPidFile={place}/controller.pid\nSlurmdPidFile={place}/node.pid\n\
             ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nMpiDefault=none\n\
             JobAcctGatherType=jobacct_gather/none\nSelectType=select/cons_tres\n\
             SchedulerType=sched/builtin\nReturnToService=2\nKillWait=5\n\
             NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=100\n\
             PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP\n"
        );
        for folder in ["state", "spool"] {
            std::fs::create_dir(directory.path().join(folder)).unwrap();
        }
        std::fs::write(directory.path().join("slurm.conf"), text).unwrap();
        let mut slurm = Self {
            daemons: Vec::new(),
            directory,
        };
        for words in [
            &["slurmctld", "-D", "-i"][..],
            &["slurmd", "-D", "-N", host],
        ] {
            let log = slurm.directory.path().join(words[0]);
            let log = std::fs::File::create(log).unwrap();
            let daemon = slurm
                .command(words[0])
                .args(&words[1..])
                .stdin(Stdio::null())
                .stdout(log.try_clone().unwrap())
                .stderr(log)
                .spawn();
            slurm.daemons.push(daemon.unwrap());
        }
        until("the node is there", || {
            slurm.said("sinfo", &["-h", "-o", "%T"]) == "idle"
        });
        slurm
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", self.directory.path().join("slurm.conf"));
        command
    }

    fn said(&self, program: &str, args: &[&str]) -> String {
        let output = self.command(program).args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Whether anything of it is on its way or at work.
    fn has_work(&self) -> bool {
        !self.said("squeue", &["-h"]).is_empty()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.said("scancel", &["--full", "--user", "root"]);
        // What still runs is ended by the node, which may go only then.
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.has_work() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        for daemon in self.daemons.iter_mut().rev() {
            let pid = rustix::process::Pid::from_child(daemon);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let _ = daemon.wait();
        }
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path);
    folders.any(|folder| folder.join(program).is_file())
}

#[test]
fn slurm_runs_workers_and_lets_them_give_jobs_back() {
    if !["slurmctld", "slurmd", "sbatch"]
        .into_iter()
        .all(is_installed)
    {
        eprintln!("skipped: Slurm is not installed; `cargo xtask test` does that as root");
        return;
    }
    let test = "slurm::slurm_runs_workers_and_lets_them_give_jobs_back";
    if !is_apart(Apart::AsRoot, test) {
        return;
    }
    let fleet = Fleet::new(Script::new([
        Reply::text("from a batch"),
        Reply::text("from a batch"),
        Reply::text("never whole").hold_after(1),
        Reply::text("from the next"),
    ]));
    let slurm = Slurm::start();
    let file = fleet.server.path().join("workers.sh");
    std::fs::write(&file, manifest()).unwrap();
    let batch = |flags: &str| {
        let mut command = slurm.command("sbatch");
        command
            .args(["--parsable", "--time=1", "--mem=1", "--output"])
            .arg(fleet.server.path().join("batch-%a.log"))
            .arg(&file)
            .envs(fleet.bench.wire.variables(&fleet.bench.server.url()))
            .env("HOME", fleet.bench.home.path())
            .env("TMPDIR", fleet.server.path())
            .env("CALIBAN_FLEET_SERVER", fleet.server.url())
            .env("CALIBAN_WORKER_FLAGS", flags);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    // Two workers, a job each; then there is nothing left of them.
    let jobs = [fleet.submit("go", &[]), fleet.submit("go", &[])];
    batch("--jobs 1");
    for job in &jobs {
        assert_eq!(
            fleet.result(job)["text"],
            "from a batch",
            "{}",
            said(fleet.server.path())
        );
    }
    until("the workers have ended", || !slurm.has_work());
    // What Slurm sends before the time is up: the job is given back, and others go on.
    let batched = batch("");
    let job = fleet.submit("go on", &[]);
    fleet.bench.server.wait_for_requests(3);
    slurm.said("scancel", &["--batch", "--signal=TERM", &batched]);
    until("the job is given back", || {
        fleet.state(&job)["released"] == 1
    });
    until("the workers have ended", || !slurm.has_work());
    batch("--jobs 1");
    let result = fleet.result(&job);
    assert_eq!(result["text"], "from the next", "{result}");
}

/// The script for two workers.
fn manifest() -> String {
    let home = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_caliban");
    let ran = run(bare(home.path(), home.path())
        .args(["fleet", "manifest", "slurm", "--workers", "2"])
        .args(["--program", program, "--lease", "4s"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout
}

/// What the batches said.
fn said(place: &Path) -> String {
    let logs = (0..2).map(|number| place.join(format!("batch-{number}.log")));
    logs.map(|log| std::fs::read_to_string(log).unwrap_or_default())
        .collect()
}
