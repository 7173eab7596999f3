//! From options to a session that can be worked with: the one way to begin, whatever drives it.

use std::sync::{Arc, Mutex, PoisonError};

use caliban_agent::{Event, Listener, ToolSource};
use caliban_model::{Message, RateCard};
use caliban_permissions::Latch;
use caliban_sandbox::Sandbox;
use caliban_session::{
    Bounds, Engine, Events, Facts, Fanout, PROTOCOL, Parts, Prompt, Questions, Retention,
    SessionHandle,
};
use caliban_sessions::SessionState;
use caliban_tools::{AgentKind, GENERAL};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use crate::additions::{load_extras, notices};
use crate::attachments::Attachments;
use crate::choices::{Choices, History, SetupError};
use crate::choosing::{further_directories, rates, settings_of_agent, tools};
use crate::config_watch::ConfigWatch;
use crate::configuration::{Configuration, workspace};
use crate::debug_log::{DebugLog, LoggedProvider};
use crate::desk::SessionDesk;
use crate::error::LaunchError;
use crate::history::{Found, prune_sometimes, session_store};
use crate::hosts::HostQuestions;
use crate::journal::Keeper;
use crate::mcp::{self, RunServers};
use crate::model_list::ModelList;
use crate::notice_sink::NoticeSink;
use crate::options::{Extent, RunOptions, Saving};
use crate::permissions::{self, Inherited, Permissions};
use crate::plugins::plugins;
use crate::profiles::{Casting, play};
use crate::provider::{self, Chosen};
use crate::routes::Asked;
use crate::sandbox::{self, start_sandbox, worktree_sandbox};
use crate::seat::Seat;
use crate::session::{LiveMode, Session};
use crate::surroundings::{DialectParts, Process, Surroundings};
use crate::switches::{Switched, Switches};
use crate::telemetry::Telemetry;
use crate::tool_sources::ToolSources;
use crate::typeable;

/// Begins the session that options ask for.
pub async fn launch(
    options: RunOptions,
    surroundings: Surroundings,
) -> Result<Launched, LaunchError> {
    Box::pin(launch_on(Thread::This, options, surroundings)).await
}

/// The same for a face that is drawn meanwhile: a session that takes long to read is read on a
/// thread of its own.
pub async fn launch_apart(
    options: RunOptions,
    surroundings: Surroundings,
) -> Result<Launched, LaunchError> {
    Box::pin(launch_on(Thread::Another, options, surroundings)).await
}

/// Where a session is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    This,
    Another,
}

async fn launch_on(
    thread: Thread,
    options: RunOptions,
    surroundings: Surroundings,
) -> Result<Launched, LaunchError> {
    let Surroundings { process, dialect } = surroundings;
    let mut configuration = configure(&options, process)?;
    if let Some(seat) = &dialect.seat {
        seat.path().clone_into(&mut configuration.workspace);
    }
    let (told, diagnostics) = (
        configuration.warnings(),
        Arc::clone(&configuration.process.diagnostics),
    );
    let prepare = move || Prepared::new(options, dialect, configuration);
    let prepared = match thread {
        Thread::This => prepare(),
        Thread::Another => match tokio::task::spawn_blocking(prepare).await {
            Ok(prepared) => prepared,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => Err(LaunchError::no_input(error.to_string())),
            },
        },
    };
    let launched = match prepared {
        Ok(prepared) => prepared.begin().await,
        Err(error) => Err(error),
    };
    if launched.is_err() {
        // Nobody else will tell them, and one of them may be the reason.
        for warning in &told {
            diagnostics.warning(warning);
        }
    }
    launched
}

/// Reads what is configured for a run.
pub fn configure(options: &RunOptions, process: Process) -> Result<Configuration, LaunchError> {
    let workspace = workspace(options.workspace.as_deref(), &process)?;
    Configuration::load(&options.settings, workspace, process)
}

/// A session that is known and has not begun. Who drives it may bring in, by the parts that are
/// public, what could not be known before: [`launch`] is for those who need not.
#[derive(Debug)]
pub struct Prepared {
    pub options: RunOptions,
    pub dialect: DialectParts,
    pub configuration: Configuration,
    pub chosen: Chosen,
    pub session_id: Uuid,
    pub history: History,
    pub attachments: Attachments,
    inherited: Inherited,
    telemetry: Option<Telemetry>,
    warnings: Vec<String>,
}

/// A session that can begin, and what it tells of itself when it does.
#[derive(Debug)]
pub struct Launched {
    pub facts: Facts,
    session: Session,
    debug: Option<DebugLog>,
    telemetry: Option<Telemetry>,
    fanout: Arc<Fanout>,
    questions: Arc<Questions>,
    bounds: Bounds,
    latch: Latch,
}

