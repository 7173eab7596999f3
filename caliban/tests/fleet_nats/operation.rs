//! Setting a fleet up, looking at it, and having it placed.

use std::process::Command;

use caliban_testkit::{Reply, Script};

use crate::fleet::{Fleet, Server};
use crate::support::{Bench, Ran, Wire, bare, run};

#[test]
fn a_badly_configured_server_is_told() {
    let fleet = Fleet::new(Script::new([]));
    let monitor = format!("http://127.0.0.1:{}", fleet.server.monitor);
    let ran = fleet.fleet(["doctor", "--monitor", &monitor]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for words in [
        "ok version: 2.15.1",
        "!! identity: anybody who reaches the server",
        "-- permissions: this identity could delete streams",
        "!! sync: writes are acknowledged up to 120 s before",
        "ok streams: CALIBAN_JOBS",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    let blind = fleet.fleet(["doctor", "--monitor", "http://127.0.0.1:1", "--json"]);
    assert!(blind.stdout.contains("is not known"), "{}", blind.stdout);
    let empty = Server::new();
    let ran = fleet.fleet(["--server", &empty.url(), "doctor"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout.contains("`caliban fleet init --apply` makes it"),
        "{}",
        ran.stdout
    );
    let lost = fleet.fleet(["--server", &empty.url(), "submit", "--no-repo", "x"]);
    assert!(
        lost.stderr.contains("fleet init --apply"),
        "{}",
        lost.stderr
    );
}

/// Who tries what another role does hears which one.
fn strangers_to_their_part(fleet: impl Fn(&str, &[&str]) -> Ran) {
    let role = "names the key of another role";
    for (who, args, code, words) in [
        ("worker", &["submit", "--no-repo", "go"][..], 1, role),
        ("submitter", &["worker", "--lease", "4s"][..], 1, role),
        (
            "submitter",
            &["submit", "--no-repo", "go", "--pool", "nowhere"][..],
            66,
            "fleet init --apply --pool nowhere",
        ),
    ] {
        let refused = fleet(who, args);
        assert_eq!(refused.code, Some(code), "{refused:?}");
        assert!(refused.stderr.contains(words), "{refused:?}");
    }
}

/// With the configuration that `init` prints, each role can do its part, and no more.
#[test]
fn roles_can_do_their_part_and_no_more() {
    let script = Script::new([
        Reply::tool("Bash", serde_json::json!({"command": "touch made"})),
        Reply::text("done"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let keys = bench.home.path().join("keys");
    let place = bare(bench.home.path(), bench.workspace.path());
    let fleet = |role: &str, server: &str, args: &[&str]| {
        let mut command = bare(bench.home.path(), bench.workspace.path());
        command.args(["fleet", "--server", server, "--key"]);
        run(command.arg(keys.join(format!("{role}.nk"))).args(args))
    };
    drop(place);
    let mut printing = bare(bench.home.path(), bench.workspace.path());
    printing.args(["fleet", "init", "--listen", "127.0.0.1:{port}"]);
    printing.args([
        "--monitor",
        "127.0.0.1:{monitor}",
        "--store",
        "{store}",
        "--keys",
    ]);
    let printed = run(printing.arg(&keys));
    assert_eq!(printed.code, Some(0), "{printed:?}");
    assert!(printed.stdout.contains("sync_interval: always"));
    let seed = std::fs::read_to_string(keys.join("worker.nk")).unwrap();
    assert!(!printed.stdout.contains(seed.trim()));
    let server = Server::with(&printed.stdout);
    let url = server.url();
    let made = fleet("admin", &url, &["init", "--apply", "--lease", "4s"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let stranger =
        run(bare(bench.home.path(), bench.workspace.path())
            .args(["fleet", "--server", &url, "list"]));
    assert_eq!(stranger.code, Some(1), "{stranger:?}");
    for words in ["no key was given", "`--key FILE` or CALIBAN_FLEET_KEY"] {
        assert!(stranger.stderr.contains(words), "{stranger:?}");
    }
    let lost = fleet("nobody", &url, &["list"]);
    assert_eq!(lost.code, Some(1), "{lost:?}");
    assert!(lost.stderr.contains("nobody.nk"), "{lost:?}");
    assert!(
        lost.stderr.contains("names the file with the key"),
        "{lost:?}"
    );
    let submitted = fleet(
        "submitter",
        &url,
        &["submit", "--no-repo", "go", "--on-question", "park"],
    );
    assert_eq!(submitted.code, Some(0), "{submitted:?}");
    let job = submitted.stdout.trim();
    strangers_to_their_part(|role, args| fleet(role, &url, args));
    let mut worker = bench.command();
    worker.args(["fleet", "--server", &url, "--key"]);
    worker.arg(keys.join("worker.nk"));
    worker.args([
        "worker",
        "--lease",
        "4s",
        "--jobs",
        "1",
        "--on-question",
        "park",
    ]);
    let worker = worker.spawn().unwrap();
    crate::fleet::until("the question is told", || {
        let ran = fleet("submitter", &url, &["answer", job, "-", "allow"]);
        ran.code == Some(0)
    });
    let there = bench.home.path().join("there");
    let wait = [
        "result",
        job,
        "--wait",
        "--timeout",
        "60s",
        "--download",
        there.to_str().unwrap(),
    ];
    let result = fleet("submitter", &url, &wait);
    assert_eq!(result.stdout, "done\n", "{result:?}");
    assert!(there.join("changes.patch").exists());
    let ended = crate::support::finish(worker);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains("warning"), "{}", ended.stderr);
    let monitor = format!("http://127.0.0.1:{}", server.monitor);
    let doctor = fleet("submitter", &url, &["doctor", "--monitor", &monitor]);
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    assert!(
        !doctor.stdout.contains("--") && !doctor.stdout.contains("!!"),
        "{}",
        doctor.stdout
    );
}

/// What jobs may do is decided by the flags that a worker is started with.
#[test]
fn flags_of_a_run_go_into_the_command_of_the_workers() {
    let print = |before: &[&str], after: &[&str]| {
        let home = tempfile::tempdir().unwrap();
        run(bare(home.path(), home.path())
            .args(before)
            .args(["fleet", "manifest"])
            .args(after))
    };
    let flags = [
        "--permission-mode",
        "acceptEdits",
        "--allow",
        "Bash:git $(x) 5%",
    ];
    for (kind, command) in [
        (
            "systemd",
            r#"ExecStart="/usr/local/bin/caliban" "--permission-mode" "acceptEdits" "--allow" "Bash:git $$(x) 5%%" fleet worker"#,
        ),
        (
            "slurm",
            "'/usr/local/bin/caliban' '--permission-mode' 'acceptEdits' '--allow' 'Bash:git $(x) 5%' ${CALIBAN_RUN_FLAGS:-} fleet worker",
        ),
        (
            "kubernetes",
            r#"args: ["--permission-mode", "acceptEdits", "--allow", "Bash:git $$(x) 5%", "fleet", "worker""#,
        ),
    ] {
        let ran = print(&flags, &[kind]);
        assert!(ran.stdout.contains(command), "{command}\n{}", ran.stdout);
        let warns = ran.stderr.contains("is the pod itself");
        assert_eq!(warns, kind == "kubernetes", "{ran:?}");
    }
    let keys = print(&[], &["kubernetes"]).stdout;
    assert!(keys.contains("secretName: caliban-worker-key"), "{keys}");
    let relative = print(&[], &["systemd", "--program", "bin/caliban"]);
    assert_eq!(relative.code, Some(64), "{relative:?}");
    assert!(relative.stderr.contains("absolute path"), "{relative:?}");
}

#[test]
fn a_state_that_no_job_has_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let words = ["fleet", "list", "--state", "nonsense"];
    let ran = run(bare(home.path(), home.path()).args(words));
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(ran.stderr.contains("cancelling"), "{ran:?}");
}

fn manifest(args: &[&str]) -> String {
    let home = tempfile::tempdir().unwrap();
    let ran = run(bare(home.path(), home.path())
        .args(["fleet", "--server", "tls://nats.example.org", "manifest"])
        .args(args));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout
}

#[test]
fn what_kubernetes_is_given_fits_its_schema() {
    let text = manifest(&["kubernetes", "--workers", "3", "--runtime-class", "gvisor"]);
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("workers.yaml");
    std::fs::write(&file, &text).unwrap();
    let python = std::env::var_os("CALIBAN_TEST_PYTHON").expect("CALIBAN_TEST_PYTHON is set");
    let checked = Command::new(python)
        .args(["-c", VALIDATE])
        .arg(&file)
        .output()
        .unwrap();
    assert!(checked.status.success(), "{text}\n{checked:?}");
}

const VALIDATE: &str = "\
import sys, yaml, kubernetes_validate
text = yaml.safe_load(open(sys.argv[1]))
kubernetes_validate.validate(text, kubernetes_validate.latest_version(), strict=True)
pod = text['spec']['template']['spec']
assert text['spec']['replicas'] == 3
assert pod['runtimeClassName'] == 'gvisor'
assert pod['automountServiceAccountToken'] is False
assert pod['containers'][0]['securityContext']['readOnlyRootFilesystem'] is True
";

#[test]
fn what_slurm_is_given_runs_as_a_script() {
    let script = Script::new([Reply::text("from a batch")]);
    let fleet = Fleet::new(script);
    let job = fleet.submit("go", &[]);
    let program = env!("CARGO_BIN_EXE_caliban");
    let text = manifest(&[
        "slurm",
        "--workers",
        "4",
        "--program",
        program,
        "--lease",
        "2s",
    ]);
    for line in [
        "#SBATCH --array=0-3",
        "#SBATCH --requeue",
        "#SBATCH --signal=B:TERM@17",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let file = fleet.server.path().join("workers.sh");
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new("bash");
    command
        .arg(&file)
        .env_clear()
        .envs(fleet.bench.wire.variables(&fleet.bench.server.url()))
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", fleet.bench.home.path())
        .env("TMPDIR", fleet.server.path())
        .env("CALIBAN_FLEET_SERVER", fleet.server.url())
        .env("CALIBAN_RUN_FLAGS", "--permission-mode plan")
        .env("CALIBAN_WORKER_FLAGS", "--jobs 1");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(fleet.result(&job)["text"], "from a batch");
}

#[test]
fn what_systemd_is_given_is_a_unit() {
    let text = manifest(&["systemd", "--program", "/bin/true", "--pool", "big"]);
    assert!(text.contains("TimeoutStopSec=75"), "{text}");
    let Ok(found) = Command::new("systemd-analyze").arg("--version").output() else {
        return;
    };
    assert!(found.status.success());
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("caliban-worker-big@1.service");
    std::fs::write(&file, &text).unwrap();
    let checked = Command::new("systemd-analyze")
        .arg("verify")
        .arg("--man=no")
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(!said.contains("caliban-worker-big"), "{said}\n{text}");
}
