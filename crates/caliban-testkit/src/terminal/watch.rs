//! What a program asks of its terminal beside drawing: modes, questions, titles, bells, copies.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use vte::{Params, Perform};

/// How many titles, keyboard states and copies are kept; older ones are forgotten.
const KEPT: usize = 1_000;

/// Mode numbers that mean something here.
pub(super) const APPLICATION_CURSOR: u16 = 1;
pub(super) const AUTOWRAP: u16 = 7;
pub(super) const CURSOR: u16 = 25;
pub(super) const FOCUS: u16 = 1004;
pub(super) const PASTE: u16 = 2004;
pub(super) const FRAME: u16 = 2026;
pub(super) const ALTERNATE: [u16; 3] = [47, 1047, 1049];
pub(super) const MOUSE: [u16; 9] = [9, 1000, 1001, 1002, 1003, 1005, 1006, 1015, 1016];
/// A blinking cursor and eight-bit input: programs set them and leave them so.
const HARMLESS: [u16; 2] = [12, 1034];

/// A question of the program that a terminal may answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probe {
    Attributes,
    SecondaryAttributes,
    Version,
    KeyboardFlags,
    Mode(u16),
    Status,
    CursorPosition,
    Foreground,
    Background,
    Scheme,
    SizeInCells,
    SizeInPixels,
}

/// Listens to the output of a program.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Modes that are not as a terminal has them when it opens.
    changed: BTreeSet<u16>,
    /// Modes that were put aside, and whether they were changed then.
    saved: BTreeMap<u16, bool>,
    /// The enhanced keyboards that were asked for, one stack for either screen.
    keyboards: [Vec<u16>; 2],
    other_keys: u16,
    application_keypad: bool,
    /// The first and last row that scroll, zero for those of the screen.
    region: (u16, u16),
    title: String,
    titles: VecDeque<String>,
    bells: usize,
    clipboard: VecDeque<String>,
    frames: usize,
    frame_since: Option<Instant>,
    /// A question just asked: the parser stops there, so that it is answered from the screen as it
    /// is at that point.
    probe: Option<Probe>,
}

impl Watch {
    pub(super) fn take_probe(&mut self) -> Option<Probe> {
        self.probe.take()
    }

    pub(super) fn is_set(&self, mode: u16) -> bool {
        is_set_at_first(mode) != self.changed.contains(&mode)
    }

    pub(super) fn is_alternate(&self) -> bool {
        ALTERNATE.into_iter().any(|mode| self.is_set(mode))
    }

    /// The flags of the enhanced keyboard; none is the ordinary one.
    pub(super) fn keyboard(&self) -> u16 {
        self.stack().last().copied().unwrap_or_default()
    }

    /// How far the older way of reporting modified keys is switched on.
    pub(super) fn other_keys(&self) -> u16 {
        self.other_keys
    }

    /// Whether only some of so many rows scroll.
    pub(super) fn has_region(&self, rows: u16) -> bool {
        let (first, last) = self.region;
        first > 1 || (last != 0 && last < rows)
    }

    pub(super) fn title(&self) -> &str {
        &self.title
    }

    pub(super) fn bells(&self) -> usize {
        self.bells
    }

    pub(super) fn clipboard(&self) -> Vec<String> {
        self.clipboard.iter().cloned().collect()
    }

    /// How many synchronised frames were completed.
    pub(super) fn frames(&self) -> usize {
        self.frames
    }

    /// Since when a frame is being drawn.
    pub(super) fn frame_since(&self) -> Option<Instant> {
        self.frame_since
    }

    pub(super) fn any_set(&self, modes: &[u16]) -> bool {
        modes.iter().any(|mode| self.is_set(*mode))
    }

    /// Whether an enhanced keyboard is left on, on either screen.
    pub(super) fn keyboard_left(&self) -> bool {
        self.other_keys != 0 || self.keyboards.iter().any(|stack| !stack.is_empty())
    }

    /// In words, what else is not as a terminal has it when it opens.
    pub(super) fn others(&self, named: &[u16]) -> Vec<String> {
        let modes = self
            .changed
            .iter()
            .filter(|mode| !named.contains(mode) && !HARMLESS.contains(mode));
        let mut others: Vec<_> = modes.map(|mode| format!("mode {mode}")).collect();
        let left = [
            (self.application_keypad, "application keypad"),
            (!self.titles.is_empty(), "saved title"),
        ];
        let left = left.into_iter().filter(|(is_left, _)| *is_left);
        others.extend(left.map(|(_, name)| name.to_owned()));
        others
    }

    fn stack(&self) -> &Vec<u16> {
        let [main, alternate] = &self.keyboards;
        if self.is_alternate() { alternate } else { main }
    }

    fn stack_mut(&mut self) -> &mut Vec<u16> {
        let is_alternate = self.is_alternate();
        let [main, alternate] = &mut self.keyboards;
        if is_alternate { alternate } else { main }
    }

    fn set(&mut self, mode: u16, to: Switch) {
        if mode == FRAME {
            self.frame(to);
        }
        let is_as_first = (to == Switch::On) == is_set_at_first(mode);
        if is_as_first {
            self.changed.remove(&mode);
        } else {
            self.changed.insert(mode);
        }
    }

    /// Puts a mode aside as it is.
    fn save(&mut self, mode: u16) {
        if self.saved.len() < KEPT {
            self.saved.insert(mode, self.changed.contains(&mode));
        }
    }

