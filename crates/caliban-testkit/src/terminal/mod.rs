//! A program in a terminal of its own: typed to as a person does, and its screen seen as a person
//! sees it.
//!
//! The program runs behind a real pseudo-terminal. One thread reads what it writes, shows it on an
//! emulator and answers its questions as the terminal of the [`Profile`] would. Tests wait for what
//! the screen shows and never for time to pass.
//!
//! Whatever goes wrong here is a failed test, so these functions panic with the screen drawn.

mod agree;
mod driver;
mod ending;
mod fuzz;
mod keys;
mod known;
mod measure;
mod modes;
mod patience;
mod profile;
mod pty;
mod pump;
mod screen;
mod stand_in;
mod state;
mod tmux;
mod watch;

pub use agree::agree;
pub use driver::{Terminal, TerminalOptions};
pub use ending::Ended;
pub use fuzz::{Step, steps};
pub use modes::Modes;
pub use profile::Profile;
pub use rustix::process::Signal;
pub use screen::{CellStyle, Color, Cursor, Screen};
pub use state::Counts;
pub use tmux::Tmux;
