//! How it looks: whole screens at three sizes, without colour, without Unicode, and at no size.

use std::fs;
use std::path::PathBuf;

use caliban_testkit::terminal::{Color, Profile, Screen, Terminal, Tmux};
use caliban_testkit::{Block, Prose, Reply};
use rstest::rstest;
use serde_json::json;

use crate::person::{LISTENS, Person, READY, bash, eventually, leave, say, until_done};

/// The variable with which pictures are taken anew instead of compared.
const UPDATE: &str = "UPDATE_SCREENS";

/// The screen is as it was when its picture was taken, apart from what differs each time.
#[track_caller]
pub(crate) fn looks_like(name: &str, person: &Person, screen: &Screen) {
    let (cols, rows) = screen.size();
    let folder = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/terminal/screens"
    ));
    let path = folder.join(format!("{name}-{cols}x{rows}.txt"));
    let text = normalised(&screen.text(), person);
    if std::env::var_os(UPDATE).is_some() {
        fs::create_dir_all(&folder).unwrap();
        fs::write(&path, &text).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let path = path.display();
    assert!(
        text == expected,
        "`{path}` shows another screen; {UPDATE}=1 takes it anew. Expected:\n{expected}\nSeen:\n{text}"
    );
}

/// Ids, times and paths are made the same, and as long as they were.
fn normalised(text: &str, person: &Person) -> String {
    let home = person.home().display().to_string();
    let text = text.replace(&home, &"H".repeat(home.len()));
    let text = text.replace(['◓', '◑', '◒'], "◐");
    let mut out = String::new();
    for row in text.lines() {
        let words = row
            .split(' ')
            .map(|word| if is_id(word) { ID } else { word });
        let words: Vec<&str> = words.collect();
        // A call that took long enough says so; here it is the machine that did.
        out.push_str(&seconds(&words.join(" ")).replace(", 0.0 s", ""));
        out.push('\n');
    }
    out
}

/// What stands for the beginning of an id.
const ID: &str = "IIIIIIII";

fn is_id(word: &str) -> bool {
    word.len() == ID.len() && word.chars().all(|c| c.is_ascii_hexdigit())
}

/// `1.2 s` is `0.0 s`, `Working 3 s` is `Working 0 s`.
fn seconds(row: &str) -> String {
    let words: Vec<&str> = row.split(' ').collect();
    let is_time = |at: usize| {
        let unit = words
            .get(at + 1)
            .is_some_and(|word| word.trim_end_matches(',') == "s");
        unit && words[at].parse::<f64>().is_ok()
    };
    let zero = |word: &str| if word.contains('.') { "0.0" } else { "0" };
    let words = words.iter().enumerate();
    let words: Vec<&str> = words
        .map(|(at, word)| if is_time(at) { zero(word) } else { word })
        .collect();
    words.join(" ")
}

/// A conversation with prose, a call and a change.
fn conversation() -> Person {
    let prose = "## What I will do\n\nRead **the file**, change `two`, and tell you about it in a \
        sentence that is longer than a narrow screen is wide.\n\n1. read\n2. change\n";
    let edit = json!({"path": "a.txt", "old_string": "two", "new_string": "zwei"});
    let replies = [
        Reply::text(prose).and_tool("Read", json!({"path": "a.txt"})),
        Reply::tool("Edit", edit),
        Reply::text(
            "```rust\nlet x = 1; // one\n```\n\n| n | word |\n|--:|------|\n| 2 | zwei |\n",
        ),
    ];
    let person = Person::new(replies).file("a.txt", "one\ntwo\nthree\n");
    person
        .arg("--allow")
        .arg("Edit")
        .settings("[tui]\nmotion = 'none'\n")
}

const SIZES: [(u16, u16); 3] = [(60, 20), (80, 24), (200, 50)];

