//! `config migrate`: the older file per feature, consolidated into the settings file beside them.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toml_edit::DocumentMut;

use crate::import::{Gathered, RuleOrder, merge, permissions, servers};
use crate::legacy::MIGRATED;
use crate::write::values::table_to_json;
use crate::write::{self, JsonSibling, ShapeError, WriteError, Writer};

/// No older file is read beyond this.
const LIMIT: u64 = 4 * 1024 * 1024;

const PERMISSIONS: &str = "permissions.toml";
const SERVERS: &str = "mcp.toml";
const HOOKS: &str = "hooks.toml";
const TARGET: &str = "settings.toml";

/// What a migration does, or did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    pub target: PathBuf,
    /// The older files that were found. They are left in place, marked as no longer read.
    pub sources: Vec<PathBuf>,
    /// A line per key that is added or replaced; empty when nothing is left to do.
    pub changes: Vec<String>,
    /// What could not be taken over, and why.
    pub notes: Vec<String>,
    /// The settings file afterwards.
    pub text: String,
}

/// What [`migrate`] would do, without doing it.
pub fn plan(directory: &Path) -> Result<Migration, WriteError> {
    let older = Older::read(directory)?;
    let target = directory.join(TARGET);
    let sibling = if older.sources.is_empty() {
        // Nothing will be written, so nothing is put out of use.
        JsonSibling::Supersede
    } else {
        JsonSibling::Refuse
    };
    let (changes, draft) = write::preview(&target, sibling, |document| older.merge(document))?;
    Ok(older.migration(target, changes, draft.text().to_owned()))
}

/// Merges the older files of a directory, a workspace's `.caliban` or the user's own, into the
/// settings file beside them. What is there stays; what they say comes on top, as they have
/// overridden it so far. Running it again changes nothing.
pub fn migrate(directory: &Path, writer: &Writer) -> Result<Migration, WriteError> {
    let older = Older::read(directory)?;
    if older.sources.is_empty() {
        return plan(directory);
    }
    let target = directory.join(TARGET);
    let (changes, text) = writer.edit(&target, |document| {
        let changes = older.merge(document)?;
        Ok::<_, ShapeError>((changes, document.to_string()))
    })?;
    // Last, so that what is not in the settings yet is still read where it was.
    for source in &older.sources {
        writer.prepend(source, MIGRATED, LIMIT)?;
    }
    Ok(older.migration(target, changes, text))
}

/// The older files and what they say.
struct Older {
    sources: Vec<PathBuf>,
    gathered: Gathered,
}

impl Older {
    fn read(directory: &Path) -> Result<Self, WriteError> {
        let mut older = Self {
            sources: Vec::new(),
            gathered: Gathered::default(),
        };
        for name in [PERMISSIONS, SERVERS, HOOKS] {
            let path = directory.join(name);
            if !path.is_file() {
                continue;
            }
            let text = write::read_bounded(&path, LIMIT)?;
            if text.starts_with(MIGRATED) {
                continue;
            }
            let map = read(&path, &text)?;
            let gathered = &mut older.gathered;
            match name {
                PERMISSIONS => {
                    let inner = unwrapped(map, &["permissions"]);
                    permissions(inner.into(), None, gathered).map_err(|source| {
                        WriteError::Edit {
                            path: path.clone(),
                            source: Box::new(source),
                        }
                    })?;
                }
                SERVERS => {
                    let tables = ["mcp_servers", "servers", "server"];
                    servers(unwrapped(map, &tables).into(), gathered);
                }
                _ => gathered.settings.extend(map),
            }
            older.sources.push(path);
        }
        Ok(older)
    }

    fn merge(&self, document: &mut DocumentMut) -> Result<Vec<String>, ShapeError> {
        let Gathered {
            settings, rules, ..
        } = &self.gathered;
        merge(document, settings, rules, RuleOrder::Before)
    }

    fn migration(self, target: PathBuf, changes: Vec<String>, text: String) -> Migration {
        Migration {
            target,
            sources: self.sources,
            changes,
            notes: self.gathered.notes,
            text,
        }
    }
}

fn read(path: &Path, text: &str) -> Result<Map<String, Value>, WriteError> {
    let document = write::parse(path, text)?;
    Ok(match table_to_json(document.as_table()) {
        Value::Object(map) => map,
        _ => Map::new(),
    })
}

