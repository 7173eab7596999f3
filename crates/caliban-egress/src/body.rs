//! Where the body of a request ends, so that nothing behind it is taken for another request.

/// The most digits of the size of a chunk.
const DIGITS: u8 = 15;

/// How long a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    None,
    Length(u64),
    Chunked,
}

/// Follows a body as it is passed on, unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// So many bytes are still to come.
    Counted(u64),
    /// The size of a chunk is being read: what it is so far, and its digits.
    Size(u64, u8),
    SizeEnd(u64),
    /// So many bytes of a chunk are still to come.
    Chunk(u64),
    ChunkReturn,
    ChunkEnd,
    LastReturn,
    LastEnd,
}

/// How much of what came belongs to the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All of it, and more is to come.
    More,
    /// So many bytes; the body ends there.
    Ends(usize),
}

/// The body is not what was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadBody;

impl Body {
    pub(crate) fn new(framing: Framing) -> Self {
        match framing {
            Framing::None => Self::Counted(0),
            Framing::Length(length) => Self::Counted(length),
            Framing::Chunked => Self::Size(0, 0),
        }
    }

    /// Whether nothing is to come at all.
    pub(crate) fn is_empty(self) -> bool {
        self == Self::Counted(0)
    }

    /// Looks at the next bytes.
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> Result<Progress, BadBody> {
        let mut rest = bytes;
        loop {
            let ends = Progress::Ends(bytes.len() - rest.len());
            match *self {
                Self::Counted(0) => return Ok(ends),
                Self::Counted(left) => {
                    let some = skip(&mut rest, left);
                    *self = Self::Counted(left - some);
                    if left > some {
                        return Ok(Progress::More);
                    }
                    continue;
                }
                Self::Chunk(left) => {
                    let some = skip(&mut rest, left);
                    if left > some {
                        *self = Self::Chunk(left - some);
                        return Ok(Progress::More);
                    }
                    *self = Self::ChunkReturn;
                    continue;
                }
                Self::Size(..)
                | Self::SizeEnd(_)
                | Self::ChunkReturn
                | Self::ChunkEnd
                | Self::LastReturn
                | Self::LastEnd => {}
            }
            let Some((&byte, after)) = rest.split_first() else {
                return Ok(Progress::More);
            };
            rest = after;
            *self = self.after(byte)?;
        }
    }

    /// What comes after a byte that is not of a chunk itself. Extensions and trailers are not passed
    /// on: no client needs them, and readers differ about them.
    fn after(self, byte: u8) -> Result<Self, BadBody> {
        match (self, byte) {
            (Self::Size(size, digits), byte) if digits < DIGITS && byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).ok_or(BadBody)?;
                Ok(Self::Size(size << 4 | u64::from(digit), digits + 1))
            }
            (Self::Size(size, 1..), b'\r') => Ok(Self::SizeEnd(size)),
            (Self::SizeEnd(0), b'\n') => Ok(Self::LastReturn),
            (Self::SizeEnd(size), b'\n') => Ok(Self::Chunk(size)),
            (Self::ChunkReturn, b'\r') => Ok(Self::ChunkEnd),
            (Self::ChunkEnd, b'\n') => Ok(Self::Size(0, 0)),
            (Self::LastReturn, b'\r') => Ok(Self::LastEnd),
            (Self::LastEnd, b'\n') => Ok(Self::Counted(0)),
            (_, _) => Err(BadBody),
        }
    }
}

/// Leaves out so many bytes, or all there are; how many it were.
fn skip(rest: &mut &[u8], count: u64) -> u64 {
    let some = usize::try_from(count).map_or(rest.len(), |count| count.min(rest.len()));
    *rest = rest.get(some..).unwrap_or_default();
    some as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Framing::None, b"GET / HTTP/1.1", Ok(Progress::Ends(0)))]
    #[case(Framing::Length(3), b"abcGET", Ok(Progress::Ends(3)))]
    #[case(Framing::Length(3), b"ab", Ok(Progress::More))]
    #[case(Framing::Chunked, b"3\r\nabc\r\n0\r\n\r\nGET", Ok(Progress::Ends(13)))]
    #[case(Framing::Chunked, b"0\r\n\r\n", Ok(Progress::Ends(5)))]
    #[case(Framing::Chunked, b"003\r\nabc\r\n00\r\n\r\n", Ok(Progress::Ends(16)))]
    #[case(Framing::Chunked, b"A\r\n0123456789\r\n", Ok(Progress::More))]
    #[case::extension(Framing::Chunked, b"3;x=1\r\nabc\r\n", Err(BadBody))]
    #[case::trailer(Framing::Chunked, b"0\r\nX: 1\r\n\r\n", Err(BadBody))]
    #[case::no_size(Framing::Chunked, b"\r\nabc", Err(BadBody))]
    #[case::prefixed(Framing::Chunked, b"0x3\r\nabc", Err(BadBody))]
    #[case::signed(Framing::Chunked, b"-3\r\nabc", Err(BadBody))]
    #[case::space(Framing::Chunked, b"3 \r\nabc", Err(BadBody))]
    #[case::bare_newline(Framing::Chunked, b"3\nabc\r\n", Err(BadBody))]
    #[case::too_short(Framing::Chunked, b"3\r\nabcd\r\n", Err(BadBody))]
    #[case::overflow(Framing::Chunked, b"10000000000000003\r\nabc\r\n", Err(BadBody))]
    fn bodies_end(
        #[case] framing: Framing,
        #[case] bytes: &[u8],
        #[case] expected: Result<Progress, BadBody>,
    ) {
        assert_eq!(Body::new(framing).advance(bytes), expected);
    }

    proptest! {
        /// However the bytes are cut, the body ends at the same place.
        #[test]
        fn pieces_make_no_difference(
            chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..6),
            behind in proptest::collection::vec(any::<u8>(), 0..20),
            cut in 1_usize..9,
        ) {
            let mut bytes = Vec::new();
            for chunk in &chunks {
                bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
            let length = bytes.len();
            bytes.extend(behind);
            let mut body = Body::new(Framing::Chunked);
            let mut passed = 0;
            for piece in bytes.chunks(cut) {
                match body.advance(piece).unwrap() {
                    Progress::More => passed += piece.len(),
                    Progress::Ends(some) => {
                        passed += some;
                        break;
                    }
                }
            }
            prop_assert_eq!(passed, length);
        }

        #[test]
        fn any_bytes_are_read_in_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(Progress::Ends(some)) = Body::new(Framing::Chunked).advance(&bytes) {
                prop_assert!(some <= bytes.len());
            }
        }
    }
}
