//! Which files are read, which are ignored, and what is said about it.

use std::fs;

use caliban_settings::{LoadRequest, Scope, SettingsError, TrustDecision, load};
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::World;

const ON_DISK: [Scope; 4] = Scope::ON_DISK;

#[test]
fn toml_wins_over_json_with_a_warning() {
    for scope in ON_DISK {
        let world = World::new();
        world.write(scope, "model = 'toml'\n");
        fs::write(world.json(scope), "{\"model\": \"json\"} broken").unwrap();
        let loaded = world.load(TrustDecision::Recorded);
        assert_eq!(loaded.settings.model.unwrap().name(), "toml");
        assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
        assert!(
            loaded.warnings[0].contains("is ignored because"),
            "{:?}",
            loaded.warnings
        );
        let reports: Vec<_> = loaded
            .files
            .iter()
            .filter(|file| file.scope == scope)
            .map(|file| {
                (
                    file.path.extension().unwrap().to_str().unwrap(),
                    file.loaded,
                )
            })
            .collect();
        assert_eq!(reports, [("json", false), ("toml", true)]);
    }
}

#[test]
fn json_alone_is_read_with_a_warning_and_may_have_comments() {
    let world = World::new();
    fs::write(
        world.json(Scope::User),
        "{\n  // why\n  \"model\": \"json\", /* and */\n}",
    )
    .unwrap();
    let loaded = world.load(TrustDecision::Recorded);
    assert_eq!(loaded.settings.model.unwrap().name(), "json");
    assert_eq!(
        world.warnings(),
        [
            "`/home/.config/caliban/settings.json` is read, but TOML is preferred; run `caliban settings import --from /home/.config/caliban/settings.json --scope user`"
        ]
    );
}

#[test]
fn nothing_at_all_is_fine() {
    let world = World::new();
    let loaded = world.load(TrustDecision::Recorded);
    assert_eq!(loaded.settings, caliban_settings::Settings::default());
    assert_eq!((loaded.warnings.len(), loaded.files.len()), (0, 4));
    assert!(loaded.files.iter().all(|file| !file.loaded));
}

#[test]
fn sources_restrict_what_is_read_but_not_the_overlay_nor_the_operator() {
    let world = World::new();
    for scope in ON_DISK {
        world.write(scope, &format!("of_{scope} = 'x'\n"));
    }
    let request = LoadRequest {
        sources: "user,project".parse().unwrap(),
        overlay: Some("{\"of_cli\": \"x\"}".to_owned()),
        ..world.request(TrustDecision::Recorded)
    };
    let loaded = load(&request).unwrap();
    let names: Vec<_> = loaded.settings.extra.keys().collect();
    assert_eq!(names, ["of_managed", "of_user", "of_project", "of_cli"]);
}

#[test]
fn an_unread_scope_may_be_broken() {
    let world = World::new();
    world.write(Scope::Project, "broken =\n");
    let request = LoadRequest {
        sources: "user".parse().unwrap(),
        ..world.request(TrustDecision::Recorded)
    };
    assert!(load(&request).is_ok());
}

#[rstest]
#[case("{\"model\": \"o\"}", Some("o"))]
#[case("  {\"model\": \"o\"} // fine", Some("o"))]
#[case("{\"model\": ", None)]
#[case("model=o", None)]
#[case("/nonsuch/s.toml", None)]
#[case("", None)]
fn overlays_are_json_or_files(#[case] overlay: &str, #[case] expected: Option<&str>) {
    let world = World::new();
    let request = LoadRequest {
        overlay: Some(overlay.to_owned()),
        ..world.request(TrustDecision::Recorded)
    };
    let model = load(&request)
        .ok()
        .map(|loaded| loaded.settings.model.unwrap().name().to_owned());
    assert_eq!(model.as_deref(), expected, "{overlay}");
}

#[test]
fn an_overlay_file_may_be_toml_or_json() {
    let world = World::new();
    for (name, text) in [("o.toml", "model = 'o'"), ("o.json", "{\"model\": \"o\"}")] {
        let path = world.root.join(name);
        fs::write(&path, text).unwrap();
        let request = LoadRequest {
            overlay: Some(path.to_str().unwrap().to_owned()),
            ..world.request(TrustDecision::Recorded)
        };
        let loaded = load(&request).unwrap();
        assert_eq!(loaded.settings.model.unwrap().name(), "o");
        let report = loaded.files.last().unwrap();
        assert_eq!(
            (report.scope, report.path.as_path(), report.loaded),
            (Scope::Cli, path.as_path(), true)
        );
    }
}

