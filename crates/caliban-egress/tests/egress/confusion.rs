//! Requests that one reader takes for another host than the next. None of them is looked up, connected
//! to or passed on.

use caliban_egress::Refusal;
use rstest::rstest;

use crate::support::{Setup, refused, socks};

/// Everything that is allowed, so that each case could only be refused for what it is.
const ALLOWED: [&str; 4] = [
    "good.example:*",
    "*.good.example:*",
    "127.0.0.1:8080",
    "[::1]:8080",
];

#[rstest]
#[case::nul_in_connect(b"CONNECT evil.org\0.good.example:443 HTTP/1.1\r\n\r\n", 400)]
#[case::user_in_connect(b"CONNECT good.example@evil.org:443 HTTP/1.1\r\n\r\n", 400)]
#[case::user_and_port(b"CONNECT good.example:443@evil.org:443 HTTP/1.1\r\n\r\n", 400)]
#[case::percent(b"CONNECT evil.org%00.good.example:443 HTTP/1.1\r\n\r\n", 400)]
#[case::percent_dot(b"CONNECT evil%2eorg:443 HTTP/1.1\r\n\r\n", 400)]
#[case::space(b"CONNECT good.example:443 evil.org HTTP/1.1\r\n\r\n", 400)]
#[case::tab(b"CONNECT good.example\t:443 HTTP/1.1\r\n\r\n", 400)]
#[case::two_ports(b"CONNECT evil.org:443:good.example:443 HTTP/1.1\r\n\r\n", 400)]
#[case::dots_at_the_end(b"CONNECT good.example..:443 HTTP/1.1\r\n\r\n", 400)]
#[case::suffix(b"CONNECT evilgood.example:443 HTTP/1.1\r\n\r\n", 403)]
#[case::prefix(b"CONNECT good.example.evil.org:443 HTTP/1.1\r\n\r\n", 403)]
#[case::look_alike_in_utf8("CONNECT g\u{f6}od.example:443 HTTP/1.1\r\n\r\n".as_bytes(), 400)]
#[case::full_width("CONNECT good\u{3002}example:443 HTTP/1.1\r\n\r\n".as_bytes(), 400)]
#[case::decimal(b"CONNECT 2130706433:8080 HTTP/1.1\r\n\r\n", 400)]
#[case::hexadecimal(b"CONNECT 0x7f000001:8080 HTTP/1.1\r\n\r\n", 400)]
#[case::octal(b"CONNECT 0177.0.0.1:8080 HTTP/1.1\r\n\r\n", 400)]
#[case::short(b"CONNECT 127.1:8080 HTTP/1.1\r\n\r\n", 400)]
#[case::quad_with_a_dot(b"CONNECT 127.0.0.1.:8080 HTTP/1.1\r\n\r\n", 400)]
#[case::other_loopback(b"CONNECT 127.0.0.2:8080 HTTP/1.1\r\n\r\n", 403)]
#[case::unspecified(b"CONNECT 0.0.0.0:8080 HTTP/1.1\r\n\r\n", 403)]
#[case::unspecified_v6(b"CONNECT [::]:8080 HTTP/1.1\r\n\r\n", 403)]
#[case::other_port_of_a_literal(b"CONNECT 127.0.0.1:8081 HTTP/1.1\r\n\r\n", 403)]
#[case::localhost_is_not_the_literal(b"CONNECT localhost:8080 HTTP/1.1\r\n\r\n", 403)]
#[case::beneath_localhost(b"CONNECT good.example.localhost:8080 HTTP/1.1\r\n\r\n", 403)]
#[case::metadata(b"GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\n\r\n", 403)]
#[case::metadata_v6(b"GET http://[fd00:ec2::254]/latest/ HTTP/1.1\r\n\r\n", 403)]
#[case::metadata_by_name(b"GET http://metadata.google.internal/ HTTP/1.1\r\n\r\n", 403)]
#[case::mapped(b"CONNECT [::ffff:127.0.0.2]:8080 HTTP/1.1\r\n\r\n", 403)]
#[case::compatible(b"CONNECT [::127.0.0.1]:8080 HTTP/1.1\r\n\r\n", 403)]
#[case::nat64(b"CONNECT [64:ff9b::7f00:1]:8080 HTTP/1.1\r\n\r\n", 403)]
#[case::six_to_four(b"CONNECT [2002:7f00:1::]:8080 HTTP/1.1\r\n\r\n", 403)]
#[case::zone(b"CONNECT [::1%lo]:8080 HTTP/1.1\r\n\r\n", 400)]
#[case::zone_encoded(b"CONNECT [::1%25lo]:8080 HTTP/1.1\r\n\r\n", 400)]
#[case::unbracketed(b"CONNECT ::1:8080 HTTP/1.1\r\n\r\n", 400)]
#[case::port_nought(b"CONNECT good.example:0 HTTP/1.1\r\n\r\n", 400)]
#[case::port_overflow(b"CONNECT good.example:65979 HTTP/1.1\r\n\r\n", 400)]
#[case::port_negative(b"CONNECT good.example:-1 HTTP/1.1\r\n\r\n", 400)]
#[case::user_in_address(b"GET http://good.example@evil.org/ HTTP/1.1\r\n\r\n", 400)]
#[case::password_in_address(b"GET http://good.example:80@evil.org/ HTTP/1.1\r\n\r\n", 400)]
#[case::backslash(b"GET http://good.example\\@evil.org/ HTTP/1.1\r\n\r\n", 400)]
#[case::backslash_slash(b"GET http:\\\\good.example/ HTTP/1.1\r\n\r\n", 400)]
#[case::fragment(b"GET http://good.example#@evil.org/ HTTP/1.1\r\n\r\n", 400)]
#[case::slashes(b"GET http:///good.example/ HTTP/1.1\r\n\r\n", 400)]
#[case::one_slash(b"GET http:/good.example/ HTTP/1.1\r\n\r\n", 400)]
#[case::origin_form(b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n", 400)]
#[case::double_slash(b"GET //good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n", 400)]
#[case::star(b"OPTIONS * HTTP/1.1\r\nHost: good.example\r\n\r\n", 400)]
#[case::https_in_plain(b"GET https://good.example/ HTTP/1.1\r\n\r\n", 400)]
#[case::plain_on_443(b"GET http://good.example:443/ HTTP/1.1\r\n\r\n", 400)]
#[case::ftp(b"GET ftp://good.example/ HTTP/1.1\r\n\r\n", 400)]
#[case::file(b"GET file:///etc/passwd HTTP/1.1\r\n\r\n", 400)]
#[case::length_and_chunked(b"POST http://good.example/ HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400)]
#[case::chunked_hidden(
    b"POST http://good.example/ HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n",
    400
)]
#[case::chunked_twice(b"POST http://good.example/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-encoding: chunked\r\n\r\n", 400)]
#[case::lengths(
    b"POST http://good.example/ HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n",
    400
)]
#[case::hosts(
    b"GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\nHost: evil.org\r\n\r\n",
    400
)]
#[case::folded(
    b"GET http://good.example/ HTTP/1.1\r\nX: 1\r\n Host: evil.org\r\n\r\n",
    400
)]
#[case::bare_newlines(b"GET http://good.example/ HTTP/1.1\nHost: evil.org\n\n\r\n\r\n", 400)]
#[case::bare_return(
    b"GET http://good.example/ HTTP/1.1\r\nX: 1\rHost: evil.org\r\n\r\n",
    400
)]
#[case::space_in_name(b"GET http://good.example/ HTTP/1.1\r\nHost : evil.org\r\n\r\n", 400)]
#[case::http2(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400)]
#[case::tls_to_the_proxy(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03\r\n\r\n", 400)]
#[tokio::test]
async fn heads(#[case] said: &[u8], #[case] status: u16) {
    let mut bench = Setup::allowing(&ALLOWED).serve().await;
    let answer = String::from_utf8_lossy(&bench.say(said).await).into_owned();
    assert!(
        answer.starts_with(&format!("HTTP/1.1 {status} ")),
        "{answer}"
    );
    assert!(answer.contains("\r\n\r\ncaliban: "), "{answer}");
    let told = bench.told().await;
    let is_malformed = matches!(refused(&told), Refusal::Malformed(_));
    assert_eq!(is_malformed, status == 400, "{told:?}");
    assert_eq!(bench.world.lookups(), [""; 0]);
    assert_eq!(bench.world.connects(), [""; 0]);
}

