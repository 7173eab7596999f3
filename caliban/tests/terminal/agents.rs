//! Agents in the background, looked at and answered from the terminal interface.

use std::process::{Command, Output};

use caliban_testkit::Reply;

use crate::person::{Person, bash, eventually, leave, say};

/// Agents of a person, ended with the test.
struct Agents<'a>(&'a Person);

impl Agents<'_> {
    fn run(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_caliban"))
            .args(args)
            .current_dir(self.0.work())
            .env_clear()
            .env("HOME", self.0.home())
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("ANTHROPIC_BASE_URL", self.0.server.url())
            .env("ANTHROPIC_API_KEY", "test-key")
            .output()
            .unwrap()
    }

    fn begin(&self, task: &str) -> String {
        let output = self.run(&["--bg", task]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Agents<'_> {
    fn drop(&mut self) {
        let listed = self.run(&["agents", "list", "--json"]).stdout;
        let listed: serde_json::Value = serde_json::from_slice(&listed).unwrap_or_default();
        for agent in listed.as_array().into_iter().flatten() {
            self.run(&["agents", "rm", "--force", agent["id"].as_str().unwrap()]);
        }
        self.run(&["daemon", "stop"]);
    }
}

#[test]
fn an_agent_is_answered_read_attached_to_and_stopped() {
    let person = Person::new([bash("touch made.txt"), Reply::text("It is made.")]).sized(120, 24);
    let agents = Agents(&person);
    let id = agents.begin("make a file");
    let terminal = person.sit_down();
    terminal.key("ctrl+b");
    terminal.until_text("Background jobs");
    terminal.key("tab");
    terminal.until_text("Background agents");
    // It comes by itself, with what it asks.
    let screen = terminal.until_text("asks: ");
    assert!(screen.contains(&id), "{}", screen.drawn());
    assert!(screen.contains("touch made.txt"), "{}", screen.drawn());
    terminal.keys("a");
    terminal.until_text(&format!("{id} allow"));
    terminal.until_gone("asks: ");
    eventually("the file", || person.work().join("made.txt").exists());
    terminal.until_text("idle");
    // There is nothing to answer any more.
    terminal.keys("d");
    terminal.until_text("asks nothing");
    eventually("the answer is kept", || {
        let logs = agents.run(&["logs", &id]).stdout;
        String::from_utf8_lossy(&logs).contains("It is made.")
    });
    terminal.key("enter");
    terminal.until_text(&format!("Agent {id}"));
    terminal.key("end");
    terminal.until_text("It is made.");
    terminal.keys("q");
    terminal.until_text("Background agents");
    terminal.keys("o");
    terminal.until_gone("Background agents");
    terminal.until_text("It is made.");
    terminal.key("ctrl+d");
    terminal.until_text("Background agents");
    terminal.keys("x");
    terminal.until_text("killed");
    terminal.keys("q");
    terminal.until_gone("Background agents");
    // The other way to it.
    say(&terminal, "/agents watch");
    terminal.until_text("killed");
    terminal.keys("q");
    terminal.until_gone("Background agents");
    leave(terminal);
}

#[test]
fn nobody_is_told_as_nobody() {
    let person = Person::answered("Fine.").sized(100, 24);
    let _agents = Agents(&person);
    let terminal = person.sit_down();
    say(&terminal, "/agents watch");
    terminal.until_text("none; `caliban --bg TASK` begins one");
    terminal.key("tab");
    terminal.until_text("Background jobs");
    terminal.keys("q");
    leave(terminal);
}
