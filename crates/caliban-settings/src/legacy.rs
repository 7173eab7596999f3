//! The single-purpose files that preceded `settings.toml`, for as long as they are read.

use std::path::Path;

use crate::document::{Content, Entry, Format, Node, Origin, Step, Table, parse};
use crate::error::{Fault, SettingsError, shown};
use crate::locations::LegacyFiles;
use crate::scope::Scope;

/// What the legacy files of one scope did.
#[derive(Debug, Default)]
pub(crate) struct LegacyReport {
    /// The files that exist, and whether something of them counts.
    pub(crate) files: Vec<(std::path::PathBuf, Use)>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Loaded,
    Ignored,
}

const HOOK_KEYS: [&str; 5] = [
    "hooks",
    "disable_all_hooks",
    "allow_managed_hooks_only",
    "allowed_http_hook_urls",
    "http_hook_allowed_env_vars",
];
/// The table of servers has had three names.
pub(crate) const SERVER_KEYS: [&str; 3] = ["mcp_servers", "servers", "server"];
pub(crate) const RULE_KEYS: [&str; 4] = ["rules", "allow", "ask", "deny"];

/// The first line of a file whose content is in the settings.
pub(crate) const MIGRATED: &str =
    "# Moved to settings.toml by `caliban config migrate`; no longer read.";

/// Adds what the legacy files say to a scope's document. `read` gives a file's text, `None` where
/// there is none.
pub(crate) fn add_legacy(
    root: &mut Option<Node>,
    scope: Scope,
    files: &LegacyFiles,
    read: &mut dyn FnMut(&Path) -> Result<Option<String>, SettingsError>,
) -> Result<LegacyReport, SettingsError> {
    let mut report = LegacyReport::default();
    for (path, add) in [
        (&files.mcp, add_servers as Add),
        (&files.hooks, add_hooks),
        (&files.permissions, add_permissions),
    ] {
        let Some(text) = read(path)? else {
            continue;
        };
        if text.starts_with(MIGRATED) {
            report.files.push((path.clone(), Use::Ignored));
            continue;
        }
        let document = parse(scope, Origin::File(path.clone()), text, Format::Toml)?;
        let target = root.get_or_insert_with(|| Node {
            content: Content::Table(Table::default()),
            place: document.place.clone(),
        });
        let (Some(target), Content::Table(source)) = (target.as_table_mut(), document.content)
        else {
            continue;
        };
        let (used, note) = add(target, source)?;
        report.files.push((path.clone(), used));
        report.warnings.push(format!("{}: {note}", shown(path)));
    }
    Ok(report)
}

type Add = fn(&mut Table, Table) -> Result<(Use, String), SettingsError>;

const ADVICE: &str = "this file is deprecated; run `caliban config migrate`";

/// Servers count where the settings name none.
fn add_servers(target: &mut Table, mut source: Table) -> Result<(Use, String), SettingsError> {
    if target.get("mcp_servers").is_some() {
        let note = "ignored, because `mcp_servers` is set in the settings of the same scope";
        return Ok((Use::Ignored, note.to_owned()));
    }
    let servers = SERVER_KEYS.into_iter().find_map(|key| source.remove(key));
    if let Some(entry) = source.into_iter().next() {
        return Err(unknown(&entry));
    }
    match servers {
        Some(mut entry) => {
            "mcp_servers".clone_into(&mut entry.key);
            target.set(entry);
            Ok((Use::Loaded, ADVICE.to_owned()))
        }
        None => Ok((Use::Ignored, ADVICE.to_owned())),
    }
}

/// Each key counts where the settings do not have it.
fn add_hooks(target: &mut Table, source: Table) -> Result<(Use, String), SettingsError> {
    let mut used = Use::Ignored;
    let mut shadowed = Vec::new();
    for entry in source {
        if !HOOK_KEYS.contains(&entry.key.as_str()) {
            return Err(unknown(&entry));
        }
        if target.get(&entry.key).is_some() {
            shadowed.push(format!("`{}`", entry.key));
        } else {
            target.set(entry);
            used = Use::Loaded;
        }
    }
    let note = if shadowed.is_empty() {
        ADVICE.to_owned()
    } else {
        let keys = shadowed.join(", ");
        format!("{keys} ignored, because the settings of the same scope set it; {ADVICE}")
    };
    Ok((used, note))
}

