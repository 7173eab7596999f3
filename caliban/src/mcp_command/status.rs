//! `caliban mcp status`: where each server stands, after an attempt to connect to it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use caliban_harness::options::ToolOptions;
use caliban_harness::{
    Configuration, HostQuestions, NoticeSink, confiner, logins, server_parts, start_sandbox,
    status_name,
};
use caliban_mcp::oauth::LoginState;
use caliban_mcp::{ServerConfig, ServerStatus, Servers, Status};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::show::{pretty, transport};
use crate::console::Console;
use crate::exit::Failure;

/// How long servers may take to end again.
const GRACE: Duration = Duration::from_secs(1);

/// A server, where it stands, and until when its login holds.
struct Row {
    server: ServerStatus,
    transport: &'static str,
    login: Option<Login>,
}

/// What is kept of a login to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Login {
    None,
    Until(Option<Timestamp>),
    /// What was kept cannot be used.
    Unusable(String),
}

pub(super) async fn print(
    configuration: &Configuration,
    json: bool,
    console: &mut Console,
) -> Result<(), Failure> {
    let rows = rows(configuration).await;
    if json {
        let rows: Vec<Value> = rows.iter().map(Row::object).collect();
        return console.write(&pretty(&json!(rows))?);
    }
    if rows.is_empty() {
        return console.write("no MCP servers; `caliban mcp add` adds one\n");
    }
    let width = rows.iter().map(|row| row.server.name.len()).max();
    let width = width.unwrap_or_default();
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(
            text,
            "{} {:width$}  {:5}  {}",
            glyph(&row.server.status),
            row.server.name,
            row.transport,
            row.described()
        );
        for tool in &row.server.withheld {
            let name = &row.server.name;
            let _ = writeln!(
                text,
                "  `{tool}` has changed and is withheld; `caliban mcp approve {name}` approves it"
            );
        }
    }
    console.write(&text)
}

/// Every server that is configured, after it had its time to connect.
async fn rows(configuration: &Configuration) -> Vec<Row> {
    let configured: Vec<_> = configuration
        .settings()
        .mcp_servers
        .clone()
        .into_iter()
        .collect();
    let mut parts = server_parts(&configured, configuration, &NoticeSink::default(), None);
    // Where there is none, a server that asks for it fails and says why.
    let hosts = HostQuestions::unattended();
    let sandbox = start_sandbox(&ToolOptions::default(), configuration, &hosts).await;
    parts.confiner = confiner(sandbox.ok().flatten().as_ref(), &NoticeSink::default());
    let patience = parts.timeouts.connect;
    let configs = configured.iter().cloned();
    let servers = Servers::start(
        configs.map(|(name, server)| (name, ServerConfig::from(server))),
        parts,
    );
    servers.settle(patience).await;
    let mut rows = Vec::new();
    for server in servers.status() {
        let settings = &configuration.settings().mcp_servers[&*server.name];
        rows.push(Row {
            login: login(configuration, &server.name).await,
            transport: transport(settings),
            server,
        });
    }
    servers.shutdown(GRACE).await;
    rows
}

/// What is kept of the login to a server; nothing where it has none.
async fn login(configuration: &Configuration, name: &str) -> Option<Login> {
    let settings = configuration.settings().mcp_servers.get(name)?;
    match super::oauth_server(configuration, name, settings) {
        Err(error) => Some(Login::Unusable(error.to_string())),
        Ok(None) => None,
        Ok(Some(server)) => {
            let servers = BTreeMap::from([(name.to_owned(), server)]);
            match logins(configuration, servers).state(name).await {
                Err(error) => Some(Login::Unusable(error.to_string())),
                Ok(None | Some(LoginState::Absent | LoginState::Ended)) => Some(Login::None),
                Ok(Some(LoginState::Renewable)) => Some(Login::Until(None)),
                Ok(Some(LoginState::Valid { until })) => Some(Login::Until(until)),
            }
        }
    }
}

fn glyph(status: &Status) -> char {
    match status {
        Status::Connected { .. } => '●',
        Status::Connecting | Status::NeedsAuth { .. } => '◐',
        Status::Failed { .. } | Status::Disabled => '○',
    }
}

impl Row {
    fn described(&self) -> String {
        let mut text = self.server.status.to_string();
        match &self.login {
            None | Some(Login::None) => {}
            Some(Login::Until(None)) => text.push_str("; logged in"),
            Some(Login::Until(Some(until))) => {
                let _ = write!(text, "; logged in until {until}");
            }
            Some(Login::Unusable(reason)) => {
                let _ = write!(text, "; {reason}");
            }
        }
        text
    }

    fn object(&self) -> Value {
        let mut object = json!({
            "name": &*self.server.name,
            "type": self.transport,
            "status": status_name(&self.server.status),
        });
        match &self.server.status {
            Status::Connected { tools, info } => {
                object["tools"] = json!(tools);
                object["server"] = json!({"name": info.name, "version": info.version});
            }
            Status::Failed { reason } => object["reason"] = json!(reason),
            Status::NeedsAuth { reason, remedy } => {
                object["reason"] = json!(reason);
                object["remedy"] = json!(remedy);
            }
            Status::Connecting | Status::Disabled => {}
        }
        if !self.server.withheld.is_empty() {
            object["withheld"] = json!(self.server.withheld);
        }
        match &self.login {
            Some(Login::Until(until)) => {
                object["logged_in"] = json!(true);
                if let Some(until) = until {
                    object["expires_at"] = json!(until);
                }
            }
            Some(Login::None) => object["logged_in"] = json!(false),
            Some(Login::Unusable(reason)) => object["login_problem"] = json!(reason),
            None => {}
        }
        object
    }
}
