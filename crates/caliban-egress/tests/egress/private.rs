//! Names that lead into private networks, at once or later, and the entries that open such places.

use caliban_egress::{Refusal, Verdict};
use rstest::rstest;

use crate::support::{Setup, leading_to, origin, refused};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi";
const REQUEST: &[u8] = b"GET http://good.example/ HTTP/1.1\r\n\r\n";

#[rstest]
#[case("127.0.0.1")]
#[case("127.8.8.8")]
#[case("0.0.0.0")]
#[case("10.0.0.1")]
#[case("172.16.0.1")]
#[case("192.168.1.1")]
#[case("169.254.169.254")]
#[case("100.64.0.1")]
#[case("100.100.100.200")]
#[case("168.63.129.16")]
#[case("192.0.0.192")]
#[case("198.18.0.1")]
#[case("224.0.0.251")]
#[case("255.255.255.255")]
#[case("::")]
#[case("::1")]
#[case("::ffff:10.0.0.1")]
#[case("::ffff:93.184.216.34")]
#[case("::10.0.0.1")]
#[case("64:ff9b::a00:1")]
#[case("64:ff9b::a9fe:a9fe")]
#[case("64:ff9b:1::a00:1")]
#[case("2002:a00:1::")]
#[case("2001:0:a00:1::")]
#[case("fd00:ec2::254")]
#[case("fe80::1")]
#[case("ff02::1")]
#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_refused(#[case] address: &str) {
    let (origin, _heard) = origin(b"\r\n\r\n", ANSWER).await;
    let world = leading_to(origin);
    world.name("good.example", &[&[address]]);
    let mut bench = Setup {
        world,
        ..Setup::allowing(&["good.example"])
    }
    .serve()
    .await;
    let answer = String::from_utf8(bench.say(REQUEST).await).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 403 good.example:80 is not on the public internet\r\n"),
        "{answer}"
    );
    let told = bench.told().await;
    assert!(
        matches!(refused(&told), Refusal::Private { .. }),
        "{told:?}"
    );
    assert_eq!(bench.world.connects(), [""; 0]);
}

#[tokio::test]
async fn of_several_addresses_only_the_public_are_connected_to() {
    let (origin, _heard) = origin(b"\r\n\r\n", ANSWER).await;
    let world = leading_to(origin);
    world.name("good.example", &[&["10.0.0.1", "93.184.216.34", "::1"]]);
    let bench = Setup {
        world,
        ..Setup::allowing(&["good.example"])
    }
    .serve()
    .await;
    assert_eq!(bench.say(REQUEST).await, ANSWER);
    assert_eq!(bench.world.connects(), ["93.184.216.34:80"]);
}

#[tokio::test]
async fn an_address_that_is_denied_is_denied_under_any_name() {
    let (origin, _heard) = origin(b"\r\n\r\n", ANSWER).await;
    let mut setup = Setup {
        world: leading_to(origin),
        ..Setup::allowing(&[])
    };
    setup.policy = crate::support::policy(&["good.example"], &["93.184.216.34"], None);
    let mut bench = setup.serve().await;
    bench.say(REQUEST).await;
    assert!(matches!(
        refused(&bench.told().await),
        Refusal::Denied { .. }
    ));
    assert_eq!(bench.world.connects(), [""; 0]);
}

/// A name server that answers differently the next time finds that nobody asks again: what was checked
/// is what is connected to.
#[tokio::test]
async fn rebinding_has_no_window() {
    let (origin, _heard) = origin(b"\r\n\r\n", ANSWER).await;
    let world = leading_to(origin);
    world.name("good.example", &[&["93.184.216.34"], &["127.0.0.1"]]);
    let mut bench = Setup {
        world,
        ..Setup::allowing(&["good.example"])
    }
    .serve()
    .await;
    assert_eq!(bench.say(REQUEST).await, ANSWER);
    assert_eq!(bench.told().await.verdict, Verdict::Passed);
    assert_eq!(bench.world.lookups().len(), 1);
    bench.say(REQUEST).await;
    assert!(matches!(
        refused(&bench.told().await),
        Refusal::Private { .. }
    ));
    assert_eq!(bench.world.connects(), ["93.184.216.34:80"]);
}

#[rstest]
#[case::literal("127.0.0.1", "127.0.0.1", true)]
#[case::mapped("127.0.0.1", "[::ffff:127.0.0.1]", true)]
#[case::name("localhost", "localhost", true)]
#[case::name_does_not_open_the_literal("localhost", "127.0.0.1", false)]
#[case::literal_does_not_open_the_name("127.0.0.1", "localhost", false)]
#[case::neighbour("127.0.0.1", "127.0.0.2", false)]
#[tokio::test]
async fn this_machine_is_opened_by_an_entry_alone(
    #[case] listed: &str,
    #[case] asked: &str,
    #[case] opens: bool,
) {
    let (origin, _heard) = origin(b"\r\n\r\n", ANSWER).await;
    let port = origin.port();
    let mut bench = Setup::allowing(&[&format!("{listed}:{port}")])
        .serve()
        .await;
    let answer = bench
        .say(format!("GET http://{asked}:{port}/ HTTP/1.1\r\n\r\n").as_bytes())
        .await;
    assert_eq!(answer == ANSWER, opens);
    assert_eq!(bench.told().await.verdict == Verdict::Passed, opens);
    assert_eq!(bench.world.lookups(), [""; 0], "it is never looked up");
    assert_eq!(bench.world.connects().is_empty(), !opens);
}
