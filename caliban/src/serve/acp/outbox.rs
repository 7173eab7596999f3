//! What is on its way to the client. A thread of its own writes it, so that a client which reads
//! slowly is heard all the same.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_model::CancellationToken;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::console::Console;
use crate::exit::Failure;

/// Bytes that may wait before sessions are not heard any more, which in turn holds up their work.
const ROOM: usize = 1024 * 1024;
/// Bytes that may wait before no requests are read any more, which only the answers to requests
/// can come to.
const MOST: usize = 8 * 1024 * 1024;
/// How long what waits may take to be written at the end.
const LAST: Duration = Duration::from_millis(300);

/// Lines on their way out. Can be cloned; all clones write in one order.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    lines: Sender<String>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: AtomicUsize,
    /// Less waits than before.
    written: Notify,
    /// Nothing will be written any more.
    broken: CancellationToken,
    failure: Mutex<Option<Failure>>,
}

impl Outbox {
    pub(super) fn open(console: Console) -> Self {
        let (lines, to_write) = channel();
        let state = Arc::new(State::default());
        let writing = Arc::clone(&state);
        std::thread::spawn(move || write(console, &to_write, &writing));
        Self { lines, state }
    }

    /// Writes a line behind all others. Waits for nobody.
    pub(super) fn send(&self, line: String) {
        self.state.waiting.fetch_add(line.len(), Ordering::SeqCst);
        // Whoever serves hears that nobody reads any more.
        let _ = self.lines.send(line);
    }

    /// Waits until there is room for what sessions tell.
    pub(super) async fn room(&self) {
        self.less_than(ROOM).await;
    }

    /// Waits until there is room for answers.
    pub(super) async fn room_for_answers(&self) {
        self.less_than(MOST).await;
    }

    async fn less_than(&self, bytes: usize) {
        loop {
            let written = self.state.written.notified();
            tokio::pin!(written);
            written.as_mut().enable();
            if self.state.waiting.load(Ordering::SeqCst) < bytes {
                return;
            }
            written.await;
        }
    }

    /// Nobody reads any more.
    pub(super) async fn broken(&self) {
        self.state.broken.cancelled().await;
    }

    /// Lets what waits be written, for a moment.
    pub(super) async fn finish(&self) {
        let all = async {
            tokio::select! {
                () = self.less_than(1) => {}
                () = self.broken() => {}
            }
        };
        // Who does not read by now does not want it.
        let _ = timeout(LAST, all).await;
    }

    /// Why nothing is written any more.
    pub(super) fn failure(&self) -> Failure {
        let mut failure = self.state.lock();
        failure.take().unwrap_or(Failure::OutputClosed)
    }
}

impl State {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Failure>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(mut console: Console, lines: &Receiver<String>, state: &State) {
    while let Ok(first) = lines.recv() {
        let mut size = first.len();
        let mut written = console.put(&first);
        // What is there already goes out in one piece.
        while let (Ok(()), Ok(next)) = (&written, lines.try_recv()) {
            size += next.len();
            written = console.put(&next);
        }
        let written = written.and_then(|()| console.flush());
        state.waiting.fetch_sub(size, Ordering::SeqCst);
        state.written.notify_waiters();
        if let Err(failure) = written {
            *state.lock() = Some(failure);
            state.broken.cancel();
            return;
        }
    }
}
