//! Agent profiles in a session: as kinds of sub-agents, and as what the session itself is.

use std::sync::Arc;

use caliban_agent::{Inheritance, Tool, TypedTool};
use caliban_context::{
    NoteStore, Origin, Places, Profile, ProfileEffort, ProfileIsolation, ProfileMemory, Profiles,
    ReadMemoryTopic, WriteMemoryTopic,
};
use caliban_model::{BuiltInTool, Effort, Reasoning};
use caliban_tools::{AgentKind, Attendance, Isolation, Recollection};

use crate::additions::{context_options, context_places};
use crate::choices::SystemPrompt;
use crate::configuration::Configuration;
use crate::error::LaunchError;
use crate::extras::Repository;
use crate::options::RunOptions;
use crate::plugins::plugins;
use crate::surroundings::ModelNames;

/// Names that another program of our kind has for models, which need not mean anything here.
const FOREIGN_MODELS: [&str; 6] = ["sonnet", "opus", "haiku", "fable", "opusplan", "default"];

/// How profiles become kinds of agents.
pub(crate) struct Casting<'a> {
    configuration: &'a Configuration,
    /// What names of models stand for, where a dialect knows more.
    model_names: Option<&'a ModelNames>,
    tiers: Tiers,
}

/// Whether words for tiers of models mean something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tiers {
    /// Routes say what.
    Routed,
    Unknown,
}

impl<'a> Casting<'a> {
    pub(crate) fn new(
        configuration: &'a Configuration,
        model_names: Option<&'a ModelNames>,
    ) -> Result<Self, LaunchError> {
        let tiers = match configuration.routes()? {
            Some(_) => Tiers::Routed,
            None => Tiers::Unknown,
        };
        Ok(Self {
            configuration,
            model_names,
            tiers,
        })
    }

    fn repository(&self) -> Repository {
        if self.configuration.is_trusted() {
            Repository::Trusted
        } else {
            Repository::Untrusted
        }
    }

    /// The kinds that a dialect brings along, and then those of the files.
    pub(crate) fn kinds(&self, mut given: Vec<AgentKind>, profiles: &Profiles) -> Vec<AgentKind> {
        for profile in profiles.iter() {
            if !given.iter().any(|kind| kind.name == profile.name()) {
                given.push(self.kind(profile));
            }
        }
        given
    }

    /// A profile as a kind. What a repository that nobody trusts or a plugin may not do is not
    /// done.
    pub(crate) fn kind(&self, profile: &Profile) -> AgentKind {
        let may_loosen = match profile.origin() {
            Origin::Plugin(_) => false,
            origin => self.repository() == Repository::Trusted || !origin.is_repository(),
        };
        let canonical = |name: &String| BuiltInTool::canonical(name).to_owned();
        let listed = profile.tools.as_ref();
        AgentKind {
            tools: listed.map(|tools| tools.iter().map(canonical).collect()),
            without: profile.disallowed_tools.iter().map(canonical).collect(),
            model: profile.model.as_deref().and_then(|name| self.model(name)),
            reasoning: profile.effort.map(reasoning),
            isolation: match profile.isolation {
                ProfileIsolation::None => Isolation::None,
                ProfileIsolation::Worktree => Isolation::Worktree,
            },
            attendance: if profile.background {
                Attendance::Background
            } else {
                Attendance::Foreground
            },
            hooks: if profile.inherit_hooks || !may_loosen {
                Inheritance::All
            } else {
                Inheritance::Managed
            },
            memory: self
                .memory(profile, may_loosen)
                .map(|notes| Arc::new(notes) as Arc<dyn Recollection>),
            ..AgentKind::new(
                profile.name().to_owned(),
                profile.description.clone(),
                profile.prompt.clone(),
            )
        }
    }

    fn model(&self, name: &str) -> Option<String> {
        match self.model_names {
            Some(names) => names.0(name),
            None if self.tiers == Tiers::Unknown && FOREIGN_MODELS.contains(&name) => None,
            None => Some(name.to_owned()),
        }
    }

