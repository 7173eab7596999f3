//! Every key that needs trust, in a workspace with and without it.

use caliban_settings::{
    LoadRequest, LoadedSettings, Scope, Trust, TrustDecision, TrustStore, WorkspaceFiles, load,
};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::World;

/// Settings that run or loosen something, and the keys that must be left out.
fn loosening() -> Vec<(Value, Vec<String>)> {
    include_str!("loosening.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn keys(loaded: &LoadedSettings) -> Vec<&str> {
    loaded
        .ignored
        .iter()
        .map(|ignored| ignored.key.as_str())
        .collect()
}

#[rstest]
fn loosening_needs_trust(#[values(Scope::Project, Scope::Local)] scope: Scope) {
    for (settings, expected) in loosening() {
        let world = World::new();
        world.write_json(scope, &settings);

        let untrusted = world.load(TrustDecision::Recorded);
        assert_eq!(untrusted.trust, Trust::Untrusted);
        assert_eq!(keys(&untrusted), expected, "{settings}");
        assert_eq!(
            serde_json::to_value(&untrusted.settings).unwrap(),
            json!({}),
            "{settings} has an effect"
        );
        let notice = untrusted.trust_notice().unwrap();
        assert!(notice.contains("--trust-workspace"), "{notice}");
        assert!(
            expected.iter().all(|key| notice.contains(key.as_str())),
            "{notice}"
        );

        let trusted = world.load(TrustDecision::Granted);
        assert_eq!(keys(&trusted), Vec::<&str>::new(), "{settings}");
        assert_eq!(trusted.trust_notice(), None);
        let gone: Vec<&str> = vec!["permissions.enforce", "sandbox.enabled"];
        let is_null = settings.to_string().contains("null");
        assert!(
            serde_json::to_value(&trusted.settings).unwrap() != json!({})
                || (is_null && gone.contains(&expected[0].as_str())),
            "{settings} has no effect"
        );
    }
}

#[rstest]
fn the_user_and_the_operator_need_no_trust(#[values(Scope::Managed, Scope::User)] scope: Scope) {
    for (settings, _) in loosening() {
        let world = World::new();
        world.write_json(scope, &settings);
        let loaded = world.load(TrustDecision::Withheld);
        assert_eq!(keys(&loaded), Vec::<&str>::new(), "{settings}");
    }
}

#[rstest]
fn tightening_is_always_heard(#[values(Scope::Project, Scope::Local)] scope: Scope) {
    let settings = json!({
        "permissions": {
            "deny": ["Bash"], "ask": ["Read"], "default_mode": "plan", "enforce": true,
            "audit_log": true,
        },
        "sandbox": {
            "enabled": true, "fail_if_unavailable": true,
            "filesystem": {"deny_read": ["/x"], "deny_write": ["/y"]},
            "network": {"allowed_domains": []},
        },
        "mcp_servers": {"s": {"disabled": true}},
        "model": "m", "output_style": "o", "claude_md_excludes": ["v"],
    });
    let world = World::new();
    world.write_json(scope, &settings);
    let loaded = world.load(TrustDecision::Withheld);
    assert_eq!(keys(&loaded), Vec::<&str>::new());
    assert_eq!(serde_json::to_value(&loaded.settings).unwrap(), settings);
}

#[test]
fn bypass_and_trusted_directories_never_come_from_a_workspace() {
    for scope in [Scope::Project, Scope::Local] {
        let world = World::new();
        world.write_json(
            scope,
            &json!({"permissions": {"default_mode": "bypassPermissions"}, "trusted_directories": ["/"]}),
        );
        let loaded = world.load(TrustDecision::Granted);
        assert_eq!(loaded.settings, caliban_settings::Settings::default());
        assert_eq!(
            loaded
                .warnings
                .iter()
                .filter(|text| text.contains("does not count"))
                .count(),
            2
        );
        assert_eq!(world.load(TrustDecision::Recorded).trust, Trust::Untrusted);
    }
}

#[test]
fn a_project_cannot_loosen_the_users_plan_mode() {
    let world = World::new();
    world.write(Scope::User, "permissions.default_mode = 'plan'\n");
    world.write(Scope::Project, "permissions.default_mode = 'default'\n");
    let loaded = world.load(TrustDecision::Recorded);
    assert_eq!(
        loaded.settings.permissions.default_mode,
        Some(caliban_settings::PermissionMode::Plan)
    );
    assert_eq!(keys(&loaded), ["permissions.default_mode"]);
}

#[test]
fn an_untrusted_addition_to_a_server_of_the_users_is_left_out() {
    let world = World::new();
    world.write(Scope::User, "[mcp_servers.s]\ncommand = 'good'\n");
    world.write(
        Scope::Project,
        "[mcp_servers.s]\nargs = ['--evil']\n[mcp_servers.s.permissions]\ndeny = ['rm']\n",
    );
    let loaded = world.load(TrustDecision::Recorded);
    let server = &loaded.settings.mcp_servers["s"];
    assert_eq!((server.command.as_str(), server.args.len()), ("good", 0));
    assert_eq!(server.permissions.deny, ["rm"]);
}

#[test]
fn recorded_trust_ends_with_the_next_change() {
    let world = World::new();
    world.write(Scope::Project, "env.A = '1'\n");
    let store = TrustStore::new(world.locations.workspace_trust());
    store
        .grant(&WorkspaceFiles::read(&world.workspace, None))
        .unwrap();
    assert_eq!(world.load(TrustDecision::Recorded).trust, Trust::Trusted);
    world.write(Scope::Project, "env.A = '2'\n");
    let loaded = world.load(TrustDecision::Recorded);
    assert_eq!(loaded.trust, Trust::Untrusted);
    assert!(loaded.settings.env.is_empty());
    store
        .grant(&WorkspaceFiles::read(&world.workspace, None))
        .unwrap();
    assert_eq!(world.load(TrustDecision::Recorded).settings.env["A"], "2");
    assert_eq!(world.load(TrustDecision::Withheld).trust, Trust::Untrusted);
}

#[test]
fn the_router_file_is_part_of_what_is_trusted() {
    let world = World::new();
    let router = world.workspace.join("caliban.toml");
    std::fs::write(&router, "").unwrap();
    let request = LoadRequest {
        router_file: Some(router.clone()),
        ..world.request(TrustDecision::Recorded)
    };
    let store = TrustStore::new(world.locations.workspace_trust());
    let files = WorkspaceFiles::read(&world.workspace, Some(&router));
    store.grant(&files).unwrap();
    assert_eq!(load(&request).unwrap().trust, Trust::Trusted);
    std::fs::write(&router, "[provider.openai]\nbase_url = 'https://x'\n").unwrap();
    assert_eq!(load(&request).unwrap().trust, Trust::Untrusted);
}

#[test]
fn trusted_directories_of_the_user_and_the_operator_count() {
    for scope in [Scope::User, Scope::Managed] {
        let world = World::new();
        let directory = json!({"trusted_directories": [world.root.to_str().unwrap()]});
        world.write_json(scope, &directory);
        assert_eq!(world.load(TrustDecision::Recorded).trust, Trust::Trusted);
    }
    let world = World::new();
    let request = LoadRequest {
        overlay: Some(json!({"trusted_directories": ["/"]}).to_string()),
        ..world.request(TrustDecision::Recorded)
    };
    assert_eq!(load(&request).unwrap().trust, Trust::Untrusted);
}

#[cfg(unix)]
#[test]
fn a_workspace_reached_through_a_link_is_the_same_workspace() {
    let world = World::new();
    world.write(Scope::Project, "env.A = '1'\n");
    let link = world.root.join("link");
    std::os::unix::fs::symlink(&world.workspace, &link).unwrap();
    let store = TrustStore::new(world.locations.workspace_trust());
    store.grant(&WorkspaceFiles::read(&link, None)).unwrap();
    assert_eq!(world.load(TrustDecision::Recorded).trust, Trust::Trusted);
}

/// Keys that neither run nor loosen anything, wherever they are set.
const HARMLESS: [&str; 26] = [
    "$schema",
    "agent",
    "available_models",
    "auto_compact_threshold",
    "aws_auth_refresh",
    "claude_md_excludes",
    "claude_skills",
    "editor_mode",
    "effort",
    "fallback_model",
    "gcp_auth_refresh",
    "max_retries",
    "max_tokens",
    "max_turns",
    "micro_compact_enabled",
    "min_cache_block_tokens",
    "model",
    "model_overrides",
    "output_style",
    "parent_settings_behavior",
    // It does not count from here at all.
    "strict_plugin_only_customization",
    "tool_result_cap_chars",
    "tools",
    "trusted_directories",
    "tui",
    "view_mode",
];

#[test]
fn every_key_of_the_schema_is_either_gated_or_known_to_be_harmless() {
    let gated: Vec<String> = loosening()
        .into_iter()
        .flat_map(|(_, keys)| keys)
        .map(|key| key.split('.').next().unwrap().to_owned())
        .collect();
    let schema = caliban_settings::settings_schema();
    for key in schema["properties"].as_object().unwrap().keys() {
        let is_gated = gated.contains(key);
        assert_ne!(is_gated, HARMLESS.contains(&key.as_str()), "{key}");
    }
    let sandbox = &schema["$defs"]["Sandbox"]["properties"];
    for key in sandbox.as_object().unwrap().keys() {
        let start = format!("sandbox.{key}");
        let is_gated = loosening()
            .iter()
            .any(|(_, keys)| keys.iter().any(|key| key.starts_with(&start)));
        assert!(is_gated, "{start}");
    }
}

#[test]
fn a_locked_list_of_trusted_directories_is_the_operators_alone() {
    let world = World::new();
    world.write(
        Scope::Managed,
        "parent_settings_behavior = 'block'\ntrusted_directories = ['/nonsuch']\n",
    );
    world.write_json(Scope::User, &json!({"trusted_directories": ["/"]}));
    assert_eq!(world.load(TrustDecision::Recorded).trust, Trust::Untrusted);
}

#[test]
fn the_servers_of_mcp_json_need_trust_and_give_way_to_the_settings() {
    let world = World::new();
    let shared = r#"{"mcpServers": {"a": {"command": "theirs"}, "b": {"url": "http://h/mcp"}}}"#;
    std::fs::write(world.workspace.join(".mcp.json"), shared).unwrap();
    world.write_json(
        Scope::Project,
        &json!({"mcp_servers": {"a": {"command": "ours"}}}),
    );
    let untrusted = world.load(TrustDecision::Withheld);
    assert_eq!(untrusted.settings.mcp_servers.len(), 0);
    assert_eq!(
        keys(&untrusted),
        [
            "mcp_servers.a.command",
            "mcp_servers.b.url",
            "mcp_servers.b.type"
        ]
    );
    let trusted = world.load(TrustDecision::Granted);
    let servers = &trusted.settings.mcp_servers;
    assert_eq!(servers["a"].command, "ours");
    assert_eq!(servers["b"].url.as_deref(), Some("http://h/mcp"));
    assert!(
        trusted
            .files
            .iter()
            .any(|file| file.loaded && file.path.ends_with(".mcp.json"))
    );
}
