//! Programs that serve on their standard streams are guarded like commands.

use std::time::Duration;

use caliban_process::Guard;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::support::{GUARD, STUBBORN, await_death, guards, is_running, script};

#[tokio::test]
async fn both_directions_work_and_the_end_is_told() {
    for guard in guards() {
        let text = "echo \"$# $1 $OWN $HOME\"; cat; echo bad >&2; exit 5";
        let (mut process, mut streams) = script(text).serve(&guard).unwrap();
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
    let mut service = script("");
    service.program = "no-such-program-anywhere".into();
    assert!(service.serve(&Guard::None).is_err());
    let (mut process, mut streams) = service.serve(&Guard::ReExec(GUARD.into())).unwrap();
    let mut errors = String::new();
    streams.stderr.read_to_string(&mut errors).await.unwrap();
    assert!(errors.contains("cannot be started"), "{errors}");
    assert_eq!(process.ended().await.unwrap().code(), Some(126));
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_input_ends_also_what_never_reads_it() {
    let (process, mut streams) = script(STUBBORN)
        .serve(&Guard::ReExec(GUARD.into()))
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
    await_death(pids).await;
    drop(process);
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_takes_everything_beneath_along() {
    for guard in guards() {
        let (mut process, streams) = script(STUBBORN).serve(&guard).unwrap();
        let mut pids = String::new();
        let mut output = BufReader::new(streams.stdout);
        output.read_line(&mut pids).await.unwrap();
        process.kill();
        await_death(pids).await;
    }
}
