//! The emulator drops the character that stands for what is none, and with it the place that it
//! takes on every other terminal. Another character goes through the emulator in its stead.

/// For private use, and as wide and as long as the one that it stands for.
const STAND_IN: char = '\u{f8ff}';

const REPLACED: [u8; 3] = [0xef, 0xbf, 0xbd];
const REPLACEMENT: [u8; 3] = [0xef, 0xa3, 0xbf];

/// Replaces the character wherever it is, also where reads cut it in pieces.
#[derive(Debug, Default)]
pub(super) struct StandIn {
    /// What may be the beginning of it; less than its three bytes.
    held: Vec<u8>,
}

impl StandIn {
    /// The bytes to show now. The last few are held back while they may become the character.
    pub(super) fn replace(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + self.held.len());
        for byte in bytes {
            self.held.push(*byte);
            if self.held == REPLACED {
                out.extend(REPLACEMENT);
                self.held.clear();
            } else if !REPLACED.starts_with(&self.held) {
                // Only its first byte can begin it, so that nothing else need be held.
                self.held.pop();
                out.append(&mut self.held);
                self.begin(*byte, &mut out);
            }
        }
        out
    }

    fn begin(&mut self, byte: u8, out: &mut Vec<u8>) {
        if REPLACED.starts_with(&[byte]) {
            self.held.push(byte);
        } else {
            out.push(byte);
        }
    }
}

/// What a person sees for what the emulator has.
pub(super) fn restore(c: char) -> char {
    if c == STAND_IN {
        char::REPLACEMENT_CHARACTER
    } else {
        c
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[test]
    fn they_are_as_long_as_each_other() {
        assert_eq!(String::from(STAND_IN).as_bytes(), REPLACEMENT);
        assert_eq!(
            String::from(char::REPLACEMENT_CHARACTER).as_bytes(),
            REPLACED
        );
    }

    #[rstest]
    #[case(&["a\u{fffd}b".as_bytes()])]
    #[case(&[&b"a\xef"[..], b"\xbf\xbdb"])]
    #[case(&[&b"a\xef\xbf"[..], b"\xbd", b"b"])]
    fn it_is_found_in_pieces(#[case] pieces: &[&[u8]]) {
        let mut stand_in = StandIn::default();
        let out: Vec<u8> = pieces
            .iter()
            .flat_map(|piece| stand_in.replace(piece))
            .collect();
        assert_eq!(String::from_utf8(out).unwrap(), "a\u{f8ff}b");
    }

    #[test]
    fn it_may_follow_its_own_beginning() {
        let mut stand_in = StandIn::default();
        let out = stand_in.replace(b"\xef\xbf\xef\xbf\xbd");
        assert_eq!(out, [&b"\xef\xbf"[..], &REPLACEMENT].concat());
    }

    proptest! {
        #[test]
        fn anything_else_stays(
            bytes in proptest::collection::vec(prop_oneof![Just(0xef), Just(0xbf), Just(0x41)], 0..50),
            cut in 0_usize..50,
        ) {
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            let mut stand_in = StandIn::default();
            let mut out = stand_in.replace(first);
            out.extend(stand_in.replace(second));
            out.extend(&stand_in.held);
            prop_assert_eq!(out, bytes);
        }
    }
}