#[rstest]
fn whole_screens_look_as_they_did(#[values(0, 1, 2)] size: usize) {
    let (cols, rows) = SIZES[size];
    let person = conversation().sized(cols, rows);
    let terminal = person.start(&[]);
    looks_like("welcome", &person, &terminal.until_text(READY));
    say(&terminal, "Translate the second line of the file");
    let screen = until_done(&terminal, "2  zwei");
    looks_like("conversation", &person, &screen);
    terminal.keys("/effo");
    let screen = terminal.until_text("❯ /effort");
    looks_like("commands", &person, &screen);
    terminal.key("esc");
    terminal.key("esc");
    terminal.key("ctrl+o");
    let screen = terminal.until_text("Transcript");
    looks_like("viewer", &person, &screen);
    assert_eq!(terminal.agreed(), Ok(()));
    assert_eq!(terminal.unhandled(), Vec::<String>::new());
    terminal.keys("q");
    leave(terminal);
}

#[rstest]
fn questions_look_as_they_did(#[values(0, 1, 2)] size: usize) {
    let (cols, rows) = SIZES[size];
    let person = Person::commanding("git commit -am 'fix typo' && git push").sized(cols, rows);
    let terminal = person.sit_down();
    say(&terminal, "go");
    let screen = terminal.until_text(LISTENS);
    looks_like("question", &person, &screen);
    terminal.keys("Y");
    let screen = terminal.until_text("Enter writes it and answers");
    looks_like("rule", &person, &screen);
    terminal.key("esc");
    terminal.keys("n");
    terminal.until_text("All done.");
    leave(terminal);
}

/// What goes on is told at every width.
#[rstest]
fn the_status_line_tells_the_state(#[values(30, 60, 80)] cols: u16) {
    let person = Person::new([bash("true").hold_after(2), Reply::text("All done.")]);
    let person = person.sized(cols, 20);
    let terminal = person.start(&["go"]);
    let status = |screen: &Screen| screen.text().lines().last().unwrap_or_default().to_owned();
    terminal.until(|screen| status(screen).ends_with("running…"));
    person.server.release();
    terminal.until(|screen| status(screen).ends_with("question waiting"));
    terminal.until_text("e edit  d all of it");
    terminal.keys("n");
    terminal.until_text("All done.");
    terminal.until(|screen| !status(screen).contains("running"));
    leave(terminal);
}

/// Every style on the screen that has a colour.
fn colours(screen: &Screen) -> Vec<String> {
    let (cols, rows) = screen.size();
    let cells = (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col)));
    let styles = cells.map(|(row, col)| screen.style_at(row, col));
    let coloured = styles.filter(|style| style.fg != Color::Default || style.bg != Color::Default);
    coloured.map(|style| format!("{style:?}")).collect()
}

#[rstest]
#[case::variable(Some("NO_COLOR"), "")]
#[case::setting(None, "[tui]\ntheme = 'none'\n")]
fn without_colour_attributes_stay(#[case] variable: Option<&str>, #[case] settings: &str) {
    let person = Person::answered("# Title\n\n**bold** `code`").settings(settings);
    let person = match variable {
        Some(name) => person.env(name, "1"),
        None => person,
    };
    let terminal = person.sit_down();
    say(&terminal, "go");
    let screen = until_done(&terminal, "bold code");
    assert_eq!(colours(&screen), Vec::<String>::new());
    let (row, col) = screen.find("bold").unwrap();
    assert!(screen.style_at(row, col).bold);
    leave(terminal);
}

#[test]
fn with_colour_there_is_some() {
    let person = Person::answered("`code`");
    let terminal = person.sit_down();
    say(&terminal, "go");
    let screen = until_done(&terminal, "code");
    assert!(!colours(&screen).is_empty());
    leave(terminal);
}

#[rstest]
#[case::table("[tui.theme]\ncode = '#010203 on 77'\n", None)]
#[case::file(
    "[tui]\ntheme = 'mine'\n",
    Some("base = 'dark'\ncode = '#010203 on 77'\n")
)]
fn colours_are_the_operator_s_own(#[case] settings: &str, #[case] theme: Option<&str>) {
    let person = Person::answered("a `word` of code").settings(settings);
    if let Some(theme) = theme {
        let folder = person.home().join(".config/caliban/themes");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("mine.toml"), theme).unwrap();
    }
    let terminal = person.sit_down();
    say(&terminal, "go");
    let screen = until_done(&terminal, "a word of code");
    let (row, col) = screen.find("word").unwrap();
    let style = screen.style_at(row, col);
    assert_eq!(style.fg, Color::Rgb(1, 2, 3), "{}", screen.drawn());
    assert_eq!(style.bg, Color::Indexed(77), "{}", screen.drawn());
    leave(terminal);
}

