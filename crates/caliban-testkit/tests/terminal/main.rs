//! The terminal of the tests, tested with ordinary programs.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod agreeing;
mod driving;
mod endings;
mod measuring;
mod probing;
mod tmux;
mod waiting;

use caliban_testkit::terminal::{Profile, Terminal, TerminalOptions};

/// A program in a terminal of 60 by 12.
fn options(program: &str, args: &[&str]) -> TerminalOptions {
    TerminalOptions {
        program: program.into(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: [
            ("PATH", "/usr/bin:/bin"),
            ("TERM", "xterm-256color"),
            ("LANG", "C.UTF-8"),
            ("HOME", "/nonexistent"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        cwd: "/".into(),
        size: (60, 12),
        profile: Profile::Silent,
    }
}

/// A shell that does this.
fn shell(script: &str) -> Terminal {
    Terminal::start(options("/bin/sh", &["-c", script]))
}

/// The same in a terminal of this kind.
fn shell_in(profile: Profile, script: &str) -> Terminal {
    Terminal::start(TerminalOptions {
        profile,
        ..options("/bin/sh", &["-c", script])
    })
}

/// A script that shows every byte it is sent, in hexadecimal, in raw mode, until `q`.
const SHOW_BYTES: &str = "old=$(stty -g); stty raw -echo; printf 'ready\\r\\n'; \
     while b=$(dd bs=1 count=1 2>/dev/null | od -An -tx1 | tr -d ' \\n'); [ \"$b\" != 71 ]; \
     do printf '%s.' \"$b\"; done; stty \"$old\"";

/// Bytes as [`SHOW_BYTES`] shows them.
fn hex(bytes: &[u8]) -> String {
    let shown: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}.")).collect();
    shown.concat()
}

/// The message of a test that fails.
fn failure<T>(test: impl FnOnce() -> T + std::panic::UnwindSafe) -> String {
    let Err(panic) = std::panic::catch_unwind(test) else {
        return String::new();
    };
    *panic.downcast::<String>().unwrap()
}
