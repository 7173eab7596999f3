//! Agents as a table, as JSON, and as they change.

use std::fmt::Write as _;
use std::time::Duration;

use caliban_fleet::{AgentView, Phase, Places, Registry, Watching};
use caliban_model::CancellationToken;
use caliban_tui::{AgentLife, AgentQuestion, AgentRow};
use jiff::Timestamp;
use serde::Serialize;

use super::Fleet;
use crate::console::Console;
use crate::exit::Failure;

/// Clears a terminal and goes to its first row.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

/// How often ages are drawn anew.
const AGEING: Duration = Duration::from_secs(1);
/// Before the next daemon is asked, where one has ended.
const PAUSE: Duration = Duration::from_millis(200);

/// What became of waiting for the agents.
enum Heard {
    Agents(Vec<AgentView>),
    /// The daemon has ended.
    End,
    /// Nobody wants to hear more.
    Enough,
}

impl Fleet<'_> {
    pub(super) async fn list(
        &self,
        all: bool,
        json: bool,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let agents = match self.client().await?.list().await {
            // It was ended between two words; the next one knows as much.
            Err(error) if error.is_gone() => self.client().await?.list().await?,
            listed => listed?,
        };
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

    /// All agents, whenever one of them changes.
    pub(crate) async fn watching(&self) -> Result<Watching, Failure> {
        Ok(self.client().await?.watch().await?)
    }

    /// Shows the agents as they change, until it is interrupted.
    pub(super) async fn watch(
        &self,
        json: bool,
        cancel: &CancellationToken,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let mut watching = self.watching().await?;
        let mut last = Vec::new();
        loop {
            match Self::hear(&mut watching, &last, cancel, console).await? {
                Heard::Enough => return Ok(()),
                Heard::End => {
                    tokio::time::sleep(PAUSE).await;
                    watching = self.watching().await?;
                }
                Heard::Agents(agents) if json => console.write(&json_line(&agents))?,
                Heard::Agents(agents) => {
                    let shown = table(&agents, Timestamp::now());
                    if console.is_terminal() {
                        console.redraw(CLEAR, &shown)?;
                        last = agents;
                    } else {
                        console.write(&format!("{shown}\n"))?;
                    }
                }
            }
        }
    }

    /// Waits for the next list. At a terminal the last one grows older meanwhile.
    async fn hear(
        watching: &mut Watching,
        last: &[AgentView],
        cancel: &CancellationToken,
        console: &mut Console,
    ) -> Result<Heard, Failure> {
        let next = watching.next();
        tokio::pin!(next);
        loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return Ok(Heard::Enough),
                told = &mut next => return Ok(told?.map_or(Heard::End, Heard::Agents)),
                () = tokio::time::sleep(AGEING), if !last.is_empty() => {
                    console.redraw(CLEAR, &table(last, Timestamp::now()))?;
                }
            }
        }
    }
}

/// Something as one line of JSON.
pub(super) fn json_line(content: &impl Serialize) -> String {
    // Only a map with keys that are no texts could fail, and there is none.
    serde_json::to_string(content).unwrap_or_default() + "\n"
}

/// An agent as it stands in every list.
pub(crate) fn row(agent: &AgentView) -> AgentRow {
    let needs = agent.needs.as_ref();
    AgentRow {
        id: agent.id.to_string(),
        state: agent.state.as_str(),
        life: match agent.state {
            Phase::Spawning | Phase::Running | Phase::Idle => AgentLife::Alive,
            Phase::Failed | Phase::Crashed => AgentLife::Failed,
            Phase::Done | Phase::Killed => AgentLife::Ended,
        },
        since: agent.since,
        cost: agent.cost_usd,
        task: agent.label.as_ref().unwrap_or(&agent.prompt).clone(),
        question: needs.and_then(|needs| {
            Some(AgentQuestion {
                id: needs.id.clone()?,
                summary: needs.summary.clone(),
            })
        }),
        reason: match agent.state {
            Phase::Done => None,
            _ => agent.reason.clone(),
        },
    }
}

fn table(agents: &[AgentView], now: Timestamp) -> String {
    if agents.is_empty() {
        return "no agents\n".to_owned();
    }
    let mut text = format!("{}\n", AgentRow::HEAD);
    for agent in agents.iter().map(row) {
        let _ = writeln!(text, "{}", agent.line(now));
        if let Some(AgentQuestion { id, summary }) = &agent.question {
            let first = id.get(..8).unwrap_or(id);
            let _ = writeln!(
                text,
                "          asks {first}: {}\n          caliban agents answer {} {first} \
                 allow|allow-session|deny",
                AgentRow::cut(summary),
                agent.id,
            );
        }
        if let Some(reason) = &agent.reason {
            let _ = writeln!(text, "          {}", AgentRow::cut(reason));
        }
    }
    text
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
