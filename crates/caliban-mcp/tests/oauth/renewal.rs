//! Tokens that end, and sessions that share them.

use std::time::Duration;

use caliban_mcp::authorization::{AuthError, Authorization};
use caliban_mcp::oauth::LoginState;
use caliban_testkit::oauth::{Behaviour, Rotation};

use crate::support::{Bench, consent};

fn refreshes(bench: &Bench) -> usize {
    bench.server.token_requests("refresh_token").len()
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    let bench = Bench::new(Behaviour::default());
    bench.log_in().await;
    let oauth = bench.oauth();
    let first = bench.token(&oauth).await.unwrap();
    bench.pass(3500);
    assert_eq!(bench.token(&oauth).await.unwrap(), first);
    assert_eq!(refreshes(&bench), 0);
    bench.pass(50);
    let second = bench.token(&oauth).await.unwrap();
    assert_ne!(second, first);
    assert_eq!(refreshes(&bench), 1);
    assert_eq!(bench.call(&second.unwrap()).await, 200);
    let sent = &bench.server.token_requests("refresh_token")[0];
    assert_eq!(
        sent.parameter("resource"),
        Some(bench.server.mcp_url().as_str())
    );

    bench.pass(100_000);
    let state = bench.oauth().state("s").await.unwrap();
    assert_eq!(state, Some(LoginState::Renewable));
    let third = bench.token(&bench.oauth()).await.unwrap().unwrap();
    assert_eq!(bench.call(&third).await, 200, "the rotated token was kept");
}

#[tokio::test]
async fn a_refused_token_is_renewed_once() {
    let bench = Bench::new(Behaviour::default());
    bench.log_in().await;
    let oauth = bench.oauth();
    let first = bench.token(&oauth).await.unwrap().unwrap();
    bench.server.revoke_access_tokens();
    assert_eq!(bench.call(&first).await, 401);
    let second = bench.refused(&oauth).await.unwrap().unwrap();
    assert_eq!(bench.call(&second).await, 200);
    assert_eq!(bench.token(&oauth).await.unwrap(), Some(second));
}

#[tokio::test]
async fn a_session_takes_over_what_another_renewed() {
    let bench = Bench::new(Behaviour::default());
    bench.log_in().await;
    let (one, other) = (bench.oauth(), bench.oauth());
    let first = bench.token(&one).await.unwrap();
    assert_eq!(bench.token(&other).await.unwrap(), first);
    bench.server.revoke_access_tokens();
    let second = bench.refused(&one).await.unwrap();
    assert_eq!(bench.refused(&other).await.unwrap(), second);
    assert_eq!(refreshes(&bench), 1);
}

