//! A program in a terminal, driven by a test.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use rustix::termios::Termios;

use super::agree::replay;
use super::keys::{Encoding, encode};
use super::patience::{FRAME, QUIET, fail, patience, sure};
use super::profile::Profile;
use super::screen::Screen;
use super::state::{Counts, Shared, State};
use super::watch::PASTE;
use super::{measure, pty, pump};

/// How much of the output is shown when a test fails.
const TAIL: usize = 2_000;

/// How often a program that is still busy is looked at again.
const AGAIN: Duration = Duration::from_millis(10);

/// How long a program takes from its last sign to its end.
const ENDING: Duration = Duration::from_secs(2);

/// What to run, and in which terminal.
#[derive(Debug, Clone)]
pub struct TerminalOptions {
    pub program: PathBuf,
    pub args: Vec<String>,
    /// The whole environment: nothing is inherited.
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
    /// Columns and rows.
    pub size: (u16, u16),
    pub profile: Profile,
}

/// A program, its terminal, and what its screen shows. Dropped, it ends the program.
#[derive(Debug)]
pub struct Terminal {
    pid: Pid,
    /// Reaped at the very end: until then its number, and that of its group, belong to nobody else.
    child: Child,
    shared: Arc<Shared>,
    before: Termios,
    wake: Arc<OwnedFd>,
    pump: Mutex<Option<JoinHandle<()>>>,
}

