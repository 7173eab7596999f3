//! The MCP servers of a plugin, wrapped in `mcpServers` or not.

use std::collections::{BTreeMap, BTreeSet};

use caliban_settings::{McpServer, McpTransport};
use serde_json::{Map, Value};

use crate::name::is_plain;
use crate::places::{OwnPlaces, USERS};

/// The most servers of one plugin.
const MOST: usize = 64;
/// What only whoever uses a server may decide.
const OPERATORS: [&str; 2] = ["permissions", "headersHelper"];

/// Servers by the plugin's own names.
pub type ServerTable = BTreeMap<String, McpServer>;

/// Reads what stands in a file of servers, or in its place.
pub(crate) fn read(document: &Map<String, Value>, remarks: &mut Vec<String>) -> ServerTable {
    let servers = match document.get("mcpServers") {
        Some(Value::Object(servers)) => servers,
        Some(_) | None => document,
    };
    let mut table = ServerTable::new();
    for (name, value) in servers.iter().filter(|(name, _)| *name != "$schema") {
        if table.len() == MOST {
            remarks.push(format!("only the first {MOST} MCP servers are used"));
            break;
        }
        match server(name, value, remarks) {
            Ok(server) => {
                table.insert(name.clone(), server);
            }
            Err(reason) => {
                let name = name.escape_debug();
                remarks.push(format!("the MCP server `{name}` is not used: {reason}"));
            }
        }
    }
    table
}

fn server(name: &str, value: &Value, remarks: &mut Vec<String>) -> Result<McpServer, String> {
    if !is_plain(name) {
        return Err("its name is not plain".to_owned());
    }
    let Value::Object(fields) = value else {
        return Err("it is no table".to_owned());
    };
    let mut fields = fields.clone();
    for key in OPERATORS {
        if fields.remove(key).is_some() {
            remarks.push(format!("`{key}` of the MCP server `{name}` is not used"));
        }
    }
    let mut server: McpServer =
        serde_json::from_value(fields.into()).map_err(|error| error.to_string())?;
    if server.url.is_some() && server.transport.is_none() {
        server.transport = Some(McpTransport::Http);
    }
    match (
        server.transport(),
        server.url.is_some(),
        server.command.is_empty(),
    ) {
        (McpTransport::Stdio, _, true) => return Err("it has no `command`".to_owned()),
        (McpTransport::Http | McpTransport::Sse, false, _) => {
            return Err("it has no `url`".to_owned());
        }
        _ => {}
    }
    Ok(server)
}

/// Every text in which variables are filled in.
fn texts(server: &McpServer) -> impl Iterator<Item = &String> {
    std::iter::once(&server.command)
        .chain(&server.args)
        .chain(server.env.values())
        .chain(&server.cwd)
        .chain(&server.url)
        .chain(server.headers.values())
}

/// The variables of the environment that a server asks for.
pub fn variables(server: &McpServer) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for text in texts(server) {
        for reference in text.split("${").skip(1) {
            let inside = reference.split('}').next().unwrap_or_default();
            let name = inside.split(":-").next().unwrap_or_default();
            if !name.starts_with("user_config.") {
                names.insert(name.to_owned());
            }
        }
    }
    names
}

/// The value of its user's that a server asks for and that is not there.
pub fn unsaid(server: &McpServer) -> Option<String> {
    texts(server).find_map(|text| {
        let (_, after) = text.split_once(USERS)?;
        Some(after.split('}').next().unwrap_or_default().to_owned())
    })
}

/// The same with the plugin's own places filled in, and told to programs.
pub(crate) fn expanded(server: &McpServer, places: &OwnPlaces) -> McpServer {
    let mut server = server.clone();
    let fill = |text: &mut String| *text = places.in_text(text);
    fill(&mut server.command);
    server.args.iter_mut().for_each(fill);
    server.env.values_mut().for_each(fill);
    server.cwd.iter_mut().for_each(fill);
    server.url.iter_mut().for_each(fill);
    server.headers.values_mut().for_each(fill);
    if server.transport() == McpTransport::Stdio {
        for (name, value) in places.environment() {
            server.env.entry(name).or_insert(value);
        }
    }
    server
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table(value: &Value) -> (ServerTable, Vec<String>) {
        let mut remarks = Vec::new();
        let table = read(value.as_object().unwrap(), &mut remarks);
        (table, remarks)
    }

    #[test]
    fn wrapped_and_flat_tables_are_the_same() {
        let flat = json!({"a": {"command": "x"}, "b": {"url": "https://h/mcp"}});
        let (wrapped, _) = table(&json!({ "mcpServers": flat }));
        let (flat, remarks) = table(&flat);
        assert_eq!(wrapped, flat);
        assert_eq!(remarks, Vec::<String>::new());
        assert_eq!(flat["b"].transport(), McpTransport::Http);
    }

    #[test]
    fn what_is_the_operators_is_taken_out() {
        let server = json!({"command": "x", "permissions": {"allow": ["*"]}});
        let (read, remarks) = table(&json!({ "a": server }));
        assert!(read["a"].permissions.allow.is_empty());
        assert_eq!(remarks, ["`permissions` of the MCP server `a` is not used"]);
    }

    #[test]
    fn broken_servers_are_told() {
        let (read, remarks) = table(&json!({
            "a b": {"command": "x"}, "c": 1, "d": {}, "e": {"type": "http"},
        }));
        assert!(read.is_empty());
        assert_eq!(remarks.len(), 4, "{remarks:?}");
    }

    #[test]
    fn values_of_the_user_are_filled_in() {
        let server = json!({"command": "x", "args": ["${user_config.KEY}"]});
        let (read, _) = table(&json!({ "a": server }));
        let places = OwnPlaces::new("/p".into(), "/d".into());
        let unset = expanded(&read["a"], &places);
        assert_eq!(unsaid(&unset).as_deref(), Some("KEY"));
        let places = places.with_values([("KEY".to_owned(), "${HOME}".to_owned())].into());
        let set = expanded(&read["a"], &places);
        assert_eq!(unsaid(&set), None);
    }

    #[test]
    fn places_are_filled_in_and_variables_named() {
        let places = OwnPlaces::new("/p".into(), "/d".into());
        let (read, _) = table(&json!({"a": {
            "command": "${CLAUDE_PLUGIN_ROOT}/s", "args": ["${TOKEN:-x}"], "env": {"K": "${KEY}"},
        }}));
        let server = expanded(&read["a"], &places);
        assert_eq!(server.command, "/p/s");
        assert_eq!(server.env["CLAUDE_PLUGIN_DATA"], "/d");
        assert!(!server.env.contains_key("CALIBAN_PLUGIN_ROOT"));
        let names: Vec<String> = variables(&server).into_iter().collect();
        assert_eq!(names, ["KEY", "TOKEN"]);
    }
}
