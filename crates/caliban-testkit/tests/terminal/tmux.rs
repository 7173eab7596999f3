//! Programs in tmux.

use caliban_testkit::terminal::{TerminalOptions, Tmux};

use crate::options;

#[test]
fn a_program_runs_in_tmux() {
    if !Tmux::is_installed() {
        return;
    }
    let mut options = options(
        "/bin/sh",
        &[
            "-c",
            "seq 1 30; printf '\\033[1mbold\\033[m\\n'; trap 'stty size' WINCH; echo \"$A in $TERM;\"; \
         while :; do read -r line && echo \"<$line>\"; done",
        ],
    );
    options.env.push(("A".to_owned(), "x;".to_owned()));
    let tmux = Tmux::start(&TerminalOptions {
        size: (50, 10),
        ..options
    });
    tmux.until_text("x; in ");
    tmux.send_text("some text;");
    tmux.send_keys(&["Enter"]);
    tmux.until_text("<some text;>");
    let all = tmux.capture();
    assert!(all.starts_with("1\n2\n"), "{all}");
    assert!(all.contains("\u{1b}[1mbold"), "{all}");
    tmux.resize(70, 20);
    tmux.until_text("20 70");
}
