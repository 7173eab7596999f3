//! What a worker told, numbered and kept for those who come later: so many entries, so many bytes.

use std::collections::VecDeque;
use std::sync::Arc;

/// Entries that are kept.
const MAX_ENTRIES: usize = 4_096;
/// Bytes of all of them.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// One or several lines that belong together.
#[derive(Debug, Clone)]
struct Entry {
    seq: u64,
    kind: Kind,
    text: Arc<str>,
}

/// What an entry is to the pieces that an answer comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A piece of an answer, kept until the answer is whole.
    Piece,
    /// An answer, in place of all its pieces.
    Answer,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Piece,
    /// With so many pieces before it.
    Answer(u32),
    Other,
}

#[derive(Debug, Default)]
pub(crate) struct Ring {
    entries: VecDeque<(Entry, Stored)>,
    bytes: usize,
    last: u64,
    /// The number of the newest entry that was let go of for lack of room.
    lost: u64,
    /// Pieces since the last answer.
    pieces: u32,
}

/// How far somebody has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    after: u64,
    /// Pieces of the current answer that were heard.
    pieces: u32,
    wants: Pieces,
}

/// Whether somebody wants answers as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pieces {
    Wanted,
    Left,
}

/// What there is for somebody.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Lines(String),
    Nothing,
    /// Something was let go of before it was heard.
    Lost,
}

impl Cursor {
    pub(crate) fn new(after: u64, wants: Pieces) -> Self {
        Self {
            after,
            pieces: 0,
            wants,
        }
    }
}

impl Ring {
    /// A ring whose beginning was told by another process.
    pub(crate) fn continued() -> Self {
        Self {
            last: 1,
            lost: 1,
            ..Self::default()
        }
    }

    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Keeps lines, each of which is an object and gets the number of the entry.
    pub(crate) fn push(&mut self, kind: Kind, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        self.last += 1;
        let stored = match kind {
            Kind::Piece => {
                self.pieces += 1;
                Stored::Piece
            }
            Kind::Answer => {
                self.drop_pieces();
                Stored::Answer(std::mem::take(&mut self.pieces))
            }
            Kind::Other => Stored::Other,
        };
        let text: Arc<str> = lines
            .iter()
            .map(|line| numbered(line, self.last))
            .collect::<String>()
            .into();
        self.bytes += text.len();
        let entry = Entry {
            seq: self.last,
            kind,
            text,
        };
        self.entries.push_back((entry, stored));
        while self.entries.len() > MAX_ENTRIES || self.bytes > MAX_BYTES {
            let Some((entry, _)) = self.entries.pop_front() else {
                return;
            };
            self.bytes -= entry.text.len();
            self.lost = entry.seq;
        }
    }

    fn drop_pieces(&mut self) {
        let mut bytes = self.bytes;
        self.entries.retain(|(entry, _)| {
            let stays = entry.kind != Kind::Piece;
            if !stays {
                bytes -= entry.text.len();
            }
            stays
        });
        self.bytes = bytes;
    }

    /// What somebody has not heard yet, at most so many bytes of it and one entry more.
    pub(crate) fn next(&self, cursor: &mut Cursor, most: usize) -> Next {
        if cursor.after < self.lost {
            return Next::Lost;
        }
        let start = self
            .entries
            .partition_point(|(entry, _)| entry.seq <= cursor.after);
        let mut text = String::new();
        for (entry, stored) in self.entries.range(start..) {
            if text.len() > most {
                return Next::Lines(text);
            }
            cursor.after = entry.seq;
            let is_told = match (stored, cursor.wants) {
                (Stored::Piece, Pieces::Wanted) => {
                    cursor.pieces += 1;
                    true
                }
                (Stored::Piece, Pieces::Left) => false,
                (Stored::Answer(all), Pieces::Wanted) => {
                    // Who heard every piece has heard the answer.
                    std::mem::take(&mut cursor.pieces) != *all || *all == 0
                }
                (Stored::Answer(_), Pieces::Left) | (Stored::Other, _) => true,
            };
            if is_told {
                text.push_str(&entry.text);
            }
        }
        cursor.after = cursor.after.max(self.last);
        if text.is_empty() {
            Next::Nothing
        } else {
            Next::Lines(text)
        }
    }
}

