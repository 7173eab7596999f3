//! Checks of what others brought here or left: plugins, and worktrees of agents.

use caliban_harness::plugins::PluginSet;
use caliban_harness::{Configuration, RunOptions, repository};
use caliban_worktrees::State;

use super::report::Row;

/// The plugins, where there are any.
pub(super) fn plugins(options: &RunOptions, configuration: &Configuration) -> Option<Row> {
    let set = PluginSet::of_run(options, configuration);
    if set.found.is_empty() && set.warnings.is_empty() {
        return None;
    }
    let used = set.found.iter().filter(|found| found.active().is_some());
    let message = format!("{} found, {} used", set.found.len(), used.count());
    Some(Row::pass("plugins", message).warned(set.warnings))
}

/// Worktrees of agents that stayed, and why; nothing where none did.
pub(super) async fn worktrees(configuration: &Configuration) -> Option<Row> {
    // Where there is no repository there are none.
    let listed = repository(configuration).await.ok()?.list().await.ok()?;
    let stayed: Vec<String> = listed
        .iter()
        .filter_map(|one| {
            let path = one.entry.path.display();
            match &one.state {
                State::Kept(reason) => Some(format!("{path}: {reason}")),
                State::Abandoned => Some(format!("{path}: its session was ended")),
                State::Active | State::Resting | State::Branch | State::Vanished => None,
            }
        })
        .collect();
    if stayed.is_empty() {
        return None;
    }
    let message = format!(
        "{} of agents stayed; `caliban worktrees rm NAME` removes one",
        stayed.len()
    );
    Some(Row::warn("worktrees", message).with(stayed))
}