#[test]
fn legacy_files_count_scope_by_scope() {
    let world = World::new();
    let user = world
        .locations
        .legacy(Scope::User, &world.workspace)
        .unwrap();
    let project = world
        .locations
        .legacy(Scope::Project, &world.workspace)
        .unwrap();
    fs::write(&user.hooks, "[[hooks.Stop]]\nmatcher = 'user'\n").unwrap();
    fs::write(
        &user.mcp,
        "[server.s]\ntransport = 'http'\nurl = 'https://user'\n",
    )
    .unwrap();
    fs::write(&project.hooks, "[[hooks.Stop]]\nmatcher = 'legacy'\n").unwrap();
    fs::write(
        &project.permissions,
        "[[permissions.rules]]\npattern = 'L'\naction = 'deny'\n",
    )
    .unwrap();
    world.write(
        Scope::Project,
        "[[hooks.Stop]]\nmatcher = 'project'\n[permissions]\ndeny = ['S']\nenforce = true\n",
    );
    let loaded = world.load(TrustDecision::Granted);
    let matchers: Vec<_> = loaded.settings.hooks["Stop"]
        .iter()
        .map(|hook| &hook["matcher"])
        .collect();
    assert_eq!(matchers, ["user", "project"]);
    assert_eq!(
        loaded.settings.mcp_servers["s"].url.as_deref(),
        Some("https://user")
    );
    let permissions = &loaded.settings.permissions;
    assert_eq!(permissions.rules[0].pattern, "L");
    assert_eq!(
        (permissions.deny.len(), permissions.enforce),
        (0, Some(true))
    );
    assert_eq!(
        world.warnings(),
        [
            "/home/.config/caliban/mcp.toml: this file is deprecated; run `caliban config migrate`",
            "/home/.config/caliban/hooks.toml: this file is deprecated; run `caliban config migrate`",
            "/repo/.caliban/hooks.toml: `hooks` ignored, because the settings of the same scope set it; this file is deprecated; run `caliban config migrate`",
            "/repo/.caliban/permissions.toml: this file replaces `permissions.deny` of the settings of the same scope; this file is deprecated; run `caliban config migrate`",
        ]
    );
}

#[test]
fn legacy_files_are_gated_like_the_settings() {
    let world = World::new();
    let legacy = world
        .locations
        .legacy(Scope::Project, &world.workspace)
        .unwrap();
    fs::write(&legacy.hooks, "[[hooks.Stop]]\nmatcher = '*'\n").unwrap();
    fs::write(&legacy.mcp, "[server.s]\ncommand = 'x'\n").unwrap();
    fs::write(
        &legacy.permissions,
        "[permissions]\nallow = ['*']\ndeny = ['D']\n",
    )
    .unwrap();
    let loaded = world.load(TrustDecision::Recorded);
    let settings = serde_json::to_value(&loaded.settings).unwrap();
    assert_eq!(settings, json!({"permissions": {"deny": ["D"]}}));
}

#[test]
fn both_spellings_merge_across_scopes() {
    let world = World::new();
    world.write_json(
        Scope::User,
        &json!({"statusLine": {"command": "u"}, "claudeMdExcludes": ["u"]}),
    );
    world.write(
        Scope::Local,
        "claude_md_excludes = ['l']\n[status_line]\ncommand = 'l'\n",
    );
    let loaded = world.load(TrustDecision::Granted);
    assert_eq!(loaded.settings.status_line.unwrap().command, "l");
    assert_eq!(loaded.settings.claude_md_excludes, ["u", "l"]);
}

#[cfg(unix)]
#[test]
fn a_project_file_that_leads_elsewhere_is_refused() {
    let world = World::new();
    let outside = world.root.join("outside.toml");
    fs::write(&outside, "model = 'outside'\n").unwrap();
    std::os::unix::fs::symlink(&outside, world.toml(Scope::Project)).unwrap();
    let loaded = world.load(TrustDecision::Granted);
    assert_eq!(loaded.settings.model, None);
    assert_eq!(
        world.warnings(),
        [
            "`/repo/.caliban/settings.toml` is not read because it leads out of the workspace, to `/outside.toml`"
        ]
    );
}

#[cfg(unix)]
#[test]
fn files_that_are_none_stop_the_run() {
    let world = World::new();
    fs::create_dir(world.toml(Scope::User)).unwrap();
    assert!(matches!(world.error(), SettingsError::NotAFile { .. }));
    fs::remove_dir(world.toml(Scope::User)).unwrap();
    fs::write(world.toml(Scope::Local), "#".repeat(1024 * 1024 + 1)).unwrap();
    assert!(matches!(world.error(), SettingsError::TooLarge { .. }));
}

#[test]
fn print_shows_settings_scopes_files_and_warnings() {
    let world = World::new();
    world.write(Scope::User, "model = 'u'\n[permissions]\ndeny = ['A']\n");
    world.write(
        Scope::Project,
        "[permissions]\ndeny = ['B']\n[env]\nX = '1'\n",
    );
    let printed = world.load(TrustDecision::Recorded).to_print_json();
    let keys: Vec<_> = printed.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["settings", "scopes", "files", "warnings"]);
    assert_eq!(
        printed["settings"],
        json!({"model": "u", "permissions": {"deny": ["A", "B"]}})
    );
    assert_eq!(
        printed["scopes"],
        json!({"model": "user", "permissions": "project", "permissions.deny": "project"})
    );
    let files: Vec<Value> = printed["files"].as_array().unwrap().clone();
    let project = world.toml(Scope::Project);
    assert!(files.contains(&json!({"scope": "project", "path": project, "loaded": true})));
    let warning = printed["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains("`env`") && warning.contains("--trust-workspace"),
        "{warning}"
    );
}
