//! The terminal as a descriptor: read and written without blocking, and restored whatever happens.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::termios::{OptionalActions, Termios};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::modes::LEAVE;

/// What has not been written yet is at most this much: a picture or two.
const PENDING_LIMIT: usize = 32 * 1024 * 1024;
/// How long leaving waits for a terminal that takes nothing.
const LEAVE_PATIENCE: Duration = Duration::from_secs(1);
/// What the terminal still sends after it was left is read away for so long.
const AFTERMATH: Duration = Duration::from_millis(50);
/// What is read at once without waiting, at most.
const DRAIN_LIMIT: usize = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum TtyError {
    #[error("there is no terminal: {0}")]
    Absent(#[source] io::Error),
    #[error("the terminal cannot be watched: {0}")]
    Unwatched(#[source] io::Error),
}

/// What became of bytes that were to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    All,
    /// The terminal is slow: the rest is kept, and goes first.
    Partly,
    /// Too much is kept already; of these bytes nothing was taken.
    Refused,
}

/// The descriptor, which a panic hook and a signal may need too.
#[derive(Debug, Clone)]
struct Descriptor(Arc<File>);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What it takes to leave the terminal, and to come back.
struct Entered {
    descriptor: Descriptor,
    original: Termios,
    modes: Vec<u8>,
}

/// The one terminal that is in raw mode.
static ENTERED: Mutex<Option<Entered>> = Mutex::new(None);

fn entered() -> MutexGuard<'static, Option<Entered>> {
    ENTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The terminal of the process.
#[derive(Debug)]
pub struct Tty {
    descriptor: Descriptor,
    watch: AsyncFd<Descriptor>,
    /// What the terminal has not taken yet, at most `PENDING_LIMIT`, and how much of it it has.
    pending: Vec<u8>,
    sent: usize,
}

impl Tty {
    /// Opens the terminal anew: not to block is a property of the open file, which the shell and
    /// others share with the standard streams.
    pub fn open() -> Result<Self, TtyError> {
        let descriptor = Descriptor(Arc::new(reopened().map_err(TtyError::Absent)?));
        Self::over(descriptor)
    }

    #[expect(
        deprecated,
        reason = "what replaces it is unsafe; the descriptor is open and the same for as long as it is watched"
    )]
    fn over(descriptor: Descriptor) -> Result<Self, TtyError> {
        // For reading alone: a terminal that has taken a frame is no news.
        let watch = AsyncFd::with_interest(descriptor.clone(), Interest::READABLE)
            .map_err(TtyError::Unwatched)?;
        Ok(Self {
            descriptor,
            watch,
            pending: Vec::new(),
            sent: 0,
        })
    }

    /// Columns and rows.
    pub fn size(&self) -> (u16, u16) {
        const USUAL: (u16, u16) = (80, 24);
        match rustix::termios::tcgetwinsize(&self.descriptor) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            Ok(_) | Err(_) => USUAL,
        }
    }

    /// Width and height of a cell in dots, where the terminal tells.
    pub fn cell_dots(&self) -> Option<(u16, u16)> {
        let size = rustix::termios::tcgetwinsize(&self.descriptor).ok()?;
        let width = size.ws_xpixel.checked_div(size.ws_col)?;
        let height = size.ws_ypixel.checked_div(size.ws_row)?;
        (width > 0 && height > 0).then_some((width, height))
    }

    /// Every key comes at once and unchanged, until `leave_raw` or `restore`.
    pub fn enter_raw(&mut self) -> io::Result<()> {
        let mut slot = entered();
        if slot.is_none() {
            *slot = Some(enter(&self.descriptor)?);
        }
        Ok(())
    }

    /// Writes what `enter` gave, and remembers it for the return from a suspension.
    pub fn set_modes(&mut self, modes: &[u8]) -> io::Result<Written> {
        self.remember(modes);
        self.write(modes)
    }

    /// What sets the modes that are in force by now, for the return from a suspension: those of
    /// `enter`, with what was sent since for the keyboard or the mouse.
    pub fn remember(&mut self, modes: &[u8]) {
        if let Some(entered) = entered().as_mut() {
            entered.modes = modes.to_vec();
        }
    }

    /// Lets the terminal do the editing again. It is to be called behind `LEAVE`: what the terminal
    /// sends until it has understood that is read away.
    pub fn leave_raw(&mut self) -> io::Result<()> {
        let Some(entered) = entered().take() else {
            return Ok(());
        };
        leave(&entered)
    }

    /// What was typed, as much of it as is there; nothing means that the terminal is gone.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut guard = match self.watch.readable().await {
                Ok(guard) => guard,
                Err(error) => return hung_up(error),
            };
            match guard.try_io(|descriptor| read_some(&descriptor.get_ref().0, buffer)) {
                Ok(Ok(count)) => return Ok(count),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return hung_up(error),
                Err(_would_block) => {}
            }
        }
    }

    /// Writes as much as the terminal takes without waiting, and keeps the rest. With no bytes it
    /// goes on with what was kept.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<Written> {
        if self.pending.len() + bytes.len() > PENDING_LIMIT {
            return Ok(Written::Refused);
        }
        self.pending.extend_from_slice(bytes);
        while let Some(rest) = self
            .pending
            .get(self.sent..)
            .filter(|rest| !rest.is_empty())
        {
            match (&*self.descriptor.0).write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.pending.drain(..self.sent);
                    self.sent = 0;
                    return Ok(Written::Partly);
                }
                Err(error) => return Err(error),
            }
        }
        self.pending.clear();
        self.sent = 0;
        Ok(Written::All)
    }

    /// Whether everything has been written.
    pub fn is_free(&self) -> bool {
        self.pending.is_empty()
    }

    /// Waits until the terminal takes more.
    #[expect(
        deprecated,
        reason = "what replaces it is unsafe; the descriptor is open for as long as it is watched"
    )]
    pub async fn writable(&self) -> io::Result<()> {
        if ready(&self.descriptor, PollFlags::OUT, Duration::ZERO)? {
            return Ok(());
        }
        // A watch of its own for as long as it waits, on a descriptor of its own: one can be
        // watched only once.
        let other = Descriptor(Arc::new(self.descriptor.0.try_clone()?));
        let watch = AsyncFd::with_interest(other, Interest::WRITABLE)?;
        loop {
            let mut guard = watch.writable().await?;
            // Writing does not tell the watch when the terminal is full, so it is asked.
            if ready(&self.descriptor, PollFlags::OUT, Duration::ZERO)? {
                return Ok(());
            }
            guard.clear_ready();
        }
    }

    /// Writes what was kept and then this, waiting for at most a second: for leaving.
    pub fn write_now(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut all = std::mem::take(&mut self.pending);
        all.drain(..self.sent.min(all.len()));
        self.sent = 0;
        all.extend_from_slice(bytes);
        write_within(&self.descriptor, &all, LEAVE_PATIENCE)
    }

    /// What has been typed and not been read, without waiting for more.
    pub fn drain_input(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        while bytes.len() < DRAIN_LIMIT {
            match (&*self.descriptor.0).read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            }
        }
        bytes
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        let mine = |entered: &Entered| Arc::ptr_eq(&entered.descriptor.0, &self.descriptor.0);
        if entered().as_ref().is_some_and(mine) {
            restore();
        }
    }
}

