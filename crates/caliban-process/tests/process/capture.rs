//! Programs that are run to their end for what they write.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use caliban_process::{
    Beyond, Bound, Bounds, CaptureError, Captured, Exit, Guard, Invocation, SignalNumber,
};
use rstest::rstest;

use crate::support::{GUARD, STUBBORN, await_death, guards, is_running, script};

fn bounds(bytes: usize, beyond: Beyond) -> Bounds {
    let bound = Bound { bytes, beyond };
    Bounds {
        stdout: bound,
        stderr: bound,
    }
}

async fn capture(guard: &Guard, text: &str, input: &str) -> Captured {
    let bounds = bounds(1000, Beyond::Forget);
    let captured = script(text).capture(guard, input.as_bytes(), bounds).await;
    captured.unwrap()
}

#[tokio::test]
async fn a_program_reads_its_input_to_the_end_and_goes_on() {
    for guard in guards() {
        let text = "echo \"$# $1 $OWN $HOME\"; cat; echo bad >&2; sleep 0.1; echo late; exit 5";
        let captured = capture(&guard, text, "there and back\n").await;
        assert_eq!(captured.stdout, b"1 given own \nthere and back\nlate\n");
        assert_eq!(captured.stderr, b"bad\n");
        assert_eq!(captured.status.code(), Some(5));
        assert_eq!(capture(&guard, "cat", "").await.stdout, b"");
    }
}

#[tokio::test]
async fn an_input_need_not_be_read() {
    let flood = "x".repeat(1024 * 1024);
    for guard in guards() {
        for text in ["exit 3", "exec 0<&-; sleep 0.1; exit 3"] {
            let captured = capture(&guard, text, &flood).await;
            assert_eq!(captured.status.code(), Some(3));
        }
        let captured = capture(&guard, "wc -c", &flood).await;
        assert_eq!(captured.stdout, b"1048576\n");
    }
}

#[rstest]
#[case("exit 0", Exit::Code(0))]
#[case("exit 126", Exit::Code(126))]
#[case("exit 141", Exit::Code(141))]
#[case("kill -KILL $$", Exit::Signal(SignalNumber(9)))]
#[case("kill -TERM $$", Exit::Signal(SignalNumber(15)))]
#[case("kill -SEGV $$", Exit::Signal(SignalNumber(11)))]
#[case("kill -PIPE $$", Exit::Signal(SignalNumber(13)))]
#[tokio::test]
async fn codes_and_signals_are_told_apart(#[case] text: &str, #[case] exit: Exit) {
    for guard in guards() {
        let captured = capture(&guard, text, "").await;
        assert_eq!(Exit::from(captured.status), exit, "{guard:?}");
    }
}

#[tokio::test]
async fn output_beyond_the_bound_is_forgotten_or_the_end() {
    for guard in guards() {
        let text = "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; exit 1";
        let captured = capture(&guard, text, "").await;
        assert_eq!((captured.stdout.len(), captured.stderr.len()), (1000, 1000));
        assert_eq!(captured.status.code(), Some(1));
        let limits = bounds(1000, Beyond::Stop);
        let stopped = script("yes").capture(&guard, b"", limits).await;
        assert!(matches!(stopped, Err(CaptureError::TooMuch)), "{stopped:?}");
        let whole = script("head -c 1000 /dev/zero");
        let whole = whole.capture(&guard, b"", limits).await.unwrap();
        assert_eq!(whole.stdout.len(), 1000);
    }
}

#[rstest]
#[case("no-such-program-anywhere", ErrorKind::NotFound)]
#[case("/no/such`program", ErrorKind::NotFound)]
#[case("/", ErrorKind::PermissionDenied)]
#[tokio::test]
async fn what_cannot_be_started_says_why(#[case] program: &str, #[case] kind: ErrorKind) {
    for guard in guards() {
        let missing = Invocation {
            program: program.into(),
            ..script("")
        };
        let error = missing.capture(&guard, b"x", bounds(1000, Beyond::Forget));
        match error.await {
            Err(CaptureError::Start(error)) => assert_eq!(error.kind(), kind, "{guard:?}"),
            other => panic!("{guard:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn nothing_is_left_behind_by_one_that_ended() {
    let directory = tempfile::tempdir().unwrap();
    let mut leaving = script(
        "setsid sh -c 'trap \"\" TERM HUP; echo $$ >pid; while :; do sleep 1; done' &
         until [ -s pid ]; do :; done; cat pid",
    );
    leaving.directory = directory.path().to_owned();
    let guard = Guard::ReExec(GUARD.into());
    let captured = leaving.capture(&guard, b"", bounds(1000, Beyond::Forget));
    let pid = String::from_utf8(captured.await.unwrap().stdout).unwrap();
    assert!(pid.trim().parse::<u32>().is_ok(), "{pid}");
    assert!(!is_running(pid.trim()), "dead at the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn letting_go_ends_also_what_does_not_want_to_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut stubborn = script(&format!("exec >pids\n{STUBBORN}"));
    stubborn.directory = directory.path().to_owned();
    let guard = Guard::ReExec(GUARD.into());
    // More than all pipes on the way hold: the relay is stuck when the end comes.
    let input = vec![b'x'; 1024 * 1024];
    let running = stubborn.capture(&guard, &input, bounds(1000, Beyond::Forget));
    let file = directory.path().join("pids");
    let deadline = Instant::now() + Duration::from_secs(10);
    let pids = async {
        loop {
            match std::fs::read_to_string(&file) {
                Ok(pids) if pids.ends_with('\n') => return pids,
                Ok(_) | Err(_) => assert!(Instant::now() < deadline, "it never started"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let pids = tokio::select! {
        captured = running => panic!("{captured:?}"),
        pids = pids => pids,
    };
    assert!(pids.split_whitespace().all(is_running), "{pids}");
    await_death(pids).await;
}
