use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;

use futures::future::join_all;
use rustix::process::{Pid, test_kill_process};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::key_helper::KeyHelpers;

/// A folder with scripts that serve as helpers.
struct Bench {
    folder: TempDir,
    warnings: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            warnings: Arc::default(),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn script(&self, name: &str, body: &str) -> String {
        let path = self.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn surroundings(&self) -> Surroundings {
        let warnings = Arc::clone(&self.warnings);
        Surroundings {
            directory: self.path().to_owned(),
            environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            guard: Guard::None,
            ttl: None,
            warn: Arc::new(move |text| warnings.lock().unwrap().push(text)),
        }
    }

    /// A helper that prints `key-1`, `key-2`, …
    fn counting(&self, setting: impl FnOnce(String) -> Value) -> HelperKey {
        let script = self.script(
            "count",
            "echo run >>runs; echo key-$(wc -l <runs | tr -d ' ')",
        );
        key(&setting(script), self.surroundings())
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.path().join("runs")).map_or(0, |runs| runs.lines().count())
    }

    /// Waits until a script has made its mark.
    async fn until(&self, name: &str) -> String {
        until(|| {
            let text = fs::read_to_string(self.path().join(name)).ok()?;
            text.ends_with('\n').then_some(text)
        })
        .await
    }
}

fn key(setting: &Value, surroundings: Surroundings) -> HelperKey {
    let helpers = KeyHelpers::from_value(setting).unwrap();
    let spec = helpers.for_provider("anthropic").unwrap().clone();
    HelperKey::new("anthropic", spec, surroundings)
}

/// Looks again and again, for half a minute of real time.
async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let start = std::time::Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "it never happened"
        );
        tokio::task::yield_now().await;
    }
}

async fn get(key: &HelperKey, freshness: Freshness) -> String {
    let key = key.key(freshness).await.unwrap().unwrap();
    key.expose_secret().to_owned()
}

async fn fail(key: &HelperKey) -> Error {
    key.key(Freshness::Cached).await.unwrap_err()
}

async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

fn is_alive(process: &str) -> bool {
    let id = Pid::from_raw(process.trim().parse().unwrap()).unwrap();
    // One that has ended but whose parent has not looked yet counts as ended.
    let state = fs::read_to_string(format!("/proc/{}/stat", process.trim()));
    test_kill_process(id).is_ok() && !state.is_ok_and(|state| state.contains(") Z "))
}

#[tokio::test]
async fn a_key_is_remembered_until_its_time_is_over() {
    let bench = Bench::new();
    let key = bench.counting(Value::from);
    assert!(key.renewable());
    assert_eq!(get(&key, Freshness::Cached).await, "key-1");
    pass(Duration::from_secs(299)).await;
    assert_eq!(get(&key, Freshness::Cached).await, "key-1");
    pass(Duration::from_secs(2)).await;
    assert_eq!(get(&key, Freshness::Cached).await, "key-2");
    assert_eq!(bench.runs(), 2);
}

#[tokio::test]
async fn a_rejected_key_is_replaced_and_the_new_one_remembered() {
    let bench = Bench::new();
    let key = bench.counting(Value::from);
    assert_eq!(get(&key, Freshness::Cached).await, "key-1");
    assert_eq!(get(&key, Freshness::Renewed).await, "key-2");
    assert_eq!(get(&key, Freshness::Cached).await, "key-2");
    assert_eq!(bench.runs(), 2);
}

#[tokio::test]
async fn an_interval_of_zero_remembers_nothing() {
    let bench = Bench::new();
    let key = bench.counting(|command| json!({ "command": command, "refreshIntervalMs": 0 }));
    assert_eq!(get(&key, Freshness::Cached).await, "key-1");
    assert_eq!(get(&key, Freshness::Cached).await, "key-2");
}

#[tokio::test]
async fn the_override_beats_the_interval() {
    let bench = Bench::new();
    let script = bench.script(
        "ttl",
        "echo run >>runs; echo \"$CALIBAN_API_KEY_HELPER_TTL_MS\"",
    );
    let mut surroundings = bench.surroundings();
    surroundings.ttl = Some(Duration::from_millis(1500));
    let key = key(
        &json!({ "command": script, "refreshIntervalMs": 0 }),
        surroundings,
    );
    assert_eq!(get(&key, Freshness::Cached).await, "1500");
    get(&key, Freshness::Cached).await;
    assert_eq!(bench.runs(), 1);
    pass(Duration::from_secs(2)).await;
    get(&key, Freshness::Cached).await;
    assert_eq!(bench.runs(), 2);
}

