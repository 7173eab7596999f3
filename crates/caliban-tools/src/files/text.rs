//! Telling text from other content, and decoding and encoding it without losing how it is stored.

/// How a file stores its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    /// UTF-8 that starts with a byte order mark.
    Utf8Marked,
    /// Recognised by its byte order mark only.
    Utf16Little,
    Utf16Big,
}

/// Whether decoding kept everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fidelity {
    Exact,
    /// Invalid parts became replacement characters.
    Replaced,
}

/// How many bytes the questions about a file's content look at.
pub(super) const SAMPLE: usize = 8 * 1024;
/// The share of invalid bytes, in percent, from which on a file is not taken for text.
const MOSTLY_INVALID: usize = 30;

impl Encoding {
    pub(super) fn of(bytes: &[u8]) -> Self {
        match bytes {
            [0xef, 0xbb, 0xbf, ..] => Self::Utf8Marked,
            [0xff, 0xfe, ..] => Self::Utf16Little,
            [0xfe, 0xff, ..] => Self::Utf16Big,
            _ => Self::Utf8,
        }
    }

    /// What stands before the text.
    pub(super) fn mark(self) -> &'static [u8] {
        match self {
            Self::Utf8 => b"",
            Self::Utf8Marked => b"\xef\xbb\xbf",
            Self::Utf16Little => b"\xff\xfe",
            Self::Utf16Big => b"\xfe\xff",
        }
    }

    /// Decodes bytes that start with this encoding's mark, which is left out.
    pub(super) fn decode(self, bytes: &[u8]) -> (String, Fidelity) {
        let body = bytes.get(self.mark().len()..).unwrap_or_default();
        match self {
            Self::Utf8 | Self::Utf8Marked => match String::from_utf8_lossy(body) {
                std::borrow::Cow::Borrowed(text) => (text.to_owned(), Fidelity::Exact),
                std::borrow::Cow::Owned(text) => (text, Fidelity::Replaced),
            },
            Self::Utf16Little => decode_utf16(body, u16::from_le_bytes),
            Self::Utf16Big => decode_utf16(body, u16::from_be_bytes),
        }
    }

    /// The inverse of [`decode`](Self::decode) where that was exact.
    pub(super) fn encode(self, text: &str) -> Vec<u8> {
        let mut bytes = self.mark().to_vec();
        match self {
            Self::Utf8 | Self::Utf8Marked => bytes.extend_from_slice(text.as_bytes()),
            Self::Utf16Little => bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
            Self::Utf16Big => bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
        }
        bytes
    }
}

fn decode_utf16(body: &[u8], unit: fn([u8; 2]) -> u16) -> (String, Fidelity) {
    let (pairs, rest) = body.as_chunks::<2>();
    let mut fidelity = match rest {
        [] => Fidelity::Exact,
        _ => Fidelity::Replaced,
    };
    let mut text: String = char::decode_utf16(pairs.iter().map(|pair| unit(*pair)))
        .map(|decoded| {
            decoded.unwrap_or_else(|_| {
                fidelity = Fidelity::Replaced;
                char::REPLACEMENT_CHARACTER
            })
        })
        .collect();
    if !rest.is_empty() {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    (text, fidelity)
}

/// What a file is if it is not text, judged by its first bytes.
pub(super) fn binary_kind(bytes: &[u8]) -> Option<&'static str> {
    let sample = &bytes[..bytes.len().min(SAMPLE)];
    if let Some(kind) = known_kind(sample) {
        return Some(kind);
    }
    let text = match Encoding::of(sample) {
        Encoding::Utf16Little | Encoding::Utf16Big => true,
        Encoding::Utf8 | Encoding::Utf8Marked => {
            !sample.contains(&0) && invalid_bytes(sample) * 100 <= sample.len() * MOSTLY_INVALID
        }
    };
    (!text).then_some("binary data")
}

/// How many bytes are not part of valid UTF-8; a character cut off at the end is not held
/// against the sample.
fn invalid_bytes(sample: &[u8]) -> usize {
    if std::str::from_utf8(sample).is_err_and(|error| error.error_len().is_none()) {
        return 0;
    }
    sample
        .utf8_chunks()
        .map(|chunk| chunk.invalid().len())
        .sum()
}

/// Formats that are often met and that a sample may not show to be binary.
fn known_kind(sample: &[u8]) -> Option<&'static str> {
    let kinds: [(&[u8], &str); 14] = [
        (b"%PDF-", "a PDF document"),
        (b"PK\x03\x04", "a zip archive (or an office document)"),
        (b"\x1f\x8b", "gzip-compressed data"),
        (b"BZh", "bzip2-compressed data"),
        (b"\xfd7zXZ\x00", "xz-compressed data"),
        (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"\x7fELF", "an ELF executable or library"),
        (b"\xcf\xfa\xed\xfe", "a Mach-O executable or library"),
        (b"\0asm", "a WebAssembly module"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"OggS", "Ogg audio or video"),
        (b"ID3", "MP3 audio"),
        (b"wOF2", "a font"),
    ];
    let (_, kind) = kinds.iter().find(|(magic, _)| sample.starts_with(magic))?;
    // Some marks are short enough to begin an ordinary text.
    let plausible = sample.contains(&0) || std::str::from_utf8(sample).is_err();
    (plausible || sample.starts_with(b"%PDF-")).then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn binary_content_is_told_from_text() {
        assert_eq!(binary_kind(b"plain"), None);
        assert_eq!(binary_kind(b""), None);
        assert_eq!(binary_kind("größe".as_bytes()), None);
        assert_eq!(binary_kind(b"caf\xe9 and more latin text"), None);
        assert_eq!(binary_kind(b"a\0b"), Some("binary data"));
        assert_eq!(binary_kind(&[0x80; 100]), Some("binary data"));
        assert_eq!(binary_kind(b"%PDF-1.7\nabc"), Some("a PDF document"));
        assert_eq!(
            binary_kind(b"\x7fELF\x02\x01\x01\0"),
            Some("an ELF executable or library")
        );
        assert_eq!(binary_kind(b"BZh is how this text starts"), None);
        assert_eq!(binary_kind(b"\xff\xfea\0b\0"), None);
    }

    #[test]
    fn a_character_cut_by_the_sample_is_not_invalid() {
        let text = "ä".repeat(SAMPLE);
        assert_eq!(binary_kind(&text.as_bytes()[..SAMPLE - 1]), None);
        assert_eq!(invalid_bytes(&text.as_bytes()[..SAMPLE - 1]), 0);
    }

    #[test]
    fn damage_is_noticed() {
        assert_eq!(
            Encoding::Utf8.decode(b"a\xff"),
            ("a\u{fffd}".to_owned(), Fidelity::Replaced)
        );
        let odd = Encoding::Utf16Little.decode(b"\xff\xfea\0b");
        assert_eq!(odd, ("a\u{fffd}".to_owned(), Fidelity::Replaced));
        let lone = Encoding::Utf16Big.decode(b"\xfe\xff\xd8\x00");
        assert_eq!(lone, ("\u{fffd}".to_owned(), Fidelity::Replaced));
    }

    proptest! {
        #[test]
        fn every_encoding_returns_what_it_stored(text in ".*") {
            for encoding in [Encoding::Utf8Marked, Encoding::Utf16Little, Encoding::Utf16Big] {
                let bytes = encoding.encode(&text);
                prop_assert_eq!(Encoding::of(&bytes), encoding);
                prop_assert_eq!(encoding.decode(&bytes), (text.clone(), Fidelity::Exact));
            }
        }
    }
}
