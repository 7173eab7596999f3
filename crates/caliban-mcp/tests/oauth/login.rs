//! From a server nobody knows to a token, and all the ways that must not lead there.

use caliban_mcp::authorization::{AuthError, Authorization};
use caliban_mcp::oauth::LoginState;
use caliban_testkit::oauth::{Behaviour, Consent, Issuer};
use rstest::rstest;
use serde_json::json;
use url::Url;

use crate::support::{Bench, PATIENCE, consent, exchange};

fn parameter(url: &Url, name: &str) -> String {
    let mut pairs = url.query_pairs().filter(|(key, _)| key == name);
    pairs.next().unwrap().1.into_owned()
}

#[tokio::test]
async fn everything_is_discovered() {
    let bench = Bench::new(Behaviour::default());
    let oauth = bench.oauth();
    assert_eq!(oauth.state("s").await.unwrap(), Some(LoginState::Absent));
    assert_eq!(oauth.state("other").await.unwrap(), None);
    assert_eq!(bench.token(&oauth).await.unwrap(), None);

    let login = oauth.begin_login("s", 0).await.unwrap();
    let url = login.url().clone();
    assert!(url.as_str().starts_with(&bench.server.url()));
    assert_eq!(parameter(&url, "code_challenge_method"), "S256");
    assert_eq!(parameter(&url, "resource"), bench.server.mcp_url());
    assert!(parameter(&url, "redirect_uri").starts_with("http://127.0.0.1:"));
    let outcome = consent(login).await.unwrap();
    assert!(outcome.expires_at.is_some());

    let paths: Vec<String> = bench
        .server
        .hits()
        .into_iter()
        .map(|hit| hit.path)
        .collect();
    for path in [
        "/mcp",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/register",
        "/authorize",
        "/token",
    ] {
        assert!(paths.iter().any(|known| known == path), "{path}: {paths:?}");
    }
    let exchanged = &bench.server.token_requests("authorization_code")[0];
    assert_eq!(
        exchanged.parameter("resource"),
        Some(bench.server.mcp_url().as_str())
    );

    let token = bench.token(&oauth).await.unwrap().unwrap();
    assert_eq!(bench.call(&token).await, 200);
    let state = oauth.state("s").await.unwrap().unwrap();
    assert!(matches!(state, LoginState::Valid { until: Some(_) }));
}

#[tokio::test]
async fn a_token_goes_nowhere_else() {
    let bench = Bench::new(Behaviour::default());
    bench.log_in().await;
    let oauth = bench.oauth();
    let token = |url: &str| {
        let (oauth, url) = (oauth.clone(), Url::parse(url).unwrap());
        async move { oauth.token("s", &url).await }
    };
    let elsewhere = bench.server.mcp_url().replace("127.0.0.1", "localhost");
    for url in [
        "https://evil.example/mcp",
        "http://127.0.0.1:1/mcp",
        "http://evil.example/mcp",
        &elsewhere,
    ] {
        let error = token(url).await.unwrap_err();
        assert!(matches!(error, AuthError::Address { .. }), "{error}");
        let url = Url::parse(url).unwrap();
        assert!(oauth.refused("s", &url, None).await.is_err());
    }
    let path = format!("{}/messages?x=1", bench.server.url());
    assert!(token(&path).await.unwrap().is_some(), "the same origin");
    assert_eq!(oauth.token("other", &bench.url()).await.unwrap(), None);

    let moved = bench.oauth_with(&json!({"url": format!("{}/other", bench.server.url())}));
    assert_eq!(moved.token("s", &bench.url()).await.unwrap(), None);
}

#[rstest]
#[case(Issuer::OtherInAnswer)]
#[case(Issuer::MissingInAnswer)]
#[tokio::test]
async fn a_mix_up_is_refused(#[case] issuer: Issuer) {
    let bench = Bench::new(Behaviour {
        issuer,
        ..Behaviour::default()
    });
    let login = bench.oauth().begin_login("s", 0).await.unwrap();
    let error = consent(login).await.unwrap_err().to_string();
    assert!(error.contains("issuer"), "{error}");
    assert!(bench.server.token_requests("authorization_code").is_empty());
    assert!(!bench.tokens().exists());
}

#[tokio::test]
async fn metadata_of_another_issuer_is_refused() {
    let bench = Bench::new(Behaviour {
        issuer: Issuer::OtherInMetadata,
        ..Behaviour::default()
    });
    let error = bench.oauth().begin_login("s", 0).await.unwrap_err();
    assert!(error.to_string().contains("issuer"), "{error}");
}

#[tokio::test]
async fn endpoints_without_tls_are_refused() {
    let bench = Bench::new(Behaviour {
        token_endpoint: Some("http://auth.example/token".to_owned()),
        ..Behaviour::default()
    });
    let error = bench.oauth().begin_login("s", 0).await.unwrap_err();
    assert!(error.to_string().contains("token endpoint"), "{error}");
}

