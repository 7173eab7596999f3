//! A call on the screen: what is called, how it goes, and what came of it.

use std::path::Path;
use std::time::Duration;

use caliban_agent::{Details, TaskState, ToolStatus, tells_of_denial};
use caliban_text::{
    DiffView, Palette, Row, Strength, ansi, diff_counts, diff_rows, sanitise, wrap,
};
use ratatui_core::style::Style;
use ratatui_core::text::Span;
use serde_json::Value;

use crate::preferences::Diffs;
use crate::transcript::calls::{Call, CallState, Ending};
use crate::transcript::cell::{Lay, marked};

/// Rows of a result that are shown while it is folded.
const FOLDED: usize = 6;
/// Rows of a diff that are shown while it is folded.
const FOLDED_DIFF: usize = 16;
/// Cells of an inner agent that are shown while it is folded.
const FOLDED_CELLS: usize = 3;
/// The most rows of a result.
const UNFOLDED: usize = 400;
/// Unchanged lines around a change.
const CONTEXT: usize = 3;
/// Columns from which on both sides of a change stand beside each other: a screen of 140.
const SPLIT: u16 = 136;

pub(crate) fn rows(call: &Call, is_open: bool, lay: &Lay<'_>) -> Vec<Row> {
    let mut rows = head(call, is_open, lay);
    rows.extend(inner(call, is_open, lay));
    match &call.state {
        CallState::Written => rows.push(state_row(&written(call), lay.theme.palette.dim, lay)),
        CallState::Ready => {}
        CallState::Asked => {
            let style = lay.theme.palette.warning;
            rows.push(state_row("waits for your answer", style, lay));
        }
        CallState::Running { since } => {
            let tail = ansi(
                &call.output,
                lay.width.saturating_sub(2),
                lay.theme.palette.dim,
            );
            let skipped = tail.len().saturating_sub(FOLDED);
            rows.extend(indented(tail.into_iter().skip(skipped), lay));
            let seconds = lay.now.saturating_duration_since(*since).as_secs();
            let spinner = lay.theme.signs.spinner;
            let sign = spinner[lay.beat % spinner.len()];
            let text = if seconds == 0 {
                format!("{sign} running")
            } else {
                format!("{sign} running, {seconds} s")
            };
            rows.push(state_row(&text, lay.theme.palette.accent, lay));
        }
        CallState::Over(ending) => rows.extend(over(call, ending, is_open, lay)),
    }
    rows
}

fn written(call: &Call) -> String {
    if call.written == 0 {
        "being written".to_owned()
    } else {
        format!("being written, {} bytes", call.written)
    }
}

/// `🔧 Name({…})`.
fn head(call: &Call, is_open: bool, lay: &Lay<'_>) -> Vec<Row> {
    let (palette, signs) = (&lay.theme.palette, &lay.theme.signs);
    let name = sanitise(&call.name, Strength::Name).into_owned();
    let input = match &call.input {
        Value::Null => String::new(),
        input => input.to_string(),
    };
    let input = sanitise(&input, Strength::Name).into_owned();
    let columns = usize::from(lay.width);
    let sign = format!("{} ", signs.tool);
    let taken = caliban_text::width(&sign) + caliban_text::width(&name) + 2;
    let shown = if is_open {
        input
    } else {
        lay.theme.cut(&input, columns.saturating_sub(taken).max(8))
    };
    let spans = vec![
        Span::styled(sign, palette.accent),
        Span::styled(name, palette.strong),
        Span::styled(format!("({shown})"), palette.text),
    ];
    let hanging = [Span::raw("   ")];
    wrap(spans, lay.width, &hanging)
}

