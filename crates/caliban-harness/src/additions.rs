//! From options, variables and settings to what is added to a session: memory, skills, styles,
//! commands and hooks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_agent::{Closed, ClosedReading, Confinement, ReadGuard, ToolCall, Workspace};
use caliban_context::{
    Context, Customization, ImportApproval, InstructionFiles, MemoryCaps, NoteStore, Notes, Notice,
    Options, Places, SkillSources, notes_are_anothers, opted_in_directories,
};
use caliban_hooks::{CallPattern, HookConfig, HookLayer, HookSwitch, ParseWith};
use caliban_permissions::Probe;
use caliban_settings::Scope;
use caliban_settings::variables::names;

use crate::choosing::further_directories;
use crate::configuration::Configuration;
use crate::error::{LaunchError, Problem};
use crate::extras::{Extras, Repository};
use crate::options::{Extent, Part, RunOptions};
use crate::permissions::{judge, protected, reading};
use crate::plugins::{is_plugin_only, plugins};

/// Reads everything that is added. Nothing of it runs yet.
pub fn load_extras(run: &RunOptions, configuration: &Configuration) -> Result<Extras, LaunchError> {
    let plugins = plugins(run, configuration);
    let places = Places {
        plugins: plugins.places(),
        ..context_places(configuration)
    };
    let options = context_options(run, configuration)?;
    let context = Context::load(&places, &options, &caliban_slash::reserved());
    let style = style_name(configuration);
    Ok(Extras {
        hook_wording: None,
        plugins,
        context,
        style,
        notes: (options.notes == Notes::On).then(|| NoteStore::new(places.notes.clone())),
        hooks: configured_hooks(run, configuration)?,
        hook_environment: configuration.child_environment(),
        guard: configuration.process.guard.clone(),
        repository: if configuration.is_trusted() {
            Repository::Trusted
        } else {
            Repository::Untrusted
        },
    })
}

/// The output style that is asked for.
pub(crate) fn style_name(configuration: &Configuration) -> Option<String> {
    let environment = configuration.environment();
    environment
        .text(names::CALIBAN_OUTPUT_STYLE)
        .or_else(|| configuration.settings().output_style.clone())
}

/// What is worth knowing about it, for whoever begins a session.
pub(crate) fn notices(extras: &Extras) -> Vec<String> {
    let style = extras.context.styles.select(extras.style.as_deref()).notice;
    let is_news = |notice: &&Notice| match notice {
        // In a workspace that is trusted, what it puts in the place of something is meant to be
        // there.
        Notice::Replaced { .. } => extras.repository == Repository::Untrusted,
        // What a plugin's author could write better is told by `caliban plugin info`.
        Notice::IdleLine { path, .. } => !extras.plugins.holds(path),
        _ => true,
    };
    let context = extras.context.notices.iter().chain(&style);
    extras.plugins.note_told();
    context
        .filter(is_news)
        .map(ToString::to_string)
        .chain(extras.hooks.notices().iter().cloned())
        .chain(extras.plugins.warnings.iter().cloned())
        .collect()
}

/// The patterns of instruction files that are not read.
pub(crate) fn excludes(configuration: &Configuration) -> Vec<String> {
    let variable = names::CALIBAN_CLAUDE_MD_EXCLUDES;
    match configuration.environment().text(variable) {
        Some(list) => list.split([':', '\n']).map(str::to_owned).collect(),
        None => configuration.settings().claude_md_excludes.clone(),
    }
}

pub fn context_places(configuration: &Configuration) -> Places {
    let locations = &configuration.locations;
    let workspace = &configuration.workspace;
    // Who works in a worktree keeps the notes of the checkout.
    let at_home = &configuration.request.working_directory;
    let environment = configuration.environment();
    let configured = || {
        let directory = configuration
            .settings()
            .memory
            .auto_memory_directory
            .as_ref();
        directory.map(|path| expand(path, locations.home(), at_home))
    };
    let notes = environment
        .text(names::CALIBAN_AUTO_MEMORY_DIRECTORY)
        .or_else(|| environment.text(names::CALIBAN_MEMORY_DIR))
        .map(|path| expand(&path, locations.home(), at_home))
        .or_else(configured)
        .unwrap_or_else(|| {
            let notes = locations.auto_memory(at_home);
            if notes_are_anothers(&notes, at_home) {
                locations.auto_memory_apart(at_home)
            } else {
                notes
            }
        });
    let request = &configuration.request;
    let foreign = request.foreign.as_ref().map(|files| files.config.clone());
    let has_user = request.sources.contains(Scope::User);
    let instructions = foreign
        .as_ref()
        .map(|directory| directory.join("CLAUDE.md"));
    Places {
        foreign: foreign.unwrap_or_else(|| locations.home().join(".claude")),
        foreign_instructions: instructions.filter(|_| has_user),
        workspace: workspace.clone(),
        project: configuration.project().to_owned(),
        home: locations.home().to_owned(),
        config: locations.config_dir().to_owned(),
        data: locations.data_dir().to_owned(),
        notes,
        imports_allowlist: locations.imports_allowlist(),
        plugins: Vec::new(),
    }
}

