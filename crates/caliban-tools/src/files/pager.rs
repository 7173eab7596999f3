//! A page of numbered lines out of a stream of any length, of which only the page is held.

use std::fmt::Write as _;
use std::io::{self, BufRead};

use super::text::Fidelity;

/// Characters shown of one line.
const LINE_CHARS: usize = 2000;
/// Bytes held of one line: enough for the longest shown, whatever its characters, and a CR.
const LINE_BYTES: usize = LINE_CHARS * 4 + 1;
/// Bytes after which a page ends early, at the end of a line.
const PAGE_BYTES: usize = 1024 * 1024;

/// Which lines are wanted, counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) first: u64,
    pub(super) limit: u64,
}

/// What to do after the last wanted line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// Count its lines.
    Count,
    /// Only find out whether there is one.
    Skip,
}

/// Some lines, numbered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) text: String,
    /// How many lines the text holds.
    pub(super) shown: u64,
    pub(super) end: End,
    pub(super) fidelity: Fidelity,
}

/// What is known about the lines of the whole stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Total(u64),
    /// More lines follow.
    More,
}

/// Reads a page of UTF-8 text, which starts with no byte order mark.
pub(super) fn page(mut reader: impl BufRead, wanted: Lines, rest: Rest) -> io::Result<Page> {
    let mut page = Page {
        text: String::new(),
        shown: 0,
        end: End::More,
        fidelity: Fidelity::Exact,
    };
    let mut line = Line::default();
    let mut finished = 0;
    loop {
        let buffer = match reader.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let full = page.shown == wanted.limit || page.text.len() >= PAGE_BYTES;
        if full && rest == Rest::Skip && !buffer.is_empty() {
            return Ok(page);
        }
        if buffer.is_empty() {
            if line.started {
                finished += 1;
                if finished >= wanted.first && !full {
                    page.add(finished, &line);
                }
            }
            page.end = End::Total(finished);
            return Ok(page);
        }
        let newline = buffer.iter().position(|byte| *byte == b'\n');
        let piece = &buffer[..newline.unwrap_or(buffer.len())];
        let held = finished + 1 >= wanted.first && !full;
        line.started = true;
        if held {
            line.extend(piece);
        }
        let consumed = piece.len() + usize::from(newline.is_some());
        if newline.is_some() {
            finished += 1;
            if held {
                page.add(finished, &line);
            }
            line.clear();
        }
        reader.consume(consumed);
    }
}

/// A line being read.
#[derive(Debug, Default)]
struct Line {
    kept: Vec<u8>,
    /// Characters that were not kept.
    dropped: usize,
    started: bool,
}

impl Line {
    fn extend(&mut self, piece: &[u8]) {
        let room = LINE_BYTES - self.kept.len();
        let (kept, dropped) = piece.split_at(piece.len().min(room));
        self.kept.extend_from_slice(kept);
        // Every byte but the continuations of a character starts one.
        self.dropped += dropped.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
    }

    fn clear(&mut self) {
        self.kept.clear();
        self.dropped = 0;
        self.started = false;
    }
}

impl Page {
    fn add(&mut self, number: u64, line: &Line) {
        let kept = match line.dropped {
            0 => line.kept.strip_suffix(b"\r").unwrap_or(&line.kept),
            _ => &line.kept,
        };
        let text = String::from_utf8_lossy(kept);
        let cut = text
            .char_indices()
            .nth(LINE_CHARS)
            .map_or(text.len(), |(index, _)| index);
        // A character that keeping cut in two lies behind the cut, and is not damage.
        if std::str::from_utf8(kept).is_err_and(|error| error.valid_up_to() < cut) {
            self.fidelity = Fidelity::Replaced;
        }
        let more = text[cut..].chars().count() + line.dropped;
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{number:>6}\t{}", &text[..cut]);
        if more > 0 {
            let _ = write!(self.text, " (… {more} more characters)");
        }
        self.text.push('\n');
        self.shown += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Read};

    fn lines(text: impl AsRef<[u8]>, first: u64, limit: u64, rest: Rest) -> Page {
        // A tiny buffer makes every boundary fall inside something.
        let reader = BufReader::with_capacity(3, text.as_ref());
        page(reader, Lines { first, limit }, rest).unwrap()
    }

    #[test]
    fn pages_are_numbered_and_counted() {
        let all = lines("a\r\nb\n\nd", 1, 10, Rest::Skip);
        assert_eq!(all.text, "     1\ta\n     2\tb\n     3\t\n     4\td\n");
        assert_eq!(all.end, End::Total(4));
        let middle = lines("a\nb\nc\nd\n", 2, 2, Rest::Count);
        assert_eq!(middle.text, "     2\tb\n     3\tc\n");
        assert_eq!(middle.end, End::Total(4));
        assert_eq!(lines("a\nb\nc\n", 1, 2, Rest::Skip).end, End::More);
        assert_eq!(lines("a\nb\n", 1, 2, Rest::Skip).end, End::Total(2));
        let beyond = lines("a\nb\n", 9, 2, Rest::Skip);
        assert_eq!((beyond.shown, beyond.end), (0, End::Total(2)));
    }

    #[test]
    fn long_lines_are_cut_by_characters() {
        for character in ["x", "ä", "€", "🦀"] {
            let text = character.repeat(LINE_CHARS * 5);
            let page = lines(&text, 1, 1, Rest::Count);
            let shown = character.repeat(LINE_CHARS);
            let more = LINE_CHARS * 4;
            assert_eq!(
                page.text,
                format!("     1\t{shown} (… {more} more characters)\n")
            );
            assert_eq!(page.fidelity, Fidelity::Exact, "{character}");
            let exact = lines(format!("{shown}\r\n"), 1, 1, Rest::Count);
            assert_eq!(exact.text, format!("     1\t{shown}\n"));
        }
    }

    #[test]
    fn invalid_bytes_are_replaced_and_reported() {
        let page = lines(b"ok\nb\xffd\n", 1, 5, Rest::Count);
        assert_eq!(page.text, "     1\tok\n     2\tb\u{fffd}d\n");
        assert_eq!(page.fidelity, Fidelity::Replaced);
    }

    #[test]
    fn a_line_without_end_is_not_held() {
        let endless = io::repeat(b'x').take(16 * 1024 * 1024);
        let wanted = Lines { first: 1, limit: 1 };
        let page = page(
            BufReader::with_capacity(1 << 16, endless),
            wanted,
            Rest::Skip,
        )
        .unwrap();
        assert!(page.text.len() < LINE_BYTES);
        assert_eq!(page.end, End::Total(1));
    }

    #[test]
    fn a_page_has_a_size_limit() {
        let line = "y".repeat(1000) + "\n";
        let page = lines(line.repeat(2000), 1, u64::MAX, Rest::Skip);
        assert_eq!(page.end, End::More);
        assert!(page.text.len() < PAGE_BYTES + 2 * LINE_BYTES);
        assert_eq!(page.shown, page.text.lines().count() as u64);
    }
}
