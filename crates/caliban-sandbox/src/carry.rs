//! Lists of words as the value of one variable, whatever bytes they hold: each with its length
//! before it, so that no word can be taken for two.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The words as one text.
pub(crate) fn pack<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> OsString {
    let mut packed = Vec::new();
    for word in words {
        packed.extend_from_slice(format!("{}:", word.len()).as_bytes());
        packed.extend_from_slice(word.as_bytes());
    }
    OsString::from_vec(packed)
}

/// The words again; nothing where the text is not what [`pack`] makes.
pub(crate) fn unpack(packed: &OsStr) -> Option<Vec<OsString>> {
    let mut rest = packed.as_bytes();
    let mut words = Vec::new();
    while !rest.is_empty() {
        let colon = rest.iter().position(|byte| *byte == b':')?;
        let (length, after) = (rest.get(..colon)?, rest.get(colon + 1..)?);
        let length: usize = std::str::from_utf8(length).ok()?.parse().ok()?;
        let (word, after) = after.split_at_checked(length)?;
        words.push(OsString::from_vec(word.to_vec()));
        rest = after;
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_come_back_as_they_were(words: Vec<Vec<u8>>) {
            let words: Vec<OsString> = words.into_iter().map(OsString::from_vec).collect();
            let packed = pack(words.iter().map(OsString::as_os_str));
            prop_assert_eq!(unpack(&packed), Some(words));
        }

        #[test]
        fn anything_else_is_refused_or_read_without_fault(bytes: Vec<u8>) {
            let _ = unpack(&OsString::from_vec(bytes));
        }
    }

    #[test]
    fn what_is_cut_is_nothing() {
        for broken in ["3:ab", "x:a", "3", ":a", "-1:a", "18446744073709551616:a"] {
            assert_eq!(unpack(OsStr::new(broken)), None, "{broken}");
        }
    }
}
