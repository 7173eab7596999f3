//! MCP servers in a settings file.

use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table};

use super::values::{Layout, from_json};
use super::{JsonSibling, ShapeError, WriteError, preview};

const SERVERS: &str = "mcp_servers";

/// What to do about a server that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Keep,
    Replace,
}

/// What became of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    Added,
    Replaced,
    /// There was one, and it stays.
    Kept,
}

/// Whether a settings file has `[mcp_servers.NAME]`.
pub fn has_server(path: &std::path::Path, name: &str) -> Result<bool, WriteError> {
    let (found, _) = preview(path, JsonSibling::Supersede, |document| {
        let servers = document.get(SERVERS).and_then(Item::as_table_like);
        Ok::<_, ShapeError>(servers.is_some_and(|servers| servers.contains_key(name)))
    })?;
    Ok(found)
}

pub(super) fn put(
    document: &mut DocumentMut,
    name: &str,
    server: &Map<String, Value>,
    existing: Existing,
) -> Result<Put, ShapeError> {
    let servers = document.entry(SERVERS).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let layout = match servers {
        Item::Value(_) => Layout::Inline,
        Item::None | Item::Table(_) | Item::ArrayOfTables(_) => Layout::Section,
    };
    let servers = servers
        .as_table_like_mut()
        .ok_or_else(|| ShapeError::NotATable(SERVERS.to_owned()))?;
    let found = servers.contains_key(name);
    if found && existing == Existing::Keep {
        return Ok(Put::Kept);
    }
    // Short tables such as `env` are easier to read in a line.
    let mut table = Table::new();
    for (key, value) in server {
        if let Some(item) = from_json(value, Layout::Inline) {
            table.insert(key, item);
        }
    }
    let item = match layout {
        Layout::Section => Item::Table(table),
        Layout::Inline => Item::Value(table.into_inline_table().into()),
    };
    let Some(former) = servers.get_mut(name) else {
        servers.insert(name, item);
        return Ok(Put::Added);
    };
    // The comment above a section belongs to whoever wrote it.
    let decor = former.as_table().map(|table| table.decor().clone());
    *former = item;
    if let (Some(decor), Some(table)) = (decor, former.as_table_mut()) {
        *table.decor_mut() = decor;
    }
    Ok(Put::Replaced)
}

pub(super) fn remove(document: &mut DocumentMut, name: &str) -> Result<bool, ShapeError> {
    let Some(servers) = document.get_mut(SERVERS) else {
        return Ok(false);
    };
    let servers = servers
        .as_table_like_mut()
        .ok_or_else(|| ShapeError::NotATable(SERVERS.to_owned()))?;
    Ok(servers.remove(name).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::write::Writer;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn servers_come_and_go_between_comments() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("settings.toml");
        let writer = Writer::new(root.path().join("locks"));
        let before = "# mine\nmodel = \"m\" # this one\n\n# for work\n[mcp_servers.linear]\ncommand = \"npx\"\n";
        std::fs::write(&path, before).unwrap();
        let server =
            map(&json!({"type": "http", "url": "https://a.example", "headers": {"A": "b"}}));
        assert_eq!(
            writer
                .put_server(&path, "a b", &server, Existing::Keep)
                .unwrap(),
            Put::Added
        );
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(before), "{text}");
        assert!(
            text.contains("[mcp_servers.\"a b\"]\ntype = \"http\"\nurl = \"https://a.example\"\nheaders = { A = \"b\" }\n"),
            "{text}"
        );
        assert_eq!(
            writer
                .put_server(&path, "a b", &map(&json!({})), Existing::Keep)
                .unwrap(),
            Put::Kept
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);

        let other = map(&json!({"command": "uvx", "args": ["x"]}));
        assert_eq!(
            writer
                .put_server(&path, "linear", &other, Existing::Replace)
                .unwrap(),
            Put::Replaced
        );
        let replaced = std::fs::read_to_string(&path).unwrap();
        assert!(
            replaced
                .contains("# for work\n[mcp_servers.linear]\ncommand = \"uvx\"\nargs = [\"x\"]\n"),
            "{replaced}"
        );
        assert!(has_server(&path, "a b").unwrap());
        assert!(writer.remove_server(&path, "a b").unwrap());
        assert!(!has_server(&path, "a b").unwrap());
        assert!(!writer.remove_server(&path, "a b").unwrap());
        assert!(!has_server(&root.path().join("none.toml"), "a").unwrap());
        let after = std::fs::read_to_string(&path).unwrap();
        assert!(
            after.contains("# this one") && !after.contains("a b"),
            "{after}"
        );
    }

    #[test]
    fn inline_tables_stay_inline() {
        let mut document: DocumentMut = "mcp_servers = { a = { command = \"x\" } }\n"
            .parse()
            .unwrap();
        let server = map(&json!({"command": "y"}));
        put(&mut document, "b", &server, Existing::Keep).unwrap();
        let text = document.to_string();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("b = { command = \"y\" }"), "{text}");
        let mut wrong: DocumentMut = "mcp_servers = 1\n".parse().unwrap();
        assert!(put(&mut wrong, "b", &server, Existing::Keep).is_err());
        assert!(remove(&mut wrong, "b").is_err());
    }
}
