//! What a program may say although the emulator does nothing with it. Everything else that the
//! emulator does not know is a finding.

use std::fmt::Write;

/// How many unknown sequences are kept.
const KEPT: usize = 1_000;

/// The sequences that the emulator did not know, in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    seen: Vec<String>,
}

impl Strangers {
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.clone()
    }

    fn note(&mut self, sequence: String) {
        if self.seen.len() < KEPT {
            self.seen.push(sequence);
        }
    }
}

impl vt100::Callbacks for Strangers {
    fn unhandled_char(&mut self, _: &mut vt100::Screen, c: char) {
        self.note(format!("U+{:04X}", u32::from(c)));
    }

    fn unhandled_control(&mut self, _: &mut vt100::Screen, byte: u8) {
        self.note(format!("control {byte:#04x}"));
    }

    fn unhandled_escape(
        &mut self,
        _: &mut vt100::Screen,
        first: Option<u8>,
        second: Option<u8>,
        byte: u8,
    ) {
        let is_known = match first {
            // The end of a string.
            None => byte == b'\\',
            // The ordinary character set, which terminfo asks for.
            Some(b'(' | b')') => byte == b'B',
            Some(_) => false,
        };
        if !is_known {
            let lead: Vec<u8> = [first, second, Some(byte)].into_iter().flatten().collect();
            self.note(format!("ESC {}", lead.escape_ascii()));
        }
    }

    fn unhandled_csi(
        &mut self,
        _: &mut vt100::Screen,
        first: Option<u8>,
        second: Option<u8>,
        params: &[&[u16]],
        action: char,
    ) {
        let lead: Vec<u8> = [first, second].into_iter().flatten().collect();
        if is_known_csi(&lead, params, action) {
            return;
        }
        let mut sequence = format!("CSI {}", lead.escape_ascii());
        for (position, param) in params.iter().enumerate() {
            let parts: Vec<_> = param.iter().map(u16::to_string).collect();
            let between = if position == 0 { "" } else { ";" };
            let _ = write!(sequence, "{between}{}", parts.join(":"));
        }
        sequence.push(action);
        self.note(sequence);
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, params: &[&[u8]]) {
        let is_known = params.first().is_some_and(|number| is_known_osc(number));
        if !is_known {
            self.note(format!("OSC {}", params.join(&b';').escape_ascii()));
        }
    }
}

fn is_known_csi(lead: &[u8], params: &[&[u16]], action: char) -> bool {
    let first = params.first().and_then(|param| param.first()).copied();
    match (lead, action) {
        (b"?", 'h' | 'l' | 's' | 'r') => params.iter().all(|param| is_known_mode(param)),
        // Questions, and the keyboards of kitty and of xterm.
        (b"?$", 'p')
        | (b"?", 'm')
        | (b"?" | b"<" | b">" | b"=", 'u')
        | (b"" | b">", 'c')
        | (b">", 'q') => true,
        (b">", 'm') => first == Some(4),
        (b"", 'n') => matches!(first, Some(5 | 6)),
        (b"?", 'n') => first == Some(996),
        (b"", 't') => matches!(first, Some(14 | 16 | 18 | 22 | 23)),
        (b"", 'm') => are_known_styles(params),
        _ => false,
    }
}

fn is_known_mode(mode: &[u16]) -> bool {
    let by_emulator = matches!(
        mode,
        [1 | 6 | 9 | 25 | 47 | 1000 | 1002 | 1003 | 1005 | 1006 | 1049 | 2004]
    );
    by_emulator || matches!(mode, [7 | 12 | 1004 | 1007 | 1034 | 2026 | 2027 | 2031])
}

/// Styles that the emulator does not draw: blinking, hidden, struck out, shaped and coloured
/// underlines.
fn are_known_styles(params: &[&[u16]]) -> bool {
    let mut params = params.iter();
    while let Some(param) = params.next() {
        match param {
            [38 | 48 | 58] => {
                let taken = match params.next() {
                    Some([2]) => 3,
                    Some([5]) => 1,
                    Some(_) | None => return false,
                };
                if params.by_ref().take(taken).count() < taken {
                    return false;
                }
            }
            [0..=5 | 7..=9 | 22..=25 | 27..=37 | 39..=47 | 49 | 59 | 90..=97 | 100..=107]
            | [4, 0..=5]
            | [38 | 48 | 58, 2, _, _, _]
            | [38 | 48 | 58, 2, _, _, _, _]
            | [38 | 48 | 58, 5, _] => {}
            _ => return false,
        }
    }
    true
}

/// Colours, folder, links, notifications, clipboard, prompts.
fn is_known_osc(number: &[u8]) -> bool {
    matches!(
        number,
        b"7" | b"8"
            | b"9"
            | b"10"
            | b"11"
            | b"12"
            | b"52"
            | b"99"
            | b"110"
            | b"111"
            | b"112"
            | b"133"
            | b"777"
    )
}
