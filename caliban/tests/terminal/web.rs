//! `/web`: the session goes on in a page.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use caliban_testkit::terminal::Terminal;
use caliban_testkit::{Block, Prose, Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};

use crate::person::{Person, say, until_done};

/// The server that a page belongs to, as other programs of the user's reach it.
struct Door {
    address: String,
    token: String,
}

impl Door {
    #[track_caller]
    fn of(person: &Person, terminal: &Terminal) -> Self {
        let screen = terminal.until(|screen| screen.contains("open http://127.0.0.1:"));
        let text = screen.text();
        let (_, rest) = text.split_once("open http://").unwrap();
        let (address, _) = rest.split_once('/').unwrap();
        let (_, port) = address.split_once(':').unwrap();
        let file = person.kept(&format!("{port}.json")).unwrap();
        let known: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        Self {
            address: address.to_owned(),
            token: known["token"].as_str().unwrap().to_owned(),
        }
    }

    fn ask(&self, request: &str, body: Option<&Value>) -> Value {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{request} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len(),
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
    }
}

#[rstest]
#[case::screen(&[], "session: ")]
#[case::lines(&["--screen-reader"], "/quit leaves.")]
fn a_session_goes_on_in_the_page(#[case] args: &[&str], #[case] ready: &str) {
    let script = Script::new([Reply::text("First answer."), Reply::text("Second answer.")]);
    let person = Person::scripted(script).sized(160, 40);
    let terminal = person.start(args);
    terminal.until_text(ready);
    say(&terminal, "first");
    until_done(&terminal, "First answer.");
    terminal.until_quiet();
    say(&terminal, "/web");
    let door = Door::of(&person, &terminal);
    let tabs = door.ask("GET /v1/sessions", None);
    let tab = tabs["sessions"][0]["tab"].as_str().unwrap().to_owned();
    assert_eq!(tabs["sessions"].as_array().unwrap().len(), 1, "{tabs}");
    let path = format!("/v1/sessions/{tab}");
    let messages = door.ask(&format!("GET {path}/messages"), None).to_string();
    assert!(messages.contains("First answer."), "{messages}");
    let prompt = json!({"request_id": "p1", "content": "second"});
    door.ask(&format!("POST {path}/prompts?wait=true"), Some(&prompt));
    person.server.wait_for_requests(2);
    let told = person.told();
    let told = told.last().unwrap()["messages"].to_string();
    assert!(
        told.contains("First answer.") && told.contains("second"),
        "{told}"
    );
    terminal.key("ctrl+c");
    assert_eq!(terminal.wait().code, Some(0));
}

#[test]
fn nothing_is_left_behind_for_a_page() {
    let held = Reply::default()
        .block(Block::Text(Prose::Pieces(vec!["endless".to_owned()])))
        .hold_after(4);
    let person = Person::new([held]).sized(120, 30);
    let terminal = person.sit_down();
    say(&terminal, "please");
    terminal.until_text("endless");
    say(&terminal, "/web");
    terminal.until_text("Work goes on here");
    terminal.key("ctrl+d");
    drop(terminal);

    let person = Person::answered("Said.").sized(120, 30).arg("--no-save");
    let terminal = person.sit_down();
    say(&terminal, "please");
    until_done(&terminal, "Said.");
    say(&terminal, "/web");
    terminal.until_text("The session is not saved");
    crate::person::leave(terminal);
}
