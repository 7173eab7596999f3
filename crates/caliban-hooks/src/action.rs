//! What a handler does, and doing it.

use std::io;
use std::time::Duration;

use caliban_process::{Exit, SignalNumber};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::command::{Confinement, OwnVariables, Program, Surroundings};
use crate::http::Endpoint;
use crate::runner::{AgentCall, McpCall, PromptCall, Runners};

/// What a handler does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    Command(Program, Confinement, OwnVariables),
    Http(Endpoint),
    /// An HTTP handler that may not be called.
    Refused {
        label: String,
        reason: String,
    },
    Mcp {
        server: String,
        tool: String,
    },
    Prompt {
        prompt: String,
        model: Option<String>,
        schema: Option<Value>,
    },
    Agent {
        agent: Option<String>,
        prompt: String,
    },
}

/// What a handler said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// A program ended by itself.
    Exit {
        code: i32,
        stdout: String,
        stderr: String,
    },
    /// An answer that is a JSON object, or nothing.
    Body(String),
    /// What a model answered.
    Opinion(String),
}

/// Why a handler said nothing that counts.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("it could not be started: {0}; check that it exists and is executable")]
    Start(#[source] io::Error),
    #[error("it could not be run (exit code {code}){}", said(stderr))]
    NotRunnable { code: i32, stderr: String },
    #[error("it was killed by signal {0}")]
    Killed(i32),
    #[error("it took longer than {0:?}; raise its `timeout` if it needs more")]
    TimedOut(Duration),
    #[error(transparent)]
    Http(#[from] crate::http::HttpError),
    #[error("{0}")]
    Refused(String),
    #[error("this session cannot run handlers of type `{0}`")]
    NoRunner(&'static str),
    #[error("{0}")]
    Runner(String),
}

/// The shell's codes for a program that it found but could not run, or did not find. The operator
/// meant it to decide, so this is no decision.
const NOT_RUNNABLE: [i32; 2] = [126, 127];

impl Action {
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Command(..) => "command",
            Self::Http(_) | Self::Refused { .. } => "http",
            Self::Mcp { .. } => "mcp",
            Self::Prompt { .. } => "prompt",
            Self::Agent { .. } => "agent",
        }
    }

    /// What to call it in messages.
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Command(program, ..) => shortened(program.label()),
            Self::Http(endpoint) => endpoint.label(),
            Self::Refused { label, .. } => label.clone(),
            Self::Mcp { server, tool } => format!("{server}/{tool}"),
            Self::Prompt { prompt, .. } | Self::Agent { prompt, .. } => shortened(prompt),
        }
    }

    /// Does it, within the limit. Dropping the future stops it.
    pub(crate) async fn run(
        &self,
        event: &Value,
        limit: Duration,
        surroundings: &Surroundings,
        runners: &Runners,
    ) -> Result<Reply, Failure> {
        let deadline = Instant::now() + limit;
        let reply = self.reply(event, deadline, surroundings, runners);
        // Behind a pointer, since every caller would carry its size otherwise.
        timeout_at(deadline, Box::pin(reply))
            .await
            .unwrap_or(Err(Failure::TimedOut(limit)))
    }

    async fn reply(
        &self,
        event: &Value,
        deadline: Instant,
        surroundings: &Surroundings,
        runners: &Runners,
    ) -> Result<Reply, Failure> {
        match self {
            Self::Command(program, confinement, own) => {
                let mut input = event.to_string();
                input.push('\n');
                let finished = program
                    .run(*confinement, own, surroundings, input.as_bytes())
                    .await
                    .map_err(|error| Failure::Start(error.into()))?;
                let stderr = String::from_utf8_lossy(&finished.stderr).into_owned();
                match Exit::from(finished.status) {
                    Exit::Signal(SignalNumber(signal)) => Err(Failure::Killed(signal)),
                    Exit::Code(code) if NOT_RUNNABLE.contains(&code) => {
                        Err(Failure::NotRunnable { code, stderr })
                    }
                    Exit::Code(code) => Ok(Reply::Exit {
                        code,
                        stdout: String::from_utf8_lossy(&finished.stdout).into_owned(),
                        stderr,
                    }),
                }
            }
            Self::Http(endpoint) => {
                let body = endpoint.post(event.to_string().into_bytes()).await?;
                Ok(Reply::Body(body))
            }
            Self::Refused { reason, .. } => Err(Failure::Refused(reason.clone())),
            Self::Mcp { server, tool } => {
                let runner = runners.mcp.as_ref().ok_or(Failure::NoRunner("mcp"))?;
                let call = McpCall {
                    server,
                    tool,
                    event,
                    deadline,
                };
                let text = runner.call(call).await.map_err(Failure::Runner)?;
                Ok(Reply::Body(text))
            }
            Self::Prompt {
                prompt,
                model,
                schema,
            } => {
                let runner = runners.prompt.as_ref().ok_or(Failure::NoRunner("prompt"))?;
                let call = PromptCall {
                    prompt,
                    model: model.as_deref(),
                    schema: schema.as_ref(),
                    event,
                    deadline,
                };
                let text = runner.ask(call).await.map_err(Failure::Runner)?;
                Ok(Reply::Opinion(text))
            }
            Self::Agent { agent, prompt } => {
                let runner = runners.agent.as_ref().ok_or(Failure::NoRunner("agent"))?;
                let call = AgentCall {
                    agent: agent.as_deref(),
                    prompt,
                    event,
                    deadline,
                };
                runner.run(call).await.map_err(Failure::Runner)?;
                // What it did is what it was for; nobody waits for what it says.
                Ok(Reply::Body(String::new()))
            }
        }
    }
}

/// The beginning of a text, on one line.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut shown = String::new();
    for letter in text.chars().take(SHOWN) {
        shown.push(if letter.is_control() { ' ' } else { letter });
    }
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

fn said(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        text => format!(": {}", shortened(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_short_and_on_one_line() {
        assert_eq!(shortened("a\nb"), "a b");
        let label = shortened(&"é".repeat(200));
        assert_eq!(label.chars().count(), 81);
    }
}
