//! How long things last: limits, and the end of everything.

use std::time::Duration;

use caliban_egress::{Failure, Limits, Verdict};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Setup, leading_to, origin, to_end};

/// An origin that takes connections and says nothing.
async fn mute() -> (
    std::net::SocketAddr,
    tokio::sync::mpsc::UnboundedReceiver<TcpStream>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, streams) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = sender.send(stream);
        }
    });
    (address, streams)
}

#[tokio::test]
async fn a_quiet_connection_is_closed() {
    let (address, mut streams) = mute().await;
    let setup = Setup {
        world: leading_to(address),
        limits: Limits {
            idle: Duration::from_millis(200),
            ..Limits::default()
        },
        ..Setup::allowing(&["good.example:*"])
    };
    let mut bench = setup.serve().await;
    let mut stream = bench.tunnel("good.example:2222").await;
    stream.write_all(b"hello").await.unwrap();
    let mut origin = streams.recv().await.unwrap();
    assert_eq!(to_end(&mut stream).await, b"");
    assert_eq!(to_end(&mut origin).await, b"hello");
    let told = bench.told().await;
    assert_eq!(told.verdict, Verdict::Passed);
    assert_eq!(told.sent, 5);
    // A request that is never answered as well.
    assert_eq!(
        bench
            .say(b"GET http://good.example/ HTTP/1.1\r\n\r\n")
            .await,
        b""
    );
}

#[tokio::test]
async fn dropping_it_ends_everything() {
    let (address, mut streams) = mute().await;
    let setup = Setup {
        world: leading_to(address),
        ..Setup::allowing(&["good.example:2222"])
    };
    let bench = setup.serve().await;
    let port = bench.port;
    let mut relayed = bench.tunnel("good.example:2222").await;
    relayed.write_all(b"hello").await.unwrap();
    let mut origin = streams.recv().await.unwrap();
    origin.read_exact(&mut [0; 5]).await.unwrap();
    let mut unsaid = bench.connect().await;
    unsaid.write_all(b"CONNECT good").await.unwrap();
    drop(bench);
    assert_eq!(to_end(&mut relayed).await, b"");
    assert_eq!(to_end(&mut unsaid).await, b"");
    assert_eq!(to_end(&mut origin).await, b"");
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
}

#[tokio::test]
async fn what_is_cut_off_is_told_too() {
    let (address, mut streams) = mute().await;
    let setup = Setup {
        world: leading_to(address),
        ..Setup::allowing(&["good.example:2222"])
    };
    let bench = setup.serve().await;
    let mut relayed = bench.tunnel("good.example:2222").await;
    relayed.write_all(b"hello").await.unwrap();
    let mut origin = streams.recv().await.unwrap();
    origin.read_exact(&mut [0; 5]).await.unwrap();
    let told = bench.close().await;
    assert_eq!(told.len(), 1);
    assert_eq!(
        (told[0].verdict.clone(), told[0].sent),
        (Verdict::Passed, 5)
    );
}

#[tokio::test]
async fn a_question_that_is_open_ends_with_the_command() {
    struct Slow(tokio::sync::mpsc::UnboundedSender<()>);
    struct Withdrawn(tokio::sync::mpsc::UnboundedSender<()>);
    impl Drop for Withdrawn {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    impl caliban_egress::Asker for Slow {
        fn ask(
            &self,
            _: caliban_egress::Question,
        ) -> futures::future::BoxFuture<'_, caliban_egress::Answer> {
            let withdrawn = Withdrawn(self.0.clone());
            let _ = self.0.send(());
            Box::pin(async move {
                let _withdrawn = withdrawn;
                std::future::pending().await
            })
        }
    }
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let setup = Setup {
        asker: std::sync::Arc::new(Slow(sender)),
        ..Setup::allowing(&[])
    };
    let bench = setup.serve().await;
    let mut stream = bench.connect().await;
    stream
        .write_all(b"CONNECT good.example:443 HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    events.recv().await.unwrap();
    let told = bench.close().await;
    assert_eq!(told[0].verdict, Verdict::Failed(Failure::Cut));
    assert_eq!(
        told[0].target.as_ref().unwrap().to_string(),
        "good.example:443"
    );
    events.recv().await.unwrap();
}

#[tokio::test]
async fn only_so_many_connections_are_served_at_a_time() {
    let (address, mut streams) = mute().await;
    let setup = Setup {
        world: leading_to(address),
        limits: Limits {
            connections: 2,
            ..Limits::default()
        },
        ..Setup::allowing(&["good.example:2222"])
    };
    let bench = setup.serve().await;
    let first = bench.tunnel("good.example:2222").await;
    let _second = bench.tunnel("good.example:2222").await;
    let (one, _two) = (streams.recv().await.unwrap(), streams.recv().await.unwrap());
    let mut third = bench.connect().await;
    third
        .write_all(b"CONNECT good.example:2222 HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let mut byte = [0];
    let waiting = tokio::time::timeout(Duration::from_millis(200), third.read(&mut byte));
    waiting.await.expect_err("the third has to wait");
    drop((first, one));
    assert_eq!(
        third.read(&mut byte).await.unwrap(),
        1,
        "now it is its turn"
    );
}

#[tokio::test]
async fn the_default_is_what_is_promised() {
    let limits = Limits::default();
    assert_eq!(limits.connections, 64);
    assert_eq!(limits.patience, Duration::from_secs(10));
    assert_eq!(limits.answer, Duration::from_secs(30));
    assert_eq!(limits.idle, Duration::from_mins(5));
}

/// A client that does not read what it asked for fills no memory here: the origin has to wait.
#[tokio::test]
async fn nothing_is_gathered_for_a_client_that_does_not_read() {
    let (address, mut streams) = mute().await;
    let setup = Setup {
        world: leading_to(address),
        ..Setup::allowing(&["good.example:2222"])
    };
    let bench = setup.serve().await;
    let stream = bench.tunnel("good.example:2222").await;
    let mut origin = streams.recv().await.unwrap();
    let much = vec![0; 1 << 20];
    let mut written = 0_usize;
    let stuck = tokio::time::timeout(Duration::from_secs(5), async {
        let patience = Duration::from_millis(200);
        while let Ok(some) = tokio::time::timeout(patience, origin.write(&much)).await {
            written += some.unwrap();
        }
    });
    stuck.await.expect("the origin is stopped at last");
    // What the system itself keeps for two connections is a few megabytes.
    assert!(written < 64 << 20, "{written}");
    drop(stream);
}

#[tokio::test]
async fn an_answer_comes_even_while_the_client_still_writes() {
    let (_, _heard) = origin(b"", b"").await;
    let bench = Setup::allowing(&[]).serve().await;
    let mut stream = bench.connect().await;
    let head = "POST http://good.example/ HTTP/1.1\r\nContent-Length: 100000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b'x'; 100_000]).await.unwrap();
    assert!(
        to_end(&mut stream)
            .await
            .starts_with(b"HTTP/1.1 403 good.example:80 is not in")
    );
}
