//! A program inside tmux, which is a terminal with opinions of its own.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::driver::TerminalOptions;
use super::patience::{fail, patience, sure};

/// How often tmux is asked for its screen; it tells of no change by itself.
const AGAIN: Duration = Duration::from_millis(20);

/// What runs in the pane: only what tmux itself says is let through to the program, beside the
/// environment that it is given.
const WITHIN: &str = r#"exec env -i TERM="$TERM" TMUX="$TMUX" TMUX_PANE="$TMUX_PANE" "$@""#;

/// A server of its own with one session. Dropped, it ends the server and what runs in it.
#[derive(Debug)]
pub struct Tmux {
    socket: PathBuf,
    // Removed after the server is gone.
    _folder: TempDir,
}

impl Tmux {
    /// Whether tmux is installed.
    pub fn is_installed() -> bool {
        let version = Command::new("tmux")
            .arg("-V")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        version.is_ok_and(|status| status.success())
    }

    /// Starts a program in a session of this size. tmux adds `TERM`, `TMUX` and `TMUX_PANE` to its
    /// environment; the profile is tmux whatever is asked for. The screen stays when the program
    /// has ended.
    #[track_caller]
    pub fn start(options: &TerminalOptions) -> Self {
        let folder = sure(TempDir::with_prefix("tmux"), "a temporary directory");
        let tmux = Self {
            socket: folder.path().join("socket"),
            _folder: folder,
        };
        let (cols, rows) = options.size;
        let mut command = tmux.command();
        command
            .args(["start-server", ";"])
            .args(["set-option", "-g", "remain-on-exit", "on", ";"])
            .args(["set-option", "-g", "status", "off", ";"])
            .args(["set-option", "-g", "history-limit", "10000", ";"])
            .args(["set-option", "-s", "extended-keys", "on", ";"])
            .args(["new-session", "-d", "-x", &cols.to_string()])
            .args(["-y", &rows.to_string(), "-c"])
            .arg(&options.cwd)
            .args(["sh", "-c", WITHIN, "sh"])
            .args(variables(options))
            .arg(&options.program)
            .args(options.args.iter().map(|arg| unseparated(arg)));
        run(&mut command);
        tmux
    }

    /// Presses keys by the names that tmux has for them, such as `Enter`, `C-c` or `BTab`.
    #[track_caller]
    pub fn send_keys(&self, names: &[&str]) {
        run(self.command().arg("send-keys").args(names));
    }

    /// Types characters.
    #[track_caller]
    pub fn send_text(&self, text: &str) {
        run(self
            .command()
            .args(["send-keys", "-l", "--", &unseparated(text)]));
    }

    /// The scrollback and the screen, with their styles as escape sequences.
    #[track_caller]
    pub fn capture(&self) -> String {
        self.captured(&["-e", "-S", "-"])
    }

    /// The screen as plain text.
    #[track_caller]
    pub fn screen(&self) -> String {
        self.captured(&[])
    }

    /// Waits until the screen contains a text.
    #[track_caller]
    pub fn until_text(&self, needle: &str) -> String {
        let deadline = Instant::now() + patience();
        loop {
            let screen = self.screen();
            if screen.contains(needle) {
                return screen;
            }
            if Instant::now() >= deadline {
                fail(&format!(
                    "waited for the text {needle:?} in tmux: it took too long\n{screen}"
                ));
            }
            thread::sleep(AGAIN);
        }
    }

    #[track_caller]
    pub fn resize(&self, cols: u16, rows: u16) {
        let (cols, rows) = (cols.to_string(), rows.to_string());
        run(self
            .command()
            .args(["resize-window", "-x", &cols, "-y", &rows]));
    }

    #[track_caller]
    fn captured(&self, options: &[&str]) -> String {
        let output = run(self.command().args(["capture-pane", "-p"]).args(options));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(&self.socket)
            .args(["-f", "/dev/null"])
            .env_remove("TMUX")
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command().arg("kill-server").output();
    }
}

/// The environment of the program, without what tmux says itself.
fn variables(options: &TerminalOptions) -> Vec<String> {
    let given = options.env.iter();
    given
        .filter(|(name, _)| !matches!(name.as_str(), "TERM" | "TMUX" | "TMUX_PANE"))
        .map(|(name, value)| unseparated(&format!("{name}={value}")))
        .collect()
}

/// A semicolon at the end of an argument would end the command.
fn unseparated(argument: &str) -> String {
    match argument.strip_suffix(';') {
        Some(rest) => format!("{rest}\\;"),
        None => argument.to_owned(),
    }
}

#[track_caller]
fn run(command: &mut Command) -> Output {
    let output = sure(command.output(), "running tmux");
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        fail(&format!("tmux: {said}"));
    }
    output
}
