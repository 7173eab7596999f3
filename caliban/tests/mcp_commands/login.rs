//! Logging in and out, with a test in the place of the browser.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Child;

use caliban_testkit::oauth::{AuthServer, Behaviour, Issuer};
use serde_json::Value;

use crate::servers::Place;
use crate::support::{Ran, finish};

fn place(server: &AuthServer) -> Place {
    let place = Place::new();
    place.done(&["add", "s", &server.mcp_url(), "--oauth", "auto"]);
    place
}

/// Plays the browser for a login that was started, and gives what it printed.
fn browse(mut child: Child) -> Ran {
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    let url = loop {
        let mut line = String::new();
        if lines.read_line(&mut line).unwrap() == 0 {
            let ran = finish(child);
            panic!("no address: {printed}{}", ran.stderr);
        }
        printed.push_str(&line);
        if line.starts_with("http") {
            break line.trim().to_owned();
        }
    };
    let location = get(&url).expect("a redirect");
    assert!(location.starts_with("http://127.0.0.1:"), "{location}");
    get(&location);
    lines.read_to_string(&mut printed).unwrap();
    let mut ran = finish(child);
    ran.stdout = printed;
    ran
}

/// The address that a plain address redirects to.
fn get(url: &str) -> Option<String> {
    let (host, path) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let address: SocketAddr = host.parse().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
        .lines()
        .find_map(|line| line.strip_prefix("Location: "))
        .map(str::to_owned)
}

fn log_in(place: &Place) -> Ran {
    browse(
        place
            .command(&["login", "s", "--no-browser"])
            .spawn()
            .unwrap(),
    )
}

fn status(place: &Place) -> Value {
    let text = place.done(&["status", "--json"]);
    serde_json::from_str::<Value>(&text).unwrap()[0].clone()
}

#[test]
fn a_login_is_kept_until_it_is_forgotten() {
    let server = AuthServer::start().unwrap();
    let place = place(&server);
    assert_eq!(status(&place)["status"], "needs-auth");
    assert_eq!(status(&place)["remedy"], "caliban mcp login s");

    let ran = log_in(&place);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("logged in to `s`"), "{}", ran.stdout);
    assert_eq!(status(&place)["status"], "connected");
    assert_eq!(status(&place)["logged_in"], true);
    assert!(status(&place)["expires_at"].is_string());
    assert!(place.done(&["status"]).starts_with("● s  http"));
    let tokens = place
        .home
        .path()
        .join(".local/share/caliban/mcp-tokens.json");
    let text = fs::read_to_string(&tokens).unwrap();
    assert!(
        text.contains("access-") && text.contains("refresh-"),
        "{text}"
    );
    for part in ["access-", "refresh-"] {
        assert!(!ran.stdout.contains(part) && !ran.stderr.contains(part));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&tokens).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::set_permissions(&tokens, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(status(&place)["login_problem"].is_string());
        let ran = place.mcp(&["logout", "s"]);
        assert!(ran.stderr.contains("chmod 600"), "{}", ran.stderr);
        fs::set_permissions(&tokens, fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert!(place.done(&["logout", "s"]).contains("logged out"));
    assert!(!fs::read_to_string(&tokens).unwrap().contains("access-"));
    assert!(place.done(&["logout", "s"]).contains("nobody was"));
    assert_eq!(status(&place)["status"], "needs-auth");
}

#[test]
fn removing_a_server_forgets_its_login() {
    let server = AuthServer::start().unwrap();
    let place = place(&server);
    assert_eq!(log_in(&place).code, Some(0));
    place.done(&["remove", "s"]);
    let tokens = place
        .home
        .path()
        .join(".local/share/caliban/mcp-tokens.json");
    assert!(!fs::read_to_string(&tokens).unwrap().contains("access-"));
}

#[test]
fn a_mix_up_ends_the_login() {
    let server = AuthServer::with(Behaviour {
        issuer: Issuer::OtherInAnswer,
        ..Behaviour::default()
    })
    .unwrap();
    let ran = log_in(&place(&server));
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("issuer"), "{}", ran.stderr);
}

#[test]
fn the_port_can_be_fixed_by_flag_and_variable() {
    let server = AuthServer::start().unwrap();
    let place = place(&server);
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
        .to_string();
    let mut flag = place.command(&["login", "s", "--mcp-oauth-port", &port]);
    let mut variable = place.command(&["login", "s"]);
    variable.env("CALIBAN_MCP_OAUTH_PORT", &port);
    for command in [&mut flag, &mut variable] {
        let ran = browse(command.spawn().unwrap());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let back = format!("redirect_uri=http%3A%2F%2F127.0.0.1%3A{port}%2Fcallback");
        assert!(ran.stdout.contains(&back), "{}", ran.stdout);
    }
}

#[test]
fn not_every_server_has_a_login() {
    let place = Place::new();
    place.done(&["add", "plain", "https://a.example/mcp"]);
    let ran = place.mcp(&["login", "plain"]);
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(ran.stderr.contains("oauth = \"auto\""), "{}", ran.stderr);
    assert_eq!(place.mcp(&["login", "none"]).code, Some(78));
    assert_eq!(place.mcp(&["approve", "none"]).code, Some(78));
    assert_eq!(place.mcp(&["approve", "plain"]).code, Some(1));
}

#[cfg(feature = "keyring")]
#[test]
fn a_login_goes_to_the_secret_store_where_there_is_one() {
    use std::process::{Command, Stdio};

    let programs = ["dbus-run-session", "gnome-keyring-daemon", "secret-tool"];
    let path = std::env::var_os("PATH").unwrap();
    let installed =
        |program: &&str| std::env::split_paths(&path).any(|place| place.join(program).is_file());
    if !programs.iter().all(installed) {
        eprintln!("skipped: no secret store here; run `cargo xtask test`");
        return;
    }
    let server = AuthServer::start().unwrap();
    let place = place(&server);
    let script = format!(
        "printf pw | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1\n\
         '{0}' mcp login s --no-browser\n\
         '{0}' mcp status\n\
         secret-tool lookup service caliban username 'mcp:s:{1}' | grep -c refresh-\n\
         '{0}' mcp logout s\n\
         '{0}' mcp status",
        env!("CARGO_BIN_EXE_caliban"),
        server.mcp_url()
    );
    let mut command = Command::new("dbus-run-session");
    command
        .args(["--", "sh", "-c", &script])
        .env_clear()
        .env("PATH", &path)
        .env("HOME", place.home.path())
        .env("XDG_RUNTIME_DIR", place.home.path())
        .current_dir(place.workspace.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ran = browse(command.spawn().unwrap());
    let said: Vec<&str> = ran.stdout.lines().collect();
    let [.., logged_in, status, found, logged_out, after] = said.as_slice() else {
        panic!("{ran:?}");
    };
    assert!(logged_in.starts_with("logged in"), "{ran:?}");
    assert!(status.contains("logged in"), "{ran:?}");
    assert_eq!(*found, "1", "{ran:?}");
    assert!(logged_out.starts_with("logged out"), "{ran:?}");
    assert!(after.contains("needs a login"), "{ran:?}");
    let tokens = place
        .home
        .path()
        .join(".local/share/caliban/mcp-tokens.json");
    assert!(!tokens.exists());
}