/// Leaves the terminal as it was found, if it was entered. For panic hooks and for threads that wait
/// for signals; doing it twice does nothing.
pub fn restore() {
    let Some(entered) = entered().take() else {
        return;
    };
    // There is nobody left to tell that it failed.
    let _ = write_within(&entered.descriptor, LEAVE, LEAVE_PATIENCE);
    let _ = leave(&entered);
}

/// Stops the process as the shell expects it, and comes back when it is continued. The caller then
/// draws everything.
pub fn suspend() -> io::Result<()> {
    /// The signal is for the process, not for this thread, which may run on for a moment. A process
    /// that no shell could continue is not stopped at all, so there is nothing else to wait for.
    const STOPPING: Duration = Duration::from_millis(50);
    let Some(was) = entered().take() else {
        rustix::process::kill_current_process_group(Signal::TSTP)?;
        return Ok(());
    };
    write_within(&was.descriptor, LEAVE, LEAVE_PATIENCE)?;
    leave(&was)?;
    rustix::process::kill_current_process_group(Signal::TSTP)?;
    std::thread::sleep(STOPPING);
    let mut again = enter(&was.descriptor)?;
    again.modes = was.modes;
    let written = write_within(&again.descriptor, &again.modes, LEAVE_PATIENCE);
    *entered() = Some(again);
    written
}

