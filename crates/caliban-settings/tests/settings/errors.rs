//! What a user sees when a settings file is wrong.

use std::fs;

use caliban_settings::{LoadRequest, Scope, SettingsError, TrustDecision, load};

use crate::support::World;

#[test]
fn a_syntax_error_in_toml() {
    let world = World::new();
    world.write(Scope::User, "model = \"m\"\n[permissions\ndeny = []\n");
    assert!(matches!(world.error(), SettingsError::Syntax(_)));
    assert_eq!(
        world.failure(),
        "\
/home/.config/caliban/settings.toml:2:13: unclosed table, expected `]`
  |
2 | [permissions
  |             ^"
    );
}

#[test]
fn a_syntax_error_in_json() {
    let world = World::new();
    fs::write(
        world.json(Scope::Project),
        "{\n  \"model\": \"m\"\n  \"effort\": \"low\"\n}",
    )
    .unwrap();
    assert!(matches!(world.error(), SettingsError::Syntax(_)));
    let failure = world.failure();
    assert!(
        failure.starts_with("/repo/.caliban/settings.json:"),
        "{failure}"
    );
    assert!(failure.contains("expected comma"), "{failure}");
}

#[test]
fn a_wrong_type() {
    let world = World::new();
    world.write(
        Scope::Project,
        "# project\n[permissions]\ndeny = \"Bash\"\n",
    );
    assert!(matches!(world.error(), SettingsError::Type(_)));
    assert_eq!(
        world.failure(),
        "\
/repo/.caliban/settings.toml:3:8: `permissions.deny`: invalid type: string \"Bash\", expected a list
  |
3 | deny = \"Bash\"
  |        ^^^^^^"
    );
}

#[test]
fn a_wrong_type_that_a_higher_scope_hides() {
    let world = World::new();
    world.write(Scope::Managed, "tool_result_cap_chars = true\n");
    world.write(Scope::User, "tool_result_cap_chars = 5\n");
    let error = world.error();
    let fault = error.fault().unwrap();
    assert_eq!((fault.line, fault.column), (1, 25));
    assert!(fault.origin.ends_with("managed-settings.toml"));
}

#[test]
fn values_out_of_range() {
    for (text, line, message) in [
        (
            "[statusLine]\ncommand = 's'\ntimeout_ms = 49\n",
            3,
            "must be between 50 and 5000, not 49",
        ),
        (
            "[statusLine]\ncommand = 's'\ntimeout_ms = 5001\n",
            3,
            "must be between 50 and 5000, not 5001",
        ),
        (
            "[statusLine]\ncommand = 's'\npadding = 9\n",
            3,
            "must be between 0 and 8, not 9",
        ),
        (
            "statusLine = { padding = 1 }\n",
            1,
            "missing field `command`",
        ),
        (
            "auto_compact_threshold = 1.5\n",
            1,
            "must be between 0 and 1, not 1.5",
        ),
        (
            "auto_compact_threshold = -1\n",
            1,
            "must be between 0 and 1, not -1",
        ),
        (
            "effort = 'huge'\n",
            1,
            "unknown variant `huge`, expected one of `low`, `medium`, `high`, `max`, `auto`",
        ),
        (
            "[permissions]\ndefault_mode = 'yolo'\n",
            2,
            "unknown variant `yolo`, expected one of `plan`, `default`, `acceptEdits`, `auto`, `dontAsk`, `bypassPermissions`",
        ),
        (
            "[[permissions.rules]]\npattern = 'B'\naction = 'maybe'\n",
            3,
            "unknown variant `maybe`, expected one of `allow`, `ask`, `deny`",
        ),
        (
            "[model]\nprovider = 'acme'\nname = 'm'\n",
            2,
            "unknown provider `acme`; use anthropic, openai, google, ollama, bedrock, vertex or azure",
        ),
        ("[mcp_servers.s]\nargs = ['x']\n", 1, "needs a `command`"),
        (
            "[mcp_servers.s]\nurl = 'https://x'\n",
            1,
            "has a `url`; add `type = \"http\"` or `type = \"sse\"`",
        ),
        (
            "[mcp_servers.s]\ntype = 'http'\nurl = 'file:///x'\n",
            1,
            "has a `url` that is neither http nor https: `file:///x`",
        ),
        (
            "[sandbox.network]\nhttp_proxy_port = 70000\n",
            2,
            "must be between 1 and 65535, not 70000",
        ),
        (
            "parent_settings_behavior = 'on'\n",
            1,
            "unknown variant `on`, expected `block` or `augment`",
        ),
    ] {
        let world = World::new();
        world.write(Scope::User, text);
        let error = world.error();
        assert!(matches!(error, SettingsError::Value(_)), "{error:?}");
        let fault = error.fault().unwrap();
        assert_eq!(fault.message, message);
        assert_eq!(fault.line, line, "{fault}");
    }
}

#[test]
fn an_error_found_after_merging_names_its_file() {
    let world = World::new();
    world.write(Scope::User, "[mcp_servers.s]\ncommand = 'x'\n");
    world.write(Scope::Local, "\n\n[mcp_servers.s]\ntype = 'http'\n");
    let request = world.request(TrustDecision::Granted);
    let error = load(&request).unwrap_err();
    assert_eq!(error.fault().unwrap().message, "needs a `url`");
    assert!(error.fault().unwrap().origin.ends_with("settings.toml"));
}

#[test]
fn an_unknown_key_in_a_policy() {
    let world = World::new();
    world.write(Scope::Managed, "[permissions]\ndenny = [\"Bash\"]\n");
    assert!(matches!(world.error(), SettingsError::UnknownKey(_)));
    assert_eq!(
        world.failure(),
        "\
/managed/managed-settings.toml:2:1: `permissions.denny`: unknown key
  |
2 | denny = [\"Bash\"]
  | ^^^^^
  = did you mean `deny`?"
    );
}

#[test]
fn an_unknown_key_elsewhere_is_a_warning() {
    let world = World::new();
    world.write(Scope::User, "outputstyle = 'x'\n");
    let loaded = world.load(TrustDecision::Recorded);
    assert_eq!(loaded.settings.extra["outputstyle"], "x");
    assert_eq!(
        world.warnings(),
        [
            "/home/.config/caliban/settings.toml:1:1: unknown key `outputstyle`; did you mean `output_style`?"
        ]
    );
}

#[test]
fn the_overlay_is_named_in_errors() {
    let world = World::new();
    let request = LoadRequest {
        overlay: Some("{\"effort\": 5}".to_owned()),
        ..world.request(TrustDecision::Recorded)
    };
    assert_eq!(
        load(&request).unwrap_err().to_string(),
        "\
--settings:1:12: `effort`: invalid type: integer `5`, expected string or map
  |
1 | {\"effort\": 5}
  |            ^"
    );
}