#[rstest]
#[case::colour(
    "[tui.theme]\nheading = 'blurple'\n",
    "`tui.theme.heading`: `blurple` is no colour"
)]
#[case::file("[tui]\ntheme = 'nowhere'\n", "themes/nowhere.toml`: No such file")]
#[case::name("[tui]\ntheme = '../x'\n", "`tui.theme`: names have letters")]
fn a_theme_that_cannot_be_used_is_told(#[case] settings: &str, #[case] told: &str) {
    let person = Person::answered("Yes.").settings(settings).sized(160, 24);
    let terminal = person.sit_down();
    terminal.until_text(told);
    say(&terminal, "/theme nothing");
    terminal.until_text("`nothing` is no theme");
    say(&terminal, "go");
    until_done(&terminal, "Yes.");
    leave(terminal);
}

#[test]
fn plain_signs_are_all_ascii() {
    let settings = "[tui]\nglyphs = 'ascii'\nmotion = 'none'\n";
    let person = Person::commanding("echo out; exit 1")
        .sized(100, 24)
        .settings(settings);
    let terminal = person.sit_down();
    terminal.key("shift+tab");
    terminal.until_text("[accept edits]");
    say(&terminal, "go");
    let screen = terminal.until_text(LISTENS);
    assert!(screen.text().is_ascii(), "{}", screen.drawn());
    terminal.keys("y");
    let screen = until_done(&terminal, "All done.");
    assert!(screen.text().is_ascii(), "{}", screen.drawn());
    assert!(screen.contains("* Bash({"), "{}", screen.drawn());
    assert!(screen.contains("-> x exit 1"), "{}", screen.drawn());
    terminal.key("ctrl+o");
    let screen = terminal.until_text("Transcript");
    assert!(screen.text().is_ascii(), "{}", screen.drawn());
    terminal.keys("q");
    leave(terminal);
}

#[rstest]
#[case::light(Profile::Xterm)]
#[case::dark(Profile::Kitty)]
#[case::late(Profile::Late)]
#[case::lying(Profile::Lying)]
#[case::silent(Profile::Silent)]
fn every_terminal_shows_the_same_text(#[case] profile: Profile) {
    let person = Person::answered("The **answer** is `42`.").terminal(profile);
    let terminal = person.sit_down();
    say(&terminal, "go");
    until_done(&terminal, "The answer is 42.");
    assert_eq!(terminal.agreed(), Ok(()));
    assert_eq!(terminal.unhandled(), Vec::<String>::new());
    leave(terminal);
}

#[test]
fn light_and_dark_differ() {
    let seen = |profile| {
        let edit = json!({"path": "a.txt", "content": "new\n"});
        let person = Person::new([Reply::tool("Write", edit), Reply::text("All done.")]);
        let person = person.arg("--allow").arg("Write").terminal(profile);
        let terminal = person.sit_down();
        say(&terminal, "go");
        let screen = until_done(&terminal, "All done.");
        leave(terminal);
        colours(&screen)
    };
    assert_ne!(seen(Profile::Xterm), seen(Profile::Kitty));
}

#[rstest]
#[case(20, 5)]
#[case(10, 3)]
#[case(2, 2)]
#[case(1, 1)]
#[case(300, 100)]
fn no_size_breaks_it(#[case] cols: u16, #[case] rows: u16) {
    let person = Person::commanding("echo out");
    let terminal = person.sit_down();
    terminal.resize(cols, rows);
    say(&terminal, "go on, with a line that is wide");
    person.server.wait_for_requests(1);
    for key in [
        "f1", "q", "ctrl+o", "esc", "ctrl+r", "esc", "ctrl+b", "q", "ctrl+t",
    ] {
        terminal.key(key);
    }
    terminal.resize(80, 24);
    terminal.until_text("Permission required");
    terminal.resize(cols, rows);
    terminal.resize(80, 24);
    terminal.until_text(LISTENS);
    terminal.resize(cols, rows);
    terminal.keys("?");
    terminal.resize(80, 24);
    terminal.until_text("without being asked");
    terminal.keys("Y");
    terminal.resize(cols, rows);
    terminal.resize(80, 24);
    terminal.until_text("Enter writes it and answers");
    terminal.key("esc");
    terminal.keys("n");
    until_done(&terminal, "All done.");
    leave(terminal);
}

