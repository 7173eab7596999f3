//! What is said first in a tunnel of the web must be meant for its host.

use std::sync::Arc;

use caliban_egress::{Failure, HelloFault, Host, Limits, Refusal, Verdict};
use rstest::rstest;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::AsyncWriteExt;

use crate::support::{SOCKS_OPEN, Setup, leading_to, origin, refused, socks, to_end};

/// The alert `access_denied`.
const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

/// The first words of a client that wants this server, or does not say which.
fn hello(name: &'static str, names_server: bool) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.enable_sni = names_server;
    let name = ServerName::try_from(name).unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

#[tokio::test]
async fn a_hello_for_the_host_is_passed_on_unchanged() {
    let (address, mut heard) = origin(b"end", b"server hello").await;
    let setup = Setup {
        world: leading_to(address),
        ..Setup::allowing(&["good.example"])
    };
    let mut bench = setup.serve().await;
    let said = [hello("good.example", true), b"end".to_vec()].concat();
    let mut stream = bench.tunnel("good.example:443").await;
    // In pieces, as a slow network brings them.
    for piece in said.chunks(100) {
        stream.write_all(piece).await.unwrap();
        stream.flush().await.unwrap();
    }
    assert_eq!(to_end(&mut stream).await, b"server hello");
    drop(stream);
    assert_eq!(heard.recv().await.unwrap(), said);
    let told = bench.told().await;
    assert_eq!(told.verdict, Verdict::Passed);
    assert_eq!((told.sent, told.received), (said.len() as u64, 12));
}

#[rstest]
#[case::other(
    hello("evil.example", true),
    HelloFault::OtherName(Host::parse(b"evil.example").unwrap())
)]
#[case::missing(hello("good.example", false), HelloFault::NoName)]
#[case::plain(b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n".to_vec(), HelloFault::Unreadable)]
#[case::ssh(b"SSH-2.0-x\r\n".to_vec(), HelloFault::Unreadable)]
#[case::endless([&[22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xfc][..], &vec![0; 20_000]].concat(), HelloFault::Unreadable)]
#[tokio::test]
async fn another_hello_closes_the_tunnel(#[case] said: Vec<u8>, #[case] fault: HelloFault) {
    let (address, mut heard) = origin(b"", b"").await;
    let setup = Setup {
        world: leading_to(address),
        ..Setup::allowing(&["good.example"])
    };
    let mut bench = setup.serve().await;
    let mut stream = bench.tunnel("good.example:443").await;
    // It may be refused before it has been said to the end.
    let _ = stream.write_all(&said).await;
    assert_eq!(to_end(&mut stream).await, ALERT);
    let told = bench.told().await;
    assert_eq!(refused(&told), &Refusal::Hello(fault));
    assert_eq!((told.sent, told.received), (0, 0));
    assert_eq!(heard.recv().await.unwrap(), b"", "the origin heard nothing");
}

#[tokio::test]
async fn socks_is_held_to_it_too() {
    let (address, mut heard) = origin(b"", b"").await;
    let setup = Setup {
        world: leading_to(address),
        ..Setup::allowing(&["good.example"])
    };
    let mut bench = setup.serve().await;
    let said = [socks("good.example", 443), hello("evil.example", true)].concat();
    assert_eq!(bench.say(&said).await, [&SOCKS_OPEN[..], &ALERT].concat());
    assert!(matches!(refused(&bench.told().await), Refusal::Hello(_)));
    assert_eq!(heard.recv().await.unwrap(), b"");
}

#[tokio::test]
async fn whoever_says_nothing_is_not_waited_for() {
    let (address, _heard) = origin(b"", b"").await;
    let setup = Setup {
        world: leading_to(address),
        limits: Limits {
            patience: std::time::Duration::from_millis(300),
            ..Limits::default()
        },
        ..Setup::allowing(&["good.example"])
    };
    let mut bench = setup.serve().await;
    let mut stream = bench.tunnel("good.example:443").await;
    assert_eq!(to_end(&mut stream).await, b"");
    assert_eq!(bench.told().await.verdict, Verdict::Failed(Failure::Silent));
    let mut stream = bench.connect().await;
    assert_eq!(to_end(&mut stream).await, b"");
    let nothing = Verdict::Failed(Failure::NothingAsked);
    assert_eq!(bench.told().await.verdict, nothing);
    let mut stream = bench.connect().await;
    stream.write_all(b"CONNECT good.exa").await.unwrap();
    assert_eq!(to_end(&mut stream).await, b"");
    assert_eq!(bench.told().await.verdict, nothing);
}

#[rstest]
#[case::origin_form("GET /x HTTP/1.1\r\nHost: good.example\r\n\r\n", true)]
#[case::absolute_form("GET http://good.example/x HTTP/1.1\r\n\r\n", true)]
#[case::other_host("GET /x HTTP/1.1\r\nHost: evil.example\r\n\r\n", false)]
#[case::other_address(
    "GET http://evil.example/x HTTP/1.1\r\nHost: good.example\r\n\r\n",
    false
)]
#[case::tunnel_within("CONNECT evil.example:443 HTTP/1.1\r\n\r\n", false)]
#[case::not_http("\x16\x03\x01 hello\r\n\r\n", false)]
#[tokio::test]
async fn plain_requests_in_a_tunnel_are_held_to_its_host(#[case] said: &str, #[case] passes: bool) {
    let (address, mut heard) = origin(b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nhi").await;
    for open in [true, false] {
        let setup = Setup {
            world: leading_to(address),
            ..Setup::allowing(&["good.example"])
        };
        let mut bench = setup.serve().await;
        let second = "GET /second HTTP/1.1\r\nHost: evil.example\r\n\r\n";
        let mut stream = if open {
            bench.tunnel("good.example:80").await
        } else {
            let mut stream = bench.connect().await;
            stream.write_all(&socks("good.example", 80)).await.unwrap();
            let mut opened = [0; SOCKS_OPEN.len()];
            tokio::io::AsyncReadExt::read_exact(&mut stream, &mut opened)
                .await
                .unwrap();
            assert_eq!(opened, SOCKS_OPEN);
            stream
        };
        stream
            .write_all(format!("{said}{second}").as_bytes())
            .await
            .unwrap();
        let answer = String::from_utf8(to_end(&mut stream).await).unwrap();
        let told = bench.told().await;
        let expected = if passes {
            assert_eq!(answer, "HTTP/1.1 200 OK\r\n\r\nhi");
            assert_eq!(told.verdict, Verdict::Passed);
            "GET /x HTTP/1.1\r\nHost: good.example\r\nConnection: close\r\n\r\n"
        } else {
            assert!(answer.starts_with("HTTP/1.1 40"), "{answer}");
            refused(&told);
            ""
        };
        assert_eq!(
            String::from_utf8(heard.recv().await.unwrap()).unwrap(),
            expected
        );
    }
}
