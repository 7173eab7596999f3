//! The clients for other languages, against the program itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use caliban_testkit::{After, Match, Presence, Reply, Script};
use rstest::rstest;
use serde_json::json;

use crate::support::{Bench, Wire, run};

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients")
}

/// A program of another language with the environment of a run.
fn program(bench: &Bench, language: &str, script: &Path) -> Command {
    let (variable, program) = if language == "python" {
        ("CALIBAN_TEST_PYTHON", "python3")
    } else {
        ("CALIBAN_TEST_NODE", "node")
    };
    let found = std::env::var_os(variable);
    let mut command = Command::new(found.unwrap_or_else(|| program.into()));
    let template = bench.command();
    command
        .arg(script)
        .env_clear()
        .envs(
            template
                .get_envs()
                .filter_map(|(key, value)| Some((key, value?))),
        )
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONPATH", clients().join("python/src"))
        .env("CALIBAN", env!("CARGO_BIN_EXE_caliban"))
        .env("CALIBAN_PROVIDER", bench.wire.provider())
        .current_dir(bench.workspace.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    command
}

#[rstest]
#[case::typescript("node", "typescript/examples/tabs.js")]
#[case::python("python", "python/examples/tabs.py")]
fn the_example_works_in_three_tabs(#[case] language: &str, #[case] example: &str) {
    let example = clients().join(example);
    let lines = std::fs::read_to_string(&example).unwrap().lines().count();
    assert!(lines < 60, "the example has {lines} lines");
    let script = Script::new([
        Reply::tool("Bash", json!({"command": "touch forbidden"})).when(Match {
            tool_result: Some(Presence::Absent),
            ..Match::last_user("riskiest")
        }),
        Reply::text("main.rs").when(Match::last_user("riskiest")),
        Reply::text("none").when(Match::last_user("frameworks")),
        Reply::text("an agent harness").when(Match::last_user("three words")),
        Reply::text("It is about agents."),
    ])
    .after(After::RepeatLast);
    let bench = Bench::new(Wire::Anthropic, script);
    let ran = run(&mut program(&bench, language, &example));
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    for answer in [
        "  It is about agents.",
        "  an agent harness",
        "  none",
        "  main.rs",
    ] {
        assert!(ran.stdout.contains(answer), "{answer}: {}", ran.stdout);
    }
    assert!(!bench.workspace.path().join("forbidden").exists());
}

/// What an application's own functions do wrong does not leave anybody waiting.
const CARELESS: &str = r#"
import asyncio, os
from caliban_client import Caliban, CalibanError

def fails(*told):
    raise RuntimeError("a handler failed")

async def main():
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    server = await Caliban.start(os.environ["CALIBAN"])
    tab = await server.open(tab="a", max_turns=5, on_event=fails, on_question=fails)
    result = await asyncio.wait_for(tab.send("riskiest"), 30)
    print(result["result"], result["denials"][0]["tool"])
    await server.shutdown()
    try:
        await Caliban.start(os.environ["CALIBAN"], ["--no-such-flag"])
    except CalibanError as error:
        print(error)

asyncio.run(main())
"#;

const CARELESS_TOO: &str = r#"
const { Caliban } = await import(process.env.CLIENT);
const { CALIBAN: command } = process.env;
const server = await Caliban.start({ command });
const tab = await server.open({ tab: "a" }, { onQuestion: () => { throw new Error("no"); },
  onError: () => tab.cancel() });
console.log((await tab.send("riskiest")).subtype);
await server.shutdown();
for (const wrong of [{ command, args: ["--no-such-flag"] }, { command: "/no/such/program" }]) {
  await Caliban.start(wrong).catch((error) => console.log(error.message));
}
"#;

#[test]
fn a_client_in_python_survives_its_application() {
    let script = Script::new([
        Reply::tool("Bash", json!({"command": "touch forbidden"})),
        Reply::text("fine"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let file = bench.home.path().join("careless.py");
    std::fs::write(&file, CARELESS).unwrap();
    let ran = run(&mut program(&bench, "python", &file));
    assert_eq!(
        ran.stdout, "fine Bash\nthe server ended at once, with the exit code 64\n",
        "{}",
        ran.stderr
    );
}

#[test]
fn a_client_in_typescript_says_why_nothing_began() {
    let script = Script::new([Reply::tool("Bash", json!({"command": "touch forbidden"}))]);
    let bench = Bench::new(Wire::Anthropic, script);
    let file = bench.home.path().join("careless.mjs");
    std::fs::write(&file, CARELESS_TOO).unwrap();
    let client = clients().join("typescript/src/index.js");
    let ran = run(program(&bench, "node", &file).env("CLIENT", client));
    assert_eq!(
        ran.stdout,
        "cancelled\nthe server ended at once, with the exit code 64\n\
         spawn /no/such/program ENOENT\n",
        "{}",
        ran.stderr
    );
}
