//! Bytes as lines, each of which is used or said to be unusable; reading goes on behind it.

/// The longest line, which is a prompt with images.
const LONGEST: usize = 32 * 1024 * 1024;

/// What came as a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    Text(String),
    /// Why it is none.
    Unusable(&'static str),
}

/// Cuts what arrives in any pieces into lines. It holds one line at most.
#[derive(Debug, Default)]
pub struct LineDecoder {
    open: Vec<u8>,
    fate: Fate,
}

/// What becomes of the line that has not ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Fate {
    #[default]
    Kept,
    /// It is too long already.
    Dropped,
}

impl LineDecoder {
    /// The lines that end with these bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match self.fate {
                Fate::Kept if self.open.len() + piece.len() > LONGEST => {
                    self.open = Vec::new();
                    self.fate = Fate::Dropped;
                }
                Fate::Kept => self.open.extend_from_slice(piece),
                Fate::Dropped => {}
            }
            if piece.ends_with(b"\n") {
                lines.extend(self.end());
            }
        }
        lines
    }

    /// The line that the end of the input ends, if there is one.
    pub fn end(&mut self) -> Option<Line> {
        let bytes = std::mem::take(&mut self.open);
        match std::mem::take(&mut self.fate) {
            Fate::Dropped => Some(Line::Unusable("the line is longer than 32 MiB")),
            Fate::Kept if bytes.is_empty() => None,
            Fate::Kept => Some(match String::from_utf8(bytes) {
                Ok(text) => Line::Text(text),
                Err(_) => Line::Unusable("the line is not valid UTF-8"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_any_pieces() {
        let mut decoder = LineDecoder::default();
        assert_eq!(decoder.feed(b"on"), []);
        let text = |text: &str| Line::Text(text.to_owned());
        assert_eq!(
            decoder.feed(b"e\n\xff\ntw"),
            [text("one\n"), Line::Unusable("the line is not valid UTF-8"),]
        );
        assert_eq!(decoder.end(), Some(text("tw")));
        assert_eq!(decoder.end(), None);
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let mut decoder = LineDecoder::default();
        let much = vec![b'x'; 1024 * 1024];
        for _ in 0..40 {
            assert_eq!(decoder.feed(&much), []);
            assert!(decoder.open.len() <= LONGEST);
        }
        let unusable = Line::Unusable("the line is longer than 32 MiB");
        assert_eq!(
            decoder.feed(b"\nnext\n"),
            [unusable, Line::Text("next\n".to_owned())]
        );
    }
}
