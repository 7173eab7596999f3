//! From options, variables and settings to the choices a session is made of.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;

use caliban_agent::{AnswerSchema, Settings};
use caliban_model::{AnswerLimit, CachePolicy, RateCard};
use caliban_permissions::{AutoAllow, Regime};
use caliban_settings::PermissionMode;
use caliban_settings::variables::{Environment, names};
use caliban_tools::{AgentKind, PrivateAddresses, SearchConfig, WebPolicy};

use crate::agent_settings::agent_settings;
use crate::choices::{BuiltIn, SubAgents, Tools};
use crate::command_environment::command_environment;
use crate::configuration::Configuration;
use crate::error::{LaunchError, Problem};
use crate::grounds::GroundParts;
use crate::hosts::HostQuestions;
use crate::options::{DefaultTurns, Parallel, Part, RunOptions, ToolOptions};
use crate::permissions::Permissions;

/// So often in a row a run without a limit of turns makes the same call with the same result.
const UNENDING_REPETITIONS: u32 = 200;

/// How the agent of a run works. An option beats a variable, which beats the settings.
pub(crate) fn settings_of_agent(
    options: &RunOptions,
    model: &str,
    session_id: &str,
    configuration: &Configuration,
) -> Result<Settings, LaunchError> {
    let environment = configuration.environment();
    let configured = configuration.settings();
    let mut settings = agent_settings(model, configured);
    if let Some(tokens) = options.model.max_tokens.or(configured.max_tokens) {
        settings.max_tokens = tokens.get();
        settings.answer_limit = AnswerLimit::Fixed;
    }
    settings.temperature = options.model.temperature;
    if options.model.prompt_cache == Part::Off || environment.is_on(names::CALIBAN_NO_PROMPT_CACHE)
    {
        settings.cache = CachePolicy::Off;
    }
    if let Some(reasoning) = options.model.reasoning {
        settings.reasoning = reasoning;
    }
    let turns = options.limits.max_turns.or(configured.max_turns);
    settings.limits.max_turns = match (turns, options.limits.default_turns) {
        (Some(turns), _) => turns.get(),
        (None, DefaultTurns::Limited) => settings.limits.max_turns,
        (None, DefaultTurns::Unlimited) => NonZeroU32::MAX.get(),
    };
    // Where nothing else ends a run, a loop does.
    let unending = settings.limits.max_turns == NonZeroU32::MAX.get();
    let repetitions = options.limits.repetitions.map(NonZeroU32::get);
    settings.limits.max_repetitions = repetitions.or(unending.then_some(UNENDING_REPETITIONS));
    settings.limits.budget = options.limits.budget;
    if let Some(limit) = parallel_tools(options.tools.parallel, environment)? {
        settings.parallel_tools = limit;
    }
    let answer = options.answer.clone().map(AnswerSchema::new).transpose();
    settings.answer = answer
        .map_err(|reason| LaunchError::usage(format!("the schema of the answer: {reason}")))?;
    settings.capping.spill_directories = spill_directories(session_id, configuration);
    Ok(settings)
}

/// Where results that are too long are kept whole: in the cache, or where that cannot be written, in
/// a directory of our own among temporary files. Nobody can guess its name and be there first.
fn spill_directories(session_id: &str, configuration: &Configuration) -> Vec<PathBuf> {
    let temporary = configuration.environment().text("TMPDIR");
    let temporary = PathBuf::from(temporary.as_deref().unwrap_or("/tmp"));
    let own = format!("caliban-results-{}", uuid::Uuid::new_v4());
    vec![
        configuration.locations.spill(session_id),
        temporary.join(own),
    ]
}

