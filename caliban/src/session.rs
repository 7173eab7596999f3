//! From what was typed and configured to the choices a session is made of.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_agent::{AnswerSchema, Confinement, Settings};
use caliban_harness::{
    BuiltIn, Choices, History, Partners, Permissions, Selection, Session, SubAgents, SystemPrompt,
    Tools, agent_settings, child_environment,
};
use caliban_model::{CachePolicy, RateCard};
use caliban_permissions::{AutoAllow, Regime};
use caliban_process::Guard;
use caliban_protocol::Init;
use caliban_settings::PermissionMode;
use caliban_settings::variables::{Environment, names};
use caliban_tools::{PrivateAddresses, SearchConfig, WebPolicy};

use crate::args::{Cli, RunArgs, ToolArgs};
use crate::attachments::Limits;
use crate::configuration::Configuration;
use crate::exit::Failure;
use crate::extras;
use crate::mcp;
use crate::permissions;
use crate::provider::Chosen;

/// What a session brings along from before.
#[derive(Debug, Default)]
pub(crate) struct Continued {
    /// The permission mode it was in.
    pub(crate) mode: Option<String>,
    pub(crate) history: History,
}

/// Builds the session that was asked for.
pub(crate) fn build(
    cli: &Cli,
    chosen: &Chosen,
    session_id: String,
    continued: Continued,
    partners: Partners,
    configuration: &Configuration<'_>,
) -> Result<(Session, Vec<String>), Failure> {
    let (choices, notices) = choices(cli, chosen, session_id, continued, partners, configuration)?;
    Ok((Session::new(choices)?, notices))
}

/// What the session that was asked for is made of.
pub(crate) fn choices(
    cli: &Cli,
    chosen: &Chosen,
    session_id: String,
    continued: Continued,
    partners: Partners,
    configuration: &Configuration<'_>,
) -> Result<(Choices, Vec<String>), Failure> {
    let args = &cli.run;
    let environment = &configuration.environment;
    let mut settings = agent_settings(&chosen.model, configuration.settings());
    settings.max_tokens = args.model.max_tokens;
    settings.temperature = args.model.temperature;
    if args.model.no_prompt_cache || environment.is_set(names::CALIBAN_NO_PROMPT_CACHE) {
        settings.cache = CachePolicy::Off;
    }
    settings.limits.max_turns = args.limits.max_turns;
    settings.limits.budget = args.limits.max_budget_usd;
    if let Some(limit) = parallel_tools(&args.tools, environment)? {
        settings.parallel_tools = limit;
    }
    settings.answer = args.output.json_schema.as_deref().map(answer).transpose()?;
    settings.capping.spill_directory = Some(configuration.locations.spill(&session_id));
    let extras = extras::load(cli, configuration)?;
    let notices = extras::notices(&extras);
    if let Some(notes) = &extras.notes
        && !cli.session.no_save
    {
        // Where it cannot be written, the first note that is saved says so.
        let _ = notes.bootstrap(&configuration.workspace);
    }
    let permissions = permissions::build(
        &args.permissions,
        &cli.rules,
        continued.mode.as_deref(),
        configuration,
    )?;
    let web = web_policy(&permissions);
    let choices = Choices {
        provider: Arc::clone(&chosen.provider),
        settings,
        rates: rates(environment)?,
        session_id,
        workspace: configuration.workspace.clone(),
        additional_directories: additional_directories(&args.tools, configuration)?,
        confinement: if args.tools.restrict_paths {
            Confinement::Restricted
        } else {
            Confinement::Open
        },
        home: environment.text("HOME").map(PathBuf::from),
        system: system_prompt(args)?,
        permissions,
        tools: if args.tools.no_tools {
            Tools::None
        } else {
            let jobs = configuration.locations.cache_dir().join("jobs");
            let sub_agents = sub_agents(&args.tools, environment);
            let mut tools = built_in(sub_agents, jobs, environment)?;
            tools.environment = configuration.child_environment();
            tools.web = web;
            Tools::BuiltIn(Box::new(tools))
        },
        selection: Selection {
            only: args.tools.offered.clone(),
            ..Selection::default()
        },
        extras: Some(Box::new(extras)),
        partners,
        history: continued.history,
    };
    Ok((choices, notices))
}

