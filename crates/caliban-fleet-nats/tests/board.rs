//! What holds of every board: one in memory, and one on a real server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use caliban_fleet_nats::{
    Access, AnswerRecord, Answered, Artefact, Board, BoardError, JobId, JobRecord, JobResult,
    JobSpec, Layout, MemoryBoard, NatsBoard, Nudge, Outcome, Settled, State, Submitted,
};
use futures::StreamExt as _;
use jiff::Timestamp;

const LEASE: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(10);

fn spec() -> JobSpec {
    JobSpec::new(
        "default".parse().unwrap(),
        "say hello",
        "me@here",
        Timestamp::UNIX_EPOCH,
    )
}

fn result(job: JobId, attempt: u32) -> JobResult {
    JobResult {
        job,
        outcome: Outcome::Done,
        subtype: None,
        exit_code: 0,
        text: Some("hello".to_owned()),
        reason: None,
        cost_usd: serde_json::json!(0.5),
        turns: 1,
        attempt,
        worker: None,
        files: None,
        artefacts: Vec::new(),
        left_out: Vec::new(),
        at: Timestamp::UNIX_EPOCH,
    }
}

/// A queue of two jobs.
async fn holds<B: Board>(board: &B) {
    queue(board).await;
    let job = JobId::new();
    journal(board, job).await;
    told(board, job).await;
    once(board, job).await;
}

async fn queue<B: Board>(board: &B) {
    let (first, second, third) = (spec(), spec(), spec());
    let pool = first.pool.clone();
    assert_eq!(board.submit(&first).await, Ok(Submitted::New));
    assert_eq!(board.submit(&first).await, Ok(Submitted::Already));
    assert_eq!(board.submit(&second).await, Ok(Submitted::New));
    assert_eq!(board.submit(&third).await, Err(BoardError::Full));
    assert_eq!(board.records().await.unwrap().len(), 2);
    let claim = board.claim(&pool, SOON).await.unwrap().unwrap();
    assert_eq!(JobSpec::decode(&claim.spec), Ok(first.clone()));
    assert_eq!(claim.delivered, 1);
    let other = board.claim(&pool, SOON).await.unwrap().unwrap();
    board.finish(&other.lease).await.unwrap();
    // As long as it is renewed nobody else gets it.
    for _ in 0..3 {
        tokio::time::sleep(LEASE / 2).await;
        board.renew(&claim.lease).await.unwrap();
    }
    let none = board.claim(&pool, Duration::from_millis(100)).await;
    assert!(none.unwrap().is_none());
    // Then somebody does.
    let again = board.claim(&pool, SOON).await.unwrap().unwrap();
    assert_eq!(JobSpec::decode(&again.spec).unwrap().job, first.job);
    assert_eq!(again.delivered, 2);
    board.release(&again.lease, Duration::ZERO).await.unwrap();
    let last = board.claim(&pool, SOON).await.unwrap().unwrap();
    board.finish(&last.lease).await.unwrap();
    // A record is written over the one that its writer knows.
    let found = board.record(first.job).await.unwrap().unwrap();
    let record = JobRecord {
        state: State::Running,
        ..found.value
    };
    let revision = board.write_record(&record, found.revision).await.unwrap();
    let stale = board.write_record(&record, found.revision).await;
    assert_eq!(stale, Err(BoardError::Fenced));
    board.write_record(&record, revision).await.unwrap();
}

async fn journal<B: Board>(board: &B, job: JobId) {
    let entry = |text: &'static str| Bytes::from_static(text.as_bytes());
    assert_eq!(board.journal(job).await.unwrap(), []);
    let first = board.append(job, 0, entry("a")).await.unwrap();
    board.append(JobId::new(), 0, entry("other")).await.unwrap();
    let second = board.append(job, first, entry("b")).await.unwrap();
    let fenced = board.append(job, first, entry("c")).await;
    assert_eq!(fenced, Err(BoardError::Fenced));
    let entries = board.journal(job).await.unwrap();
    let entries: Vec<(u64, &[u8])> = entries.iter().map(|it| (it.seq, &*it.bytes)).collect();
    assert_eq!(entries, [(first, &b"a"[..]), (second, &b"b"[..])]);
}

