//! What a consent changes for later sessions: the settings files of this dialect.

use std::path::PathBuf;

use caliban_protocol::claude::{Behavior, Destination, PermissionUpdate, RuleRef};
use caliban_settings::write::{WriteError, Writer};
use serde_json::{Map, Value, json};

/// A settings file in which something else stands where a change belongs.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` in it is not what it should be")]
struct Shape(&'static str);

/// Where the files are.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    pub(crate) workspace: PathBuf,
    /// The user's directory.
    pub(crate) config: PathBuf,
    pub(crate) writer: Writer,
}

impl Places {
    /// The file of a destination; nothing for one that lasts no longer than the session.
    fn file(&self, destination: Destination) -> Option<PathBuf> {
        match destination {
            Destination::Session | Destination::CliArg => None,
            Destination::LocalSettings => Some(self.workspace.join(".claude/settings.local.json")),
            Destination::ProjectSettings => Some(self.workspace.join(".claude/settings.json")),
            Destination::UserSettings => Some(self.config.join("settings.json")),
        }
    }
}

/// Where a change is kept for later sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Nowhere,
    InFile,
}

/// Writes a change where it is to be kept, beside what other sessions keep there.
pub(crate) fn keep(update: &PermissionUpdate, places: &Places) -> Result<Kept, WriteError> {
    let Some(path) = places.file(update.destination()) else {
        return Ok(Kept::Nowhere);
    };
    places
        .writer
        .edit_json(&path, |document| change(document, update).map_err(Shape))?;
    Ok(Kept::InFile)
}

/// The error names the key that is in the way.
fn change(
    document: &mut Map<String, Value>,
    update: &PermissionUpdate,
) -> Result<(), &'static str> {
    let permissions = document
        .entry("permissions")
        .or_insert_with(|| json!({}))
        .as_object_mut()
        .ok_or("permissions")?;
    match update {
        PermissionUpdate::AddRules {
            rules, behavior, ..
        } => add(permissions, bucket(*behavior), texts(rules)),
        PermissionUpdate::ReplaceRules {
            rules, behavior, ..
        } => {
            permissions.shift_remove(bucket(*behavior));
            add(permissions, bucket(*behavior), texts(rules))
        }
        PermissionUpdate::RemoveRules {
            rules, behavior, ..
        } => remove(permissions, bucket(*behavior), &texts(rules)),
        PermissionUpdate::SetMode { mode, .. } => {
            permissions.insert("defaultMode".to_owned(), json!(mode));
            Ok(())
        }
        PermissionUpdate::AddDirectories { directories, .. } => {
            add(permissions, DIRECTORIES, directories.clone())
        }
        PermissionUpdate::RemoveDirectories { directories, .. } => {
            remove(permissions, DIRECTORIES, directories)
        }
    }
}

const DIRECTORIES: &str = "additionalDirectories";

fn bucket(behavior: Behavior) -> &'static str {
    match behavior {
        Behavior::Allow => "allow",
        Behavior::Deny => "deny",
        Behavior::Ask => "ask",
    }
}

fn texts(rules: &[RuleRef]) -> Vec<String> {
    rules.iter().map(RuleRef::text).collect()
}

fn list<'a>(
    permissions: &'a mut Map<String, Value>,
    key: &'static str,
) -> Result<&'a mut Vec<Value>, &'static str> {
    let list = permissions.entry(key).or_insert_with(|| json!([]));
    list.as_array_mut().ok_or(key)
}

fn add(
    permissions: &mut Map<String, Value>,
    key: &'static str,
    texts: Vec<String>,
) -> Result<(), &'static str> {
    let list = list(permissions, key)?;
    for text in texts {
        if !list.iter().any(|known| known == &text) {
            list.push(text.into());
        }
    }
    Ok(())
}

fn remove(
    permissions: &mut Map<String, Value>,
    key: &'static str,
    texts: &[String],
) -> Result<(), &'static str> {
    list(permissions, key)?.retain(|known| texts.iter().all(|text| known != text));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn update(value: Value) -> PermissionUpdate {
        serde_json::from_value(value).unwrap()
    }

    fn rules(kind: &str, content: &str, destination: &str) -> PermissionUpdate {
        update(json!({
            "type": kind,
            "rules": [{"toolName": "Bash", "ruleContent": content}],
            "behavior": "allow",
            "destination": destination,
        }))
    }

    #[test]
    fn changes_are_kept_beside_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places {
            workspace: folder.path().join("w"),
            config: folder.path().join("c"),
            writer: Writer::new(folder.path().join("locks")),
        };
        let local = places.workspace.join(".claude/settings.local.json");
        fs::create_dir_all(local.parent().unwrap()).unwrap();
        fs::write(
            &local,
            r#"{"model": "opus", "permissions": {"deny": ["Read(x)"]}}"#,
        )
        .unwrap();
        for update in [
            rules("addRules", "touch:*", "localSettings"),
            rules("addRules", "touch:*", "localSettings"),
            rules("addRules", "ls", "localSettings"),
            rules("removeRules", "ls", "localSettings"),
            update(
                json!({"type": "setMode", "mode": "acceptEdits", "destination": "localSettings"}),
            ),
            update(
                json!({"type": "addDirectories", "directories": ["/d"], "destination": "localSettings"}),
            ),
            rules("addRules", "never", "session"),
        ] {
            keep(&update, &places).unwrap();
        }
        let read = |path: &Path| -> Value {
            serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
        };
        assert_eq!(
            read(&local),
            json!({
                "model": "opus",
                "permissions": {
                    "deny": ["Read(x)"],
                    "allow": ["Bash(touch:*)"],
                    "defaultMode": "acceptEdits",
                    "additionalDirectories": ["/d"],
                },
            })
        );
        keep(&rules("replaceRules", "a", "userSettings"), &places).unwrap();
        assert_eq!(
            read(&places.config.join("settings.json"))["permissions"]["allow"],
            json!(["Bash(a)"])
        );
    }

    #[test]
    fn a_file_that_makes_no_sense_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places {
            workspace: folder.path().to_owned(),
            config: folder.path().to_owned(),
            writer: Writer::new(folder.path().join("locks")),
        };
        let file = folder.path().join("settings.json");
        for text in [
            "{",
            "[]",
            r#"{"permissions": 1}"#,
            r#"{"permissions": {"allow": "x"}}"#,
        ] {
            fs::write(&file, text).unwrap();
            let error = keep(&rules("addRules", "a", "userSettings"), &places).unwrap_err();
            assert!(error.to_string().contains("settings.json"), "{error}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
    }
}
