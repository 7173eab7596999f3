//! What the settings say about the face.

use std::time::Duration;

use caliban_compose::KeySet;
use caliban_harness::Configuration;
use caliban_settings::variables::names;
use caliban_settings::{EditorMode, ViewMode};
use caliban_tui::{
    Cost, CustomTheme, Diffs, Glyphs, Lines, Motion, Mouse, Notify, OnExit, Preferences, Screen,
    StatusCommand, ThemeChoice, View,
};
use serde_json::Value;

use super::themes;

/// How long the status program may take where nothing is said.
const PATIENCE: Duration = Duration::from_secs(1);

/// Values of `tui` that make no sense are left out: the schema of the settings says so already.
pub(super) fn of(configuration: &Configuration) -> Preferences {
    let settings = configuration.settings();
    let tui = |key: &str| settings.tui.extra.get(key);
    let word = |key: &str| tui(key).and_then(Value::as_str);
    let usual = Preferences::default();
    let (custom_theme, faults) = custom_theme(tui("theme"), configuration);
    Preferences {
        keys: match settings.editor_mode {
            Some(EditorMode::Vim) => KeySet::Vi,
            Some(EditorMode::Emacs) | None => KeySet::Emacs,
        },
        bindings: bindings(tui("keys")),
        screen: match word("screen") {
            Some("inline") => Some(Screen::Inline),
            Some("fullscreen") => Some(Screen::Fullscreen),
            Some(_) | None => None,
        }
        .filter(|_| {
            configuration
                .environment()
                .text(names::CALIBAN_TUI)
                .is_none()
        }),
        lines: if word("screen") == Some("plain") || tui("screen_reader") == Some(&true.into()) {
            Lines::Wanted
        } else {
            Lines::Unwanted
        },
        view: match settings.view_mode {
            Some(ViewMode::Expanded) => View::Expanded,
            Some(ViewMode::Compact) | None => View::Compact,
        },
        diffs: match word("diff") {
            Some("unified") => Diffs::BelowEachOther,
            Some(_) | None => Diffs::BesideEachOther,
        },
        theme: word("theme")
            .and_then(ThemeChoice::named)
            .unwrap_or(ThemeChoice::Auto),
        custom_theme,
        faults,
        motion: match word("motion") {
            Some("none") => Motion::None,
            Some(_) | None => Motion::Usual,
        },
        glyphs: match word("glyphs") {
            Some("ascii") => Glyphs::Ascii,
            Some(_) | None => Glyphs::Unicode,
        },
        mouse: match word("mouse") {
            Some("on") => Mouse::On,
            Some(_) | None => Mouse::Off,
        },
        on_exit: match word("on_exit") {
            Some("last") => OnExit::Last,
            Some("none") => OnExit::None,
            Some(_) | None => OnExit::Transcript,
        },
        notify: match word("notify") {
            Some("bell") => Notify::Bell,
            Some("off") => Notify::Off,
            Some(_) | None => usual.notify,
        },
        cost: match settings.tui.show_cost_in_statusline {
            Some(true) => Cost::Shown,
            Some(false) | None => Cost::Hidden,
        },
        status: settings.status_line.as_ref().map(|status| StatusCommand {
            command: status.command.clone(),
            patience: status.timeout_ms.map_or(PATIENCE, Duration::from_millis),
            padding: status
                .padding
                .and_then(|padding| usize::try_from(padding).ok())
                .unwrap_or_default(),
        }),
        files: tui("files")
            .and_then(|files| files.get("command"))
            .and_then(Value::as_str)
            .map(ToOwned::to_owned),
    }
}

/// The theme that is not built in: a table of the settings, or a file that they name.
fn custom_theme(
    theme: Option<&Value>,
    configuration: &Configuration,
) -> (Option<CustomTheme>, Vec<String>) {
    let read = match theme {
        Some(Value::Object(values)) => Ok(CustomTheme::read(values, "tui.theme")),
        Some(Value::String(name)) if ThemeChoice::named(name).is_none() => {
            themes::named(name, configuration.locations.config_dir())
        }
        Some(_) | None => return (None, Vec::new()),
    };
    match read {
        Ok((theme, faults)) => (Some(theme), faults),
        Err(problem) => (None, vec![format!("`tui.theme`: {problem}")]),
    }
}

fn bindings(keys: Option<&Value>) -> Vec<(String, String)> {
    let keys = keys.and_then(Value::as_object).into_iter().flatten();
    keys.filter_map(|(key, action)| Some((key.clone(), action.as_str()?.to_owned())))
        .collect()
}
