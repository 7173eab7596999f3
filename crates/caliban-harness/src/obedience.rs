//! Commands that are typed at the prompt, obeyed by the session itself: no model is asked unless
//! the command says so, and nothing of it joins the conversation.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use caliban_agent::{Listener, Outcome, PromptStage, PromptVerdict, RunTotals};
use caliban_context::TopicName;
use caliban_model::{CancellationToken, Message, ProviderKind, Reasoning};
use caliban_permissions::{Latch, Regime};
use caliban_session::{Others, Restore, Rewind};
use caliban_settings::PermissionMode;
use caliban_slash::{
    Action, Depth, Existing, Known, MemoryAction, Reading, RewindAction, Rewinding, TakenBack,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::accounts;
use crate::extras::typed;
use crate::recorder::Recorder;
use crate::reported;
use crate::reports;
use crate::sandbox_report;
use crate::session::Session;
use crate::window_report;

/// How long a provider may take to list its models.
const LIST_PATIENCE: Duration = Duration::from_secs(3);
/// What `/effort` takes.
const LEVELS: &str = "levels: low, medium, high, xhigh, max, auto, off";

/// What a prompt is to a session.
pub(crate) enum Wish {
    /// Something for the model.
    Prompt(Message),
    /// Something that was dealt with, or cannot be.
    Done(Outcome, Box<RunTotals>),
}

/// Why a command was not obeyed.
pub(crate) enum Unobeyed {
    /// It asks for what cannot be; another command may do.
    Misused(String),
    /// It was right, and what it needs failed.
    Failed(String),
}

impl From<String> for Unobeyed {
    fn from(reason: String) -> Self {
        Self::Misused(reason)
    }
}

impl From<Unobeyed> for Outcome {
    fn from(reason: Unobeyed) -> Self {
        match reason {
            Unobeyed::Misused(message) => Self::Misused { message },
            Unobeyed::Failed(message) => Self::Internal { message },
        }
    }
}

impl Session {
    /// Obeys a prompt that is a command. Hooks see it first, one that does not exist too, and may
    /// refuse it or put another in its place, as they may every prompt.
    pub(crate) async fn heed(
        &mut self,
        prompt: Message,
        told: &dyn Listener,
        cancel: &CancellationToken,
    ) -> Wish {
        let mut reading = self.read(typed(&prompt));
        // A review becomes a prompt of ours where those of others become theirs, after hooks.
        if let Reading::Prompt | Reading::Act(_, Action::Review) = reading {
            return Wish::Prompt(prompt);
        }
        if let Some(hooks) = &self.hooks {
            let verdict = cancel
                .run_until_cancelled(hooks.before_prompt(&prompt))
                .await;
            match verdict {
                None => return self.done(Outcome::Cancelled),
                Some(PromptVerdict::Deny { reason }) => {
                    return self.done(Outcome::HookDenied { reason });
                }
                Some(PromptVerdict::Replace { prompt, .. }) => {
                    reading = self.read(&prompt);
                    if let Reading::Prompt | Reading::Act(_, Action::Review) = reading {
                        return Wish::Prompt(Message::user(prompt));
                    }
                }
                // What hooks add is for the model, which is not asked.
                Some(PromptVerdict::Accept | PromptVerdict::AcceptWith(_)) => {}
            }
        }
        let action = match reading {
            Reading::Misused(message) => return self.done(Outcome::Misused { message }),
            Reading::Prompt => return Wish::Prompt(prompt),
            Reading::Act(_, action) => action,
        };
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
            Action::Aside { question } => {
                let (outcome, totals) = self.aside(&question, told, cancel).await;
                Wish::Done(outcome, Box::new(totals))
            }
            Action::Repeat(repetition) => {
                let (outcome, totals) = self.repeat(repetition, told, cancel).await;
                Wish::Done(outcome, Box::new(totals))
            }
            Action::Clear => {
                let system = self.restyled();
                self.agent.clear(&mut self.conversation, system, told).await;
                self.done(Outcome::obeyed("The conversation begins anew."))
            }
            Action::Rewind(RewindAction::Do(rewinding)) => {
                let (outcome, totals) = self.rewind(rewind(rewinding), told, cancel).await;
                Wish::Done(outcome, Box::new(totals))
            }
            action => match cancel
                .run_until_cancelled(Box::pin(self.obey(action)))
                .await
            {
                None => self.done(Outcome::Cancelled),
                Some(Ok((text, report))) => {
                    let report = report.map(Box::new);
                    self.done(Outcome::Obeyed { text, report })
                }
                Some(Err(reason)) => self.done(reason.into()),
            },
        }
    }

    fn read(&self, line: &str) -> Reading {
        let own = |name: &str| self.knows(name);
        let names = self.commands.iter().map(caliban_context::Command::name);
        caliban_slash::read(line, own, names)
    }

    fn done(&self, outcome: Outcome) -> Wish {
        Wish::Done(outcome, Box::new(self.totals.clone()))
    }

    /// Whether a word after a slash means something that is not built in: a command, a prompt of
    /// a server, or simply a path.
    fn knows(&self, name: &str) -> Known {
        let begins_a_plugins = |command: &caliban_context::Command| {
            let plugin = command.name().split_once(':').map(|(plugin, _)| plugin);
            plugin == Some(name)
        };
        let is_known = self.commands.get(name).is_some()
            || self.commands.iter().any(begins_a_plugins)
            || name.starts_with("mcp__")
            || Path::new("/").join(name).exists();
        if is_known { Known::Yes } else { Known::No }
    }

    /// What a command has to say, and the same for programs where they ask for it.
    async fn obey(&self, action: Action) -> Result<(String, Option<Value>), Unobeyed> {
        let (command, text, report) = match action {
            Action::Model(None) => {
                let (text, report) = self.models().await;
                ("model", text, report)
            }
            Action::Status => ("status", reports::status(self), reported::status(self)),
            Action::Cost => {
                let text = accounts::cost(self.before(), self);
                let report = accounts::cost_report(self.before(), self);
                ("cost", text, report)
            }
            Action::Usage => {
                let text = accounts::usage(&self.totals, self.before(), self);
                let report = accounts::usage_report(&self.totals, self.before(), self);
                ("usage", text, report)
            }
            Action::Context => {
                let report = self.window_report();
                let text = window_report::told(&report, accounts::written(self));
                ("context", text, json!(report))
            }
            Action::Memory(MemoryAction::List) => {
                let text = reports::memory(&self.inventory);
                ("memory", text, reported::memory(&self.inventory))
            }
            Action::Skills => {
                let text = reports::listed(&self.inventory.skills, "no skills");
                ("skills", text, reported::skills(&self.inventory))
            }
            Action::Agents => {
                let text = reports::profiles(&self.inventory);
                ("agents", text, reported::profiles(&self.inventory))
            }
            Action::Plugins => {
                let text = reports::listed(&self.inventory.plugins, "no plugins");
                ("plugins", text, reported::plugins(&self.inventory))
            }
            Action::Hooks => {
                let hooks = self.hooks.as_deref();
                ("hooks", reports::hooks(hooks), reported::hooks(hooks))
            }
            Action::Mcp => {
                let text = reports::servers(&caliban_session::Engine::facts(self).servers);
                ("mcp", text, reported::servers(self))
            }
            Action::Sandbox => {
                let report = sandbox_report::report(self);
                ("sandbox", sandbox_report::told(&report), json!(report))
            }
            action => return self.act(action).await.map(|text| (text, None)),
        };
        Ok((text, Some(reported::of(command, report))))
    }

    /// What a command has to say that reports nothing but words.
    async fn act(&self, action: Action) -> Result<String, Unobeyed> {
        Ok(match action {
            Action::Help => reports::help(&self.commands, &self.server_prompts),
            Action::System => self.system_prompt(),
            Action::Model(Some(model)) => {
                let model = self.models.meant(model);
                self.models.check(&model)?;
                self.check_vendor(&model).await?;
                self.dial()?.set_model(model.into());
                self.keep_choice();
                self.model()
            }
            Action::Effort(None) => format!("{}\n\n{LEVELS}", self.effort()?),
            Action::Effort(Some(reasoning)) => {
                self.dial()?.set_reasoning(reasoning);
                self.keep_choice();
                self.effort()?
            }
            Action::Plan => self.toggle_plan(),
            Action::Permissions => {
                let options = self.watch.as_ref().map(|watch| watch.options());
                let latch = options.map_or(Latch::Absent, |options| options.permissions.latch);
                reports::permissions(&self.gate, latch)
            }
            Action::Export { path, format } => self.export(path, format)?,
            Action::Memory(action) => self.memory(&action)?,
            Action::OutputStyle => reports::styles(&self.inventory),
            Action::Doctor(depth) => self.examine(depth).await?,
            Action::Draft(existing) => self.draft(existing).await?,
            Action::Diff => self.diff().await?,
            Action::Rename { title } => self.rename(&title).await?,
            Action::Fork { name } => self.fork(name).await?,
            Action::Rewind(RewindAction::List) => self.rewind_points()?,
            Action::Rewind(RewindAction::Preview(rewinding)) => {
                self.rewind_preview(rewind(rewinding))?
            }
            Action::AddDirectory { path } => self.add_directory(&path)?,
            Action::Tasks => self.tasks(),
            Action::Trust => self.trust()?,
            Action::Config { text } => match &self.examiner {
                Some(examiner) => reports::with(&examiner.settings()?, text.as_deref())?,
                None => return Err("use `caliban config print`".to_owned().into()),
            },
            Action::Feedback { text } => self.give_feedback(&text).await?,
            // These need more than a look at the session, or report more than words.
            Action::Model(None)
            | Action::Status
            | Action::Cost
            | Action::Usage
            | Action::Context
            | Action::Skills
            | Action::Agents
            | Action::Plugins
            | Action::Hooks
            | Action::Mcp
            | Action::Sandbox
            | Action::Compact { .. }
            | Action::Recap
            | Action::Aside { .. }
            | Action::Repeat(_)
            | Action::Review
            | Action::Rewind(RewindAction::Do(_))
            | Action::Clear => String::new(),
        })
    }

    fn before(&self) -> accounts::Before {
        let recorder = self.recorder.as_ref();
        recorder.map_or_else(Default::default, Recorder::before)
    }

    fn dial(&self) -> Result<&caliban_agent::Dial, String> {
        self.agent
            .dial
            .as_ref()
            .ok_or_else(|| "the model of this session cannot be changed".to_owned())
    }

    fn system_prompt(&self) -> String {
        let texts: Vec<String> = self.system_messages().map(|it| it.text()).collect();
        if texts.is_empty() {
            return "there is no system prompt".to_owned();
        }
        texts.join("\n\n")
    }

    fn current_model(&self) -> Arc<str> {
        match &self.agent.dial {
            Some(dial) => dial.read().model,
            None => Arc::clone(&self.agent.settings.model),
        }
    }

    fn model(&self) -> String {
        let provider = self.agent.provider.id();
        format!("model: {} ({provider})", self.current_model())
    }

    /// The model and what else there is: what the provider offers this account, or, if it does not
    /// say in time, those whose prices are known.
    async fn models(&self) -> (String, Value) {
        let provider = &self.agent.provider;
        let (mut names, source) = match timeout(LIST_PATIENCE, provider.models()).await {
            Ok(Ok(models)) if !models.is_empty() => {
                let names: Vec<String> = models.into_iter().map(|model| model.id).collect();
                (names, "offered to this account")
            }
            Ok(_) | Err(_) => {
                let ledger = self.agent.ledger.lock();
                let ledger = ledger.unwrap_or_else(PoisonError::into_inner);
                let known = ledger.card().models(provider.id());
                let names = known.map(str::to_owned).collect();
                (names, "known; the provider did not say which it offers")
            }
        };
        self.models.keep(&mut names, String::as_str);
        let report = json!({
            "provider": provider.id(),
            "model": self.current_model(),
            "effort": reports::reasoning(self.reasoning()),
            "models": names,
            "source": source,
        });
        let text = reports::models(&self.model(), &self.current_model(), names, source);
        (text, report)
    }

    /// A model of another vendor answers only where the provider says that it has it, as gateways
    /// do: the session goes on with its provider.
    async fn check_vendor(&self, model: &str) -> Result<(), String> {
        let provider = &self.agent.provider;
        let Ok(own) = provider.id().parse::<ProviderKind>() else {
            return Ok(());
        };
        let Some(vendor) = ProviderKind::of_model(model).filter(|vendor| *vendor != own) else {
            return Ok(());
        };
        if own.is_cloud() {
            return Ok(());
        }
        let offered = timeout(LIST_PATIENCE, provider.models()).await;
        match offered {
            Ok(Ok(models)) if models.iter().any(|listed| listed.id == model) => Ok(()),
            Ok(_) | Err(_) => Err(format!(
                "`{model}` is a model of {}, and {} answers in this session; start caliban with `--model {model}` to change to it",
                vendor.as_str(),
                own.as_str(),
            )),
        }
    }

    /// How hard the model thinks.
    pub(crate) fn reasoning(&self) -> Reasoning {
        let dial = self.agent.dial.as_ref();
        dial.map_or(self.agent.settings.reasoning, |dial| dial.read().reasoning)
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
            self.keep_choice();
            "Plan mode is off.".to_owned()
        } else {
            self.gate.set_mode(PermissionMode::Plan);
            self.keep_choice();
            "Plan mode is on: only tools that change nothing may run.".to_owned()
        }
    }

    /// A choice of the operator counts when the session is resumed, whether a prompt follows or not.
    fn keep_choice(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.note_choice(&self.agent, self.conversation.messages());
        }
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

/// What was typed, as the session knows it.
fn rewind(rewinding: Rewinding) -> Rewind {
    Rewind {
        to: rewinding.to,
        what: match rewinding.what {
            TakenBack::Both => Restore::Both,
            TakenBack::Code => Restore::Code,
            TakenBack::Conversation => Restore::Conversation,
            TakenBack::SummarizeFrom => Restore::SummarizeFrom,
            TakenBack::SummarizeUpTo => Restore::SummarizeUpTo,
        },
        others: match rewinding.changed {
            Existing::Kept => Others::Spared,
            Existing::Replaced => Others::Overwritten,
        },
    }
}
