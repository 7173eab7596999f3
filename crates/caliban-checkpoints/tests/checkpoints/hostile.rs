//! Names and links that mean harm.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use caliban_checkpoints::{Before, Others};

use crate::world::World;

#[test]
fn names_are_bytes() {
    let world = World::new();
    let names = [&b"new\nline"[..], b"caf\xe9", b"\x1b[31m", b" ", b"-rf"];
    let tree = world.tree();
    let mut prompt = world.begin();
    for name in names {
        let name = Path::new(OsStr::from_bytes(name));
        fs::write(world.root().join(name), "before").unwrap();
        prompt
            .before(&tree, name, "Write", Before::Unknown)
            .unwrap();
        fs::write(world.root().join(name), "after").unwrap();
        prompt.after(&tree, name).unwrap();
    }
    prompt.finish(&tree, None).unwrap();
    world.rewind(0, Others::Spared);
    for name in names {
        let path = world.root().join(OsStr::from_bytes(name));
        assert_eq!(fs::read(path).unwrap(), b"before");
    }
}

#[test]
fn a_path_that_became_a_link_is_not_written_through() {
    let world = World::new();
    let outside = world.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f"), "theirs").unwrap();
    world.write("f", "before");
    world.write("d/f", "before");
    world.write("e/f", "before");
    world.tool(&[("f", Some("after")), ("d/f", Some("after")), ("e/f", None)]);
    for (path, target) in [
        ("f", outside.join("f")),
        ("d", outside.clone()),
        ("e", outside.clone()),
    ] {
        if world.at(path).is_dir() {
            fs::remove_dir_all(world.at(path)).unwrap();
        } else {
            fs::remove_file(world.at(path)).unwrap();
        }
        symlink(target, world.at(path)).unwrap();
    }
    for others in [Others::Spared, Others::Overwritten] {
        let plan = world.session().plan(&world.tree(), 0, others).unwrap();
        assert!(
            plan.conflicts.iter().any(|it| it.path == Path::new("e/f")),
            "{plan:?}"
        );
        world.rewind(0, others);
        assert_eq!(fs::read(outside.join("f")).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    }
    assert_eq!(fs::read(world.at("f")).unwrap(), b"before");
    assert!(fs::symlink_metadata(world.at("d")).unwrap().is_symlink());
}

#[test]
fn links_out_of_the_workspace_are_kept_as_links() {
    let world = World::new();
    let outside = world.path().join("outside");
    fs::write(&outside, "theirs").unwrap();
    symlink(&outside, world.at("l")).unwrap();
    let mut scanner = world.scanner();
    world.command(&mut scanner, || fs::remove_file(world.at("l")).unwrap());
    world.rewind(0, Others::Spared);
    assert_eq!(fs::read_link(world.at("l")).unwrap(), outside);
    assert_eq!(fs::read(&outside).unwrap(), b"theirs");
}

#[test]
fn the_repository_itself_is_never_touched() {
    let world = World::new();
    world.write(".git/config", "before");
    world.tool(&[(".git/config", Some("after")), ("a", Some("made"))]);
    let plan = world
        .session()
        .plan(&world.tree(), 0, Others::Overwritten)
        .unwrap();
    assert_eq!(plan.lost[0].why, "it belongs to the repository itself");
    world.rewind(0, Others::Overwritten);
    assert_eq!(fs::read(world.at(".git/config")).unwrap(), b"after");
    assert!(!world.at("a").exists());
}

#[test]
fn a_file_outside_is_kept_by_its_whole_path() {
    let world = World::new();
    let outside = world.path().join("outside");
    fs::write(&outside, "before").unwrap();
    let tree = world.tree();
    let mut prompt = world.begin();
    prompt
        .before(&tree, &outside, "Write", Before::Unknown)
        .unwrap();
    fs::write(&outside, "after").unwrap();
    prompt.after(&tree, &outside).unwrap();
    prompt.finish(&tree, None).unwrap();
    world.rewind(0, Others::Spared);
    assert_eq!(fs::read(&outside).unwrap(), b"before");
}
