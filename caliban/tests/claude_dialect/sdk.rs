//! The official client libraries against the built program, one case per capability. The drivers
//! are in `sdk/`; without the libraries the tests say so and do nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use caliban_testkit::{After, Block, Fault, Match, Prose, Reply, Script};
use rstest::rstest;
use serde_json::json;

use crate::bench::Bench;

/// A client library and how its driver is run.
#[derive(Debug, Clone, Copy)]
enum Library {
    Python,
    TypeScript,
}

/// Where the packages for Node are.
const PACKAGES: &str = "CALIBAN_TEST_NODE_PACKAGES";

fn node() -> PathBuf {
    std::env::var_os("CALIBAN_TEST_NODE").map_or_else(|| PathBuf::from("node"), PathBuf::from)
}

impl Library {
    /// The driver, ready to run; nothing where the library is not installed.
    fn driver(self) -> Option<Command> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/claude_dialect/sdk");
        let variable = match self {
            Self::Python => "CALIBAN_TEST_PYTHON",
            Self::TypeScript => PACKAGES,
        };
        let Some(place) = std::env::var_os(variable).map(PathBuf::from) else {
            eprintln!("skipped: {variable} is not set; run `cargo xtask test`");
            return None;
        };
        Some(match self {
            Self::Python => {
                let mut command = Command::new(place);
                command.arg(here.join("cases.py"));
                command
            }
            Self::TypeScript => {
                let mut command = Command::new(node());
                command
                    .arg(here.join("cases.mjs"))
                    .env("SDK_MODULES", place.join("node_modules"));
                command
            }
        })
    }
}

fn run(library: Library, case: &str, script: Script) {
    let Some(mut driver) = library.driver() else {
        return;
    };
    let bench = Bench::new(script);
    let output = driver
        .arg(case)
        .envs(bench.variables())
        .env("CLAUDE_CLI", bench.program())
        .current_dir(bench.workspace.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{library:?} {case}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn touch(name: &str) -> Reply {
    Reply::tool("Bash", json!({"command": format!("touch {name}")}))
}

fn script(case: &str) -> Script {
    match case {
        "one_shot" => Script::new([Reply::text("Hello.")]),
        "several_turns" => Script::new([Reply::text("one"), Reply::text("two")]),
        "changes" => Script::new([Reply::text("ok")]).after(After::Cycle),
        "sessions" => Script::new((0..4).map(|n| Reply::text(format!("answer {n}")))),
        "interrupt" => Script::new([
            Reply::text("never ever").with_fault(Fault::StallMidStream { after_events: 4 }),
            Reply::text("after"),
        ]),
        "consent" => Script::new([
            touch("allowed"),
            touch("changed"),
            touch("ruled"),
            touch("ruled ruled2"),
            touch("denied"),
            Reply::text("done"),
        ]),
        "hooks" => Script::new([
            Reply::tool("Bash", json!({"command": "echo fine"})),
            Reply::tool("Bash", json!({"command": "cat secret"})),
            Reply::text("done"),
        ]),
        "partial" => Script::new([Reply::default().block(Block::Text(Prose::Pieces(vec![
            "Hello ".to_owned(),
            "there.".to_owned(),
        ])))]),
        "sub_agents" => Script::new([
            Reply::tool(
                "Task",
                json!({"description": "d", "prompt": "inner", "subagent_type": "scout"}),
            )
            .when(Match::last_user("outer")),
            Reply::tool("Bash", json!({"command": "echo inside"})).when(Match::last_user("inner")),
            Reply::text("Found.").when(Match::last_user("inner")),
            Reply::text("All done.").when(Match::last_user("outer")),
        ]),
        "structured" => Script::new([Reply::tool("StructuredOutput", json!({"ok": true}))]),
        "limits" => {
            Script::new([Reply::tool("Bash", json!({"command": "echo x"}))]).after(After::Cycle)
        }
        "own_tools" => Script::new([
            Reply::tool("mcp__calc__add", json!({"a": 2, "b": 3})),
            Reply::text("done"),
        ]),
        "checkpoints" => Script::new([
            Reply::tool("Write", json!({"file_path": "a.txt", "content": "two\n"})),
            Reply::text("done"),
        ]),
        other => panic!("no such case: {other}"),
    }
}

#[rstest]
fn the_official_client_works(
    #[values(Library::Python, Library::TypeScript)] library: Library,
    #[values(
        "one_shot",
        "several_turns",
        "interrupt",
        "consent",
        "hooks",
        "changes",
        "partial",
        "sub_agents",
        "sessions",
        "structured",
        "limits",
        "own_tools",
        "checkpoints"
    )]
    case: &str,
) {
    run(library, case, script(case));
}

/// The program of this language in the chapter on embedding, as printed.
fn printed(language: &str) -> String {
    let chapter = include_str!("../../../docs/embedding.md");
    let begin = format!("```{language}\n");
    let (_, rest) = chapter.split_once(&begin).unwrap();
    rest.split_once("\n```").unwrap().0.to_owned()
}

#[rstest]
#[case("python", Some("CALIBAN_TEST_PYTHON"))]
#[case("typescript", Some(PACKAGES))]
#[case("sh", None)]
fn the_programs_of_the_chapter_run_as_printed(#[case] language: &str, #[case] needs: Option<&str>) {
    let place = needs.map(|variable| std::env::var_os(variable).map(PathBuf::from));
    if place == Some(None) {
        eprintln!("skipped: {needs:?} is not set; run `cargo xtask test`");
        return;
    }
    let place = place.flatten().unwrap_or_default();
    let bench = Bench::new(Script::new([touch("done"), Reply::text("There it is.")]));
    let programs = tempfile::tempdir().unwrap();
    let mut command = match language {
        "python" => Command::new(&place),
        "typescript" => {
            // A module finds its packages beside itself.
            let modules = programs.path().join("node_modules");
            std::os::unix::fs::symlink(place.join("node_modules"), modules).unwrap();
            Command::new(node())
        }
        _ => Command::new("sh"),
    };
    let file = programs.path().join(match language {
        "python" => "program.py",
        "typescript" => "program.mjs",
        _ => "program.sh",
    });
    std::fs::write(&file, printed(language)).unwrap();
    let output = command
        .arg(file)
        .envs(bench.variables())
        .env("CLAUDE_CLI", bench.program())
        .current_dir(bench.workspace.path())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "There it is.",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(bench.workspace.path().join("done").exists());
}