/// The older files had their content under one table, or at the top.
fn unwrapped(mut map: Map<String, Value>, tables: &[&str]) -> Map<String, Value> {
    for table in tables {
        if let Some(Value::Object(inner)) = map.shift_remove(*table) {
            return inner;
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    const DIRECTORY: &str = ".caliban";

    fn migrated(folder: &TempDir) -> Result<Migration, WriteError> {
        let writer = Writer::new(folder.path().join("locks"));
        migrate(&folder.path().join(DIRECTORY), &writer)
    }

    fn workspace(files: &[(&str, &str)]) -> TempDir {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join(".caliban")).unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(".caliban").join(name), text).unwrap();
        }
        folder
    }

    const OLDER: [(&str, &str); 4] = [
        (
            "settings.toml",
            r#"# ours
model = "m"

[[permissions.rules]]
pattern = "Bash:git *"
action = "ask"

# keep me
[[permissions.rules]]
pattern = "Read"
action = "allow"

[mcp_servers.linear]
command = "old"
disabled = true

[[hooks.Stop]]
matcher = "*"

[[hooks.Stop.handlers]]
type = "command"
command = "/bin/there"
"#,
        ),
        (
            "permissions.toml",
            r#"[permissions]
default_mode = "plan"

[[permissions.rules]]
pattern = "Bash:git *"
action = "allow"
expires_at = 2030-01-01T00:00:00Z

[[permissions.rules]]
pattern = "Read"
action = "allow"
"#,
        ),
        (
            "mcp.toml",
            r#"[server.linear]
command = "npx"

[server.notes]
transport = "http"
url = "https://notes.example/mcp"
"#,
        ),
        (
            "hooks.toml",
            r#"disable_all_hooks = false

[[hooks.Stop]]
matcher = "*"

[[hooks.Stop.handlers]]
type = "command"
command = "/bin/new"
"#,
        ),
    ];

    #[test]
    fn the_older_files_come_on_top_of_what_is_there() {
        let folder = workspace(&OLDER);
        let plan = plan(&folder.path().join(DIRECTORY)).unwrap();
        assert_eq!(plan.sources.len(), 3);
        assert_eq!(plan.notes, [""; 0]);
        assert_eq!(
            plan.text,
            r#"# ours
model = "m"
disable_all_hooks = false

[permissions]
default_mode = "plan"

[[permissions.rules]]
pattern = "Bash:git *"
action = "allow"
expires_at = "2030-01-01T00:00:00Z"

# keep me
[[permissions.rules]]
pattern = "Read"
action = "allow"

[[permissions.rules]]
pattern = "Bash:git *"
action = "ask"

[mcp_servers.linear]
command = "npx"
disabled = true

[mcp_servers.notes]
type = "http"
url = "https://notes.example/mcp"

[[hooks.Stop]]
matcher = "*"

[[hooks.Stop.handlers]]
type = "command"
command = "/bin/there"

[[hooks.Stop]]
matcher = "*"

[[hooks.Stop.handlers]]
type = "command"
command = "/bin/new"
"#
        );
    }

    #[test]
    fn migrating_does_what_was_planned_and_only_once() {
        let folder = workspace(&OLDER);
        let planned = plan(&folder.path().join(DIRECTORY)).unwrap();
        let before = fs::read_to_string(&planned.target).unwrap();
        assert_eq!(before, OLDER[0].1);
        assert_eq!(migrated(&folder).unwrap(), planned);
        assert_eq!(fs::read_to_string(&planned.target).unwrap(), planned.text);
        let again = migrated(&folder).unwrap();
        assert_eq!(again.changes, [""; 0]);
        assert!(again.sources.is_empty());
        assert_eq!(again.text, planned.text);
        for (name, text) in &OLDER[1..] {
            let kept = fs::read_to_string(folder.path().join(".caliban").join(name)).unwrap();
            assert_eq!(kept, format!("{MIGRATED}\n{text}"));
        }
    }

    #[test]
    fn the_first_rules_and_lists_at_the_top_are_understood() {
        let folder = workspace(&[(
            "permissions.toml",
            "[[rules]]\ntool = \"Bash:git *\"\naction = \"allow\"\ncomment = \"git\"\n",
        )]);
        let text = migrated(&folder).unwrap().text;
        assert_eq!(
            text,
            "[[permissions.rules]]\npattern = \"Bash:git *\"\naction = \"allow\"\ncomment = \"git\"\n"
        );
        let folder = workspace(&[(
            "permissions.toml",
            "allow = [\"Read\"]\ndeny = [\"Bash\"]\n",
        )]);
        let text = migrated(&folder).unwrap().text;
        assert_eq!(
            text,
            "[[permissions.rules]]\npattern = \"Bash\"\naction = \"deny\"\n\n[[permissions.rules]]\npattern = \"Read\"\naction = \"allow\"\n"
        );
    }

    #[test]
    fn without_older_files_nothing_happens() {
        let folder = TempDir::new().unwrap();
        let migration = migrated(&folder).unwrap();
        assert!(migration.sources.is_empty() && migration.changes.is_empty());
        assert!(!folder.path().join(".caliban").exists());
    }

    #[test]
    fn an_older_file_that_does_not_parse_stops_everything() {
        let folder = workspace(&[
            ("mcp.toml", "[server.x\n"),
            ("permissions.toml", "allow = []\n"),
        ]);
        let error = migrated(&folder).unwrap_err().to_string();
        assert!(error.contains("mcp.toml:1:"), "{error}");
        assert!(!folder.path().join(".caliban/settings.toml").exists());
    }

    #[test]
    fn a_rule_that_cannot_be_read_stops_everything() {
        let folder = workspace(&[(
            "permissions.toml",
            "[[rules]]\npattern = \"Bash:rm *\"\naction = \"denny\"\n",
        )]);
        let error = migrated(&folder).unwrap_err().to_string();
        assert!(
            error.contains("rule 0") && error.contains("denny"),
            "{error}"
        );
        assert!(!folder.path().join(".caliban/settings.toml").exists());
    }

    #[test]
    fn settings_in_json_are_not_put_out_of_use() {
        let folder = workspace(&[
            ("settings.json", "{}"),
            ("mcp.toml", "[server.x]\ncommand = \"x\"\n"),
        ]);
        assert!(matches!(
            plan(&folder.path().join(DIRECTORY)),
            Err(WriteError::Json { .. })
        ));
        assert!(matches!(migrated(&folder), Err(WriteError::Json { .. })));
    }
}
