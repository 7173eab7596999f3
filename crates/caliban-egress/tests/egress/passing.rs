//! What is allowed gets through, in all three protocols, and is written down.

use std::time::Duration;

use caliban_egress::{Protocol, Rule, Verdict};
use rstest::rstest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{GOOD, SOCKS_OPEN, Setup, leading_to, origin, socks, to_end};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";

#[tokio::test]
async fn a_plain_request_is_passed_on() {
    let (address, mut heard) = origin(b"\r\n\r\n", ANSWER).await;
    let setup = Setup {
        world: leading_to(address),
        ..Setup::allowing(&["good.example:*"])
    };
    let mut bench = setup.serve().await;
    let answer = bench
        .say(b"GET http://Good.Example./x HTTP/1.1\r\nHost: evil.example\r\nProxy-Connection: keep-alive\r\nUser-Agent: t\r\n\r\n")
        .await;
    assert_eq!(answer, ANSWER);
    let sent = heard.recv().await.unwrap();
    assert_eq!(
        String::from_utf8(sent.clone()).unwrap(),
        "GET /x HTTP/1.1\r\nHost: good.example\r\nUser-Agent: t\r\nConnection: close\r\n\r\n"
    );
    let told = bench.told().await;
    assert_eq!(told.protocol, Some(Protocol::Http));
    assert_eq!(told.target.unwrap().to_string(), "good.example:80");
    assert_eq!(told.address, Some((GOOD, 80).into()));
    assert_eq!(told.rule, Some(Rule::Entry("good.example:*".to_owned())));
    assert_eq!(told.verdict, Verdict::Passed);
    assert_eq!(
        (told.sent, told.received),
        (sent.len() as u64, ANSWER.len() as u64)
    );
    assert!(told.duration < Duration::from_secs(10));
    assert_eq!(bench.world.lookups(), ["good.example"]);
}

#[rstest]
#[case::length("Content-Length: 5\r\n", "hello")]
#[case::chunked("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n")]
#[case::none("", "")]
#[case::empty("Content-Length: 0\r\n", "")]
#[tokio::test]
async fn exactly_one_request_reaches_the_origin(#[case] field: &str, #[case] body: &'static str) {
    let until = if body.is_empty() { "\r\n\r\n" } else { body };
    let (address, mut heard) = origin(until.as_bytes(), ANSWER).await;
    let setup = Setup {
        world: leading_to(address),
        ..Setup::allowing(&["good.example"])
    };
    let bench = setup.serve().await;
    let second = "GET http://good.example/second HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    let said = format!("POST http://good.example/ HTTP/1.1\r\n{field}\r\n{body}{second}{second}");
    assert_eq!(bench.say(said.as_bytes()).await, ANSWER);
    assert_eq!(
        String::from_utf8(heard.recv().await.unwrap()).unwrap(),
        format!("POST / HTTP/1.1\r\nHost: good.example\r\n{field}Connection: close\r\n\r\n{body}")
    );
}

#[tokio::test]
async fn a_body_that_is_not_what_it_says_is_cut_off() {
    let (address, mut heard) = origin(b"", ANSWER).await;
    let setup = Setup {
        world: leading_to(address),
        ..Setup::allowing(&["good.example"])
    };
    let bench = setup.serve().await;
    let begins = "POST http://good.example/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = bench
        .say(format!("{begins}5;x\r\nhello\r\n0\r\n\r\nGET /second HTTP/1.1\r\n\r\n").as_bytes())
        .await;
    assert_eq!(answer, b"");
    let sent = String::from_utf8(heard.recv().await.unwrap()).unwrap();
    assert!(sent.ends_with("Connection: close\r\n\r\n"), "{sent}");
}

