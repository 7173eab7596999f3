//! The screen: transcript, what waits, the draft, the status line, and what lies over them.

use caliban_compose::Look as DraftLook;
use caliban_text::{Row, Strength, sanitise, wrap};
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Span;

use crate::app::{App, Link};
use crate::app::{TodoRow, TodoState, selecting};
use crate::canvas::Canvas;
use crate::completion::{Kind, Menu};
use crate::host::Matched;
use crate::layers::{Around, Known, RulePreview};
use crate::questions::{Attention, Form};
use crate::status;
use crate::transcript::CellKind;

/// Rows of prompts that wait, of tasks and of offers that are shown at most.
const QUEUED: usize = 3;
const TASKS: usize = 6;
const OFFERS: usize = 10;
/// Rows of the draft at least, on a screen that has them.
const DRAFT: u16 = 2;
const TALL: u16 = 14;

/// Draws everything.
pub(crate) fn draw(app: &mut App) -> Canvas {
    let mut canvas = Canvas::new(app.width, app.height);
    let (width, height) = (app.width, app.height);
    if width == 0 || height == 0 {
        return canvas;
    }
    let mut bottom = height;
    status::draw(app, &mut canvas, bottom - 1);
    bottom -= 1;
    bottom = rule(app, &mut canvas, bottom);
    let input = input_area(app, bottom);
    draft(app, &mut canvas, input);
    status::find(app, &mut canvas, height - 1);
    bottom = rule(app, &mut canvas, input.y);
    bottom = dock(app, &mut canvas, bottom);
    bottom = queue(app, &mut canvas, bottom);
    bottom = tasks(app, &mut canvas, bottom);
    bottom = activity(app, &mut canvas, bottom);
    transcript(app, &mut canvas, bottom);
    let mut layers = std::mem::take(&mut app.layers);
    if let Some(layer) = layers.last_mut() {
        canvas.cursor = None;
        let known = Known {
            theme: &app.theme,
            mode: &app.status.mode,
            latch: app.latch,
            now: app.now,
            input,
        };
        layer.draw(&mut canvas, &known);
    }
    app.layers = layers;
    canvas
}

fn rule(app: &App, canvas: &mut Canvas, bottom: u16) -> u16 {
    if app.height < TALL || bottom == 0 {
        return bottom;
    }
    let line = app.theme.signs.rule.repeat(usize::from(app.width));
    canvas.text(0, bottom - 1, app.width, &line, app.theme.palette.rule);
    bottom - 1
}

fn input_area(app: &App, bottom: u16) -> Rect {
    let most = (app.height / 3).max(1);
    let layout = app.editor.layout(app.width.saturating_sub(2).max(1));
    let rows = u16::try_from(layout.rows.len()).unwrap_or(u16::MAX);
    let least = if app.height < TALL { 1 } else { DRAFT };
    let height = rows.clamp(least, most.max(least)).min(bottom);
    Rect::new(0, bottom - height, app.width, height)
}

fn draft(app: &App, canvas: &mut Canvas, area: Rect) {
    if area.height == 0 {
        return;
    }
    let palette = &app.theme.palette;
    let layout = app.editor.layout(area.width.saturating_sub(2).max(1));
    let (column, row) = layout.caret;
    let height = usize::from(area.height);
    let first = usize::from(row).saturating_sub(height - 1);
    let sign = app.theme.signs.prompt;
    canvas.text(area.x, area.y, area.right(), sign, palette.prompt);
    for (y, row) in (area.y..area.bottom()).zip(layout.rows.iter().skip(first)) {
        let mut x = area.x + 2;
        for (text, look) in &row.spans {
            let style = match look {
                DraftLook::Text => palette.text,
                DraftLook::Chip => palette.accent,
                DraftLook::Selection => palette.text.add_modifier(Modifier::REVERSED),
                DraftLook::SearchMatch => palette.warning,
            };
            x = canvas.text(x, y, area.right(), text, style);
        }
    }
    let is_asked = matches!(
        app.questions.attention(app.now),
        Attention::Listens | Attention::Deaf
    );
    if app.editor.is_empty() && !is_asked {
        let hint = match (&app.link, &app.run) {
            (Link::Looking | Link::Opening, _) => "starting; write already",
            (Link::Failed | Link::Over, _) => "no session: /resume, or Ctrl+C leaves",
            (Link::Open(_), Some(_)) => "Enter joins the work, Tab waits for its end",
            (Link::Open(_), None) => "",
        };
        canvas.text(area.x + 3, area.y, area.right(), hint, palette.dim);
    }
    let row = u16::try_from(usize::from(row) - first).unwrap_or_default();
    let column = (area.x + 2 + column).min(area.right().saturating_sub(1));
    canvas.cursor = Some(Position::new(column, area.y + row));
}

