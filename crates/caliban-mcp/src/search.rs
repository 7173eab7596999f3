//! The tool that finds tools: it shows the model those that match and offers them from then on.

use std::cmp::Reverse;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use caliban_agent::{Effect, Tool, ToolContext, ToolOutput, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::servers::Inner;
use crate::source::Offer;
use crate::tool::McpTool;

const DEFAULT_RESULTS: usize = 5;
const MAX_RESULTS: usize = 20;
/// How long servers that are still connecting are waited for when nothing else is found; never
/// longer than a connection itself may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Search terms beyond these are not looked at.
const MAX_TERMS: usize = 32;
const SELECT: &str = "select:";

#[derive(Debug)]
pub(crate) struct ToolSearch {
    servers: Weak<Inner>,
}

impl ToolSearch {
    pub(crate) fn new(servers: &Arc<Inner>) -> Self {
        Self {
            servers: Arc::downgrade(servers),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolSearchInput {
    /// Keywords of what the tool should do, or `select:NAME,NAME` for tools you know by name.
    query: String,
    /// How many to return: default 5, at most 20.
    #[serde(default)]
    max_results: Option<usize>,
}

impl TypedTool for ToolSearch {
    type Input = ToolSearchInput;

    const NAME: &'static str = "ToolSearch";
    const DESCRIPTION: &'static str = "Finds tools of MCP servers that are not listed, and waits \
        for servers that are still connecting. Returns their descriptions and input schemas; \
        they can be called at once.";
    const EFFECT: Effect = Effect::ReadOnly;

    fn first_arg(&self, input: &ToolSearchInput) -> Option<String> {
        Some(input.query.clone())
    }

    async fn run(&self, input: ToolSearchInput, context: ToolContext) -> ToolOutput {
        let Some(servers) = self.servers.upgrade() else {
            return crate::server::gone();
        };
        let query = Query::parse(&input.query);
        let most = input
            .max_results
            .unwrap_or(DEFAULT_RESULTS)
            .clamp(1, MAX_RESULTS);
        let patience = PATIENCE.min(servers.common.parts.timeouts.connect);
        let found = tokio::select! {
            found = search(&servers, &query, most, patience) => found,
            () = context.cancel.cancelled() => {
                return ToolOutput::new(caliban_agent::ToolStatus::Cancelled, "The search was cancelled.");
            }
        };
        answer(&servers, &query, &found)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Query {
    Names(Vec<String>),
    Words(Vec<String>),
}

impl Query {
    fn parse(query: &str) -> Self {
        match query.trim().strip_prefix(SELECT) {
            Some(names) => Self::Names(
                names
                    .split(',')
                    .map(|name| name.trim().to_owned())
                    .filter(|name| !name.is_empty())
                    .take(MAX_TERMS)
                    .collect(),
            ),
            None => Self::Words(
                query
                    .split(|character: char| !character.is_alphanumeric())
                    .filter(|word| !word.is_empty())
                    .map(str::to_lowercase)
                    .take(MAX_TERMS)
                    .collect(),
            ),
        }
    }

    /// The tools that match, the best first.
    fn among(&self, tools: &[Arc<McpTool>], most: usize) -> Vec<Arc<McpTool>> {
        match self {
            Self::Names(names) => {
                let mut found = Vec::new();
                for name in names {
                    let is_meant =
                        |tool: &&Arc<McpTool>| tool.spec().name == *name || tool.own_name() == name;
                    found.extend(tools.iter().find(is_meant).cloned());
                }
                found
            }
            Self::Words(words) => {
                let mut scored: Vec<(usize, &Arc<McpTool>)> = tools
                    .iter()
                    .map(|tool| {
                        let spec = tool.spec();
                        (score(&spec.name, &spec.description, words), tool)
                    })
                    .filter(|(score, _)| *score > 0)
                    .collect();
                scored.sort_by_key(|(score, tool)| (Reverse(*score), tool.spec().name.clone()));
                scored
                    .into_iter()
                    .take(most)
                    .map(|(_, tool)| Arc::clone(tool))
                    .collect()
            }
        }
    }

    fn is_complete(&self, found: &[Arc<McpTool>]) -> bool {
        match self {
            Self::Names(names) => found.len() >= names.len(),
            Self::Words(_) => !found.is_empty(),
        }
    }
}

/// How well a tool fits: a word of its name counts most, a piece of it less, its description
/// least.
fn score(name: &str, description: &str, words: &[String]) -> usize {
    let name = name.to_lowercase();
    let description = description.to_lowercase();
    let parts: Vec<&str> = name
        .split(|character: char| !character.is_alphanumeric())
        .collect();
    words
        .iter()
        .map(|word| {
            let word = word.as_str();
            if parts.contains(&word) {
                10
            } else if name.contains(word) {
                5
            } else if description.contains(word) {
                2
            } else {
                0
            }
        })
        .sum()
}

/// Searches, and again whenever a server has joined, until something is found or none is
/// connecting any more.
async fn search(
    servers: &Arc<Inner>,
    query: &Query,
    most: usize,
    patience: Duration,
) -> Vec<Arc<McpTool>> {
    let mut changes = servers.common.generation.subscribe();
    let deadline = tokio::time::Instant::now() + patience;
    loop {
        changes.mark_unchanged();
        let Offer {
            mut offered,
            deferred,
            connecting,
        } = servers.offer();
        offered.extend(deferred);
        let found = query.among(&offered, most);
        if query.is_complete(&found) || connecting.is_empty() {
            return found;
        }
        match tokio::time::timeout_at(deadline, changes.changed()).await {
            Ok(Ok(())) => {}
            // What was found must do.
            Ok(Err(_)) | Err(_) => return found,
        }
    }
}

/// Offers what was found from now on, and says so.
fn answer(servers: &Inner, query: &Query, found: &[Arc<McpTool>]) -> ToolOutput {
    let mut lines = Vec::new();
    let mut evicted = Vec::new();
    {
        let mut active = servers
            .common
            .active
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for tool in found {
            let activation = active.activate(tool.spec().name.clone());
            evicted.extend(activation.evicted);
        }
        evicted.retain(|name| !active.contains(name));
    }
    servers.common.changed();
    for tool in found {
        let spec = tool.spec();
        let shown = json!({
            "name": spec.name,
            "description": spec.description,
            "input_schema": spec.input_schema,
        });
        lines.push(shown.to_string());
    }
    if lines.is_empty() {
        lines.push("No tool matches.".to_owned());
    }
    if let Query::Names(names) = query {
        let is_missing = |name: &&String| {
            !found
                .iter()
                .any(|tool| tool.spec().name == **name || tool.own_name() == name.as_str())
        };
        let missing: Vec<&str> = names
            .iter()
            .filter(is_missing)
            .map(String::as_str)
            .collect();
        if !missing.is_empty() && !found.is_empty() {
            lines.push(format!("Not found: {}.", missing.join(", ")));
        }
    }
    if !evicted.is_empty() {
        lines.push(format!(
            "No longer listed, to make room: {}. Search for them again when needed.",
            evicted.join(", ")
        ));
    }
    for status in servers
        .servers
        .iter()
        .map(|server| (&server.name, server.status()))
    {
        match status {
            (
                name,
                status @ (crate::Status::Connecting
                | crate::Status::Failed { .. }
                | crate::Status::NeedsAuth { .. }),
            ) => {
                lines.push(format!("The MCP server {name} {status}."));
            }
            (_, crate::Status::Connected { .. } | crate::Status::Disabled) => {}
        }
    }
    ToolOutput::ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use caliban_agent::input_schema;
    use caliban_model::BuiltInTool;
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_table_of_tools_says_of_it_what_it_says_itself() {
        let row = BuiltInTool::named(ToolSearch::NAME).unwrap();
        assert_eq!(row.effect, ToolSearch::EFFECT);
        let schema = input_schema::<ToolSearchInput>();
        let fields: Vec<&str> = schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(fields, row.fields);
    }

    #[rstest]
    #[case("select:a, b ,", Query::Names(vec!["a".into(), "b".into()]))]
    #[case(" create ISSUE-linear ", Query::Words(vec!["create".into(), "issue".into(), "linear".into()]))]
    #[case("", Query::Words(vec![]))]
    fn queries_are_names_or_words(#[case] text: &str, #[case] expected: Query) {
        assert_eq!(Query::parse(text), expected);
    }

    #[test]
    fn names_count_more_than_descriptions() {
        let words = ["issue".to_owned()];
        let whole = score("mcp__linear__create_issue", "", &words);
        let piece = score("mcp__linear__issues", "", &words);
        let described = score("mcp__linear__x", "Makes an Issue.", &words);
        assert!(whole > piece && piece > described && described > 0);
        assert_eq!(score("mcp__linear__x", "", &words), 0);
    }
}
