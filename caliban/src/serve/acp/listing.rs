//! The sessions that are kept: listed in pages, and forgotten.

use std::path::Path;

use caliban_harness::{
    Configuration, Process, RunOptions, configure, forget_checkpoints, session_store,
};
use caliban_protocol::acp::v1::{Error, ListSessionsRequest, ListSessionsResponse, SessionInfo};
use caliban_sessions::{Store, Summary};
use uuid::Uuid;

/// Sessions of one page.
const PAGE: usize = 50;
/// The longest title.
const TITLE: usize = 120;

fn place(options: &RunOptions, process: Process) -> Result<(Store, Configuration), Error> {
    let configuration = configure(options, process).map_err(failed)?;
    Ok((
        session_store(&options.session, &configuration),
        configuration,
    ))
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::new(-32603, error.to_string())
}

/// A page of sessions, the most recent first.
pub(super) fn list(
    request: &ListSessionsRequest,
    options: &RunOptions,
    process: Process,
) -> Result<ListSessionsResponse, Error> {
    if let Some(cwd) = request.cwd.as_deref().filter(|cwd| !cwd.is_absolute()) {
        let reason = format!("`cwd`: `{}` is not an absolute path", cwd.display());
        return Err(Error::new(-32602, reason));
    }
    let (store, _) = place(options, process)?;
    let listing = store.list().map_err(failed)?;
    let wanted = request.cwd.as_deref().map(real);
    let is_wanted = |summary: &Summary| {
        let is_there = wanted.as_ref().is_none_or(|cwd| real(&summary.cwd) == *cwd);
        summary.has_prompt() && is_there
    };
    let mut all: Vec<Summary> = listing.summaries.into_iter().filter(is_wanted).collect();
    all.sort_by_key(|summary| std::cmp::Reverse(position(summary)));
    if let Some(cursor) = &request.cursor {
        let after = read(cursor).ok_or_else(|| {
            Error::new(-32602, "`cursor` is none that an earlier page ended with")
        })?;
        all.retain(|summary| position(summary) < after);
    }
    let next = (all.len() > PAGE).then(|| all.get(PAGE - 1).map(cursor));
    let sessions = all.iter().take(PAGE).map(info).collect();
    Ok(ListSessionsResponse::new(sessions).next_cursor(next.flatten()))
}

/// With all links followed, where it is still there.
fn real(path: &Path) -> std::path::PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Where a session stands in the list; the later, the larger.
fn position(summary: &Summary) -> (i128, Uuid) {
    (summary.updated_at.as_nanosecond(), summary.session_id)
}

fn cursor(last: &Summary) -> String {
    let (at, id) = position(last);
    format!("{at}.{id}")
}

fn read(cursor: &str) -> Option<(i128, Uuid)> {
    let (at, id) = cursor.split_once('.')?;
    Some((at.parse().ok()?, id.parse().ok()?))
}

fn info(summary: &Summary) -> SessionInfo {
    SessionInfo::new(summary.session_id.to_string(), &summary.cwd)
        .title(summary.title.as_deref().and_then(title))
        .updated_at(summary.updated_at.to_string())
}

/// What was typed first, in one line.
pub(super) fn title(typed: &str) -> Option<String> {
    let words = typed.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(if words.chars().count() > TITLE {
        words.chars().take(TITLE - 1).chain(['…']).collect()
    } else {
        words
    })
    .filter(|title| !title.is_empty())
}

/// Forgets a session and what can be taken back of it. One that is not there is forgotten already.
pub(super) fn forget(id: Uuid, options: &RunOptions, process: Process) -> Result<(), Error> {
    let (store, configuration) = place(options, process)?;
    let Some(name) = store.named(&id.to_string()).map_err(failed)? else {
        return Ok(());
    };
    store.remove(&name).map_err(failed)?;
    forget_checkpoints(&configuration, std::slice::from_ref(&name)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_one_line() {
        assert_eq!(title("\n  fix it \nnow").as_deref(), Some("fix it now"));
        assert_eq!(title(" \n"), None);
        assert_eq!(title(&"x".repeat(500)).unwrap().chars().count(), TITLE);
    }

    #[test]
    fn what_is_no_cursor_is_none() {
        let id = Uuid::from_u128(7);
        assert_eq!(read(&format!("12.{id}")), Some((12, id)));
        for wrong in ["", "12", "x.y", "12.z"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