/// The question, or what is offered, above the draft.
fn dock(app: &mut App, canvas: &mut Canvas, bottom: u16) -> u16 {
    if !app.questions.is_empty() {
        return question(app, canvas, bottom);
    }
    match &app.menu {
        Some(menu) if !menu.offers.is_empty() => offers(app, menu, canvas, bottom),
        Some(_) | None => bottom,
    }
}

fn question(app: &mut App, canvas: &mut Canvas, bottom: u16) -> u16 {
    let attention = app.questions.attention(app.now);
    let waiting = app.questions.len();
    let preview = preview(app);
    let theme = app.theme.clone();
    let width = app.width;
    let caret = canvas.cursor;
    let Some(open) = app.questions.first_mut() else {
        return bottom;
    };
    let agent = open.agent.as_deref();
    let agent = agent.map(|call| app.feed.agent_of(call));
    let around = Around {
        theme: &theme,
        diffs: app.preferences.diffs,
        attention,
        waiting,
        agent: agent.as_deref(),
        preview: preview.as_ref(),
    };
    let wanted = match &open.form {
        Form::Permission(form) => form.height(width, &around),
        Form::Plan(form) => form.height(width, &around),
        Form::Elicitation(form) => form.height(width, &theme),
    };
    // At least a few rows of the conversation stay where there are any.
    let most = bottom.saturating_sub(3).max(bottom.min(6));
    let height = wanted.min(most);
    let area = Rect::new(0, bottom - height, width, height);
    match &mut open.form {
        Form::Permission(form) => form.draw(canvas, area, &around),
        Form::Plan(form) => form.draw(canvas, area, &around),
        Form::Elicitation(form) => form.draw(canvas, area, &theme, attention),
    }
    if attention != Attention::Listens {
        // The caret stays where one writes.
        canvas.cursor = caret;
    }
    area.y
}

/// What the rule that is being written would do.
fn preview(app: &App) -> Option<RulePreview> {
    let open = app.questions.first()?;
    let Form::Permission(form) = &open.form else {
        return None;
    };
    let rules = form.drafts();
    let rule = rules.first()?;
    let patterns: Vec<String> = rules.iter().map(|rule| rule.pattern.clone()).collect();
    let desk = app.desk.as_ref()?;
    let call = &form.inquiry.call;
    let this = [(call.name.to_string(), call.input.clone())];
    let of_this = desk.matches(&patterns, &this);
    // The call itself is none of the earlier ones.
    let itself = app.calls.iter().rposition(|known| *known == this[0]);
    let mut calls = app.calls.clone();
    itself.map(|place| calls.remove(place));
    let earlier = desk.matches(&patterns, &calls);
    let matched: Vec<String> = earlier
        .iter()
        .zip(&calls)
        .filter(|(matched, _)| **matched == Matched::Yes)
        .map(|(_, (name, input))| {
            let text = input["command"].as_str().unwrap_or(name);
            app.theme.cut(&sanitise(text, Strength::Name), 24)
        })
        .collect();
    Some(RulePreview {
        file: desk
            .rule_file(rule.scope)
            .map(|path| path.display().to_string()),
        this_call: of_this.first().map(|matched| *matched == Matched::Yes),
        others: earlier.len() - matched.len(),
        matched,
    })
}

