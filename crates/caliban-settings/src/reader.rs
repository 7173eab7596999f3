//! Reads what each scope says: its settings file, its legacy files, or the overlay.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::document::{Format, Node, Origin, canonicalise, check_names, parse, typed};
use crate::error::{SettingsError, shown};
use crate::import;
use crate::legacy::{Use, add_legacy};
use crate::load::LoadRequest;
use crate::locations::ScopeFiles;
use crate::mcp_json::add_workspace_servers;
use crate::merge::overlay;
use crate::scope::Scope;
use crate::snapshot::FileReport;
use crate::source::{WorkspaceFile, read_file};
use crate::trust::WorkspaceFiles;
use crate::types::Settings;

/// Reads scope after scope and keeps account of the files.
pub(crate) struct Reader<'a> {
    request: &'a LoadRequest,
    workspace: &'a WorkspaceFiles,
    pub(crate) reports: Vec<FileReport>,
    pub(crate) warnings: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(request: &'a LoadRequest, workspace: &'a WorkspaceFiles) -> Self {
        Self {
            request,
            workspace,
            reports: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// A scope's document with its legacy files, checked; `None` where it has none.
    pub(crate) fn read_scope(&mut self, scope: Scope) -> Result<Option<Node>, SettingsError> {
        let locations = &self.request.locations;
        let workspace = self.workspace.workspace();
        let mut root = match locations.settings(scope, workspace) {
            Some(files) if !self.request.sources.contains(scope) => {
                self.report(scope, files.toml, Use::Ignored);
                return Ok(None);
            }
            Some(files) => {
                let own = self.read_settings(scope, files)?;
                over(self.read_foreign(scope)?, own)
            }
            None => self.read_overlay()?,
        };
        if let Some(files) = locations.legacy(scope, workspace) {
            let mut refused = Vec::new();
            let mut read = |path: &Path| self.read_text(scope, path, &mut refused);
            let report = add_legacy(&mut root, scope, &files, &mut read)?;
            self.warnings.extend(refused);
            self.warnings.extend(report.warnings);
            for (path, used) in report.files {
                self.report(scope, path, used);
            }
        }
        if scope == Scope::Project {
            self.add_servers(scope, &mut root)?;
        }
        let Some(mut root) = root else {
            return Ok(None);
        };
        canonicalise(&mut root)?;
        self.warnings.extend(check_names(&root)?);
        let settings: Settings = typed(&root)?;
        let permissions = &settings.permissions;
        let has_lists = [&permissions.allow, &permissions.ask, &permissions.deny]
            .iter()
            .any(|list| !list.is_empty());
        if has_lists && !permissions.rules.is_empty() {
            self.warnings.push(format!(
                "the {scope} scope sets `permissions.rules`, so its `permissions.allow`, `ask` \
                 and `deny` do not count"
            ));
        }
        Ok(Some(root))
    }

    /// The servers that the workspace has for every program.
    fn add_servers(&mut self, scope: Scope, root: &mut Option<Node>) -> Result<(), SettingsError> {
        let path = self.workspace.workspace().join(".mcp.json");
        let mut refused = Vec::new();
        let text = self.read_text(scope, &path, &mut refused)?;
        self.warnings.extend(refused);
        if let Some(text) = text {
            let used = add_workspace_servers(root, &path, text)?;
            self.report(scope, path, used);
        }
        Ok(())
    }

    fn read_settings(
        &mut self,
        scope: Scope,
        files: ScopeFiles,
    ) -> Result<Option<Node>, SettingsError> {
        let ScopeFiles { toml, json } = files;
        let mut refused = Vec::new();
        let toml_text = self.read_text(scope, &toml, &mut refused)?;
        // Ignored whatever it says, so it need not even be readable.
        let json_text = match (&toml_text, self.read_text(scope, &json, &mut refused)) {
            (Some(_), Ok(None)) => None,
            (Some(_), Ok(Some(_)) | Err(_)) => {
                self.warnings.push(format!(
                    "`{}` is ignored because `{}` exists",
                    shown(&json),
                    shown(&toml)
                ));
                self.report(scope, json.clone(), Use::Ignored);
                None
            }
            (None, text) => text?,
        };
        self.warnings.extend(refused);
        let (path, text, format) = match (toml_text, json_text) {
            (Some(text), _) => (toml, text, Format::Toml),
            (None, Some(text)) => {
                let import = format!(
                    "`caliban settings import --from {} --scope {scope}",
                    shown(&json)
                );
                let remedy = match scope {
                    // That file is its operator's to write.
                    Scope::Managed => format!(
                        "{import} --dry-run` prints what `{}` would be",
                        shown(&toml)
                    ),
                    Scope::User | Scope::Project | Scope::Local | Scope::Cli => {
                        format!("run {import}`")
                    }
                };
                self.warnings.push(format!(
                    "`{}` is read, but TOML is preferred; {remedy}",
                    shown(&json)
                ));
                (json, text, Format::Json)
            }
            (None, None) => {
                self.report(scope, toml, Use::Ignored);
                return Ok(None);
            }
        };
        self.report(scope, path.clone(), Use::Loaded);
        document(scope, Origin::File(path), text, format).map(Some)
    }

    fn read_overlay(&mut self) -> Result<Option<Node>, SettingsError> {
        let Some(overlay) = &self.request.overlay else {
            return Ok(None);
        };
        let scope = Scope::Cli;
        if overlay.trim_start().starts_with('{') {
            if let Some(text) = self.translated(Path::new("--settings"), overlay)? {
                return document(scope, Origin::Overlay, text, Format::Toml).map(Some);
            }
            return document(scope, Origin::Overlay, overlay.clone(), Format::Json).map(Some);
        }
        let path = PathBuf::from(overlay);
        let format = match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Format::Toml,
            Some("json") => Format::Json,
            Some(_) | None => {
                return Err(SettingsError::Overlay {
                    given: overlay.clone(),
                });
            }
        };
        let text = read_file(&path)?.ok_or_else(|| SettingsError::Unreadable {
            path: path.clone(),
            reason: "there is no such file".to_owned(),
        })?;
        self.report(scope, path.clone(), Use::Loaded);
        match self.translated(&path, &text)? {
            Some(text) => document(scope, Origin::File(path), text, Format::Toml),
            None => document(scope, Origin::File(path), text, format),
        }
        .map(Some)
    }

    /// What the files of Claude Code say in a scope, in our terms.
    fn read_foreign(&mut self, scope: Scope) -> Result<Option<Node>, SettingsError> {
        let workspace = self.workspace.workspace();
        let foreign = self.request.foreign.as_ref();
        let Some(path) = foreign.and_then(|foreign| foreign.file(scope, workspace)) else {
            return Ok(None);
        };
        let mut refused = Vec::new();
        let text = self.read_text(scope, &path, &mut refused)?;
        self.warnings.extend(refused);
        let Some(text) = text else {
            return Ok(None);
        };
        let translated = self.translated(&path, &text)?;
        self.report(
            scope,
            path.clone(),
            match translated {
                Some(_) => Use::Loaded,
                None => Use::Ignored,
            },
        );
        translated
            .map(|text| document(scope, Origin::File(path), text, Format::Toml))
            .transpose()
    }

    /// Settings of Claude Code as ours; nothing where they are not read, or are ours already.
    fn translated(&mut self, path: &Path, text: &str) -> Result<Option<String>, SettingsError> {
        let Some(foreign) = &self.request.foreign else {
            return Ok(None);
        };
        let unusable = |reason: String| SettingsError::Unreadable {
            path: path.to_owned(),
            reason,
        };
        let home = self.request.locations.home();
        let text = with_models(text, &foreign.models);
        let imported = match import::from_text(path, &text, Some(home)) {
            Ok(imported) if imported.kind == import::Kind::ClaudeCode => imported,
            Ok(_) | Err(import::ImportError::Unknown(_)) => return Ok(None),
            Err(error) => return Err(unusable(error.to_string())),
        };
        // Who forbids something must learn that it is not forbidden.
        let strict = |note: &&String| note.starts_with("deny ") || note.starts_with("ask ");
        let notes = imported.notes.iter().filter(strict);
        let notes: Vec<String> = notes
            .map(|note| format!("`{}`: {note}", shown(path)))
            .collect();
        self.warnings.extend(notes);
        imported
            .toml()
            .map(Some)
            .map_err(|error| unusable(error.to_string()))
    }

    fn read_text(
        &self,
        scope: Scope,
        path: &Path,
        refused: &mut Vec<String>,
    ) -> Result<Option<String>, SettingsError> {
        if !scope.is_workspace() {
            return read_file(path);
        }
        match self.workspace.file(path) {
            WorkspaceFile::Absent => Ok(None),
            WorkspaceFile::Text(text) => Ok(Some(text.clone())),
            WorkspaceFile::Elsewhere(target) => {
                refused.push(format!(
                    "`{}` is not read because it leads out of the workspace, to `{}`",
                    shown(path),
                    shown(target)
                ));
                Ok(None)
            }
            WorkspaceFile::Unusable(error) => Err(error.clone()),
        }
    }

    fn report(&mut self, scope: Scope, path: PathBuf, used: Use) {
        self.reports.push(FileReport {
            scope,
            path,
            loaded: used == Use::Loaded,
        });
    }
}

