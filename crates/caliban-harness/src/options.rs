//! What is asked of a run: plain data that any face can make, send and keep. What it leaves open
//! is decided by variables, settings and defaults, in this order.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use caliban_agent::Confinement;
use caliban_model::ProviderKind;
use caliban_model::Reasoning;
use caliban_permissions::{AutoAllow, Gating, Latch, Precedence};
use caliban_settings::{ForeignFiles, PermissionMode, RuleSpec, Sources, TrustDecision};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::choices::{Selection, SystemPrompt};

/// Everything that is asked of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// The directory that tools work in; without one, the current one.
    pub workspace: Option<PathBuf>,
    pub settings: SettingsOptions,
    pub model: ModelOptions,
    pub limits: LimitOptions,
    pub tools: ToolOptions,
    pub servers: ServerOptions,
    pub permissions: PermissionOptions,
    pub session: SessionOptions,
    pub system: SystemPrompt,
    /// The agent profile that the session is.
    pub agent: Option<String>,
    /// The JSON Schema that the final answer must fit.
    pub answer: Option<Value>,
    pub cassette: Option<Cassette>,
    pub debug: DebugTo,
}

/// Whether a part is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Unless variables or settings switch it off.
    #[default]
    AsConfigured,
    Off,
}

/// Which settings count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SettingsOptions {
    /// Settings above all others: a JSON object, or the path of a file.
    pub overlay: Option<String>,
    /// The scopes that are read; without any, all of them.
    pub sources: Option<Sources>,
    /// The `caliban.toml` to use.
    pub router_file: Option<PathBuf>,
    pub extent: Extent,
    pub trust: TrustDecision,
    /// The files of Claude Code, where they count as well.
    pub foreign: Option<ForeignFiles>,
    pub environment: SettingsEnvironment,
}

/// How much of what is around is taken in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    #[default]
    Everything,
    /// No memory and no skills.
    Isolated,
    /// Nothing but the managed settings: no hooks, skills, servers or memory.
    Bare,
}

/// For whom the variables count that settings set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingsEnvironment {
    /// For the programs that the run starts.
    #[default]
    Children,
    /// For the run itself, too.
    WholeRun,
}

/// Who answers, and how.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelOptions {
    #[serde(with = "provider_name")]
    pub provider: Option<ProviderKind>,
    pub model: Option<String>,
    /// The model that answers when the first cannot.
    pub fallback: Option<String>,
    /// Most tokens of one answer.
    pub max_tokens: Option<NonZeroU32>,
    pub temperature: Option<f64>,
    pub prompt_cache: Part,
    /// How hard the model thinks; without a word, as the settings say.
    pub reasoning: Option<Reasoning>,
    /// Beta features of the provider's interface.
    pub betas: Vec<String>,
}

/// Where a run ends, and how much a prompt may attach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitOptions {
    /// Most calls to the model.
    pub max_turns: Option<NonZeroU32>,
    /// What holds where nobody limits them.
    pub default_turns: DefaultTurns,
    /// The same call with the same result this often in a row ends the run.
    pub repetitions: Option<NonZeroU32>,
    /// In dollars.
    pub budget: Option<Decimal>,
    /// The largest text that a prompt attaches.
    pub max_attach_bytes: Option<u64>,
    /// The most that all texts of a prompt come to.
    pub attach_budget_bytes: Option<u64>,
}

/// How many calls to the model there may be where nobody says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefaultTurns {
    #[default]
    Limited,
    /// A run ends when the model does.
    Unlimited,
}

/// Which tools there are and what they may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolOptions {
    pub built_in: Part,
    pub confinement: Confinement,
    pub further_directories: Vec<PathBuf>,
    pub hooks: Part,
    pub skills: Part,
    pub plugins: Part,
    /// Plugins for this run alone.
    pub plugin_directories: Vec<PathBuf>,
    pub sub_agents: Part,
    pub parallel: Parallel,
    pub selection: Selection,
}

/// How many calls of a turn run at the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parallel {
    #[default]
    AsConfigured,
    /// One after the other.
    Off,
    AtMost(NonZeroUsize),
}

/// Which MCP servers take part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerOptions {
    pub servers: Part,
    /// Further servers: JSON objects with `mcpServers`, or paths of files with one.
    pub configs: Vec<String>,
    pub configured: ConfiguredServers,
    /// The tool of a server, `mcp__SERVER__TOOL`, that is asked about calls which need consent.
    pub prompt_tool: Option<String>,
}