fn offers(app: &App, menu: &Menu, canvas: &mut Canvas, bottom: u16) -> u16 {
    let palette = &app.theme.palette;
    let room = usize::from(bottom.saturating_sub(3)).min(OFFERS);
    let count = menu.offers.len().min(room);
    let first = menu.chosen.saturating_sub(count.saturating_sub(1));
    let top = bottom - u16::try_from(count).unwrap_or_default();
    canvas.clear(Rect::new(0, top, app.width, bottom - top));
    let widest = menu.offers.iter().skip(first).take(count);
    let widest = widest
        .map(|offer| caliban_text::width(&offer.label) + caliban_text::width(&offer.hint) + 2)
        .max()
        .unwrap_or_default();
    let column = u16::try_from(widest.min(usize::from(app.width) / 2)).unwrap_or_default() + 3;
    let mut group = "";
    for (y, (place, offer)) in (top..bottom).zip(menu.offers.iter().enumerate().skip(first)) {
        let (sign, style) = if place == menu.chosen {
            (app.theme.signs.selected, palette.accent)
        } else {
            (" ", palette.text)
        };
        let label = sanitise(&offer.label, Strength::Name);
        let x = canvas.text(0, y, app.width, &format!("{sign} {label}"), style) + 1;
        // A blank stays between what is to be written and what it does.
        let hint_room = usize::from(column.saturating_sub(x + 1));
        let hint = app.theme.cut(&offer.hint, hint_room);
        canvas.text(x, y, column, &hint, palette.dim);
        if menu.kind == Kind::Command {
            let mut end = app.width;
            if offer.group != group && menu.is_grouped() {
                group = offer.group;
                let wide = u16::try_from(caliban_text::width(group)).unwrap_or_default();
                end = end.saturating_sub(wide + 1).max(column);
                canvas.text(end, y, app.width, &format!(" {group}"), palette.accent);
            }
            let about = sanitise(&offer.about, Strength::Name);
            let about = app
                .theme
                .cut(&about, usize::from(end.saturating_sub(column)));
            canvas.text(column, y, end, &about, palette.dim);
        }
    }
    top
}

/// Prompts that wait.
fn queue(app: &App, canvas: &mut Canvas, bottom: u16) -> u16 {
    let waiting = app.queue.iter().chain(&app.unsent);
    let count = waiting.clone().count();
    let shown = count.min(QUEUED).min(usize::from(bottom.saturating_sub(2)));
    let top = bottom - u16::try_from(shown).unwrap_or_default();
    for (y, (place, waiting)) in (top..bottom).zip(waiting.enumerate()) {
        let when = if waiting.steers { "joins" } else { "waits" };
        let text = sanitise(&waiting.text, Strength::Name);
        let more = if place + 1 == shown && count > shown {
            format!(" (+{})", count - shown)
        } else {
            String::new()
        };
        let text = format!("{} {when}: {text}{more}", place + 1);
        let text = app.theme.cut(&text, usize::from(app.width));
        canvas.text(0, y, app.width, &text, app.theme.palette.dim);
    }
    top
}

/// The list of tasks, while something is to be done.
fn tasks(app: &App, canvas: &mut Canvas, bottom: u16) -> u16 {
    let left = app.todos.iter().any(|task| task.state != TodoState::Done);
    if !left || bottom < 4 {
        return bottom;
    }
    let palette = &app.theme.palette;
    let signs = &app.theme.signs;
    let done = app
        .todos
        .iter()
        .filter(|task| task.state == TodoState::Done)
        .count();
    if !app.shows_todos {
        let now = app
            .todos
            .iter()
            .find(|task| task.state == TodoState::Active);
        let now = now.map_or("", |task| task.text.as_str());
        let text = format!("{} {done}/{} {now}", signs.todo[1], app.todos.len());
        let text = sanitise(&text, Strength::Name).into_owned();
        canvas.text(0, bottom - 1, app.width, &text, palette.dim);
        return bottom - 1;
    }
    let first = app
        .todos
        .iter()
        .position(|task| task.state != TodoState::Done);
    let first = first.unwrap_or_default().saturating_sub(1);
    let shown: Vec<&TodoRow> = app.todos.iter().skip(first).take(TASKS).collect();
    let room = usize::from(bottom.saturating_sub(3));
    let count = shown.len().min(room);
    let top = bottom - u16::try_from(count).unwrap_or_default();
    for (y, task) in (top..bottom).zip(shown) {
        let (sign, style) = match task.state {
            TodoState::Pending => (signs.todo[0], palette.text),
            TodoState::Active => (signs.todo[1], palette.strong),
            TodoState::Done => (signs.todo[2], palette.dim),
        };
        let text = sanitise(&task.text, Strength::Name);
        let text = format!("{sign} {text}");
        canvas.text(
            0,
            y,
            app.width,
            &app.theme.cut(&text, usize::from(app.width)),
            style,
        );
    }
    top
}

