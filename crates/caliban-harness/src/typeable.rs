//! What can be typed after a slash where there is no screen: what is built in, the user's own
//! commands, and the prompts of MCP servers.

use std::collections::BTreeMap;
use std::time::Duration;

use caliban_context::{Command, Commands};
use caliban_mcp::{Prompt, Servers};
use caliban_session::Facts;
use caliban_slash::{BUILT_IN, called};
use tokio::time::timeout;

/// How long servers may take to list their prompts; what is not there by then is listed later.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most prompts that are listed.
const MAX_PROMPTS: usize = 1_000;

/// A command that can be typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Typeable {
    pub(crate) name: String,
    pub(crate) about: String,
    /// What may be written after its name.
    pub(crate) hint: String,
}

/// Those that are known without servers. Where both have a name, the user's own is meant.
pub(crate) fn typeable(own: &Commands) -> Vec<Typeable> {
    let built_in = BUILT_IN
        .iter()
        .filter(|entry| entry.works_anywhere() && own.get(entry.name).is_none());
    let built_in = built_in.map(|entry| Typeable {
        name: entry.name.to_owned(),
        about: entry.summary.to_owned(),
        hint: entry.arguments.to_owned(),
    });
    let own = own.iter().map(|command: &Command| Typeable {
        name: command.name().to_owned(),
        about: command.description().to_owned(),
        hint: command.argument_hint().unwrap_or_default().to_owned(),
    });
    own.chain(built_in).collect()
}

/// The prompts of the servers that are connected.
pub(crate) async fn prompts(servers: Option<&Servers>) -> Vec<Typeable> {
    let Some(servers) = servers else {
        return Vec::new();
    };
    // Who is late is asked again before the next prompt.
    let prompts = timeout(PATIENCE, servers.prompts())
        .await
        .unwrap_or_default();
    let named = prompts.iter().filter_map(of_prompt);
    named.take(MAX_PROMPTS).collect()
}

/// A prompt whose name can be typed.
fn of_prompt(prompt: &Prompt) -> Option<Typeable> {
    let name = format!("mcp__{}__{}", prompt.server, prompt.name);
    let line = format!("/{name}");
    (called(&line) == Some((name.as_str(), ""))).then(|| Typeable {
        about: prompt.description.clone().unwrap_or_default(),
        hint: arguments(prompt),
        name: name.clone(),
    })
}

fn arguments(prompt: &Prompt) -> String {
    let words = prompt.arguments.iter().map(|argument| {
        if argument.is_required {
            argument.name.to_uppercase()
        } else {
            format!("[{}]", argument.name)
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Puts these prompts of servers among the commands of a session, in the place of those before.
pub(crate) fn list(facts: &mut Facts, prompts: &[Typeable]) {
    let is_prompt = |name: &String| name.starts_with("mcp__");
    facts.commands.retain(|(name, _)| !is_prompt(name));
    facts.hints.retain(|name, _| !is_prompt(name));
    facts.commands.extend(named(prompts));
    facts.hints.extend(hints(prompts));
}

/// Names, with what they do.
pub(crate) fn named(commands: &[Typeable]) -> Vec<(String, String)> {
    let pair = |command: &Typeable| (command.name.clone(), command.about.clone());
    commands.iter().map(pair).collect()
}

/// What may be written after those that take anything.
pub(crate) fn hints(commands: &[Typeable]) -> BTreeMap<String, String> {
    let taking = commands.iter().filter(|command| !command.hint.is_empty());
    let pair = |command: &Typeable| (command.name.clone(), command.hint.clone());
    taking.map(pair).collect()
}
