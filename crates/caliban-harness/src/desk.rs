//! What can be looked up in a session while it lives, for faces that show it.

use std::path::PathBuf;
use std::sync::Arc;

use caliban_agent::{Dial, PromptStage, PromptVerdict, Toolbox};
use caliban_checkpoints::History;
use caliban_context::{NoteStore, Topic, TopicName};
use caliban_hooks::{ExternalHooks, HandlerReport};
use caliban_mcp::{ServerStatus, Servers, Status};
use caliban_model::{Effect, Message, Provider, Reasoning, Role, nearest};
use caliban_permissions::{Judge, Origin, Rule, RuleBook};
use caliban_settings::{RuleAction, RuleSpec};
use caliban_tools::{Jobs, ListedJob};
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::checkpoints::Checkpoints;
use crate::config_watch::ConfigWatch;
use crate::gate::Gate;
use crate::inventory::{Inventory, Listed, ListedProfile};
use crate::mcp::status_name;
use crate::model_list::ModelList;
use crate::recorder::Recorder;
use crate::reports::fired;
use crate::rewinding::{Rewinder, prompt_after};
use crate::session::Session;
use crate::switches::Switches;

/// A session, for those who look. It changes nothing.
#[derive(Debug, Clone)]
pub struct SessionDesk {
    jobs: Option<Arc<Jobs>>,
    gate: Arc<Gate>,
    tools: Toolbox,
    provider: Arc<dyn Provider>,
    rewinder: Option<Rewinder>,
    /// What was said before, without what the model is told first.
    pub past: Vec<Arc<Message>>,
    /// What the model is told first.
    pub system: String,
    /// How the session can be opened again; nothing where it is not kept.
    pub name: Option<String>,
    recorder: Option<Recorder>,
    servers: Option<Servers>,
    switches: Arc<Switches>,
    inventory: Arc<Inventory>,
    hooks: Option<Arc<ExternalHooks>>,
    dial: Option<Dial>,
    reasoning: Reasoning,
    /// The models that may be chosen.
    pub models: ModelList,
    pub earlier: Earlier,
    watch: Option<Arc<ConfigWatch>>,
}

/// What a session came to before this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Earlier {
    pub turns: u64,
    pub cost: Decimal,
    /// Tokens that its conversation takes of the model's window, by estimate.
    pub used: u64,
}

/// An MCP server as it stands. Names, reasons and instructions are its own words, cleaned and
/// bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerView {
    pub name: String,
    /// In the words that frames use.
    pub status: &'static str,
    /// Why it is not there, or what it says it is.
    pub about: String,
    pub tools: Vec<String>,
    /// Tools whose definitions have changed and that wait for approval.
    pub withheld: Vec<String>,
    pub instructions: Option<String>,
}

impl SessionDesk {
    pub(crate) fn of(session: &Session) -> Self {
        let (system, past): (Vec<_>, Vec<_>) = session
            .conversation
            .messages()
            .iter()
            .cloned()
            .partition(|message| message.role == Role::System);
        let (turns, cost) = session.earlier;
        let used = if past.is_empty() {
            0
        } else {
            session.conversation.tokens(session.agent.tool_tokens())
        };
        let system: Vec<String> = system.iter().map(|message| message.text()).collect();
        Self {
            jobs: session.jobs.clone(),
            gate: Arc::clone(&session.gate),
            tools: session.agent.tools.clone(),
            provider: Arc::clone(&session.agent.provider),
            rewinder: session.checkpoints.as_ref().map(Checkpoints::rewinder),
            past,
            system: system.join("\n\n"),
            name: session.recorder.as_ref().and_then(Recorder::name),
            recorder: session.recorder.clone(),
            servers: session.servers.clone(),
            switches: Arc::clone(&session.switches),
            inventory: Arc::clone(&session.inventory),
            hooks: session.hooks.clone(),
            dial: session.agent.dial.clone(),
            reasoning: session.agent.settings.reasoning,
            models: session.models.clone(),
            earlier: Earlier { turns, cost, used },
            watch: session.watch.clone(),
        }
    }

    /// Writes settings for the operator, which count at once.
    pub fn write_settings<T>(
        &self,
        write: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        match &self.watch {
            Some(watch) => watch.rewrite(write),
            None => write(),
        }
    }

    /// What the session is called now; nothing where it is not kept, or over.
    pub fn current_name(&self) -> Option<String> {
        self.recorder.as_ref().and_then(Recorder::name)
    }

