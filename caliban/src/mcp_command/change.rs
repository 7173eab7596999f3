//! `caliban mcp add`, `add-json` and `remove`: servers in the settings files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use caliban_harness::{Configuration, logins};
use caliban_settings::write::{Existing, Put, has_server};
use caliban_settings::{McpOauth, McpServer, McpTransport};
use serde_json::{Map, Value, json};
use url::Url;

use crate::args::{McpAddArgs, McpScope, McpTargetArgs, Oauth};
use crate::consent::Consent;
use crate::console::{Console, note};
use crate::exit::Failure;

/// The longest name: it is part of the names of tools.
const NAME: usize = 40;

pub(super) fn add(
    configuration: &Configuration,
    args: &McpAddArgs,
    console: &mut Console,
) -> Result<(), Failure> {
    let server = described(args)?;
    write(configuration, &args.name, &server, &args.target, console)
}

pub(super) fn add_json(
    configuration: &Configuration,
    name: &str,
    json: &str,
    target: &McpTargetArgs,
    console: &mut Console,
) -> Result<(), Failure> {
    let unusable = |reason: String| Failure::Usage(format!("this is not a server: {reason}"));
    let mut server: McpServer =
        serde_json::from_str(json).map_err(|error| unusable(error.to_string()))?;
    if let Some(key) = server.extra.keys().next() {
        return Err(unusable(format!("there is no key `{key}`")));
    }
    if server.transport.is_none() && server.url.is_some() {
        server.transport = Some(McpTransport::Http);
    }
    write(configuration, name, &server, target, console)
}

pub(super) async fn remove(
    configuration: &Configuration,
    name: &str,
    scope: Option<McpScope>,
    console: &mut Console,
) -> Result<(), Failure> {
    let scopes = [McpScope::User, McpScope::Project, McpScope::Local];
    let mut holders = Vec::new();
    for candidate in scopes {
        let path = file(configuration, candidate)?;
        if has_server(&path, name)? {
            holders.push((candidate, path));
        }
    }
    let several = holders.len() > 1;
    let chosen = match scope {
        Some(scope) => holders.into_iter().find(|(holder, _)| *holder == scope),
        None if several => {
            let names: Vec<&str> = holders
                .iter()
                .map(|(scope, _)| scope.settings().as_str())
                .collect();
            return Err(Failure::Usage(format!(
                "`{name}` is configured in the scopes {}; say which with --scope",
                names.join(", ")
            )));
        }
        None => holders.pop(),
    };
    let Some((scope, path)) = chosen else {
        let place = match scope {
            Some(scope) => format!("`{}`", file(configuration, scope)?.display()),
            None => "settings.toml of the user, the project or the local scope".to_owned(),
        };
        return Err(Failure::Config(format!(
            "there is no MCP server `{name}` in {place}; `caliban mcp list` shows those there are"
        )));
    };
    if !several {
        forget_login(configuration, name).await;
    }
    let consent = Consent::of(configuration);
    configuration.writer().remove_server(&path, name)?;
    consent.keep(scope.settings(), configuration);
    console.write(&format!("removed `{name}` from {}\n", path.display()))
}

/// A login to a server that is gone is of no use; that it stays is no reason to keep the server.
async fn forget_login(configuration: &Configuration, name: &str) {
    let Some(server) = configuration.settings().mcp_servers.get(name) else {
        return;
    };
    let Ok(Some(server)) = super::oauth_server(configuration, name, server) else {
        return;
    };
    let oauth = logins(configuration, BTreeMap::from([(name.to_owned(), server)]));
    if let Err(error) = oauth.logout(name).await {
        note(&format!("the login to `{name}` is kept: {error}"));
    }
}

/// The server that the arguments describe.
fn described(args: &McpAddArgs) -> Result<McpServer, Failure> {
    let usage = |reason: &str| Err(Failure::Usage(reason.to_owned()));
    let is_address = |word: &str| word.starts_with("https://") || word.starts_with("http://");
    let [first, rest @ ..] = args.server.as_slice() else {
        return usage("name a program or an address");
    };
    let transport = match args.transport {
        Some(transport) => transport.settings(),
        None if rest.is_empty() && is_address(first) => McpTransport::Http,
        None => McpTransport::Stdio,
    };
    let mut server = McpServer {
        env: args.env.iter().cloned().collect(),
        headers: args.headers.iter().cloned().collect(),
        ..McpServer::default()
    };
    match transport {
        McpTransport::Stdio => {
            if !args.headers.is_empty() || args.oauth.is_some() {
                return usage("headers and OAuth are for servers with an address");
            }
            if is_address(first) {
                return usage("an address needs `--transport http` or `--transport sse`");
            }
            server.command.clone_from(first);
            server.args = rest.to_vec();
        }
        McpTransport::Http | McpTransport::Sse => {
            if !args.env.is_empty() {
                return usage("variables are for servers that are programs; use headers");
            }
            if !rest.is_empty() {
                return usage("an address takes no arguments");
            }
            server.transport = Some(transport);
            server.url = Some(first.clone());
            server.oauth = args.oauth.map(Oauth::settings);
            server.oauth_config = oauth_config(args)?;
        }
    }
    Ok(server)
}