fn enter(descriptor: &Descriptor) -> io::Result<Entered> {
    let original = rustix::termios::tcgetattr(descriptor)?;
    let mut raw = original.clone();
    raw.make_raw();
    let set = || rustix::termios::tcsetattr(descriptor, OptionalActions::Now, &raw);
    rustix::io::retry_on_intr(set)?;
    Ok(Entered {
        descriptor: descriptor.clone(),
        original,
        modes: Vec::new(),
    })
}

fn leave(entered: &Entered) -> io::Result<()> {
    let until = Instant::now() + AFTERMATH;
    let mut buffer = [0; 4096];
    while let Some(left) = until.checked_duration_since(Instant::now())
        && ready(&entered.descriptor, PollFlags::IN, left).unwrap_or(false)
    {
        match (&*entered.descriptor.0).read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
    }
    let now = OptionalActions::Now;
    let set = || rustix::termios::tcsetattr(&entered.descriptor, now, &entered.original);
    rustix::io::retry_on_intr(set)?;
    Ok(())
}

/// Reads until nothing is there or the buffer is full: a terminal gives little at a time.
fn read_some(mut file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = file.read(buffer)?;
    while let Some(rest) = buffer.get_mut(count..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) | Err(_) => break,
            Ok(more) => count += more,
        }
    }
    Ok(count)
}

/// A terminal that is gone says so in one of two ways.
fn hung_up(error: io::Error) -> io::Result<usize> {
    match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::IO.raw_os_error() => Ok(0),
        Some(_) | None => Err(error),
    }
}

/// Waits for a descriptor.
fn ready(descriptor: &Descriptor, flags: PollFlags, patience: Duration) -> io::Result<bool> {
    let mut polled = [PollFd::new(descriptor, flags)];
    let patience = Timespec::try_from(patience).map_err(io::Error::other)?;
    // A signal, such as that of another size, is no reason to give up.
    let ready = rustix::io::retry_on_intr(|| poll(&mut polled, Some(&patience)))?;
    Ok(ready > 0)
}

fn write_within(descriptor: &Descriptor, bytes: &[u8], patience: Duration) -> io::Result<()> {
    let until = Instant::now() + patience;
    let mut rest = bytes;
    while !rest.is_empty() {
        match (&*descriptor.0).write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = &rest[count.min(rest.len())..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = until.checked_duration_since(Instant::now());
                let left = left.ok_or(io::ErrorKind::TimedOut)?;
                ready(descriptor, PollFlags::OUT, left)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The terminal behind the standard streams if they are one, else that of the process.
fn reopened() -> io::Result<File> {
    let (input, output) = (io::stdin(), io::stdout());
    if input.is_terminal() && output.is_terminal() {
        // It may belong to another user since; then only the other way is open.
        if let Ok(file) = name_of(output.as_fd()).and_then(opened) {
            return Ok(file);
        }
    }
    opened(PathBuf::from("/dev/tty"))
}

fn name_of(descriptor: BorrowedFd<'_>) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let name = rustix::termios::ttyname(descriptor, Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(
        name.into_bytes(),
    )))
}

fn opened(path: PathBuf) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let descriptor = rustix::fs::open(path, flags, Mode::empty())?;
    Ok(File::from(descriptor))
}

#[cfg(test)]
mod tests {
    use rustix::termios::LocalModes;

    use super::*;
    use crate::modes::{MouseCapture, Surface, enter};

    /// There is one terminal that is entered, so there is one such test at a time.
    static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

    /// A terminal, and the other side of it.
    fn pair() -> (Tty, File) {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let name = PathBuf::from(name.into_string().unwrap());
        let descriptor = Descriptor(Arc::new(opened(name).unwrap()));
        (Tty::over(descriptor).unwrap(), File::from(controller))
    }

    fn local(tty: &Tty) -> LocalModes {
        rustix::termios::tcgetattr(&tty.descriptor)
            .unwrap()
            .local_modes
    }

    fn received(mut controller: &File, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        controller.read_exact(&mut bytes).unwrap();
        bytes
    }

