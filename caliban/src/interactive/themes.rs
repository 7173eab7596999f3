//! Themes of the operator's own: files beside the settings, and a table in them.

use std::path::Path;

use caliban_tui::CustomTheme;
use serde_json::{Map, Value};

/// The longest file that is read, in bytes: a theme is a page.
const LARGEST: u64 = 64 << 10;

/// A theme, and what of it cannot be used.
pub(super) type Read = (CustomTheme, Vec<String>);

/// Reads `themes/NAME.toml` of a directory; the error says what to do.
pub(super) fn named(name: &str, config: &Path) -> Result<Read, String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err("names have letters, digits, `-` and `_` only".to_owned());
    }
    let path = config.join("themes").join(format!("{name}.toml"));
    let place = path.display();
    let told = |error: &dyn std::fmt::Display| format!("`{place}`: {error}");
    let length = std::fs::metadata(&path).map_err(|error| {
        format!("`{place}`: {error}; write it, or use auto, dark, light, colour-blind or none")
    })?;
    if length.len() > LARGEST {
        return Err(told(&format!("it is longer than {LARGEST} bytes")));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| told(&error))?;
    let values: Map<String, Value> = toml::from_str(&text).map_err(|error| told(&error))?;
    Ok(CustomTheme::read(&values, &place.to_string()))
}