/// What the agent does that the call runs.
fn inner(call: &Call, is_open: bool, lay: &Lay<'_>) -> Vec<Row> {
    let cells = &call.inner.cells;
    let skipped = if is_open {
        0
    } else {
        cells.len().saturating_sub(FOLDED_CELLS)
    };
    let narrow = Lay {
        width: lay.width.saturating_sub(4).max(1),
        ..*lay
    };
    let mut rows = Vec::new();
    if skipped > 0 {
        let text = format!("  {} {skipped} steps before", lay.theme.signs.folded);
        rows.push(Row::plain(text, lay.theme.palette.dim));
    }
    let side = Span::styled(
        format!("  {} ", lay.theme.signs.side),
        lay.theme.palette.dim,
    );
    for cell in &cells[skipped..] {
        let laid = cell.rows(&narrow);
        let shown = laid.len().saturating_sub(1);
        let most = if is_open { shown } else { shown.min(FOLDED) };
        rows.extend(
            laid[..most]
                .iter()
                .cloned()
                .map(|row| row.prefixed(side.clone())),
        );
    }
    rows
}

fn over(call: &Call, ending: &Ending, is_open: bool, lay: &Lay<'_>) -> Vec<Row> {
    let (palette, signs) = (&lay.theme.palette, &lay.theme.signs);
    let took = ending.duration.map_or_else(String::new, took);
    if let Some(denial) = &ending.denial {
        let rule = denial.rule.as_ref();
        let rule = rule.map_or_else(String::new, |rule| format!(" (rule `{rule}`)"));
        let text = format!("{} denied{rule}: {}", signs.denied, denial.reason);
        return indented_text(signs.result, &text, palette.warning, lay);
    }
    let text = ending.text();
    if ending.status == ToolStatus::Denied
        && let Some(reason) = tells_of_denial(&text)
    {
        let text = format!("{} denied: {reason}", signs.denied);
        return indented_text(signs.result, &text, palette.warning, lay);
    }
    let (sign, style) = match ending.status {
        // What went well needs no sign.
        ToolStatus::Ok => ("", palette.success),
        ToolStatus::Failed
        | ToolStatus::InvalidInput
        | ToolStatus::CouldNotRun
        | ToolStatus::TimedOut => (signs.bad, palette.error),
        ToolStatus::Denied => (signs.denied, palette.warning),
        ToolStatus::Cancelled => (signs.bad, palette.warning),
    };
    let said = said(ending, &text, lay);
    let gap = if sign.is_empty() { "" } else { " " };
    let summary = format!("{sign}{gap}{said}{took}");
    let mut rows = indented_text(signs.result, &summary, style, lay);
    let body = body(call, ending, &text, lay);
    let most = match (is_open, &ending.details) {
        (true, _) => UNFOLDED,
        (false, Some(Details::Edited { .. } | Details::Created { .. })) => FOLDED_DIFF,
        (false, _) => FOLDED,
    };
    let hidden = body.len().saturating_sub(most);
    rows.extend(indented(body.into_iter().take(most), lay));
    if hidden > 0 {
        let text = format!("  {} {hidden} more rows", signs.folded);
        rows.push(Row::plain(text, palette.dim));
    }
    rows
}

/// What came of a call, in a few words.
fn said(ending: &Ending, text: &str, lay: &Lay<'_>) -> String {
    let lines = text.lines().count();
    match &ending.details {
        Some(Details::Command { exit_code, .. }) => match exit_code {
            Some(code) => format!("exit {code}"),
            None => "ended by a signal".to_owned(),
        },
        Some(Details::Page {
            path,
            first,
            shown,
            total,
        }) => {
            let last = first + shown.saturating_sub(1);
            let of = total.map_or_else(String::new, |total| format!(" of {total}"));
            let path = near(path, lay);
            format!("Read {path}, lines {first}-{last}{of}")
        }
        Some(Details::Created { path }) => format!("Created {}", near(path, lay)),
        Some(Details::Overwritten { path }) => format!("Replaced {}", near(path, lay)),
        Some(Details::Edited { path, texts }) => {
            let counts = texts.as_ref().map(|(old, new)| diff_counts(old, new));
            let counts =
                counts.map_or_else(String::new, |(more, less)| format!(" +{more} -{less}"));
            format!("Edited {}{counts}", near(path, lay))
        }
        Some(Details::Tasks(tasks)) => {
            let done = tasks.iter().filter(|task| task.state == TaskState::Done);
            format!("{} of {} tasks done", done.count(), tasks.len())
        }
        Some(Details::Delegated { .. }) | None => {
            let first = text.lines().find(|line| !line.trim().is_empty());
            match (first, lines) {
                (None, _) => "nothing".to_owned(),
                (Some(first), 1) => sanitise(first.trim(), Strength::Name).into_owned(),
                (Some(_), lines) => format!("{lines} lines"),
            }
        }
    }
}

