//! From files to settings: every scope is read, checked, gated by trust and merged; the types are
//! made once, at the end.

use std::collections::{BTreeMap, HashSet};
use std::mem::take;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::document::{Content, Node, typed};
use crate::error::SettingsError;
use crate::locations::Locations;
use crate::merge::{Provenance, keep_enforcement, lock, overlay};
use crate::policy::{Trust, mode};
use crate::reader::Reader;
use crate::router::check_router;
use crate::scope::{Scope, Sources};
use crate::servers::{check_servers, keep_confidences, replace_whole};
use crate::snapshot::{Layer, LoadedSettings, WrittenRule};
use crate::trust::{
    Ignored, IgnoredBecause, Recorded, TrustDecision, TrustStore, WorkspaceFiles, apply_gate,
    covers,
};
use crate::types::{ParentSettingsBehavior, PermissionMode, Permissions, Settings};
use crate::unbuilt::withheld_routes;

/// What to load.
#[derive(Debug, Clone)]
pub struct LoadRequest {
    pub locations: Locations,
    /// The directory whose `.caliban` counts.
    pub workspace: PathBuf,
    /// Where programs are started, which may be below it.
    pub working_directory: PathBuf,
    /// The workspace's own `caliban.toml`, which trust covers too.
    pub router_file: Option<PathBuf>,
    /// The value of `--settings`.
    pub overlay: Option<String>,
    pub sources: Sources,
    pub trust: TrustDecision,
    /// The files of Claude Code, where they count as well; ours win over them.
    pub foreign: Option<ForeignFiles>,
}

/// Where the settings of Claude Code are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignFiles {
    /// The user's directory.
    pub config: PathBuf,
    /// What its short names of models stand for.
    pub models: BTreeMap<String, String>,
}

impl ForeignFiles {
    /// The file of a scope, if it has one.
    pub(crate) fn file(&self, scope: Scope, workspace: &Path) -> Option<PathBuf> {
        match scope {
            Scope::User => Some(self.config.join("settings.json")),
            Scope::Project => Some(workspace.join(".claude/settings.json")),
            Scope::Local => Some(workspace.join(".claude/settings.local.json")),
            Scope::Managed | Scope::Cli => None,
        }
    }
}

impl LoadRequest {
    /// Every scope of a workspace, trusted as far as is recorded.
    pub fn new(locations: Locations, workspace: impl Into<PathBuf>) -> Self {
        let workspace = workspace.into();
        Self {
            locations,
            working_directory: workspace.clone(),
            workspace,
            router_file: None,
            overlay: None,
            sources: Sources::all(),
            trust: TrustDecision::Recorded,
            foreign: None,
        }
    }
}

/// Loads the settings of a run. Nothing is executed and nothing is written.
pub fn load(request: &LoadRequest) -> Result<LoadedSettings, SettingsError> {
    let files = WorkspaceFiles::read(&request.workspace, request.router_file.as_deref())
        .starting_in(&request.working_directory);
    let mut reader = Reader::new(request, &files);
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
    warnings.extend(combined.warnings);
    let mut said = HashSet::new();
    warnings.retain(|warning| said.insert(warning.clone()));
    Ok(LoadedSettings {
        workspace: files.workspace().to_owned(),
        settings: combined.settings,
        provenance: combined.provenance,
        files: reports,
        warnings,
        ignored: combined.ignored,
        trust,
        unbuilt: combined.unbuilt,
        layers: combined.layers,
    })
}

/// The scopes' documents made one.
pub(crate) struct Combined {
    pub(crate) settings: Settings,
    pub(crate) provenance: Provenance,
    pub(crate) layers: Vec<Layer>,
    pub(crate) ignored: Vec<Ignored>,
    pub(crate) unbuilt: Option<SettingsError>,
    pub(crate) warnings: Vec<String>,
}

/// Gates, locks and merges the scopes' documents, which are given lowest first.
pub(crate) fn combine(
    mut roots: Vec<(Scope, Node)>,
    trust: Trust,
) -> Result<Combined, SettingsError> {
    let own_mode = own_mode(&roots);
    let unbuilt = withheld_routes(&roots, trust);
    let mut ignored = Vec::new();
    let mut written: Vec<(Scope, Vec<WrittenRule>)> = Vec::new();
    for (scope, root) in &mut roots {
        let mut rules = WrittenRule::all(&permissions(root)?);
        let left_out = apply_gate(root, *scope, trust, own_mode);
        if !left_out.is_empty() {
            WrittenRule::mark(&mut rules, &permissions(root)?, IgnoredBecause::Untrusted);
        }
        ignored.extend(left_out);
        written.push((*scope, rules));
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
        for ((_, root), (_, rules)) in roots.iter().zip(&mut written) {
            WrittenRule::mark(rules, &permissions(root)?, IgnoredBecause::Locked);
        }
        // The highest scope is merged last.
        roots.sort_by_key(|(scope, _)| *scope == Scope::Managed);
    }
    let mut merged = roots
        .first()
        .map_or_else(Node::nothing, |(_, root)| root.clone());
    for (_, root) in roots.iter().skip(1) {
        replace_whole(&mut merged, root, trust);
        overlay(&mut merged, root);
    }
    let own = roots
        .iter()
        .filter(|(scope, _)| matches!(scope, Scope::Managed | Scope::User));
    keep_enforcement(&mut merged, own.map(|(_, root)| root));
    let mut warnings = keep_confidences(&mut merged);
    warnings.extend(check_servers(&mut merged, &ignored)?);
    if let Some(router) = merged.at(&["router"]) {
        check_router(router)?;
    }
    let order: Vec<Scope> = roots.iter().map(|(scope, _)| *scope).collect();
    Ok(Combined {
        settings: typed(&merged)?,
        provenance: Provenance::read(&merged, &order),
        layers: roots
            .into_iter()
            .map(|(scope, root)| {
                let settings = typed(&root)?;
                let of_scope = written.iter_mut().find(|(known, _)| *known == scope);
                Ok(Layer {
                    scope,
                    settings,
                    written: of_scope.map(|(_, rules)| take(rules)).unwrap_or_default(),
                    root,
                })
            })
            .collect::<Result<_, SettingsError>>()?,
        ignored,
        unbuilt,
        warnings,
    })
}

/// What a document says about permissions.
fn permissions(root: &Node) -> Result<Permissions, SettingsError> {
    root.at(&["permissions"])
        .map_or_else(|| Ok(Permissions::default()), typed)
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
    let is_locked = locking(roots).is_some_and(|node| node.at(&["trusted_directories"]).is_some());
    let is_listed = roots
        .iter()
        .filter(|(scope, _)| match scope {
            Scope::Managed => true,
            Scope::User => !is_locked,
            Scope::Project | Scope::Local | Scope::Cli => false,
        })
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
