//! Agents as a table, as JSON, and as they change.

use std::fmt::Write as _;

use caliban_fleet::{AgentView, Phase, Places, Registry};
use caliban_model::CancellationToken;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::Fleet;
use crate::console::Console;
use crate::exit::Failure;

/// Characters of a task that are shown.
const TASK: usize = 60;
/// Clears a terminal and goes to its first row.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

impl Fleet<'_> {
    pub(super) async fn list(
        &self,
        all: bool,
        json: bool,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let agents = self.client().await?.list().await?;
        let agents = if all {
            let everywhere = Registry::everywhere(&self.places.agents);
            everywhere.views().map_err(|error| self.unread(&error))?
        } else {
            agents
        };
        if json {
            let text = serde_json::to_string_pretty(&agents)
                .map_err(|error| Failure::Runtime(error.to_string()))?;
            return console.write(&format!("{text}\n"));
        }
        console.write(&table(&agents, Timestamp::now()))
    }

    /// Shows the agents as they change, until it is interrupted.
    pub(super) async fn watch(
        &self,
        json: bool,
        cancel: &CancellationToken,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let mut watching = self.client().await?.watch().await?;
        loop {
            let next = cancel.run_until_cancelled(watching.next()).await;
            let Some(next) = next else {
                return Ok(());
            };
            let Some(agents) = next? else {
                return Err(Failure::Runtime("the daemon has ended".to_owned()));
            };
            if json {
                console.write(&json_line(&agents))?;
                continue;
            }
            let shown = table(&agents, Timestamp::now());
            if console.is_terminal() {
                console.redraw(CLEAR, &shown)?;
            } else {
                console.write(&format!("{shown}\n"))?;
            }
        }
    }
}

/// Something as one line of JSON.
pub(super) fn json_line(content: &impl Serialize) -> String {
    // Only a map with keys that are no texts could fail, and there is none.
    serde_json::to_string(content).unwrap_or_default() + "\n"
}

fn table(agents: &[AgentView], now: Timestamp) -> String {
    if agents.is_empty() {
        return "no agents\n".to_owned();
    }
    let mut text = String::from("ID        STATE     AGE   COST     TASK\n");
    for agent in agents {
        let task = agent.label.as_deref().unwrap_or(&agent.prompt);
        let _ = writeln!(
            text,
            "{:<8}  {:<8}  {:<4}  ${:<6}  {}",
            agent.id,
            agent.state.as_str(),
            age(now.duration_since(agent.since)),
            agent.cost_usd.round_dp(4).normalize(),
            cut(task),
        );
        let needs = agent.needs.as_ref();
        if let Some((needs, id)) = needs.and_then(|needs| Some((needs, needs.id.as_ref()?))) {
            let first = id.get(..8).unwrap_or(id);
            let _ = writeln!(
                text,
                "          asks {first}: {}\n          caliban agents answer {} {first} \
                 allow|allow-session|deny",
                cut(&needs.summary),
                agent.id,
            );
        }
        if let (Some(reason), false) = (&agent.reason, agent.state == Phase::Done) {
            let _ = writeln!(text, "          {}", cut(reason));
        }
    }
    text
}

/// The first line, so far as there is room.
fn cut(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(TASK).collect();
    if line.chars().count() > TASK || text.lines().nth(1).is_some() {
        shown.push('…');
    }
    shown
}

/// A length of time in its largest unit.
pub(super) fn age(span: SignedDuration) -> String {
    let seconds = span.as_secs().max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// How agents and their daemon are doing, in one line, without waking anybody.
pub(crate) fn fleet_row(places: &Places) -> Result<String, String> {
    let agents = Registry::of(&places.agents, &places.root).views();
    let agents = agents.map_err(|error| format!("`{}`: {error}", places.agents.display()))?;
    let alive = agents.iter().filter(|agent| agent.state.is_alive()).count();
    let asking = agents.iter().filter_map(|agent| agent.needs.as_ref());
    let asking = asking.filter(|needs| needs.id.is_some()).count();
    let crashed = agents.iter().filter(|agent| agent.state == Phase::Crashed);
    let mut said = vec![format!("{} agents, {alive} alive", agents.len())];
    if asking > 0 {
        said.push(format!("{asking} waiting for an answer"));
    }
    match crashed.count() {
        0 => {}
        count => said.push(format!("{count} crashed (`caliban agents resume`)")),
    }
    said.push(if lock_is_held(places) {
        format!("daemon running ({})", places.control_socket().display())
    } else {
        "no daemon running".to_owned()
    });
    Ok(said.join(", "))
}

fn lock_is_held(places: &Places) -> bool {
    let Ok(file) = std::fs::File::open(places.daemon_lock()) else {
        return false;
    };
    matches!(
        file.try_lock_shared(),
        Err(std::fs::TryLockError::WouldBlock)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short_and_texts_fit() {
        let aged = |seconds| age(SignedDuration::from_secs(seconds));
        assert_eq!(
            [-5, 59, 60, 3_599, 86_399, 200_000].map(aged),
            ["0s", "59s", "1m", "59m", "23h", "2d"]
        );
        assert_eq!(cut("one\ntwo"), "one…");
        assert_eq!(cut(&"x".repeat(61)).chars().count(), 61);
        assert_eq!(table(&[], Timestamp::now()), "no agents\n");
    }
}
