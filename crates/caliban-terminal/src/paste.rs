//! Pasted text is cut out of the stream before anything in it can be taken for keys.

use crate::input::Input;

/// More than so many bytes are not taken from one paste.
pub const PASTE_LIMIT: usize = 8 * 1024 * 1024;

const END: &[u8] = b"\x1b[201~";
const ESC: u8 = 0x1b;

/// A paste whose end has not come.
#[derive(Debug, Default)]
pub(crate) struct Paste {
    /// What has come, at most `PASTE_LIMIT`.
    bytes: Vec<u8>,
    /// How much of the end marker was seen last.
    matched: usize,
    fate: Fate,
}

/// Whether all of it was kept.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Fate {
    #[default]
    Whole,
    Cut,
}

impl Paste {
    /// Takes bytes up to the end of the paste, and says how many.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> usize {
        for (index, &byte) in bytes.iter().enumerate() {
            if END.get(self.matched) == Some(&byte) {
                self.matched += 1;
                if self.is_complete() {
                    return index + 1;
                }
                continue;
            }
            // The marker begins with the one Esc in it, so that it cannot overlap itself.
            self.keep(&END[..self.matched]);
            self.matched = usize::from(byte == ESC);
            if self.matched == 0 {
                self.keep(&[byte]);
            }
        }
        bytes.len()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.matched == END.len()
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() <= PASTE_LIMIT {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.fate = Fate::Cut;
        }
    }

    pub(crate) fn finish(self, out: &mut Vec<Input>) {
        out.push(Input::Paste(clean(&self.bytes)));
        match self.fate {
            Fate::Whole => {}
            Fate::Cut => out.push(Input::PasteTooLong { limit: PASTE_LIMIT }),
        }
    }
}

/// The text of what was pasted: every end of a line is `\n`, and what is neither text nor tab is
/// left out, with the reports that terminals put into a paste.
fn clean(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        clean_text(chunk.valid(), &mut text);
    }
    text
}

fn clean_text(from: &str, text: &mut String) {
    let mut rest = from;
    while let Some(at) = rest.find(char::is_control) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let mut characters = rest.chars();
        match characters.next() {
            Some('\r') => {
                text.push('\n');
                rest = characters.as_str();
                rest = rest.strip_prefix('\n').unwrap_or(rest);
            }
            Some(kept @ ('\n' | '\t')) => {
                text.push(kept);
                rest = characters.as_str();
            }
            Some('\u{1b}') => {
                let (sequence, behind) = sequence(characters.as_str());
                if is_newline(sequence) {
                    text.push('\n');
                }
                rest = behind;
            }
            Some(_) | None => rest = characters.as_str(),
        }
    }
    text.push_str(rest);
}

/// Control sequences of terminals are shorter than this; what is not is text with an Esc in it.
const SEQUENCE_LIMIT: usize = 64;

/// The control sequence behind an Esc, if there is one, and what comes then.
fn sequence(text: &str) -> (&str, &str) {
    let Some(body) = text.strip_prefix('[') else {
        return ("", text);
    };
    let length = body
        .bytes()
        .take(SEQUENCE_LIMIT)
        .take_while(|byte| matches!(byte, 0x20..=0x3f))
        .count();
    match body.as_bytes().get(length) {
        Some(0x40..=0x7e) => body.split_at(length + 1),
        _ => ("", text),
    }
}

/// Enter and Ctrl+J as some terminals encode them even in a paste.
fn is_newline(sequence: &str) -> bool {
    let code = if let Some(parameters) = sequence.strip_suffix('u') {
        parameters.split([';', ':']).next()
    } else if let Some(parameters) = sequence.strip_suffix('~') {
        parameters
            .strip_prefix("27;")
            .and_then(|rest| rest.split(';').nth(1))
    } else {
        None
    };
    match code {
        Some("10" | "13") => true,
        Some("106") => matches!(sequence, "106;5u" | "27;5;106~"),
        Some(_) | None => false,
    }
}
