//! Lines that somebody types, waited for beside whatever else happens.

use tokio::sync::mpsc;

use crate::exit::Failure;

/// Lines that may wait to be taken.
const WAITING: usize = 64;

/// The lines of standard input, or none ever where nothing is to be typed.
pub(crate) struct TypedLines(Option<mpsc::Receiver<std::io::Result<String>>>);

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
                let is_last = line.is_err();
                if send.blocking_send(line).is_err() || is_last {
                    return;
                }
            }
        });
        Self(Some(lines))
    }

    /// The next line; nothing at the end of input, and after what is no line. Waits for ever where
    /// nobody types.
    pub(crate) async fn next(&mut self) -> Option<Result<String, Failure>> {
        match &mut self.0 {
            Some(lines) => {
                let line = lines.recv().await?;
                Some(line.map_err(|error| Failure::NoInput(format!("standard input: {error}"))))
            }
            None => std::future::pending().await,
        }
    }
}
