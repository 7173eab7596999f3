//! Real programs find the proxy by its variables and get through it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use caliban_egress::{Protocol, Refusal, Verdict, environment};
use rstest::rstest;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::process::Command;

use crate::support::{Bench, Setup, leading_to, refused};

/// Paths and what lies there.
type Files = BTreeMap<String, Vec<u8>>;

fn tls() -> Arc<rustls::ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificate = CertificateDer::from_pem_slice(include_bytes!("good.example.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("good.example.key")).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    Arc::new(config)
}

/// An origin that serves files, one request for each connection. It ends with the test's process.
fn serve(files: Files, config: Option<Arc<rustls::ServerConfig>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            // A client that breaks off has what it wanted.
            let _ = match &config {
                None => answer(stream, &files),
                Some(config) => {
                    let session = rustls::ServerConnection::new(config.clone()).unwrap();
                    answer(rustls::StreamOwned::new(session, stream), &files)
                }
            };
        }
    });
    address
}

fn answer(mut stream: impl Read + Write, files: &Files) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head);
    let address = head.split(' ').nth(1).unwrap_or_default();
    let path = address.split('?').next().unwrap_or_default();
    let (status, body) = match files.get(path) {
        // A redirect to where nobody may go.
        Some(body) if path.ends_with("/away") => (
            format!("302 Found\r\nLocation: {}", String::from_utf8_lossy(body)),
            Vec::new(),
        ),
        Some(body) => ("200 OK".to_owned(), body.clone()),
        None => ("404 Not Found".to_owned(), Vec::new()),
    };
    let kind = if path.ends_with('/') {
        "text/html"
    } else {
        "application/octet-stream"
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)?;
    stream.flush()
}

fn files(list: &[(&str, &[u8])]) -> Files {
    list.iter()
        .map(|(path, body)| ((*path).to_owned(), body.to_vec()))
        .collect()
}

async fn bench(origin: SocketAddr) -> Bench {
    let setup = Setup {
        world: leading_to(origin),
        ..Setup::allowing(&["good.example"])
    };
    setup.serve().await
}

