//! From options, variables and settings to the MCP servers of a run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_agent::{Confinement, Event, SharedOperator, ToolSource, Workspace};
use caliban_mcp::authorization::Authorization;
use caliban_mcp::oauth::OauthServer;
use caliban_mcp::{Laziness, Link, Log, Parts, PinStore, ServerConfig, Status, Variables};
use caliban_permissions::RuleBook;
use caliban_sandbox::Sandbox;
use caliban_session::Questions;
use caliban_settings::variables::names;
use caliban_settings::{McpConfig, McpServer, RuleAction};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;

use crate::choices::Partners;
use crate::configuration::Configuration;
use crate::debug_log::DebugLog;
use crate::error::{LaunchError, Problem};
use crate::logins::logins;
use crate::notice_sink::NoticeSink;
use crate::options::{ConfiguredServers, Extent, Part, RunOptions};
use crate::permissions::{judge, protected, rule_book};
use crate::plugins::plugins;
use crate::sandbox::confiner;
use crate::servers::{Elicitations, MayAsk, Onlookers, PromptTool};

/// How long a server of the embedding program may take to introduce itself.
const HOSTED_PATIENCE: Duration = Duration::from_secs(30);

/// A server by its name.
pub(crate) type NamedServer = (String, McpServer);

/// The servers to connect to, by name: those of the command line before those of the settings, and
/// those of plugins last; and what is said of those that are left out.
fn configured(
    options: &RunOptions,
    configuration: &Configuration,
) -> Result<(Vec<NamedServer>, Vec<String>), LaunchError> {
    let wanted = &options.servers;
    let is_off =
        wanted.servers == Part::Off || configuration.environment().is_on(names::CALIBAN_NO_MCP);
    if is_off {
        return Ok((Vec::new(), Vec::new()));
    }
    let mut given = McpConfig::default();
    for config in &wanted.configs {
        given.read(config)?;
    }
    let is_strict =
        wanted.configured == ConfiguredServers::Left || options.settings.extent == Extent::Bare;
    let settings = (!is_strict).then(|| configuration.settings().mcp_servers.clone());
    let settings = settings.into_iter().flatten();
    let (of_plugins, left) = if is_strict {
        (Vec::new(), Vec::new())
    } else {
        plugins(options, configuration).servers(configuration)
    };
    let all = given.servers.into_iter().chain(settings).chain(of_plugins);
    Ok((all.collect(), left))
}

/// What servers are run with.
pub fn server_parts(
    configured: &[(String, McpServer)],
    configuration: &Configuration,
    notice_sink: &NoticeSink,
    debug: Option<DebugLog>,
) -> Parts {
    let variables = server_variables(configuration);
    let mut parts = Parts::new(
        configuration.workspace.clone(),
        configuration.child_environment(),
        variables,
        configuration.process.guard.clone(),
    );
    let tools = &configuration.settings().tools;
    let default = Laziness::default();
    let most = tools
        .max_active_schemas
        .and_then(|most| most.try_into().ok());
    parts.laziness = Laziness {
        lazy: tools.lazy_mcp,
        max_active: most.unwrap_or(default.max_active),
        ..default
    };
    parts.authorization = authorization(configured, configuration);
    parts.pins = Some(PinStore::new(configuration.locations.data_dir()));
    parts.log = Arc::new(ServerLog {
        notice_sink: notice_sink.clone(),
        debug: debug.map(Mutex::new),
    });
    parts
}

/// What `${NAME}` in the settings of servers stands for.
pub fn server_variables(configuration: &Configuration) -> Variables {
    let workspace = configuration.workspace.to_str().map(str::to_owned);
    let environment = configuration.environment().clone();
    Variables::new(move |name| match name {
        "CLAUDE_PROJECT_DIR" | "CALIBAN_PROJECT_DIR" => workspace.clone(),
        name => environment.reader()(name),
    })
}

/// The logins to servers that need one; those whose settings do not add up have none.
fn authorization(
    configured: &[(String, McpServer)],
    configuration: &Configuration,
) -> Option<Arc<dyn Authorization>> {
    let variables = server_variables(configuration);
    let with_oauth = |(name, server): &(String, McpServer)| {
        let server = OauthServer::from_settings(name, server, &variables).ok()??;
        Some((name.clone(), server))
    };
    let servers: BTreeMap<String, OauthServer> = configured.iter().filter_map(with_oauth).collect();
    (!servers.is_empty())
        .then(|| Arc::new(logins(configuration, servers)) as Arc<dyn Authorization>)
}

/// The servers of a run and what they share with its session.
#[derive(Debug)]
pub(crate) struct RunServers {
    connected: Option<caliban_mcp::Servers>,
    /// The names of those that live in the embedding program.
    hosted: Vec<String>,
    /// What is said of servers that are left out.
    pub(crate) left: Vec<String>,
    notice_sink: NoticeSink,
    operator: SharedOperator,
    onlookers: Onlookers,
}

