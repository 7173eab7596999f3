//! Shows an address to the person at the desktop, if there is a desktop.

use std::process::{Command, Stdio};

use caliban_harness::Configuration;
use caliban_settings::variables::Environment;
use url::Url;

/// Whether a browser is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    Wanted,
    Left,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opened {
    /// A program was asked to open the address.
    Asked,
    Nothing,
}

/// The address is an argument, never part of a command line, and of a kind that only browsers
/// open.
pub(crate) fn open(url: &Url, opening: Opening, configuration: &Configuration) -> Opened {
    let is_web = matches!(url.scheme(), "https" | "http");
    if opening == Opening::Left || !is_web || !has_desktop(configuration.environment()) {
        return Opened::Nothing;
    }
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let started = Command::new(program)
        .arg(url.as_str())
        .env_clear()
        .envs(configuration.child_environment())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match started {
        Ok(_) => Opened::Asked,
        Err(_) => Opened::Nothing,
    }
}

/// Without a desktop, openers start a browser in the terminal.
fn has_desktop(environment: &Environment) -> bool {
    cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| environment.text(name).is_some())
}
