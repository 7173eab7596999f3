//! Ways out of the sandbox, each of them tried twice: without the sandbox it must work, or the test
//! proves nothing; within it must not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may panic, and says why it is skipped"
)]

mod corpus;
mod stage;

use std::os::unix::fs::PermissionsExt as _;

use rstest::rstest;

use corpus::{ATTEMPTS, Attempt, SYSTEM_CALLS};
use stage::{Stage, Who, unavailable};

/// Tries everything, as one user.
fn try_all(who: Who) {
    if let Some(reason) = unavailable(who) {
        eprintln!("skipped: {reason}");
        return;
    }
    eprintln!("tried as {who:?}");
    let mut escaped = Vec::new();
    let mut vain = Vec::new();
    for attempt in ATTEMPTS.iter().filter(|attempt| attempt.suits(who)) {
        let worked = |settings: &str| {
            let stage = Stage::new(who);
            let done = stage.run(settings, attempt.script);
            (stage.is_evident(attempt.evidence, &done), done)
        };
        let (works_bare, bare) = worked("bare");
        if !works_bare && attempt.depends_on_machine() {
            eprintln!(
                "passed over, this machine refuses it to everybody: {}",
                attempt.name
            );
        } else if !works_bare {
            vain.push(format!("{}: {bare:?}", attempt.name));
            continue;
        }
        let (works, done) = worked("{}");
        if works || done.code == Some(70) {
            escaped.push(format!("{}: {done:?}", attempt.name));
        }
    }
    assert!(escaped.is_empty(), "escaped:\n{}", escaped.join("\n"));
    assert!(
        vain.is_empty(),
        "no escape without a sandbox either:\n{}",
        vain.join("\n")
    );
}

#[test]
fn nothing_escapes_as_whoever_runs_the_tests() {
    try_all(Who::Myself);
}

#[test]
fn nothing_escapes_as_a_plain_user() {
    try_all(Who::Nobody);
}

/// Calls of the kernel that are refused. What the kernel itself refuses or does not have proves
/// nothing and is passed over, as long as most of them are there.
#[rstest]
#[case::myself(Who::Myself)]
#[case::nobody(Who::Nobody)]
fn calls_of_the_kernel_are_refused(#[case] who: Who) {
    if let Some(reason) = unavailable(who) {
        eprintln!("skipped: {reason}");
        return;
    }
    let script = corpus::system_calls_script();
    let reached = |settings: &str| -> Vec<String> {
        let done = Stage::new(who).run(settings, &script);
        done.output.lines().map(str::to_owned).collect()
    };
    let (bare, confined) = (reached("bare"), reached("{}"));
    assert_eq!(bare.len(), SYSTEM_CALLS.len(), "{bare:?}");
    assert_eq!(confined.len(), SYSTEM_CALLS.len(), "{confined:?}");
    let mut proved = 0;
    for (outside, inside) in bare.iter().zip(&confined) {
        let is_refused = |line: &str| line.ends_with(" EPERM") || line.ends_with(" EAFNOSUPPORT");
        assert!(
            is_refused(inside) || inside.ends_with(" ENOSYS"),
            "{inside}"
        );
        proved += usize::from(!is_refused(outside) && !outside.ends_with(" ENOSYS"));
    }
    assert!(proved >= SYSTEM_CALLS.len() / 3, "{proved} of {bare:?}");
}

#[rstest]
#[case::all_read(
    r#"{"filesystem": {"deny_read": ["${WORKSPACE}/secret"]}}"#,
    "cat secret/key",
    ""
)]
#[case::one_file(
    r#"{"filesystem": {"deny_read": ["${WORKSPACE}/secret/key"]}}"#,
    "cat secret/key",
    ""
)]
#[case::moved(
    r#"{"filesystem": {"deny_read": ["${WORKSPACE}/secret/key"]}}"#,
    "mv secret other; cat other/key",
    ""
)]
#[case::listed(
    r#"{"filesystem": {"allow_read": ["${WORKSPACE}/src"]}}"#,
    "cat ../outside/file ../home/plain",
    ""
)]
#[case::listed_and_there(
    r#"{"filesystem": {"allow_read": ["${HOME}/plain"]}}"#,
    "cat ../home/plain",
    "plain"
)]
fn what_is_denied_cannot_be_read(#[case] settings: &str, #[case] script: &str, #[case] read: &str) {
    if let Some(reason) = unavailable(Who::Myself) {
        eprintln!("skipped: {reason}");
        return;
    }
    let bare = Stage::new(Who::Myself).run("bare", script);
    assert!(!bare.output.is_empty(), "{bare:?}");
    let done = Stage::new(Who::Myself).run(settings, &format!("({script}) 2>/dev/null"));
    assert_eq!(done.output.trim(), read, "{done:?}");
}