#[tokio::test]
async fn fifty_callers_share_one_run_even_without_memory() {
    let bench = Bench::new();
    let key = bench.counting(|command| json!({ "command": command, "refreshIntervalMs": 0 }));
    let keys = join_all((0..50).map(|_| get(&key, Freshness::Cached))).await;
    assert!(keys.iter().all(|key| key == "key-1"), "{keys:?}");
    let keys = join_all((0..50).map(|_| get(&key, Freshness::Renewed))).await;
    assert!(keys.iter().all(|key| key == "key-2"), "{keys:?}");
    assert_eq!(bench.runs(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_on_other_threads_share_the_run_too() {
    let bench = Bench::new();
    let key = Arc::new(bench.counting(Value::from));
    let callers = (0..50).map(|_| {
        let key = Arc::clone(&key);
        tokio::spawn(async move { get(&key, Freshness::Cached).await })
    });
    for outcome in join_all(callers).await {
        assert_eq!(outcome.unwrap(), "key-1");
    }
    assert_eq!(bench.runs(), 1);
}

#[tokio::test]
async fn one_caller_giving_up_does_not_stop_the_others() {
    let bench = Bench::new();
    let script = bench.script(
        "wait",
        "echo run >>runs; mkfifo gate; echo >ready; cat gate",
    );
    let key = key(&json!(script), bench.surroundings());
    let mut first = key.key(Freshness::Cached);
    let second = key.key(Freshness::Cached);
    assert!(futures::poll!(&mut first).is_pending());
    let mut second = second;
    assert!(futures::poll!(&mut second).is_pending());
    tokio::select! {
        _ = &mut first => panic!("the gate is closed"),
        _ = bench.until("ready") => {}
    }
    drop(first);
    let gate = bench.path().join("gate");
    let open = tokio::task::spawn_blocking(move || fs::write(gate, "the-key\n").unwrap());
    assert_eq!(second.await.unwrap().unwrap().expose_secret(), "the-key");
    open.await.unwrap();
    assert_eq!(bench.runs(), 1);
}

#[tokio::test]
async fn a_slow_helper_is_mentioned_once() {
    let bench = Bench::new();
    // The warning itself lets the helper go on.
    let script = bench.script("slow", "mkfifo gate; cat gate");
    let mut surroundings = bench.surroundings();
    let (warnings, gate) = (Arc::clone(&bench.warnings), bench.path().join("gate"));
    surroundings.warn = Arc::new(move |text| {
        warnings.lock().unwrap().push(text);
        let gate = gate.clone();
        std::thread::spawn(move || {
            while !gate.exists() {
                std::thread::yield_now();
            }
            fs::write(gate, "late-key\n").unwrap();
        });
    });
    let setting = json!({ "command": script, "slowHelperWarningMs": 1 });
    let key = key(&setting, surroundings);
    assert_eq!(get(&key, Freshness::Cached).await, "late-key");
    let warnings = bench.warnings.lock().unwrap();
    assert_eq!(
        *warnings,
        [format!(
            "`api_key_helper` `{script}` for anthropic has been running for 1ms"
        )]
    );
}

#[tokio::test]
async fn a_fast_helper_is_not_mentioned() {
    let bench = Bench::new();
    get(&bench.counting(Value::from), Freshness::Cached).await;
    assert!(bench.warnings.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_failing_helper_is_an_auth_error_without_the_key() {
    let bench = Bench::new();
    let script = bench.script(
        "fail",
        "echo hunter2; echo run >>runs; echo 'vault sealed for hunter2' >&2; echo more >&2; exit 3",
    );
    let key = key(&json!(script), bench.surroundings());
    let error = fail(&key).await;
    assert_eq!(error.kind, ErrorKind::Auth);
    assert_eq!(
        error.to_string(),
        format!(
            "anthropic: `api_key_helper` `{script}` failed (exit status: 3): vault sealed for ***; run the helper by hand, or check `api_key_helper` in the settings"
        )
    );
    assert!(!format!("{error:?}").contains("hunter2"));
    // A failure is not remembered.
    fail(&key).await;
    assert_eq!(bench.runs(), 2);
}

#[tokio::test]
async fn what_is_not_a_key_is_refused_without_showing_it() {
    let bench = Bench::new();
    for (body, why) in [
        ("true", "printed nothing"),
        ("echo", "printed nothing"),
        ("echo one; echo two", "not one line"),
        ("printf 'secret\\033[0m'", "not one line"),
        ("printf 'secret\\377'", "not one line"),
        ("yes secret", "more than 65536 bytes"),
        ("kill -9 $$", "signal: 9"),
    ] {
        let script = bench.script("bad", body);
        let error = fail(&key(&json!(script), bench.surroundings())).await;
        let text = error.to_string();
        assert!(text.contains(why), "{body}: {text}");
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(error.kind, ErrorKind::Auth);
    }
    let missing = key(&json!("./missing"), bench.surroundings());
    assert!(
        fail(&missing)
            .await
            .to_string()
            .contains("could not be started")
    );
}

#[tokio::test]
async fn the_longest_key_and_a_windows_line_end_are_taken() {
    let bench = Bench::new();
    let script = bench.script(
        "long",
        "head -c 65534 /dev/zero | tr '\\0' k; printf '\\r\\n'",
    );
    let key = key(&json!(script), bench.surroundings());
    assert_eq!(get(&key, Freshness::Cached).await, "k".repeat(65534));
}

#[tokio::test]
async fn debugging_output_shows_no_key() {
    let bench = Bench::new();
    let mut surroundings = bench.surroundings();
    surroundings
        .environment
        .push(("TOKEN".into(), "env-secret".into()));
    let key = key(&json!("echo printed-secret"), surroundings);
    assert_eq!(get(&key, Freshness::Cached).await, "printed-secret");
    let helper = key.helper();
    let text = format!("{:?}", helper.surroundings) + &format!("{:?}", helper.memory());
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn a_helper_gets_the_given_environment_and_nothing_else() {
    let bench = Bench::new();
    // Not through a shell, which would add variables of its own.
    let mut surroundings = bench.surroundings();
    surroundings
        .environment
        .push(("TEAM".into(), "blue".into()));
    let key = key(
        &json!("sh -c 'env | sort | tr \"\\n\" \"|\"; pwd | tr \"\\n\" \"|\"; cat'"),
        surroundings,
    );
    let text = get(&key, Freshness::Cached).await;
    let mut seen: Vec<&str> = text.split_terminator('|').collect();
    let directory = seen.pop().unwrap();
    assert_eq!(Path::new(directory), bench.path().canonicalize().unwrap());
    seen.retain(|variable| {
        !["PATH=", "PWD=", "OLDPWD=", "SHLVL=", "_="]
            .iter()
            .any(|own| variable.starts_with(own))
    });
    assert_eq!(
        seen,
        [
            "CALIBAN_API_KEY_HELPER_TTL_MS=300000",
            "CALIBAN_PROVIDER=anthropic",
            "TEAM=blue"
        ]
    );
}

#[tokio::test]
async fn a_command_line_is_arguments_never_a_shell() {
    let bench = Bench::new();
    bench.script("show", "printf '%s|' \"$@\"");
    let key = key(
        &json!("./show $HOME 'a b' ; touch pwned"),
        bench.surroundings(),
    );
    assert_eq!(
        get(&key, Freshness::Cached).await,
        "$HOME|a b|;|touch|pwned|"
    );
    assert!(!bench.path().join("pwned").exists());
}

#[tokio::test]
async fn a_helper_that_hangs_is_killed_with_its_children() {
    let bench = Bench::new();
    let script = bench.script(
        "hang",
        "trap '' TERM INT HUP\n(trap '' TERM; echo $$ >leader; exec sleep 1000) &\necho $! >child\nwait; wait",
    );
    let key = key(&json!(script), bench.surroundings());
    let mut asking = key.key(Freshness::Cached);
    let (leader, child) = tokio::select! {
        _ = &mut asking => panic!("it hangs"),
        both = async { (bench.until("leader").await, bench.until("child").await) } => both,
    };
    assert!(is_alive(&leader) && is_alive(&child));
    pass(Duration::from_secs(61)).await;
    let error = asking.await.unwrap_err();
    assert!(
        error.to_string().contains("gave no key within 60 s"),
        "{error}"
    );
    until(|| (!is_alive(&leader) && !is_alive(&child)).then_some(())).await;
}

#[tokio::test]
async fn a_helper_nobody_waits_for_is_killed() {
    let bench = Bench::new();
    let script = bench.script(
        "hang",
        "trap '' TERM; echo $$ >leader; cat /dev/zero >/dev/null",
    );
    let key = key(&json!(script), bench.surroundings());
    let mut asking = key.key(Freshness::Cached);
    let leader = tokio::select! {
        _ = &mut asking => panic!("it hangs"),
        leader = bench.until("leader") => leader,
    };
    drop(asking);
    until(|| (!is_alive(&leader)).then_some(())).await;
}

#[tokio::test]
async fn a_daemon_that_keeps_the_pipe_open_does_not_hold_up_the_key() {
    let bench = Bench::new();
    let script = bench.script(
        "daemon",
        "setsid sh -c 'echo $$ >pid; exec sleep 1000' &\nuntil [ -s pid ]; do :; done\necho the-key",
    );
    let key = key(&json!(script), bench.surroundings());
    assert_eq!(get(&key, Freshness::Cached).await, "the-key");
    let daemon = bench.until("pid").await;
    let id = Pid::from_raw(daemon.trim().parse().unwrap()).unwrap();
    // It is in a group of its own and outlives the helper.
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
}
