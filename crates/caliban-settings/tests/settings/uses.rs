//! Whatever can be set does something, or is in the table of what does not yet.

use std::fs;
use std::path::{Path, PathBuf};

use caliban_settings::settings_schema;
use caliban_settings::variables::VARIABLES;
use serde_json::Value;

/// Where each key is read, from the root of the repository. A key that is new stands here or in
/// the table of parts that are not there.
const READ_IN: &[(&str, &str)] = &[
    ("$schema", "crates/caliban-settings/src/document/names.rs"),
    ("agent", "crates/caliban-harness/src/choosing.rs"),
    ("aws_auth_refresh", "crates/caliban-harness/src/provider.rs"),
    (
        "aws_auth_refresh_command",
        "crates/caliban-harness/src/provider.rs",
    ),
    (
        "aws_credential_export",
        "crates/caliban-harness/src/provider.rs",
    ),
    ("fleet", "caliban/src/fleet/world.rs"),
    ("gcp_auth_refresh", "crates/caliban-harness/src/provider.rs"),
    (
        "gcp_auth_refresh_command",
        "crates/caliban-harness/src/provider.rs",
    ),
    ("plugins", "crates/caliban-harness/src/plugins/mod.rs"),
    (
        "strict_plugin_only_customization",
        "crates/caliban-harness/src/plugins/mod.rs",
    ),
    ("worktree", "crates/caliban-harness/src/grounds.rs"),
    (
        "additional_directories",
        "crates/caliban-harness/src/choosing.rs",
    ),
    (
        "allow_managed_hooks_only",
        "crates/caliban-hooks/src/config/mod.rs",
    ),
    (
        "allowed_http_hook_urls",
        "crates/caliban-hooks/src/config/mod.rs",
    ),
    ("api_key_helper", "crates/caliban-harness/src/provider.rs"),
    (
        "available_models",
        "crates/caliban-harness/src/model_list.rs",
    ),
    (
        "auto_compact_threshold",
        "crates/caliban-harness/src/agent_settings.rs",
    ),
    (
        "claude_md_excludes",
        "crates/caliban-harness/src/additions.rs",
    ),
    ("claude_skills", "crates/caliban-harness/src/additions.rs"),
    (
        "disable_all_hooks",
        "crates/caliban-hooks/src/config/mod.rs",
    ),
    (
        "disable_auto_mode",
        "crates/caliban-harness/src/permissions.rs",
    ),
    ("editor_mode", "caliban/src/interactive/preferences.rs"),
    ("effort", "crates/caliban-harness/src/agent_settings.rs"),
    ("enable_telemetry", "crates/caliban-telemetry/src/config.rs"),
    ("env", "crates/caliban-harness/src/configuration.rs"),
    ("fallback_model", "crates/caliban-harness/src/routes.rs"),
    ("feedback_url", "crates/caliban-harness/src/feedback.rs"),
    ("hooks", "crates/caliban-hooks/src/config/mod.rs"),
    (
        "http_hook_allowed_env_vars",
        "crates/caliban-hooks/src/config/mod.rs",
    ),
    ("max_retries", "crates/caliban-harness/src/provider.rs"),
    ("max_tokens", "crates/caliban-harness/src/choosing.rs"),
    ("max_turns", "crates/caliban-harness/src/choosing.rs"),
    ("mcp_servers", "crates/caliban-harness/src/mcp.rs"),
    ("memory", "crates/caliban-harness/src/additions.rs"),
    (
        "micro_compact_enabled",
        "crates/caliban-settings/src/types/mod.rs",
    ),
    (
        "min_cache_block_tokens",
        "crates/caliban-settings/src/types/mod.rs",
    ),
    ("model", "crates/caliban-harness/src/provider.rs"),
    (
        "model_overrides",
        "crates/caliban-harness/src/agent_settings.rs",
    ),
    ("output_style", "crates/caliban-harness/src/additions.rs"),
    (
        "parent_settings_behavior",
        "crates/caliban-settings/src/load.rs",
    ),
    ("permissions", "crates/caliban-harness/src/permissions.rs"),
    ("router", "crates/caliban-harness/src/routes.rs"),
    ("sandbox", "crates/caliban-harness/src/sandbox.rs"),
    ("statusLine", "caliban/src/interactive/preferences.rs"),
    ("telemetry", "crates/caliban-telemetry/src/config.rs"),
    (
        "tool_result_cap_chars",
        "crates/caliban-settings/src/types/mod.rs",
    ),
    ("tools", "crates/caliban-harness/src/mcp.rs"),
    ("trusted_directories", "crates/caliban-settings/src/load.rs"),
    ("tui", "caliban/src/interactive/preferences.rs"),
    ("view_mode", "caliban/src/interactive/preferences.rs"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_key_is_read_somewhere() {
    let schema = settings_schema();
    let known: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    for key in &known {
        let readers: Vec<_> = READ_IN.iter().filter(|(read, _)| read == key).collect();
        match readers.as_slice() {
            [] => panic!("`{key}` is read nowhere"),
            [(_, file), ..] => {
                let text = fs::read_to_string(root().join(file)).unwrap_or_default();
                let word = match key.as_str() {
                    "auto_compact_threshold" => "compaction_threshold",
                    "statusLine" => "status_line",
                    word => word,
                };
                assert!(text.contains(word), "{file} does not read `{key}`");
            }
        }
    }
    for (key, _) in READ_IN {
        assert!(known.iter().any(|known| known == key), "`{key}` is no key");
    }
}

fn sources(directory: &Path, found: &mut String) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("variables/table.rs")
            && !path.ends_with("settings/src/unbuilt.rs")
        {
            found.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_variable_is_read_somewhere() {
    let mut text = String::new();
    for package in fs::read_dir(root().join("crates")).unwrap().flatten() {
        let source = package.path().join("src");
        if source.is_dir() {
            sources(&source, &mut text);
        }
    }
    sources(&root().join("caliban/src"), &mut text);
    for variable in VARIABLES {
        let is_read = text.contains(&format!("names::{}", variable.name))
            || text.contains(&format!("\"{}\"", variable.name));
        assert!(is_read, "`{}` does nothing", variable.name);
    }
}

#[test]
fn the_tables_of_single_parts_are_read_or_wait_as_a_whole() {
    let schema = settings_schema();
    let resolve = |value: &Value| -> Value {
        let target = value["$ref"]
            .as_str()
            .map(|path| path.trim_start_matches('#'));
        target.map_or_else(
            || value.clone(),
            |path| schema.pointer(path).unwrap().clone(),
        )
    };
    for (table, file) in [
        ("memory", "crates/caliban-harness/src/additions.rs"),
        ("tools", "crates/caliban-harness/src/mcp.rs"),
        ("permissions", "crates/caliban-harness/src/permissions.rs"),
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let types =
            fs::read_to_string(root().join("crates/caliban-settings/src/types/permissions.rs"))
                .unwrap();
        let keys = resolve(&schema["properties"][table]);
        for key in keys["properties"].as_object().unwrap().keys() {
            let is_read = text.contains(key.as_str()) || types.contains(&format!("self.{key}"));
            assert!(is_read, "`{table}.{key}` does nothing");
        }
    }
}
