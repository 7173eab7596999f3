//! The layering check: which crate of the workspace may know which, and why.

use anyhow::{Result, bail};
use serde_json::Value;

use crate::shell::{cargo, output};

/// One crate knows another, for a reason.
type Edge = (&'static str, &'static str, &'static str);

/// Every edge there may be. One that is not here is a mistake, and so is one that is here only.
#[rustfmt::skip]
const EDGES: &[Edge] = &[
    ("caliban-agent", "caliban-model", "the loop sends requests and gathers what comes back"),

    ("caliban-checkpoints", "caliban-git", "git's store may hold what a file was"),

    ("caliban-context", "caliban-agent", "skills and notes are tools, and files lie in a workspace"),
    ("caliban-context", "caliban-model", "what a tool looks like to a model"),

    ("caliban-egress", "caliban-http", "names must lead to public addresses, as pages that are fetched must"),

    ("caliban-fleet", "caliban-agent", "answers are the loop's, and so are outcomes"),
    ("caliban-fleet", "caliban-model", "what is typed are messages"),
    ("caliban-fleet", "caliban-process", "workers and the daemon are programs"),
    ("caliban-fleet", "caliban-protocol", "those who are attached read and write frames"),
    ("caliban-fleet", "caliban-session", "a worker is around a session"),
    ("caliban-fleet", "caliban-settings", "knows where things are kept, and keeps them private"),
    ("caliban-git", "caliban-process", "git is a program"),

    ("caliban-hooks", "caliban-agent", "handlers advise the loop"),
    ("caliban-hooks", "caliban-http", "handlers may be addresses"),
    ("caliban-hooks", "caliban-model", "handlers hear of messages and usage"),
    ("caliban-hooks", "caliban-process", "handlers may be programs"),
    ("caliban-hooks", "caliban-settings", "handlers stand in the layers of the settings"),

    ("caliban-images", "caliban-model", "images become parts of messages"),

    ("caliban-mcp", "caliban-agent", "what servers offer are tools"),
    ("caliban-mcp", "caliban-context", "what servers say is looked through for invisible characters"),
    ("caliban-mcp", "caliban-http", "servers may be addresses"),
    ("caliban-mcp", "caliban-model", "results become parts of messages"),
    ("caliban-mcp", "caliban-process", "servers over stdio are programs"),
    ("caliban-mcp", "caliban-settings", "servers stand in the settings, and logins in private files"),

    ("caliban-permissions", "caliban-agent", "calls and the workspace they concern are judged"),
    ("caliban-permissions", "caliban-model", "the table of tools says what their arguments are"),
    ("caliban-permissions", "caliban-settings", "rules and modes stand in the settings"),

    ("caliban-plugins", "caliban-context", "what a plugin offers is read as a session reads it"),
    ("caliban-plugins", "caliban-settings", "servers and choices stand in the settings, and state in private files"),

    ("caliban-protocol", "caliban-agent", "frames are made of the loop's events"),
    ("caliban-protocol", "caliban-model", "events carry messages, usage and errors"),
    ("caliban-protocol", "caliban-session", "questions and facts of a session are frames"),

    ("caliban-providers", "caliban-http", "providers are spoken to over HTTP"),
    ("caliban-providers", "caliban-model", "providers fulfil the model's contract"),

    ("caliban-router", "caliban-model", "a router is a provider made of providers"),
    ("caliban-sandbox", "caliban-permissions", "protected places are the same for rules and mounts, and commands are read before they run outside"),
    ("caliban-sandbox", "caliban-process", "what is confined are programs"),
    ("caliban-sandbox", "caliban-settings", "what is allowed stands in the settings"),

    ("caliban-serve", "caliban-agent", "tells the loop's events and answers its questions"),
    ("caliban-serve", "caliban-model", "prompts are messages, and scopes are about tools"),
    ("caliban-serve", "caliban-protocol", "what is told are frames"),
    ("caliban-serve", "caliban-session", "sends commands and hears events"),
    ("caliban-serve", "caliban-settings", "modes have names, and private files are written"),

    ("caliban-serve-http", "caliban-model", "the host of its tests has a history"),
    ("caliban-serve-http", "caliban-serve", "the registry is reached over HTTP"),
    ("caliban-serve-http", "caliban-settings", "tokens are written as digits"),

    ("caliban-session", "caliban-agent", "the actor tells the loop's events and answers its questions"),
    ("caliban-session", "caliban-model", "prompts are messages"),
    ("caliban-session", "caliban-settings", "modes and rules are changed by their names"),

    ("caliban-sessions", "caliban-model", "what is kept are messages and usage"),

    ("caliban-settings", "caliban-model", "settings name providers and models, and say where keys come from"),
    ("caliban-settings", "caliban-process", "key helpers are programs"),

    ("caliban-tools", "caliban-agent", "the contract of a tool"),
    ("caliban-tools", "caliban-http", "pages are fetched and searched for"),
    ("caliban-tools", "caliban-model", "results become parts of messages"),
    ("caliban-tools", "caliban-process", "commands are programs"),
    ("caliban-tools", "caliban-sandbox", "commands are confined"),

    ("caliban-slash", "caliban-model", "a command may set the effort, and misspelled ones have a nearest"),

    ("caliban-compose", "caliban-terminal", "keys are pressed in the editor"),
    ("caliban-compose", "caliban-text", "how wide what is written is"),

    ("caliban-tui", "caliban-agent", "shows the loop's events"),
    ("caliban-tui", "caliban-compose", "prompts are written"),
    ("caliban-tui", "caliban-model", "shows messages"),
    ("caliban-tui", "caliban-process", "runs programs for what they print"),
    ("caliban-tui", "caliban-session", "sends commands and hears events"),
    ("caliban-tui", "caliban-settings", "modes and rules are changed by their names"),
    ("caliban-tui", "caliban-slash", "offers the commands that can be typed"),
    ("caliban-tui", "caliban-terminal", "draws on the terminal and hears its keys"),
    ("caliban-tui", "caliban-text", "what others wrote becomes rows"),

    ("caliban-telemetry", "caliban-agent", "knows the loop's events"),
    ("caliban-telemetry", "caliban-http", "collectors are spoken to over HTTP"),
    ("caliban-telemetry", "caliban-model", "knows usage and tools"),
    ("caliban-telemetry", "caliban-process", "headers may come from a program"),
    ("caliban-telemetry", "caliban-session", "hears a session"),
    ("caliban-telemetry", "caliban-settings", "what is wanted is configured"),

    ("caliban-worktrees", "caliban-git", "worktrees are git's"),
    ("caliban-worktrees", "caliban-process", "tests say that nobody guards programs"),
    ("caliban-worktrees", "caliban-settings", "what must not be lost is written to private files"),

    ("caliban-harness", "caliban-slash", "obeys the commands that are typed"),
    ("caliban-harness", "caliban-agent", "wires the loop"),
    ("caliban-harness", "caliban-checkpoints", "wires what keeps the changes of prompts"),
    ("caliban-harness", "caliban-context", "wires memory, skills, styles and commands"),
    ("caliban-harness", "caliban-egress", "wires the way out of the sandbox"),
    ("caliban-harness", "caliban-git", "asks about the repository of the workspace"),
    ("caliban-harness", "caliban-hooks", "wires the handlers"),
    ("caliban-harness", "caliban-http", "feedback is sent to an address"),
    ("caliban-harness", "caliban-images", "prompts bring images along"),
    ("caliban-harness", "caliban-mcp", "wires the servers"),
    ("caliban-harness", "caliban-model", "wires the provider"),
    ("caliban-harness", "caliban-permissions", "wires the gate"),
    ("caliban-harness", "caliban-plugins", "wires what plugins bring, and installs them"),
    ("caliban-harness", "caliban-process", "says who guards programs"),
    ("caliban-harness", "caliban-providers", "connects to who answers"),
    ("caliban-harness", "caliban-router", "makes routes of what is configured"),
    ("caliban-harness", "caliban-sandbox", "wires what confines programs"),
    ("caliban-harness", "caliban-session", "is the engine of the actor"),
    ("caliban-harness", "caliban-sessions", "wires the recorder"),
    ("caliban-harness", "caliban-settings", "choices follow the settings"),
    ("caliban-harness", "caliban-telemetry", "wires who tells collectors"),
    ("caliban-harness", "caliban-tools", "wires the built-in tools"),
    ("caliban-harness", "caliban-worktrees", "gives sub-agents directories of their own"),

    ("caliban", "caliban-agent", "faces show the loop's events"),
    ("caliban", "caliban-checkpoints", "commands list and restore what prompts changed"),
    ("caliban", "caliban-context", "commands show and change memory"),
    ("caliban", "caliban-fleet", "commands start, steer and end agents, and one is a worker"),
    ("caliban", "caliban-fleet-nats", "commands submit jobs to other machines, and one works on them"),
    ("caliban", "caliban-git", "workers check repositories out and bring changes back"),
    ("caliban", "caliban-harness", "asks for sessions"),
    ("caliban", "caliban-hooks", "reads the handlers of all layers"),
    ("caliban", "caliban-images", "attaches images"),
    ("caliban", "caliban-mcp", "commands list servers and log in to them"),
    ("caliban", "caliban-model", "names models and providers"),
    ("caliban", "caliban-permissions", "commands explain and change rules"),
    ("caliban", "caliban-plugins", "commands show, check and begin plugins"),
    ("caliban", "caliban-process", "is the guardian"),
    ("caliban", "caliban-protocol", "faces are encoders of frames"),
    ("caliban", "caliban-providers", "connects to providers"),
    ("caliban", "caliban-router", "commands explain routes and rehearse outages"),
    ("caliban", "caliban-sandbox", "is the step to a confined program, and explains what it may do"),
    ("caliban", "caliban-serve", "keeps sessions for applications"),
    ("caliban", "caliban-serve-http", "serves them over HTTP"),
    ("caliban", "caliban-session", "faces send commands and hear events"),
    ("caliban", "caliban-sessions", "commands list, show and remove sessions"),
    ("caliban", "caliban-slash", "tests hold every command to what it says of itself"),
    ("caliban", "caliban-settings", "loads and follows the settings"),
    ("caliban", "caliban-compose", "images are pasted into prompts"),
    ("caliban", "caliban-terminal", "gives the terminal back when it is made to end"),
    ("caliban", "caliban-tui", "one of the faces"),
    ("caliban", "caliban-worktrees", "commands list, merge and remove worktrees"),
    ("caliban", "caliban-tools", "chooses what the built-in tools may do"),

    ("xtask", "caliban-protocol", "writes the schemas of frames"),
    ("xtask", "caliban-settings", "writes the schema and the reference of settings"),
    ("xtask", "caliban-slash", "writes the page of commands"),
    ("xtask", TESTKIT, "measures against a scripted model"),
];

/// What only tests and measurements use.
const TESTKIT: &str = "caliban-testkit";
/// The one program that is never shipped.
const UNSHIPPED: &str = "xtask";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Shipped,
    Dev,
}