/// A program in the surroundings of a sandbox, with a home of its own.
fn program(name: &str, home: &Path, port: u16) -> Command {
    let mut command = Command::new(name);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .envs(environment(port))
        .current_dir(home)
        .kill_on_drop(true);
    // Where programs are chosen by shims, those need to find themselves.
    for name in ["PYENV_ROOT", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

async fn run(command: &mut Command) -> Output {
    command.output().await.unwrap()
}

/// Whether a program is there; a test of one that is not says so and passes.
async fn is_there(name: &str) -> bool {
    let found = Command::new(name).arg("--version").output().await;
    let is_there = found.is_ok_and(|output| output.status.success());
    if !is_there {
        println!("skipped: {name} is not installed");
    }
    is_there
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[rstest]
#[case::by_variables(&[], Protocol::Http)]
#[case::tunnel(&["--proxytunnel"], Protocol::Connect)]
#[case::socks(&["--socks5-hostname"], Protocol::Socks)]
#[tokio::test]
async fn curl_in_every_protocol(#[case] flags: &[&str], #[case] protocol: Protocol) {
    let home = tempfile::tempdir().unwrap();
    let mut bench = bench(serve(files(&[("/x", b"hi")]), None)).await;
    let mut curl = program("curl", home.path(), bench.port);
    curl.args(["-qsS", "http://good.example/x"]).args(flags);
    if protocol == Protocol::Socks {
        curl.arg(format!("127.0.0.1:{}", bench.port));
    }
    let output = run(&mut curl).await;
    assert_eq!(text(&output.stdout), "hi", "{output:?}");
    let told = bench.told().await;
    assert_eq!(
        (told.protocol, told.verdict),
        (Some(protocol), Verdict::Passed)
    );
}

#[rstest]
#[case::by_variables(None)]
#[case::socks(Some("socks5h"))]
#[tokio::test]
async fn curl_with_tls(#[case] scheme: Option<&str>) {
    let home = tempfile::tempdir().unwrap();
    let certificate = home.path().join("good.pem");
    std::fs::write(&certificate, include_bytes!("good.example.pem")).unwrap();
    let mut bench = bench(serve(files(&[("/x", b"hi")]), Some(tls()))).await;
    let mut curl = program("curl", home.path(), bench.port);
    curl.args(["-qsS", "https://good.example/x", "--cacert"])
        .arg(&certificate);
    if let Some(scheme) = scheme {
        curl.arg("--proxy")
            .arg(format!("{scheme}://127.0.0.1:{}", bench.port));
    }
    let output = run(&mut curl).await;
    assert_eq!(text(&output.stdout), "hi", "{output:?}");
    assert_eq!(bench.told().await.verdict, Verdict::Passed);
}

/// A client that opens a tunnel to one host and speaks TLS to another behind it.
#[tokio::test]
async fn curl_that_fronts_is_shown_why() {
    let home = tempfile::tempdir().unwrap();
    let mut bench = bench(serve(files(&[("/x", b"hi")]), Some(tls()))).await;
    let mut curl = program("curl", home.path(), bench.port);
    curl.args(["-qsSk", "https://evil.example/x"])
        .args(["--connect-to", "evil.example:443:good.example:443"]);
    let output = run(&mut curl).await;
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("access denied"), "{output:?}");
    assert!(matches!(refused(&bench.told().await), Refusal::Hello(_)));
}

#[tokio::test]
async fn curl_is_told_what_to_add() {
    let home = tempfile::tempdir().unwrap();
    let mut bench = bench(serve(Files::new(), None)).await;
    let mut curl = program("curl", home.path(), bench.port);
    let output = run(curl.args(["-qsS", "http://evil.example/"])).await;
    assert_eq!(
        text(&output.stdout),
        "caliban: `evil.example:80` is not in `sandbox.network.allowed_domains`; add \"evil.example\" there to allow it\n"
    );
    let mut curl = program("curl", home.path(), bench.port);
    let output = run(curl.args(["-qsSv", "https://evil.example/"])).await;
    assert!(
        text(&output.stderr)
            .contains("403 evil.example:443 is not in sandbox.network.allowed_domains"),
        "{output:?}"
    );
    for _ in 0..2 {
        assert_eq!(refused(&bench.told().await), &Refusal::Unlisted);
    }
    assert_eq!(bench.world.lookups(), [""; 0]);
}

#[rstest]
#[case("http://127.0.0.2/secret")]
#[case("http://169.254.169.254/latest/")]
#[case("http://evil.example/")]
#[tokio::test]
async fn a_redirect_is_judged_like_any_request(#[case] location: &str) {
    let home = tempfile::tempdir().unwrap();
    let mut bench = bench(serve(files(&[("/away", location.as_bytes())]), None)).await;
    let mut curl = program("curl", home.path(), bench.port);
    let output = run(curl.args(["-qsSL", "http://good.example/away"])).await;
    assert!(text(&output.stdout).starts_with("caliban: `"), "{output:?}");
    // The first is told when its connection ends, which may be after the second was refused.
    let told = [bench.told().await, bench.told().await];
    let passed = told.iter().filter(|it| it.verdict == Verdict::Passed);
    assert_eq!(passed.count(), 1);
    for other in told.iter().filter(|it| it.verdict != Verdict::Passed) {
        refused(other);
    }
    assert_eq!(bench.world.connects(), ["93.184.216.34:80"]);
}

#[tokio::test]
async fn curl_sends_bodies_of_both_kinds() {
    let home = tempfile::tempdir().unwrap();
    let body = home.path().join("body");
    std::fs::write(&body, vec![b'x'; 200_000]).unwrap();
    let bench = bench(serve(files(&[("/x", b"hi")]), None)).await;
    for flags in [&["-H", "Transfer-Encoding: chunked"][..], &[]] {
        let mut curl = program("curl", home.path(), bench.port);
        curl.args([
            "-qsS",
            "http://good.example/x",
            "-H",
            "Expect:",
            "--data-binary",
        ])
        .arg(format!("@{}", body.display()))
        .args(flags);
        let output = run(&mut curl).await;
        assert_eq!(text(&output.stdout), "hi", "{output:?}");
    }
}

#[tokio::test]
async fn git_clones_over_http() {
    let home = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git")
            .args(arguments)
            .args(["--quiet"])
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs([("GIT_AUTHOR_NAME", "t"), ("GIT_AUTHOR_EMAIL", "t@t")])
            .envs([("GIT_COMMITTER_NAME", "t"), ("GIT_COMMITTER_EMAIL", "t@t")])
            .current_dir(home.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "work"]);
    git(&["-C", "work", "commit", "--allow-empty", "-m", "first"]);
    git(&["clone", "--bare", "work", "bare.git"]);
    let update = std::process::Command::new("git")
        .args(["-C", "bare.git", "update-server-info"])
        .current_dir(home.path())
        .status();
    assert!(update.unwrap().success());
    let mut files = Files::new();
    let root = home.path().join("bare.git");
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&root).unwrap().display();
            files.insert(format!("/repo.git/{name}"), std::fs::read(&path).unwrap());
        }
    }
    let bench = bench(serve(files, None)).await;
    let mut clone = program("git", home.path(), bench.port);
    let output = run(clone.args(["clone", "http://good.example/repo.git", "copy"])).await;
    assert!(output.status.success(), "{output:?}");
    let mut clone = program("git", home.path(), bench.port);
    let output = run(clone.args(["clone", "http://evil.example/repo.git", "other"])).await;
    assert!(text(&output.stderr).contains("403"), "{output:?}");
    let told = bench.close().await;
    let passed = told.iter().filter(|told| told.verdict == Verdict::Passed);
    assert!(passed.count() >= 3);
    assert_eq!(refused(told.last().unwrap()), &Refusal::Unlisted);
}