#[rstest]
#[case::nothing(r#"{"filesystem": {"allow_write": []}}"#, "echo x > new", "new", false)]
#[case::elsewhere(
    r#"{"filesystem": {"allow_write": ["${WORKSPACE}/src"]}}"#,
    "echo x > new",
    "new",
    false
)]
#[case::there(
    r#"{"filesystem": {"allow_write": ["${WORKSPACE}/src"]}}"#,
    "echo x > src/new",
    "src/new",
    true
)]
#[case::fixed(
    r#"{"filesystem": {"deny_write": ["${WORKSPACE}/src"]}}"#,
    "echo x > src/new",
    "src/new",
    false
)]
#[case::fixed_and_moved(
    r#"{"filesystem": {"deny_write": ["${WORKSPACE}/src/deep"]}}"#,
    "mv src y; mkdir -p src/deep; echo x > src/deep/new",
    "src/deep/new",
    false
)]
#[case::opened(
    r#"{"filesystem": {"allow_write": ["${WORKSPACE}", "${WORKSPACE}/.vscode"]}}"#,
    "echo x > .vscode/new",
    ".vscode/new",
    true
)]
#[case::nothing_set("{}", "echo x > new", "new", true)]
fn writing_follows_the_lists(
    #[case] settings: &str,
    #[case] script: &str,
    #[case] file: &str,
    #[case] is_written: bool,
) {
    if let Some(reason) = unavailable(Who::Myself) {
        eprintln!("skipped: {reason}");
        return;
    }
    let stage = Stage::new(Who::Myself);
    let done = stage.run(settings, script);
    assert_eq!(
        stage.workspace().join(file).exists(),
        is_written,
        "{done:?}"
    );
}

/// Everyday work goes on.
#[rstest]
#[case::git(
    "git init -q new && cd new && git config user.email a@b && echo x > f && git add f && git -c user.name=n -c user.email=e commit -qm m && git log --oneline | wc -l"
)]
#[case::commit(
    "echo x > f && git add f && git -c user.name=n -c user.email=e commit -qm m && git log --oneline | wc -l"
)]
#[case::make("printf 'all:\\n\\techo made > out\\n' > Makefile && make -s && cat out && echo 1")]
#[case::compile("echo 'int main(){return 0;}' > a.c && cc a.c -o a && ./a && echo 1")]
#[case::python(
    "python3 -c 'import socket, multiprocessing as m; s = socket.socketpair(); p = m.Process(target=print); p.start(); p.join(); print(1)'"
)]
#[case::venv("python3 -m venv v --without-pip && v/bin/python -c 'print(1)'")]
#[case::node(
    "node -e \"const n = require('net'); const s = n.createServer().listen('/tmp/s.sock', () => { s.close(); console.log(1) })\""
)]
#[case::heredoc("cat <<X\n1\nX")]
#[case::temporary("f=$(mktemp) && echo 1 > $f && cat $f")]
#[case::pipes("seq 1 10000 | sort -n | head -1")]
#[case::loopback(
    "python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); c = socket.create_connection(s.getsockname()); print(1)'"
)]
#[case::debugger(
    "python3 - <<'X'\nimport ctypes, os\nlibc = ctypes.CDLL(None)\npid = os.fork()\nif pid == 0:\n    libc.ptrace(0, 0, 0, 0); os._exit(0)\nos.waitpid(pid, 0); print(1)\nX"
)]
fn everyday_work_goes_on(#[case] script: &str) {
    if let Some(reason) = unavailable(Who::Myself) {
        eprintln!("skipped: {reason}");
        return;
    }
    for who in [Who::Myself, Who::Nobody] {
        if unavailable(who).is_some() {
            continue;
        }
        let done = Stage::new(who).run("{}", script);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(
            done.output.trim_end().ends_with('1') || done.output.trim() == "2",
            "{done:?}"
        );
    }
}