#[tokio::test]
async fn a_login_elsewhere_serves_a_running_session() {
    let bench = Bench::new(Behaviour::default());
    let running = bench.oauth();
    assert_eq!(bench.token(&running).await.unwrap(), None);
    assert!(bench.refused(&running).await.is_err());
    bench.log_in().await;
    assert!(bench.token(&running).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_sessions_use_no_refresh_token_twice() {
    let bench = Bench::new(Behaviour {
        token_delay: Duration::from_millis(50),
        ..Behaviour::default()
    });
    bench.log_in().await;
    for round in 1..=3 {
        bench.pass(3600);
        let sessions = (0..6).map(|_| bench.oauth());
        let url = bench.url();
        let tasks: Vec<_> = sessions
            .map(|oauth| {
                let url = url.clone();
                tokio::spawn(async move { oauth.token("s", &url).await })
            })
            .collect();
        let mut tokens = Vec::new();
        for task in tasks {
            tokens.push(task.await.unwrap().unwrap().unwrap());
        }
        tokens.dedup();
        assert_eq!(tokens.len(), 1, "all have the same token");
        assert_eq!(bench.server.replays(), 0);
        assert_eq!(refreshes(&bench), round);
    }
}

#[tokio::test]
async fn a_caller_that_leaves_loses_no_refresh_token() {
    let bench = Bench::new(Behaviour {
        token_delay: Duration::from_millis(50),
        ..Behaviour::default()
    });
    bench.log_in().await;
    bench.pass(3600);
    let oauth = bench.oauth();
    let url = bench.url();
    let impatient = async {
        while refreshes(&bench) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = impatient => {}
        result = oauth.token("s", &url) => panic!("{result:?}"),
    }
    let token = bench.token(&oauth).await.unwrap().unwrap();
    assert_eq!(bench.call(&token).await, 200);
    assert_eq!((refreshes(&bench), bench.server.replays()), (1, 0));
}

#[tokio::test]
async fn a_rejected_refresh_token_asks_for_a_login() {
    let bench = Bench::new(Behaviour::default());
    bench.log_in().await;
    let oauth = bench.oauth();
    bench.server.revoke_refresh_tokens();
    bench.pass(3600);
    for _ in 0..2 {
        let error = bench.token(&oauth).await.unwrap_err();
        assert!(matches!(error, AuthError::NeedsLogin { .. }), "{error}");
        assert!(error.to_string().contains("caliban mcp login s"));
    }
    assert_eq!(refreshes(&bench), 1, "it is not tried again");
    let state = bench.oauth().state("s").await.unwrap();
    assert_eq!(state, Some(LoginState::Ended));
    bench.log_in().await;
    assert!(bench.token(&oauth).await.unwrap().is_some());
}

#[tokio::test]
async fn a_server_in_trouble_ends_no_login() {
    let bench = Bench::new(Behaviour::default());
    bench.log_in().await;
    let oauth = bench.oauth();
    bench
        .server
        .change(|behaviour| behaviour.token_failure = Some(503));
    bench.pass(3550);
    let ripe = bench.token(&oauth).await.unwrap();
    assert!(ripe.is_some(), "the former token holds for another while");
    bench.pass(100);
    let error = bench.token(&oauth).await.unwrap_err();
    assert!(matches!(error, AuthError::Renewal { .. }), "{error}");
    bench
        .server
        .change(|behaviour| behaviour.token_failure = None);
    assert!(bench.token(&oauth).await.unwrap().is_some());
}

#[tokio::test]
async fn not_every_server_has_refresh_tokens() {
    let bench = Bench::new(Behaviour {
        rotation: Rotation::NoRefreshTokens,
        ..Behaviour::default()
    });
    bench.log_in().await;
    let oauth = bench.oauth();
    bench.pass(3590);
    assert!(bench.token(&oauth).await.unwrap().is_some());
    bench.pass(10);
    let error = bench.token(&oauth).await.unwrap_err();
    assert!(error.to_string().contains("expired"), "{error}");
    let state = bench.oauth().state("s").await.unwrap();
    assert_eq!(state, Some(LoginState::Ended));
}

#[tokio::test]
async fn a_refresh_token_that_is_not_replaced_is_kept() {
    let bench = Bench::new(Behaviour {
        rotation: Rotation::Keep,
        ..Behaviour::default()
    });
    bench.log_in().await;
    for _ in 0..3 {
        bench.pass(3600);
        let token = bench.token(&bench.oauth()).await.unwrap().unwrap();
        assert_eq!(bench.call(&token).await, 200);
    }
}

#[tokio::test]
async fn what_a_server_misses_is_asked_for_at_the_next_login() {
    let bench = Bench::new(Behaviour {
        required_scope: Some("admin".to_owned()),
        ..Behaviour::default()
    });
    bench.log_in().await;
    let oauth = bench.oauth();
    let token = bench.token(&oauth).await.unwrap().unwrap();
    assert_eq!(bench.call(&token).await, 403);
    let header = r#"Bearer error="insufficient_scope", scope="admin""#;
    let refused = oauth.refused("s", &bench.url(), Some(header)).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("`admin`"), "{error}");
    assert_eq!(oauth.state("s").await.unwrap(), Some(LoginState::Ended));
    let login = oauth.begin_login("s", 0).await.unwrap();
    let outcome = consent(login).await.unwrap();
    assert!(outcome.scopes.contains(&"admin".to_owned()));
    for session in [oauth, bench.oauth()] {
        let token = bench.token(&session).await.unwrap().unwrap();
        assert_eq!(bench.call(&token).await, 200);
    }
}