#[tokio::test]
async fn pip_downloads() {
    if !is_there("pip").await {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let script = "import sys, zipfile
with zipfile.ZipFile('demo-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('demo.py', '')
    wheel.writestr('demo-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n')
    wheel.writestr('demo-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('demo-1.0.dist-info/RECORD', '')";
    let output = run(program("python3", home.path(), 1).args(["-c", script])).await;
    assert!(output.status.success(), "{output:?}");
    let wheel = std::fs::read(home.path().join("demo-1.0-py3-none-any.whl")).unwrap();
    let index = b"<a href=\"/demo-1.0-py3-none-any.whl\">demo-1.0-py3-none-any.whl</a>";
    let origin = serve(
        files(&[
            ("/simple/demo/", index),
            ("/demo-1.0-py3-none-any.whl", &wheel),
        ]),
        None,
    );
    let bench = bench(origin).await;
    let mut pip = program("pip", home.path(), bench.port);
    pip.args([
        "download",
        "--no-deps",
        "--no-cache-dir",
        "--retries=0",
        "--disable-pip-version-check",
        "--dest=got",
    ])
    .args([
        "--trusted-host=good.example",
        "--index-url=http://good.example/simple",
        "demo",
    ]);
    let output = run(&mut pip).await;
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        std::fs::read(home.path().join("got/demo-1.0-py3-none-any.whl")).unwrap(),
        wheel
    );
    let mut pip = program("pip", home.path(), bench.port);
    pip.args([
        "download",
        "--no-deps",
        "--no-cache-dir",
        "--retries=1",
        "--disable-pip-version-check",
    ])
    .args(["--index-url=https://evil.example/simple", "demo"]);
    let output = run(&mut pip).await;
    assert!(
        text(&output.stderr).contains("evil.example:443 is not in sandbox.network.allowed_domains"),
        "{output:?}"
    );
}

#[tokio::test]
async fn npm_views() {
    if !is_there("npm").await {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let package = br#"{"name":"demo","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"demo","version":"1.0.0","dist":{"tarball":"http://good.example/demo.tgz"}}}}"#;
    let bench = bench(serve(files(&[("/demo", package)]), None)).await;
    let mut npm = program("npm", home.path(), bench.port);
    npm.args([
        "view",
        "demo",
        "dist.tarball",
        "--registry=http://good.example/",
    ])
    .args(["--fetch-retries=0", "--no-update-notifier"]);
    let output = run(&mut npm).await;
    assert_eq!(
        text(&output.stdout).trim(),
        "http://good.example/demo.tgz",
        "{output:?}"
    );
}

#[tokio::test]
async fn cargo_reads_an_index() {
    let home = tempfile::tempdir().unwrap();
    let index = r#"{"name":"demo","vers":"1.0.0","deps":[],"cksum":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","features":{},"yanked":false}"#;
    let origin = serve(
        files(&[
            ("/index/config.json", br#"{"dl":"http://good.example/dl"}"#),
            ("/index/de/mo/demo", index.as_bytes()),
        ]),
        None,
    );
    let bench = bench(origin).await;
    let manifest = "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\ndemo = { version = \"1\", registry = \"good\" }\n";
    std::fs::create_dir(home.path().join("src")).unwrap();
    std::fs::write(home.path().join("src/lib.rs"), "").unwrap();
    std::fs::write(home.path().join("Cargo.toml"), manifest).unwrap();
    let mut cargo = program(env!("CARGO"), home.path(), bench.port);
    cargo
        .arg("generate-lockfile")
        .env("CARGO_HOME", home.path().join("cargo"))
        .env(
            "CARGO_REGISTRIES_GOOD_INDEX",
            "sparse+http://good.example/index/",
        );
    let output = run(&mut cargo).await;
    assert!(output.status.success(), "{output:?}");
    let lock = std::fs::read_to_string(home.path().join("Cargo.lock")).unwrap();
    assert!(lock.contains("name = \"demo\""), "{lock}");
}
