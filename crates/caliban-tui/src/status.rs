//! The status line: where one is, who answers, how full it is, and what is going on. Where it does
//! not fit, the least important goes first, and what is going on stays.

use caliban_compose::ViState;
use caliban_model::Dollars;
use caliban_text::{Strength, sanitise, width};
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::Style;

use crate::app::{App, Found};
use crate::canvas::Canvas;
use crate::host::BypassLatch;
use crate::preferences::{Cost, Glyphs};

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

/// What the line tells, in its order; nothing of what is not known or has no room.
#[derive(Debug, Default)]
struct Parts {
    custom: Option<String>,
    mode: Option<String>,
    /// That bypass can be reached, where it is not the mode.
    latch: Option<String>,
    vi: Option<String>,
    place: Option<String>,
    provider: Option<String>,
    model: Option<String>,
    /// The session's name and turns, with and without the word for it.
    session: Option<(&'static str, String)>,
    context: Option<String>,
    cost: Option<String>,
    took: Option<String>,
    question: Option<String>,
    running: Option<String>,
}

/// What is done where there is no room, one after the other until it fits. Whether something runs
/// or is asked is not among it.
const SACRIFICES: &[fn(&mut Parts)] = &[
    |parts| parts.place = parts.place.take().map(last_folder),
    |parts| parts.session = parts.session.take().map(|(_, name)| ("", name)),
    |parts| parts.session = None,
    |parts| parts.cost = None,
    |parts| parts.took = None,
    |parts| parts.provider = None,
    |parts| parts.place = None,
    |parts| parts.context = None,
    |parts| parts.model = None,
    |parts| parts.custom = None,
    |parts| parts.vi = None,
    |parts| parts.latch = None,
    |parts| parts.mode = None,
];

pub(crate) fn draw(app: &App, canvas: &mut Canvas, y: u16) {
    let palette = &app.theme.palette;
    if let Some((text, _)) = &app.toast {
        // What goes on stays in sight beside it.
        let known = parts(app);
        let kept = known.question.or(known.running).unwrap_or_default();
        let columns = usize::from(app.width);
        let beside = if kept.is_empty() { 0 } else { width(&kept) + 2 };
        let text = sanitise(text, Strength::Name);
        let room = columns.saturating_sub(beside);
        let text = app.theme.cut(&without_front(&text, room), room);
        canvas.text(0, y, app.width, &text, palette.warning);
        let x = app
            .width
            .saturating_sub(u16::try_from(width(&kept)).unwrap_or(u16::MAX));
        canvas.text(x, y, app.width, &kept, palette.dim);
        return;
    }
    let separator = app.theme.signs.separator;
    let shown = fitting(parts(app), usize::from(app.width), width(separator));
    let mut x = 0;
    for (place, (text, style)) in shown.styled(app).into_iter().enumerate() {
        if place > 0 {
            x = canvas.text(x, y, app.width, separator, palette.dim);
        }
        let room = usize::from(app.width.saturating_sub(x));
        x = canvas.text(x, y, app.width, &app.theme.cut(&text, room), style);
    }
}

/// A text of so many columns at most: of its longest path the last part says the most, so that the
/// folders in front go first.
fn without_front(text: &str, columns: usize) -> String {
    let excess = width(text).saturating_sub(columns);
    let paths = text.split_whitespace().filter(|word| word.contains('/'));
    let Some(path) = paths.max_by_key(|word| width(word)).filter(|_| excess > 0) else {
        return text.to_owned();
    };
    let bare = path.trim_start_matches(['`', '"', '\'']);
    let quote = &path[..path.len() - bare.len()];
    let slashes = bare.match_indices('/').map(|(at, _)| &bare[at..]);
    // The sign for what is left out takes a column.
    let fits = |rest: &&str| width(bare) - width(rest) > excess;
    let last = bare.rfind('/').map(|at| &bare[at..]);
    match slashes.into_iter().find(fits).or(last) {
        Some(rest) => text.replacen(path, &format!("{quote}…{rest}"), 1),
        None => text.to_owned(),
    }
}

/// What is looked for takes the line's place, and the cursor.
pub(crate) fn find(app: &App, canvas: &mut Canvas, y: u16) {
    let Some(finding) = &app.finding else {
        return;
    };
    let palette = &app.theme.palette;
    canvas.clear(Rect::new(0, y, app.width, 1));
    let query = sanitise(&finding.query, Strength::Name);
    let end = canvas.text(0, y, app.width, "find: ", palette.accent);
    let end = canvas.text(end, y, app.width, &query, palette.text);
    canvas.cursor = Some(Position::new(end, y));
    let hint = match finding.found {
        Found::Unknown | Found::Here => "Enter older  Down newer  Esc ends",
        Found::NoMore => "no more  Enter older  Down newer  Esc ends",
    };
    canvas.text(end + 2, y, app.width, hint, palette.dim);
}

/// As much as fits into so many columns.
fn fitting(parts: Parts, columns: usize, separator: usize) -> Parts {
    let mut parts = parts;
    for sacrifice in SACRIFICES {
        let texts = parts.texts();
        let gaps = texts.len().saturating_sub(1) * separator;
        let wanted: usize = texts.iter().map(|text| width(text)).sum();
        if wanted + gaps <= columns {
            break;
        }
        sacrifice(&mut parts);
    }
    parts
}

impl Parts {
    /// All that is there, in order. The provider and the model are one.
    fn texts(&self) -> Vec<String> {
        let model = match (&self.provider, &self.model) {
            (Some(provider), Some(model)) => Some(format!("{provider} {model}")),
            (None, model) => model.clone(),
            (Some(_), None) => None,
        };
        let session = self.session.as_ref();
        let session = session.map(|(word, name)| format!("{word}{name}"));
        let known = [
            self.custom.clone(),
            self.mode.clone(),
            self.latch.clone(),
            self.vi.clone(),
            self.place.clone(),
            model,
            session,
            self.context.clone(),
            self.cost.clone(),
            self.took.clone(),
            self.question.clone(),
            self.running.clone(),
        ];
        known.into_iter().flatten().collect()
    }

