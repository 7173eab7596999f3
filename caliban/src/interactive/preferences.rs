//! What the settings say about the face.

use std::time::Duration;

use caliban_compose::KeySet;
use caliban_harness::Configuration;
use caliban_settings::variables::names;
use caliban_settings::{
    EditorMode, TuiDiff, TuiGlyphs, TuiMotion, TuiMouse, TuiNotify, TuiOnExit, TuiScreen, ViewMode,
};
use caliban_tui::{
    Cost, CustomTheme, Diffs, Glyphs, Lines, Motion, Mouse, Notify, OnExit, Preferences, Screen,
    StatusCommand, ThemeChoice, View,
};
use serde_json::Value;

use super::themes;

/// How long the status program may take where nothing is said.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn of(configuration: &Configuration) -> Preferences {
    let settings = configuration.settings();
    let tui = &settings.tui;
    let usual = Preferences::default();
    let (custom_theme, faults) = custom_theme(tui.theme.as_ref(), configuration);
    Preferences {
        keys: match settings.editor_mode {
            Some(EditorMode::Vim) => KeySet::Vi,
            Some(EditorMode::Emacs) | None => KeySet::Emacs,
        },
        bindings: tui.keys.clone().into_iter().collect(),
        screen: match tui.screen {
            Some(TuiScreen::Inline) => Some(Screen::Inline),
            Some(TuiScreen::Fullscreen) => Some(Screen::Fullscreen),
            Some(TuiScreen::Plain) | None => None,
        }
        .filter(|_| {
            configuration
                .environment()
                .text(names::CALIBAN_TUI)
                .is_none()
        }),
        lines: if tui.screen == Some(TuiScreen::Plain) || tui.screen_reader == Some(true) {
            Lines::Wanted
        } else {
            Lines::Unwanted
        },
        view: match settings.view_mode {
            Some(ViewMode::Expanded) => View::Expanded,
            Some(ViewMode::Compact) | None => View::Compact,
        },
        diffs: match tui.diff {
            Some(TuiDiff::Unified) => Diffs::BelowEachOther,
            Some(TuiDiff::Auto) | None => Diffs::BesideEachOther,
        },
        theme: tui
            .theme
            .as_ref()
            .and_then(Value::as_str)
            .and_then(ThemeChoice::named)
            .unwrap_or(ThemeChoice::Auto),
        custom_theme,
        faults,
        motion: match tui.motion {
            Some(TuiMotion::None) => Motion::None,
            Some(TuiMotion::Usual) | None => Motion::Usual,
        },
        glyphs: match tui.glyphs {
            Some(TuiGlyphs::Ascii) => Glyphs::Ascii,
            Some(TuiGlyphs::Unicode) | None => Glyphs::Unicode,
        },
        mouse: match tui.mouse {
            Some(TuiMouse::On) => Mouse::On,
            Some(TuiMouse::Off) | None => Mouse::Off,
        },
        on_exit: match tui.on_exit {
            Some(TuiOnExit::Last) => OnExit::Last,
            Some(TuiOnExit::None) => OnExit::None,
            Some(TuiOnExit::Transcript) | None => OnExit::Transcript,
        },
        notify: match tui.notify {
            Some(TuiNotify::Bell) => Notify::Bell,
            Some(TuiNotify::Off) => Notify::Off,
            Some(TuiNotify::Terminal) | None => usual.notify,
        },
        cost: match tui.show_cost_in_statusline {
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
        files: tui.files.as_ref().and_then(|files| files.command.clone()),
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
