//! Counts of what tests reach, also in programs that see nothing else of the environment.

use std::ffi::OsString;

/// Where a program that was compiled to be counted writes its counts.
const PLACE: &str = "LLVM_PROFILE_FILE";

/// The variable that a program in an environment of its own needs to be counted; none where
/// nothing is.
pub fn counting() -> Option<(&'static str, OsString)> {
    std::env::var_os(PLACE).map(|place| (PLACE, place))
}