/// Whether the servers of the settings take part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfiguredServers {
    #[default]
    Included,
    Left,
}

/// Which calls may run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PermissionOptions {
    pub mode: Option<PermissionMode>,
    pub gating: Gating,
    pub auto_allow: AutoAllow,
    /// What the mode `bypassPermissions` needs.
    pub latch: Latch,
    /// Who decides in the mode `auto`.
    pub classifier: Part,
    /// Rules above all others; the first that matches counts.
    pub rules: Vec<RuleSpec>,
    /// How these weigh against the rules of the settings.
    pub precedence: Precedence,
    /// Tools that the program which drives the session approves, below all other rules.
    pub approved: Vec<String>,
    /// What is decided where no rule is given, before the built-in defaults.
    pub defaults: Vec<RuleSpec>,
}

/// Which conversation goes on, and where it is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionOptions {
    pub choice: SessionChoice,
    pub continuation: Continuation,
    /// Whether the mode that a session was in holds when it goes on.
    pub earlier_mode: EarlierMode,
    /// Whether the system prompt that it began with may be replaced when it goes on.
    pub earlier_system: EarlierSystem,
    pub saving: Saving,
    pub file: SessionFile,
    /// Where sessions are kept.
    pub directory: Option<PathBuf>,
    /// The id of a new session or of a copy.
    pub id: Option<Uuid>,
    /// What the changes of its prompts are kept under, where the name of the session is not one
    /// that no other has.
    pub checkpoints: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionChoice {
    #[default]
    New,
    /// The one of this name, which is begun where there is none.
    Named(String),
    /// The one that was used last in this workspace.
    Latest,
    /// The one of this name or id, which must exist.
    Resume(String),
}

/// How an earlier session goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Continuation {
    #[default]
    InPlace,
    /// In a copy; the session stays as it is.
    Fork,
}

/// Whether a session that goes on does so in its mode, thinking as hard as it was told. One that
/// asked nobody never does so in its mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlierMode {
    #[default]
    Kept,
    Left,
}

/// What becomes of the system prompt of a session that goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EarlierSystem {
    /// It stays: asking for another one is refused, unless a copy goes on.
    #[default]
    Kept,
    /// Another one takes its place where one is asked for.
    Replaceable,
}

/// Whether anything is written down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Saving {
    #[default]
    On,
    Off,
}

/// When the readable file of a session is brought up to date; its journal always is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionFile {
    /// Now and then, and at the end.
    #[default]
    NowAndThen,
    /// After every prompt, since others read it while the session waits for the next.
    AfterEachPrompt,
}

/// A file that exchanges with the provider are kept in or answered from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cassette {
    Record(PathBuf),
    Replay(PathBuf),
}

/// Where it is written what happens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DebugTo {
    /// In the log, if a variable asks for it.
    #[default]
    AsConfigured,
    Log,
    File(PathBuf),
    /// Where warnings go.
    Diagnostics,
}

