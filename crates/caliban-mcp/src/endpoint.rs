//! What a server's settings come to once variables are put in: a program to start or an address
//! to talk to.

use std::ffi::OsString;
use std::path::Path;

use caliban_process::Invocation;
use caliban_settings::{McpServer, McpTransport};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use crate::expand::{ExpandError, Variables, expand};
use crate::names::digest;

/// Headers that the transport itself sets.
const RESERVED_HEADERS: [&str; 7] = [
    "accept",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
];

/// How a server is reached.
#[derive(Debug, Clone)]
pub(crate) enum Endpoint {
    Stdio(Invocation),
    Http(Address),
    Sse(Address),
}

#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) url: Url,
    /// Marked as sensitive, so that printing them does not show them.
    pub(crate) headers: HeaderMap,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointError {
    #[error(transparent)]
    Variable(#[from] ExpandError),
    #[error("it needs a `command`")]
    NoCommand,
    #[error("it needs a `url`")]
    NoUrl,
    #[error("`url` is not an http:// or https:// address: {0}")]
    Url(String),
    #[error("the header name `{0}` is not valid")]
    HeaderName(String),
    #[error("the value of the header `{0}` has characters that a header must not have")]
    HeaderValue(String),
    #[error("the header `{0}` is set by the transport itself; remove it from `headers`")]
    ReservedHeader(String),
}

/// What the settings of all servers are read with.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) workspace: &'a Path,
    pub(crate) environment: &'a [(OsString, OsString)],
    pub(crate) variables: &'a Variables,
}

