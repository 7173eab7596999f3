//! Making room, forgetting, forking.

use std::fs;

use caliban_checkpoints::{InUse, Kind, Others, Room};

use crate::world::{World, alone, beginning, restoring};

#[test]
fn the_oldest_contents_go_first_and_are_told() {
    let mut world = World::new();
    world.write("a", "0000");
    world.tool(&[("a", Some("1111"))]);
    world.tool(&[("a", Some("2222"))]);
    world.tool(&[("a", Some("3333"))]);
    world.limits.project = 8;
    assert_eq!(
        world.store().make_room(None).unwrap(),
        Room {
            kept: 8,
            cleared: 1
        }
    );
    let history = world.session().history().unwrap();
    assert_eq!(history.checkpoints[&1].kind, Kind::Cleared);
    assert_eq!(history.checkpoints[&1].entries.len(), 1);
    let plan = world
        .session()
        .plan(&world.tree(), 0, Others::Spared)
        .unwrap();
    assert_eq!(plan.lost[0].why, "its content is no longer kept");
    world.rewind(1, Others::Spared);
    assert_eq!(fs::read(world.at("a")).unwrap(), b"1111");

    world.limits.project = 0;
    let in_use = InUse {
        session: "s",
        from: 3,
    };
    let room = world.store().make_room(Some(in_use)).unwrap();
    assert_eq!(room.cleared, 1);
    assert!(room.kept > 0);
}

#[test]
fn a_fork_has_what_its_origin_loses() {
    let world = World::new();
    world.write("a", "zero");
    world.tool(&[("a", Some("one"))]);
    world.tool(&[("a", Some("two"))]);
    world.store().fork("s", "copy").unwrap();
    world.store().fork("s", "copy").unwrap();
    world.store().remove_session("s").unwrap();
    world.store().remove_session("s").unwrap();
    assert_eq!(world.store().sessions().unwrap(), ["copy"]);
    let copy = world.store().session("copy").unwrap();
    let plan = copy.plan(&world.tree(), 0, Others::Spared).unwrap();
    copy.restore(&world.tree(), &plan, restoring(), &mut alone)
        .unwrap();
    assert_eq!(fs::read(world.at("a")).unwrap(), b"zero");
}

#[test]
fn a_prompt_that_changed_nothing_can_be_chosen() {
    let world = World::new();
    world.write("a", "zero");
    assert_eq!(
        world.session().pass(beginning("only talk"), None).unwrap(),
        1
    );
    world.tool(&[("a", Some("one"))]);
    assert_eq!(
        world.session().history().unwrap().checkpoints[&1].title,
        "only talk"
    );
    world.rewind(1, Others::Spared);
    assert_eq!(fs::read(world.at("a")).unwrap(), b"zero");
}
