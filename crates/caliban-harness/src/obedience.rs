//! Commands that are typed at the prompt, obeyed by the session itself: no model is asked unless
//! the command says so, and nothing of it joins the conversation.

use std::path::{Path, PathBuf};

use caliban_agent::{Listener, Outcome, PromptStage, PromptVerdict, RunTotals};
use caliban_context::TopicName;
use caliban_model::{CancellationToken, Message};
use caliban_permissions::Regime;
use caliban_sessions::Transcript;
use caliban_settings::PermissionMode;
use caliban_slash::{Action, Depth, ExportFormat, Known, MemoryAction, Reading};
use jiff::Zoned;
use serde_json::json;

use crate::extras::typed;
use crate::recorder::Recorder;
use crate::reports;
use crate::session::Session;

/// What a prompt is to a session.
pub(crate) enum Wish {
    /// Something for the model.
    Prompt(Message),
    /// Something that was dealt with, or cannot be.
    Done(Outcome, Box<RunTotals>),
}

impl Session {
    /// Obeys a prompt that is a command. Hooks see it first and may refuse it, as they may every
    /// prompt.
    pub(crate) async fn heed(
        &mut self,
        prompt: Message,
        told: &dyn Listener,
        cancel: &CancellationToken,
    ) -> Wish {
        let line = typed(&prompt);
        let own = |name: &str| self.knows(name);
        let names = self.commands.iter().map(caliban_context::Command::name);
        let action = match caliban_slash::read(line, own, names) {
            Reading::Prompt => return Wish::Prompt(prompt),
            Reading::Misused(message) => return self.done(Outcome::Misused { message }),
            Reading::Act(_, action) => action,
        };
        if let Some(hooks) = &self.hooks {
            let verdict = cancel
                .run_until_cancelled(hooks.before_prompt(&prompt))
                .await;
            match verdict {
                None => return self.done(Outcome::Cancelled),
                Some(PromptVerdict::Deny { reason }) => {
                    return self.done(Outcome::HookDenied { reason });
                }
                // What hooks add is for the model, which is not asked.
                Some(
                    PromptVerdict::Accept
                    | PromptVerdict::AcceptWith(_)
                    | PromptVerdict::Replace { .. },
                ) => {}
            }
        }
        match action {
            Action::Compact { instructions } => {
                let hint = instructions.as_deref();
                let (outcome, totals) = self.condense(hint, told, cancel).await;
                Wish::Done(outcome, Box::new(totals))
            }
            Action::Recap => {
                let (outcome, totals) = self.recap(told, cancel).await;
                Wish::Done(outcome, Box::new(totals))
            }
            Action::Clear => {
                self.agent.clear(&mut self.conversation, told).await;
                let text = "The conversation begins anew.".to_owned();
                self.done(Outcome::Obeyed { text })
            }
            action => match self.obey(action).await {
                Ok(text) => self.done(Outcome::Obeyed { text }),
                Err(message) => self.done(Outcome::Misused { message }),
            },
        }
    }

    fn done(&self, outcome: Outcome) -> Wish {
        Wish::Done(outcome, Box::new(self.totals.clone()))
    }

    /// Whether a word after a slash means something that is not built in: a command, a prompt of
    /// a server, or simply a path.
    fn knows(&self, name: &str) -> Known {
        let is_known = self.commands.get(name).is_some()
            || name.starts_with("mcp__")
            || Path::new("/").join(name).exists();
        if is_known { Known::Yes } else { Known::No }
    }

    async fn obey(&self, action: Action) -> Result<String, String> {
        Ok(match action {
            Action::Help => reports::help(&self.commands),
            Action::Model(None) => self.model(),
            Action::Model(Some(model)) => {
                self.dial()?.set_model(model.into());
                self.model()
            }
            Action::Effort(None) => self.effort()?,
            Action::Effort(Some(reasoning)) => {
                self.dial()?.set_reasoning(reasoning);
                self.effort()?
            }
            Action::Status => reports::status(self),
            Action::Cost => reports::cost(&self.totals, self.before()),
            Action::Usage => reports::usage(&self.totals, self.before()),
            Action::Context => reports::context(self),
            Action::Plan => self.toggle_plan(),
            Action::Permissions => reports::permissions(&self.gate),
            Action::Export { path, format } => self.export(path, format)?,
            Action::Memory(action) => self.memory(&action)?,
            Action::Skills => reports::listed(&self.inventory.skills, "no skills"),
            Action::OutputStyle => reports::styles(&self.inventory),
            Action::Hooks => match self.hooks.as_ref().map(|hooks| hooks.listed()) {
                Some(hooks) if !hooks.is_empty() => hooks.join("\n"),
                Some(_) | None => "no hooks".to_owned(),
            },
            Action::Mcp => reports::servers(&caliban_session::Engine::facts(self).servers),
            Action::Doctor(depth) => self.examine(depth).await?,
            // These need more than a look at the session.
            Action::Compact { .. } | Action::Recap | Action::Clear => String::new(),
        })
    }

