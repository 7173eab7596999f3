//! Every operation of capture and restore fails once, and is the last one once.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use caliban_checkpoints::{Before, Error, Followed, Mark, Others, Restoring};

use crate::world::{Fuse, Snapshot, World, alone, beginning, restoring};

/// Operations that the longest of these takes at most; more would mean that it never ends.
const MOST: usize = 2000;

fn capture(world: &World, fuse: &Arc<Fuse>) -> Result<(), Error> {
    let session = world.fused_store(fuse).session("s").unwrap();
    let tree = world.fused_tree(fuse);
    let mut prompt = session.begin(beginning("try"))?;
    for path in ["a", "new/b"] {
        prompt.before(&tree, Path::new(path), "Write", Before::Unknown)?;
        // Only what was confirmed is changed.
        world.write(path, "changed");
        prompt.after(&tree, Path::new(path))?;
    }
    prompt.finish(&tree, None)?;
    Ok(())
}

#[test]
fn whatever_fails_in_a_capture_nothing_that_was_changed_is_lost() {
    for fuse in [Fuse::blown as fn(usize) -> Arc<Fuse>, Fuse::flickering] {
        for at in 0..MOST {
            let world = World::fast();
            world.write("a", "zero");
            let start = world.now();
            let fuse = fuse(at);
            let ended = capture(&world, &fuse);
            if fuse.done.load(Ordering::SeqCst) <= at {
                ended.unwrap();
                assert!(at > 20, "there are more operations than {at}");
                break;
            }
            world.tool(&[("later", Some("works"))]);
            world.rewind(0, Others::Overwritten);
            assert_eq!(world.now(), start, "at {at}");
        }
    }
}

/// Two states of a workspace that differ in everything that can differ.
fn two_states() -> (World, Snapshot, Snapshot) {
    let world = World::fast();
    world.write("changed", "before");
    world.write("gone", "before");
    world.write("was/directory/file", "before");
    world.write("becomes", "a directory");
    symlink("changed", world.at("link")).unwrap();
    symlink("changed", world.at("other")).unwrap();
    let start = world.now();
    let mut scanner = world.scanner();
    world.command(&mut scanner, || {
        world.write("changed", "after");
        fs::remove_file(world.at("gone")).unwrap();
        fs::remove_dir_all(world.at("was")).unwrap();
        fs::remove_file(world.at("becomes")).unwrap();
        world.write("was", "a file now");
        world.write("becomes/full", "of this");
        world.write("made/here", "after");
        fs::remove_file(world.at("link")).unwrap();
        symlink("elsewhere", world.at("link")).unwrap();
        fs::remove_file(world.at("other")).unwrap();
        world.write("other", "a file now");
    });
    let end = world.now();
    (world, start, end)
}

#[test]
fn everything_that_can_differ_comes_back() {
    let (world, start, end) = two_states();
    assert_eq!(world.rewind(0, Others::Spared).failed, []);
    assert_eq!(world.now(), start);
    assert_eq!(world.rewind(1, Others::Spared).failed, []);
    assert_eq!(world.now(), end);
}

#[test]
fn whatever_kills_a_restore_it_can_be_finished() {
    for at in 0..MOST {
        let (world, start, end) = two_states();
        let fuse = Fuse::blown(at);
        let session = world.fused_store(&fuse).session("s").unwrap();
        let plan = world
            .session()
            .plan(&world.tree(), 0, Others::Spared)
            .unwrap();
        let ended = session.restore(&world.fused_tree(&fuse), &plan, restoring(), &mut alone);
        if fuse.done.load(Ordering::SeqCst) <= at {
            assert_eq!(ended.unwrap().failed, []);
            assert!(at > 100, "there are more operations than {at}");
            return;
        }
        // Each path is in one of its two states, or on its way from one shape to another.
        for (path, thing) in &world.now() {
            let is_ours = path.to_string_lossy().contains(".caliban-");
            let is_known = Some(thing) == start.get(path) || Some(thing) == end.get(path);
            assert!(
                is_ours || is_known || path == Path::new("was"),
                "{path:?} at {at}"
            );
        }
        let session = world.session();
        if session.is_interrupted().unwrap() {
            assert!(matches!(
                session.begin(beginning("no")),
                Err(Error::Unfinished)
            ));
            session.resume(&world.tree(), &mut alone).unwrap();
        }
        world.rewind(0, Others::Spared);
        assert_eq!(world.now(), start, "killed at {at}");
        world.rewind(1, Others::Spared);
        assert_eq!(world.now(), end, "killed at {at}");
    }
}