/// A path as it is written from where one is.
fn near(path: &str, lay: &Lay<'_>) -> String {
    let inside = Path::new(path).strip_prefix(lay.cwd).ok();
    let inside = inside
        .and_then(Path::to_str)
        .filter(|path| !path.is_empty());
    sanitise(inside.unwrap_or(path), Strength::Name).into_owned()
}

fn took(duration: Duration) -> String {
    if duration < Duration::from_millis(100) {
        String::new()
    } else {
        format!(", {:.1} s", duration.as_secs_f64())
    }
}

/// What is shown below: the change, or what was written.
fn body(call: &Call, ending: &Ending, text: &str, lay: &Lay<'_>) -> Vec<Row> {
    let width = lay.width.saturating_sub(2);
    let palette = &lay.theme.palette;
    let written = || call.input.get("content").and_then(Value::as_str);
    match &ending.details {
        Some(Details::Edited {
            path,
            texts: Some((old, new)),
        }) => change_rows(old, new, path, width, palette, lay.diffs),
        Some(Details::Created { path }) => diff_rows(
            "",
            written().unwrap_or_default(),
            path,
            width,
            palette,
            CONTEXT,
        ),
        Some(Details::Page { .. }) if ending.status == ToolStatus::Ok => Vec::new(),
        Some(Details::Command { note, .. }) => {
            let shown = text.strip_suffix(note.as_str()).unwrap_or(text);
            ansi(shown.trim_end(), width, palette.dim)
        }
        Some(
            Details::Edited { texts: None, .. }
            | Details::Overwritten { .. }
            | Details::Delegated { .. }
            | Details::Tasks(_)
            | Details::Page { .. },
        ) => Vec::new(),
        // One line stands in the summary already.
        None if text.lines().count() < 2 => Vec::new(),
        None => ansi(text.trim_end(), width, palette.dim),
    }
}

/// The rows of a change: both sides of it where they are wanted, fit, and are not one.
pub(crate) fn change_rows(
    old: &str,
    new: &str,
    path: &str,
    width: u16,
    palette: &Palette,
    diffs: Diffs,
) -> Vec<Row> {
    let view = DiffView::between(old, new, path, CONTEXT);
    let has_sides = view.added > 0 && view.removed > 0;
    match diffs {
        Diffs::BesideEachOther if width >= SPLIT && has_sides => view.split_rows(width, palette),
        Diffs::BesideEachOther | Diffs::BelowEachOther => view.rows(width, palette),
    }
}

fn state_row(text: &str, style: Style, lay: &Lay<'_>) -> Row {
    let sign = lay.theme.signs.result;
    Row::plain(format!("  {sign} {text}"), style)
}

fn indented_text(sign: &str, text: &str, style: Style, lay: &Lay<'_>) -> Vec<Row> {
    let rows = marked(sign, style, text, style, lay.width.saturating_sub(2));
    indented(rows.into_iter(), lay)
}

fn indented(rows: impl Iterator<Item = Row>, lay: &Lay<'_>) -> Vec<Row> {
    let indent = Span::styled("  ", lay.theme.palette.text);
    rows.map(|row| row.prefixed(indent.clone())).collect()
}