impl Launched {
    /// A session that depends on nothing but these choices.
    pub fn of(mut choices: Choices) -> Result<Self, SetupError> {
        let questions = Questions::new(None);
        let fanout = Fanout::new(Retention::NONE, &questions);
        choices.partners.operator = Arc::clone(&questions) as _;
        choices.partners.notice_sink = NoticeSink::new(&fanout);
        let session = Session::new(choices)?;
        Ok(Self {
            facts: facts_of(&session),
            session,
            debug: None,
            telemetry: None,
            fanout,
            questions,
            bounds: Bounds::APPLICATION,
            latch: Latch::Absent,
        })
    }

    /// The first prompt with what it names, where that shall fail before the session begins;
    /// what there is to say about it joins the warnings.
    pub async fn attach(&mut self, prompt: Prompt) -> Result<Message, LaunchError> {
        let notices = Notices::default();
        let message = self.session.attached(prompt, &notices).await?;
        self.facts.warnings.extend(notices.taken());
        Ok(message)
    }

    /// What can be looked up in it.
    pub fn desk(&self) -> SessionDesk {
        SessionDesk::of(&self.session)
    }

    /// How its calls are judged, at every moment.
    pub fn mode(&self) -> LiveMode {
        LiveMode(Arc::clone(&self.session.gate))
    }

    /// The MCP servers that take part.
    pub fn servers(&self) -> Option<&caliban_mcp::Servers> {
        self.session.servers()
    }

    /// Begins the session. The events that come with it are for its first hearer, which the work
    /// waits for.
    pub fn begin(self) -> (SessionHandle, Events) {
        let Self {
            facts,
            mut session,
            debug,
            telemetry,
            fanout,
            questions,
            bounds,
            latch,
        } = self;
        let keeper = Keeper {
            recorder: session.recorder.clone(),
            debug: debug.map(Mutex::new),
        };
        fanout.keep_in(Arc::new(keeper));
        session.facts = facts;
        if let Some(watch) = session.watch.clone() {
            watch.lead(&session);
            let following = async move { match watch.follow().await {} };
            session.following = Some(AbortOnDropHandle::new(tokio::spawn(following)));
        }
        let controls = session.controls(latch);
        let mailbox = session.agent.mailbox.clone().unwrap_or_default();
        let (handle, events) = caliban_session::begin(Parts {
            engine: Box::new(session),
            controls: Arc::new(controls),
            mailbox,
            fanout,
            questions,
            bounds,
        });
        if let Some(telemetry) = telemetry {
            telemetry.hear(&handle);
        }
        (handle, events)
    }
}

/// Gathers what is said before anybody hears a session.
#[derive(Default)]
struct Notices(Mutex<Vec<String>>);

impl Notices {
    fn taken(self) -> Vec<String> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Notices {
    fn hear(&self, event: Event) -> BoxFuture<'_, ()> {
        if let Event::Notice { message, .. } = event {
            let mut notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            notices.push(message);
        }
        async {}.boxed()
    }
}

/// What is known of a session by itself, without its configuration.
pub(crate) fn facts_of(session: &Session) -> Facts {
    let agent = session.agent();
    Facts {
        protocol: Some(PROTOCOL),
        session_id: agent.session_id.to_string(),
        provider: agent.provider.id().to_owned(),
        model: agent.settings.model.to_string(),
        cwd: agent.workspace.root().display().to_string(),
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        pricing_as_of: RateCard::builtin().as_of().to_owned(),
        ..session.facts()
    }
}

impl Prepared {
    /// Finds the session and who answers in it. A session that goes on is locked from here on.
    pub fn new(
        mut options: RunOptions,
        dialect: DialectParts,
        mut configuration: Configuration,
    ) -> Result<Self, LaunchError> {
        configuration.check_built()?;
        play(&mut options, &configuration)?;
        let mut told = Vec::new();
        let telemetry = Telemetry::wished(dialect.trace, &configuration, &mut told)?;
        let wiretap = telemetry.as_ref();
        configuration.wiretap = wiretap.and_then(|it| it.wiretap(&configuration));
        let attachments = Attachments::new(&options, &configuration)?;
        let found = Found::new(&options.session, &configuration)?;
        found.check_system(&options.system, &options.session)?;
        options.system = found.system(options.system);
        if let (Some(seat), None) = (&dialect.seat, found.earlier()) {
            options.system = seat.tell(options.system);
        }
        let session_id = found.session_id;
        let chosen = choose(&options, &dialect, found.earlier(), &configuration)?;
        let recorded = found.earlier().and_then(|state| state.mode.as_deref());
        let inherited = Inherited::new(recorded, options.session.earlier_mode);
        let (mut history, mut warnings) =
            found.history(chosen.provider.id(), &chosen.model, &configuration)?;
        history.plan_unless(options.permissions.mode);
        history.think_unless(&mut options);
        warnings.append(&mut told);
        Ok(Self {
            options,
            dialect,
            configuration,
            chosen,
            session_id,
            history,
            attachments,
            inherited,
            telemetry,
            warnings,
        })
    }

