//! Tool-call ids in the form a server takes. The mapping is a pure function, so that a call and
//! its result, and the same history in the next request, get the same id.

use sha2::{Digest, Sha256};

/// Which ids a server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdRule {
    /// `[A-Za-z0-9_-]`, at most this many.
    UpTo(usize),
    /// Exactly nine letters or digits.
    Nine,
}

impl IdRule {
    /// `id` itself if the rule allows it, else a name derived from it.
    pub(super) fn apply(self, id: &str) -> String {
        if self.allows(id) {
            return id.to_owned();
        }
        match self {
            Self::UpTo(_) => format!("call_{}", digest(id, 16)),
            Self::Nine => digest(id, 5).chars().take(9).collect(),
        }
    }

    fn allows(self, id: &str) -> bool {
        match self {
            Self::UpTo(longest) => {
                (1..=longest).contains(&id.len())
                    && id
                        .bytes()
                        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
            }
            Self::Nine => id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()),
        }
    }
}

/// The first `bytes` bytes of the text's SHA-256 in hexadecimal.
pub(super) fn digest(text: &str, bytes: usize) -> String {
    use std::fmt::Write;
    let mut hex = String::new();
    for byte in Sha256::digest(text).iter().take(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_ids_stay_and_others_get_a_stable_name() {
        let rule = IdRule::UpTo(40);
        assert_eq!(rule.apply("toolu_01-x"), "toolu_01-x");
        for odd in ["", "functions.Bash:0", &"x".repeat(41)] {
            let mapped = rule.apply(odd);
            assert!(rule.allows(&mapped), "{mapped}");
            assert_ne!(mapped, odd);
            assert_eq!(mapped, rule.apply(odd));
        }
        assert_ne!(rule.apply("a.b"), rule.apply("a:b"));
    }

    #[test]
    fn nine_letters_or_digits() {
        assert_eq!(IdRule::Nine.apply("aB3dE6gH9"), "aB3dE6gH9");
        for odd in ["call_1234", "call_1", "aB3dE6gH90"] {
            let mapped = IdRule::Nine.apply(odd);
            assert!(IdRule::Nine.allows(&mapped), "{mapped}");
        }
    }
}