async fn told<B: Board>(board: &B, job: JobId) {
    assert_eq!(board.last_event(job).await.unwrap(), 0);
    for name in ["one", "two", "one"] {
        board
            .publish(job, name, Bytes::from_static(name.as_bytes()))
            .await
            .unwrap();
    }
    let mut events = board.events(job, 0).await.unwrap();
    let first = events.next().await.unwrap().unwrap();
    let second = events.next().await.unwrap().unwrap();
    assert_eq!((&*first.frame, &*second.frame), (&b"one"[..], &b"two"[..]));
    assert_eq!(board.last_event(job).await.unwrap(), second.seq);
    let mut later = board.events(job, first.seq).await.unwrap();
    assert_eq!(later.next().await.unwrap().unwrap(), second);
    board
        .publish(job, "three", Bytes::from_static(b"three"))
        .await
        .unwrap();
    assert_eq!(&*events.next().await.unwrap().unwrap().frame, b"three");
    let mut whispers = board.whispers(job).await.unwrap();
    let mut nudges = board.nudges(job).await.unwrap();
    board.nudge(job, Nudge::Watch).await.unwrap();
    assert_eq!(nudges.next().await, Some(Nudge::Watch));
    board
        .whisper(job, Bytes::from_static(b"psst"))
        .await
        .unwrap();
    assert_eq!(&*whispers.next().await.unwrap(), b"psst");
}

async fn once<B: Board>(board: &B, job: JobId) {
    assert_eq!(board.result(job).await.unwrap(), None);
    assert_eq!(
        board.settle(&result(job, 1)).await.unwrap(),
        Settled::Recorded
    );
    // The same attempt again is no other.
    assert_eq!(
        board.settle(&result(job, 1)).await.unwrap(),
        Settled::Recorded
    );
    let second = board.settle(&result(job, 2)).await.unwrap();
    assert_eq!(second, Settled::Already(Box::new(result(job, 1))));
    assert_eq!(board.result(job).await.unwrap(), Some(result(job, 1)));
    let answer = |decision: &str| AnswerRecord {
        decision: decision.to_owned(),
        message: None,
        by: "me".to_owned(),
        at: Timestamp::UNIX_EPOCH,
    };
    assert_eq!(board.question(job, "q").await.unwrap(), None);
    board
        .ask(job, "q", Bytes::from_static(b"{}"))
        .await
        .unwrap();
    assert!(board.question(job, "q").await.unwrap().is_some());
    assert_eq!(board.answer_to(job, "q").await.unwrap(), None);
    let first = board.answer(job, "q", &answer("allow")).await.unwrap();
    assert_eq!(first, Answered::Taken);
    let second = board.answer(job, "q", &answer("deny")).await.unwrap();
    assert_eq!(second, Answered::Already(answer("allow")));
    assert_eq!(
        board.answer_to(job, "q").await.unwrap(),
        Some(answer("allow"))
    );
    let bytes = Bytes::from(vec![7; 300_000]);
    let artefact = Artefact {
        name: format!("{job}/1/x"),
        bytes: bytes.clone(),
    };
    let stored = board.store(artefact).await.unwrap();
    assert_eq!(stored.bytes, 300_000);
    assert_eq!(
        board.fetch(&stored.name, 300_000).await.unwrap(),
        Some(bytes)
    );
    let small = board.fetch(&stored.name, 10).await;
    assert!(matches!(small, Err(BoardError::TooLarge(_))));
    assert_eq!(board.fetch("nothing", 10).await.unwrap(), None);
}

#[tokio::test]
async fn a_board_in_memory_holds() {
    holds(&MemoryBoard::new(LEASE, 2)).await;
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_board_on_a_server_holds() {
    let python = std::env::var_os("CALIBAN_TEST_PYTHON").expect("CALIBAN_TEST_PYTHON is set");
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    drop(listener);
    let store = tempfile::tempdir().unwrap();
    let server = Command::new(Path::new(&python).with_file_name("nats-server"))
        .args(["-js", "-a", "127.0.0.1", "-p", &port, "-sd"])
        .arg(store.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _server = Server(server);
    let access = Access {
        address: format!("nats://127.0.0.1:{port}"),
        ..Access::default()
    };
    let layout = Layout {
        pools: vec!["default".parse().unwrap()],
        queue: 2,
        lease: LEASE,
        ..Layout::default()
    };
    let mut tries = 0;
    while let Err(error) = NatsBoard::provision(&access, &layout).await {
        tries += 1;
        assert!(tries < 100, "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let board = NatsBoard::open(&access).await.unwrap();
    holds(&board).await;
    let nobody = board.claim(&"nobody".parse().unwrap(), SOON).await;
    assert!(matches!(nobody, Err(BoardError::Missing(_))));
}