#[rstest]
#[case(20, 5)]
#[case(1, 1)]
fn it_begins_at_any_size(#[case] cols: u16, #[case] rows: u16) {
    let person = Person::answered("Hello.").sized(cols, rows);
    let terminal = person.start(&["hi"]);
    person.server.wait_for_requests(1);
    terminal.resize(80, 24);
    until_done(&terminal, "Hello.");
    leave(terminal);
}

#[test]
fn a_storm_of_sizes_ends_right() {
    let lines: Vec<String> = (1..=60)
        .map(|n| format!("- item {n} of a list\n"))
        .collect();
    let person = Person::new([Reply::text(lines.concat())]);
    let terminal = person.sit_down();
    say(&terminal, "list");
    let before = until_done(&terminal, "item 60");
    for n in 0_u16..200 {
        terminal.resize(20 + n * 7 % 150, 5 + n * 3 % 50);
    }
    terminal.resize(80, 24);
    terminal.until(|screen| screen.text() == before.text());
    assert_eq!(terminal.agreed(), Ok(()));
    leave(terminal);
}

#[test]
fn wide_text_is_drawn_where_it_belongs() {
    let text = "漢字 é e\u{301} 👨‍👩‍👧 🇩🇪 क्षि end-of-line";
    let pieces = text.chars().map(String::from).collect();
    let reply = Reply::default().block(Block::Text(Prose::Pieces(pieces)));
    let person = Person::new([reply]);
    let terminal = person.sit_down();
    terminal.keys("漢字");
    let screen = terminal.until_text("> 漢字");
    assert_eq!(screen.cursor.col, 6);
    terminal.key("enter");
    until_done(&terminal, "end-of-line");
    assert_eq!(terminal.agreed(), Ok(()));
    leave(terminal);
}

#[test]
fn a_second_terminal_shows_the_same() {
    if !Tmux::is_installed() {
        return;
    }
    let person = Person::answered("# Seen\n\nin **tmux** too.");
    let tmux = Tmux::start(&person.options(&[]));
    tmux.until_text(READY);
    tmux.send_text("hello");
    tmux.until_text("> hello");
    tmux.send_keys(&["Enter"]);
    let screen = tmux.until_text("in tmux too.");
    assert!(screen.contains("> hello"), "{screen}");
    tmux.resize(60, 20);
    tmux.until_text("in tmux too.");
    tmux.send_keys(&["C-o"]);
    tmux.until_text("Transcript");
    tmux.send_text("q");
    tmux.send_keys(&["C-d"]);
    let screen = tmux.until_text("Go on with: caliban --resume");
    assert!(screen.contains("in tmux too."), "{screen}");
}

/// The same conversation is seen by a person in the terminal of the tests and in tmux.
#[test]
fn two_terminals_agree_on_a_screen() {
    if !Tmux::is_installed() {
        return;
    }
    let person = conversation();
    let see = |terminal: &Terminal| {
        say(terminal, "go");
        until_done(terminal, "2  zwei").text()
    };
    let terminal = person.sit_down();
    let seen = normalised(&see(&terminal), &person);
    leave(terminal);
    let other = conversation();
    let tmux = Tmux::start(&other.options(&[]));
    tmux.until_text(READY);
    tmux.send_text("go");
    tmux.send_keys(&["Enter"]);
    eventually("the work to end in tmux", || {
        let screen = tmux.screen();
        screen.contains("2  zwei") && !screen.contains("Esc stops")
    });
    let also = tmux.screen();
    let also = normalised(&also, &other);
    let same = |text: &str| {
        let rows: Vec<String> = text.lines().map(|row| row.trim_end().to_owned()).collect();
        rows[..23.min(rows.len())].join("\n")
    };
    assert_eq!(same(&also), same(&seen));
}
