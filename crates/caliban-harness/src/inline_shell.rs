//! Runs the shell commands that the text of a command has in it, each judged like a call of the
//! model's, and puts what they say in their place.

use std::sync::Arc;

use caliban_agent::{
    Company, Details, Opinion, Progress, SharedOperator, Tool, ToolCall, ToolContext, ToolStatus,
    Workspace,
};
use caliban_context::{Expansion, Part};
use caliban_model::CancellationToken;
use serde_json::json;
use uuid::Uuid;

/// The most shell commands of one command, and the most that is kept of what one says, in bytes.
const MOST: usize = 32;
const OUTPUT: usize = 30_000;

/// Who runs them.
#[derive(Debug, Clone)]
pub(crate) struct InlineShell {
    /// The shell, where the session has one.
    pub(crate) tool: Option<Arc<dyn Tool>>,
    pub(crate) operator: SharedOperator,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) session_id: Arc<str>,
}

impl InlineShell {
    /// The prompt, with what the shell commands said; the error is why it cannot be had.
    pub(crate) async fn filled(
        &self,
        expansion: &Expansion,
        company: &Company,
    ) -> Result<String, String> {
        let count = expansion.scripts().count();
        if count > MOST {
            let name = &expansion.command;
            return Err(format!(
                "`/{name}` has {count} shell commands in it, and {MOST} is the most"
            ));
        }
        let mut prompt = String::new();
        for part in &expansion.parts {
            match part {
                Part::Text(text) => prompt.push_str(text),
                Part::Shell(script) => {
                    let said = self.run(script, company).await;
                    let name = &expansion.command;
                    let said = said.map_err(|reason| {
                        format!("`/{name}` runs `{script}` in its text, which is refused: {reason}")
                    })?;
                    prompt.push_str(&said);
                }
            }
        }
        Ok(prompt)
    }

    async fn run(&self, script: &str, company: &Company) -> Result<String, String> {
        let tool = self.tool.as_ref().ok_or("this session has no shell")?;
        let input = json!({ "command": script });
        let call = ToolCall {
            id: Arc::from(format!("inline-{}", Uuid::new_v4())),
            agent: None,
            name: Arc::from(tool.spec().name.as_str()),
            first_arg: tool.first_arg(&input),
            input,
            effect: tool.effect(),
            turn: 0,
            opinion: Opinion::None,
        };
        let permitted = company.permit_aside(&call, self.operator.as_ref()).await;
        let input = permitted.map_err(|denial| match denial.remedy {
            Some(remedy) => format!("{}; {remedy}", denial.reason),
            None => denial.reason,
        })?;
        let context = ToolContext {
            call_id: Arc::clone(&call.id),
            session_id: Arc::clone(&self.session_id),
            workspace: Arc::clone(&self.workspace),
            reading: company.gate.reading(&call),
            // Whoever cancels the run drops this.
            cancel: CancellationToken::new(),
            progress: Progress::silent(),
            trace: None,
        };
        let output = tool.run(input, context).await;
        match output.status {
            ToolStatus::Denied | ToolStatus::InvalidInput | ToolStatus::CouldNotRun => {
                Err(output.text())
            }
            // What went wrong is for the model to read; that nothing did goes without saying.
            _ => {
                let text = output.text();
                let said = match &output.details {
                    Some(Details::Command {
                        exit_code: Some(0),
                        note,
                    }) => text.trim_end().strip_suffix(note.trim_end()),
                    _ => None,
                };
                Ok(bounded(said.unwrap_or(&text).trim_end()))
            }
        }
    }
}

fn bounded(text: &str) -> String {
    let end = text.floor_char_boundary(OUTPUT);
    match text.len() - end {
        0 => text.to_owned(),
        beyond => format!("{}\n[{beyond} bytes left out]", &text[..end]),
    }
}
