//! Settings that change under a running program.

use std::fs;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use caliban_settings::{
    Change, Consent, LiveSettings, PermissionMode, Reload, Scope, SettingsWatcher, TrustDecision,
    TrustStore, WorkspaceFiles,
};

use crate::support::World;

fn live(world: &World, trust: TrustDecision) -> LiveSettings {
    LiveSettings::new(world.request(trust), world.load(trust))
}

fn applied(reload: Reload) -> Change {
    match reload {
        Reload::Applied(change) => change,
        other => panic!("{other:?}"),
    }
}

fn held(change: &Change) -> Vec<&str> {
    change.held.iter().map(|held| held.key.as_str()).collect()
}

#[test]
fn changes_are_named_and_those_that_need_a_restart_marked() {
    let world = World::new();
    let live = live(&world, TrustDecision::Recorded);
    assert_eq!(live.reload(Consent::Withheld), Reload::Unchanged);
    world.write(Scope::User, "model = 'm'\n[permissions]\nallow = ['A']\n");
    let change = applied(live.reload(Consent::Withheld));
    assert_eq!(change.keys, ["model", "permissions.allow"]);
    assert_eq!(change.restart_required, ["model"]);
    assert_eq!(change.held, [], "the user may loosen");
    assert_eq!(live.load().settings.permissions.allow, ["A"]);
}

#[test]
fn a_broken_file_changes_nothing() {
    let world = World::new();
    world.write(Scope::User, "[permissions]\ndeny = ['A']\n");
    let live = live(&world, TrustDecision::Recorded);
    world.write(Scope::User, "[permissions\n");
    assert!(matches!(live.reload(Consent::Withheld), Reload::Failed(_)));
    assert_eq!(live.load().settings.permissions.deny, ["A"]);
}

#[test]
fn a_workspace_tightens_at_once_and_loosens_with_consent() {
    let world = World::new();
    world.write(
        Scope::Project,
        "[permissions]\nallow = ['A']\ndeny = ['X']\n",
    );
    let live = live(&world, TrustDecision::Granted);
    world.write(
        Scope::Project,
        "[permissions]\nallow = ['A', 'B']\ndeny = ['Y']\n[[hooks.Stop]]\nmatcher = '*'\n",
    );
    let change = applied(live.reload(Consent::Withheld));
    assert_eq!(change.keys, ["permissions.deny"]);
    assert_eq!(
        held(&change),
        ["hooks", "permissions.allow", "permissions.deny"]
    );
    let settings = live.load();
    assert_eq!(settings.settings.permissions.allow, ["A"]);
    assert_eq!(settings.settings.permissions.deny, ["X", "Y"]);
    assert!(settings.settings.hooks.is_empty());
    assert_eq!(
        live.reload(Consent::Withheld),
        Reload::Unchanged,
        "said once"
    );

    let change = applied(live.reload(Consent::Given));
    assert_eq!(change.held, []);
    let settings = live.load();
    assert_eq!(settings.settings.permissions.allow, ["A", "B"]);
    assert_eq!(settings.settings.permissions.deny, ["Y"]);
    assert!(!settings.settings.hooks.is_empty());
}

#[test]
fn deleting_the_files_of_a_workspace_frees_nothing() {
    let world = World::new();
    world.write(
        Scope::Project,
        "[permissions]\ndeny = ['X']\ndefault_mode = 'plan'\n[sandbox]\nenabled = true\n",
    );
    let live = live(&world, TrustDecision::Recorded);
    fs::remove_dir_all(world.workspace.join(".caliban")).unwrap();
    let change = applied(live.reload(Consent::Withheld));
    assert_eq!(change.keys, Vec::<String>::new());
    assert_eq!(
        held(&change),
        [
            "permissions.deny",
            "permissions.default_mode",
            "sandbox.enabled"
        ]
    );
    let settings = live.load();
    assert_eq!(settings.settings.permissions.deny, ["X"]);
    assert_eq!(settings.settings.sandbox.enabled, Some(true));
}