fn oauth_config(args: &McpAddArgs) -> Result<Option<McpOauth>, Failure> {
    let config = McpOauth {
        client_id: args.client_id.clone(),
        auth_url: args.auth_url.clone(),
        token_url: args.token_url.clone(),
        ..McpOauth::default()
    };
    let is_complete =
        config.client_id.is_some() && config.auth_url.is_some() && config.token_url.is_some();
    if args.oauth == Some(Oauth::Manual) && !is_complete {
        return Err(Failure::Usage(
            "`--oauth manual` needs --client-id, --auth-url and --token-url".to_owned(),
        ));
    }
    Ok((config != McpOauth::default()).then_some(config))
}

fn write(
    configuration: &Configuration,
    name: &str,
    server: &McpServer,
    target: &McpTargetArgs,
    console: &mut Console,
) -> Result<(), Failure> {
    check_name(name)?;
    check(server)?;
    let path = file(configuration, target.scope)?;
    refuse_older_file(configuration, target.scope, &path)?;
    if target.scope == McpScope::Project && holds_secrets(server) {
        note(
            "the values of variables and headers are now in a file that others may see; better write `${VAR}`",
        );
    }
    let existing = if target.force {
        Existing::Replace
    } else {
        Existing::Keep
    };
    let consent = Consent::of(configuration);
    let writer = configuration.writer();
    let put = writer.put_server(&path, name, &fields(server), existing)?;
    let done = match put {
        Put::Added => "added",
        Put::Replaced => "replaced",
        Put::Kept => {
            return Err(Failure::Config(format!(
                "`{}` has a server `{name}` already; `--force` replaces it",
                path.display()
            )));
        }
    };
    consent.keep(target.scope.settings(), configuration);
    console.write(&format!("{done} `{name}` in {}\n", path.display()))?;
    if server.oauth.is_some() {
        note(&format!("run `caliban mcp login {name}` to log in"));
    }
    Ok(())
}

/// What is written; the transport only where it is not the default.
fn fields(server: &McpServer) -> Map<String, Value> {
    match json!(server) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = name
        .chars()
        .all(|char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_'));
    if name.is_empty() || name.len() > NAME || !is_plain || name.contains("__") {
        return Err(Failure::Usage(format!(
            "`{name}` cannot be a server's name: use up to {NAME} letters, digits, `-` and single `_`"
        )));
    }
    Ok(())
}

/// What the settings would be refused for, before they are written.
fn check(server: &McpServer) -> Result<(), Failure> {
    let problem = match (server.transport(), &server.url) {
        (McpTransport::Stdio, None) if server.command.is_empty() => "it needs a `command`",
        (McpTransport::Stdio, Some(_)) => "it has a `url`, so its `type` is http or sse",
        (McpTransport::Stdio, None) => return Ok(()),
        (McpTransport::Http | McpTransport::Sse, None) => "it needs a `url`",
        // Whoever fills in the variable looks again.
        (McpTransport::Http | McpTransport::Sse, Some(url)) if url.contains("${") => return Ok(()),
        (McpTransport::Http | McpTransport::Sse, Some(url)) => match Url::parse(url) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => return Ok(()),
            Ok(_) | Err(_) => "its address is neither http nor https",
        },
    };
    Err(Failure::Usage(format!("this is not a server: {problem}")))
}

fn holds_secrets(server: &McpServer) -> bool {
    let values = server.env.values().chain(server.headers.values());
    values.into_iter().any(|value| !value.contains("${"))
}

fn file(configuration: &Configuration, scope: McpScope) -> Result<PathBuf, Failure> {
    let (locations, workspace) = (&configuration.locations, configuration.project());
    let files = locations.settings(scope.settings(), workspace);
    files.map(|files| files.toml).ok_or_else(|| {
        let name = scope.settings().as_str();
        Failure::Usage(format!("the {name} scope has no file"))
    })
}

/// Servers in the settings put an older `mcp.toml` of the same scope out of use.
fn refuse_older_file(
    configuration: &Configuration,
    scope: McpScope,
    target: &std::path::Path,
) -> Result<(), Failure> {
    let (locations, workspace) = (&configuration.locations, configuration.project());
    match locations.legacy(scope.settings(), workspace) {
        Some(files) if files.mcp.is_file() => Err(Failure::Config(format!(
            "`{}` would no longer be read; move its servers to `{}` first, in a workspace with `caliban config migrate`",
            files.mcp.display(),
            target.display()
        ))),
        Some(_) | None => Ok(()),
    }
}
