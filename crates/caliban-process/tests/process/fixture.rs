//! A program for the tests: a guardian.

use std::process::ExitCode;

use caliban_process::{GUARD_ARGUMENT, guard_main};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(word) if word == GUARD_ARGUMENT => guard_main(args),
        Some(_) | None => ExitCode::from(64),
    }
}
