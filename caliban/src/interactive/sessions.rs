//! The sessions that are kept, as the face lists and changes them.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use caliban_harness::{copy_session, forget_checkpoints, rename_session, session_store};
use caliban_sessions::{Store, Summary, Transcript};
use caliban_tui::{SessionChange, SessionRow, SessionsDesk};

use crate::interactive::Program;

/// How long words are looked for in everything that was said.
const SEARCH: Duration = Duration::from_secs(10);
/// Lines of a session that are shown beside the list.
const PREVIEW: usize = 60;

impl Program {
    fn store(&self) -> Result<Store, String> {
        let configuration = self.configuration().map_err(|error| error.to_string())?;
        Ok(session_store(&self.options.session, &configuration))
    }
}

impl SessionsDesk for Program {
    fn sessions(&self) -> Result<Vec<SessionRow>, String> {
        let listing = self.store()?.list().map_err(|error| error.to_string())?;
        // One in which nothing was ever said has nothing to go on with.
        let has_said = |summary: &Summary| summary.turns > 0 || summary.title.is_some();
        let summaries = listing.summaries.into_iter().filter(has_said);
        let rows = summaries.map(|summary| SessionRow {
            name: summary.name.as_str().to_owned(),
            title: summary
                .title
                .as_deref()
                .and_then(|title| title.lines().next())
                .unwrap_or_default()
                .to_owned(),
            turns: summary.turns,
            tokens: summary.total_tokens(),
            updated: summary.updated_at,
        });
        Ok(rows.collect())
    }

    fn session_preview(&self, name: &str) -> Result<String, String> {
        let store = self.store()?;
        let told = |error: caliban_sessions::Error| error.to_string();
        let name = store.find(name).map_err(told)?;
        let (state, _) = store.load(&name).map_err(told)?;
        let text = Transcript::of(&state).markdown();
        let lines: Vec<&str> = text.lines().collect();
        let skipped = lines.len().saturating_sub(PREVIEW);
        Ok(lines
            .into_iter()
            .skip(skipped)
            .collect::<Vec<_>>()
            .join("\n"))
    }

    fn sessions_with(&self, text: &str) -> Result<Vec<(String, String)>, String> {
        let began = Instant::now();
        let goes_on = || {
            if began.elapsed() > SEARCH {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let hits = self.store()?.search(text, goes_on);
        let hits = hits.map_err(|error| error.to_string())?.into_iter();
        Ok(hits
            .map(|hit| (hit.name.as_str().to_owned(), hit.excerpt))
            .collect())
    }

    fn change_session(&self, change: &SessionChange) -> Result<String, String> {
        let store = self.store()?;
        let told = |error: caliban_sessions::Error| error.to_string();
        let configuration = self.configuration().map_err(|error| error.to_string())?;
        match change {
            SessionChange::Rename { name, to } => {
                let name = store.find(name).map_err(told)?;
                let to = rename_session(&store, &configuration, &name, to)?;
                Ok(format!(
                    "`{name}` is called `{to}`; `--resume {to}` opens it"
                ))
            }
            SessionChange::Delete { name } => {
                let name = store.find(name).map_err(told)?;
                store.remove(&name).map_err(told)?;
                forget_checkpoints(&configuration, std::slice::from_ref(&name))
                    .map_err(|error| error.to_string())?;
                Ok(format!("`{name}` is deleted"))
            }
            SessionChange::Fork { name, to } => {
                let name = store.find(name).map_err(told)?;
                let copy = copy_session(&store, &configuration, &name, to.as_deref())?;
                Ok(format!("`{copy}` is a copy of `{name}`"))
            }
        }
    }
}