    /// Starts the servers, waits a moment for them, and makes the session. Dropping the future
    /// ends everything that was started.
    pub fn begin(self) -> BoxFuture<'static, Result<Launched, LaunchError>> {
        async move {
            let mut prepared = self;
            let questions = Questions::new(prepared.dialect.patience);
            let retention = match &prepared.telemetry {
                Some(_) => Retention::USUAL,
                None => prepared.dialect.retention,
            };
            let fanout = Fanout::new(retention, &questions);
            // What the sandbox shows of them is known when it starts.
            drop(plugins(&prepared.options, &prepared.configuration));
            let tools = &prepared.options.tools;
            let hosts = HostQuestions::new(Arc::clone(&questions) as _);
            let sandbox = match &prepared.dialect.seat {
                None => start_sandbox(tools, &prepared.configuration, &hosts).await?,
                Some(seat) => {
                    let configuration = &prepared.configuration;
                    worktree_sandbox(tools, configuration, seat.path(), &hosts).await?
                }
            };
            let servers = RunServers::start(
                &prepared.options,
                &prepared.configuration,
                sandbox.as_ref(),
                std::mem::take(&mut prepared.dialect.hosted),
                &questions,
                NoticeSink::new(&fanout),
                DebugLog::wanted(&prepared.options.debug, &prepared.configuration)?,
            )?;
            servers.settle().await;
            let news = prepared.dialect.seat.as_ref().and_then(Seat::news);
            let mut launched =
                prepared.launched(servers, sandbox.as_ref(), &hosts, fanout, questions)?;
            let prompts = typeable::prompts(launched.session.servers()).await;
            typeable::list(&mut launched.facts, &prompts);
            launched.session.server_prompts = prompts;
            let session = &launched.session;
            hosts.follow(&session.gate, &session.agent.company.observers);
            if let Some(news) = news {
                launched.session.agent.company.notify(&news).await;
            }
            Ok(launched)
        }
        .boxed()
    }

    #[expect(clippy::too_many_lines, reason = "every part is handed on once")]
    fn launched(
        self,
        servers: RunServers,
        sandbox: Option<&Arc<Sandbox>>,
        hosts: &Arc<HostQuestions>,
        fanout: Arc<Fanout>,
        questions: Arc<Questions>,
    ) -> Result<Launched, LaunchError> {
        let Self {
            options,
            dialect,
            configuration,
            chosen,
            session_id,
            history,
            attachments,
            inherited,
            telemetry,
            mut warnings,
        } = self;
        let provider = LoggedProvider::around(chosen.provider, &options.debug, &configuration)?;
        let mut extras = load_extras(&options, &configuration)?;
        extras.hook_wording = dialect.hook_wording;
        warnings.extend(notices(&extras));
        if let Some(notes) = &extras.notes
            && options.session.saving == Saving::On
        {
            // Where it cannot be written, the first note that is saved says so.
            let _ = notes.bootstrap(&configuration.workspace);
        }
        let context = &extras.context;
        let commands = typeable::typeable(&context.commands);
        let skills = context.skills.iter();
        let skills = skills.map(|skill| skill.name().to_owned()).collect();
        let plugin_facts = extras.plugins.facts();
        let casting = Casting::new(&configuration, dialect.model_names.as_ref())?;
        let kinds = casting.kinds(dialect.agent_kinds, &context.profiles);
        warnings.extend(unknown_default(&configuration, &kinds));
        let mut permissions =
            Permissions::choose(&options.permissions, &inherited, &configuration)?;
        if let Some(seat) = &dialect.seat {
            let protected = permissions.protected;
            permissions.protected = protected.in_worktree(seat.path().to_owned());
        }
        warnings.extend(permissions.remarks(&inherited, &options.permissions));
        warnings.extend(servers.left.iter().cloned());
        let mut partners = servers.partners();
        partners.advisers = dialect.advisers;
        partners.prompt_stages = dialect.prompt_stages;
        partners.stop_stages = dialect.stop_stages;
        partners.observers = dialect.observers;
        partners.traces = telemetry.as_ref().map(Telemetry::traces);
        partners.models = ModelList::of(&configuration).with_names(dialect.model_names);
        partners.fleet = dialect.fleet;
        partners.seat = dialect.seat;
        let watch = ConfigWatch::new(configuration.clone(), options.clone());
        partners.watch = Some(Arc::new(watch));
        partners.tool_source = source(
            partners.tool_source,
            &partners.switches,
            dialect.tool_sources,
        );
        let session_id = session_id.to_string();
        let mut settings = settings_of_agent(&options, &chosen.model, &session_id, &configuration)?;
        settings.overrides = chosen.overrides.unwrap_or(settings.overrides);
        warnings.extend(chosen.warnings);
        let mut session = Session::new(Choices {
            settings,
            provider: match dialect.wrap_provider {
                Some(wrap) => wrap(provider),
                None => provider,
            },
            rates: rates(configuration.environment())?,
            session_id,
            images: attachments.images(),
            workspace: configuration.workspace.clone(),
            additional_directories: further_directories(&options.tools, &configuration)?,
            confinement: options.tools.confinement,
            home: Some(configuration.process.home.clone()),
            system: options.system.clone(),
            tools: tools(&options, &permissions, kinds, hosts, &configuration)?,
            permissions,
            sandbox: sandbox.cloned(),
            selection: options.tools.selection.clone(),
            extras: Some(Box::new(extras)),
            partners,
            history,
        })?;
        let debug = DebugLog::wanted(&options.debug, &configuration)?;
        if options.session.saving == Saving::On {
            let store = session_store(&options.session, &configuration);
            prune_sometimes(&store, &configuration)?;
        }
        let mut all = configuration.warnings();
        all.extend(mcp::warnings(session.servers()));
        all.extend(permissions::warnings(
            &options.permissions.rules,
            &configuration,
        ));
        all.extend(sandbox.iter().flat_map(|sandbox| sandbox.warnings()));
        all.append(&mut warnings);
        let attachments = attachments.within(&session.agent.workspace);
        session.attachments = Some(attachments);
        session.examiner = dialect.examiner;
        let facts = Facts {
            fallback_model: chosen.fallback_model,
            commands: typeable::named(&commands),
            hints: typeable::hints(&commands),
            skills,
            plugins: plugin_facts,
            setting_sources: configuration.sources(),
            bare: options.settings.extent == Extent::Bare,
            trusted: configuration.is_trusted(),
            warnings: all,
            sandbox: sandbox::facts(sandbox),
            ..facts_of(&session)
        };
        Ok(Launched {
            facts,
            session,
            debug,
            telemetry,
            fanout,
            questions,
            bounds: dialect.bounds,
            latch: options.permissions.latch,
        })
    }
}

