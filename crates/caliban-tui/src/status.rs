//! The status line: where one is, who answers, how full it is, and what is going on.

use caliban_compose::ViState;
use caliban_text::{Strength, sanitise};

use crate::app::App;
use crate::canvas::Canvas;
use crate::preferences::Cost;

/// What marks each mode but the usual one.
fn chip(mode: &str) -> &'static str {
    match mode {
        "acceptEdits" => "✎ accept edits",
        "plan" => "📋 plan",
        "auto" => "🤖 auto",
        "dontAsk" => "⏭ don't ask",
        "bypassPermissions" => "⚠ bypass",
        "disabled" => "⚠ no permissions",
        _ => "",
    }
}

fn plain_chip(mode: &str) -> &'static str {
    match mode {
        "acceptEdits" => "[accept edits]",
        "plan" => "[plan]",
        "auto" => "[auto]",
        "dontAsk" => "[don't ask]",
        "bypassPermissions" => "[bypass]",
        "disabled" => "[no permissions]",
        _ => "",
    }
}

pub(crate) fn draw(app: &App, canvas: &mut Canvas, y: u16) {
    let palette = &app.theme.palette;
    if let Some((text, _)) = &app.toast {
        let text = sanitise(text, Strength::Name);
        canvas.text(0, y, app.width, &text, palette.warning);
        return;
    }
    let signs = &app.theme.signs;
    let mut x = 0;
    let mode = match app.preferences.glyphs {
        crate::preferences::Glyphs::Unicode => chip(&app.status.mode),
        crate::preferences::Glyphs::Ascii => plain_chip(&app.status.mode),
    };
    if let Some(custom) = &app.status.custom {
        let padding = app
            .preferences
            .status
            .as_ref()
            .map_or(0, |status| status.padding);
        let gap = " ".repeat(padding);
        let first = custom.lines().next().unwrap_or_default();
        let text = format!("{gap}{}{gap}", sanitise(first, Strength::Name));
        x = canvas.text(x, y, app.width, &text, palette.text);
        x = canvas.text(x, y, app.width, signs.separator, palette.dim);
    }
    if !mode.is_empty() {
        x = canvas.text(x, y, app.width, mode, palette.warning);
        x = canvas.text(x, y, app.width, signs.separator, palette.dim);
    }
    if let Some(vi) = app.editor.vi_state() {
        let text = format!("{}{}", vi_label(&vi), signs.separator);
        x = canvas.text(x, y, app.width, &text, palette.accent);
    }
    let text = parts(app).join(signs.separator);
    let room = usize::from(app.width.saturating_sub(x));
    let text = app.theme.cut(&sanitise(&text, Strength::Name), room);
    canvas.text(x, y, app.width, &text, palette.dim);
}

fn vi_label(state: &ViState) -> &str {
    match state {
        ViState::Normal => "NORMAL",
        ViState::Insert => "INSERT",
        ViState::Visual => "VISUAL",
        ViState::VisualLine => "VISUAL LINE",
        ViState::Replace => "REPLACE",
        ViState::OperatorPending(keys) => keys,
        ViState::Search(text) => text,
    }
}

/// `cwd · provider model · session (turns) · running…`, and what else is known.
fn parts(app: &App) -> Vec<String> {
    let status = &app.status;
    let mut parts = vec![place(app)];
    if let Some(facts) = &status.facts {
        parts.push(format!("{} {}", facts.provider, status.model));
        let name = app.name.as_deref().map_or("not saved", short);
        parts.push(format!("session: {name} ({})", status.turns));
        if status.used > 0 && facts.context_window > 0 {
            let percent = status.used * 100 / facts.context_window;
            parts.push(format!("{percent}% of context"));
        }
        if app.preferences.cost == Cost::Shown {
            parts.push(format!("${:.4}", status.cost));
        }
    }
    if !app.questions.is_empty() {
        parts.push("question waiting".to_owned());
    }
    match (&app.run, status.took) {
        (Some(_), _) => parts.push(format!("running{}", app.theme.signs.more)),
        (None, Some(took)) => parts.push(format!("{:.1} s", took.as_secs_f64())),
        (None, None) => {}
    }
    parts
}

/// Ids are told apart by their beginning.
fn short(name: &str) -> &str {
    let is_id = name.len() == 36 && name.bytes().filter(|byte| *byte == b'-').count() == 4;
    if is_id {
        name.get(..8).unwrap_or(name)
    } else {
        name
    }
}

fn place(app: &App) -> String {
    match app.cwd.strip_prefix(&app.home) {
        Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => app.cwd.display().to_string(),
    }
}
