//! What commands change.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use caliban_checkpoints::{Others, ScanLimits};

use crate::world::{World, snapshot};

fn git(world: &World, arguments: &[&str]) {
    let done = Command::new("git")
        .args([
            "-c",
            "user.name=n",
            "-c",
            "user.email=e@x",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .current_dir(world.root())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", world.path())
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

fn sources(world: &World, prompt: u32) -> Vec<(String, Option<String>)> {
    world.session().history().unwrap().checkpoints[&prompt]
        .entries
        .iter()
        .map(|entry| (entry.shown().to_owned(), entry.source.clone()))
        .collect()
}

#[test]
fn tracked_files_come_from_git_which_is_not_touched() {
    let world = World::new();
    git(&world, &["init", "-q"]);
    world.write("clean", "committed\n");
    world.write("dirty", "committed\n");
    world.write("ends", "one\n");
    world.write("filtered", "plain\n");
    world.write(".gitattributes", "filtered filter=rot\n");
    git(&world, &["add", "."]);
    git(&world, &["commit", "-q", "-m", "m"]);
    world.write("dirty", "changed since\n");
    world.write("untracked", "new\n");
    // An index that is newer than what it describes, as it is outside of tests.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(100);
    let index = fs::File::options()
        .append(true)
        .open(world.at(".git/index"))
        .unwrap();
    index.set_modified(later).unwrap();
    drop(index);
    let start = world.now();
    let repository = snapshot(&world.at(".git"));

    let mut scanner = world.scanner();
    scanner.before().unwrap();
    let prompt = world.command(&mut scanner, || {
        for name in ["clean", "dirty", "untracked", "filtered"] {
            fs::remove_file(world.at(name)).unwrap();
        }
    });
    let kept = sources(&world, prompt);
    let source = |name: &str| {
        kept.iter()
            .find(|it| it.0 == name)
            .unwrap()
            .1
            .clone()
            .unwrap()
    };
    for name in ["dirty", "untracked", "filtered"] {
        assert_eq!(source(name), "copy", "{name}");
    }
    world.rewind(0, Others::Spared);
    assert_eq!(world.now(), start);
    assert_eq!(snapshot(&world.at(".git")), repository);
}

#[test]
fn a_settled_clean_file_is_not_copied() {
    let world = World::new();
    git(&world, &["init", "-q"]);
    world.write("clean", "committed\n");
    git(&world, &["add", "."]);
    // Until the stamps are older than the clock's granularity nothing is taken from git for good.
    let mut scanner = world.scanner();
    let settled = || {
        let changed = fs::metadata(world.at("clean")).unwrap().modified().unwrap();
        changed.elapsed().unwrap_or_default() > std::time::Duration::from_millis(50)
    };
    while !settled() {
        std::thread::yield_now();
    }
    let index = fs::File::options()
        .append(true)
        .open(world.at(".git/index"))
        .unwrap();
    index.set_modified(std::time::SystemTime::now()).unwrap();
    drop(index);
    let prompt = world.command(&mut scanner, || world.write("clean", "by a command\n"));
    let kept = sources(&world, prompt);
    assert!(kept[0].1.as_ref().unwrap().starts_with("git:"), "{kept:?}");
    world.rewind(0, Others::Spared);
    assert_eq!(fs::read(world.at("clean")).unwrap(), b"committed\n");
}

#[test]
fn a_change_of_the_same_length_that_sets_its_time_back_is_seen() {
    let world = World::new();
    world.write("a", "one");
    let mut scanner = world.scanner();
    scanner.before().unwrap();
    world.command(&mut scanner, || {
        let stamp = fs::metadata(world.at("a")).unwrap().modified().unwrap();
        world.write("a", "two");
        let file = fs::File::options()
            .append(true)
            .open(world.at("a"))
            .unwrap();
        file.set_modified(stamp).unwrap();
    });
    world.rewind(0, Others::Spared);
    assert_eq!(fs::read(world.at("a")).unwrap(), b"one");
}

#[test]
fn what_others_did_between_commands_is_not_the_commands() {
    let world = World::new();
    world.write("a", "zero");
    let mut scanner = world.scanner();
    world.command(&mut scanner, || world.write("b", "made"));
    world.write("a", "mine");
    let prompt = world.command(&mut scanner, || world.write("a", "theirs"));
    assert_eq!(sources(&world, prompt).len(), 1);
    world.rewind(1, Others::Spared);
    assert_eq!(fs::read(world.at("a")).unwrap(), b"mine");
}

#[test]
fn modes_and_empty_directories_are_changes_and_a_touch_is_none() {
    let world = World::new();
    world.write("script", "x");
    world.write("touched", "x");
    fs::create_dir(world.at("empty")).unwrap();
    let start = world.now();
    let mut scanner = world.scanner();
    let prompt = world.command(&mut scanner, || {
        fs::set_permissions(world.at("script"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_dir(world.at("empty")).unwrap();
        fs::create_dir_all(world.at("made/deep")).unwrap();
        world.write("touched", "x");
    });
    let paths: Vec<String> = sources(&world, prompt).into_iter().map(|it| it.0).collect();
    assert_eq!(paths, ["empty", "made", "made/deep", "script"]);
    world.rewind(0, Others::Spared);
    assert_eq!(world.now(), start);
}

#[test]
fn what_was_ignored_is_never_taken_for_new() {
    let world = World::new();
    world.write(".gitignore", "secret\n");
    world.write("secret", "theirs");
    let mut scanner = world.scanner();
    world.command(&mut scanner, || world.write(".gitignore", ""));
    let plan = world
        .session()
        .plan(&world.tree(), 0, Others::Overwritten)
        .unwrap();
    assert_eq!(plan.lost[0].path, "secret");
    world.rewind(0, Others::Overwritten);
    assert_eq!(fs::read(world.at("secret")).unwrap(), b"theirs");
    assert_eq!(fs::read(world.at(".gitignore")).unwrap(), b"secret\n");
}

#[test]
fn what_becomes_ignored_is_not_taken_for_removed() {
    let world = World::new();
    world.write("a", "theirs");
    let mut scanner = world.scanner();
    let prompt = world.command(&mut scanner, || world.write(".gitignore", "a\n"));
    assert_eq!(sources(&world, prompt).len(), 1);
}

#[test]
fn bounds_are_told_and_nothing_unseen_is_removed() {
    let world = World::new();
    for name in ["a", "b", "c", "d"] {
        world.write(name, name);
    }
    let few = ScanLimits {
        entries: 2,
        ..ScanLimits::default()
    };
    let mut scanner = world.scanner_with(few);
    world.command(&mut scanner, || {
        fs::remove_file(world.at("a")).unwrap();
        fs::remove_file(world.at("d")).unwrap();
    });
    let plan = world
        .session()
        .plan(&world.tree(), 0, Others::Overwritten)
        .unwrap();
    assert!(
        plan.shortfalls[0].contains("more than 2 entries"),
        "{plan:?}"
    );
    world.rewind(0, Others::Overwritten);
    assert!(world.at("a").exists());
    assert!(world.at("b").exists() && world.at("c").exists());

    let world = World::new();
    world.write("a", "aaaa");
    world.write("b", "bbbb");
    let mut scanner = world.scanner_with(ScanLimits {
        bytes: 4,
        ..ScanLimits::default()
    });
    world.command(&mut scanner, || {
        fs::remove_file(world.at("a")).unwrap();
        fs::remove_file(world.at("b")).unwrap();
    });
    let plan = world
        .session()
        .plan(&world.tree(), 0, Others::Spared)
        .unwrap();
    assert_eq!((plan.actions.len(), plan.lost.len()), (1, 1));
    assert_eq!(plan.actions[0].path, Path::new("a"));
}
