//! Every operation of a session fails in every way, and nothing that was confirmed is lost.

use std::path::Path;
use std::sync::Arc;

use caliban_sessions::{Durability, Error, Store, Warning};

use crate::scratch;
use crate::script::{End, NAME, Told, check, check_numbers, run};
use crate::sim::{Bytes, Fault, Names, Remains, Sim};

const ROOT: &str = "/sim/sessions";

fn sim_store(sim: &Sim) -> Store {
    scratch::store(Path::new(ROOT)).with_disk(Arc::new(sim.clone()))
}

/// Puts what is left on the real disk, continues the session there and checks it.
fn check_remains(sim: &Sim, told: &Told, remains: Remains, confirmed: usize) {
    let directory = scratch::directory();
    sim.materialise(remains, Path::new(ROOT), directory.path());
    let store = scratch::store(directory.path());
    let name = scratch::name(NAME);

    let read_only = store.load(&name);
    let opened = match store.open(&name) {
        Ok(opened) => opened,
        Err(Error::NotFound { .. }) => {
            assert!(read_only.is_err());
            assert_eq!(confirmed, 0, "the session is gone");
            return;
        }
        Err(other) => panic!("{other}"),
    };
    let damage: Vec<&Warning> = opened
        .warnings
        .iter()
        .filter(|warning| {
            !matches!(
                warning,
                Warning::SetAside { .. } | Warning::StrayCall { .. }
            )
        })
        .collect();
    assert!(damage.is_empty(), "{damage:?}");
    check(&opened.state, told, confirmed);
    check_numbers(directory.path());
    assert_eq!(read_only.unwrap().0.messages, opened.state.messages);

    let mut writer = opened.writer;
    writer
        .append(scratch::user("after"), Durability::Synced)
        .unwrap();
    check_numbers(directory.path());
    let expected = writer.state().clone();
    writer.close().unwrap();
    let (state, warnings) = store.load(&name).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(state, expected);
    assert!(!directory.path().join(format!("{NAME}.journal")).exists());
}

/// Fails each operation in turn, and checks what is there after each of the next `steps`, as if
/// the process ended there, and at the end.
fn every_operation(fault: Fault, steps: usize, check: impl Fn(&Sim, &Told)) {
    let intact = Sim::default();
    let told = run(&sim_store(&intact), &mut |_| {});
    assert_eq!(told.end, End::Closed);
    assert_eq!(told.synced, told.records.len());
    assert!(intact.operations() > 70, "{}", intact.operations());
    for at in 0..intact.operations() {
        let sim = Sim::failing(at, fault);
        let mut seen = 0;
        let told = run(&sim_store(&sim), &mut |told| {
            if sim.operations() > at && seen < steps {
                seen += 1;
                check(&sim, told);
            }
        });
        check(&sim, &told);
    }
}

#[test]
fn one_failed_operation_loses_nothing() {
    let faults = [
        Fault::Error,
        Fault::Short,
        Fault::Torn,
        Fault::Interrupted,
        Fault::Belied,
    ];
    for fault in faults {
        every_operation(fault, 4, |sim, told| {
            check_remains(sim, told, Remains::Everything, told.written);
        });
    }
}

#[test]
fn an_outage_loses_nothing_and_ends() {
    every_operation(Fault::Outage, 12, |sim, told| {
        check_remains(sim, told, Remains::Everything, told.written);
    });
}

#[test]
fn a_process_that_is_killed_loses_nothing() {
    every_operation(Fault::Crash, 1, |sim, told| {
        check_remains(sim, told, Remains::Everything, told.written);
    });
}

#[test]
fn a_power_loss_loses_nothing_that_was_synced() {
    for fault in [Fault::Crash, Fault::Error, Fault::Belied] {
        every_operation(fault, 2, |sim, told| {
            for names in [Names::Synced, Names::Latest] {
                for bytes in [Bytes::Synced, Bytes::Half, Bytes::Zeros] {
                    let remains = Remains::PowerLoss(names, bytes);
                    check_remains(sim, told, remains, told.synced);
                }
            }
        });
    }
}
