//! Keeps what this process knows from those it starts.

/// Closes this process's memory and the environment it was started with, which may hold keys, to
/// the other processes of its user: they can be read in `/proc` otherwise. Programs that are
/// started are open again. Where a system has nothing like it, nothing happens; nobody but the
/// superuser is kept out by more than this.
pub fn seclude() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // It fails only for values that there are not.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}
