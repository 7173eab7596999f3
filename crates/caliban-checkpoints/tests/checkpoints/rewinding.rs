//! Going back, forward, and past what others did.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use caliban_checkpoints::{Before, Error, Kind, Others};

use crate::world::World;

#[test]
fn there_and_back_again() {
    let world = World::new();
    world.write("a", "zero");
    fs::set_permissions(world.at("a"), fs::Permissions::from_mode(0o755)).unwrap();
    let start = world.now();
    world.tool(&[("a", Some("one")), ("deep/er/new", Some("made"))]);
    let first = world.now();
    world.tool(&[("a", None), ("deep/er/new", Some("again"))]);
    let second = world.now();

    let restored = world.rewind(1, Others::Spared);
    assert_eq!(restored.failed, []);
    assert_eq!(world.now(), first);
    world.rewind(0, Others::Spared);
    assert_eq!(world.now(), start, "created directories go too");
    world.rewind(2, Others::Spared);
    assert_eq!(
        world.now(),
        second,
        "a restore is taken back like anything else"
    );
    let history = world.session().history().unwrap();
    assert_eq!(history.checkpoints[&3].kind, Kind::Rewind);
    assert_eq!(history.last(), 5);
}

#[test]
fn a_plan_shows_what_would_change_and_changes_nothing() {
    let world = World::new();
    world.write("a", "one\ntwo\n");
    world.tool(&[("a", Some("one\nthree\n"))]);
    let before = world.now();
    let session = world.session();
    let plan = session.plan(&world.tree(), 0, Others::Spared).unwrap();
    let diff = session.difference(&world.tree(), &plan.actions[0]).unwrap();
    assert!(diff.contains("-three\n+two\n"), "{diff}");
    assert_eq!(world.now(), before);
    assert!(matches!(
        session.plan(&world.tree(), 2, Others::Spared),
        Err(Error::NoSuchPoint { wanted: 2, last: 1 })
    ));
}

#[test]
fn what_others_changed_is_spared_unless_forced_and_kept_if_forced() {
    let world = World::new();
    world.write("a", "zero");
    world.tool(&[("a", Some("one")), ("b/c", Some("made"))]);
    world.write("a", "mine");
    world.write("b/mine", "mine too");
    let theirs = world.now();

    let session = world.session();
    let plan = session.plan(&world.tree(), 0, Others::Spared).unwrap();
    let conflicts: Vec<_> = plan
        .conflicts
        .iter()
        .map(|it| it.path.to_str().unwrap())
        .collect();
    assert_eq!(conflicts, ["a", "b"]);
    world.rewind(0, Others::Spared);
    assert_eq!(fs::read(world.at("a")).unwrap(), b"mine");
    assert!(!world.at("b/c").exists());
    assert!(world.at("b/mine").exists());

    world.rewind(0, Others::Overwritten);
    assert_eq!(fs::read(world.at("a")).unwrap(), b"zero");
    assert!(world.at("b/mine").exists(), "nobody forces this away");
    world.rewind(1, Others::Spared);
    assert_eq!(world.now(), theirs);
}

#[test]
fn what_is_too_large_is_named_and_left_alone() {
    let mut world = World::new();
    world.limits.file = 10;
    world.write("big", "more than ten bytes");
    world.tool(&[("big", Some("small")), ("small", Some("grows"))]);
    let manifest = &world.session().history().unwrap().checkpoints[&1];
    assert!(manifest.partial);
    let plan = world
        .session()
        .plan(&world.tree(), 0, Others::Overwritten)
        .unwrap();
    assert_eq!(plan.lost[0].path, "big");
    assert_eq!(plan.lost[0].why, "it is larger than 10 bytes");

    // What could not be kept is not overwritten either.
    world.write("small", "has become very large");
    world.rewind(0, Others::Overwritten);
    assert_eq!(
        fs::read(world.at("small")).unwrap(),
        b"has become very large"
    );
}

#[test]
fn a_damaged_copy_costs_one_file() {
    let world = World::new();
    world.write("a", "aaaa");
    world.write("b", "bbbb");
    world.tool(&[("a", Some("x")), ("b", Some("y"))]);
    let blobs = world.path().join("store/s/prompt-001/blobs");
    let damaged = fs::read_dir(&blobs)
        .unwrap()
        .map(|it| it.unwrap().path())
        .find(|path| fs::read(path).unwrap() == b"aaaa")
        .unwrap();
    fs::write(damaged, "aaab").unwrap();
    let plan = world
        .session()
        .plan(&world.tree(), 0, Others::Spared)
        .unwrap();
    assert_eq!(plan.lost[0].why, "the copy that was kept is damaged");
    world.rewind(0, Others::Spared);
    assert_eq!(fs::read(world.at("a")).unwrap(), b"x");
    assert_eq!(fs::read(world.at("b")).unwrap(), b"bbbb");
}

#[test]
fn a_prompt_that_was_killed_is_known_by_its_journal() {
    let world = World::new();
    world.write("a", "zero");
    let mut prompt = world.begin();
    let tree = world.tree();
    prompt
        .before(
            &tree,
            Path::new("a"),
            "Edit",
            Before::File {
                bytes: b"zero",
                mode: 0o644,
            },
        )
        .unwrap();
    world.write("a", "one");
    prompt.after(&tree, Path::new("a")).unwrap();
    drop(prompt);
    let journal = world.path().join("store/s/prompt-001/entries.journal");
    let mut bytes = fs::read(&journal).unwrap();
    bytes.extend(b"0123 torn");
    fs::write(&journal, bytes).unwrap();

    let history = world.session().history().unwrap();
    assert!(history.checkpoints[&1].partial);
    world.tool(&[("b", Some("new"))]);
    world.rewind(0, Others::Spared);
    assert_eq!(fs::read(world.at("a")).unwrap(), b"zero");
    assert!(!world.at("b").exists());
}

#[test]
fn only_the_first_state_in_a_prompt_counts_and_contents_are_stored_once() {
    let world = World::new();
    world.write("a", "zero");
    world.tool(&[("a", Some("one")), ("a", Some("two")), ("a", Some("zero"))]);
    world.tool(&[("a", Some("three"))]);
    let blob = |prompt: &str| {
        let blobs = world.path().join("store/s").join(prompt).join("blobs");
        let mut files: Vec<_> = fs::read_dir(blobs).unwrap().map(|it| it.unwrap()).collect();
        assert_eq!(files.len(), 1);
        files.remove(0).metadata().unwrap()
    };
    assert_eq!(blob("prompt-001").ino(), blob("prompt-002").ino());
    assert_eq!(blob("prompt-001").mode() & 0o777, 0o600);
}
