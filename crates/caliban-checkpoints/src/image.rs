//! What is at a path, as far as it is kept and compared.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(crate) fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }

    /// The digest that is written so, in 64 small hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Self(bytes))
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("it is not a SHA-256"))
    }
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image {
    Absent,
    File {
        /// Missing where the file was too large to be looked into.
        digest: Option<Digest>,
        size: u64,
        mode: u32,
    },
    Link {
        target: PathBuf,
    },
    Directory {
        mode: u32,
    },
    /// A pipe, a socket, a device: never kept and never touched.
    Special,
}

impl Image {
    /// Whether both are known, and are the same. What was not looked into is never the same.
    pub fn is_surely(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { digest: None, .. }, _)
            | (_, Self::File { digest: None, .. })
            | (Self::Special, Self::Special) => false,
            (one, another) => one == another,
        }
    }
}

/// The first 16 hexadecimal digits of the digest of a canonical path: where the checkpoints of a
/// workspace lie.
pub fn workspace_key(canonical: &std::path::Path) -> String {
    let mut key = Digest::of(crate::platform::bytes(canonical.as_os_str())).to_string();
    key.truncate(16);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_as_they_are_written() {
        let digest = Digest::of(b"abc");
        let text = digest.to_string();
        assert!(text.starts_with("ba7816bf"));
        assert_eq!(Digest::parse(&text), Some(digest));
        assert_eq!(Digest::parse(&text.to_uppercase()), None);
        assert_eq!(Digest::parse("../../etc/passwd"), None);
        assert_eq!(workspace_key(std::path::Path::new("abc")), text[..16]);
    }
}
