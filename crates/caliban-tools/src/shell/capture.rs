//! Output kept within a bound: its beginning and its end, and how much was between.

use super::text::{self, Script};

/// How much of the beginning is kept, and how much of the end.
const KEPT: usize = 256 * 1024;

/// What a command wrote. Holds at most three times [`KEPT`] and one piece.
#[derive(Debug, Default)]
pub(super) struct Capture {
    head: Vec<u8>,
    /// At least the last [`KEPT`] bytes after `head`, and at most twice as many, so that making
    /// room moves each byte only once on average.
    tail: Vec<u8>,
    total: u64,
}

impl Capture {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = KEPT - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * KEPT {
            self.tail.drain(..self.tail.len() - KEPT);
        }
    }

    /// The output as a model reads it; empty when there was none.
    pub(super) fn text(&self) -> String {
        let tail = &self.tail[self.tail.len().saturating_sub(KEPT)..];
        let omitted = self.total - (self.head.len() + tail.len()) as u64;
        if [&self.head, tail]
            .map(text::script)
            .contains(&Script::Binary)
        {
            return text::binary_summary(self.total);
        }
        if omitted == 0 {
            return text::readable(&[&self.head, tail].concat());
        }
        // A character cut in two is counted with what is left out.
        let head = &self.head[..self.head.len() - text::incomplete_end(&self.head)];
        let tail = &tail[text::orphaned_start(tail)..];
        let omitted = self.total - (head.len() + tail.len()) as u64;
        format!(
            "{}\n[… {omitted} bytes left out …]\n{}",
            text::readable(head),
            text::readable(tail)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_output_is_whole() {
        let mut capture = Capture::default();
        assert_eq!(capture.text(), "");
        capture.push(b"one\n");
        capture.push("zwö".as_bytes());
        assert_eq!(capture.text(), "one\nzwö");
    }

    #[test]
    fn output_across_the_seam_is_whole() {
        let mut capture = Capture::default();
        let line = "äöü\n".repeat(KEPT / 7 + 1000);
        for piece in line.as_bytes().chunks(999) {
            capture.push(piece);
        }
        assert_eq!(capture.text(), line);
    }

    #[test]
    fn long_output_keeps_both_ends_and_counts_the_middle() {
        let mut capture = Capture::default();
        let mut all = String::new();
        for number in 0..300_000 {
            let line = format!("line {number}\n");
            capture.push(line.as_bytes());
            all.push_str(&line);
            assert!(capture.head.len() + capture.tail.len() <= 3 * KEPT + line.len());
        }
        let text = capture.text();
        let (head, rest) = text.split_once("\n[… ").unwrap();
        let (omitted, tail) = rest.split_once(" bytes left out …]\n").unwrap();
        assert!(all.starts_with(head) && all.ends_with(tail));
        assert_eq!(
            head.len() + tail.len() + omitted.parse::<usize>().unwrap(),
            all.len()
        );
        assert!(tail.ends_with("line 299999\n"));
    }

    #[test]
    fn a_piece_larger_than_everything_kept_is_cut() {
        let mut capture = Capture::default();
        capture.push(&vec![b'x'; 10 * KEPT]);
        assert!(capture.tail.len() <= 2 * KEPT);
        assert!(
            capture
                .text()
                .contains(&format!("{} bytes left out", 8 * KEPT))
        );
    }

    #[test]
    fn characters_at_the_cuts_are_not_torn() {
        let mut capture = Capture::default();
        capture.push("x".as_bytes());
        capture.push("€".repeat(KEPT).as_bytes());
        let text = capture.text();
        assert!(!text.contains('\u{fffd}'));
    }

    #[test]
    fn binary_anywhere_is_summarised() {
        let mut capture = Capture::default();
        capture.push(&vec![b'x'; 3 * KEPT]);
        capture.push(b"\0");
        assert!(capture.text().starts_with("(binary output of 786433 bytes"));
    }
}