#[test]
fn a_file_of_one_command_is_there_for_the_next_in_a_session_and_not_for_others() {
    if let Some(reason) = unavailable(Who::Myself) {
        eprintln!("skipped: {reason}");
        return;
    }
    let stage = Stage::new(Who::Myself);
    let done = stage.run("{}", "echo kept > /tmp/caliban-test-kept; ls /tmp");
    assert!(done.output.contains("caliban-test-kept"), "{done:?}");
    assert!(!std::path::Path::new("/tmp/caliban-test-kept").exists());
    let again = stage.run("{}", "ls /tmp");
    assert!(!again.output.contains("caliban-test-kept"), "{again:?}");
}

#[test]
fn nothing_is_left_after_many_calls() {
    if let Some(reason) = unavailable(Who::Myself) {
        eprintln!("skipped: {reason}");
        return;
    }
    let stage = Stage::new(Who::Myself);
    for _ in 0..20 {
        stage.run("{}", "setsid sleep 987654 & sleep 987654 & disown -a");
    }
    assert_eq!(stage::processes_named("987654"), 0);
    let cache = stage.base().join("home/.cache/caliban/sandbox");
    let left = std::fs::read_dir(cache).unwrap().flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with("session-"));
    assert_eq!(left.count(), 0);
}

/// A program that only looks like bubblewrap confines nothing, and therefore nothing runs.
#[test]
fn a_bubblewrap_that_does_nothing_runs_nothing() {
    let stage = Stage::new(Who::Myself);
    let fake = stage.base().join("bwrap");
    let script = "#!/bin/bash\nif [ \"$1\" = --version ]; then echo bubblewrap 9.0.0; exit; fi\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\nexec \"$FIXTURE\" \"$@\"\n";
    let script = script.replace("$FIXTURE", stage::FIXTURE);
    std::fs::write(&fake, script).unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let settings = format!(
        r#"{{"fail_if_unavailable": true, "bwrap_path": "{}"}}"#,
        fake.display()
    );
    let done = stage.run(&settings, "echo ran");
    assert_eq!(done.output, "", "{done:?}");
    assert!(
        done.error.contains("not in force") || done.error.contains("no sandbox"),
        "{done:?}"
    );
}

#[rstest]
#[case::missing(
    r#"{"fail_if_unavailable": true, "bwrap_path": "/no/such"}"#,
    Some("no such file")
)]
#[case::fallback(r#"{"bwrap_path": "/no/such"}"#, None)]
fn without_bubblewrap_the_operator_decides(#[case] settings: &str, #[case] refused: Option<&str>) {
    let done = Stage::new(Who::Myself).run(settings, "echo ran");
    if let Some(words) = refused {
        assert_eq!(done.output, "");
        assert!(done.error.contains(words), "{done:?}");
    } else {
        assert_eq!(done.output, "ran\n");
        assert!(done.error.contains("backend none"), "{done:?}");
    }
}

/// The reduced sandbox, where namespaces do not work: it still keeps commands to their roots.
#[rstest]
#[case::writes("echo pwned > $OUTSIDE/file", false)]
#[case::secrets("cat $HOME/.ssh/id", false)]
#[case::network(
    "python3 -c 'import socket; socket.socket(socket.AF_INET)' && echo TOPSECRET",
    false
)]
#[case::work("echo x > src/new && cat src/new && echo works", true)]
fn landlock_keeps_commands_to_their_roots(#[case] script: &str, #[case] works: bool) {
    let settings = r#"{"enable_weaker_nested_sandbox": true, "bwrap_path": "/no/such"}"#;
    let stage = Stage::new(Who::Myself);
    let done = stage.run(settings, script);
    if !done.error.contains("backend landlock") {
        eprintln!("skipped: this kernel has no Landlock: {done:?}");
        return;
    }
    assert_eq!(done.output.contains("works"), works, "{done:?}");
    assert!(!done.output.contains("TOPSECRET"), "{done:?}");
    let outside = std::fs::read_to_string(stage.outside().join("file")).unwrap();
    assert!(!outside.contains("pwned"), "{done:?}");
}

#[test]
fn every_attempt_has_a_name_of_its_own() {
    let mut names: Vec<&str> = ATTEMPTS.iter().map(|Attempt { name, .. }| *name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(count + SYSTEM_CALLS.len() >= 100, "{count}");
}
