//! From files to settings: every scope is read, checked, gated by trust and merged; the types are
//! made once, at the end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::document::{
    Content, Format, Node, Origin, Table, Text, canonicalise, check_names, parse, typed,
};
use crate::error::SettingsError;
use crate::legacy::{Use, add_legacy};
use crate::locations::{Locations, ScopeFiles};
use crate::merge::{Provenance, keep_enforcement, lock, overlay};
use crate::policy::{Trust, mode};
use crate::scope::{Scope, Sources};
use crate::servers::check_servers;
use crate::snapshot::{FileReport, Layer, LoadedSettings};
use crate::source::{WorkspaceFile, read_file};
use crate::trust::{
    Ignored, IgnoredBecause, Recorded, TrustDecision, TrustStore, WorkspaceFiles, apply_gate,
    covers,
};
use crate::types::{ParentSettingsBehavior, PermissionMode, Settings};

/// What to load.
#[derive(Debug, Clone)]
pub struct LoadRequest {
    pub locations: Locations,
    /// The directory whose `.caliban` counts.
    pub workspace: PathBuf,
    /// The workspace's own `caliban.toml`, which trust covers too.
    pub router_file: Option<PathBuf>,
    /// The value of `--settings`.
    pub overlay: Option<String>,
    pub sources: Sources,
    pub trust: TrustDecision,
}

impl LoadRequest {
    /// Every scope of a workspace, trusted as far as is recorded.
    pub fn new(locations: Locations, workspace: impl Into<PathBuf>) -> Self {
        Self {
            locations,
            workspace: workspace.into(),
            router_file: None,
            overlay: None,
            sources: Sources::all(),
            trust: TrustDecision::Recorded,
        }
    }
}

/// Loads the settings of a run. Nothing is executed and nothing is written.
pub fn load(request: &LoadRequest) -> Result<LoadedSettings, SettingsError> {
    let files = WorkspaceFiles::read(&request.workspace, request.router_file.as_deref());
    let mut reader = Reader {
        request,
        workspace: &files,
        reports: Vec::new(),
        warnings: Vec::new(),
    };
    let mut roots = Vec::new();
    for scope in Scope::ALL {
        if let Some(root) = reader.read_scope(scope)? {
            roots.push((scope, root));
        }
    }
    let Reader {
        reports,
        mut warnings,
        ..
    } = reader;
    let trust = decide(request, &files, &roots, &mut warnings);
    let combined = combine(roots, trust)?;
    warnings.extend(combined.ignored.iter().filter_map(|ignored| {
        let Ignored { key, scope, .. } = ignored;
        match ignored.because {
            IgnoredBecause::Untrusted => None,
            IgnoredBecause::Scope => Some(format!("`{key}` does not count in the {scope} scope")),
            IgnoredBecause::Locked => Some(format!(
                "`{key}` of the {scope} scope is locked by the managed settings"
            )),
        }
    }));
    warnings.dedup();
    Ok(LoadedSettings {
        workspace: files.workspace().to_owned(),
        settings: combined.settings,
        provenance: combined.provenance,
        files: reports,
        warnings,
        ignored: combined.ignored,
        trust,
        layers: combined.layers,
    })
}

/// The scopes' documents made one.
pub(crate) struct Combined {
    pub(crate) settings: Settings,
    pub(crate) provenance: Provenance,
    pub(crate) layers: Vec<Layer>,
    pub(crate) ignored: Vec<Ignored>,
}

/// Gates, locks and merges the scopes' documents, which are given lowest first.
pub(crate) fn combine(
    mut roots: Vec<(Scope, Node)>,
    trust: Trust,
) -> Result<Combined, SettingsError> {
    let own_mode = own_mode(&roots);
    let mut ignored = Vec::new();
    for (scope, root) in &mut roots {
        ignored.extend(apply_gate(root, *scope, trust, own_mode));
    }
    if let Some(managed) = locking(&roots) {
        for (scope, root) in roots
            .iter_mut()
            .filter(|(scope, _)| *scope != Scope::Managed)
        {
            let keys = lock(root, &managed);
            ignored.extend(keys.into_iter().map(|key| Ignored {
                key,
                scope: *scope,
                because: IgnoredBecause::Locked,
            }));
        }
        // The highest scope is merged last.
        roots.sort_by_key(|(scope, _)| *scope == Scope::Managed);
    }
    let mut merged = roots.first().map_or_else(nothing, |(_, root)| root.clone());
    for (_, root) in roots.iter().skip(1) {
        overlay(&mut merged, root);
    }
    let own = roots
        .iter()
        .filter(|(scope, _)| matches!(scope, Scope::Managed | Scope::User));
    keep_enforcement(&mut merged, own.map(|(_, root)| root));
    check_servers(&mut merged, &ignored)?;
    let order: Vec<Scope> = roots.iter().map(|(scope, _)| *scope).collect();
    Ok(Combined {
        settings: typed(&merged)?,
        provenance: Provenance::read(&merged, &order),
        layers: roots
            .into_iter()
            .map(|(scope, root)| {
                let settings = typed(&root)?;
                Ok(Layer {
                    scope,
                    settings,
                    root,
                })
            })
            .collect::<Result<_, SettingsError>>()?,
        ignored,
    })
}

