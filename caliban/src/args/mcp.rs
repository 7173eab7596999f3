//! The arguments that concern MCP servers.

use caliban_settings::{McpTransport, OauthMode, Scope};
use clap::{Args, Subcommand, ValueEnum};

/// How MCP servers are reached.
#[derive(Debug, Args)]
#[command(next_help_heading = "MCP")]
pub(crate) struct McpArgs {
    /// The local port that the browser comes back to after a login to an MCP server; any free one
    /// when 0 (`CALIBAN_MCP_OAUTH_PORT`)
    #[arg(long, value_name = "PORT", global = true)]
    pub(crate) mcp_oauth_port: Option<u16>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List the servers that are configured.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show how a server is configured, as JSON with secrets masked.
    Get {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Add a server: a program after `--`, or an address.
    #[command(after_help = "Examples:\n  \
        caliban mcp add files -- npx -y @modelcontextprotocol/server-filesystem .\n  \
        caliban mcp add notion https://mcp.notion.com/mcp --oauth auto\n  \
        caliban mcp add api https://api.example.com/mcp -H 'Authorization: Bearer ${API_TOKEN}'")]
    Add(McpAddArgs),
    /// Add a server given as a JSON object, as in other programs' settings.
    AddJson {
        #[arg(value_name = "NAME")]
        name: String,
        /// Such as '{"command": "npx"}'.
        #[arg(value_name = "JSON")]
        json: String,
        #[command(flatten)]
        target: McpTargetArgs,
    },
    /// Remove a server, and forget the login to it.
    Remove {
        #[arg(value_name = "NAME")]
        name: String,
        /// Where it is configured; needed when several scopes have it.
        #[arg(long, value_name = "SCOPE", value_enum)]
        scope: Option<McpScope>,
    },
    /// Log in to a server with OAuth, through the browser.
    Login {
        #[arg(value_name = "NAME")]
        name: String,
        /// Print the address and open nothing.
        #[arg(long)]
        no_browser: bool,
    },
    /// Forget the login to a server.
    Logout {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Show where each server stands.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Approve the tools that a server offers now.
    Approve {
        #[arg(value_name = "NAME")]
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct McpAddArgs {
    /// Letters, digits, `-` and `_`.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The program and its arguments after `--`, or the server's address.
    #[arg(value_name = "COMMAND_OR_URL", required = true)]
    pub(crate) server: Vec<String>,
    #[command(flatten)]
    pub(crate) target: McpTargetArgs,
    /// stdio, http or sse [default: http for an address, else stdio]
    #[arg(long, value_name = "TRANSPORT", value_enum)]
    pub(crate) transport: Option<Transport>,
    /// A variable for the program. `${VAR}` is filled in when it starts. Can be repeated.
    #[arg(short = 'e', long = "env", value_name = "KEY=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// A header for every request; `${VAR}` is filled in. Can be repeated.
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,
    /// auto finds out everything by itself; manual needs the three options below.
    #[arg(long, value_name = "MODE", value_enum)]
    pub(crate) oauth: Option<Oauth>,
    /// The client that the service gave you, for OAuth.
    #[arg(long, value_name = "ID", requires = "oauth")]
    pub(crate) client_id: Option<String>,
    /// Where people consent, for manual OAuth.
    #[arg(long, value_name = "URL", requires = "oauth")]
    pub(crate) auth_url: Option<String>,
    /// Where tokens are issued, for manual OAuth.
    #[arg(long, value_name = "URL", requires = "oauth")]
    pub(crate) token_url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct McpTargetArgs {
    /// Whose server it is: yours everywhere, the project's, or yours in this project.
    #[arg(long, value_name = "SCOPE", value_enum, default_value = "user")]
    pub(crate) scope: McpScope,
    /// Replace a server of the same name.
    #[arg(long)]
    pub(crate) force: bool,
}

/// A scope that servers can be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpScope {
    User,
    Project,
    Local,
}

impl McpScope {
    pub(crate) fn settings(self) -> Scope {
        match self {
            Self::User => Scope::User,
            Self::Project => Scope::Project,
            Self::Local => Scope::Local,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    Stdio,
    Http,
    Sse,
}

impl Transport {
    pub(crate) fn settings(self) -> McpTransport {
        match self {
            Self::Stdio => McpTransport::Stdio,
            Self::Http => McpTransport::Http,
            Self::Sse => McpTransport::Sse,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Oauth {
    Auto,
    Manual,
}

impl Oauth {
    pub(crate) fn settings(self) -> OauthMode {
        match self {
            Self::Auto => OauthMode::Auto,
            Self::Manual => OauthMode::Manual,
        }
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("expected KEY=VALUE".to_owned()),
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let is_token = |char: char| char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(char);
    match text.split_once(':') {
        Some((name, value))
            if !name.is_empty() && name.chars().all(is_token) && !value.contains(['\r', '\n']) =>
        {
            Ok((name.to_owned(), value.trim().to_owned()))
        }
        Some(_) | None => Err("expected `Name: value`".to_owned()),
    }
}
