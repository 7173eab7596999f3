//! Text that means harm: whatever the model, a tool, a file or a session is called or says, the
//! terminal stays as it is and the question says what will run.

use caliban_testkit::Reply;
use caliban_testkit::terminal::{Modes, Screen, Terminal};
use rstest::rstest;
use serde_json::json;

use crate::person::{LISTENS, Person, leave, say, until_done};

/// What a poisoned page writes; each carries a mark of its own in what must not come through.
const PAYLOADS: [(&str, &str); 22] = [
    ("clipboard", "\x1b]52;c;cHduZWQ=\x07"),
    ("clipboard with the other end", "\x1b]52;c;cHduZWQ=\x1b\\"),
    ("title", "\x1b]0;pwned\x07\x1b]2;pwned\x1b\\"),
    ("title that has no end", "\x1b]0;pwned"),
    (
        "link",
        "\x1b]8;;http://pwned.example\x1b\\here\x1b]8;;\x1b\\",
    ),
    ("device control", "\x1bPpwned\x1b\\"),
    ("status request", "\x1bP$qm\x1b\\"),
    ("application command", "\x1b_Gpwned\x1b\\"),
    ("privacy message", "\x1b^pwned\x1b\\"),
    (
        "cursor moves",
        "\x1b[1;1Hpwned\x1b[2J\x1b[3J\x1b[24;1Hpwned",
    ),
    ("scroll region", "\x1b[2;3r\x1b[5S"),
    (
        "questions to the terminal",
        "\x1b[6n\x1b[c\x1b]11;?\x07\x1b[>q\x1b[?u",
    ),
    (
        "modes",
        "\x1b[?25l\x1b[?1000h\x1b[?1006h\x1b[?1049l\x1b[?2004l\x1b[>31u\x1b[4h",
    ),
    ("reset", "\x1bc\x1b[!p"),
    (
        "one-byte controls",
        "\u{9d}0;pwned\u{9c}\u{9b}2J\u{90}pwned\u{9c}",
    ),
    ("other character set", "\x0e\x1b(0lqqk\x0f"),
    ("overstriking", "safe\rpwned\x08\x08\x08"),
    (
        "other directions",
        "\u{202e}dewnp\u{202c}\u{2066}x\u{2069}\u{200f}",
    ),
    (
        "nothing visible",
        "a\u{200b}b\u{feff}c\u{2060}d\u{e0041}\u{e007f}e",
    ),
    (
        "marks without end",
        "z\u{300}\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}\u{309}\u{30a}",
    ),
    ("null and bell", "\0\x07\x0b\x0c\x7f\x05"),
    ("a sequence in pieces", "\x1b\x1b[\x1b]52;c;cHduZWQ="),
];

fn all() -> String {
    let payloads = PAYLOADS.map(|(name, payload)| format!("{name}:{payload}:after\n\n"));
    payloads.concat()
}

/// The same without what makes it no text, of which nothing at all is shown.
fn printable() -> String {
    all().replace('\0', "")
}

