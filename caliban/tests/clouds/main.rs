//! Cloud platforms through the built binary: whole tool loops, logins of every kind, refusals.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may panic, and say that it is skipped"
)]

mod counterparts;
mod dialect;
mod failures;
mod gateway;
mod logins;
mod loops;
mod matrix;
mod models;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use caliban_testkit::{After, BlockingServer, Recorded, Reply, Script};
use serde_json::{Value, json};
use support::{Ran, bare, run};

/// A home, a workspace, and a server that is every platform at once.
struct Cloud {
    home: tempfile::TempDir,
    workspace: tempfile::TempDir,
    server: BlockingServer,
}

impl Cloud {
    fn new(script: Script) -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            workspace: tempfile::tempdir().unwrap(),
            server: BlockingServer::start(script).unwrap(),
        }
    }

    /// The binary in an empty home, with no machine to ask about itself.
    fn command(&self) -> Command {
        let mut command = bare(self.home.path(), self.workspace.path());
        command
            .env("CALIBAN_RETRY_BASE_DELAY_MS", "1")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("GCE_METADATA_HOST", "127.0.0.1:9");
        command
    }

    fn bedrock(&self) -> Command {
        let mut command = self.command();
        command
            .args(["--provider", "bedrock"])
            .env("AWS_REGION", "us-east-1")
            .env("ANTHROPIC_BEDROCK_BASE_URL", self.server.url());
        command
    }

    fn signed(&self) -> Command {
        let mut command = self.bedrock();
        command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env(
            "AWS_SECRET_ACCESS_KEY",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        );
        command
    }

    /// With the login of a person, kept by `gcloud`.
    fn vertex(&self) -> Command {
        self.write_home(
            ".config/gcloud/application_default_credentials.json",
            &json!({
                "type": "authorized_user",
                "client_id": "client",
                "client_secret": "hush",
                "refresh_token": "again",
                "token_uri": format!("{}/token", self.server.url()),
                "quota_project_id": "payer",
            })
            .to_string(),
        );
        let mut command = self.command();
        command
            .args(["--provider", "vertex"])
            .env("ANTHROPIC_VERTEX_PROJECT_ID", "my-project")
            .env("ANTHROPIC_VERTEX_BASE_URL", self.server.url());
        command
    }

    fn azure(&self) -> Command {
        let mut command = self.command();
        command
            .args(["--provider", "azure"])
            .env("AZURE_OPENAI_ENDPOINT", self.server.url())
            .env(
                "ANTHROPIC_FOUNDRY_BASE_URL",
                format!("{}/anthropic", self.server.url()),
            )
            .env("AZURE_OPENAI_API_KEY", "azure-key");
        command
    }

    fn write_home(&self, path: &str, text: &str) {
        write(&self.home.path().join(path), text);
    }

    fn config(&self, text: &str) {
        self.write_home(".config/caliban/caliban.toml", text);
    }

    /// The calls to models.
    fn calls(&self) -> Vec<Recorded> {
        self.server.model_requests()
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The answer to who asks for a token.
fn token(secret: &str) -> Value {
    json!({"access_token": secret, "expires_in": 3600, "token_type": "Bearer"})
}

/// A script that answers once.
fn answer() -> Script {
    Script::new([Reply::text("hello")]).after(After::RepeatLast)
}

/// A prompt, and the one frame that tells of it.
fn ask(command: &mut Command) -> (Ran, Value) {
    let ran = run(command.args(["-p", "hi", "--output-format", "json"]));
    let result = ran.stdout.lines().last().unwrap_or_default();
    let result = serde_json::from_str(result).unwrap_or_default();
    (ran, result)
}
