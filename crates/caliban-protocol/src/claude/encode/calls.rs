//! Calls and what they come to, in the main conversation and in sub-agents'.

use std::sync::Arc;

use caliban_agent::{AnswerStep, Denial, DenialSource, Event, ToolOutput, ToolStatus};
use caliban_model::Block;
use serde_json::{Value, json};

use super::super::frame::{DeniedCall, Frame, SystemBody, User, UserMessage};
use super::super::names::theirs;
use super::super::tool_result::{prompt, result_content, structured, tool_input, tool_result};
use super::{Audience, Emitted, Encoder, MAX_CALLS, SUB_AGENTS, ShownAnswer, Synthetic, cut};

impl Encoder {
    pub(super) fn remember(&mut self, id: &Arc<str>, name: &Arc<str>, input: &Value) {
        if self.now.calls.len() < MAX_CALLS {
            let call = (Arc::clone(name), input.clone());
            self.now.calls.insert(Arc::clone(id), call);
        }
    }

    pub(super) fn task_started(&mut self, id: &str) -> Option<Emitted> {
        let (name, input) = self.now.calls.get(id)?;
        if &**name != SUB_AGENTS {
            return None;
        }
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        let description = text("description")
            .or_else(|| text("prompt"))
            .unwrap_or_default();
        let body = SystemBody::TaskStarted {
            task_id: id.to_owned(),
            tool_use_id: id.to_owned(),
            description: cut(description),
            task_type: "local_agent",
        };
        Some(self.system(body))
    }

    /// The result of a call, in the main conversation or in a sub-agent's.
    pub(super) fn finished(
        &mut self,
        id: &Arc<str>,
        name: &Arc<str>,
        output: &ToolOutput,
        denial: Option<&Denial>,
        parent: Option<&str>,
    ) -> Vec<Emitted> {
        let mut frames = Vec::new();
        let (_, input) = self
            .now
            .calls
            .remove(id)
            .unwrap_or_else(|| (Arc::clone(name), json!({})));
        if let Some(denial) = denial {
            self.now.denials.push(DeniedCall {
                name: theirs(name).to_owned(),
                id: id.to_string(),
                input: tool_input(name, &input),
            });
            if matches!(denial.source, DenialSource::Unattended | DenialSource::Rule) {
                frames.push(self.system(SystemBody::PermissionDenied {
                    tool_name: theirs(name).to_owned(),
                    tool_use_id: id.to_string(),
                    message: denial.reason.clone(),
                }));
            }
        }
        let content = result_content(output, denial);
        let block = tool_result(id, &content, output.is_error());
        let frame = Frame::User(Box::new(User {
            message: UserMessage {
                role: "user",
                content: json!([block]),
            },
            parent_tool_use_id: parent.map(str::to_owned),
            session_id: self.session_id.clone(),
            uuid: self.id(),
            tool_use_result: structured(&input, output),
            is_replay: None,
            is_synthetic: None,
        }));
        if &**name == SUB_AGENTS && denial.is_none() {
            frames.push(self.system(SystemBody::TaskNotification {
                task_id: id.to_string(),
                tool_use_id: id.to_string(),
                status: match output.status {
                    ToolStatus::Ok => "completed",
                    ToolStatus::Cancelled => "stopped",
                    ToolStatus::Failed
                    | ToolStatus::InvalidInput
                    | ToolStatus::Denied
                    | ToolStatus::CouldNotRun
                    | ToolStatus::TimedOut => "failed",
                },
                output_file: "",
                summary: cut(&output.text()),
            }));
        }
        frames.push(Emitted {
            frame: frame.value(),
            to: match parent {
                None => Audience::Both,
                Some(_) => Audience::Client,
            },
        });
        frames
    }

    /// What a sub-agent does: its calls and their results, and what it says where that is wanted.
    pub(super) fn nested(&mut self, parent: &Arc<str>, event: &Event) -> Vec<Emitted> {
        match event {
            Event::PromptAccepted { prompt: message } => {
                let mut emitted = self.user(prompt(message), Synthetic::No, Audience::Client);
                emitted.frame["parent_tool_use_id"] = parent.to_string().into();
                vec![emitted]
            }
            Event::Answer(AnswerStep::Started { model }) => {
                let answer = ShownAnswer {
                    id: format!("msg_{}", self.id().replace('-', "")),
                    model: model.to_string(),
                    ..ShownAnswer::default()
                };
                self.now.nested.insert(Arc::clone(parent), answer);
                Vec::new()
            }
            Event::Answer(AnswerStep::Measured { usage }) => {
                if let Some(answer) = self.now.nested.get_mut(parent) {
                    answer.usage = *usage;
                }
                Vec::new()
            }
            Event::Answer(AnswerStep::BlockEnded { block }) => {
                let is_call = matches!(**block, Block::ToolUse { .. });
                let Some(answer) = self.now.nested.get(parent) else {
                    return Vec::new();
                };
                if !is_call && !self.options.sub_agent_text {
                    return Vec::new();
                }
                let (id, model, usage) = (answer.id.clone(), answer.model.clone(), answer.usage);
                self.assistant(block, id, model, usage, Some(parent))
                    .into_iter()
                    .collect()
            }
            Event::ToolReady {
                id, name, input, ..
            } => {
                self.remember(id, name, input);
                Vec::new()
            }
            Event::ToolFinished {
                id,
                name,
                output,
                denial,
                ..
            } => self.finished(id, name, output, denial.as_ref(), Some(parent)),
            Event::Retrying(_) => self.frames(event),
            Event::PermissionAsked { .. }
            | Event::PermissionAnswered { .. }
            | Event::Interrupted { .. }
            | Event::Steered { .. }
            | Event::TurnStarted { .. }
            | Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::Answer(
                AnswerStep::ToolBegun { .. }
                | AnswerStep::ToolInput { .. }
                | AnswerStep::Stopped { .. },
            )
            | Event::ToolStarted { .. }
            | Event::SentOn { .. }
            | Event::HistoryReplaced { .. }
            | Event::ToolProgress { .. }
            | Event::AssistantMessage { .. }
            | Event::ToolResults { .. }
            | Event::TurnEnded { .. }
            | Event::Warning(_)
            | Event::Notice { .. }
            | Event::HookFired { .. }
            | Event::HookPassed { .. }
            | Event::CompactionStarted { .. }
            | Event::CompactionFinished { .. }
            | Event::Nested { .. }
            | Event::Finished { .. } => Vec::new(),
        }
    }
}