/// An object with its number first.
fn numbered(line: &str, seq: u64) -> String {
    match line.strip_prefix('{') {
        Some(rest) if rest.starts_with('}') => format!("{{\"seq\":{seq}{rest}"),
        Some(rest) => format!("{{\"seq\":{seq},{rest}"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(ring: &mut Ring, kind: Kind, name: &str) {
        ring.push(kind, &[format!("{{\"a\":\"{name}\"}}\n")]);
    }

    fn heard(ring: &Ring, cursor: &mut Cursor) -> String {
        match ring.next(cursor, usize::MAX) {
            Next::Lines(text) => text.lines().fold(String::new(), |heard, line| {
                let value: serde_json::Value = serde_json::from_str(line).unwrap();
                let name = value["a"].as_str().unwrap();
                heard + name + &value["seq"].to_string() + " "
            }),
            Next::Nothing => String::new(),
            Next::Lost => "lost".to_owned(),
        }
    }

    #[test]
    fn an_answer_is_heard_once_in_pieces_or_as_a_whole() {
        let mut ring = Ring::default();
        let mut live = Cursor::new(0, Pieces::Wanted);
        let mut whole = Cursor::new(0, Pieces::Left);
        told(&mut ring, Kind::Other, "x");
        told(&mut ring, Kind::Piece, "p");
        assert_eq!(heard(&ring, &mut live), "x1 p2 ");
        assert_eq!(heard(&ring, &mut whole), "x1 ");
        told(&mut ring, Kind::Piece, "p");
        let mut late = Cursor::new(2, Pieces::Wanted);
        assert_eq!(heard(&ring, &mut late), "p3 ");
        assert_eq!(heard(&ring, &mut live), "p3 ");
        told(&mut ring, Kind::Answer, "a");
        assert_eq!(heard(&ring, &mut live), "");
        assert_eq!(heard(&ring, &mut late), "a4 ");
        assert_eq!(heard(&ring, &mut whole), "a4 ");
        let mut new = Cursor::new(0, Pieces::Wanted);
        assert_eq!(heard(&ring, &mut new), "x1 a4 ");
        told(&mut ring, Kind::Other, "y");
        for cursor in [&mut live, &mut late, &mut whole, &mut new] {
            assert_eq!(heard(&ring, cursor), "y5 ");
        }
    }

    #[test]
    fn what_was_let_go_of_is_known() {
        let mut ring = Ring::default();
        for _ in 0..MAX_ENTRIES + 10 {
            told(&mut ring, Kind::Other, "x");
        }
        assert_eq!(ring.entries.len(), MAX_ENTRIES);
        assert_eq!(heard(&ring, &mut Cursor::new(9, Pieces::Left)), "lost");
        assert_ne!(heard(&ring, &mut Cursor::new(10, Pieces::Left)), "lost");
        ring.push(
            Kind::Other,
            &[format!("{{\"a\":\"{}\"}}\n", "y".repeat(MAX_BYTES))],
        );
        assert!(ring.entries.is_empty() && ring.bytes == 0);
        assert_eq!(
            heard(&ring, &mut Cursor::new(ring.last() - 1, Pieces::Left)),
            "lost"
        );
        let mut current = Cursor::new(ring.last(), Pieces::Left);
        assert_eq!(heard(&ring, &mut current), "");
    }

    #[test]
    fn what_another_process_told_is_missing() {
        let mut ring = Ring::continued();
        told(&mut ring, Kind::Other, "x");
        assert_eq!(heard(&ring, &mut Cursor::new(0, Pieces::Left)), "lost");
        assert_eq!(heard(&ring, &mut Cursor::new(1, Pieces::Left)), "x2 ");
    }

    #[test]
    fn much_is_told_in_several_parts() {
        let mut ring = Ring::default();
        for _ in 0..3 {
            told(&mut ring, Kind::Other, "x");
        }
        let mut cursor = Cursor::new(0, Pieces::Left);
        for _ in 0..3 {
            assert!(matches!(ring.next(&mut cursor, 0), Next::Lines(_)));
        }
        assert_eq!(ring.next(&mut cursor, 0), Next::Nothing);
    }
}
