//! From flags, variables and settings to the MCP servers of a run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use caliban_agent::{Confinement, Event, SharedOperator, ToolSource, Workspace};
use caliban_harness::{Asides, Elicitations, MayAsk, Partners, PromptTool, judge, protected};
use caliban_mcp::authorization::Authorization;
use caliban_mcp::oauth::OauthServer;
use caliban_mcp::{Laziness, Link, Log, Parts, PinStore, ServerConfig, Status, Variables};
use caliban_model::{Block, Message, ToolContent};
use caliban_permissions::RuleBook;
use caliban_protocol::McpServerState;
use caliban_settings::variables::names;
use caliban_settings::{McpConfig, McpServer, RuleAction};
use jiff::Timestamp;
use serde_json::json;

use crate::args::Cli;
use crate::attachments::{Limits, references};
use crate::configuration::Configuration;
use crate::debug_log::DebugLog;
use crate::exit::Failure;
use crate::mcp_command::logins;
use crate::permissions;
use crate::session::guard;

/// The servers to connect to, by name; those of the command line before those of the settings.
pub(crate) fn configured(
    cli: &Cli,
    configuration: &Configuration<'_>,
) -> Result<Vec<(String, McpServer)>, Failure> {
    let args = &cli.run.servers;
    if args.no_mcp || configuration.environment.is_set(names::CALIBAN_NO_MCP) {
        return Ok(Vec::new());
    }
    let mut given = McpConfig::default();
    for config in &args.mcp_config {
        given.read(config)?;
    }
    let is_strict = args.strict_mcp_config || cli.settings.bare;
    let settings = (!is_strict).then(|| configuration.settings().mcp_servers.clone());
    let settings = settings.into_iter().flatten();
    Ok(given.servers.into_iter().chain(settings).collect())
}

/// What servers are run with.
pub(crate) fn parts(
    configured: &[(String, McpServer)],
    configuration: &Configuration<'_>,
    asides: &Asides,
    debug: Option<DebugLog>,
) -> Parts {
    let variables = variables(configuration);
    let mut parts = Parts::new(
        configuration.workspace.clone(),
        configuration.child_environment(),
        variables,
        guard(),
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
        asides: asides.clone(),
        debug: debug.map(Mutex::new),
    });
    parts
}

/// What `${NAME}` in the settings of servers stands for.
pub(crate) fn variables(configuration: &Configuration<'_>) -> Variables {
    let workspace = configuration.workspace.to_str().map(str::to_owned);
    Variables::new(move |name| match name {
        "CLAUDE_PROJECT_DIR" | "CALIBAN_PROJECT_DIR" => workspace.clone(),
        name => std::env::var(name).ok(),
    })
}

/// The logins to servers that need one; those whose settings do not add up have none.
fn authorization(
    configured: &[(String, McpServer)],
    configuration: &Configuration<'_>,
) -> Option<Arc<dyn Authorization>> {
    let variables = variables(configuration);
    let with_oauth = |(name, server): &(String, McpServer)| {
        let server = OauthServer::from_settings(name, server, &variables).ok()??;
        Some((name.clone(), server))
    };
    let servers: BTreeMap<String, OauthServer> = configured.iter().filter_map(with_oauth).collect();
    (!servers.is_empty())
        .then(|| Arc::new(logins(configuration, servers)) as Arc<dyn Authorization>)
}

/// The servers of a run and what they share with its session.
pub(crate) struct Servers {
    connected: Option<caliban_mcp::Servers>,
    asides: Asides,
    operator: SharedOperator,
}

impl Servers {
    /// Starts the servers of a run, and returns at once. `hosted` are those of the program that
    /// embeds this one, and `operator` answers what servers ask.
    pub(crate) fn start(
        cli: &Cli,
        configuration: &Configuration<'_>,
        hosted: Vec<(String, Link)>,
        operator: SharedOperator,
        debug: Option<DebugLog>,
    ) -> Result<Self, Failure> {
        let asides = Asides::default();
        let configured = configured(cli, configuration)?;
        if configured.is_empty() && hosted.is_empty() || cli.run.tools.no_tools {
            return Self::new(None, asides, cli, operator);
        }
        let mut parts = parts(&configured, configuration, &asides, debug);
        parts.elicitor = Some(Arc::new(Elicitations {
            operator: Arc::clone(&operator),
            asides: asides.clone(),
            may_ask: may_ask(
                &permissions::book(&cli.rules, configuration)?,
                configuration,
            )?,
        }));
        let configured = configured
            .into_iter()
            .map(|(name, server)| (name, ServerConfig::from(server)));
        let hosted = hosted
            .into_iter()
            .map(|(name, link)| (name, ServerConfig::from(link)));
        let servers = caliban_mcp::Servers::start(hosted.chain(configured), parts);
        Self::new(Some(servers), asides, cli, operator)
    }

