//! Settings as they were loaded at one moment, with where everything came from.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::document::{Content, Node};
use crate::error::{Fault, SettingsError};
use crate::merge::Provenance;
use crate::policy::Trust;
use crate::scope::Scope;
use crate::trust::{Ignored, IgnoredBecause, notice};
use crate::types::{ParentSettingsBehavior, Permissions, RuleSpec, Settings};

/// A settings file and whether it was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    pub scope: Scope,
    pub path: PathBuf,
    pub loaded: bool,
}

/// What one scope contributed, after trust and locks.
#[derive(Debug, Clone)]
pub struct Layer {
    pub scope: Scope,
    pub settings: Settings,
    /// The rules before trust and locks.
    pub(crate) written: Vec<WrittenRule>,
    pub(crate) root: Node,
}

/// A rule as it is written in a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenRule {
    pub spec: RuleSpec,
    /// Why it does not count, if it does not.
    pub ignored: Option<IgnoredBecause>,
}

impl WrittenRule {
    /// All rules of a document, none of them ignored so far.
    pub(crate) fn all(permissions: &Permissions) -> Vec<Self> {
        let rules = permissions.ordered().into_iter();
        rules
            .map(|spec| Self {
                spec,
                ignored: None,
            })
            .collect()
    }

    /// Marks what is not among the rules that are left, which are in the same order.
    pub(crate) fn mark(written: &mut [Self], left: &Permissions, because: IgnoredBecause) {
        let left = left.ordered();
        let mut left = left.iter().peekable();
        for rule in written.iter_mut().filter(|rule| rule.ignored.is_none()) {
            if left.next_if(|spec| **spec == rule.spec).is_none() {
                rule.ignored = Some(because);
            }
        }
    }
}

/// The rules of one scope in the order they are tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeRules {
    pub scope: Scope,
    pub rules: Vec<RuleSpec>,
}

/// The settings of a run.
#[derive(Debug, Clone)]
pub struct LoadedSettings {
    /// The canonical path of the workspace.
    pub workspace: PathBuf,
    pub settings: Settings,
    pub provenance: Provenance,
    pub files: Vec<FileReport>,
    /// Said once, to whoever can hear it.
    pub warnings: Vec<String>,
    /// Keys that are set and do not count.
    pub ignored: Vec<Ignored>,
    pub trust: Trust,
    /// Why no run can begin with these settings, where they rely on a part that is not there.
    pub unbuilt: Option<SettingsError>,
    /// Lowest priority first.
    pub(crate) layers: Vec<Layer>,
}

impl LoadedSettings {
    /// No settings at all, not even the operator's.
    pub fn nothing(workspace: PathBuf) -> Self {
        Self {
            workspace,
            settings: Settings::default(),
            provenance: Provenance::default(),
            files: Vec::new(),
            warnings: Vec::new(),
            ignored: Vec::new(),
            trust: Trust::Untrusted,
            unbuilt: None,
            layers: Vec::new(),
        }
    }

    /// What each scope contributed, the lowest priority first.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// What one scope contributed.
    pub fn scope(&self, scope: Scope) -> Option<&Settings> {
        self.layers
            .iter()
            .find(|layer| layer.scope == scope)
            .map(|layer| &layer.settings)
    }

    /// The permission rules scope by scope, in the order the scopes are asked: the highest
    /// priority first. A scope's ordered rules replace that scope's lists, never another's.
    pub fn rules(&self) -> Vec<ScopeRules> {
        self.layers
            .iter()
            .rev()
            .map(|layer| ScopeRules {
                scope: layer.scope,
                rules: layer.settings.permissions.ordered(),
            })
            .filter(|layer| !layer.rules.is_empty())
            .collect()
    }

    /// The file in which the value of a key that counts is written; none for what is given on the
    /// command line.
    pub fn file_of(&self, key: &str) -> Option<&Path> {
        let scope = self.provenance.of(key)?;
        let mut files = self.files.iter().filter(|file| file.loaded);
        files
            .find(|file| file.scope == scope)
            .map(|file| file.path.as_path())
    }

    /// The file of a scope, where it has exactly one.
    pub fn only_file_of(&self, scope: Scope) -> Option<&Path> {
        let is_its = |file: &&FileReport| file.loaded && file.scope == scope;
        let mut files = self.files.iter().filter(is_its);
        match (files.next(), files.next()) {
            (Some(file), None) => Some(file.path.as_path()),
            _ => None,
        }
    }

    /// The rules of one scope as they are written, and whether they count here.
    pub fn written_rules(&self, scope: Scope) -> &[WrittenRule] {
        let layer = self.layers.iter().find(|layer| layer.scope == scope);
        layer.map_or(&[], |layer| &layer.written)
    }

    /// The handlers of a hook event with the scope each comes from, in the order they run.
    pub fn hooks(&self, event: &str) -> Vec<(Scope, &Value)> {
        self.layers
            .iter()
            .flat_map(|layer| {
                let handlers = layer.settings.hooks.get(event).into_iter().flatten();
                handlers.map(|handler| (layer.scope, handler))
            })
            .collect()
    }

    /// Where something stands in the files of a scope, as `FILE:LINE:COLUMN`. Each part of the
    /// path is a key or, counted from 0, a position; what is not there counts as what is around it.
    pub fn place_of(&self, scope: Scope, path: &[String]) -> Option<String> {
        let layer = self.layers.iter().find(|layer| layer.scope == scope)?;
        let mut node = &layer.root;
        for part in path {
            let next = match (&node.content, part.parse::<usize>()) {
                (Content::List(nodes), Ok(index)) => nodes.get(index),
                (Content::Table(table), _) => table.get(part),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        let Fault {
            origin,
            line,
            column,
            ..
        } = Fault::at(&node.place, "");
        Some(format!("{origin}:{line}:{column}"))
    }

    /// Whether the managed scope stands above all others.
    pub fn is_locked(&self) -> bool {
        self.scope(Scope::Managed).is_some_and(|managed| {
            managed.parent_settings_behavior == Some(ParentSettingsBehavior::Block)
        })
    }

    /// What to say once about an untrusted workspace.
    pub fn trust_notice(&self) -> Option<String> {
        notice(&self.workspace, &self.ignored)
    }

    /// What `config print` prints.
    pub fn to_print_json(&self) -> Value {
        let settings = json!(self.settings);
        // A list whose entries were all left out has a scope but no value.
        let scopes: Map<String, Value> = self
            .provenance
            .iter()
            .filter(|(key, _)| value_at(&settings, key).is_some())
            .map(|(key, scope)| (key.to_owned(), json!(scope)))
            .collect();
        let warnings: Vec<String> = self
            .warnings
            .iter()
            .cloned()
            .chain(self.trust_notice())
            .collect();
        let files: Vec<Value> = self
            .files
            .iter()
            .map(|file| {
                json!({
                    "scope": file.scope,
                    "path": file.path.to_string_lossy(),
                    "loaded": file.loaded,
                })
            })
            .collect();
        json!({
            "settings": self.settings,
            "scopes": scopes,
            "files": files,
            "warnings": warnings,
        })
    }
}

/// The value at a dotted key; names may hold dots themselves.
pub fn value_at<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    if let Some(found) = value.get(key) {
        return Some(found);
    }
    key.match_indices('.').find_map(|(dot, _)| {
        let inner = value.get(&key[..dot])?;
        value_at(inner, &key[dot + 1..])
    })
}
