//! Whatever is done in whatever order: each state that was comes back, byte by byte.

use std::fs;
use std::path::Path;

use caliban_checkpoints::{Others, Scanner};
use proptest::prelude::*;

use crate::world::{Snapshot, World};

#[derive(Debug, Clone)]
enum Deed {
    Write(usize, u8),
    Remove(usize),
    Rename(usize, usize),
    Mode(usize, u32),
}

#[derive(Debug, Clone)]
enum Step {
    /// By a tool: only writing.
    Tool(Vec<(usize, u8)>),
    /// By a command.
    Command(Vec<Deed>),
    /// By the user, and then a command that sees it in passing.
    User(Deed),
    Rewind(usize),
}

const PATHS: [&str; 5] = ["a", "b", "d/a", "d/e/b", "f/c"];

fn deed() -> impl Strategy<Value = Deed> {
    let at = 0..PATHS.len();
    prop_oneof![
        (at.clone(), any::<u8>()).prop_map(|(at, byte)| Deed::Write(at, byte)),
        at.clone().prop_map(Deed::Remove),
        (at.clone(), at.clone()).prop_map(|(from, to)| Deed::Rename(from, to)),
        (at, prop_oneof![Just(0o644), Just(0o755)]).prop_map(|(at, mode)| Deed::Mode(at, mode)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        proptest::collection::vec((0..PATHS.len(), any::<u8>()), 0..4).prop_map(Step::Tool),
        proptest::collection::vec(deed(), 0..4).prop_map(Step::Command),
        deed().prop_map(Step::User),
        (0usize..100).prop_map(Step::Rewind),
    ]
}

fn perform(world: &World, deed: &Deed) {
    use std::os::unix::fs::PermissionsExt as _;
    match deed {
        Deed::Write(at, byte) => world.write(PATHS[*at], &byte.to_string()),
        Deed::Remove(at) => {
            let _ = fs::remove_file(world.at(PATHS[*at]));
            if let Some(parent) = Path::new(PATHS[*at])
                .parent()
                .filter(|it| it.file_name().is_some())
            {
                let _ = fs::remove_dir(world.root().join(parent));
            }
        }
        Deed::Rename(from, to) => {
            let _ = fs::rename(world.at(PATHS[*from]), world.at(PATHS[*to]));
        }
        Deed::Mode(at, mode) => {
            let _ = fs::set_permissions(world.at(PATHS[*at]), fs::Permissions::from_mode(*mode));
        }
    }
}

/// The states at the ends of all checkpoints; the first is before all of them.
fn run(world: &World, scanner: &mut Scanner, steps: &[Step], states: &mut Vec<Snapshot>) {
    for step in steps {
        match step {
            Step::Tool(writes) => {
                let texts: Vec<_> = writes
                    .iter()
                    .map(|(at, byte)| (PATHS[*at], byte.to_string()))
                    .collect();
                let writes: Vec<_> = texts
                    .iter()
                    .map(|(path, text)| (*path, Some(text.as_str())))
                    .collect();
                world.tool(&writes);
            }
            Step::Command(deeds) => {
                world.command(scanner, || {
                    for deed in deeds {
                        perform(world, deed);
                    }
                });
            }
            // What a user does becomes part of a state when a command reports it as seen.
            Step::User(deed) => {
                world.command(scanner, || perform(world, deed));
            }
            Step::Rewind(to) => {
                let to = to % states.len();
                let restored = world.rewind(u32::try_from(to).unwrap(), Others::Spared);
                assert_eq!(restored.failed, []);
                assert_eq!(world.now(), states[to], "back to {to}");
                if restored.checkpoint.is_none() {
                    continue;
                }
            }
        }
        states.push(world.now());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn each_state_that_was_comes_back(steps in proptest::collection::vec(step(), 1..10)) {
        let world = World::fast();
        world.write("a", "start");
        world.write("d/a", "start");
        let mut scanner = world.scanner();
        let mut states = vec![world.now()];
        run(&world, &mut scanner, &steps, &mut states);
        for to in (0..states.len()).rev().chain(0..states.len()) {
            world.rewind(u32::try_from(to).unwrap(), Others::Spared);
            prop_assert_eq!(&world.now(), &states[to]);
        }
    }

    /// What a user changed last is never touched, and never lost where it is forced away.
    #[test]
    fn what_the_user_did_last_stays(
        before in proptest::collection::vec(step(), 1..6),
        mine in 0..PATHS.len(),
    ) {
        let world = World::fast();
        world.write("a", "start");
        let mut scanner = world.scanner();
        let mut states = vec![world.now()];
        run(&world, &mut scanner, &before, &mut states);
        if world.at(PATHS[mine]).parent().is_some_and(|it| !it.exists()) {
            return Ok(());
        }
        world.write(PATHS[mine], "mine alone");
        world.rewind(0, Others::Spared);
        prop_assert_eq!(fs::read(world.at(PATHS[mine])).unwrap(), b"mine alone");
        let last = world.session().history().unwrap().last();
        if let Some(kept) = world.rewind(0, Others::Overwritten).checkpoint {
            world.rewind(last, Others::Spared);
            prop_assert!(kept > last);
            prop_assert_eq!(fs::read(world.at(PATHS[mine])).unwrap(), b"mine alone");
        }
    }
}