impl Surroundings<'_> {
    pub(crate) fn endpoint(&self, server: &McpServer) -> Result<Endpoint, EndpointError> {
        Ok(match server.transport() {
            McpTransport::Stdio => Endpoint::Stdio(self.service(server)?),
            McpTransport::Http => Endpoint::Http(self.address(server)?),
            McpTransport::Sse => Endpoint::Sse(self.address(server)?),
        })
    }

    fn expand(&self, text: &str, field: &str) -> Result<String, ExpandError> {
        let workspace = self.workspace.to_string_lossy().into_owned();
        let variables = self.variables.clone();
        let all = Variables::new(move |name| match name {
            "CLAUDE_PROJECT_DIR" => Some(workspace.clone()),
            _ => variables.get(name),
        });
        expand(text, field, &all)
    }

    fn service(&self, server: &McpServer) -> Result<Invocation, EndpointError> {
        let program = self.expand(&server.command, "command")?;
        if program.is_empty() {
            return Err(EndpointError::NoCommand);
        }
        let args = server
            .args
            .iter()
            .enumerate()
            .map(|(index, argument)| self.expand(argument, &format!("args[{index}]")))
            .map(|argument| argument.map(OsString::from))
            .collect::<Result<_, _>>()?;
        let directory = match &server.cwd {
            Some(directory) => self.workspace.join(self.expand(directory, "cwd")?),
            None => self.workspace.to_owned(),
        };
        let mut environment = self.environment.to_vec();
        for (name, value) in &server.env {
            let value = self.expand(value, &format!("env.{name}"))?;
            environment.retain(|(known, _)| known != name.as_str());
            environment.push((name.into(), value.into()));
        }
        Ok(Invocation {
            program: located(&program, &directory),
            args,
            directory,
            environment,
        })
    }

    fn address(&self, server: &McpServer) -> Result<Address, EndpointError> {
        let url = server.url.as_deref().ok_or(EndpointError::NoUrl)?;
        let url = self.expand(url, "url")?;
        let url = Url::parse(&url).map_err(|error| EndpointError::Url(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(EndpointError::Url(format!(
                "its scheme is `{}`",
                url.scheme()
            )));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &server.headers {
            let value = self.expand(value, &format!("headers.{name}"))?;
            let (name, value) = header(name, &value)?;
            headers.insert(name, value);
        }
        Ok(Address { url, headers })
    }
}

/// A program with a path in it is looked for in the server's directory, not in ours.
fn located(program: &str, directory: &Path) -> OsString {
    let path = Path::new(program);
    if path.components().count() > 1 && path.is_relative() {
        directory.join(path).into_os_string()
    } else {
        program.into()
    }
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), EndpointError> {
    let shown = || crate::text::line(name, 80);
    let parsed: HeaderName = name
        .parse()
        .map_err(|_| EndpointError::HeaderName(shown()))?;
    if RESERVED_HEADERS.contains(&parsed.as_str()) {
        return Err(EndpointError::ReservedHeader(shown()));
    }
    if value.chars().any(char::is_control) {
        return Err(EndpointError::HeaderValue(shown()));
    }
    let mut value =
        HeaderValue::from_str(value).map_err(|_| EndpointError::HeaderValue(shown()))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

/// Who a server is, by what its settings say it is. What only concerns us, such as rules for its
/// tools, does not count, and variables count by their names.
pub(crate) fn identity(server: &McpServer) -> String {
    let McpServer {
        command,
        args,
        env,
        cwd,
        url,
        headers,
        ..
    } = server;
    let who = serde_json::json!([
        server.transport(),
        command,
        args,
        env,
        cwd,
        url,
        headers.keys().collect::<Vec<_>>(),
    ]);
    digest(who.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn endpoint(server: Value) -> Result<Endpoint, EndpointError> {
        let server: McpServer = serde_json::from_value(server).unwrap();
        let environment = [("PATH".into(), "/bin".into()), ("K".into(), "old".into())];
        let variables = Variables::new(|name| match name {
            "TOKEN" => Some("secret".to_owned()),
            "EVIL" => Some("a\r\nX-Injected: 1".to_owned()),
            _ => None,
        });
        Surroundings {
            workspace: Path::new("/ws"),
            environment: &environment,
            variables: &variables,
        }
        .endpoint(&server)
    }

    #[test]
    fn a_program_gets_its_variables_and_its_directory() {
        let server = json!({
            "command": "${CLAUDE_PROJECT_DIR}/bin/server",
            "args": ["--token", "${TOKEN}", "${NO:-x}"],
            "env": {"K": "${TOKEN}", "D": "${CLAUDE_PROJECT_DIR}"},
            "cwd": "sub",
        });
        let Endpoint::Stdio(service) = endpoint(server).unwrap() else {
            panic!("not a program");
        };
        assert_eq!(service.program, "/ws/bin/server");
        assert_eq!(service.args, ["--token", "secret", "x"]);
        assert_eq!(service.directory, Path::new("/ws/sub"));
        let mut environment = service.environment;
        environment.sort();
        let expected = [("D", "/ws"), ("K", "secret"), ("PATH", "/bin")];
        assert_eq!(
            environment,
            expected.map(|(name, value)| (name.into(), value.into()))
        );
    }

    #[rstest]
    #[case(json!({"command": "x", "args": ["${NO}"]}), "`args[0]` needs the variable `NO`")]
    #[case(json!({"command": "x", "env": {"A": "${NO}"}}), "`env.A` needs the variable `NO`")]
    #[case(json!({"command": "x", "cwd": "${NO}"}), "`cwd` needs the variable `NO`")]
    #[case(json!({"command": "${EMPTY:-}"}), "it needs a `command`")]
    #[case(json!({"type": "http"}), "it needs a `url`")]
    #[case(json!({"type": "http", "url": "file:///etc/passwd"}), "its scheme is `file`")]
    #[case(json!({"type": "sse", "url": "nonsense"}), "`url` is not an http")]
    #[case(json!({"type": "http", "url": "http://h", "headers": {"X": "${EVIL}"}}), "the value of the header `X`")]
    #[case(json!({"type": "http", "url": "http://h", "headers": {"X Y": "1"}}), "the header name `X Y`")]
    #[case(json!({"type": "http", "url": "http://h", "headers": {"Host": "1"}}), "the header `Host` is set by")]
    fn what_cannot_work_is_refused(#[case] server: Value, #[case] expected: &str) {
        let error = endpoint(server).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn headers_are_not_shown() {
        let server =
            json!({"type": "http", "url": "http://h", "headers": {"Authorization": "${TOKEN}"}});
        let shown = format!("{:?}", endpoint(server).unwrap());
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[test]
    fn an_identity_is_what_the_server_is_and_not_how_it_is_treated() {
        let read = |value: Value| identity(&serde_json::from_value(value).unwrap());
        let one = read(json!({"command": "x", "args": ["a"]}));
        assert_eq!(
            one,
            read(
                json!({"command": "x", "args": ["a"], "lazy": true, "permissions": {"allow": ["*"]}})
            )
        );
        assert_ne!(one, read(json!({"command": "x", "args": ["b"]})));
    }
}
