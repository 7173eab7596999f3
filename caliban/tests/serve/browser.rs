//! The page in a real browser.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use caliban_testkit::{Block, Match, Presence, Prose, Reply};
use serde_json::json;

use crate::bench;
use crate::http::{Http, Swept};
use crate::support::Bench;

const PACKAGES: &str = "CALIBAN_TEST_NODE_PACKAGES";
const BROWSERS: [&str; 2] = ["chromium", "chromium-browser"];

/// What the page is driven with; nothing where it is not installed.
struct Driver {
    node: PathBuf,
    packages: PathBuf,
    chromium: PathBuf,
}

impl Driver {
    fn find() -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let chromium = std::env::split_paths(&path)
            .flat_map(|place| BROWSERS.map(|name| place.join(name)))
            .find(|program| program.is_file());
        let packages = std::env::var_os(PACKAGES).map(PathBuf::from);
        let packages = packages.filter(|it| it.join("node_modules/playwright-core").is_dir());
        let node = std::env::var_os("CALIBAN_TEST_NODE").map(PathBuf::from);
        let (Some(node), Some(packages), Some(chromium)) = (node, packages, chromium) else {
            eprintln!("skipped: chromium or playwright-core is not here (`cargo xtask setup`)");
            return None;
        };
        Some(Self {
            node,
            packages,
            chromium,
        })
    }

    /// Plays a scenario at an address; `obey` does what it asks for.
    fn play(
        &self,
        bench: &Bench,
        scenario: &str,
        page: &str,
        mut obey: impl FnMut(&str) -> String,
    ) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/browser/driver.mjs");
        let home = bench.home.path().join("browser");
        std::fs::create_dir_all(&home).unwrap();
        let mut child = Command::new(&self.node)
            .arg(script)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(std::env::var_os("CALIBAN_TEST_PICTURE").map(|place| ("KEEP", place)))
            .env("HOME", &home)
            .env("TMPDIR", &home)
            .env("PACKAGES", &self.packages)
            .env("CHROMIUM", &self.chromium)
            .env("SCENARIO", scenario)
            .env("PAGE", page)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut answers = child.stdin.take().unwrap();
        for wish in BufReader::new(child.stdout.take().unwrap()).lines() {
            let answer = obey(&wish.unwrap());
            writeln!(answers, "{answer}").unwrap();
        }
        let ended = child.wait_with_output().unwrap();
        let complaint = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{scenario}: {complaint}");
    }
}

impl Http {
    fn page(&self) -> String {
        format!("http://127.0.0.1:{}/#{}", self.port, self.token)
    }
}

/// Plays a scenario against a model that answers in this order.
fn play(scenario: &str, replies: impl IntoIterator<Item = Reply>) -> Option<Bench> {
    let driver = Driver::find()?;
    let bench = bench(replies);
    let http = Http::start(&bench, &[]);
    driver.play(&bench, scenario, &http.page(), |wish| {
        assert_eq!(wish, "release");
        bench.server.release();
        "done".to_owned()
    });
    http.stop();
    Some(bench)
}

fn makes_it() -> [Reply; 2] {
    [
        Reply::tool("Bash", json!({"command": "touch made"})),
        Reply::text("It is made."),
    ]
}

#[test]
fn everything_is_done_with_the_keyboard_alone() {
    let Some(bench) = play("keyboard", makes_it()) else {
        return;
    };
    assert!(bench.workspace.path().join("made").exists());
}

#[test]
fn a_reload_in_the_middle_of_a_turn_loses_nothing() {
    let pieces = ["The ", "beginning ", "of it ", "and ", "the end."].map(str::to_owned);
    let said = Block::Text(Prose::Pieces(pieces.to_vec()));
    play("reload", [Reply::default().block(said).hold_after(5)]);
}

#[test]
fn two_windows_show_one_session_and_either_answers() {
    let replies = makes_it().into_iter().chain([Reply::text("Once more.")]);
    let Some(bench) = play("windows", replies) else {
        return;
    };
    assert_eq!(bench.server.model_requests().len(), 3);
}