impl RunServers {
    /// Starts the servers of a run, and returns at once. `hosted` are those of the program that
    /// embeds this one; what servers ask is a question of the session.
    pub(crate) fn start(
        options: &RunOptions,
        configuration: &Configuration,
        sandbox: Option<&Arc<Sandbox>>,
        hosted: Vec<(String, Link)>,
        questions: &Arc<Questions>,
        notice_sink: NoticeSink,
        debug: Option<DebugLog>,
    ) -> Result<Self, LaunchError> {
        let names = hosted.iter().map(|(name, _)| name.clone()).collect();
        let (configured, left) = configured(options, configuration)?;
        let is_needed = !configured.is_empty() || !hosted.is_empty();
        let onlookers = Onlookers::default();
        let connected = if is_needed && options.tools.built_in == Part::AsConfigured {
            let mut parts = server_parts(&configured, configuration, &notice_sink, debug);
            parts.confiner = confiner(sandbox, &notice_sink);
            let book = rule_book(&options.permissions, &configuration.loaded)?;
            parts.elicitor = Some(Arc::new(Elicitations {
                operator: Arc::clone(questions) as _,
                onlookers: onlookers.clone(),
                notice_sink: notice_sink.clone(),
                may_ask: may_ask(book, configuration)?,
            }));
            let configured = configured
                .into_iter()
                .map(|(name, server)| (name, ServerConfig::from(server)));
            let hosted = hosted
                .into_iter()
                .map(|(name, link)| (name, ServerConfig::from(link)));
            Some(caliban_mcp::Servers::start(hosted.chain(configured), parts))
        } else {
            None
        };
        match (&options.servers.prompt_tool, &connected) {
            (None, _) => {}
            (Some(tool), Some(servers)) => {
                questions.stand_in(Arc::new(PromptTool::new(servers.clone(), tool.clone())));
            }
            (Some(tool), None) => {
                return Err(LaunchError::configuration(format!(
                    "`--permission-prompt-tool {tool}` needs an MCP server, and none is configured"
                )));
            }
        }
        Ok(Self {
            connected,
            hosted: names,
            left,
            notice_sink,
            operator: Arc::clone(questions) as _,
            onlookers,
        })
    }

    /// Waits for the servers of the embedding program, which are there already, and a moment for
    /// others, so that a handful of them is there from the start.
    pub(crate) async fn settle(&self) {
        let Some(servers) = &self.connected else {
            return;
        };
        servers.settle(servers.startup_patience()).await;
        let mut changes = servers.changes();
        let is_waiting = || {
            servers.status().iter().any(|server| {
                let is_hosted = self.hosted.iter().any(|name| **name == *server.name);
                server.status == Status::Connecting && is_hosted
            })
        };
        let waiting = async {
            while is_waiting() {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // What is not there by then joins when it is.
        let _ = timeout(HOSTED_PATIENCE, waiting).await;
    }

    /// What takes part in the session.
    pub(crate) fn partners(self) -> Partners {
        Partners {
            tool_source: self
                .connected
                .clone()
                .map(|servers| Arc::new(servers) as Arc<dyn ToolSource>),
            servers: self.connected,
            notice_sink: self.notice_sink,
            operator: self.operator,
            onlookers: self.onlookers,
            ..Partners::default()
        }
    }
}

/// A rule such as `Elicit:server` keeps a server from asking.
fn may_ask(book: RuleBook, configuration: &Configuration) -> Result<MayAsk, LaunchError> {
    let home = configuration.locations.home().to_owned();
    let workspace = Workspace::new(
        &configuration.workspace,
        &[],
        Some(home.clone()),
        Confinement::Open,
    )
    .map_err(Problem::from_error)
    .map_err(LaunchError::Configuration)?;
    let protected = protected(configuration);
    let judge = judge(book, protected, workspace, Some(home));
    Ok(Arc::new(move |server| {
        let decision = judge.decide("Elicit", &json!({"server": server}), Timestamp::now());
        decision.action != RuleAction::Deny
    }))
}

/// Where a server stands, in the words that frames use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerState {
    pub name: String,
    pub status: &'static str,
}

/// Where each server stands.
pub fn server_states(servers: Option<&caliban_mcp::Servers>) -> Vec<ServerState> {
    let statuses = servers
        .map(caliban_mcp::Servers::status)
        .unwrap_or_default();
    statuses
        .into_iter()
        .map(|server| ServerState {
            name: server.name.to_string(),
            status: status_name(&server.status),
        })
        .collect()
}

pub fn status_name(status: &Status) -> &'static str {
    match status {
        Status::Connecting => "pending",
        Status::Connected { .. } => "connected",
        Status::Failed { .. } => "failed",
        Status::NeedsAuth { .. } => "needs-auth",
        Status::Disabled => "disabled",
    }
}

/// What there is to warn about before the run begins.
pub(crate) fn warnings(servers: Option<&caliban_mcp::Servers>) -> Vec<String> {
    let statuses = servers
        .map(caliban_mcp::Servers::status)
        .unwrap_or_default();
    statuses
        .iter()
        .filter(|server| {
            matches!(
                server.status,
                Status::Failed { .. } | Status::NeedsAuth { .. }
            )
        })
        .map(|server| format!("the MCP server {} {}", server.name, server.status))
        .collect()
}

/// Warnings go to those who follow the run, a server's own output to the debug log.
#[derive(Debug)]
struct ServerLog {
    notice_sink: NoticeSink,
    debug: Option<Mutex<DebugLog>>,
}

impl Log for ServerLog {
    fn line(&self, server: &str, line: &str) {
        if let Some(debug) = &self.debug {
            let mut debug = debug.lock().unwrap_or_else(PoisonError::into_inner);
            debug.line(&format!("mcp server {server}: {line}"));
        }
    }

    fn warning(&self, server: &str, text: &str) {
        self.notice_sink.say(Event::Notice {
            subtype: "mcp".into(),
            message: format!("the MCP server {server}: {text}"),
        });
    }

    /// In the words of the warnings that a session begins with, so that nobody is told twice.
    fn given_up(&self, server: &str, status: &Status) {
        self.notice_sink.say(Event::Notice {
            subtype: "mcp".into(),
            message: format!("the MCP server {server} {status}"),
        });
    }
}