    fn new(
        servers: Option<caliban_mcp::Servers>,
        asides: Asides,
        cli: &Cli,
        operator: SharedOperator,
    ) -> Result<Self, Failure> {
        let operator: SharedOperator = match (&cli.run.servers.permission_prompt_tool, &servers) {
            (None, _) => operator,
            (Some(tool), Some(servers)) => Arc::new(PromptTool::new(servers.clone(), tool.clone())),
            (Some(tool), None) => {
                return Err(Failure::Config(format!(
                    "`--permission-prompt-tool {tool}` needs an MCP server, and none is configured"
                )));
            }
        };
        Ok(Self {
            connected: servers,
            asides,
            operator,
        })
    }

    /// Waits a moment, so that a handful of servers is there from the start.
    pub(crate) async fn settle(&self) {
        if let Some(servers) = &self.connected {
            servers.settle(servers.startup_patience()).await;
        }
    }

    /// Reads the resources that a prompt names as `@server:resource`, and sends them along.
    pub(crate) async fn attach(
        &self,
        typed: &str,
        message: &mut Message,
        limits: Limits,
    ) -> Result<(), Failure> {
        let Some(servers) = &self.connected else {
            return Ok(());
        };
        let names: Vec<Arc<str>> = servers.status().into_iter().map(|it| it.name).collect();
        let mut total = 0;
        for reference in references(typed) {
            let known = |(server, _): &(&str, &str)| names.iter().any(|name| **name == **server);
            let Some((server, resource)) = reference.split_once(':').filter(known) else {
                continue;
            };
            let (resource, args) = template_arguments(resource);
            let unreadable = |reason: String| {
                Failure::NoInput(format!("`@{reference}` cannot be read: {reason}"))
            };
            let content = servers
                .read_resource(server, resource, &args)
                .await
                .map_err(|error| unreadable(error.to_string()))?;
            for part in content {
                let block = match part {
                    ToolContent::Text { text } => {
                        total += text.len() as u64;
                        if text.len() as u64 > limits.one || total > limits.all {
                            return Err(unreadable("it is too large to be attached".to_owned()));
                        }
                        Block::text(format!(
                            "<resource server=\"{server}\" name=\"{resource}\">\n{text}\n</resource>"
                        ))
                    }
                    ToolContent::Image(image) => Block::Image(image),
                };
                message.content.push(block);
            }
        }
        Ok(())
    }

    pub(crate) fn handle(&self) -> Option<&caliban_mcp::Servers> {
        self.connected.as_ref()
    }

    /// What takes part in the session.
    pub(crate) fn partners(self) -> Partners {
        Partners {
            tool_source: self
                .connected
                .clone()
                .map(|servers| Arc::new(servers) as Arc<dyn ToolSource>),
            servers: self.connected,
            asides: self.asides,
            operator: self.operator,
            advisers: Vec::new(),
        }
    }
}

/// `name(a,b)` is a template with what fills its places.
fn template_arguments(resource: &str) -> (&str, Vec<String>) {
    match resource.strip_suffix(')').and_then(|it| it.split_once('(')) {
        Some((name, args)) => {
            let args = args.split(',').map(|arg| arg.trim().to_owned());
            (name, args.collect())
        }
        None => (resource, Vec::new()),
    }
}

/// A rule such as `Elicit:server` keeps a server from asking.
fn may_ask(book: &RuleBook, configuration: &Configuration<'_>) -> Result<MayAsk, Failure> {
    let home = configuration.locations.home().to_owned();
    let workspace = Workspace::new(
        &configuration.workspace,
        &[],
        Some(home.clone()),
        Confinement::Open,
    )
    .map_err(|error| Failure::Config(error.to_string()))?;
    let protected = protected(&configuration.locations);
    let judge = judge(book.clone(), protected, workspace, Some(home));
    Ok(Arc::new(move |server| {
        let decision = judge.decide("Elicit", &json!({"server": server}), Timestamp::now());
        decision.action != RuleAction::Deny
    }))
}

/// Where each server stands, as frames tell it.
pub(crate) fn states(servers: Option<&caliban_mcp::Servers>) -> Vec<McpServerState> {
    let statuses = servers
        .map(caliban_mcp::Servers::status)
        .unwrap_or_default();
    statuses
        .into_iter()
        .map(|server| McpServerState {
            name: server.name.to_string(),
            status: status_name(&server.status),
        })
        .collect()
}

pub(crate) fn status_name(status: &Status) -> &'static str {
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
    asides: Asides,
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
        self.asides.say(Event::Notice {
            subtype: "mcp",
            message: format!("the MCP server {server}: {text}"),
        });
    }
}