    /// The notes of a kind. One that a repository brings keeps none that other projects read.
    fn memory(&self, profile: &Profile, may_loosen: bool) -> Option<OwnNotes> {
        let name = profile.name().replace(':', "-");
        let notes = context_places(self.configuration).notes;
        let of_project = || notes.with_file_name("agents").join(&name);
        let directory = match profile.memory {
            ProfileMemory::None => return None,
            ProfileMemory::User if may_loosen => {
                let data = self.configuration.locations.data_dir();
                data.join("agent-memory").join(&name)
            }
            ProfileMemory::User | ProfileMemory::Project => of_project(),
        };
        Some(OwnNotes(NoteStore::new(directory)))
    }
}

/// The notes of one kind of agent.
#[derive(Debug)]
struct OwnNotes(NoteStore);

/// The most of an index that an agent is told, in bytes.
const MAX_INDEX: usize = 25 * 1024;

impl Recollection for OwnNotes {
    fn text(&self) -> Option<String> {
        let mut text = "You keep notes from one task to the next: read them with ReadMemoryTopic, \
                        and write down with WriteMemoryTopic what will help in later ones."
            .to_owned();
        if let Ok(Some(index)) = self.0.index_text()
            && !index.trim().is_empty()
        {
            let end = index.floor_char_boundary(MAX_INDEX);
            text.push_str("\n\nTheir index:\n");
            text.push_str(index[..end].trim_end());
        }
        Some(text)
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![
            ReadMemoryTopic::new(self.0.clone()).boxed(),
            WriteMemoryTopic::new(self.0.clone()).boxed(),
        ]
    }
}

fn reasoning(effort: ProfileEffort) -> Reasoning {
    match effort {
        ProfileEffort::Low => Reasoning::Effort(Effort::Low),
        ProfileEffort::Medium => Reasoning::Effort(Effort::Medium),
        ProfileEffort::High => Reasoning::Effort(Effort::High),
        ProfileEffort::Xhigh => Reasoning::Effort(Effort::Xhigh),
        ProfileEffort::Max => Reasoning::Effort(Effort::Max),
        ProfileEffort::Auto => Reasoning::Auto,
    }
}

/// The profiles of a workspace, with what is worth knowing about their files.
pub fn load_profiles(
    options: &RunOptions,
    configuration: &Configuration,
) -> Result<(Profiles, Vec<String>), LaunchError> {
    let places = Places {
        plugins: plugins(options, configuration).places(),
        ..context_places(configuration)
    };
    let options = context_options(options, configuration)?;
    let mut notices = Vec::new();
    let profiles = Profiles::load(&places, &options, &mut notices);
    let notices = notices.iter().map(ToString::to_string).collect();
    Ok((profiles, notices))
}

/// The kind of agent that a file defines under this name.
pub fn kind_named(
    name: &str,
    options: &RunOptions,
    configuration: &Configuration,
    model_names: Option<&ModelNames>,
) -> Result<Option<AgentKind>, LaunchError> {
    let (profiles, _) = load_profiles(options, configuration)?;
    let casting = Casting::new(configuration, model_names)?;
    Ok(profiles.get(name).map(|profile| casting.kind(profile)))
}

/// Makes the session the agent that is named; what was asked for beside it counts before.
pub(crate) fn play(
    options: &mut RunOptions,
    configuration: &Configuration,
) -> Result<(), LaunchError> {
    let Some(name) = options.agent.clone() else {
        return Ok(());
    };
    let (profiles, _) = load_profiles(options, configuration)?;
    let Some(profile) = profiles.get(&name) else {
        let known: Vec<&str> = profiles.iter().map(Profile::name).collect();
        let known = if known.is_empty() {
            "there are none; `.caliban/agents/NAME.md` defines one".to_owned()
        } else {
            format!("there are: {}", known.join(", "))
        };
        return Err(LaunchError::usage(format!(
            "there is no agent profile `{name}`; {known}"
        )));
    };
    let casting = Casting::new(configuration, None)?;
    become_kind(options, &casting.kind(profile));
    Ok(())
}

/// The same with a kind that is known.
fn become_kind(options: &mut RunOptions, kind: &AgentKind) {
    if options.system == SystemPrompt::Default && !kind.prompt.is_empty() {
        options.system = SystemPrompt::Text(kind.prompt.clone());
    }
    if options.model.model.is_none() {
        options.model.model.clone_from(&kind.model);
    }
    if options.model.reasoning.is_none() {
        options.model.reasoning = kind.reasoning;
    }
    let selection = &mut options.tools.selection;
    if selection.only.is_none() {
        selection.only.clone_from(&kind.tools);
    }
    selection.without.extend(kind.without.iter().cloned());
}
