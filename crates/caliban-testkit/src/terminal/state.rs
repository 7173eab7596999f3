//! Everything known about a running program: what it wrote, what its screen shows, what it is still
//! to be sent.

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitStatus;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::{Errno, ioctl_fionread, write};

use super::known::Strangers;
use super::patience;
use super::profile::{Profile, Scene};
use super::screen::Screen;
use super::stand_in::StandIn;
use super::watch::Watch;

/// Rows above the screen that are kept.
const SCROLLBACK: usize = 10_000;
/// Output that is kept; from the byte after it on, the older half is forgotten.
const RAW: usize = 64 << 20;

/// Answers that wait, and bytes that wait to be sent, beyond which a terminal answers no more.
const ANSWERS: usize = 1_000;
const UNREAD: usize = 1 << 20;

/// What was counted about the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub bytes: usize,
    /// Reads of ours that brought something, which is at most one for each write of the program
    /// and fewer where it writes faster than we read.
    pub writes: usize,
    /// Synchronised frames that were completed.
    pub frames: usize,
}

/// The state and a bell that rings when it changes.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    pub(super) fn new(state: State) -> Self {
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// A test that panicked while it looked has changed nothing.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and tells everyone who waits.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        state.generation += 1;
        drop(state);
        self.changed.notify_all();
        result
    }

    /// Waits for a change, at most so long.
    pub(super) fn wait<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        limit: Duration,
    ) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_timeout(state, limit);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

pub(super) struct State {
    pub(super) profile: Profile,
    /// Ours until the terminal is hung up.
    pub(super) master: Option<Arc<OwnedFd>>,
    pub(super) watch: Watch,
    emulator: vt100::Parser<Strangers>,
    stand_in: StandIn,
    parser: vte::Parser,
    raw: Vec<u8>,
    /// At which byte of the output the size became which.
    sizes: Vec<(usize, (u16, u16))>,
    counts: Counts,
    pub(super) last_output: Instant,
    /// Bytes that the terminal has not yet taken: what the test sends, and answers up to [`UNREAD`].
    input: VecDeque<u8>,
    /// Answers for later, at most [`ANSWERS`].
    answers: Vec<(Instant, String)>,
    /// Counts changes, so that a look is taken once at each.
    pub(super) generation: u64,
    pub(super) status: Option<ExitStatus>,
    /// No more output will come.
    pub(super) is_over: bool,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("profile", &self.profile)
            .field("counts", &self.counts)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl State {
    pub(super) fn new(profile: Profile, master: Arc<OwnedFd>, size: (u16, u16)) -> Self {
        let (cols, rows) = positive(size);
        Self {
            profile,
            master: Some(master),
            watch: Watch::default(),
            emulator: vt100::Parser::new_with_callbacks(
                rows,
                cols,
                SCROLLBACK,
                Strangers::default(),
            ),
            stand_in: StandIn::default(),
            parser: vte::Parser::new(),
            raw: Vec::new(),
            sizes: vec![(0, size)],
            counts: Counts::default(),
            last_output: Instant::now(),
            input: VecDeque::new(),
            answers: Vec::new(),
            generation: 0,
            status: None,
            is_over: false,
        }
    }

    /// Takes in what one read brought.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        self.last_output = Instant::now();
        self.counts.writes += 1;
        self.counts.bytes += bytes.len();
        if self.raw.len() + bytes.len() > RAW {
            self.raw.drain(..self.raw.len().min(RAW / 2));
        }
        self.raw.extend_from_slice(bytes);
        while !bytes.is_empty() {
            let taken = self.parser.advance_until_terminated(&mut self.watch, bytes);
            let (now, rest) = bytes.split_at(taken);
            self.emulator.process(&self.stand_in.replace(now));
            self.answer();
            bytes = rest;
        }
    }

    fn answer(&mut self) {
        let Some(probe) = self.watch.take_probe() else {
            return;
        };
        let scene = Scene {
            watch: &self.watch,
            screen: self.emulator.screen(),
        };
        let Some(answer) = self.profile.answer(probe, &scene) else {
            return;
        };
        if self.answers.len() >= ANSWERS || self.input.len() >= UNREAD {
            return;
        }
        if answer.after.is_zero() {
            self.input.extend(answer.text.bytes());
        } else {
            self.answers
                .push((Instant::now() + answer.after, answer.text));
        }
    }

    /// Moves answers whose time has come to what is sent.
    pub(super) fn answer_late(&mut self, now: Instant) {
        for (_, text) in self.answers.extract_if(.., |(due, _)| *due <= now) {
            self.input.extend(text.bytes());
        }
    }

    /// When the next late answer is due.
    pub(super) fn next_answer(&self) -> Option<Instant> {
        self.answers.iter().map(|(due, _)| *due).min()
    }

    /// Whether nothing was written or shown for a while, and nothing is left to be read or sent.
    pub(super) fn is_silent(&self) -> bool {
        let unread = self.master.as_ref().map(ioctl_fionread);
        let has_unread = matches!(unread, Some(Ok(1..)));
        !has_unread
            && self.last_output.elapsed() >= patience::QUIET
            && self.input.is_empty()
            && self.is_shown()
    }

    pub(super) fn has_input(&self) -> bool {
        !self.input.is_empty()
    }