    /// The MCP servers as they stand at this moment.
    pub fn servers(&self) -> Vec<ServerView> {
        let statuses = self.servers.as_ref().map(Servers::status);
        let view = |server: ServerStatus| ServerView {
            status: if self.switches.is_off(&server.name) {
                "disabled"
            } else {
                status_name(&server.status)
            },
            about: match server.status {
                Status::Connected { info, .. } => format!("{} {}", info.name, info.version),
                Status::Failed { reason } | Status::NeedsAuth { reason, .. } => reason,
                Status::Connecting | Status::Disabled => String::new(),
            },
            name: server.name.to_string(),
            tools: server.tools,
            withheld: server.withheld,
            instructions: server.instructions.map(|text| text.to_string()),
        };
        statuses.into_iter().flatten().map(view).collect()
    }

    /// The last of what a server wrote on its standard error, and of what was told about it.
    pub fn server_log(&self, server: &str) -> Vec<String> {
        let servers = self.servers.as_ref();
        servers.map_or_else(Vec::new, |servers| servers.log(server))
    }

    /// How hard the model thinks.
    pub fn reasoning(&self) -> Reasoning {
        let dial = self.dial.as_ref();
        dial.map_or(self.reasoning, |dial| dial.read().reasoning)
    }

    /// The handlers of hooks, and in words how often each fired and what came of it last.
    pub fn hooks(&self) -> Vec<(HandlerReport, String)> {
        let reports = self.hooks.as_deref().map(ExternalHooks::report);
        let told = |report: HandlerReport| {
            let fired = match &report.last {
                Some(last) => fired(report.runs, last),
                None => "did not run yet".to_owned(),
            };
            (report, fired)
        };
        reports.into_iter().flatten().map(told).collect()
    }

    /// Whether hooks want to hear what is typed.
    pub fn has_prompt_hooks(&self) -> bool {
        let counts = self.hooks.as_deref().map(ExternalHooks::counts);
        let mut counts = counts.into_iter().flatten();
        counts.any(|(event, _)| event == "UserPromptSubmit")
    }

    /// Lets hooks hear a command that the session does not; what they make of it, or why they
    /// refuse it.
    pub async fn vet(&self, line: String) -> Result<String, String> {
        let Some(hooks) = &self.hooks else {
            return Ok(line);
        };
        match hooks.before_prompt(&Message::user(line.as_str())).await {
            PromptVerdict::Deny { reason } => Err(reason),
            PromptVerdict::Replace { prompt, .. } => Ok(prompt),
            // What hooks add is for the model, which is not asked.
            PromptVerdict::Accept | PromptVerdict::AcceptWith(_) => Ok(line),
        }
    }

    /// Whether a skill is used by typing its name.
    pub fn is_typed(&self, skill: &str) -> bool {
        !self.inventory.hidden_skills.contains(skill)
    }

    /// Name, description and origin of each skill.
    pub fn skills(&self) -> Vec<(String, String, String)> {
        listed(&self.inventory.skills)
    }

    /// The agent profiles.
    pub fn profiles(&self) -> Vec<ListedProfile> {
        self.inventory.profiles.clone()
    }

    /// The output style that counts, and those there are.
    pub fn styles(&self) -> (Option<String>, Vec<(String, String, String)>) {
        (self.inventory.style(), listed(&self.inventory.styles))
    }

    /// The plugin that insists on the output style.
    pub fn style_lock(&self) -> Option<&str> {
        self.inventory.style_lock.as_deref()
    }

    /// Kind, path and size of each file that the model is told before everything else.
    pub fn instructions(&self) -> Vec<(&'static str, PathBuf, u64)> {
        let files = self.inventory.instructions.iter();
        files
            .map(|file| (file.tag.as_str(), file.path.clone(), file.tokens))
            .collect()
    }

    fn note_store(&self) -> Result<&NoteStore, String> {
        let notes = self.inventory.notes.as_ref();
        notes.ok_or_else(|| "this session keeps no notes".to_owned())
    }

    /// Name and description of each note.
    pub fn notes(&self) -> Vec<(String, String)> {
        let topics = self.note_store().map(NoteStore::topics);
        let topics = topics.into_iter().flat_map(|topics| topics.topics);
        topics
            .map(|(name, topic)| (name.as_str().to_owned(), topic.description().to_owned()))
            .collect()
    }

