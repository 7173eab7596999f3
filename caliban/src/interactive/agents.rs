//! Agents in the background, as the face shows them.

use std::ffi::OsString;
use std::path::PathBuf;

use async_stream::try_stream;
use caliban_tui::{AgentAnswer, AgentChange, AgentRow, AgentsDesk};
use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::args::QuestionAnswer;
use crate::fleet::{Fleet, executable, row};
use crate::interactive::desk::ProgramDesk;

impl AgentsDesk for ProgramDesk {
    fn agents(&self) -> BoxStream<'static, Result<Vec<AgentRow>, String>> {
        let (options, configuration) = (self.options.clone(), self.configuration.clone());
        Box::pin(try_stream! {
            let fleet = Fleet::new(&options, &configuration);
            let mut watching = fleet.watching().await.map_err(|error| error.to_string())?;
            while let Some(agents) = watching.next().await.map_err(|error| error.to_string())? {
                yield agents.iter().map(row).collect();
            }
            Err("the daemon has ended; open this again")?;
        })
    }

    fn change_agent(&self, change: AgentChange) -> BoxFuture<'static, Result<String, String>> {
        let (options, configuration) = (self.options.clone(), self.configuration.clone());
        async move {
            let fleet = Fleet::new(&options, &configuration);
            let done = match change {
                AgentChange::Stop { id } => fleet.stopped(&id).await,
                AgentChange::Answer {
                    id,
                    question,
                    answer,
                } => {
                    let answer = match answer {
                        AgentAnswer::Allow => QuestionAnswer::Allow,
                        AgentAnswer::AllowSession => QuestionAnswer::AllowSession,
                        AgentAnswer::Deny => QuestionAnswer::Deny,
                    };
                    fleet.answered(&id, &question, answer, None).await
                }
            };
            done.map(|text| text.trim_end().to_owned())
                .map_err(|error| error.to_string())
        }
        .boxed()
    }

    fn agent_log(&self, id: &str) -> Result<String, String> {
        let fleet = Fleet::new(&self.options, &self.configuration);
        let (text, _) = fleet.conversation(id).map_err(|error| error.to_string())?;
        if text.is_empty() {
            return Err(format!("{id} has no conversation yet"));
        }
        Ok(text)
    }

    fn attachment(&self, id: &str) -> (PathBuf, Vec<OsString>) {
        (executable(), vec!["attach".into(), id.into()])
    }
}
