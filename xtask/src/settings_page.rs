//! The reference page of settings, from their schema.

use std::fmt::Write;

pub(crate) fn page() -> String {
    let mut text = "# Settings\n\nEvery key of `settings.toml`, from the schema that editors can \
                    check files with (`crates/caliban-settings/schema/settings.schema.json`). This \
                    page is written by `cargo xtask docs`; the chapter on \
                    [settings](../settings.md) explains scopes and trust.\n\n| key | type | |\n| \
                    --- | --- | --- |\n"
        .to_owned();
    for described in caliban_settings::described_keys() {
        let about = described.about.replace('|', "\\|");
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {about} |",
            described.key, described.kind
        );
    }
    text
}
