//! Settings of other programs, and our own in JSON, as canonical settings. What has no counterpart
//! or means something else here is left out and noted.

mod caliban;
mod claude;
mod codex;
mod gathered;
mod hooks;
mod mcp;
mod merge;
mod plugins;
mod rule;
mod sandbox;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toml_edit::DocumentMut;

use crate::legacy;
use crate::write::values::table_to_json;
use crate::write::{self, Draft, JsonSibling, RuleSpec, ShapeError, WriteError, Writer};

pub(crate) use caliban::{permissions, servers};
pub(crate) use gathered::Gathered;
pub(crate) use merge::{RuleOrder, merge};

/// Other programs keep their state beside their settings, so this is generous.
const SOURCE_LIMIT: u64 = 64 * 1024 * 1024;

/// Whose settings a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    ClaudeCode,
    Codex,
    Caliban,
}

/// Settings in our terms, not written anywhere yet.
#[derive(Debug, Clone)]
pub struct Imported {
    pub kind: Kind,
    /// What was left out or changed, and why. Never contains values that may be secret.
    pub notes: Vec<String>,
    settings: Map<String, Value>,
    pub rules: Vec<RuleSpec>,
    origin: Option<PathBuf>,
}

/// Why there is nothing to import.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Source(#[from] WriteError),
    #[error("{}:{line}:{column}: {message}", path.display())]
    Json {
        path: PathBuf,
        line: usize,
        column: usize,
        message: String,
    },
    /// Permissions are taken whole or not at all.
    #[error("nothing was imported from `{}`: {source}", path.display())]
    Policy { path: PathBuf, source: ShapeError },
    #[error(
        "`{}` holds no settings of Claude Code, Codex or caliban that are known here",
        .0.display()
    )]
    Unknown(PathBuf),
}

/// What merging into a file came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// One line per key that was added or replaced and per rule list; empty when the file already
    /// says all of it.
    pub changes: Vec<String>,
    /// The file afterwards.
    pub text: String,
}

/// Reads a settings file of any known kind. `home` is what `~` in its paths stands for.
pub fn from_file(path: &Path, home: Option<&Path>) -> Result<Imported, ImportError> {
    let text = write::read_bounded(path, SOURCE_LIMIT)?;
    let mut imported = from_text(path, &text, home)?;
    imported.origin = Some(path.to_owned());
    Ok(imported)
}

/// Reads settings of any known kind; `path` is only for messages.
pub fn from_text(path: &Path, text: &str, home: Option<&Path>) -> Result<Imported, ImportError> {
    let source = unwrapped(parse(path, text)?);
    let kind = kind(&source).ok_or_else(|| ImportError::Unknown(path.to_owned()))?;
    let gathered = match kind {
        Kind::ClaudeCode => claude::gather(source, home),
        Kind::Codex => Ok(codex::gather(source)),
        Kind::Caliban => caliban::gather(source, home),
    }
    .map_err(|source| ImportError::Policy {
        path: path.to_owned(),
        source,
    })?;
    Ok(Imported {
        kind,
        notes: gathered.notes,
        settings: gathered.settings,
        rules: gathered.rules,
        origin: None,
    })
}

impl Imported {
    /// For importing rules alone.
    #[must_use]
    pub fn only_rules(mut self) -> Self {
        self.settings.clear();
        self.origin = None;
        self
    }

    /// As a settings file of their own.
    pub fn toml(&self) -> Result<String, ShapeError> {
        let mut document = DocumentMut::new();
        self.merge(&mut document)?;
        Ok(document.to_string())
    }

    /// What [`Self::apply`] would do, without doing it.
    pub fn preview(&self, target: &Path) -> Result<Merged, WriteError> {
        let (changes, draft) = write::preview(target, self.sibling(target), |document| {
            self.merge(document)
        })?;
        let text = match draft {
            Draft::Changed(text) | Draft::Unchanged(text) => text,
        };
        Ok(Merged { changes, text })
    }

    /// Merges into a settings file: values replace what is there, lists grow by what they lack.
    pub fn apply(&self, target: &Path, writer: &Writer) -> Result<Merged, WriteError> {
        writer.edit_beside(target, self.sibling(target), |document| {
            let changes = self.merge(document)?;
            Ok::<_, ShapeError>(Merged {
                changes,
                text: document.to_string(),
            })
        })
    }

    fn merge(&self, document: &mut DocumentMut) -> Result<Vec<String>, ShapeError> {
        merge(document, &self.settings, &self.rules, RuleOrder::Kept)
    }

