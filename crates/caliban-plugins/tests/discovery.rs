//! Whose plugin counts where several have one name.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use caliban_plugins::{
    DigestCache, Found, MarketPolicy, Owner, Roots, Rules, Standing, Workspace, discover,
};
use caliban_settings::PluginChoice;
use semver::Version;

struct World {
    temp: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self {
            temp: tempfile::tempdir().unwrap(),
        }
    }

    fn put(&self, owner: &str, name: &str, manifest: &str) {
        let directory = self.temp.path().join(owner).join(name);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("plugin.json"), manifest).unwrap();
    }

    fn plugin(&self, owner: &str, name: &str) {
        self.put(
            owner,
            name,
            &format!("{{\"name\": \"{name}\", \"version\": \"1.0.0\"}}"),
        );
    }

    fn found(&self, workspace: Workspace, enabled: Option<&[&str]>) -> Vec<Found> {
        let at = |name: &str| self.temp.path().join(name);
        let roots = Roots {
            managed: at("managed"),
            project: at("project"),
            user: at("user"),
            given: Vec::new(),
        };
        let names = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        let rules = Rules {
            workspace,
            enabled: enabled.map(|list| PluginChoice::Names(names(list))),
            disabled: &["off".to_owned()],
            version: Version::new(0, 1, 0),
            platform: "linux",
            installed: &BTreeMap::new(),
            project: self.temp.path(),
            markets: &MarketPolicy::default(),
            digests: &DigestCache::new(at("trust/plugin-files.json")),
        };
        discover(&roots, &rules)
    }

    fn active(&self, workspace: Workspace, enabled: Option<&[&str]>) -> Vec<(String, Owner)> {
        let found = self.found(workspace, enabled);
        let active = found.iter().filter(|found| found.active().is_some());
        active
            .map(|found| (found.name.clone(), found.owner))
            .collect()
    }
}

#[test]
fn the_organisation_comes_first_then_the_workspace_then_the_user() {
    let world = World::new();
    for owner in ["managed", "project", "user"] {
        world.plugin(owner, "same");
    }
    world.plugin("project", "both");
    world.plugin("user", "both");
    let trusted = world.active(Workspace::Trusted, None);
    assert_eq!(
        trusted,
        [
            ("same".to_owned(), Owner::Managed),
            ("both".to_owned(), Owner::Project)
        ]
    );
    let untrusted = world.active(Workspace::Untrusted, None);
    assert_eq!(
        untrusted,
        [
            ("same".to_owned(), Owner::Managed),
            ("both".to_owned(), Owner::User)
        ]
    );
}

#[test]
fn a_broken_plugin_of_the_organisation_is_not_replaced_either() {
    let world = World::new();
    world.put("managed", "policy", "{");
    world.plugin("user", "policy");
    let found = world.found(Workspace::Trusted, None);
    assert!(matches!(found[0].standing, Standing::Broken(_)));
    assert!(matches!(
        found[1].standing,
        Standing::Shadowed(Owner::Managed)
    ));
}

#[test]
fn the_organisations_plugins_are_always_enabled() {
    let world = World::new();
    world.plugin("managed", "policy");
    world.plugin("managed", "off");
    world.plugin("user", "mine");
    let only = world.active(Workspace::Trusted, Some(&["other"]));
    let names: Vec<&str> = only.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["off", "policy"]);
}

#[test]
fn what_is_disabled_is_read_and_not_used() {
    let world = World::new();
    world.plugin("user", "off");
    world.plugin("user", "on");
    assert_eq!(
        world.active(Workspace::Trusted, None),
        [("on".to_owned(), Owner::User)]
    );
    let chosen = world.active(Workspace::Trusted, Some(&["off"]));
    assert_eq!(
        chosen,
        [("off".to_owned(), Owner::User)],
        "a list is the whole list"
    );
}

#[cfg(unix)]
#[test]
fn a_link_in_a_workspace_is_not_covered_by_its_trust() {
    let world = World::new();
    world.plugin("elsewhere", "linked");
    let project = world.temp.path().join("project");
    fs::create_dir_all(&project).unwrap();
    link(
        &world.temp.path().join("elsewhere/linked"),
        &project.join("linked"),
    );
    let found = world.found(Workspace::Trusted, None);
    assert!(
        matches!(found[0].standing, Standing::Untrusted(_)),
        "{:?}",
        found[0].standing
    );
    // The user may keep a plugin somewhere else.
    fs::create_dir_all(world.temp.path().join("user")).unwrap();
    fs::remove_file(project.join("linked")).unwrap();
    link(
        &world.temp.path().join("elsewhere/linked"),
        &world.temp.path().join("user/linked"),
    );
    assert_eq!(world.active(Workspace::Trusted, None).len(), 1);
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) {
    std::os::unix::fs::symlink(from, to).unwrap();
}

#[test]
fn a_plugin_does_not_count_without_those_it_needs() {
    let world = World::new();
    let needs = |name: &str, needed: &str| {
        let manifest = format!(
            "{{\"name\": \"{name}\", \"version\": \"1.0.0\", \"dependencies\": [{needed}]}}"
        );
        world.put("user", name, &manifest);
    };
    world.plugin("user", "base");
    needs("fine", "\"base\"");
    needs("choosy", "{\"name\": \"base\", \"version\": \"^2\"}");
    needs("lonely", "\"nobody\"");
    needs("above", "\"lonely\"");
    let active = world.active(Workspace::Trusted, None);
    let names: Vec<&str> = active.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["base", "fine"]);
}