    /// Makes a mode what it was when it was put aside.
    fn restore(&mut self, mode: u16) {
        match self.saved.get(&mode) {
            Some(true) => {
                self.changed.insert(mode);
            }
            Some(false) => {
                self.changed.remove(&mode);
            }
            None => {}
        }
    }

    fn frame(&mut self, to: Switch) {
        match to {
            Switch::On if self.frame_since.is_none() => self.frame_since = Some(Instant::now()),
            Switch::On => {}
            Switch::Off => {
                if self.frame_since.take().is_some() {
                    self.frames += 1;
                }
            }
        }
    }

    /// What begins with `CSI >`, `CSI <` or `CSI =`.
    fn extended(&mut self, lead: u8, action: char, params: &[u16]) {
        let first = params.first().copied().unwrap_or_default();
        match (lead, action) {
            (b'>', 'u') => {
                let stack = self.stack_mut();
                if stack.len() < KEPT {
                    stack.push(first);
                }
            }
            (b'<', 'u') => {
                let stack = self.stack_mut();
                let kept = stack.len().saturating_sub(usize::from(first.max(1)));
                stack.truncate(kept);
            }
            (b'=', 'u') => {
                let stack = self.stack_mut();
                stack.pop();
                // Without flags, there is nothing that could be left on.
                if first != 0 {
                    stack.push(first);
                }
            }
            (b'>', 'm') if first == 4 => {
                self.other_keys = params.get(1).copied().unwrap_or_default();
            }
            (b'>', 'c') => self.probe = Some(Probe::SecondaryAttributes),
            (b'>', 'q') => self.probe = Some(Probe::Version),
            _ => {}
        }
    }

    fn window(&mut self, params: &[u16]) {
        match params.first() {
            Some(14) => self.probe = Some(Probe::SizeInPixels),
            Some(18) => self.probe = Some(Probe::SizeInCells),
            Some(22) => keep(&mut self.titles, self.title.clone()),
            Some(23) => self.title = self.titles.pop_back().unwrap_or_default(),
            Some(_) | None => {}
        }
    }

    /// The soft reset, which knows nothing of what came after the VT220.
    fn reset_softly(&mut self) {
        for mode in [APPLICATION_CURSOR, 6, AUTOWRAP, CURSOR] {
            self.changed.remove(&mode);
        }
        self.application_keypad = false;
        self.region = (0, 0);
    }
}

/// Whether a mode is switched on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Switch {
    On,
    Off,
}

impl Perform for Watch {
    fn execute(&mut self, byte: u8) {
        if byte == 7 {
            self.bells += 1;
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _: bool, action: char) {
        let params: Vec<u16> = params
            .iter()
            .map(|param| param.first().copied().unwrap_or_default())
            .collect();
        let first = params.first().copied().unwrap_or_default();
        match (intermediates, action) {
            (b"?", 'h') => params.iter().for_each(|mode| self.set(*mode, Switch::On)),
            (b"?", 'l') => params.iter().for_each(|mode| self.set(*mode, Switch::Off)),
            (b"?", 's') => params.iter().for_each(|mode| self.save(*mode)),
            (b"?", 'r') => params.iter().for_each(|mode| self.restore(*mode)),
            (b"?$", 'p') => self.probe = Some(Probe::Mode(first)),
            (b"?", 'u') => self.probe = Some(Probe::KeyboardFlags),
            (b"?", 'n') if first == 996 => self.probe = Some(Probe::Scheme),
            (b"", 'n') if first == 5 => self.probe = Some(Probe::Status),
            (b"", 'n') if first == 6 => self.probe = Some(Probe::CursorPosition),
            (b"", 'c') => self.probe = Some(Probe::Attributes),
            (b"", 'r') => self.region = (first, params.get(1).copied().unwrap_or_default()),
            (b"", 't') => self.window(&params),
            (b"!", 'p') => self.reset_softly(),
            ([lead @ (b'>' | b'<' | b'=')], _) => self.extended(*lead, action, &params),
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _: bool, byte: u8) {
        match (intermediates, byte) {
            (b"", b'=') => self.application_keypad = true,
            (b"", b'>') => self.application_keypad = false,
            (b"", b'c') => {
                self.changed.clear();
                self.keyboards = Default::default();
                self.other_keys = 0;
                self.application_keypad = false;
                self.region = (0, 0);
                self.frame(Switch::Off);
            }
            _ => {}
        }
    }

    fn osc_dispatch(&mut self, params: &[&[u8]], _: bool) {
        match params {
            [b"0" | b"2", title @ ..] => {
                self.title = String::from_utf8_lossy(&title.join(&b';')).into_owned();
            }
            [b"10", b"?"] => self.probe = Some(Probe::Foreground),
            [b"11", b"?"] => self.probe = Some(Probe::Background),
            [b"52", _, data] if *data != b"?" => {
                if let Ok(copied) = STANDARD.decode(data) {
                    let text = String::from_utf8_lossy(&copied).into_owned();
                    keep(&mut self.clipboard, text);
                }
            }
            _ => {}
        }
    }

    fn terminated(&self) -> bool {
        self.probe.is_some()
    }
}

fn is_set_at_first(mode: u16) -> bool {
    matches!(mode, AUTOWRAP | CURSOR)
}

fn keep(queue: &mut VecDeque<String>, text: String) {
    if queue.len() == KEPT {
        queue.pop_front();
    }
    queue.push_back(text);
}