/// What is being done, while something is.
fn activity(app: &App, canvas: &mut Canvas, bottom: u16) -> u16 {
    let Some(run) = &app.run else {
        return bottom;
    };
    if bottom < 3 {
        return bottom;
    }
    let signs = &app.theme.signs;
    let sign = signs.spinner[app.beat() % signs.spinner.len()];
    let seconds = app.now.saturating_duration_since(run.since).as_secs();
    let mut parts = vec![format!("{sign} Working {seconds} s")];
    if run.written > 0 {
        parts.push(format!("{} tokens", run.written));
    }
    parts.push("Esc stops".to_owned());
    let text = parts.join(signs.separator);
    canvas.text(0, bottom - 1, app.width, &text, app.theme.palette.accent);
    bottom - 1
}

fn transcript(app: &mut App, canvas: &mut Canvas, bottom: u16) {
    app.page = usize::from(bottom);
    let lay = app.lay();
    let cells = app.feed.cells.get(app.printed..).unwrap_or_default();
    let shown = app.scroll.shown(cells, app.page, &lay);
    let area = Rect::new(0, 0, app.width, bottom);
    if app.feed.cells.is_empty() {
        welcome(app, canvas, area);
    }
    let rows = u16::try_from(shown.len()).unwrap_or(u16::MAX);
    // A short conversation stands above the draft, not at the top of an empty screen.
    let top = bottom.saturating_sub(rows);
    for (y, shown) in (top..bottom).zip(&shown) {
        canvas.row(area, y, shown.row());
    }
    if let Some(finding) = &app.finding {
        let needle = finding.query.to_lowercase();
        for (y, shown) in (top..bottom).zip(&shown) {
            mark_found(canvas, y, &shown.row().text(), &needle, app.theme.chosen());
        }
    }
    let drawn: Vec<(usize, usize)> = shown.iter().map(|shown| (shown.cell, shown.row)).collect();
    if let (Some((first, _)), Some((last, _))) = (drawn.first(), drawn.last()) {
        forget(app, *first, *last);
    }
    app.drawn = (drawn, bottom);
    selecting::draw(app, canvas);
    if let crate::transcript::Anchor::At { .. } = app.scroll.anchor
        && bottom > 0
    {
        let text = " more below: Ctrl+End ";
        let x = app
            .width
            .saturating_sub(u16::try_from(text.len()).unwrap_or_default());
        canvas.text(x, bottom - 1, app.width, text, app.theme.chosen());
    }
}

/// Marks what is looked for on a row.
fn mark_found(canvas: &mut Canvas, y: u16, text: &str, needle: &str, style: Style) {
    let lower = text.to_lowercase();
    // Where small letters are longer than large ones, places in one text are none in the other.
    if needle.is_empty() || lower.len() != text.len() {
        return;
    }
    for (at, found) in lower.match_indices(needle) {
        let column = |end: usize| text.get(..end).map_or(0, caliban_text::width);
        let columns = column(at)..column(at + found.len());
        for x in columns {
            let x = u16::try_from(x).unwrap_or(u16::MAX);
            if let Some(cell) = canvas.buffer.cell_mut((x, y)) {
                cell.set_style(style);
            }
        }
    }
}

/// Cells whose rows are kept around the screen; of all others they are let go.
const KEPT: usize = 64;

fn forget(app: &App, first: usize, last: usize) {
    let cells = &app.feed.cells;
    let before = first.saturating_sub(KEPT);
    // One screen moves by little: what leaves the kept cells does so next to them.
    let earlier = cells.iter().take(before).rev().take(KEPT);
    for cell in earlier.chain(cells.iter().skip(last + 1 + KEPT).take(KEPT)) {
        cell.forget_rows();
        if let CellKind::Image(picture) = &cell.kind {
            picture.forget();
        }
    }
}

fn welcome(app: &App, canvas: &mut Canvas, area: Rect) {
    let palette = &app.theme.palette;
    let name = format!("caliban {}", env!("CARGO_PKG_VERSION"));
    let hint = "Write what you want done. / lists commands, @ names files, ? shows keys.";
    let mut rows = vec![Row::plain(name, palette.strong)];
    rows.extend(wrap(vec![Span::styled(hint, palette.dim)], area.width, &[]));
    let height = u16::try_from(rows.len()).unwrap_or(u16::MAX);
    let top = area.bottom().saturating_sub(height + 1);
    for (y, row) in (top..area.bottom()).zip(&rows) {
        canvas.row(area, y, row);
    }
}