#[tokio::test]
async fn a_tunnel_passes_everything_both_ways_and_half_closes() {
    let (address, mut heard) = origin(b"", b"\x00answer\xff").await;
    let setup = Setup {
        world: leading_to(address),
        ..Setup::allowing(&["good.example:2222"])
    };
    let mut bench = setup.serve().await;
    let mut stream = bench.tunnel("good.example:2222").await;
    stream.write_all(b"\x16\x03question\x00").await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(to_end(&mut stream).await, b"\x00answer\xff");
    assert_eq!(heard.recv().await.unwrap(), b"\x16\x03question\x00");
    let told = bench.told().await;
    assert_eq!(told.protocol, Some(Protocol::Connect));
    assert_eq!((told.sent, told.received), (11, 8));
}

#[tokio::test]
async fn socks_opens_a_tunnel_and_takes_what_was_said_early() {
    let (address, mut heard) = origin(b"!", b"answer").await;
    let setup = Setup {
        world: leading_to(address),
        ..Setup::allowing(&["good.example:2222"])
    };
    let mut bench = setup.serve().await;
    let said = [socks("good.example", 2222), b"early!".to_vec()].concat();
    let answer = bench.say(&said).await;
    assert_eq!(answer, [&SOCKS_OPEN[..], b"answer"].concat());
    assert_eq!(heard.recv().await.unwrap(), b"early!");
    let told = bench.told().await;
    assert_eq!(told.protocol, Some(Protocol::Socks));
    assert_eq!(told.verdict, Verdict::Passed);
}

#[tokio::test]
async fn much_gets_through_whole() {
    const SIZE: usize = 8 << 20;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let echo = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut from, mut to) = stream.split();
        tokio::io::copy(&mut from, &mut to).await.unwrap();
        to.shutdown().await.unwrap();
    });
    let setup = Setup {
        world: leading_to(address),
        ..Setup::allowing(&["good.example:2222"])
    };
    let mut bench = setup.serve().await;
    let (mut from, mut to) = bench.tunnel("good.example:2222").await.into_split();
    let bytes: Vec<u8> = (0..SIZE)
        .map(|at| ((at * 31) >> 3).to_le_bytes()[0])
        .collect();
    let sent = bytes.clone();
    let writing = tokio::spawn(async move {
        to.write_all(&sent).await.unwrap();
        to.shutdown().await.unwrap();
    });
    let mut back = Vec::new();
    from.read_to_end(&mut back).await.unwrap();
    writing.await.unwrap();
    echo.await.unwrap();
    assert!(back == bytes, "what came back is not what was sent");
    let told = bench.told().await;
    assert_eq!((told.sent, told.received), (SIZE as u64, SIZE as u64));
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_does_not_answer() {
    let (address, _heard) = origin(b"\r\n\r\n", ANSWER).await;
    let world = leading_to(address);
    world.name("good.example", &[&["2606:4700::1", "93.184.216.34"]]);
    let setup = Setup {
        world,
        ..Setup::allowing(&["good.example"])
    };
    let bench = setup.serve().await;
    let answer = bench
        .say(b"GET http://good.example/ HTTP/1.1\r\n\r\n")
        .await;
    assert_eq!(answer, ANSWER);
    assert_eq!(
        bench.world.connects(),
        ["[2606:4700::1]:80", "93.184.216.34:80"]
    );
}

#[rstest]
#[case::unresolved("nowhere.example", 502, 4)]
#[case::unreachable("dead.example", 502, 5)]
#[tokio::test]
async fn what_cannot_be_reached_is_not_a_refusal(
    #[case] host: &str,
    #[case] status: u16,
    #[case] code: u8,
) {
    let setup = Setup::allowing(&["nowhere.example", "dead.example"]);
    let mut bench = setup.serve().await;
    bench.world.name("dead.example", &[&["1.2.3.4"]]);
    let connect = format!("CONNECT {host}:443 HTTP/1.1\r\n\r\n");
    let answer = String::from_utf8(bench.say(connect.as_bytes()).await).unwrap();
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {status} ")),
        "{answer}"
    );
    assert!(matches!(bench.told().await.verdict, Verdict::Failed(_)));
    assert_eq!(bench.say(&socks(host, 443)).await[2..4], [5, code]);
    assert!(matches!(bench.told().await.verdict, Verdict::Failed(_)));
}
