//! Runs the built binary in an empty home with a clean environment. What it writes for programs is
//! held to the schema of frames, in every test.
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod apart;
mod frames;
pub(crate) mod homes;

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use caliban_testkit::{BlockingServer, Script};

pub(crate) use frames::frame;

/// The wire formats, and how the binary is told to speak them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Anthropic,
    Responses,
    Chat,
    Gemini,
    Ollama,
}

impl Wire {
    pub(crate) const ALL: [Self; 5] = [
        Self::Anthropic,
        Self::Responses,
        Self::Chat,
        Self::Gemini,
        Self::Ollama,
    ];

    pub(crate) fn provider(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Responses | Self::Chat => "openai",
            Self::Gemini => "google",
            Self::Ollama => "ollama",
        }
    }

    pub(crate) fn model(self) -> &'static str {
        match self {
            Self::Anthropic => "claude-sonnet-4-6",
            Self::Responses => "gpt-5.5",
            // The default reasons, and takes tools only in the other format.
            Self::Chat => "gpt-4.1",
            Self::Gemini => "gemini-3.8-flash",
            Self::Ollama => "llama3.1",
        }
    }

    pub(crate) fn variables(self, url: &str) -> Vec<(&'static str, String)> {
        match self {
            Self::Anthropic => vec![
                ("ANTHROPIC_BASE_URL", url.to_owned()),
                ("ANTHROPIC_API_KEY", "test-key".to_owned()),
            ],
            Self::Responses | Self::Chat => vec![
                ("OPENAI_BASE_URL", format!("{url}/v1")),
                ("OPENAI_API_KEY", "test-key".to_owned()),
                (
                    "CALIBAN_OPENAI_API",
                    if self == Self::Chat {
                        "chat"
                    } else {
                        "responses"
                    }
                    .to_owned(),
                ),
            ],
            Self::Gemini => vec![
                ("GEMINI_BASE_URL", url.to_owned()),
                ("GEMINI_API_KEY", "test-key".to_owned()),
            ],
            Self::Ollama => vec![("OLLAMA_BASE_URL", url.to_owned())],
        }
    }
}

/// An empty home, an empty workspace, and a scripted model.
pub(crate) struct Bench {
    pub(crate) home: tempfile::TempDir,
    pub(crate) workspace: tempfile::TempDir,
    pub(crate) server: BlockingServer,
    pub(crate) wire: Wire,
}

/// What a run left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Bench {
    pub(crate) fn new(wire: Wire, script: Script) -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            workspace: tempfile::tempdir().unwrap(),
            server: BlockingServer::start(script).unwrap(),
            wire,
        }
    }

    /// The binary with this wire's settings; nothing of the real environment gets through.
    pub(crate) fn command(&self) -> Command {
        let mut command = bare(self.home.path(), self.workspace.path());
        command
            .args(["--provider", self.wire.provider()])
            .args((self.wire == Wire::Chat).then(|| format!("--model={}", self.wire.model())))
            .envs(self.wire.variables(&self.server.url()))
            .env("CALIBAN_RETRY_BASE_DELAY_MS", "1");
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        run(self.command().args(args))
    }
}

pub(crate) fn bare(home: &Path, workspace: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_caliban"));
    command
        .env_clear()
        .envs(caliban_testkit::counting())
        .env("HOME", home)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(workspace)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub(crate) fn run(command: &mut Command) -> Ran {
    let ran = finish(command.spawn().unwrap());
    check_frames(command, &ran);
    ran
}

pub(crate) fn run_with_input(command: &mut Command, input: &[u8]) -> Ran {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The program may stop reading early; that is its right.
    let _ = stdin.write_all(input);
    drop(stdin);
    let ran = finish(child);
    check_frames(command, &ran);
    ran
}

pub(crate) fn finish(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    let ran = Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    frames::check_recognised(&ran.stdout);
    ran
}

/// Where frames were asked for there is nothing else.
fn check_frames(command: &Command, ran: &Ran) {
    let args: Vec<_> = command.get_args().collect();
    let asked_for = args.windows(2).any(|pair| {
        pair[0] == "--output-format" && (pair[1] == "json" || pair[1] == "stream-json")
    });
    if asked_for {
        ran.stdout.lines().for_each(|line| {
            frame(line);
        });
    }
}