pub fn context_options(
    run: &RunOptions,
    configuration: &Configuration,
) -> Result<Options, LaunchError> {
    match run.settings.extent {
        Extent::Bare | Extent::Isolated => return Ok(Options::bare()),
        Extent::Everything => {}
    }
    let environment = configuration.environment();
    let settings = configuration.settings();
    let memory = &settings.memory;
    let no_notes = environment.is_on(names::CALIBAN_DISABLE_AUTO_MEMORY)
        || memory.auto_memory_enabled == Some(false);
    let no_skills = run.tools.skills == Part::Off || environment.is_on(names::CALIBAN_NO_SKILLS);
    let number = |name, setting: Option<u64>| -> Result<Option<u64>, LaunchError> {
        Ok(environment.number(name)?.or(setting))
    };
    let caps = MemoryCaps {
        notes: number(
            names::CALIBAN_MEMORY_CAP_TOKENS_AUTO,
            memory.cap_tokens_auto,
        )?,
        instructions: number(
            names::CALIBAN_MEMORY_CAP_TOKENS_CLAUDE_MD,
            memory.cap_tokens_claude_md,
        )?,
        combined: number(
            names::CALIBAN_MEMORY_BUDGET_TOKENS,
            memory.cap_tokens_combined,
        )?
        .unwrap_or(MemoryCaps::default().combined),
    };
    let opted_in = names::CALIBAN_ADDITIONAL_DIRECTORIES_CLAUDE_MD;
    let variable = environment
        .text(opted_in)
        .filter(|_| environment.is_on(opted_in));
    let further = further_directories(&run.tools, configuration)?;
    Ok(Options {
        instructions: if environment.is_on(names::CALIBAN_DISABLE_CLAUDE_MD_WALK) {
            InstructionFiles::WorkspaceOnly
        } else {
            InstructionFiles::Walk
        },
        notes: if no_notes { Notes::Off } else { Notes::On },
        skills: if no_skills {
            SkillSources::Off
        } else if settings
            .claude_skills
            .unwrap_or(run.settings.foreign.is_some())
        {
            SkillSources::OwnAndForeign
        } else {
            SkillSources::Own
        },
        customization: if is_plugin_only(configuration) {
            Customization::Plugins
        } else {
            Customization::All
        },
        excludes: excludes(configuration),
        directories: opted_in_directories(variable.as_deref(), &further),
        skill_directories: further,
        imports: if environment.is_on(names::CALIBAN_APPROVE_IMPORTS) {
            ImportApproval::All
        } else {
            ImportApproval::Listed
        },
        // What is wrong with the rules is told by whoever needs them; until then they close all.
        reading: reading(run, configuration).unwrap_or_else(|error| {
            Arc::new(ClosedReading(Closed(error.to_string()))) as Arc<dyn ReadGuard>
        }),
        caps,
    })
}

/// The hooks of the settings and of the plugins.
pub(crate) fn configured_hooks(
    run: &RunOptions,
    configuration: &Configuration,
) -> Result<HookConfig, LaunchError> {
    let environment = configuration.environment();
    let off = run.settings.extent == Extent::Bare
        || run.tools.hooks == Part::Off
        || environment.is_on(names::CALIBAN_NO_HOOKS);
    let plugin_only = is_plugin_only(configuration);
    let layers: Vec<HookLayer> = configuration
        .loaded
        .layers()
        .iter()
        .map(HookLayer::from)
        .map(|layer| match layer.scope {
            // What else the layer says holds: it decides which handlers run.
            Scope::User | Scope::Project | Scope::Local | Scope::Cli if plugin_only => HookLayer {
                hooks: BTreeMap::new(),
                ..layer
            },
            _ => layer,
        })
        .collect();
    let compile = |pattern: &str| {
        let probe = probe(pattern, configuration)?;
        Ok(Box::new(Condition(probe)) as Box<dyn CallPattern>)
    };
    let with = ParseWith {
        switch: if off { HookSwitch::Off } else { HookSwitch::On },
        pattern: &compile,
        variable: &|name| environment.text(name),
    };
    let read = || {
        let mut hooks = HookConfig::parse(&layers, &with)?;
        hooks.add_plugins(&plugins(run, configuration).hooks(), &layers, &with)?;
        Ok(hooks)
    };
    read().map_err(|error: caliban_hooks::HookConfigError| {
        let (scope, path) = error.path();
        LaunchError::Configuration(match configuration.loaded.place_of(scope, &path) {
            Some(place) => Problem::caused(format!("{place}: {error}"), error),
            None => Problem::from_error(error),
        })
    })
}

/// The `if` of a hook: a rule's pattern.
#[derive(Debug)]
struct Condition(Probe);

impl CallPattern for Condition {
    fn matches(&self, call: &ToolCall) -> bool {
        self.0.matches(&call.name, &call.input)
    }
}

fn probe(pattern: &str, configuration: &Configuration) -> Result<Probe, String> {
    let home = configuration.locations.home().to_owned();
    let workspace = Workspace::new(
        &configuration.workspace,
        &[],
        Some(home.clone()),
        Confinement::Open,
    )
    .map_err(|error| error.to_string())?;
    let book = Probe::book(pattern).map_err(|error| error.to_string())?;
    let judge = judge(book, protected(configuration), workspace, Some(home));
    Ok(Probe::new(judge))
}

fn expand(path: &str, home: &Path, workspace: &Path) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => workspace.join(path),
    }
}
