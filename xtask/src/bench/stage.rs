//! Where the measured programs run: a home and a workspace of their own below `target/bench`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::answers::{self, Answer};
use super::process::measure;
use super::server::{Bodies, Server};
use crate::shell::target;

/// Small files in the workspace, for calls that read one.
const NOTES: usize = 50;

#[derive(Debug)]
pub(super) struct Stage {
    pub(super) runs: usize,
    pub(super) server: Server,
    pub(super) binary: PathBuf,
    directory: PathBuf,
}

impl Stage {
    pub(super) fn new(runs: usize) -> Result<Self> {
        let directory = target().join("bench");
        let stage = Self {
            runs,
            server: Server::start()?,
            binary: target().join("release/caliban"),
            directory,
        };
        // What earlier benches left would be listed and pruned.
        for place in [stage.home(), stage.workspace()] {
            if place.exists() {
                std::fs::remove_dir_all(&place)?;
            }
            std::fs::create_dir_all(&place)?;
        }
        for number in 0..NOTES {
            let text = format!("note {number}\nsecond line\n");
            std::fs::write(stage.workspace().join(format!("note-{number}.txt")), text)?;
        }
        Ok(stage)
    }

    pub(super) fn home(&self) -> PathBuf {
        self.directory.join("home")
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.directory.join("workspace")
    }

    /// A place that outlives a bench, because making what is in it takes long.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The measured binary with a prompt and these arguments.
    pub(super) fn prompt(&self, arguments: &[&str]) -> Command {
        let mut command = self.caliban(&self.workspace());
        command.args(["-p", "hi"]).args(arguments);
        command
    }

    /// The measured binary in a directory.
    pub(super) fn caliban(&self, workspace: &Path) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("ANTHROPIC_API_KEY", "bench")
            .env("ANTHROPIC_BASE_URL", self.server.url())
            .current_dir(workspace);
        command
    }

    /// `curl` posting a file as often as asked, over one connection.
    pub(super) fn curl(&self, body: &Path, times: usize) -> Command {
        let mut command = Command::new("curl");
        command
            // Without a number to expand, curl would not send a second request.
            .arg(format!("{}/v1/messages?[1-{times}]", self.server.url()))
            .args(["--silent", "--no-buffer", "--header", "expect:"])
            .args(["--header", "content-type: application/json"])
            .arg("--data-binary")
            .arg(format!("@{}", body.display()));
        command
    }

    /// The body of the first request that a prompt leads to, in a file.
    pub(super) fn first_body(&self) -> Result<PathBuf> {
        self.server.play(vec![answers::text("hello")], Bodies::Kept);
        measure(&mut self.prompt(&[]))?;
        let exchanges = self.server.exchanges();
        let first = exchanges.first().context("no request was made")?;
        let path = self.place("body.json");
        std::fs::write(&path, &first.body)?;
        Ok(path)
    }

    /// A file of so many bytes to post.
    pub(super) fn filler(&self, name: &str, length: u64) -> Result<PathBuf> {
        let path = self.place(name);
        let file = std::fs::File::create(&path)?;
        let bytes = std::io::Read::take(std::io::repeat(b' '), length);
        std::io::copy(&mut { bytes }, &mut std::io::BufWriter::new(file))?;
        Ok(path)
    }

    /// So many turns that read a small file, and an answer.
    pub(super) fn tool_turns(&self, turns: usize) -> Vec<Answer> {
        let mut answers: Vec<Answer> = (0..turns).map(|turn| self.read_call(turn)).collect();
        answers.push(answers::text("done"));
        answers
    }

    /// The cheapest call there is.
    pub(super) fn read_call(&self, number: usize) -> Answer {
        let file = self
            .workspace()
            .join(format!("note-{}.txt", number % NOTES));
        let input = serde_json::json!({"file_path": file});
        answers::call(number, "Read", &input)
    }
}
