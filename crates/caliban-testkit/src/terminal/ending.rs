//! How a program ended, and in which state it left the terminal.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use rustix::termios::tcgetattr;

use super::Terminal;
use super::modes::Modes;
use super::patience::fail;
use super::screen::Screen;

/// How long the last output of a program is waited for when something else keeps its terminal open.
const LAST: Duration = Duration::from_secs(1);

/// What is left of a program.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// What the terminal shows at the end.
    pub after: Screen,
    pub raw: Vec<u8>,
    pub modes: Modes,
}

impl Terminal {
    /// Waits for the end of the program and fails if it left the terminal otherwise than it found
    /// it. A terminal that was hung up cannot be left in any state.
    #[track_caller]
    pub fn wait(self) -> Ended {
        let is_hung_up = self.shared().lock().master.is_none();
        let ended = self.wait_dirty();
        if !is_hung_up && !ended.modes.clean() {
            let left = &ended.modes;
            let screen = ended.after.drawn();
            fail(&format!("the terminal is left dirty: {left:?}\n{screen}"));
        }
        ended
    }

    /// Waits for the end of the program, in whichever state it leaves the terminal.
    #[track_caller]
    pub fn wait_dirty(self) -> Ended {
        let status = self.look("the program to end", |state| state.status);
        // What it wrote last may be unread yet. Children of the program may keep the terminal open; what they
        // write is not waited for.
        let ended = Instant::now();
        self.still("the last output", |state| {
            state.is_over || state.last_output.max(ended).elapsed() >= LAST
        });
        let state = self.shared().lock();
        let settings = state
            .master
            .as_ref()
            .and_then(|master| tcgetattr(master).ok());
        let settings = settings.as_ref().map(|after| (self.before(), after));
        Ended {
            code: status.code(),
            signal: status.signal(),
            after: state.screen(),
            raw: state.raw().to_vec(),
            modes: Modes::of(&state.watch, state.emulated(), settings),
        }
    }
}