#[test]
fn hostile_markdown_stays_text() {
    let hostile = concat!(
        "<script>window.hacked = 1</script>\n\n",
        "<img src=x onerror=\"window.hacked = 2\">\n\n",
        "<svg onload=alert(1)><iframe src=https://evil.test></iframe>\n\n",
        "[click](javascript:window.hacked=3) [two](JaVaScRiPt:alert(1)) [data](data:text/html,x)\n\n",
        "[tab](java\tscript:alert(1)) <javascript:alert(1)> [v](vbscript:x) [rel](/v1/sessions)\n\n",
        "![pixel](https://evil.test/pixel.png) [good](https://example.com/a)\n\n",
        "[\"onmouseover=alert(1) x=\"](https://example.com/b\"onmouseover=alert(1))\n\n",
        "| <b onclick=alert(1)>x</b> | y |\n| --- | --- |\n| <script>1</script> | `</code><script>` |\n\n",
        "```\" onload=\"alert(1)\n</code></pre><script>window.hacked = 4</script>\n```\n\n",
        "innocent\u{202e}gpj.exe \u{2066}x\u{2069} bell\u{7} escape\u{1b}[31m\n\n",
        "**[a](javascript:1)** *<img src=x onerror=alert(1)>* &lt;script&gt; \n\n",
    );
    let nested = "> ".repeat(2000) + "deep\n\n" + &"[".repeat(5000) + "\n\n" + &"*a ".repeat(5000);
    let text = format!("{hostile}{nested}\n\nThe end of it\n");
    play(
        "hostile",
        [
            Reply::tool(
                "Read",
                json!({"path": "<img src=x onerror=alert(1)>\u{202e}"}),
            ),
            Reply::text(text),
        ],
    );
}

const WRITTEN: &str = "# Title\n\nSome **bold** and *soft* with `x < y`.\n\n## Second\n\n\
    - one\n- two\n  - nested\n\n3. three\n4. four\n\n| a | b |\n|---|--:|\n| `a|b` | 1 |\n\n\
    ```rust\nfn main() {\n    <b>\n}\n```\n\n> quoted\n\n- [ ] open\n- [x] done\n\n\
    snake_case_name and 2 * 3 * 4\n\n---\n\nLast words.";

#[test]
fn markdown_is_shown_as_what_it_means() {
    play("markdown", [Reply::text(WRITTEN)]);
}

#[test]
fn the_page_is_read_on_small_and_dark_screens_and_by_screen_readers() {
    let command = json!({"command": "make all the things that there are to be made"});
    play("look", [Reply::text(WRITTEN), Reply::tool("Bash", command)]);
}

#[test]
fn what_waits_can_be_taken_back() {
    let Some(bench) = play(
        "queue",
        [
            Reply::text("never").hold_after(0),
            Reply::text("Second answer."),
        ],
    ) else {
        return;
    };
    let requests = bench.server.model_requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].json()["model"], "claude-opus-4-6");
}

#[test]
fn files_are_attached_by_dropping_and_by_choosing() {
    let Some(bench) = play("files", [Reply::text("Seen.")]) else {
        return;
    };
    let request = bench.server.model_requests()[0].json();
    let text = request["messages"].to_string();
    assert!(
        text.contains("image/png") && text.contains("The file notes.txt"),
        "{text}"
    );
    assert!(text.contains("remember the milk") && text.contains("look at these"));
}

#[test]
fn a_long_answer_is_no_trouble() {
    let words = (0..4_000).map(|number| match number % 100 {
        99 => format!("word {number}\n\n"),
        _ => format!("word {number} "),
    });
    let said = Block::Text(Prose::Pieces(words.collect()));
    play("long", [Reply::default().block(said)]);
}

#[test]
fn a_server_that_is_gone_is_missed() {
    let Some(driver) = Driver::find() else {
        return;
    };
    let bench = bench([Reply::text("Hello there.")]);
    let http = Http::start(&bench, &[]);
    let (page, mut http) = (http.page(), Some(http));
    driver.play(&bench, "gone", &page, |wish| {
        assert_eq!(wish, "stop");
        http.take().unwrap().stop();
        "done".to_owned()
    });
}

#[test]
fn the_address_of_the_page_opens_it_once() {
    let Some(driver) = Driver::find() else {
        return;
    };
    let bench = bench([Reply::text("Hello there.").when(Match::tool_result(Presence::Absent))]);
    let _swept = Swept::of(&bench);
    let mut child = bench.command().args(["serve", "web"]).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    // No browser is found in an empty environment, so the address is shown.
    let address = output.lines().map_while(Result::ok).find_map(|line| {
        let address = line.strip_prefix("open ");
        address.map(str::to_owned)
    });
    driver.play(&bench, "door", &address.unwrap(), |wish| {
        panic!("{wish}");
    });
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
