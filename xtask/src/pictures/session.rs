//! The session that is drawn: a question, an answer that is being written, a change that is asked
//! for, the commands, and everything as the model sees it.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use caliban_testkit::terminal::{Profile, Terminal, TerminalOptions};
use caliban_testkit::{Block, BlockingServer, Prose, Reply, Script};
use serde_json::json;

use super::grid::Grid;
use super::svg::{Frame, film, picture};

/// The pictures that are drawn.
pub(super) const NAMES: [&str; 7] = [
    "session.svg",
    "answer.svg",
    "question.svg",
    "rule.svg",
    "edit.svg",
    "commands.svg",
    "viewer.svg",
];

/// The home of whoever is drawn. Paths are seen, so that it is the same on every machine.
const HOME: &str = "/tmp/caliban-pictures";
const SIZE: (u16, u16) = (96, 30);
const MODEL: &str = "claude-sonnet-4-6";

pub(super) const FILE: &str = "\
pub fn total(prices: &[u32], discount: u32) -> u32 {
    let sum: u32 = prices.iter().sum();
    sum - discount
}
";

/// The beginning of the answer, after which it pauses, and its rest.
pub(super) const BEGINNING: [&str; 4] = [
    "## A total can wrap around\n\n",
    "`total` subtracts the discount from the sum. Both are **unsigned**, ",
    "so a discount that is larger than the sum makes\n\n",
    "| | debug build | release build |\n|---|---|---|\n",
];
pub(super) const REST: [&str; 3] = [
    "| cart of 5, discount 8 | panics | 4294967293 |\n\n",
    "A subtraction that stops at zero cannot do that:\n\n",
    "```rust\nsum.saturating_sub(discount)\n```\n",
];

/// Plays it and draws it, in a home that is empty at first and gone afterwards.
pub(super) fn play(program: &Path) -> Result<Vec<(&'static str, String)>> {
    let home = Path::new(HOME);
    if home.exists() {
        std::fs::remove_dir_all(home)?;
    }
    let pictures = played(program, home);
    std::fs::remove_dir_all(home)?;
    pictures
}

fn played(program: &Path, home: &Path) -> Result<Vec<(&'static str, String)>> {
    let work = home.join("shop");
    std::fs::create_dir_all(work.join("src"))?;
    std::fs::write(work.join("src/cart.rs"), FILE)?;
    let server = BlockingServer::start(Script::new(replies()))?;
    let terminal = Terminal::start(options(program, home, &work, &server));
    let mut film_of = Film::default();

    terminal.until_text("session: shop");
    terminal.until_quiet();
    let question = "Why can the total of a cart be wrong?";
    terminal.keys(question);
    terminal.until_text(question);
    film_of.take(&terminal, 1600);
    terminal.key("enter");
    terminal.until_text("debug build");
    film_of.take(&terminal, 1800);
    server.release();
    terminal.until_text("saturating_sub");
    terminal.until_gone("Working");
    let answer = film_of.take(&terminal, 3500);

    terminal.keys("Repair it, please.");
    terminal.key("enter");
    terminal.until_text("[y] Allow once");
    let asked = film_of.take(&terminal, 4000);
    terminal.keys("Y");
    terminal.until_text("matches");
    let rule = settled(&terminal);
    terminal.key("esc");
    terminal.until_text("[y] Allow once");
    terminal.keys("y");
    terminal.until_text("at zero now");
    terminal.until_gone("Working");
    let edit = film_of.take(&terminal, 4000);

    terminal.keys("/");
    terminal.until_text("Condense the conversation");
    let commands = film_of.take(&terminal, 2500);
    terminal.key("esc");
    terminal.until_gone("Condense the conversation");
    terminal.key("backspace");
    terminal.until_gone("> /");
    terminal.key("ctrl+o");
    terminal.until_text("Transcript");
    let viewer = settled(&terminal);

    Ok(vec![
        ("session.svg", film(&film_of.frames)),
        ("answer.svg", picture(&answer)),
        ("question.svg", picture(&asked)),
        ("rule.svg", picture(&rule)),
        ("edit.svg", picture(&edit)),
        ("commands.svg", picture(&commands)),
        ("viewer.svg", picture(&viewer)),
    ])
}

/// What is kept of the session to be shown in its order.
#[derive(Default)]
struct Film {
    frames: Vec<Frame>,
}

impl Film {
    fn take(&mut self, terminal: &Terminal, shown: u64) -> Grid {
        let grid = settled(terminal);
        self.frames.push(Frame {
            grid: grid.clone(),
            shown: Duration::from_millis(shown),
        });
        grid
    }
}

/// The screen when nothing on it but what turns and counts will change any more.
fn settled(terminal: &Terminal) -> Grid {
    let mut last = Grid::of(&terminal.screen());
    loop {
        std::thread::sleep(SETTLING);
        let now = Grid::of(&terminal.screen());
        if now == last {
            return now;
        }
        last = now;
    }
}

/// A frame is drawn within a fraction of this, and what is said in passing stays no longer.
const SETTLING: Duration = Duration::from_secs(1);

fn options(program: &Path, home: &Path, work: &Path, server: &BlockingServer) -> TerminalOptions {
    let variables = [
        ("HOME", home.display().to_string()),
        ("PATH", std::env::var("PATH").unwrap_or_default()),
        ("TERM", "xterm-256color".to_owned()),
        ("COLORTERM", "truecolor".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("ANTHROPIC_API_KEY", "pictures".to_owned()),
        ("ANTHROPIC_BASE_URL", server.url()),
    ];
    let variables = variables.into_iter();
    TerminalOptions {
        program: program.to_owned(),
        args: ["--session", "shop", "--model", MODEL]
            .map(str::to_owned)
            .to_vec(),
        env: variables
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        cwd: work.to_owned(),
        size: SIZE,
        profile: Profile::Kitty,
    }
}

fn replies() -> Vec<Reply> {
    let pieces = BEGINNING.iter().chain(&REST);
    let prose = pieces.map(|piece| (*piece).to_owned()).collect();
    // The message and its block begin with an event each.
    let paused = BEGINNING.len() + 2;
    vec![
        call(1, "Read", &json!({"file_path": "src/cart.rs"})),
        Reply::default()
            .block(Block::Text(Prose::Pieces(prose)))
            .hold_after(paused),
        call(
            2,
            "Edit",
            &json!({
                "file_path": "src/cart.rs",
                "old_string": "    sum - discount\n",
                "new_string": "    sum.saturating_sub(discount)\n",
            }),
        ),
        Reply::text("The subtraction stops **at zero now**."),
    ]
}

/// A call whose id is the same each time.
fn call(number: u32, name: &str, input: &serde_json::Value) -> Reply {
    Reply::default().block(Block::ToolCall {
        name: name.to_owned(),
        input: input.clone(),
        id: Some(format!("toolu_{number:04}")),
    })
}
