//! Encrypted connections.

use std::path::PathBuf;
use std::process::Command;

use caliban_testkit::Script;

use crate::support::{Bench, Wire, run};

/// A certificate for 127.0.0.1 and its key; nothing where there is no openssl.
fn certificate(bench: &Bench) -> Option<(PathBuf, PathBuf)> {
    let place = bench.home.path();
    let (certificate, key) = (place.join("cert.pem"), place.join("key.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt"])
        .args(["ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext"])
        .args(["subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output();
    let Ok(made) = made else {
        eprintln!("skipped: there is no openssl");
        return None;
    };
    assert!(made.status.success(), "{made:?}");
    Some((certificate, key))
}

#[test]
fn connections_are_encrypted_with_the_given_certificate() {
    let bench = Bench::new(Wire::Anthropic, Script::new([]));
    let Some((certificate, key)) = certificate(&bench) else {
        return;
    };
    let http = super::Http::start_as(
        &bench,
        &[
            "--tls-cert",
            certificate.to_str().unwrap(),
            "--tls-key",
            key.to_str().unwrap(),
        ],
        "https",
    );
    let curl = |extra: &[&str], path: &str| {
        let answer = Command::new("curl")
            .args([
                "--silent",
                "--max-time",
                "20",
                "--noproxy",
                "*",
                "--include",
            ])
            .args(extra)
            .arg(format!("https://127.0.0.1:{}{path}", http.port))
            .output();
        answer.map(|it| String::from_utf8_lossy(&it.stdout).into_owned())
    };
    let trusted = ["--cacert", certificate.to_str().unwrap()];
    let bearer = format!("authorization: Bearer {}", http.token);
    let known = [&trusted[..], &["--header", &bearer]].concat();
    assert!(curl(&known, "/v1/sessions").unwrap().contains(" 200"));
    assert!(curl(&trusted, "/v1/sessions").unwrap().contains(" 401"));
    // A certificate that nobody vouches for is not trusted, and plain text is not understood.
    assert_eq!(curl(&[], "/").unwrap(), "");
    let plain = std::net::TcpStream::connect(("127.0.0.1", http.port)).unwrap();
    let request = super::Exchange::new(plain, "GET", "/").header("host", "x");
    assert!(!request.gets_an_answer());
    // Pages are ours by their scheme too, and the cookie stays on encrypted connections.
    let origin = |scheme: &str| format!("origin: {scheme}://127.0.0.1:{}", http.port);
    let (own, other) = (origin("https"), origin("http"));
    let with = |origin: &str| {
        curl(
            &[&known[..], &["--header", origin]].concat(),
            "/v1/sessions",
        )
    };
    assert!(with(&own).unwrap().contains(" 200"));
    assert!(with(&other).unwrap().contains(" 403"));
    let login = format!("{{\"token\":\"{}\"}}", http.token);
    let json = [
        "--header",
        "content-type: application/json",
        "--data",
        &login,
    ];
    let login = curl(&[&trusted[..], &json].concat(), "/v1/login").unwrap();
    assert!(login.contains("Secure"), "{login}");
    http.stop();
}

#[test]
fn a_certificate_that_cannot_be_used_is_said_at_the_start() {
    let bench = Bench::new(Wire::Anthropic, Script::new([]));
    let serve = |flags: &[&str]| {
        let listen = ["serve", "--listen", "127.0.0.1:0"];
        run(bench.command().args(listen).args(flags))
    };
    let alone = serve(&["--tls-cert", "a.pem"]);
    assert_eq!(alone.code, Some(64), "{alone:?}");
    let missing = serve(&["--tls-cert", "a.pem", "--tls-key", "b.pem"]);
    assert_eq!(missing.code, Some(64), "{missing:?}");
    assert!(missing.stderr.contains("a.pem"), "{missing:?}");
    std::fs::write(bench.workspace.path().join("a.pem"), "nothing").unwrap();
    let empty = serve(&["--tls-cert", "a.pem", "--tls-key", "b.pem"]);
    assert!(empty.stderr.contains("no certificate"), "{empty:?}");
}
