//! Lines that somebody types, waited for beside whatever else happens.

use tokio::sync::mpsc;

/// Lines that may wait to be taken.
const WAITING: usize = 64;

/// The lines of standard input, or none ever where nothing is to be typed.
pub(crate) struct TypedLines(Option<mpsc::Receiver<String>>);

impl TypedLines {
    /// Nobody types.
    pub(crate) const fn none() -> Self {
        Self(None)
    }

    /// Read in a thread of their own: nothing interrupts a terminal.
    pub(crate) fn of_standard_input() -> Self {
        let (send, lines) = mpsc::channel(WAITING);
        std::thread::spawn(move || {
            for line in std::io::stdin().lines() {
                let Ok(line) = line else { return };
                if send.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self(Some(lines))
    }

    /// The next line; nothing at the end of input. Waits for ever where nobody types.
    pub(crate) async fn next(&mut self) -> Option<String> {
        match &mut self.0 {
            Some(lines) => lines.recv().await,
            None => std::future::pending().await,
        }
    }
}
