//! What can be set and does nothing yet: keys and variables of parts that this version does not
//! have, in one table. Whoever sets one is told.

use std::collections::BTreeMap;

use crate::document::{Content, Node, Step, dotted};
use crate::error::SettingsError;
use crate::policy::Trust;
use crate::router::withheld;
use crate::scope::Scope;
use crate::variables::{Environment, names};

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

/// What follows for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Consequence {
    /// It begins, and says so.
    Told,
    /// Nothing: without the part, what was asked for is so anyway, or others are meant.
    Nothing,
}

/// Keys of settings, each with everything below it. The first row that fits counts.
const KEYS: &[(&str, Part, Consequence)] =
    &[("available_models", Part::ModelList, Consequence::Told)];

/// Environment variables.
const VARIABLES: &[(&str, Part, Consequence)] = { &[] };

/// The part a key of the settings waits for.
pub fn part_of_key(key: &str) -> Option<Part> {
    row(key).map(|(part, _)| part)
}

/// The part a variable waits for.
pub fn part_of_variable(name: &str) -> Option<Part> {
    VARIABLES
        .iter()
        .find(|(known, ..)| *known == name)
        .map(|(_, part, _)| *part)
}

fn row(key: &str) -> Option<(Part, Consequence)> {
    KEYS.iter()
        .find(|(row, ..)| {
            key.strip_prefix(row)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
        .map(|(_, part, consequence)| (*part, *consequence))
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
        let mut unbuilt = Self::default();
        unbuilt.visit(root, &mut Vec::new(), &mut set);
        unbuilt.warnings = warnings(set);
        unbuilt
    }

    fn visit(&mut self, node: &Node, path: &mut Vec<Step>, set: &mut BTreeMap<Part, Vec<String>>) {
        if let Content::Table(table) = &node.content {
            for entry in table.iter() {
                path.push(Step::Key(entry.key.clone()));
                self.visit(&entry.node, path, set);
                path.pop();
            }
            return;
        }
        if asks_for_nothing(node) {
            return;
        }
        let key = dotted(path);
        match row(&key) {
            None | Some((_, Consequence::Nothing)) => {}
            Some((part, Consequence::Told)) => set.entry(part).or_default().push(key),
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

/// What is said about variables that are set in vain.
pub fn idle_variables(environment: &Environment) -> Vec<String> {
    let mut set: BTreeMap<Part, Vec<String>> = BTreeMap::new();
    for (name, part, consequence) in VARIABLES {
        match consequence {
            Consequence::Told if environment.is_on(name) => {
                set.entry(*part).or_default().push((*name).to_owned());
            }
            Consequence::Told | Consequence::Nothing => {}
        }
    }
    warnings(set)
}