/// What this file says replaces what the settings say: its rules all their rules, each other key
/// that key.
fn add_permissions(target: &mut Table, mut source: Table) -> Result<(Use, String), SettingsError> {
    let block = match source.remove("permissions") {
        Some(entry) => {
            if let Some(entry) = source.into_iter().next() {
                return Err(unknown(&entry));
            }
            let Content::Table(block) = entry.node.content else {
                // Typed with the rest of the settings, where it fails with its place.
                target.set(entry);
                return Ok((Use::Loaded, ADVICE.to_owned()));
            };
            block
        }
        None => source,
    };
    let Some(first) = block.iter().next().cloned() else {
        return Ok((Use::Ignored, ADVICE.to_owned()));
    };
    if target.get("permissions").is_none() {
        target.set(Entry {
            key: "permissions".to_owned(),
            key_place: first.key_place.clone(),
            node: Node {
                content: Content::Table(Table::default()),
                place: first.key_place.clone(),
            },
        });
    }
    let Some(permissions) = target.get_mut("permissions").and_then(Node::as_table_mut) else {
        return Ok((Use::Ignored, ADVICE.to_owned()));
    };
    let mut replaced = Vec::new();
    if RULE_KEYS.iter().any(|key| block.get(key).is_some()) {
        for key in RULE_KEYS {
            if permissions.remove(key).is_some() {
                replaced.push(format!("`permissions.{key}`"));
            }
        }
    }
    for mut entry in block {
        rename_tool_to_pattern(&mut entry);
        if permissions.get(&entry.key).is_some() {
            replaced.push(format!("`permissions.{}`", entry.key));
        }
        permissions.set(entry);
    }
    let note = if replaced.is_empty() {
        ADVICE.to_owned()
    } else {
        let keys = replaced.join(", ");
        format!("this file replaces {keys} of the settings of the same scope; {ADVICE}")
    };
    Ok((Use::Loaded, note))
}

/// The first rules called their pattern `tool`.
fn rename_tool_to_pattern(entry: &mut Entry) {
    let Content::List(rules) = &mut entry.node.content else {
        return;
    };
    for rule in rules.iter_mut().filter_map(Node::as_table_mut) {
        if rule.get("pattern").is_none()
            && let Some(tool) = rule.entry_mut("tool")
        {
            "pattern".clone_into(&mut tool.key);
        }
    }
}

fn unknown(entry: &Entry) -> SettingsError {
    let fault = Fault::at(&entry.key_place, "unknown key").about(&[Step::Key(entry.key.clone())]);
    SettingsError::UnknownKey(Box::new(fault))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::{Value, json};

    use super::*;

    fn merged(settings: &str, name: &str, text: &str) -> Result<(Value, String), SettingsError> {
        let files = LegacyFiles {
            permissions: PathBuf::from("permissions.toml"),
            mcp: PathBuf::from("mcp.toml"),
            hooks: PathBuf::from("hooks.toml"),
        };
        let mut root = Some(parse(
            Scope::Project,
            Origin::File(PathBuf::from("settings.toml")),
            settings.to_owned(),
            Format::Toml,
        )?);
        let mut read = |path: &Path| Ok((path == Path::new(name)).then(|| text.to_owned()));
        let report = add_legacy(&mut root, Scope::Project, &files, &mut read)?;
        Ok((root.unwrap().to_value(), report.warnings.join("\n")))
    }

    #[test]
    fn servers_count_where_the_settings_have_none() {
        for text in [
            "[server.a]\ncommand = 'x'\n",
            "[mcp_servers.a]\ncommand = 'x'\n",
        ] {
            let (value, warning) = merged("model = 'm'", "mcp.toml", text).unwrap();
            assert_eq!(
                value,
                json!({"model": "m", "mcp_servers": {"a": {"command": "x"}}})
            );
            assert!(warning.contains("caliban config migrate"), "{warning}");
        }
        let settings = "[mcp_servers.b]\ncommand = 'y'\n";
        let (value, warning) = merged(settings, "mcp.toml", "[server.a]\n").unwrap();
        assert_eq!(value, json!({"mcp_servers": {"b": {"command": "y"}}}));
        assert!(warning.starts_with("mcp.toml: ignored"), "{warning}");
    }

    #[test]
    fn each_hook_key_counts_where_the_settings_lack_it() {
        let settings = "disable_all_hooks = true\n";
        let text = "disable_all_hooks = false\n[[hooks.Stop]]\nmatcher = '*'\n";
        let (value, warning) = merged(settings, "hooks.toml", text).unwrap();
        assert_eq!(
            value,
            json!({"disable_all_hooks": true, "hooks": {"Stop": [{"matcher": "*"}]}})
        );
        assert!(warning.contains("`disable_all_hooks` ignored"), "{warning}");
        assert!(merged("", "hooks.toml", "[[hook.Stop]]\n").is_err());
    }

    #[test]
    fn a_file_that_was_migrated_says_nothing_any_more() {
        let settings = "[permissions]\nallow = ['B']\n";
        let text = format!("{MIGRATED}\n[permissions]\ndeny = ['A']\n");
        let (value, warning) = merged(settings, "permissions.toml", &text).unwrap();
        assert_eq!(value, json!({"permissions": {"allow": ["B"]}}));
        assert_eq!(warning, "");
    }

    #[test]
    fn permissions_replace_those_of_the_settings() {
        let settings = "[permissions]\nenforce = true\ndeny = ['A']\nallow = ['B']\n";
        let text = "[[permissions.rules]]\ntool = 'C'\naction = 'ask'\n";
        let (value, warning) = merged(settings, "permissions.toml", text).unwrap();
        assert_eq!(
            value,
            json!({"permissions": {"enforce": true, "rules": [{"pattern": "C", "action": "ask"}]}})
        );
        assert!(
            warning.contains("replaces `permissions.allow`, `permissions.deny` of the settings"),
            "{warning}"
        );
        let bare = "[[rules]]\npattern = 'C'\naction = 'ask'\n";
        let (value, _) = merged("", "permissions.toml", bare).unwrap();
        assert_eq!(value["permissions"]["rules"][0]["pattern"], "C");
    }
}