/// The schema of the final answer, given as such or in a file.
fn answer(given: &str) -> Result<AnswerSchema, Failure> {
    let (place, text) = if given.trim_start().starts_with(['{', '[']) {
        ("`--json-schema`".to_owned(), given.to_owned())
    } else {
        let text = std::fs::read_to_string(given).map_err(|error| {
            Failure::NoInput(format!("the schema `{given}` cannot be read: {error}"))
        })?;
        (format!("the schema `{given}`"), text)
    };
    let wrong = |reason: String| Failure::Usage(format!("{place}: {reason}"));
    // Some editors put a mark at the beginning of a file.
    let text = text.trim_start_matches('\u{feff}');
    let schema = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    AnswerSchema::new(schema).map_err(wrong)
}

/// The roots and limits of what a prompt may attach.
pub(crate) fn attachments(
    args: &RunArgs,
    configuration: &Configuration<'_>,
) -> Result<(Vec<PathBuf>, Limits), Failure> {
    let environment = &configuration.environment;
    let number = |flag: Option<u64>, name, default: u64| match flag {
        Some(number) => Ok(number),
        None => Ok::<_, Failure>(environment.number(name)?.unwrap_or(default)),
    };
    let limits = Limits {
        one: number(
            args.limits.max_attach_bytes,
            names::CALIBAN_MAX_ATTACH_BYTES,
            Limits::DEFAULT.one,
        )?,
        all: number(
            args.limits.attach_budget_bytes,
            names::CALIBAN_ATTACH_BUDGET_BYTES,
            Limits::DEFAULT.all,
        )?,
        images: configuration
            .router
            .as_ref()
            .map_or(Limits::DEFAULT.images, |router| {
                let images = router.file.images;
                caliban_images::Limits {
                    max_bytes: images.max_bytes,
                    longest_edge: images.downscale_target,
                }
            }),
    };
    let more = additional_directories(&args.tools, configuration)?
        .into_iter()
        .filter_map(|path| path.canonicalize().ok());
    let roots = std::iter::once(configuration.workspace.clone())
        .chain(more)
        .collect();
    Ok((roots, limits))
}

/// What may be fetched beyond the public internet: the hosts that rules name, and this machine
/// where everything may run, for a command could reach its services just as well.
fn web_policy(permissions: &Permissions) -> WebPolicy {
    let is_open = permissions.auto_allow == AutoAllow::On
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
    }
}

/// What a session tells of itself before it begins.
pub(crate) fn init(
    session: &Session,
    chosen: &Chosen,
    notices: Vec<String>,
    cli: &Cli,
    configuration: &Configuration<'_>,
) -> Init {
    let (rules, bare_mode) = (&cli.rules, cli.settings.bare);
    Init {
        setting_sources: configuration.sources(),
        bare_mode,
        trusted: configuration.is_trusted(),
        fallback_model: chosen.fallback_model.clone(),
        mcp_servers: mcp::states(session.servers()),
        warnings: configuration
            .warnings()
            .into_iter()
            .chain(mcp::warnings(session.servers()))
            .chain(permissions::warnings(rules, configuration))
            .chain(notices)
            .collect(),
        ..plain_init(session)
    }
}

/// The same for a session without configuration.
pub(crate) fn plain_init(session: &Session) -> Init {
    let agent = session.agent();
    Init {
        session_id: agent.session_id.to_string(),
        provider: agent.provider.id().to_owned(),
        model: agent.settings.model.to_string(),
        tools: agent.tools.current().names().map(str::to_owned).collect(),
        setting_sources: Vec::new(),
        bare_mode: false,
        cwd: agent.workspace.root().display().to_string(),
        permission_mode: session.regime().as_str().to_owned(),
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        pricing_as_of: RateCard::builtin().as_of().to_owned(),
        trusted: false,
        fallback_model: None,
        mcp_servers: Vec::new(),
        warnings: Vec::new(),
    }
}