impl Terminal {
    /// Starts a program.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "options are made for one start, where they are written"
    )]
    #[track_caller]
    pub fn start(options: TerminalOptions) -> Self {
        let program = options.program.display();
        let started = sure(pty::start(&options), &format!("starting {program}"));
        let pid = Pid::from_child(&started.child);
        let master = Arc::new(started.master);
        let state = State::new(options.profile, Arc::clone(&master), options.size);
        let shared = Arc::new(Shared::new(state));
        let wake = sure(
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK),
            "an eventfd",
        );
        let wake = Arc::new(wake);
        let pump = thread::spawn({
            let (shared, wake) = (Arc::clone(&shared), Arc::clone(&wake));
            move || pump::run(&shared, &master, &wake)
        });
        thread::spawn({
            let shared = Arc::clone(&shared);
            move || watch_over(pid, &shared)
        });
        Self {
            pid,
            child: started.child,
            shared,
            before: started.before,
            wake,
            pump: Mutex::new(Some(pump)),
        }
    }

    /// Types characters.
    pub fn keys(&self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Presses a key by its name, such as `enter`, `ctrl+c`, `shift+tab` or `f1`, as the terminal
    /// sends it in the state that the program has put it in.
    #[track_caller]
    pub fn key(&self, name: &str) {
        let encoding = {
            let state = self.shared.lock();
            Encoding::of(state.profile, &state.watch)
        };
        match encode(name, encoding) {
            Some(bytes) => self.bytes(&bytes),
            None => fail(&format!("there is no key `{name}`")),
        }
    }

    /// Sends bytes as they are. They arrive in order, and as fast as the program takes them.
    pub fn bytes(&self, bytes: &[u8]) {
        let is_left = {
            let mut state = self.shared.lock();
            state.send(bytes);
            state.has_input()
        };
        if is_left {
            self.wake();
        }
    }

    /// Pastes as terminals do: lines end with a carriage return, and the text is bracketed if the
    /// program asked for it.
    pub fn paste(&self, text: &str) {
        let text = text.replace("\r\n", "\r").replace('\n', "\r");
        let is_bracketed = self.shared.lock().watch.is_set(PASTE);
        if is_bracketed {
            // No terminal lets a paste end itself.
            let text = text.replace("\x1b[201~", "");
            self.keys(&format!("\x1b[200~{text}\x1b[201~"));
        } else {
            self.keys(&text);
        }
    }

    /// Gives the terminal another size, which tells the program.
    #[track_caller]
    pub fn resize(&self, cols: u16, rows: u16) {
        let size = (cols, rows);
        let resized = self.shared.change(|state| {
            state.resize(size);
            match &state.master {
                Some(master) => pty::resize(master, size),
                None => Ok(()),
            }
        });
        sure(resized, "resizing the terminal");
    }

    /// Sends a signal to the program alone, if it still runs.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid, signal);
    }

    /// Closes the terminal, as when its window or its connection is closed.
    pub fn hang_up(&self) {
        self.shared.change(|state| state.master = None);
        self.wake();
        let pump = self
            .pump
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // With the thread, the last of our hands leaves the terminal.
        if let Some(pump) = pump {
            let _ = pump.join();
        }
    }

    /// Waits until the screen is as wanted.
    #[track_caller]
    pub fn until(&self, what: impl Fn(&Screen) -> bool) -> Screen {
        self.until_named("the screen to be as wanted", what)
    }

    /// Waits until a row of the screen contains a text.
    #[track_caller]
    pub fn until_text(&self, needle: &str) -> Screen {
        self.until_named(&format!("the text {needle:?}"), |screen| {
            screen.contains(needle)
        })
    }

    /// Waits until no row of the screen contains a text.
    #[track_caller]
    pub fn until_gone(&self, needle: &str) -> Screen {
        self.until_named(&format!("the text {needle:?} to go"), |screen| {
            !screen.contains(needle)
        })
    }

    /// Waits until nothing was written for 150 ms and all threads of the program slept as long.
    #[track_caller]
    pub fn until_quiet(&self) -> Screen {
        let pid = self.pid();
        // Since when it sleeps, and how often it had been woken by then.
        let asleep = Cell::new(None);
        self.still("quiet", |state| {
            if !state.is_silent() || !measure::asleep(pid) {
                asleep.set(None);
                return false;
            }
            let woken = measure::voluntary_switches(pid);
            match asleep.get() {
                Some((before, since)) if before == woken => Instant::elapsed(&since) >= QUIET,
                Some(_) | None => {
                    asleep.set(Some((woken, Instant::now())));
                    false
                }
            }
        });
        self.screen()
    }

    /// What a person sees now: a frame that is being drawn is waited for.
    pub fn screen(&self) -> Screen {
        let mut state = self.shared.lock();
        while !state.is_shown() && !state.is_over {
            state = self.shared.wait(state, FRAME);
        }
        state.screen()
    }

    /// Everything that the program wrote, up to 64 MB.
    pub fn raw(&self) -> Vec<u8> {
        self.shared.lock().raw().to_vec()
    }

    /// The rows above the screen, oldest first, up to 10,000.
    pub fn scrollback(&self) -> Vec<String> {
        self.shared.lock().scrollback()
    }

    pub fn title(&self) -> String {
        self.shared.lock().watch.title().to_owned()
    }

    pub fn bells(&self) -> usize {
        self.shared.lock().watch.bells()
    }

    /// What the program copied through the terminal.
    pub fn clipboard(&self) -> Vec<String> {
        self.shared.lock().watch.clipboard()
    }

    /// Sequences that neither the emulator nor the terminals imitated here know.
    pub fn unhandled(&self) -> Vec<String> {
        self.shared.lock().unhandled()
    }

    /// Whether three emulators show the same after what was written so far. After a change of
    /// size they may lawfully differ on the main screen, which some reflow and some cut.
    pub fn agreed(&self) -> Result<(), String> {
        let state = self.shared.lock();
        let Some(sizes) = state.sizes() else {
            return Err("too much was written to be shown again".to_owned());
        };
        if sizes.len() > 1 && !state.watch.is_alternate() {
            return Ok(());
        }
        replay(state.raw(), sizes)
    }

    pub fn counts(&self) -> Counts {
        self.shared.lock().counts()
    }

    /// How often the threads of the program went to sleep by themselves.
    pub fn voluntary_switches(&self) -> u64 {
        measure::voluntary_switches(self.pid())
    }

    /// Resident memory of the program in bytes.
    pub fn rss(&self) -> u64 {
        measure::rss(self.pid())
    }

    /// Processor time of the program, in steps of 10 ms.
    pub fn cpu(&self) -> Duration {
        measure::cpu(self.pid())
    }

    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) fn before(&self) -> &Termios {
        &self.before
    }

    #[track_caller]
    fn until_named(&self, name: &str, what: impl Fn(&Screen) -> bool) -> Screen {
        let deadline = Instant::now() + patience();
        loop {
            let (screen, generation, is_over) = {
                let state = self.shared.lock();
                let shown = state.is_shown().then(|| state.screen());
                (shown, state.generation, state.is_over)
            };
            // Unlocked, since what is looked for may ask the terminal for more.
            if let Some(screen) = screen.filter(|screen| what(screen)) {
                return screen;
            }
            if is_over {
                self.give_up(name, "nothing more will be written");
            }
            let mut state = self.shared.lock();
            while state.generation == generation {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    drop(state);
                    self.give_up(name, "it took too long");
                }
                let was_shown = state.is_shown();
                let limit = if was_shown { left } else { left.min(FRAME) };
                state = self.shared.wait(state, limit);
                if state.is_shown() != was_shown {
                    break;
                }
            }
        }
    }

    /// Waits until the state has something.
    #[track_caller]
    pub(super) fn look<T>(&self, name: &str, what: impl Fn(&State) -> Option<T>) -> T {
        let deadline = Instant::now() + patience();
        let mut state = self.shared.lock();
        loop {
            if let Some(found) = what(&state) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(state);
                self.give_up(name, "it took too long");
            }
            state = self.shared.wait(state, left);
        }
    }

    /// Waits until something is so that no event tells of, by looking again and again.
    #[track_caller]
    pub(super) fn still(&self, name: &str, what: impl Fn(&State) -> bool) {
        let deadline = Instant::now() + patience();
        let mut state = self.shared.lock();
        while !what(&state) {
            if Instant::now() >= deadline {
                drop(state);
                self.give_up(name, "it took too long");
            }
            state = self.shared.wait(state, AGAIN);
        }
    }

    #[track_caller]
    fn give_up(&self, name: &str, why: &str) -> ! {
        let mut state = self.shared.lock();
        if state.is_over && state.status.is_none() {
            state = self.shared.wait(state, ENDING);
        }
        let ended = state.status.map_or_else(
            || "the program runs".to_owned(),
            |status| format!("the program has ended, {status}"),
        );
        let raw = state.raw();
        let tail = readable(&raw[raw.len().saturating_sub(TAIL)..]);
        let screen = state.screen().drawn();
        drop(state);
        fail(&format!(
            "waited for {name}: {why}; {ended}\n{screen}the last output: {tail}"
        ))
    }

    fn wake(&self) {
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // What it left behind goes too.
        let _ = kill_process_group(self.pid, Signal::KILL);
        self.hang_up();
        let mut state = self.shared.lock();
        let deadline = Instant::now() + ENDING;
        while state.status.is_none() && Instant::now() < deadline {
            state = self.shared.wait(state, ENDING);
        }
        let _ = self.child.try_wait();
    }
}

/// Waits for the end of the program, without reaping it.
fn watch_over(pid: Pid, shared: &Shared) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Ok(Some(ended)) => {
                let code = ended.exit_status().map(|code| code << 8);
                let status = code.or(ended.terminating_signal()).unwrap_or_default();
                shared.change(|state| state.status = Some(ExitStatus::from_raw(status)));
                return;
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Output with its control characters spelt out.
fn readable(bytes: &[u8]) -> String {
    let mut out = String::new();
    for c in String::from_utf8_lossy(bytes).chars() {
        if c.is_control() {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}