fn named(payloads: &[(&str, &str)]) -> String {
    let names: Vec<&str> = payloads.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

/// Nothing came through to the terminal.
#[track_caller]
fn is_untouched(terminal: &Terminal, name: &str) {
    assert_eq!(terminal.clipboard(), Vec::<String>::new(), "{name}");
    assert!(
        !terminal.title().contains("pwned"),
        "{name}: {}",
        terminal.title()
    );
    assert_eq!(terminal.unhandled(), Vec::<String>::new(), "{name}");
    assert_eq!(terminal.bells(), 0, "{name}");
    assert_eq!(terminal.agreed(), Ok(()), "{name}");
    let raw = String::from_utf8_lossy(&terminal.raw()).into_owned();
    assert!(!raw.contains("http://pwned.example\x1b"), "{name}");
    for c1 in '\u{80}'..='\u{9f}' {
        assert!(!raw.contains(c1), "{name}: {}", c1.escape_unicode());
    }
}

/// The frame of the screen is where it belongs: status line last, draft above it.
#[track_caller]
fn is_in_order(screen: &Screen, name: &str) {
    let (_, rows) = screen.size();
    assert!(screen.alternate, "{name}");
    assert!(
        screen.row(rows - 1).contains("~/work"),
        "{name}\n{}",
        screen.drawn()
    );
    assert!(
        screen.row(rows - 4).starts_with('>'),
        "{name}\n{}",
        screen.drawn()
    );
}

/// Nobody who is away is called, so that no bell is ours.
fn quiet(person: Person) -> Person {
    person.settings("[tui]\nnotify = 'off'\n")
}

#[rstest]
fn as_what_the_model_says(#[values(0, 1)] half: usize) {
    for payloads in PAYLOADS[half * 11..][..11].chunks(3) {
        let name = named(payloads);
        let said = payloads.iter().map(|(_, payload)| {
            format!(
                "Before {payload}

"
            )
        });
        let text = format!("{}finished-here", said.collect::<String>());
        let person = quiet(Person::new([Reply::text(text)]));
        let terminal = person.sit_down();
        say(&terminal, "go");
        let screen = until_done(&terminal, "finished-here");
        is_in_order(&screen, &name);
        is_untouched(&terminal, &name);
        terminal.key("ctrl+o");
        terminal.until_text("Transcript");
        is_untouched(&terminal, &name);
        terminal.keys("q");
        terminal.until_gone("Transcript");
        let ended = leave(terminal);
        assert_eq!(ended.modes, Modes::default(), "{name}");
        assert!(!ended.after.contains("\u{202e}"), "{name}");
    }
}

#[test]
fn as_what_the_model_thinks_and_says_at_once() {
    let reply = Reply::text(format!("{}finished-here", all())).thinking(all());
    let person = quiet(Person::new([reply])).sized(100, 60);
    let terminal = person.sit_down();
    say(&terminal, "/effort high");
    terminal.until_text("high");
    say(&terminal, "go");
    until_done(&terminal, "finished-here");
    is_untouched(&terminal, "prose");
    terminal.key("alt+o");
    terminal.key("pageup");
    terminal.until_text("more below");
    is_untouched(&terminal, "thoughts");
    leave(terminal);
}

#[test]
fn as_what_a_command_writes() {
    let person = quiet(Person::commanding("cat page; cat page >&2")).file("page", &printable());
    let person = person.sized(100, 60).arg("--allow").arg("Bash");
    let terminal = person.sit_down();
    say(&terminal, "go");
    let screen = until_done(&terminal, "All done.");
    is_in_order(&screen, "output");
    terminal.key("alt+o");
    terminal.until_gone("more rows");
    is_untouched(&terminal, "output");
    terminal.key("ctrl+o");
    terminal.until_text("Transcript");
    terminal.keys("g");
    is_untouched(&terminal, "viewer");
    terminal.keys("q");
    leave(terminal);
}

#[test]
fn as_what_a_running_command_writes() {
    let line = "cat page; printf '\\033\\\\\\nrunning-now\\n'; sleep 1000";
    let person = quiet(Person::commanding(line)).file("page", &printable());
    let person = person.arg("--allow").arg("Bash");
    let terminal = person.sit_down();
    say(&terminal, "go");
    let screen =
        terminal.until(|screen| screen.text().lines().any(|row| row.trim() == "running-now"));
    is_in_order(&screen, "live output");
    is_untouched(&terminal, "live output");
    terminal.key("esc");
    terminal.until_text("Interrupted.");
    leave(terminal);
}

/// What would run is shown, and nothing of it is hidden or moved.
#[rstest]
fn as_what_is_asked_about(#[values(0, 1)] half: usize) {
    for payloads in PAYLOADS[half * 11..][..11].chunks(4) {
        let name = named(payloads);
        let quoted = payloads
            .iter()
            .map(|(_, payload)| format!(": '{payload}'; "));
        let line = format!("echo before; {}echo behind", quoted.collect::<String>());
        let person = quiet(Person::commanding(&line)).sized(100, 40);
        let terminal = person.sit_down();
        say(&terminal, "go");
        let screen = terminal.until_text(LISTENS);
        is_in_order(&screen, &name);
        let text = screen.text();
        let question = text.split("Permission required").nth(1).unwrap();
        assert!(
            question.contains("echo before") && question.contains("behind"),
            "{name}\n{text}"
        );
        is_untouched(&terminal, &name);
        terminal.keys("d");
        terminal.until_text("The call");
        is_untouched(&terminal, &name);
        terminal.keys("q");
        terminal.until_text(LISTENS);
        terminal.keys("Y");
        terminal.until_text("Enter writes it and answers");
        is_untouched(&terminal, &name);
        terminal.key("esc");
        terminal.keys("n");
        until_done(&terminal, "All done.");
        is_untouched(&terminal, &name);
        leave(terminal);
    }
}

/// Characters that nobody sees are named where one decides.
#[rstest]
#[case("rm \u{202e}txt.a", "202E")]
#[case("rm a\u{200b}b", "200B")]
#[case("rm a\x1b[8mb", "␛[8m")]
fn what_cannot_be_seen_is_named_in_a_question(#[case] line: &str, #[case] shown: &str) {
    let person = quiet(Person::commanding(line));
    let terminal = person.sit_down();
    say(&terminal, "go");
    let screen = terminal.until_text(LISTENS);
    assert!(
        screen.text().to_uppercase().contains(&shown.to_uppercase()),
        "{}",
        screen.drawn()
    );
    terminal.keys("n");
    until_done(&terminal, "All done.");
    leave(terminal);
}

#[test]
fn as_the_name_of_a_file() {
    let names: Vec<String> = PAYLOADS
        .iter()
        .map(|(_, payload)| payload.replace(['/', '\0'], "-"))
        .map(|payload| format!("needle-{payload}"))
        .collect();
    let calls = names.iter().map(|name| ("Read", json!({"path": name})));
    let person = quiet(Person::new([Reply::tools(calls), Reply::text("All done.")])).sized(100, 60);
    let person = names
        .iter()
        .fold(person, |person, name| person.file(name, "text\n"));
    let terminal = person.sit_down();
    terminal.keys("@needle");
    let screen = terminal.until_text("❯ needle-");
    is_in_order(&screen, "picker");
    is_untouched(&terminal, "picker");
    terminal.key("tab");
    terminal.until_text("> @needle-");
    is_untouched(&terminal, "draft");
    terminal.key("ctrl+c");
    say(&terminal, "go");
    let screen = until_done(&terminal, "All done.");
    is_in_order(&screen, "calls");
    is_untouched(&terminal, "calls");
    terminal.key("alt+o");
    is_untouched(&terminal, "open calls");
    leave(terminal);
}

#[test]
fn as_what_is_pasted_and_as_the_title_of_a_session() {
    let person = quiet(Person::answered("Heard."));
    let terminal = person.start(&["--session", "talk"]);
    terminal.until_text("session: talk");
    let pasted: String = all().chars().take(900).collect();
    terminal.paste(&format!("pasted-text {}", pasted.replace('\n', " ")));
    terminal.until_text("pieces:");
    is_untouched(&terminal, "paste");
    terminal.key("enter");
    until_done(&terminal, "Heard.");
    is_untouched(&terminal, "prompt");
    say(&terminal, "/resume");
    terminal.until_text("Sessions");
    terminal.until_text("❯ talk");
    is_untouched(&terminal, "title");
    terminal.key("esc");
    terminal.key("ctrl+r");
    terminal.keys("pasted");
    terminal.until_text("search this session: pasted");
    is_untouched(&terminal, "history");
    terminal.key("esc");
    leave(terminal);
}

#[test]
fn as_what_the_status_program_writes() {
    let settings = "[tui]\nnotify = 'off'\n[statusLine]\ntype = 'command'\ncommand = 'cat page'\n";
    let page = format!("status-begins {}", all().replace('\n', " "));
    let person = Person::answered("Heard.")
        .settings(settings)
        .file("page", &page)
        .sized(200, 24);
    let terminal = person.start(&[]);
    terminal.until_text("status-begins");
    is_untouched(&terminal, "status");
    leave(terminal);
}

/// Four million carriage returns, and a line that does not end.
#[rstest]
#[case::returns("head -c 4000000 /dev/zero | tr '\\0' '\\r'; echo at-the-end")]
#[case::one_line("head -c 4000000 /dev/zero | tr '\\0' 'x'; echo; echo at-the-end")]
#[case::backspaces("head -c 4000000 /dev/zero | tr '\\0' '\\b'; echo at-the-end")]
#[case::escapes("head -c 4000000 /dev/zero | tr '\\0' '\\033'; echo at-the-end")]
fn much_of_it_does_not_stop_the_screen(#[case] line: &str) {
    let person = quiet(Person::commanding(line)).arg("--allow").arg("Bash");
    let terminal = person.sit_down();
    say(&terminal, "go");
    let screen = until_done(&terminal, "All done.");
    is_in_order(&screen, line);
    terminal.key("alt+o");
    terminal.keys("still here");
    terminal.until_text("> still here");
    is_untouched(&terminal, line);
    assert!(terminal.rss() < 400 << 20, "{}", terminal.rss());
    terminal.key("ctrl+c");
    leave(terminal);
}