#[test]
fn whatever_fails_in_a_restore_nothing_is_lost() {
    for at in 0..MOST {
        let (world, start, end) = two_states();
        let fuse = Fuse::flickering(at);
        let session = world.fused_store(&fuse).session("s").unwrap();
        let plan = world
            .session()
            .plan(&world.tree(), 0, Others::Spared)
            .unwrap();
        let _ = session.restore(&world.fused_tree(&fuse), &plan, restoring(), &mut alone);
        if fuse.done.load(Ordering::SeqCst) <= at {
            return;
        }
        world.session().resume(&world.tree(), &mut alone).unwrap();
        world.rewind(0, Others::Overwritten);
        assert_eq!(world.now(), start, "failed at {at}");
        world.rewind(1, Others::Overwritten);
        assert_eq!(world.now(), end, "failed at {at}");
    }
}

#[test]
fn whatever_kills_a_restore_the_conversation_goes_with_the_files() {
    let there = Mark {
        epoch: 1,
        messages: 3,
    };
    let wanted = Restoring {
        conversation: Some(there),
        ..restoring()
    };
    for at in 0..MOST {
        let (world, start, end) = two_states();
        let fuse = Fuse::blown(at);
        let session = world.fused_store(&fuse).session("s").unwrap();
        let plan = world.session().plan(&world.tree(), 0, Others::Spared);
        let plan = plan.unwrap();
        // What a journal would say: the checkpoints for which the conversation went back.
        let mut told = Vec::new();
        let mut companion = |followed: &Followed<'_>| {
            assert_eq!((followed.to, followed.conversation), (0, Some(there)));
            if !told.contains(&followed.checkpoint) {
                told.push(followed.checkpoint);
            }
            Ok(Some(there))
        };
        let _ = session.restore(&world.fused_tree(&fuse), &plan, wanted, &mut companion);
        let is_over = fuse.done.load(Ordering::SeqCst) <= at;
        let session = world.session();
        if session.is_interrupted().unwrap() {
            session.resume(&world.tree(), &mut companion).unwrap();
        }
        match told.as_slice() {
            [] => assert_eq!(world.now(), end, "killed at {at}"),
            [checkpoint] => {
                assert_eq!(world.now(), start, "killed at {at}");
                let history = session.history().unwrap();
                assert_eq!(history.mark(*checkpoint), Some(there));
                assert_eq!(history.checkpoints[checkpoint].rewound_to, Some(0));
                assert!(history.standing().is_empty());
            }
            several => panic!("{several:?}"),
        }
        if is_over {
            return;
        }
    }
}

#[test]
fn files_are_not_back_for_good_before_the_conversation_is() {
    let (world, start, _) = two_states();
    let session = world.session();
    let plan = session.plan(&world.tree(), 0, Others::Spared).unwrap();
    let failed = session.restore(&world.tree(), &plan, restoring(), &mut |_| {
        Err("the disk is full".to_owned())
    });
    assert!(matches!(failed, Err(Error::Companion(_))));
    assert!(session.is_interrupted().unwrap());
    assert!(matches!(
        session.begin(beginning("no")),
        Err(Error::Unfinished)
    ));
    session.resume(&world.tree(), &mut alone).unwrap();
    assert_eq!(world.now(), start);
}