#[rstest]
#[case::nul(socks("evil.org\0.good.example", 443), &[5, 0, 5, 2])]
#[case::nul_behind(socks("good.example\0", 443), &[5, 0, 5, 2])]
#[case::user(socks("good.example@evil.org", 443), &[5, 0, 5, 2])]
#[case::port_in_the_name(socks("good.example:443", 443), &[5, 0, 5, 2])]
#[case::percent(socks("good%2eexample", 443), &[5, 0, 5, 2])]
#[case::decimal(socks("2130706433", 8080), &[5, 0, 5, 2])]
#[case::hexadecimal(socks("0x7f.1", 8080), &[5, 0, 5, 2])]
#[case::empty(socks("", 443), &[5, 0, 5, 2])]
#[case::dot(socks(".", 443), &[5, 0, 5, 2])]
#[case::newline(socks("good.example\r\nX: y", 443), &[5, 0, 5, 2])]
#[case::port_nought(socks("good.example", 0), &[5, 0, 5, 2])]
#[case::unlisted(socks("evil.org", 443), &[5, 0, 5, 2])]
#[case::unlisted_literal(vec![5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 2, 0x1f, 0x90], &[5, 0, 5, 2])]
#[case::mapped_literal(
    vec![5, 1, 0, 5, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 2, 0x1f, 0x90],
    &[5, 0, 5, 2]
)]
#[case::bind(vec![5, 1, 0, 5, 2, 0, 1, 1, 2, 3, 4, 0, 80], &[5, 0, 5, 7])]
#[case::udp(vec![5, 1, 0, 5, 3, 0, 1, 1, 2, 3, 4, 0, 80], &[5, 0, 5, 7])]
#[case::kind(vec![5, 1, 0, 5, 1, 0, 9, 1, 2, 3, 4, 0, 80], &[5, 0, 5, 8])]
#[case::authentication(vec![5, 1, 2], &[5, 0xff])]
#[case::version_within(vec![5, 1, 0, 4, 1, 0, 1, 1, 2, 3, 4, 0, 80], &[5, 0])]
#[tokio::test]
async fn socks_requests(#[case] said: Vec<u8>, #[case] expected: &[u8]) {
    let mut bench = Setup::allowing(&ALLOWED).serve().await;
    let answer = bench.say(&said).await;
    assert_eq!(answer.get(..expected.len()), Some(expected), "{answer:?}");
    refused(&bench.told().await);
    assert_eq!(bench.world.lookups(), [""; 0]);
    assert_eq!(bench.world.connects(), [""; 0]);
}

#[tokio::test]
async fn what_denies_counts_first() {
    let mut setup = Setup::allowing(&[]);
    setup.policy = crate::support::policy(&["*.good.example"], &["bad.good.example"], None);
    let mut bench = setup.serve().await;
    let answer = bench
        .say(b"CONNECT bad.good.example:443 HTTP/1.1\r\n\r\n")
        .await;
    assert!(answer.starts_with(b"HTTP/1.1 403 bad.good.example:443 is denied by the sandbox\r\n"));
    let told = bench.told().await;
    let entry = "bad.good.example:*".to_owned();
    assert_eq!(refused(&told), &Refusal::Denied { entry });
    assert_eq!(bench.world.lookups(), [""; 0]);
}

#[tokio::test]
async fn a_head_has_a_limit() {
    let mut bench = Setup::allowing(&ALLOWED).serve().await;
    let said = format!(
        "GET http://good.example/ HTTP/1.1\r\nX: {}",
        "x".repeat(20_000)
    );
    let answer = bench.say(said.as_bytes()).await;
    assert!(answer.starts_with(b"HTTP/1.1 400 "));
    assert_eq!(
        bench.told().await.complaint().unwrap(),
        "the request was refused: the request is too long"
    );
}
