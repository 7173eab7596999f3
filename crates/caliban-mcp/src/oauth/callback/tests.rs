use proptest::prelude::*;
use rstest::rstest;

use super::*;

fn expected() -> Expected {
    Expected {
        host: "127.0.0.1:9".to_owned(),
        state: "s3cret".to_owned(),
    }
}

fn request(target: &str) -> Request {
    Request {
        method: "GET".to_owned(),
        target: target.to_owned(),
        hosts: vec!["127.0.0.1:9".to_owned()],
        origin: None,
    }
}

#[test]
fn the_answer_is_taken_with_its_issuer() {
    let code = |issuer: Option<&str>| {
        Verdict::Answer(Answer::Code {
            code: "c d".to_owned(),
            issuer: issuer.map(str::to_owned),
        })
    };
    let judge = |target| expected().judge(&request(target));
    assert_eq!(judge("/callback?code=c%20d&state=s3cret"), code(None));
    assert_eq!(
        judge("/callback?iss=https%3A%2F%2Fa.example&state=s3cret&code=c+d"),
        code(Some("https://a.example"))
    );
    assert_eq!(
        judge("/callback?error=access_denied%1b&state=s3cret"),
        Verdict::Answer(Answer::Refusal("access_denied".to_owned()))
    );
}

#[rstest]
#[case("/callback?code=c&state=other", 400)]
#[case("/callback?code=c", 400)]
#[case("/callback?state=s3cret", 400)]
#[case("/callback?code=c&state=s3cret&state=s3cret", 400)]
#[case("/callback?code=c&code=d&state=s3cret", 400)]
#[case("/callback?error=access_denied&state=other", 400)]
#[case("/favicon.ico", 404)]
#[case("/?code=c&state=s3cret", 404)]
#[case("http://127.0.0.1:9/callback?code=c&state=s3cret", 404)]
#[case("//evil.example/callback?code=c&state=s3cret", 404)]
#[case("/x/../callback?code=c&state=s3cret", 404)]
fn other_requests_are_turned_away(#[case] target: &str, #[case] status: u16) {
    let verdict = expected().judge(&request(target));
    assert_eq!(verdict, Verdict::Stranger(status));
}

#[rstest]
#[case(&["evil.example"])]
#[case(&["evil.example:9"])]
#[case(&["localhost:9"])]
#[case(&["127.0.0.1"])]
#[case(&[])]
#[case(&["127.0.0.1:9", "evil.example"])]
fn another_host_is_turned_away(#[case] hosts: &[&str]) {
    let mut request = request("/callback?code=c&state=s3cret");
    request.hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    assert_eq!(expected().judge(&request), Verdict::Stranger(421));
}

#[test]
fn scripts_and_other_methods_are_turned_away() {
    let mut request = request("/callback?code=c&state=s3cret");
    request.origin = Some("https://evil.example".to_owned());
    assert_eq!(expected().judge(&request), Verdict::Stranger(403));
    request.origin = None;
    request.method = "POST".to_owned();
    assert_eq!(expected().judge(&request), Verdict::Stranger(405));
}

#[test]
fn pages_show_nothing_that_was_sent() {
    let refusal = Answer::Refusal("<script>".to_owned());
    let code = Answer::Code {
        code: "<script>".to_owned(),
        issuer: None,
    };
    for page in [
        page(200, Some(&refusal)),
        page(200, Some(&code)),
        page(400, None),
    ] {
        assert!(!page.contains("script>"), "{page}");
        assert!(page.contains("default-src 'none'"));
    }
}

async fn ask(address: SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A request that is too long is cut off, page or no page.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn strangers_do_not_end_the_wait() {
    let callback = Callback::bind(0).await.unwrap();
    let address = callback.address;
    assert!(address.ip().is_loopback());
    let waiting = tokio::spawn(callback.wait("s3cret", Duration::from_mins(1)));
    let idle = TcpStream::connect(address).await.unwrap();
    for head in [
        "nonsense\r\n\r\n".to_owned(),
        format!("GET /callback?code=x&state=wrong HTTP/1.1\r\nHost: {address}\r\n\r\n"),
        "GET /callback?code=x&state=s3cret HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
    ] {
        let answer = ask(address, &head).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    let long = format!(
        "GET /callback?state=s3cret&code={} HTTP/1.1\r\n",
        "a".repeat(HEAD)
    );
    assert!(!ask(address, &long).await.contains("200 OK"));
    let head = format!("GET /callback?code=x&state=s3cret HTTP/1.1\r\nHost: {address}\r\n\r\n");
    assert!(ask(address, &head).await.starts_with("HTTP/1.1 200"));
    drop(idle);
    let answer = waiting.await.unwrap().unwrap();
    assert!(matches!(answer, Answer::Code { .. }));
    assert!(
        TcpStream::connect(address).await.is_err(),
        "it listens no more"
    );
}

#[tokio::test(start_paused = true)]
async fn the_wait_has_an_end() {
    let callback = Callback::bind(0).await.unwrap();
    let patience = Duration::from_secs(5);
    let error = callback.wait("s", patience).await.unwrap_err();
    assert!(matches!(error, CallbackError::TimedOut(_)));
}

proptest! {
    #[test]
    fn only_the_secret_opens(target in "/callback\\?[a-z0-9=&%]{0,60}", state in "[a-z0-9]{20,30}") {
        let expected = Expected { host: "127.0.0.1:9".to_owned(), state: state.clone() };
        prop_assume!(!target.contains(&state));
        prop_assert!(matches!(expected.judge(&request(&target)), Verdict::Stranger(_)));
    }
}
