//! Directories whose entries are watched. Only what can change a file wakes anybody: a directory
//! such as `/etc` is read by every program that starts.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a burst of changes is waited out.
const QUIET: Duration = Duration::from_millis(250);

/// What was noticed in one burst.
#[derive(Debug)]
pub(super) enum Noticed {
    /// These came, went or were written.
    Paths(Vec<PathBuf>),
    /// More happened than could be told.
    Lost,
}

#[cfg(target_os = "linux")]
pub(super) use linux::Directories;
#[cfg(not(target_os = "linux"))]
pub(super) use others::Directories;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::sync::{Arc, Mutex, PoisonError};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    use rustix::pipe::{PipeFlags, pipe_with};

    use super::{Noticed, Path, PathBuf, QUIET};

    /// What is read at once, and the stack of the thread that does nothing else.
    const BUFFER: usize = 16 * 1024;
    const STACK: usize = 256 * 1024;

    /// Watched directories, by the numbers the kernel has for them.
    type Numbers = Arc<Mutex<HashMap<i32, PathBuf>>>;

    /// Watches while it lives.
    #[derive(Debug)]
    pub(in crate::live) struct Directories {
        queue: Arc<OwnedFd>,
        numbers: Numbers,
        /// Its end is the end of the thread.
        _alive: OwnedFd,
    }

    impl Directories {
        /// Begins to watch; `tell` is called on a thread of its own.
        pub(in crate::live) fn start(
            mut tell: impl FnMut(Noticed) + Send + 'static,
        ) -> io::Result<Self> {
            let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
            let queue = Arc::new(inotify::init(flags)?);
            let (ended, alive) = pipe_with(PipeFlags::CLOEXEC)?;
            let numbers = Numbers::default();
            let (heard, known) = (Arc::clone(&queue), Arc::clone(&numbers));
            std::thread::Builder::new()
                .name("settings".to_owned())
                .stack_size(STACK)
                .spawn(move || {
                    while let Some(noticed) = burst(&heard, &ended, &known) {
                        tell(noticed);
                    }
                })?;
            Ok(Self {
                queue,
                numbers,
                _alive: alive,
            })
        }

        pub(in crate::live) fn watch(&mut self, directory: &Path) -> io::Result<()> {
            let flags = WatchFlags::CREATE
                | WatchFlags::MOVED_TO
                | WatchFlags::MOVED_FROM
                | WatchFlags::DELETE
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::ATTRIB
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            let number = inotify::add_watch(&*self.queue, directory, flags)?;
            let mut numbers = lock(&self.numbers);
            numbers.insert(number, directory.to_owned());
            Ok(())
        }

        pub(in crate::live) fn unwatch(&mut self, directory: &Path) {
            let mut numbers = lock(&self.numbers);
            let found = numbers.iter().find(|(_, known)| *known == directory);
            if let Some(number) = found.map(|(number, _)| *number) {
                numbers.remove(&number);
                // A directory that is gone has stopped being watched by itself.
                let _ = inotify::remove_watch(&*self.queue, number);
            }
        }
    }

    fn lock(numbers: &Numbers) -> std::sync::MutexGuard<'_, HashMap<i32, PathBuf>> {
        numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that happens until nothing does for a while; nothing once nobody wants to know.
    fn burst(queue: &OwnedFd, ended: &OwnedFd, numbers: &Numbers) -> Option<Noticed> {
        let mut paths = Vec::new();
        let mut is_lost = false;
        let quiet = Timespec::try_from(QUIET).ok();
        loop {
            let has_begun = is_lost || !paths.is_empty();
            let mut fds = [
                PollFd::new(queue, PollFlags::IN),
                PollFd::new(ended, PollFlags::IN),
            ];
            let patience = quiet.as_ref().filter(|_| has_begun);
            match poll(&mut fds, patience) {
                Ok(0) => break,
                Ok(_) if !fds[1].revents().is_empty() => return None,
                Ok(_) => is_lost |= read(queue, numbers, &mut paths),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        Some(if is_lost {
            Noticed::Lost
        } else {
            Noticed::Paths(paths)
        })
    }

    /// Takes what waits; whether something was lost.
    fn read(queue: &OwnedFd, numbers: &Numbers, paths: &mut Vec<PathBuf>) -> bool {
        let mut buffer = vec![std::mem::MaybeUninit::uninit(); BUFFER];
        let mut reader = inotify::Reader::new(queue, &mut buffer);
        let numbers = lock(numbers);
        let mut is_lost = false;
        loop {
            let Ok(event) = reader.next() else {
                return is_lost;
            };
            is_lost |= event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            if let Some(directory) = numbers.get(&event.wd()) {
                let name = event.file_name();
                let name = name.map(|name| std::ffi::OsStr::from_bytes(name.to_bytes()));
                paths.push(name.map_or_else(|| directory.clone(), |name| directory.join(name)));
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod others {
    use std::io;

    use notify::{RecommendedWatcher, RecursiveMode};
    use notify_debouncer_full::{DebounceEventResult, Debouncer, RecommendedCache, new_debouncer};

    use super::{Noticed, Path, QUIET};

    /// Watches while it lives.
    #[derive(Debug)]
    pub(in crate::live) struct Directories(Debouncer<RecommendedWatcher, RecommendedCache>);

    impl Directories {
        /// Begins to watch; `tell` is called on a thread of its own.
        pub(in crate::live) fn start(
            mut tell: impl FnMut(Noticed) + Send + 'static,
        ) -> io::Result<Self> {
            let handler = move |result: DebounceEventResult| match result {
                Ok(events) => {
                    let changes = events.iter().filter(|event| !event.kind.is_access());
                    tell(Noticed::Paths(
                        changes.flat_map(|event| event.paths.clone()).collect(),
                    ));
                }
                Err(_) => tell(Noticed::Lost),
            };
            let debouncer = new_debouncer(QUIET, None, handler).map_err(io::Error::other)?;
            Ok(Self(debouncer))
        }

        pub(in crate::live) fn watch(&mut self, directory: &Path) -> io::Result<()> {
            let watched = self.0.watch(directory, RecursiveMode::NonRecursive);
            watched.map_err(io::Error::other)
        }

        pub(in crate::live) fn unwatch(&mut self, directory: &Path) {
            // A directory that is gone has stopped being watched by itself.
            let _ = self.0.unwatch(directory);
        }
    }
}
