//! Programs to start, and looking after what they left behind.

use std::path::Path;
use std::time::{Duration, Instant};

use caliban_process::{Guard, Invocation};

pub(crate) const GUARD: &str = env!("CARGO_BIN_EXE_process-fixture");

/// What does not want to end and has a child elsewhere, and says who they are.
pub(crate) const STUBBORN: &str = "trap '' TERM HUP
    setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' </dev/null >/dev/null 2>&1 &
    echo \"$$ $!\"; while :; do sleep 1; done";

pub(crate) fn guards() -> [Guard; 2] {
    [Guard::ReExec(GUARD.into()), Guard::None]
}

/// A script with one argument.
pub(crate) fn script(text: &str) -> Invocation {
    Invocation {
        program: "sh".into(),
        args: vec!["-c".into(), text.into(), "script".into(), "given".into()],
        directory: std::env::temp_dir(),
        environment: vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("OWN".into(), "own".into()),
            ("CALIBAN_GUARD_ARGUMENT".into(), "not passed on".into()),
        ],
    }
}

/// Waits until no process of the given ids runs any more.
pub(crate) async fn await_death(pids: String) {
    let wait = move || {
        let deadline = Instant::now() + Duration::from_secs(10);
        for pid in pids.split_whitespace() {
            assert!(pid.parse::<u32>().is_ok(), "`{pid}` is no process id");
            while is_running(pid) {
                assert!(Instant::now() < deadline, "{pid} still runs");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    };
    tokio::task::spawn_blocking(wait).await.unwrap();
}

pub(crate) fn is_running(pid: &str) -> bool {
    let stat = Path::new("/proc").join(pid).join("stat");
    std::fs::read_to_string(stat).is_ok_and(|stat| !stat.contains(") Z "))
}