    #[tokio::test]
    async fn the_terminal_is_left_as_it_was_found() {
        let _one = ONE.lock().await;
        let (mut tty, controller) = pair();
        let before = local(&tty);
        assert!(before.contains(LocalModes::ICANON | LocalModes::ECHO));
        restore();
        tty.enter_raw().unwrap();
        tty.enter_raw().unwrap();
        assert!(!local(&tty).intersects(LocalModes::ICANON | LocalModes::ECHO));
        let modes = enter(Surface::Fullscreen, MouseCapture::On);
        assert_eq!(tty.set_modes(&modes).unwrap(), Written::All);
        restore();
        assert_eq!(local(&tty), before);
        let expected = [&modes, LEAVE].concat();
        assert_eq!(received(&controller, expected.len()), expected);
        // Only once.
        restore();
        tty.leave_raw().unwrap();
        tty.write(b"!").unwrap();
        assert_eq!(received(&controller, 1), b"!");
    }

    #[tokio::test]
    async fn what_is_dropped_is_left() {
        let _one = ONE.lock().await;
        let (mut tty, controller) = pair();
        let descriptor = tty.descriptor.clone();
        let before = local(&tty);
        tty.enter_raw().unwrap();
        drop(tty);
        let after = rustix::termios::tcgetattr(&descriptor).unwrap().local_modes;
        assert_eq!(after, before);
        assert_eq!(received(&controller, LEAVE.len()), LEAVE);
    }

    #[tokio::test]
    async fn only_the_one_that_entered_leaves() {
        let _one = ONE.lock().await;
        let (mut tty, _controller) = pair();
        tty.enter_raw().unwrap();
        drop(pair());
        assert!(!local(&tty).contains(LocalModes::ICANON));
    }

    #[tokio::test]
    async fn keys_are_read_and_drained() {
        let _one = ONE.lock().await;
        let (mut tty, mut controller) = pair();
        tty.enter_raw().unwrap();
        let mut buffer = [0; 8];
        controller.write_all(b"ab\x03").unwrap();
        assert_eq!(tty.read(&mut buffer).await.unwrap(), 3);
        assert_eq!(&buffer[..3], b"ab\x03");
        assert_eq!(tty.drain_input(), b"");
        controller.write_all(b"typed ahead").unwrap();
        assert!(ready(&tty.descriptor, PollFlags::IN, LEAVE_PATIENCE).unwrap());
        assert_eq!(tty.drain_input(), b"typed ahead");
    }

    #[tokio::test]
    async fn a_terminal_that_is_gone_ends_the_reading() {
        let _one = ONE.lock().await;
        let (mut tty, controller) = pair();
        tty.enter_raw().unwrap();
        drop(controller);
        let mut buffer = [0; 8];
        assert_eq!(tty.read(&mut buffer).await.unwrap(), 0);
        assert!(tty.write_now(b"x").is_err());
    }

    #[tokio::test]
    async fn a_slow_terminal_gets_everything_in_order() {
        let _one = ONE.lock().await;
        let (mut tty, controller) = pair();
        tty.enter_raw().unwrap();
        let bytes: Vec<u8> = (0..400_000_u32).map(|n| b'a' + (n % 23) as u8).collect();
        assert_eq!(tty.write(&bytes[..300_000]).unwrap(), Written::Partly);
        assert!(!tty.is_free());
        assert_eq!(tty.write(&bytes[300_000..]).unwrap(), Written::Partly);
        let reader = std::thread::spawn(move || (received(&controller, 400_000), controller));
        while !tty.is_free() {
            tty.writable().await.unwrap();
            tty.write(&[]).unwrap();
        }
        let (all, _controller) = reader.join().unwrap();
        assert!(all == bytes);
    }

    #[tokio::test]
    async fn what_waits_is_bounded() {
        let _one = ONE.lock().await;
        let (mut tty, _controller) = pair();
        tty.enter_raw().unwrap();
        let much = vec![b'x'; PENDING_LIMIT];
        assert_eq!(tty.write(&much).unwrap(), Written::Partly);
        assert_eq!(tty.write(&much).unwrap(), Written::Refused);
        tty.pending.clear();
        tty.sent = 0;
        // Leaving ends although nobody reads.
        assert!(write_within(&tty.descriptor, &much, Duration::ZERO).is_err());
        *entered() = None;
    }

    #[tokio::test]
    async fn the_size_is_never_nothing() {
        let (tty, controller) = pair();
        assert_eq!(tty.size(), (80, 24));
        let size = rustix::termios::Winsize {
            ws_col: 100,
            ws_row: 30,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&controller, size).unwrap();
        assert_eq!(tty.size(), (100, 30));
    }
}
