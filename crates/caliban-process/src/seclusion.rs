//! Keeps what this process knows from those it starts.

/// The first descriptor that is not a standard stream.
#[cfg(target_os = "linux")]
const FIRST_OTHER: libc::c_uint = 3;

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
        keep_descriptors();
    }
}

/// Keeps what this process was given by whoever started it, beside the three standard streams, from
/// the programs it starts itself. An old kernel does not know how.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "no safe interface marks descriptors that nobody here owns"
)]
fn keep_descriptors() {
    // SAFETY: the call takes numbers only. It marks descriptors and closes none, so no descriptor
    // that is in use becomes another's.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST_OTHER,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
    }
}