/// A session that leaves nothing behind outside `state`.
pub(crate) fn demo(
    chosen: Chosen,
    workspace: PathBuf,
    state: &Path,
    environment: &Environment<'_>,
) -> Result<Session, Failure> {
    Ok(Session::new(Choices {
        settings: Settings::new(chosen.model),
        provider: chosen.provider,
        rates: Arc::new(RateCard::builtin().clone()),
        session_id: uuid::Uuid::new_v4().to_string(),
        workspace,
        additional_directories: Vec::new(),
        confinement: Confinement::Restricted,
        home: None,
        system: SystemPrompt::Default,
        permissions: Permissions::unattended(),
        tools: Tools::BuiltIn(Box::new(built_in(
            SubAgents::Offered,
            state.join("jobs"),
            environment,
        )?)),
        selection: Selection::default(),
        extras: None,
        partners: Partners::default(),
        history: History::default(),
    })?)
}

fn built_in(
    sub_agents: SubAgents,
    jobs_directory: PathBuf,
    environment: &Environment<'_>,
) -> Result<BuiltIn, Failure> {
    Ok(BuiltIn {
        environment: child_environment(std::env::vars_os(), &[], []),
        guard: guard(),
        jobs_directory,
        search: SearchConfig::from_variables(|name| environment.text(name))
            .map_err(|error| Failure::Config(error.to_string()))?,
        web: WebPolicy::default(),
        sub_agents,
        agent_kinds: Vec::new(),
    })
}

fn sub_agents(args: &ToolArgs, environment: &Environment<'_>) -> SubAgents {
    if args.no_sub_agent || environment.is_set(names::CALIBAN_NO_SUB_AGENT) {
        SubAgents::Withheld
    } else {
        SubAgents::Offered
    }
}

/// This very program, also when its file is replaced while it runs.
pub(crate) fn guard() -> Guard {
    if cfg!(target_os = "linux") {
        return Guard::ReExec(PathBuf::from("/proc/self/exe"));
    }
    std::env::current_exe().map_or(Guard::None, Guard::ReExec)
}

/// The further roots: those that flags name must exist; one of the settings that does not is
/// nobody's to use.
pub(crate) fn additional_directories(
    args: &ToolArgs,
    configuration: &Configuration<'_>,
) -> Result<Vec<PathBuf>, Failure> {
    let named = &args.additional_directories;
    if let Some(missing) = named.iter().find(|path| !path.is_dir()) {
        return Err(Failure::Config(format!(
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
    Ok(named.iter().cloned().chain(configured).collect())
}

fn parallel_tools(
    args: &ToolArgs,
    environment: &Environment<'_>,
) -> Result<Option<NonZeroUsize>, Failure> {
    // A flag of either kind beats both variables.
    if args.no_parallel_tools {
        return Ok(Some(NonZeroUsize::MIN));
    }
    if args.parallel_tool_limit.is_some() {
        return Ok(args.parallel_tool_limit);
    }
    if environment.is_set(names::CALIBAN_NO_PARALLEL_TOOLS) {
        return Ok(Some(NonZeroUsize::MIN));
    }
    Ok(environment.number(names::CALIBAN_PARALLEL_TOOL_LIMIT)?)
}

/// The built-in prices, with the user's over them.
fn rates(environment: &Environment<'_>) -> Result<Arc<RateCard>, Failure> {
    let Some(path) = environment.text(names::CALIBAN_RATES_YAML) else {
        return Ok(Arc::new(RateCard::builtin().clone()));
    };
    let unusable =
        |reason: String| Failure::Config(format!("`CALIBAN_RATES_YAML` names `{path}`: {reason}"));
    let yaml = std::fs::read_to_string(&path).map_err(|error| unusable(error.to_string()))?;
    let card = RateCard::with_overrides(&yaml).map_err(|error| unusable(error.to_string()))?;
    Ok(Arc::new(card))
}

fn system_prompt(args: &RunArgs) -> Result<SystemPrompt, Failure> {
    match (&args.system, &args.system_file, args.no_system) {
        (Some(text), _, _) => Ok(SystemPrompt::Text(text.clone())),
        (None, Some(path), _) => match std::fs::read_to_string(path) {
            Ok(text) => Ok(SystemPrompt::Text(text)),
            Err(error) => Err(Failure::NoInput(format!(
                "system prompt `{}` cannot be read: {error}",
                path.display()
            ))),
        },
        (None, None, true) => Ok(SystemPrompt::None),
        (None, None, false) => Ok(SystemPrompt::Default),
    }
}