/// One document with every key in its own spelling, ready to be laid over another.
fn document(
    scope: Scope,
    origin: Origin,
    text: String,
    format: Format,
) -> Result<Node, SettingsError> {
    let mut node = parse(scope, origin, text, format)?;
    canonicalise(&mut node)?;
    Ok(node)
}

/// Checks a settings file of a scope as it would be read, and says what there is to warn of.
pub(crate) fn check_text(
    scope: Scope,
    path: &Path,
    text: String,
) -> Result<Vec<String>, SettingsError> {
    let root = document(scope, Origin::File(path.to_owned()), text, Format::Toml)?;
    let warnings = check_names(&root)?;
    let _: Settings = typed(&root)?;
    Ok(warnings)
}

/// One document over another.
fn over(base: Option<Node>, top: Option<Node>) -> Option<Node> {
    match (base, top) {
        (Some(mut base), Some(top)) => {
            overlay(&mut base, &top);
            Some(base)
        }
        (base, top) => top.or(base),
    }
}

/// The same settings with short names of models spelled out.
fn with_models(text: &str, models: &BTreeMap<String, String>) -> String {
    let Ok(Value::Object(mut settings)) = serde_json::from_str(text) else {
        return text.to_owned();
    };
    for key in ["model", "fallbackModel"] {
        let name = settings.get(key).and_then(Value::as_str);
        if let Some(model) = name.and_then(|name| models.get(name)) {
            settings.insert(key.to_owned(), model.as_str().into());
        }
    }
    Value::Object(settings).to_string()
}
