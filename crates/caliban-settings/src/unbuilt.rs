//! What can be set and does nothing yet: keys of parts that this version does not have, in one
//! table. Whoever sets one is told.

use std::collections::BTreeMap;

use crate::document::{Content, Node, Step, dotted};
use crate::error::SettingsError;
use crate::policy::Trust;
use crate::router::withheld;
use crate::scope::Scope;

/// A part of the program that is described and not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    ModelList,
}

impl Part {
    /// What this version has none of.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ModelList => "list of models to choose from",
        }
    }
}

/// Keys of settings, each with everything below it. The first row that fits counts.
const KEYS: &[(&str, Part)] = &[("available_models", Part::ModelList)];

/// The part a key of the settings waits for.
pub fn part_of_key(key: &str) -> Option<Part> {
    let is_below = |row: &str| {
        key.strip_prefix(row)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let row = KEYS.iter().find(|(row, _)| is_below(row));
    row.map(|(_, part)| *part)
}

/// What settings ask for in vain.
#[derive(Debug, Default)]
pub(crate) struct Unbuilt {
    /// Why no run can begin with them.
    pub(crate) refusal: Option<SettingsError>,
    pub(crate) warnings: Vec<String>,
}

impl Unbuilt {
    /// Looks through merged settings.
    pub(crate) fn in_document(root: &Node) -> Self {
        let mut set = BTreeMap::new();
        visit(root, &mut Vec::new(), &mut set);
        Self {
            refusal: None,
            warnings: warnings(set),
        }
    }

    /// Routes of a workspace that is not trusted do not count, and whoever wrote them does not
    /// expect the prompt elsewhere.
    pub(crate) fn withheld_routes(roots: &[(Scope, Node)], trust: Trust) -> Option<SettingsError> {
        let untrusted = roots
            .iter()
            .filter(|(scope, _)| scope.is_workspace() && trust == Trust::Untrusted);
        untrusted
            .filter_map(|(_, root)| root.at(&["router", "route"]))
            .find(|node| !asks_for_nothing(node))
            .map(withheld)
    }
}

/// Gathers what is set in vain, by the part it waits for.
fn visit(node: &Node, path: &mut Vec<Step>, set: &mut BTreeMap<Part, Vec<String>>) {
    if let Content::Table(table) = &node.content {
        for entry in table.iter() {
            path.push(Step::Key(entry.key.clone()));
            visit(&entry.node, path, set);
            path.pop();
        }
        return;
    }
    if asks_for_nothing(node) {
        return;
    }
    let key = dotted(path);
    if let Some(part) = part_of_key(&key) {
        set.entry(part).or_default().push(key);
    }
}

/// A switch that is off and a list without entries.
fn asks_for_nothing(node: &Node) -> bool {
    match &node.content {
        Content::Null | Content::Bool(false) => true,
        Content::List(nodes) => nodes.is_empty(),
        Content::Bool(true) | Content::Number(_) | Content::String(_) | Content::Table(_) => false,
    }
}

/// One sentence for each part.
fn warnings(set: BTreeMap<Part, Vec<String>>) -> Vec<String> {
    set.into_iter()
        .map(|(part, keys)| {
            let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
            let (keys, verb) = match keys.as_slice() {
                [key] => (key.clone(), "is set and has"),
                _ => (keys.join(", "), "are set and have"),
            };
            format!(
                "{keys} {verb} no effect: this version has no {}",
                part.as_str()
            )
        })
        .collect()
}
