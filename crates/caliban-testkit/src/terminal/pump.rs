//! The thread between a program and its terminal: reads what it writes, writes what it is sent.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};

use super::state::Shared;

/// A read takes no more than this.
const CHUNK: usize = 64 << 10;

/// Runs until the program's side is closed or the terminal is hung up. However it ends, those who
/// wait learn of it.
pub(super) fn run(shared: &Shared, master: &OwnedFd, wake: &OwnedFd) {
    let _over = Over(shared);
    let mut buffer = vec![0; CHUNK];
    loop {
        let (wanted, timeout) = {
            let state = shared.lock();
            if state.master.is_none() {
                return;
            }
            let mut wanted = PollFlags::IN;
            wanted.set(PollFlags::OUT, state.has_input());
            (wanted, state.next_answer().map(until))
        };
        let mut sources = [
            PollFd::from_borrowed_fd(master.as_fd(), wanted),
            PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN),
        ];
        match poll(&mut sources, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        if sources[1].revents().contains(PollFlags::IN) {
            let _ = read(wake, &mut [0; 8]);
        }
        // Read under the lock: whoever holds it knows that nothing is on its way.
        let mut state = shared.lock();
        let taken = read(master, &mut buffer);
        match taken {
            Ok(0) => return,
            Ok(n) => state.feed(&buffer[..n]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The last process behind the terminal has closed it.
            Err(_) => return,
        }
        state.answer_late(Instant::now());
        state.flush();
        drop(state);
        if taken.is_ok() {
            shared.change(|_| ());
        }
    }
}

fn until(due: Instant) -> Timespec {
    let left = due.saturating_duration_since(Instant::now());
    Timespec::try_from(left).unwrap_or(Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    })
}

struct Over<'a>(&'a Shared);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.change(|state| state.is_over = true);
    }
}
