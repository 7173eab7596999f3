//! What is asked for and cannot be had, where whoever asks relies on it.

use crate::document::{Content, Node};
use crate::error::SettingsError;
use crate::policy::Trust;
use crate::router::withheld;
use crate::scope::Scope;

/// Routes of a workspace that is not trusted do not count, and whoever wrote them does not expect
/// the prompt elsewhere.
pub(crate) fn withheld_routes(roots: &[(Scope, Node)], trust: Trust) -> Option<SettingsError> {
    let untrusted = roots
        .iter()
        .filter(|(scope, _)| scope.is_workspace() && trust == Trust::Untrusted);
    untrusted
        .filter_map(|(_, root)| root.at(&["router", "route"]))
        .find(|node| !asks_for_nothing(node))
        .map(withheld)
}

/// A switch that is off and a list without entries.
fn asks_for_nothing(node: &Node) -> bool {
    match &node.content {
        Content::Null | Content::Bool(false) => true,
        Content::List(nodes) => nodes.is_empty(),
        Content::Bool(true) | Content::Number(_) | Content::String(_) | Content::Table(_) => false,
    }
}