    /// A note as it is edited: its description in the first line, its text below.
    pub fn note_text(&self, name: &str) -> Result<String, String> {
        let topic = self.note_store()?.read(&topic_name(name)?);
        let topic = topic.map_err(|error| error.to_string())?;
        Ok(format!("{}\n\n{}\n", topic.description(), topic.body()))
    }

    /// Writes a note from what [`note_text`](Self::note_text) became.
    pub fn save_note(&self, name: &str, text: &str) -> Result<(), String> {
        let (store, name) = (self.note_store()?, topic_name(name)?);
        let before = store.read(&name).map_err(|error| error.to_string())?;
        let (description, body) = text.trim_start().split_once('\n').unwrap_or((text, ""));
        let topic = Topic::new(description, before.kind(), body);
        let topic = topic.map_err(|error| error.to_string())?;
        store
            .write(&name, &topic)
            .map_err(|error| error.to_string())
    }

    pub fn forget_note(&self, name: &str) -> Result<(), String> {
        match self.note_store()?.remove(&topic_name(name)?) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("there is no note `{name}`")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Who takes prompts back; nobody where nothing is kept.
    pub fn rewinder(&self) -> Option<&Rewinder> {
        self.rewinder.as_ref()
    }

    /// What was typed for the prompt after a point.
    pub fn prompt_after(&self, history: &History, to: u32) -> Option<String> {
        let recorder = self.recorder.as_ref()?;
        recorder.with_writer(|writer| prompt_after(history, writer.state(), to))?
    }

    /// The rules that count, in the order they are asked.
    pub fn rules(&self) -> Vec<Rule> {
        self.gate.book().rules().to_vec()
    }

    /// Who answers.
    pub fn provider(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.provider)
    }

    /// What rules and mode say about a call, written as `Tool: argument` or `Tool: {json}`.
    pub fn judged(&self, call: &str) -> String {
        let (tool, argument) = call.split_once(':').unwrap_or((call, ""));
        let (tool, argument) = (tool.trim(), argument.trim());
        if tool.is_empty() {
            return "write a call as `Bash: git push`".to_owned();
        }
        let input = match serde_json::from_str(argument) {
            Ok(input @ Value::Object(_)) => input,
            Ok(_) | Err(_) => json!({
                "command": argument, "path": argument, "url": argument, "pattern": argument,
            }),
        };
        let tools = self.tools.current();
        let effect = match tools.get(tool) {
            Some(known) => Some(known.effect()),
            // Those of servers may be there without being offered.
            None => tool.starts_with("mcp__").then_some(Effect::Executes),
        };
        let Some(effect) = effect else {
            let near = nearest(tool, tools.names());
            let meant = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return format!("there is no tool `{tool}` in this session{meant}");
        };
        self.gate.foreseen(tool, &input, effect)
    }

    /// Background jobs, in the order they began.
    pub fn jobs(&self) -> Vec<ListedJob> {
        self.jobs
            .as_ref()
            .map_or_else(Vec::new, |jobs| jobs.listed())
    }

    /// The end of what a job has written.
    pub fn job_output(&self, job: &str) -> String {
        let jobs = self.jobs.as_ref();
        jobs.and_then(|jobs| jobs.tail(job)).unwrap_or_default()
    }

    /// Whether rules that allow these would by themselves permit a call, for each of these. A
    /// pattern that makes no sense permits nothing.
    pub fn permits(&self, patterns: &[String], calls: &[(String, Value)]) -> Vec<bool> {
        let rules = patterns.iter().filter_map(|pattern| {
            let spec = RuleSpec::new(pattern, RuleAction::Allow);
            Rule::new(spec, Origin::Runtime).ok()
        });
        let judge = Judge {
            book: RuleBook::of(rules),
            ..self.gate.judge_by()
        };
        let now = Timestamp::now();
        calls
            .iter()
            .map(|(tool, input)| {
                let decision = judge.decide(tool, input, now);
                let by_rule = judge.book.rules().get(decision.rule);
                decision.action == RuleAction::Allow
                    && by_rule.is_some_and(|rule| rule.origin == Origin::Runtime)
            })
            .collect()
    }
}

fn listed(things: &[Listed]) -> Vec<(String, String, String)> {
    let row = |thing: &Listed| {
        (
            thing.name.clone(),
            thing.about.clone(),
            thing.origin.clone(),
        )
    };
    things.iter().map(row).collect()
}

fn topic_name(name: &str) -> Result<TopicName, String> {
    name.parse::<TopicName>().map_err(|error| error.to_string())
}