    fn before(&self) -> reports::Before {
        let recorder = self.recorder.as_ref();
        recorder.map_or_else(Default::default, Recorder::before)
    }

    fn dial(&self) -> Result<&caliban_agent::Dial, String> {
        self.agent
            .dial
            .as_ref()
            .ok_or_else(|| "the model of this session cannot be changed".to_owned())
    }

    fn model(&self) -> String {
        let model = match &self.agent.dial {
            Some(dial) => dial.read().model,
            None => self.agent.settings.model.clone(),
        };
        format!("model: {model} ({})", self.agent.provider.id())
    }

    fn effort(&self) -> Result<String, String> {
        Ok(format!(
            "effort: {}",
            reports::reasoning(self.dial()?.read().reasoning)
        ))
    }

    /// The operator's own switch: what he turned on the model cannot turn off.
    fn toggle_plan(&self) -> String {
        if self.gate.regime() == Regime::Rules(PermissionMode::Plan) {
            self.gate.leave_plan();
            "Plan mode is off.".to_owned()
        } else {
            self.gate.set_mode(PermissionMode::Plan);
            "Plan mode is on: only tools that change nothing may run.".to_owned()
        }
    }

    fn export(&self, path: Option<PathBuf>, format: ExportFormat) -> Result<String, String> {
        let facts = caliban_session::Engine::facts(self);
        let messages = self.conversation.messages();
        let (text, extension) = match format {
            ExportFormat::Markdown => {
                let transcript = Transcript {
                    title: "Session",
                    about: format!("{} · {}/{}", facts.session_id, facts.provider, facts.model),
                    messages,
                };
                (transcript.markdown(), "md")
            }
            ExportFormat::Json => {
                let document = json!({
                    "session_id": facts.session_id,
                    "provider": facts.provider,
                    "model": facts.model,
                    "cwd": facts.cwd,
                    "messages": messages,
                });
                (format!("{document:#}\n"), "json")
            }
        };
        let named = path.unwrap_or_else(|| {
            let today = Zoned::now().strftime("%Y-%m-%d").to_string();
            PathBuf::from(format!("caliban-session-{today}.{extension}"))
        });
        let path = self.agent.workspace.root().join(named);
        // What was there is not ours to replace.
        std::fs::File::create_new(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
            .map_err(|error| format!("`{}` cannot be written: {error}", path.display()))?;
        Ok(format!("The conversation is in `{}`.", path.display()))
    }

    fn memory(&self, action: &MemoryAction) -> Result<String, String> {
        if let MemoryAction::List = action {
            return Ok(reports::memory(&self.inventory));
        }
        let notes = self.inventory.notes.as_ref();
        let notes = notes.ok_or("this session keeps no notes")?;
        let named = |topic: &str| {
            topic
                .parse::<TopicName>()
                .map_err(|error| error.to_string())
        };
        match action {
            MemoryAction::List => Ok(String::new()),
            MemoryAction::Show { topic } => {
                let topic = notes
                    .read(&named(topic)?)
                    .map_err(|error| error.to_string())?;
                Ok(topic.body().to_owned())
            }
            MemoryAction::Remove { topic } => match notes.remove(&named(topic)?) {
                Ok(true) => Ok(format!("The topic `{topic}` is gone.")),
                Ok(false) => Err(format!("there is no topic `{topic}`")),
                Err(error) => Err(error.to_string()),
            },
            MemoryAction::RebuildIndex => {
                let topics = notes.rebuild_index().map_err(|error| error.to_string())?;
                Ok(format!("The index lists {} topics.", topics.topics.len()))
            }
        }
    }

    async fn examine(&self, depth: Depth) -> Result<String, String> {
        match &self.examiner {
            Some(examiner) => Ok(examiner.examine(depth).await),
            None => Err("`/doctor` is not at hand here: use `caliban doctor`".to_owned()),
        }
    }
}