/// What is said of a default kind of sub-agents that nobody defined: calls without one would fail.
fn unknown_default(configuration: &Configuration, kinds: &[AgentKind]) -> Option<String> {
    let name = configuration.settings().agent.as_ref()?;
    let is_known = name == GENERAL || kinds.iter().any(|kind| kind.name == *name);
    (!is_known).then(|| {
        format!("`agent` in the settings names `{name}`, and there is no such agent profile")
    })
}

/// Who answers. Where nobody can be set up, it is who stands in, if anybody does.
fn choose(
    options: &RunOptions,
    dialect: &DialectParts,
    earlier: Option<&SessionState>,
    configuration: &Configuration,
) -> Result<Chosen, LaunchError> {
    let model = provider::continued(&options.model, earlier);
    let asked = Asked {
        options: &options.model,
        continued: &model,
        budget: options.limits.budget,
    };
    let models = ModelList::of(configuration);
    let flags = [&options.model.model, &options.model.fallback];
    for named in flags.into_iter().flatten() {
        models.check(named).map_err(LaunchError::usage)?;
    }
    if let (None, Some(fallback)) = (
        &options.model.fallback,
        &configuration.settings().fallback_model,
    ) {
        let checked = models.check(fallback.name());
        checked
            .map_err(|reason| LaunchError::configuration(format!("`fallback_model`: {reason}")))?;
    }
    let chosen = provider::choose(&asked, options.cassette.as_ref(), configuration);
    match (chosen, &dialect.stand_in) {
        (Err(LaunchError::Configuration(reason)), Some(stand_in)) => {
            let kind = provider::kind(model.provider, model.model.as_deref(), configuration)?;
            Ok(Chosen {
                provider: stand_in(reason.to_string()),
                model: provider::model(model.model.as_deref(), kind, configuration),
                fallback_model: None,
                overrides: None,
                warnings: Vec::new(),
            })
        }
        (chosen, _) => chosen,
    }
}

/// The tools that come and go: those of servers that are not switched off, and the dialect's own.
fn source(
    servers: Option<Arc<dyn ToolSource>>,
    switches: &Arc<Switches>,
    own: Vec<Arc<dyn ToolSource>>,
) -> Option<Arc<dyn ToolSource>> {
    let servers = servers.map(|source| {
        let switches = Arc::clone(switches);
        Arc::new(Switched { source, switches }) as Arc<dyn ToolSource>
    });
    if own.is_empty() {
        return servers;
    }
    Some(Arc::new(ToolSources(
        servers.into_iter().chain(own).collect(),
    )))
}