#[test]
fn what_was_trusted_stays_when_the_file_is_edited() {
    let world = World::new();
    world.write(Scope::Project, "[[hooks.PreToolUse]]\nmatcher = 'guard'\n");
    let store = TrustStore::new(world.locations.workspace_trust());
    store
        .grant(&WorkspaceFiles::read(&world.workspace, None))
        .unwrap();
    let live = live(&world, TrustDecision::Recorded);
    world.write(
        Scope::Project,
        "[[hooks.PreToolUse]]\nmatcher = 'evil'\n[permissions]\ndeny = ['X']\n",
    );
    let change = applied(live.reload(Consent::Withheld));
    assert_eq!(
        (change.keys, change.held.len()),
        (vec!["permissions.deny".to_owned()], 1)
    );
    let settings = live.load();
    assert_eq!(settings.settings.hooks["PreToolUse"][0]["matcher"], "guard");

    store
        .grant(&WorkspaceFiles::read(&world.workspace, None))
        .unwrap();
    applied(live.reload(Consent::Given));
    let settings = live.load();
    assert_eq!(settings.settings.hooks["PreToolUse"][0]["matcher"], "evil");
}

#[test]
fn readers_keep_the_version_they_took() {
    let world = World::new();
    world.write(Scope::User, "model = 'a'\n");
    let live = live(&world, TrustDecision::Recorded);
    let before = live.load();
    world.write(Scope::User, "model = 'b'\n");
    applied(live.reload(Consent::Withheld));
    assert_eq!(before.settings.model.as_ref().unwrap().name(), "a");
    assert_eq!(live.load().settings.model.as_ref().unwrap().name(), "b");
}

/// Replaces a file in one step, so that nobody can read half of it.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, path).unwrap();
}

const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn the_watcher_follows_files_that_come_and_go() {
    let world = World::new();
    fs::remove_dir_all(world.workspace.join(".caliban")).unwrap();
    let live = Arc::new(live(&world, TrustDecision::Recorded));
    let (sender, receiver) = mpsc::channel();
    let watcher = SettingsWatcher::start(Arc::clone(&live), move |reload| {
        let _ = sender.send(reload);
    })
    .unwrap();

    world.write(Scope::User, "output_style = 'one'\n");
    let change = applied(receiver.recv_timeout(PATIENCE).unwrap());
    assert_eq!(change.keys, ["output_style"]);

    // A directory that did not exist at the start, and a file that replaces another.
    fs::create_dir(world.workspace.join(".caliban")).unwrap();
    world.write(Scope::Project, "agent = 'p'\n");
    let change = applied(receiver.recv_timeout(PATIENCE).unwrap());
    assert_eq!(change.keys, ["agent"]);
    replace(&world.toml(Scope::Project), "agent = 'q'\n");
    let change = applied(receiver.recv_timeout(PATIENCE).unwrap());
    assert_eq!(change.keys, ["agent"]);

    replace(&world.toml(Scope::User), "output_style = \n");
    let failed = receiver.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(failed, Reload::Failed(_)), "{failed:?}");
    assert_eq!(live.load().settings.output_style.as_deref(), Some("one"));
    drop(watcher);
}

#[test]
fn a_stricter_mode_of_the_user_wins_over_what_a_project_took_back() {
    let world = World::new();
    world.write(Scope::User, "permissions.default_mode = 'auto'\n");
    world.write(Scope::Project, "permissions.default_mode = 'default'\n");
    let live = live(&world, TrustDecision::Recorded);
    world.write(Scope::User, "permissions.default_mode = 'plan'\n");
    applied(live.reload(Consent::Withheld));
    let mode = live.load().settings.permissions.default_mode;
    assert_eq!(mode, Some(PermissionMode::Plan));
}

#[test]
fn a_rule_that_moves_between_scopes_is_noticed() {
    let world = World::new();
    world.write(Scope::Managed, "[permissions]\nallow = ['A']\n");
    world.write(Scope::User, "");
    let live = live(&world, TrustDecision::Recorded);
    world.write(Scope::Managed, "");
    world.write(Scope::User, "[permissions]\nallow = ['A']\n");
    let change = applied(live.reload(Consent::Withheld));
    assert_eq!(change.keys, ["permissions.allow"]);
    assert_eq!(live.load().rules()[0].scope, Scope::User);
}
