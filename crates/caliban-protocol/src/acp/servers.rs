//! The MCP servers of a client, as the settings write them.

use agent_client_protocol_schema::v1::{EnvVariable, Error, HttpHeader, McpServer};
use serde_json::{Map, Value, json};

/// A document with these servers; nothing where there are none.
pub fn server_config(servers: &[McpServer]) -> Result<Option<String>, Error> {
    let mut written = Map::new();
    for server in servers {
        let (name, server) = match server {
            McpServer::Stdio(server) => {
                let command = server.command.to_str().ok_or_else(|| {
                    Error::new(-32602, format!("`{}`: `command` is not UTF-8", server.name))
                })?;
                let args: Vec<String> = server.args.iter().map(|arg| literal(arg)).collect();
                let pair = |it: &EnvVariable| (it.name.clone(), literal(&it.value).into());
                let env: Map<String, Value> = server.env.iter().map(pair).collect();
                let value = json!({"command": literal(command), "args": args, "env": env});
                (&server.name, value)
            }
            McpServer::Http(server) => (&server.name, remote("http", &server.url, &server.headers)),
            McpServer::Sse(server) => (&server.name, remote("sse", &server.url, &server.headers)),
            other => {
                let reason = format!("servers of this kind cannot be used: {other:?}");
                return Err(Error::new(-32602, reason));
            }
        };
        if name.trim().is_empty() {
            return Err(Error::new(-32602, "an MCP server has no name"));
        }
        if written.insert(name.clone(), server).is_some() {
            let reason = format!("there are two MCP servers with the name `{name}`");
            return Err(Error::new(-32602, reason));
        }
    }
    let document = json!({"mcpServers": written});
    Ok((!servers.is_empty()).then(|| document.to_string()))
}

fn remote(transport: &str, url: &str, headers: &[HttpHeader]) -> Value {
    let pair = |it: &HttpHeader| (it.name.clone(), literal(&it.value).into());
    let headers: Map<String, Value> = headers.iter().map(pair).collect();
    json!({"type": transport, "url": literal(url), "headers": headers})
}

/// What a client says is meant as it stands; in the settings `${NAME}` would be a variable.
fn literal(text: &str) -> String {
    text.replace("${", "${CALIBAN_NOT_A_VARIABLE:-$}{")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(servers: Value) -> Result<Option<String>, Error> {
        let servers: Vec<McpServer> = serde_json::from_value(servers).unwrap();
        server_config(&servers)
    }

    #[test]
    fn servers_are_written_as_settings_have_them() {
        let document = config(json!([
            {"name": "a", "command": "/bin/a", "args": ["-x", "${HOME}"], "env": [{"name": "K", "value": "v"}]},
            {"type": "http", "name": "b", "url": "http://h/mcp", "headers": [{"name": "H", "value": "1"}]},
            {"type": "sse", "name": "c", "url": "http://h/sse", "headers": []},
        ]));
        let document: Value = serde_json::from_str(&document.unwrap().unwrap()).unwrap();
        assert_eq!(
            document,
            json!({"mcpServers": {
                "a": {
                    "command": "/bin/a",
                    "args": ["-x", "${CALIBAN_NOT_A_VARIABLE:-$}{HOME}"],
                    "env": {"K": "v"},
                },
                "b": {"type": "http", "url": "http://h/mcp", "headers": {"H": "1"}},
                "c": {"type": "sse", "url": "http://h/sse", "headers": {}},
            }})
        );
        assert_eq!(config(json!([])).unwrap(), None);
    }

    #[test]
    fn names_are_there_and_differ() {
        let server = |name| json!({"name": name, "command": "/bin/a", "args": [], "env": []});
        assert!(config(json!([server("x"), server("x")])).is_err());
        assert!(config(json!([server(" ")])).is_err());
    }
}
