//! Through the proxy that the operator runs.

use std::sync::Arc;

use caliban_egress::{Failure, Refusal, Rule, Verdict};
use rstest::rstest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{SOCKS_OPEN, Setup, World, origin, policy, refused, socks, to_end};

fn through(port: u16, allowed: &[&str], denied: &[&str]) -> Setup {
    Setup {
        world: Arc::<World>::default(),
        policy: policy(allowed, denied, Some(port)),
        ..Setup::allowing(&[])
    }
}

#[rstest]
#[case::alone(&[], Rule::OperatorsProxy)]
#[case::behind_a_list(&["good.example:2222"], Rule::Entry("good.example:2222".to_owned()))]
#[tokio::test]
async fn tunnels_are_asked_for_by_name(#[case] allowed: &[&str], #[case] rule: Rule) {
    // It says something before the client does.
    let (proxy, mut heard) = origin(b"\r\n\r\n", b"HTTP/1.1 200 Fine\r\nX: y\r\n\r\nbanner").await;
    let mut bench = through(proxy.port(), allowed, &[]).serve().await;
    let mut stream = bench.tunnel("good.example:2222").await;
    assert_eq!(to_end(&mut stream).await, b"banner");
    stream.write_all(b"said").await.unwrap();
    drop(stream);
    let told = bench.told().await;
    assert_eq!(told.rule, Some(rule));
    assert_eq!(told.address, Some(proxy));
    assert_eq!(
        String::from_utf8(heard.recv().await.unwrap()).unwrap(),
        "CONNECT good.example:2222 HTTP/1.1\r\nHost: good.example:2222\r\n\r\nsaid"
    );
    assert_eq!(bench.world.lookups(), [""; 0], "names are the proxy's");
}

#[tokio::test]
async fn socks_becomes_a_tunnel_of_that_proxy() {
    let (proxy, mut heard) = origin(b"\r\n\r\n", b"HTTP/1.1 200 Fine\r\n\r\n").await;
    let bench = through(proxy.port(), &[], &[]).serve().await;
    let mut stream = bench.connect().await;
    stream.write_all(&socks("good.example", 22)).await.unwrap();
    let mut opened = [0; SOCKS_OPEN.len()];
    stream.read_exact(&mut opened).await.unwrap();
    assert_eq!(opened, SOCKS_OPEN);
    drop(stream);
    let said = heard.recv().await.unwrap();
    assert!(said.starts_with(b"CONNECT good.example:22 HTTP/1.1\r\n"));
}

#[rstest]
#[case::request("GET http://good.example/x HTTP/1.1\r\n\r\n", None)]
#[case::in_a_tunnel(
    "GET /x HTTP/1.1\r\nHost: good.example\r\n\r\n",
    Some("good.example:80")
)]
#[tokio::test]
async fn plain_requests_keep_the_whole_address(#[case] said: &str, #[case] tunnel: Option<&str>) {
    let (proxy, mut heard) = origin(b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nhi").await;
    let bench = through(proxy.port(), &["good.example"], &[]).serve().await;
    let mut stream = match tunnel {
        Some(target) => bench.tunnel(target).await,
        None => bench.connect().await,
    };
    stream.write_all(said.as_bytes()).await.unwrap();
    assert_eq!(to_end(&mut stream).await, b"HTTP/1.1 200 OK\r\n\r\nhi");
    assert_eq!(
        String::from_utf8(heard.recv().await.unwrap()).unwrap(),
        "GET http://good.example/x HTTP/1.1\r\nHost: good.example\r\nConnection: close\r\n\r\n"
    );
}

#[tokio::test]
async fn our_lists_come_first() {
    let (proxy, mut heard) = origin(b"\r\n\r\n", b"").await;
    let mut bench = through(proxy.port(), &[], &["evil.example"]).serve().await;
    bench
        .say(b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n")
        .await;
    assert!(matches!(
        refused(&bench.told().await),
        Refusal::Denied { .. }
    ));
    let mut bench = through(proxy.port(), &["good.example"], &[]).serve().await;
    bench
        .say(b"CONNECT other.example:443 HTTP/1.1\r\n\r\n")
        .await;
    assert_eq!(refused(&bench.told().await), &Refusal::Unlisted);
    assert!(heard.try_recv().is_err(), "the proxy was not asked");
}

#[rstest]
#[case::refuses(b"HTTP/1.1 407 Authenticate\r\n\r\n", Failure::Upstream(407))]
#[case::babbles(b"SSH-2.0-x\r\n", Failure::UpstreamBroken("its answer is not HTTP/1".into()))]
#[case::closes(b"", Failure::UpstreamBroken("it closed the connection".into()))]
#[tokio::test]
async fn a_proxy_that_does_not_help_is_named(
    #[case] answer: &'static [u8],
    #[case] failure: Failure,
) {
    let (proxy, _heard) = origin(b"\r\n\r\n", answer).await;
    let mut bench = through(proxy.port(), &[], &[]).serve().await;
    let answer = bench
        .say(b"CONNECT good.example:443 HTTP/1.1\r\n\r\n")
        .await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 502 Bad Gateway\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains("sandbox.network.http_proxy_port"),
        "{answer}"
    );
    assert_eq!(bench.told().await.verdict, Verdict::Failed(failure));
}