    /// The JSON file that this very import puts out of use need not be kept in use.
    fn sibling(&self, target: &Path) -> JsonSibling {
        let canonical = |path: &Path| path.canonicalize().ok();
        let origin = self.origin.as_deref().and_then(canonical);
        if origin.is_some() && origin == canonical(&target.with_extension("json")) {
            JsonSibling::Supersede
        } else {
            JsonSibling::Refuse
        }
    }
}

fn parse(path: &Path, text: &str) -> Result<Map<String, Value>, ImportError> {
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let is_named_json = path
        .extension()
        .is_some_and(|extension| extension == "json");
    // A bracket opens a table in the one format and a list in the other.
    let is_json = start.starts_with('{') || is_named_json && start.starts_with('[');
    if !is_json {
        let document = write::parse(path, text)?;
        return Ok(match table_to_json(document.as_table()) {
            Value::Object(map) => map,
            _ => Map::new(),
        });
    }
    let error = |line, column, message| ImportError::Json {
        path: path.to_owned(),
        line,
        column,
        message,
    };
    let parsed =
        jsonc_parser::parse_to_serde_value::<Value>(text, &jsonc_parser::ParseOptions::default())
            .map_err(|failure| {
            error(
                failure.line_display(),
                failure.column_display(),
                failure.kind().to_string(),
            )
        })?;
    match parsed {
        Value::Object(map) => Ok(map),
        _ => Err(error(1, 1, "expected an object".into())),
    }
}

/// What the older files of a single purpose held at their top, where the settings have it.
fn unwrapped(mut source: Map<String, Value>) -> Map<String, Value> {
    let is_all =
        |keys: &[&str]| !source.is_empty() && source.keys().all(|key| keys.contains(&key.as_str()));
    if is_all(&legacy::RULE_KEYS) {
        return Map::from_iter([("permissions".to_owned(), Value::Object(source))]);
    }
    if is_all(&legacy::SERVER_KEYS)
        && let Some(servers) = legacy::SERVER_KEYS
            .into_iter()
            .find_map(|key| source.shift_remove(key))
    {
        source.clear();
        source.insert("mcp_servers".to_owned(), servers);
    }
    source
}

/// Keys only one program has, by which its files are known.
const CODEX: [&str; 12] = [
    "approvalMode",
    "approval_policy",
    "fullAutoErrorMode",
    "model_provider",
    "model_providers",
    "model_reasoning_effort",
    "model_reasoning_summary",
    "profiles",
    "project_doc_max_bytes",
    "sandbox_mode",
    "sandbox_workspace_write",
    "shell_environment_policy",
];
const CALIBAN: [&str; 31] = [
    "additional_directories",
    "allow_managed_hooks_only",
    "allowed_http_hook_urls",
    "api_key_helper",
    "auto_compact_threshold",
    "claude_md_excludes",
    "disable_all_hooks",
    "editor_mode",
    "effort",
    "enable_telemetry",
    "fallback_model",
    "http_hook_allowed_env_vars",
    "mcp_servers",
    "memory",
    "micro_compact_enabled",
    "min_cache_block_tokens",
    "model_overrides",
    "output_style",
    "parent_settings_behavior",
    "permissions.audit_log",
    "permissions.default_mode",
    "permissions.enforce",
    "permissions.rules",
    "plugins",
    "router",
    "status_line",
    "tool_result_cap_chars",
    "trusted_directories",
    "tui",
    "view_mode",
    "statusLine.timeout_ms",
];
/// Keys that mean Claude Code unless something else speaks against it.
const SHARED: [&str; 6] = [
    "agent",
    "env",
    "hooks",
    "model",
    "permissions",
    "statusLine",
];

fn kind(source: &Map<String, Value>) -> Option<Kind> {
    let count = |keys: &[&str]| keys.iter().filter(|key| has(source, key)).count();
    let claude = claude::KEYS
        .iter()
        .filter(|key| !SHARED.contains(key) && has(source, key))
        .count()
        + usize::from(source.get("sandbox").is_some_and(sandbox::is_theirs));
    let (codex, caliban) = (count(&CODEX), count(&CALIBAN));
    if codex > claude.max(caliban) || codex > 0 && claude == 0 {
        Some(Kind::Codex)
    } else if caliban > claude {
        Some(Kind::Caliban)
    } else if claude > 0 || count(&SHARED) > 0 {
        Some(Kind::ClaudeCode)
    } else {
        None
    }
}

fn has(source: &Map<String, Value>, dotted: &str) -> bool {
    match dotted.split_once('.') {
        Some((table, key)) => source
            .get(table)
            .is_some_and(|table| table.get(key).is_some()),
        None => source.contains_key(dotted),
    }
}