/// A provider by its name.
mod provider_name {
    use caliban_model::ProviderKind;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    #[expect(
        clippy::ref_option,
        clippy::trivially_copy_pass_by_ref,
        reason = "the form that serde calls"
    )]
    pub(super) fn serialize<S: Serializer>(
        kind: &Option<ProviderKind>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        kind.map(ProviderKind::as_str).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<ProviderKind>, D::Error> {
        let name = Option::<String>::deserialize(deserializer)?;
        name.map(|name| name.parse().map_err(de::Error::custom))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use caliban_settings::{RuleAction, Scope};
    use serde_json::json;

    use super::*;

    fn full() -> RunOptions {
        RunOptions {
            workspace: Some("/w".into()),
            settings: SettingsOptions {
                overlay: Some("{}".to_owned()),
                sources: Some(Sources::only(Scope::User)),
                router_file: Some("/r.toml".into()),
                extent: Extent::Bare,
                trust: TrustDecision::Granted,
                foreign: Some(ForeignFiles {
                    config: "/c".into(),
                    models: [("opus".to_owned(), "m".to_owned())].into(),
                }),
                environment: SettingsEnvironment::WholeRun,
            },
            model: ModelOptions {
                provider: Some(ProviderKind::OpenAi),
                model: Some("m".to_owned()),
                fallback: Some("f".to_owned()),
                max_tokens: NonZeroU32::new(7),
                temperature: Some(0.25),
                prompt_cache: Part::Off,
                reasoning: Some(Reasoning::Budget(9)),
                betas: vec!["context-1m-2025-08-07".to_owned()],
            },
            limits: LimitOptions {
                max_turns: NonZeroU32::new(3),
                default_turns: DefaultTurns::Unlimited,
                repetitions: NonZeroU32::new(4),
                budget: Some(Decimal::new(125, 2)),
                max_attach_bytes: Some(1),
                attach_budget_bytes: Some(2),
            },
            tools: ToolOptions {
                built_in: Part::Off,
                confinement: Confinement::Restricted,
                further_directories: vec!["/d".into()],
                hooks: Part::Off,
                skills: Part::Off,
                plugins: Part::Off,
                plugin_directories: vec!["/p".into()],
                sub_agents: Part::Off,
                parallel: Parallel::AtMost(NonZeroUsize::MIN),
                selection: Selection {
                    only: Some(vec!["Read".to_owned()]),
                    built_in: Some(Vec::new()),
                    without: vec!["Bash".to_owned()],
                },
            },
            servers: ServerOptions {
                servers: Part::Off,
                configs: vec!["{}".to_owned()],
                configured: ConfiguredServers::Left,
                prompt_tool: Some("mcp__a__b".to_owned()),
            },
            permissions: PermissionOptions {
                mode: Some(PermissionMode::Plan),
                gating: Gating::Off,
                auto_allow: AutoAllow::On,
                latch: Latch::Given,
                classifier: Part::Off,
                rules: vec![RuleSpec::new("Bash", RuleAction::Deny)],
                precedence: Precedence::StrictestFirst,
                approved: vec!["Read".to_owned()],
                defaults: vec![RuleSpec::new("Read", RuleAction::Ask)],
            },
            session: SessionOptions {
                choice: SessionChoice::Resume("s".to_owned()),
                continuation: Continuation::Fork,
                earlier_mode: EarlierMode::Left,
                earlier_system: EarlierSystem::Replaceable,
                saving: Saving::Off,
                file: SessionFile::AfterEachPrompt,
                directory: Some("/s".into()),
                id: Some(Uuid::nil()),
                checkpoints: Some("c".to_owned()),
            },
            system: SystemPrompt::Extended("more".to_owned()),
            agent: Some("scout".to_owned()),
            answer: Some(json!({"type": "object"})),
            cassette: Some(Cassette::Replay("/c.jsonl".into())),
            debug: DebugTo::File("/d.log".into()),
        }
    }

    /// Every value that differs from the default, so that a forgotten field is found.
    fn unlike(value: &Value, plain: &Value, at: &str) -> Vec<String> {
        match (value, plain) {
            (Value::Object(fields), Value::Object(plain)) => fields
                .iter()
                .flat_map(|(name, value)| unlike(value, &plain[name], &format!("{at}.{name}")))
                .collect(),
            (value, plain) if value == plain => vec![at.to_owned()],
            _ => Vec::new(),
        }
    }

    #[test]
    fn options_survive_being_written_down() {
        let options = full();
        let text = serde_json::to_string(&options).unwrap();
        assert_eq!(serde_json::from_str::<RunOptions>(&text).unwrap(), options);
        let value = serde_json::to_value(&options).unwrap();
        let plain = serde_json::to_value(RunOptions::default()).unwrap();
        assert_eq!(unlike(&value, &plain, ""), Vec::<String>::new());
    }

    #[test]
    fn what_is_left_out_is_the_default_and_what_is_unknown_is_an_error() {
        let none: RunOptions = serde_json::from_str("{}").unwrap();
        assert_eq!(none, RunOptions::default());
        let some: RunOptions =
            serde_json::from_str(r#"{"model": {"provider": "google"}}"#).unwrap();
        assert_eq!(some.model.provider, Some(ProviderKind::Google));
        for wrong in [
            r#"{"modle": {}}"#,
            r#"{"tools": {"hook": "off"}}"#,
            r#"{"model": {"provider": "nobody"}}"#,
            r#"{"limits": {"max_turns": 0}}"#,
        ] {
            assert!(
                serde_json::from_str::<RunOptions>(wrong).is_err(),
                "{wrong}"
            );
        }
    }
}