fn nothing() -> Node {
    let text = Text {
        scope: Scope::Managed,
        origin: Origin::Overlay,
        text: String::new(),
    };
    Node {
        content: Content::Table(Table::default()),
        place: crate::document::Place {
            text: Arc::new(text),
            span: 0..0,
        },
    }
}

/// The managed document, where it locks the others.
fn locking(roots: &[(Scope, Node)]) -> Option<Node> {
    let (_, managed) = roots.iter().find(|(scope, _)| *scope == Scope::Managed)?;
    let behavior = managed.at(&["parent_settings_behavior"])?.to_value();
    let behavior: ParentSettingsBehavior = serde_json::from_value(behavior).ok()?;
    match behavior {
        ParentSettingsBehavior::Block => Some(managed.clone()),
        ParentSettingsBehavior::Augment => None,
    }
}

/// The permission mode of the user and the operator.
fn own_mode(roots: &[(Scope, Node)]) -> Option<PermissionMode> {
    let of = |scope: Scope| {
        let (_, root) = roots.iter().find(|(known, _)| *known == scope)?;
        mode(&root.at(&["permissions", "default_mode"])?.to_value())
    };
    match locking(roots) {
        Some(_) => of(Scope::Managed).or_else(|| of(Scope::User)),
        None => of(Scope::User).or_else(|| of(Scope::Managed)),
    }
}

fn decide(
    request: &LoadRequest,
    files: &WorkspaceFiles,
    roots: &[(Scope, Node)],
    warnings: &mut Vec<String>,
) -> Trust {
    match request.trust {
        TrustDecision::Granted => return Trust::Trusted,
        TrustDecision::Withheld => return Trust::Untrusted,
        TrustDecision::Recorded => {}
    }
    let home = request.locations.home();
    let is_listed = roots
        .iter()
        .filter(|(scope, _)| matches!(scope, Scope::Managed | Scope::User))
        .filter_map(|(_, root)| root.at(&["trusted_directories"]))
        .filter_map(|node| match &node.content {
            Content::List(nodes) => Some(nodes),
            _ => None,
        })
        .flatten()
        .any(|node| match &node.content {
            Content::String(directory) => covers(directory, files.workspace(), home),
            _ => false,
        });
    if is_listed {
        return Trust::Trusted;
    }
    let lookup = TrustStore::new(request.locations.workspace_trust()).lookup(files);
    warnings.extend(lookup.warning);
    match lookup.recorded {
        Recorded::Trusted => Trust::Trusted,
        Recorded::Changed | Recorded::Unknown => Trust::Untrusted,
    }
}

struct Reader<'a> {
    request: &'a LoadRequest,
    workspace: &'a WorkspaceFiles,
    reports: Vec<FileReport>,
    warnings: Vec<String>,
}

impl Reader<'_> {
    /// A scope's document with its legacy files, checked; `None` where it has none.
    fn read_scope(&mut self, scope: Scope) -> Result<Option<Node>, SettingsError> {
        let locations = &self.request.locations;
        let workspace = self.workspace.workspace();
        let mut root = match locations.settings(scope, workspace) {
            Some(files) if !self.request.sources.contains(scope) => {
                self.report(scope, files.toml, Use::Ignored);
                return Ok(None);
            }
            Some(files) => self.read_settings(scope, files)?,
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
                    json.display(),
                    toml.display()
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
                self.warnings.push(format!(
                    "`{}` is read, but TOML is preferred; run `caliban settings import --from {} \
                     --scope {scope}`",
                    json.display(),
                    json.display()
                ));
                (json, text, Format::Json)
            }
            (None, None) => {
                self.report(scope, toml, Use::Ignored);
                return Ok(None);
            }
        };
        self.report(scope, path.clone(), Use::Loaded);
        let text = Text {
            scope,
            origin: Origin::File(path),
            text,
        };
        parse(Arc::new(text), format).map(Some)
    }

    fn read_overlay(&mut self) -> Result<Option<Node>, SettingsError> {
        let Some(overlay) = &self.request.overlay else {
            return Ok(None);
        };
        let scope = Scope::Cli;
        if overlay.trim_start().starts_with('{') {
            let text = Text {
                scope,
                origin: Origin::Overlay,
                text: overlay.clone(),
            };
            return parse(Arc::new(text), Format::Json).map(Some);
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
        let text = Text {
            scope,
            origin: Origin::File(path),
            text,
        };
        parse(Arc::new(text), format).map(Some)
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
                    path.display(),
                    target.display()
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
