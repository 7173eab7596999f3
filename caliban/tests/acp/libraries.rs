//! The protocol's own client libraries against the built program. The drivers are in `libraries/`;
//! without the libraries the tests say so and do nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use caliban_testkit::Reply;
use rstest::rstest;
use serde_json::json;

use crate::{bench, shell};

/// A client library and how its driver is run.
#[derive(Debug, Clone, Copy)]
enum Library {
    Python,
    TypeScript,
    /// A program for the command line.
    Acpx,
}

impl Library {
    /// The driver, ready to run; nothing where the library is not installed.
    fn driver(self) -> Option<Command> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acp/libraries");
        let variable = match self {
            Self::Python => "CALIBAN_TEST_PYTHON",
            Self::TypeScript | Self::Acpx => "CALIBAN_TEST_NODE_PACKAGES",
        };
        let Some(place) = std::env::var_os(variable).map(PathBuf::from) else {
            eprintln!("skipped: {variable} is not set; run `cargo xtask test`");
            return None;
        };
        let node = std::env::var_os("CALIBAN_TEST_NODE");
        let node = node.map_or_else(|| PathBuf::from("node"), PathBuf::from);
        Some(match self {
            Self::Python => {
                let mut command = Command::new(place);
                command.arg(here.join("cases.py"));
                command
            }
            Self::TypeScript => {
                let mut command = Command::new(node);
                command
                    .arg(here.join("cases.mjs"))
                    .env("SDK_MODULES", place.join("node_modules"));
                command
            }
            Self::Acpx => {
                let mut command = Command::new(node);
                command.arg(place.join("node_modules/acpx/dist/cli.js"));
                command
            }
        })
    }
}

/// A conversation: an answer, a call that is asked about and allowed, a call that is refused, a
/// prompt that is cancelled, and the session loaded again.
#[rstest]
fn a_whole_conversation(#[values(Library::Python, Library::TypeScript)] library: Library) {
    let Some(mut driver) = library.driver() else {
        return;
    };
    let bench = bench([
        Reply::text("hello from the model").thinking("let me see"),
        shell("touch allowed"),
        shell("touch refused"),
        Reply::text("done"),
        Reply::text("never ever").hold_after(3),
        Reply::text("after"),
    ]);
    let output = driver
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", bench.home.path())
        .envs(bench.wire.variables(&bench.server.url()))
        .env("SDK_MODULES", modules())
        .env("CALIBAN", env!("CARGO_BIN_EXE_caliban"))
        .env("WORKSPACE", bench.workspace.path())
        .current_dir(bench.workspace.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{library:?}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(bench.workspace.path().join("allowed").exists());
    assert!(!bench.workspace.path().join("refused").exists());
}

fn modules() -> PathBuf {
    let place = std::env::var_os("CALIBAN_TEST_NODE_PACKAGES").map(PathBuf::from);
    place.unwrap_or_default().join("node_modules")
}

#[test]
fn a_client_of_the_command_line() {
    let Some(mut driver) = Library::Acpx.driver() else {
        return;
    };
    let write = json!({"path": "made.txt", "content": "by the agent\n"});
    let bench = bench([Reply::tool("Write", write), Reply::text("it is written")]);
    let agent = format!("{} serve acp", env!("CARGO_BIN_EXE_caliban"));
    let output = driver
        .args(["--agent", &agent, "--approve-all", "--cwd"])
        .arg(bench.workspace.path())
        .args(["exec", "write it"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", bench.home.path())
        .envs(bench.wire.variables(&bench.server.url()))
        .current_dir(bench.workspace.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    assert!(said.contains("it is written"), "{said}\n{errors}");
    assert!(bench.workspace.path().join("made.txt").exists());
}