#[tokio::test]
async fn a_refusal_is_told() {
    let bench = Bench::new(Behaviour {
        consent: Consent::Denied,
        ..Behaviour::default()
    });
    let login = bench.oauth().begin_login("s", 0).await.unwrap();
    let error = consent(login).await.unwrap_err().to_string();
    assert!(error.contains("`access_denied`"), "{error}");
}

#[tokio::test]
async fn only_the_right_answer_counts() {
    let bench = Bench::new(Behaviour::default());
    let login = bench.oauth().begin_login("s", 0).await.unwrap();
    let mut back = Url::parse(&parameter(login.url(), "redirect_uri")).unwrap();
    let state = parameter(login.url(), "state");
    let url = login.url().clone();
    let browser = async move {
        back.set_query(Some("code=forged&state=guessed"));
        let wrong_state = exchange(&back, "GET", "", "").await;
        back.set_query(Some(&format!("code=forged&state={state}")));
        let script = exchange(&back, "GET", "Origin: https://evil.example\r\n", "").await;
        let rebound = exchange(&back, "GET", "Host: evil.example\r\n", "").await;
        assert_eq!(
            [wrong_state.status, script.status, rebound.status],
            [400, 403, 421]
        );
        let answer = exchange(&url, "GET", "", "").await;
        exchange(
            &Url::parse(&answer.location.unwrap()).unwrap(),
            "GET",
            "",
            "",
        )
        .await
    };
    let (finished, seen) = tokio::join!(login.finish(PATIENCE), browser);
    finished.unwrap();
    assert_eq!(seen.status, 200);
}

#[tokio::test]
async fn the_port_can_be_fixed() {
    let bench = Bench::new(Behaviour::default());
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    let error = bench.oauth().begin_login("s", port).await.unwrap_err();
    assert!(
        error.to_string().contains(&format!("127.0.0.1:{port}")),
        "{error}"
    );
    drop(free);
    let login = bench.oauth().begin_login("s", port).await.unwrap();
    assert_eq!(
        parameter(login.url(), "redirect_uri"),
        format!("http://127.0.0.1:{port}/callback")
    );
}

#[rstest]
#[case(None)]
#[case(Some("hush"))]
#[tokio::test]
async fn nothing_is_discovered_in_manual_mode(#[case] secret: Option<&str>) {
    let bench = Bench::new(Behaviour::default());
    bench.server.add_client("mine", secret);
    let url = bench.server.url();
    let manual = json!({"oauth": "manual", "oauth_config": {
        "client_id": "mine",
        "client_secret": secret,
        "auth_url": format!("{url}/authorize"),
        "token_url": format!("{url}/token"),
        "scopes": ["read", "write"],
    }});
    let oauth = bench.oauth_with(&manual);
    let login = oauth.begin_login("s", 0).await.unwrap();
    assert_eq!(parameter(login.url(), "scope"), "read write");
    consent(login).await.unwrap();
    let token = bench.token(&oauth).await.unwrap().unwrap();
    assert_eq!(bench.call(&token).await, 200);

    bench.pass(4000);
    let renewed = bench.token(&oauth).await.unwrap().unwrap();
    assert_ne!(renewed, token);
    let hits = bench.server.hits();
    assert!(hits.iter().all(|hit| !hit.path.contains("well-known")));

    // The same server with another token endpoint: the refresh token stays here.
    bench.pass(4000);
    let mut evil = manual;
    evil["oauth_config"]["token_url"] = json!("http://127.0.0.1:1/token");
    let error = bench.token(&bench.oauth_with(&evil)).await.unwrap_err();
    assert!(matches!(error, AuthError::NeedsLogin { .. }), "{error}");
}

#[tokio::test]
async fn in_manual_mode_the_answer_comes_from_where_it_was_asked() {
    let bench = Bench::new(Behaviour {
        issuer: Issuer::OtherInAnswer,
        ..Behaviour::default()
    });
    bench.server.add_client("mine", None);
    let url = bench.server.url();
    let oauth = bench.oauth_with(&json!({"oauth": "manual", "oauth_config": {
        "client_id": "mine",
        "auth_url": format!("{url}/authorize"),
        "token_url": format!("{url}/token"),
    }}));
    let login = oauth.begin_login("s", 0).await.unwrap();
    let error = consent(login).await.unwrap_err().to_string();
    assert!(error.contains("another issuer"), "{error}");
}

#[tokio::test]
async fn a_login_can_be_forgotten() {
    let bench = Bench::new(Behaviour::default());
    bench.log_in().await;
    let oauth = bench.oauth();
    assert!(bench.token(&oauth).await.unwrap().is_some());
    assert!(oauth.logout("s").await.unwrap());
    assert!(!oauth.logout("s").await.unwrap());
    assert_eq!(bench.token(&oauth).await.unwrap(), None);
    let error = bench.refused(&oauth).await.unwrap_err();
    assert!(error.to_string().contains("caliban mcp login s"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn tokens_that_others_can_read_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new(Behaviour::default());
    bench.log_in().await;
    let mode = std::fs::metadata(bench.tokens())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let open = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(bench.tokens(), open).unwrap();
    let error = bench.token(&bench.oauth()).await.unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
}
