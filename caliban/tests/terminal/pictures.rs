//! Images in the conversation, drawn in the way that the terminal knows.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caliban_testkit::Reply;
use caliban_testkit::terminal::Terminal;
use rstest::rstest;
use serde_json::json;

use crate::person::{Person, eventually, leave, say, until_done};

/// 40 by 60 dots: red above, blue below.
const PICTURE: &str = "iVBORw0KGgoAAAANSUhEUgAAACgAAAA8CAIAAACb22+3AAAAOklEQVR42u3NMQ0AAAgDsCnBvxRkIYMdTfo3O/MiYrFYLBaLxWKxWCwujp/eFYvFYrFYLBaLxWJxcXwDAYYIH9TUAgAAAABJRU5ErkJggg==";

/// Somebody with a picture in the workspace.
fn person(replies: impl IntoIterator<Item = Reply>) -> Person {
    let person = Person::new(replies);
    let bytes = STANDARD.decode(PICTURE).unwrap();
    fs::write(person.work().join("shot.png"), bytes).unwrap();
    person
}

fn written(terminal: &Terminal) -> String {
    String::from_utf8_lossy(&terminal.raw()).into_owned()
}

#[rstest]
#[case::kitty("kitty", "\x1b_Ga=t,f=100,i=", "a=p,i=")]
#[case::iterm("iterm", "\x1b]1337;File=inline=1", "width=4;height=3:")]
#[case::sixel("sixel", "\x1bP0;1;0q\"1;1;40;60", "#0;2;")]
fn an_image_of_a_prompt_is_drawn(#[case] graphics: &str, #[case] one: &str, #[case] two: &str) {
    let person = person([Reply::text("Red and blue.")]).env("CALIBAN_GRAPHICS", graphics);
    let terminal = person.sit_down();
    say(&terminal, "look @shot.png ");
    let screen = until_done(&terminal, "Red and blue.");
    assert!(
        screen.contains("[image: 40x60 image/png shot.png]"),
        "{}",
        screen.drawn()
    );
    eventually("the picture", || {
        let written = written(&terminal);
        written.contains(one) && written.contains(two)
    });
    leave(terminal);
}

#[test]
fn an_image_of_a_result_is_named_and_goes_away_when_it_is_scrolled() {
    let long: Vec<String> = (1..60).map(|n| format!("- line {n}\n")).collect();
    let person = person([
        Reply::tool("Read", json!({"path": "shot.png"})),
        Reply::text("Seen."),
        Reply::text(long.concat()),
    ]);
    let person = person.env("CALIBAN_GRAPHICS", "kitty");
    let terminal = person.sit_down();
    say(&terminal, "look");
    let screen = until_done(&terminal, "Seen.");
    assert!(
        screen.contains("[image: 40x60 image/png shot.png]"),
        "{}",
        screen.drawn()
    );
    eventually("the picture", || written(&terminal).contains("a=p,i="));
    assert!(!written(&terminal).contains("a=d,d=i"));
    say(&terminal, "more");
    until_done(&terminal, "line 59");
    eventually("it to go", || written(&terminal).contains("a=d,d=i,i="));
    leave(terminal);
}

#[test]
fn an_overlay_lies_above_pictures() {
    let person = person([Reply::text("Red and blue.")]).env("CALIBAN_GRAPHICS", "kitty");
    let terminal = person.sit_down();
    say(&terminal, "look @shot.png ");
    until_done(&terminal, "Red and blue.");
    eventually("the picture", || written(&terminal).contains("a=p,i="));
    terminal.key("f1");
    terminal.until_text("Keys");
    eventually("it to go", || written(&terminal).contains("a=d,d=i,i="));
    terminal.keys("q");
    eventually("it to come back", || {
        written(&terminal).matches("a=p,i=").count() == 2
    });
    assert_eq!(written(&terminal).matches("a=t,f=100").count(), 1);
    leave(terminal);
}

#[rstest]
#[case::unknown(&[])]
#[case::unwanted(&[("CALIBAN_GRAPHICS", "none"), ("TERM", "xterm-kitty")])]
#[case::inside_tmux(&[("CALIBAN_GRAPHICS", "kitty"), ("TMUX", "/tmp/x,1,0"), ("TERM", "tmux-256color")])]
#[case::inline(&[("CALIBAN_GRAPHICS", "kitty"), ("CALIBAN_TUI", "inline")])]
fn elsewhere_there_are_words(#[case] variables: &[(&str, &str)]) {
    let mut person = person([Reply::text("Red and blue.")]);
    for (name, value) in variables {
        person = person.env(name, value);
    }
    let terminal = person.sit_down();
    say(&terminal, "look @shot.png ");
    let screen = until_done(&terminal, "Red and blue.");
    assert!(
        screen.contains("[image: 40x60 image/png"),
        "{}",
        screen.drawn()
    );
    let written = written(&terminal);
    for sequence in ["\x1b_G", "1337;File", "\x1bP0;1;0q"] {
        assert!(!written.contains(sequence), "{sequence:?}");
    }
    leave(terminal);
}

/// How a picture comes into a draft.
#[derive(Debug, Clone, Copy)]
enum Brought {
    /// The clipboard holds it.
    Pasted,
    /// Its file is dropped on the terminal, which writes the path.
    Dropped,
}

impl Brought {
    fn bring(self, terminal: &Terminal, path: &std::path::Path) {
        match self {
            Self::Pasted => terminal.keys("\x16"),
            Self::Dropped => terminal.paste(&path.display().to_string()),
        }
    }
}

#[rstest]
fn nothing_malformed_comes_into_a_draft(
    #[values(Brought::Pasted, Brought::Dropped)] brought: Brought,
) {
    let person = Person::answered("Seen.").program("wl-paste", "cat \"$HOME/shot\"");
    let terminal = person.sit_down();
    for (name, bytes) in crate::malformed::corpus() {
        let path = person.home().join(name);
        fs::write(&path, &bytes).unwrap();
        fs::copy(&path, person.home().join("shot")).unwrap();
        brought.bring(&terminal, &path);
        terminal.until(|screen| {
            let said = ["is damaged", "too many pixels", "is not a png"];
            said.iter().any(|said| screen.contains(said))
        });
        // Something else is said in between, so that the next file says its own.
        fs::write(person.home().join("shot"), "").unwrap();
        terminal.keys("\x16");
        terminal.until_text("The clipboard is empty");
    }
    say(&terminal, "go");
    until_done(&terminal, "Seen.");
    let request = person.server.model_requests().pop().unwrap().json();
    let sent = request["messages"].to_string();
    assert!(
        sent.contains("go") && !sent.contains("base64"),
        "{sent:.500}"
    );
    // A whole one by the same way.
    let path = person.home().join("whole.png");
    fs::write(&path, STANDARD.decode(PICTURE).unwrap()).unwrap();
    fs::copy(&path, person.home().join("shot")).unwrap();
    brought.bring(&terminal, &path);
    terminal.until_text("[Image #1");
    say(&terminal, " and this");
    eventually("the picture", || {
        let requests = person.server.model_requests();
        requests
            .last()
            .is_some_and(|it| it.json()["messages"].to_string().contains("base64"))
    });
    leave(terminal);
}