/// The built-in tools of a run.
pub(crate) fn tools(
    run: &RunOptions,
    permissions: &Permissions,
    agent_kinds: Vec<AgentKind>,
    hosts: &Arc<HostQuestions>,
    configuration: &Configuration,
) -> Result<Tools, LaunchError> {
    let options = &run.tools;
    if options.built_in == Part::Off {
        return Ok(Tools::None);
    }
    let environment = configuration.environment();
    let search = SearchConfig::from_variables(|name| environment.text(name));
    Ok(Tools::BuiltIn(Box::new(BuiltIn {
        environment: command_environment(run, configuration),
        guard: configuration.process.guard.clone(),
        jobs_directory: configuration.locations.cache_dir().join("jobs"),
        search: search
            .map_err(Problem::from_error)
            .map_err(LaunchError::Configuration)?,
        web: web_policy(permissions),
        sub_agents: if options.sub_agents == Part::Off
            || environment.is_on(names::CALIBAN_NO_SUB_AGENT)
        {
            SubAgents::Withheld
        } else {
            SubAgents::Offered
        },
        agent_kinds,
        default_agent: configuration.settings().agent.clone(),
        grounds: Some(GroundParts {
            configuration: configuration.clone(),
            options: options.clone(),
            hosts: Arc::clone(hosts),
        }),
    })))
}

/// What may be fetched beyond the public internet: the hosts that rules name, and this machine
/// where everything may run, for a command could reach its services just as well, or where
/// whoever starts the run allows fetching as such. A rule of a file opens nothing it does not name.
fn web_policy(permissions: &Permissions) -> WebPolicy {
    let is_open = permissions.auto_allow == AutoAllow::On
        || permissions.book.flags_allow_fetching()
        || matches!(
            permissions.regime,
            Regime::Disabled
                | Regime::Rules(PermissionMode::DontAsk | PermissionMode::BypassPermissions)
        );
    WebPolicy {
        private: if is_open {
            PrivateAddresses::LoopbackOnly
        } else {
            PrivateAddresses::Refused
        },
        allowed_hosts: permissions.book.allowed_hosts(),
        opened: permissions.opened_hosts.clone(),
    }
}

/// The further roots: those that options name must exist; one of the settings that does not is
/// nobody's to use.
pub fn further_directories(
    options: &ToolOptions,
    configuration: &Configuration,
) -> Result<Vec<PathBuf>, LaunchError> {
    let from = &configuration.process.current_directory;
    let named = options.further_directories.iter();
    let named: Vec<PathBuf> = named.map(|path| from.join(path)).collect();
    let given = options.further_directories.iter().zip(&named);
    if let Some((missing, _)) = given.into_iter().find(|(_, path)| !path.is_dir()) {
        return Err(LaunchError::configuration(format!(
            "`{}` is not a directory",
            missing.display()
        )));
    }
    let settings = configuration.settings().additional_directories.iter();
    let configured = settings
        .map(|path| match path.strip_prefix("~/") {
            Some(rest) => configuration.locations.home().join(rest),
            None => configuration.workspace.join(path),
        })
        .filter(|path| path.is_dir());
    Ok(named.into_iter().chain(configured).collect())
}

fn parallel_tools(
    option: Parallel,
    environment: &Environment,
) -> Result<Option<NonZeroUsize>, LaunchError> {
    match option {
        // An option of either kind beats both variables.
        Parallel::Off => Ok(Some(NonZeroUsize::MIN)),
        Parallel::AtMost(limit) => Ok(Some(limit)),
        Parallel::AsConfigured if environment.is_on(names::CALIBAN_NO_PARALLEL_TOOLS) => {
            Ok(Some(NonZeroUsize::MIN))
        }
        Parallel::AsConfigured => Ok(environment.number(names::CALIBAN_PARALLEL_TOOL_LIMIT)?),
    }
}

/// The built-in prices, with the user's over them, as they are today.
pub fn rates(environment: &Environment) -> Result<Arc<RateCard>, LaunchError> {
    let Some(path) = environment.text(names::CALIBAN_RATES_YAML) else {
        return Ok(Arc::new(RateCard::builtin().clone().on(&today())));
    };
    let unusable = |reason: &str| format!("`CALIBAN_RATES_YAML` names `{path}`: {reason}");
    let yaml = std::fs::read_to_string(&path)
        .map_err(|error| Problem::caused(unusable(&error.to_string()), error))
        .map_err(LaunchError::Configuration)?;
    let card = RateCard::with_overrides(&yaml)
        .map_err(|error| Problem::caused(unusable(&error.to_string()), error))
        .map_err(LaunchError::Configuration)?;
    Ok(Arc::new(card.on(&today())))
}

fn today() -> String {
    caliban_settings::calendar::today().to_string()
}
