//! Bodies that never come to their end.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use caliban_model::Message;
use caliban_serve::{
    Frames, HostedSession, Limits, Registry, Saved, SessionHost, Unopened, Wanted,
};
use caliban_serve_http::{Access, Connections, Router, Scheme, Token, router, serve};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::{Instant, timeout};

/// A host without sessions.
#[derive(Debug)]
struct Nothing;

impl SessionHost for Nothing {
    fn open(&self, _: Wanted) -> BoxFuture<'_, Result<Box<dyn HostedSession>, Unopened>> {
        async { Err(Unopened::Failed("there are none".to_owned())) }.boxed()
    }

    fn history(&self, _: &str) -> BoxFuture<'_, Result<Vec<Arc<Message>>, String>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn saved(&self) -> BoxFuture<'_, Result<Vec<Saved>, String>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, String>> {
        async { Ok(Vec::new()) }.boxed()
    }

    fn remove(&self, _: &str) -> BoxFuture<'_, Result<(), String>> {
        async { Ok(()) }.boxed()
    }
}

fn served(ledgers: &tempfile::TempDir) -> (Router, Token) {
    let registry = Registry::new(
        Arc::new(Nothing),
        Frames::Caliban,
        Limits::default(),
        ledgers.path().to_owned(),
    );
    let token = Token::new([7; 32]);
    let access = Access::Network {
        token: token.clone(),
        once: Arc::default(),
        scheme: Scheme::Http,
        hosts: vec!["x".to_owned()],
        origins: Vec::new(),
    };
    (router(registry, access, Arc::new(|_| {})), token)
}

/// A connection on which a request with half of its body was sent.
async fn half(head: &str, router: &Router, places: &Connections) -> DuplexStream {
    let (mut near, far) = duplex(4096);
    serve(far, router.clone(), places.place().await.unwrap());
    let request =
        format!("{head}host: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{");
    near.write_all(request.as_bytes()).await.unwrap();
    near
}

async fn answer(mut stream: DuplexStream) -> String {
    let mut text = String::new();
    // It may end with a reset.
    let _ = stream.read_to_string(&mut text).await;
    text
}

#[tokio::test(start_paused = true)]
async fn half_bodies_of_strangers_keep_nobody_out_for_long() {
    let ledgers = tempfile::tempdir().unwrap();
    let (router, _) = served(&ledgers);
    let places = Connections::default();
    let began = Instant::now();
    let mut held = Vec::new();
    for _ in 0..540 {
        // The last of them get their places when the first have lost theirs.
        held.push(half("POST /v1/login HTTP/1.1\r\n", &router, &places).await);
    }
    assert!(
        began.elapsed() <= Duration::from_secs(11),
        "{:?}",
        began.elapsed()
    );
    let told = answer(held.swap_remove(0)).await;
    assert!(
        told.starts_with("HTTP/1.1 408") && told.contains("too_slow"),
        "{told}"
    );
}

/// Byte after byte is no way around it.
#[tokio::test(start_paused = true)]
async fn a_stranger_has_so_long_for_all_of_it() {
    let ledgers = tempfile::tempdir().unwrap();
    let (router, _) = served(&ledgers);
    let places = Connections::default();
    let stream = half("POST /v1/login HTTP/1.1\r\n", &router, &places).await;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let dripping = async {
        loop {
            tokio::time::sleep(Duration::from_secs(3)).await;
            if writer.write_all(b" ").await.is_err() {
                return;
            }
        }
    };
    let began = Instant::now();
    let mut text = String::new();
    tokio::select! {
        () = dripping => {}
        _ = reader.read_to_string(&mut text) => {}
    }
    assert!(
        began.elapsed() <= Duration::from_secs(13),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn who_has_the_token_may_take_his_time_but_not_fall_silent() {
    let ledgers = tempfile::tempdir().unwrap();
    let (router, token) = served(&ledgers);
    let places = Connections::default();
    let head = format!(
        "POST /v1/sessions HTTP/1.1\r\nauthorization: Bearer {}\r\n",
        token.reveal()
    );
    let silent = half(&head, &router, &places).await;
    let told = timeout(Duration::from_secs(11), answer(silent))
        .await
        .unwrap();
    assert!(
        told.starts_with("HTTP/1.1 408") && told.contains("too_slow"),
        "{told}"
    );
    let mut slow = half(&head, &router, &places).await;
    for _ in 0..98 {
        tokio::time::sleep(Duration::from_secs(8)).await;
        slow.write_all(b" ").await.unwrap();
    }
    slow.write_all(b"}").await.unwrap();
    let mut first = [0; 12];
    slow.read_exact(&mut first).await.unwrap();
    // All of it was read: there are only no sessions here.
    assert_eq!(&first, b"HTTP/1.1 503");
}
