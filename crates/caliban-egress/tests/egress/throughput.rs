//! How fast one stream is. Run by hand, in a release build:
//! `cargo test --release -p caliban-egress --test egress -- --ignored --nocapture throughput`.

use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Setup, leading_to};

const BYTES: usize = 4 << 30;
const ROUNDS: u32 = 300;

async fn drain(mut stream: TcpStream) -> usize {
    let mut buffer = vec![0; 256 << 10];
    let mut total = 0;
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        total += read;
    }
    total
}

async fn pour(mut stream: TcpStream) {
    let chunk = vec![0; 256 << 10];
    for _ in 0..BYTES / chunk.len() {
        stream.write_all(&chunk).await.unwrap();
    }
    stream.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn throughput() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(pour(stream));
        }
    });
    let setup = Setup {
        world: leading_to(address),
        ..Setup::allowing(&["good.example:2222"])
    };
    let bench = setup.serve().await;
    for (what, stream) in [
        ("straight", TcpStream::connect(address).await.unwrap()),
        ("through the proxy", bench.tunnel("good.example:2222").await),
    ] {
        let begun = Instant::now();
        assert_eq!(drain(stream).await, BYTES);
        // Bytes in a microsecond are megabytes in a second.
        println!(
            "{what}: {} MB/s",
            BYTES as u128 / begun.elapsed().as_micros()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn latency() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move { stream.write_all(b"x").await });
        }
    });
    let setup = Setup {
        world: leading_to(address),
        ..Setup::allowing(&["good.example:2222"])
    };
    let bench = setup.serve().await;
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.read_exact(&mut [0]).await.unwrap();
    }
    let straight = begun.elapsed() / ROUNDS;
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        let mut stream = bench.tunnel("good.example:2222").await;
        stream.read_exact(&mut [0]).await.unwrap();
    }
    println!(
        "straight {straight:?}, through the proxy {:?}",
        begun.elapsed() / ROUNDS
    );
}
