//! Starts the program that the library beside it is.

use std::process::ExitCode;

fn main() -> ExitCode {
    caliban_program::main()
}