/// A dependency of one crate of the workspace on another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Dependency<'a> {
    from: &'a str,
    to: &'a str,
    kind: Kind,
}

pub(crate) fn check() -> Result<()> {
    let metadata: Value = serde_json::from_str(&output(cargo().args([
        "metadata",
        "--format-version=1",
        "--no-deps",
    ]))?)?;
    let violations = violations(&dependencies(&metadata), EDGES);
    if !violations.is_empty() {
        bail!("the layering is broken:\n  {}", violations.join("\n  "));
    }
    Ok(())
}

fn dependencies(metadata: &Value) -> Vec<Dependency<'_>> {
    let packages = items(&metadata["packages"]);
    let is_own = |name: &str| packages.iter().any(|own| text(&own["name"]) == name);
    let mut found = Vec::new();
    for package in packages {
        for dependency in items(&package["dependencies"]) {
            let to = text(&dependency["name"]);
            if is_own(to) {
                found.push(Dependency {
                    from: text(&package["name"]),
                    to,
                    kind: match text(&dependency["kind"]) {
                        "dev" => Kind::Dev,
                        _ => Kind::Shipped,
                    },
                });
            }
        }
    }
    found
}

fn violations(dependencies: &[Dependency<'_>], edges: &[Edge]) -> Vec<String> {
    let is_listed = |from: &str, to: &str| edges.iter().any(|edge| (edge.0, edge.1) == (from, to));
    let mut violations = Vec::new();
    for Dependency { from, to, kind } in dependencies {
        match kind {
            // Any test may use it.
            Kind::Dev if *to == TESTKIT => {}
            Kind::Shipped if *to == TESTKIT && *from != UNSHIPPED => violations.push(format!(
                "`{from}` must not depend on `{to}` except in tests"
            )),
            Kind::Shipped | Kind::Dev if is_listed(from, to) => {}
            Kind::Shipped | Kind::Dev => violations.push(format!(
                "`{from}` must not depend on `{to}`; if it has to, say why in xtask/src/layering.rs"
            )),
        }
    }
    for (from, to, _) in edges {
        let is_there = |known: &Dependency<'_>| (known.from, known.to) == (*from, *to);
        if !dependencies.iter().any(is_there) {
            violations.push(format!(
                "`{from}` no longer depends on `{to}`; remove the edge from xtask/src/layering.rs"
            ));
        }
    }
    violations
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ALLOWED: &[Edge] = &[("upper", "lower", "it may"), ("xtask", TESTKIT, "it may")];

    /// What is said of a workspace in which the allowed edges and these others are.
    fn said(others: &[(&str, &str, Option<&str>)]) -> Vec<String> {
        let allowed = ALLOWED.iter().map(|(from, to, _)| (*from, *to, None));
        let packages: Vec<Value> = allowed
            .chain(others.iter().copied())
            .map(|(from, to, kind)| {
                json!({"name": from, "dependencies": [{"name": to, "kind": kind}, {"name": "serde"}]})
            })
            .chain([json!({"name": "lower"}), json!({"name": TESTKIT})])
            .collect();
        violations(&dependencies(&json!({ "packages": packages })), ALLOWED)
    }

    #[test]
    fn edges_that_are_listed_and_test_code_in_tests_are_fine() {
        assert_eq!(said(&[]), Vec::<String>::new());
        assert_eq!(
            said(&[("lower", TESTKIT, Some("dev"))]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn edges_that_are_not_listed_are_found() {
        for kind in [None, Some("dev"), Some("build")] {
            let said = said(&[("lower", "upper", kind)]);
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].starts_with("`lower` must not depend on `upper`"));
        }
    }

    #[test]
    fn shipped_test_code_is_found_even_where_it_is_listed() {
        assert_eq!(said(&[("lower", TESTKIT, None)]).len(), 1);
        let listed = [("lower", TESTKIT, "no reason is good enough")];
        let shipped = [Dependency {
            from: "lower",
            to: TESTKIT,
            kind: Kind::Shipped,
        }];
        assert_eq!(violations(&shipped, &listed).len(), 1);
    }

    #[test]
    fn an_edge_that_is_no_more_is_found() {
        let gone = violations(&[], &ALLOWED[..1]);
        assert_eq!(
            gone,
            ["`upper` no longer depends on `lower`; remove the edge from xtask/src/layering.rs"]
        );
    }

    #[test]
    fn this_workspace_keeps_to_its_edges() {
        check().unwrap();
    }

    #[test]
    fn every_edge_is_listed_once_and_has_a_reason() {
        for (index, (from, to, reason)) in EDGES.iter().enumerate() {
            assert!(!reason.is_empty(), "{from} {to}");
            let is_same = |edge: &Edge| (edge.0, edge.1) == (*from, *to);
            assert!(!EDGES[..index].iter().any(is_same), "{from} {to}");
        }
    }
}