    fn styled(&self, app: &App) -> Vec<(String, Style)> {
        let palette = &app.theme.palette;
        let special = [
            (&self.custom, palette.text),
            (&self.mode, palette.warning),
            (&self.latch, palette.warning),
            (&self.vi, palette.accent),
            (&self.question, palette.warning),
        ];
        let style = |text: &String| {
            let found = special.iter().find(|(part, _)| part.as_ref() == Some(text));
            found.map_or(palette.dim, |(_, style)| *style)
        };
        let texts = self.texts().into_iter();
        texts.map(|text| (text.clone(), style(&text))).collect()
    }
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

/// Everything that is known: `cwd · provider model · session (turns) · running…`, and more.
fn parts(app: &App) -> Parts {
    let status = &app.status;
    let harmless = |text: &str| sanitise(text, Strength::Name).into_owned();
    let mode = match app.preferences.glyphs {
        Glyphs::Unicode => chip(&status.mode),
        Glyphs::Ascii => plain_chip(&status.mode),
    };
    let mut parts = Parts {
        custom: status.custom.as_deref().map(|text| custom(app, text)),
        mode: (!mode.is_empty()).then(|| mode.to_owned()),
        latch: latch(app),
        vi: app
            .editor
            .vi_state()
            .map(|state| harmless(vi_label(&state))),
        place: Some(harmless(&place(app))),
        ..Parts::default()
    };
    if let Some(facts) = &status.facts {
        parts.provider = Some(harmless(&facts.provider));
        parts.model = Some(harmless(&status.model));
        let name = harmless(app.name.as_deref().map_or("not saved", short));
        let turns = status.earlier.turns + u64::from(status.turns);
        parts.session = Some(("session: ", format!("{name} ({turns})")));
        if status.used > 0 && facts.context_window > 0 {
            let percent = status.used * 100 / facts.context_window;
            parts.context = Some(format!("{percent}% of context"));
        }
        if app.preferences.cost == Cost::Shown {
            parts.cost = Some(Dollars(status.earlier.cost + status.cost).to_string());
        }
    }
    // What waits for an answer does not run meanwhile.
    match (app.questions.is_empty(), &app.run, status.took) {
        (false, ..) => parts.question = Some("question waiting".to_owned()),
        (true, Some(_), _) => parts.running = Some(format!("running{}", app.theme.signs.more)),
        (true, None, Some(took)) => parts.took = Some(format!("{:.1} s", took.as_secs_f64())),
        (true, None, None) => {}
    }
    parts
}

/// What tells that bypass can be reached, as long as it can.
fn latch(app: &App) -> Option<String> {
    let is_told = app.latch == BypassLatch::On && app.status.mode != "bypassPermissions";
    let text = match app.preferences.glyphs {
        Glyphs::Unicode => "⚠ bypass latch",
        Glyphs::Ascii => "[bypass latch]",
    };
    is_told.then(|| text.to_owned())
}

/// The first line of what the operator's program printed.
fn custom(app: &App, text: &str) -> String {
    let status = app.preferences.status.as_ref();
    let gap = " ".repeat(status.map_or(0, |status| status.padding));
    let first = text.lines().next().unwrap_or_default();
    // However much it is, the other half of the line stays ours.
    let room = usize::from(app.width) / 2;
    let text = app.theme.cut(&sanitise(first, Strength::Name), room);
    format!("{gap}{text}{gap}")
}

/// Ids are told apart by their beginning.
pub(crate) fn short(name: &str) -> &str {
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

/// The folder that a path ends in, where there are several before it.
fn last_folder(place: String) -> String {
    match place.rsplit_once('/') {
        Some((before, last)) if before.contains('/') && !last.is_empty() => last.to_owned(),
        Some(_) | None => place,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn all() -> Parts {
        Parts {
            mode: Some("[plan]".to_owned()),
            place: Some("~/code/shop".to_owned()),
            provider: Some("anthropic".to_owned()),
            model: Some("claude-sonnet-4-6".to_owned()),
            session: Some(("session: ", "shop (2)".to_owned())),
            context: Some("4% of context".to_owned()),
            cost: Some("$0.0123".to_owned()),
            running: Some("running…".to_owned()),
            ..Parts::default()
        }
    }

    #[rstest]
    #[case(
        80,
        "The rule is written to `/home/somebody/work/.caliban/settings.toml`"
    )]
    #[case(60, "The rule is written to `…/work/.caliban/settings.toml`")]
    #[case(20, "The rule is written to `…/settings.toml`")]
    fn paths_lose_their_front_first(#[case] columns: usize, #[case] shown: &str) {
        let text = "The rule is written to `/home/somebody/work/.caliban/settings.toml`";
        assert_eq!(without_front(text, columns), shown);
    }

    #[rstest]
    #[case(
        120,
        "[plan] · ~/code/shop · anthropic claude-sonnet-4-6 · session: shop (2) · 4% of context · \
         $0.0123 · running…"
    )]
    #[case(
        100,
        "[plan] · shop · anthropic claude-sonnet-4-6 · session: shop (2) · 4% of context · $0.0123 · running…"
    )]
    #[case(
        80,
        "[plan] · shop · anthropic claude-sonnet-4-6 · 4% of context · $0.0123 · running…"
    )]
    #[case(60, "[plan] · shop · claude-sonnet-4-6 · 4% of context · running…")]
    #[case(40, "[plan] · claude-sonnet-4-6 · running…")]
    #[case(20, "[plan] · running…")]
    #[case(10, "running…")]
    #[case(1, "running…")]
    fn the_least_important_goes_first(#[case] columns: usize, #[case] line: &str) {
        let shown = fitting(all(), columns, 3);
        assert_eq!(shown.texts().join(" · "), line);
    }

    proptest! {
        #[test]
        fn a_line_fits_or_says_only_what_goes_on(columns in 0_usize..200) {
            let texts = fitting(all(), columns, 3).texts();
            let wanted = width(&texts.join(" · "));
            prop_assert!(wanted <= columns || texts == ["running…"]);
            prop_assert_eq!(texts.last().map(String::as_str), Some("running…"));
        }
    }
}