    /// Sends bytes behind those that wait, as many as the terminal takes at once.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.input.extend(bytes);
        self.flush();
    }

    /// Writes what waits until the terminal takes no more. What a terminal that is gone does not
    /// take is dropped.
    pub(super) fn flush(&mut self) {
        let Some(master) = &self.master else {
            self.input.clear();
            return;
        };
        loop {
            let (front, _) = self.input.as_slices();
            if front.is_empty() {
                return;
            }
            match write(master.as_fd(), front) {
                Ok(taken) => {
                    self.input.drain(..taken);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.input.clear(),
            }
        }
    }

    pub(super) fn resize(&mut self, size: (u16, u16)) {
        let (cols, rows) = positive(size);
        self.emulator.set_size(rows, cols);
        self.sizes.push((self.counts.bytes, size));
    }

    /// Whether what the emulator has is what a person sees: no frame is being drawn, or for so long
    /// that terminals show it nevertheless, or it will never be finished.
    pub(super) fn is_shown(&self) -> bool {
        let is_drawn = |since: Instant| since.elapsed() >= patience::FRAME;
        self.is_over || self.watch.frame_since().is_none_or(is_drawn)
    }

    pub(super) fn screen(&self) -> Screen {
        Screen::of(self.emulator.screen())
    }

    pub(super) fn emulated(&self) -> &vt100::Screen {
        self.emulator.screen()
    }

    /// The rows above the screen, oldest first.
    pub(super) fn scrollback(&mut self) -> Vec<String> {
        let screen = self.emulator.screen_mut();
        let (rows, cols) = screen.size();
        let mut above = Vec::with_capacity(screen.scrollback_len());
        let mut left = screen.scrollback_len();
        while left > 0 {
            screen.set_scrollback(left);
            let taken = left.min(usize::from(rows.get()));
            let seen = screen.rows(0, cols.get()).take(taken);
            above.extend(seen.map(|row| row.trim_end().to_owned()));
            left -= taken;
        }
        screen.set_scrollback(0);
        above
    }

    pub(super) fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The sizes that the screen had, by the byte of the output from which on; nothing if the
    /// beginning of the output is forgotten.
    pub(super) fn sizes(&self) -> Option<&[(usize, (u16, u16))]> {
        (self.raw.len() == self.counts.bytes).then_some(&self.sizes)
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            frames: self.watch.frames(),
            ..self.counts
        }
    }

    pub(super) fn unhandled(&self) -> Vec<String> {
        self.emulator.callbacks().seen()
    }
}

/// An emulator has at least one cell.
fn positive((cols, rows): (u16, u16)) -> (NonZeroU16, NonZeroU16) {
    let at_least_one = |n| NonZeroU16::new(n).unwrap_or(NonZeroU16::MIN);
    (at_least_one(cols), at_least_one(rows))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    fn state(profile: Profile) -> State {
        let nothing = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        State::new(profile, Arc::new(nothing), (20, 5))
    }

    fn piece() -> impl Strategy<Value = &'static [u8]> {
        prop::sample::select(vec![
            &b"text\r\n"[..],
            "\u{fffd}漢é".as_bytes(),
            b"\x1b[6n",
            b"\x1b[?1049h",
            b"\x1b[?1049l",
            b"\x1b[>1u",
            b"\x1b[?u",
            b"\x1b[c",
            b"\x1b[?2026h",
            b"\x1b[?2026l",
            b"\x1b]11;?\x1b\\",
            b"\x1b]2;title\x07",
            b"\x1b[2;3r",
            b"\x1b[3S",
            b"\x1b[1;31m",
            b"\x07",
            b"\x1b",
            b"\x1b[",
            b"\xef\xbf",
        ])
    }

    proptest! {
        #[test]
        fn how_output_is_cut_changes_nothing(
            pieces in proptest::collection::vec(piece(), 0..30),
            cuts in proptest::collection::vec(0_usize..200, 0..10),
        ) {
            let output = pieces.concat();
            let mut whole = state(Profile::Kitty);
            whole.feed(&output);
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(output.len())).collect();
            cuts.sort_unstable();
            let mut in_parts = state(Profile::Kitty);
            let mut from = 0;
            for cut in cuts.into_iter().chain([output.len()]) {
                in_parts.feed(&output[from..cut]);
                from = cut;
            }
            prop_assert_eq!(in_parts.screen(), whole.screen());
            prop_assert_eq!(&in_parts.input, &whole.input);
            prop_assert_eq!(in_parts.watch.others(&[]), whole.watch.others(&[]));
            prop_assert_eq!(in_parts.counts().frames, whole.counts().frames);
            prop_assert_eq!(in_parts.raw(), whole.raw());
        }

        #[test]
        fn no_output_breaks_the_terminal(
            output in proptest::collection::vec(any::<u8>(), 0..300),
            (cols, rows) in (0_u16..30, 0_u16..10),
        ) {
            let mut state = state(Profile::Lying);
            state.feed(&output);
            state.resize((cols, rows));
            state.feed(&output);
            let screen = state.screen();
            prop_assert!(usize::from(screen.cursor.row) < screen.size().1);
            prop_assert!(usize::from(screen.cursor.col) < screen.size().0);
            let _ = (screen.styled(), state.scrollback(), state.unhandled());
        }
    }

    #[test]
    fn a_flood_of_questions_is_answered_to_a_bound() {
        let mut late = state(Profile::Late);
        late.feed(&b"\x1b[c".repeat(5_000));
        assert_eq!(late.answers.len(), ANSWERS);
        let mut prompt = state(Profile::Kitty);
        prompt.feed(&b"\x1b[c".repeat(500_000));
        assert!(prompt.input.len() < UNREAD + 100);
    }

    #[test]
    fn what_has_no_character_takes_its_place() {
        let mut state = state(Profile::Silent);
        state.feed("a\u{fffd}b".as_bytes());
        assert_eq!(state.screen().row(0), "a\u{fffd}b");
        assert!(state.unhandled().is_empty());
    }
}
