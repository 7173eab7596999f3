//! Programs that serve on their standard streams are guarded like commands.

use std::time::Duration;

use caliban_tools::{Guard, Service};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::support::{GUARD, await_death, is_running};

fn service(script: &str) -> Service {
    Service {
        program: "sh".into(),
        args: vec!["-c".into(), script.into(), "service".into(), "given".into()],
        directory: std::env::temp_dir(),
        environment: vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("OWN".into(), "own".into()),
            ("CALIBAN_GUARD_ARGUMENT".into(), "not passed on".into()),
        ],
    }
}

fn guards() -> [Guard; 2] {
    [Guard::ReExec(GUARD.into()), Guard::None]
}

#[tokio::test]
async fn both_directions_work_and_the_end_is_told() {
    for guard in guards() {
        let script = "echo \"$# $1 $OWN $HOME\"; cat; echo bad >&2; exit 5";
        let (mut process, mut streams) = service(script).start(&guard).unwrap();
        streams.stdin.write_all(b"there and back\n").await.unwrap();
        drop(streams.stdin);
        let (mut output, mut errors) = (String::new(), String::new());
        streams.stdout.read_to_string(&mut output).await.unwrap();
        streams.stderr.read_to_string(&mut errors).await.unwrap();
        assert_eq!(output, "1 given own \nthere and back\n");
        assert_eq!(errors, "bad\n");
        assert_eq!(process.ended().await.unwrap().code(), Some(5));
    }
}

#[tokio::test]
async fn a_missing_program_is_told() {
    let mut service = service("");
    service.program = "no-such-program-anywhere".into();
    assert!(service.start(&Guard::None).is_err());
    let (mut process, mut streams) = service.start(&Guard::ReExec(GUARD.into())).unwrap();
    let mut errors = String::new();
    streams.stderr.read_to_string(&mut errors).await.unwrap();
    assert!(errors.contains("cannot be started"), "{errors}");
    assert_eq!(process.ended().await.unwrap().code(), Some(126));
}

/// What does not read, does not want to end and has children elsewhere.
const STUBBORN: &str = "trap '' TERM HUP
    setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' </dev/null >/dev/null 2>&1 &
    echo \"$$ $!\"; while :; do sleep 1; done";

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_input_ends_also_what_never_reads_it() {
    let (process, mut streams) = service(STUBBORN)
        .start(&Guard::ReExec(GUARD.into()))
        .unwrap();
    let mut pids = String::new();
    let mut output = BufReader::new(streams.stdout);
    output.read_line(&mut pids).await.unwrap();
    assert!(pids.split_whitespace().all(is_running), "{pids}");
    // More than all pipes on the way hold: the relay is stuck when the end comes.
    let flood = vec![b'x'; 1024 * 1024];
    let writing = streams.stdin.write_all(&flood);
    let stuck = tokio::time::timeout(Duration::from_millis(300), writing).await;
    assert!(stuck.is_err());
    drop(streams.stdin);
    tokio::task::spawn_blocking(move || await_death(&pids))
        .await
        .unwrap();
    drop(process);
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_takes_everything_beneath_along() {
    for guard in guards() {
        let (mut process, streams) = service(STUBBORN).start(&guard).unwrap();
        let mut pids = String::new();
        let mut output = BufReader::new(streams.stdout);
        output.read_line(&mut pids).await.unwrap();
        process.kill();
        tokio::task::spawn_blocking(move || await_death(&pids))
            .await
            .unwrap();
    }
}
