//! Lists of plugins that somebody signed, with minisign.

use minisign_verify::{PublicKey, Signature};

/// What the signature of a file is called after.
pub const SIGNATURE_SUFFIX: &str = ".minisig";
/// The largest signature, in bytes.
pub const SIGNATURE_BYTES: u64 = 16 * 1024;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SignatureError {
    #[error("the key in `plugins.marketplaces.keys.{0}` is no public key of minisign")]
    Key(String),
    #[error(
        "its list has no signature, and `plugins.marketplaces.keys.{0}` asks for one; it belongs into a file of the same name with `{SIGNATURE_SUFFIX}` behind it"
    )]
    Missing(String),
    #[error(
        "the signature of its list is not one of the key in `plugins.marketplaces.keys.{key}`: {reason}"
    )]
    Wrong { key: String, reason: String },
}

/// The key of a marketplace, by the name that it has in the settings.
#[derive(Debug)]
pub struct MarketKey {
    name: String,
    key: PublicKey,
}

impl MarketKey {
    /// As minisign prints it, or the whole file with its comment.
    pub fn parse(name: &str, text: &str) -> Result<Self, SignatureError> {
        let last = text.trim().lines().last().unwrap_or_default();
        let key = PublicKey::from_base64(last.trim());
        Ok(Self {
            name: name.to_owned(),
            key: key.map_err(|_| SignatureError::Key(name.to_owned()))?,
        })
    }

    /// Whether a list is signed with it.
    pub fn verify(&self, list: &str, signature: Option<&str>) -> Result<(), SignatureError> {
        let wrong = |error: minisign_verify::Error| SignatureError::Wrong {
            key: self.name.clone(),
            reason: error.to_string(),
        };
        let signature = signature.ok_or_else(|| SignatureError::Missing(self.name.clone()))?;
        let signature = Signature::decode(signature).map_err(wrong)?;
        // Signatures of minisign before 0.10 are of another kind, which nobody makes any more.
        let is_old_kind_fine = false;
        self.key
            .verify(list.as_bytes(), &signature, is_old_kind_fine)
            .map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{"name":"team","plugins":[{"name":"tools","source":"./tools"}]}"#;
    const KEY: &str = "RWRjYWxpYmFuIe6ykC2QYAWFFvFutkjT4jZ4YygZ9MHn2seyclPZgniX";
    const SIGNATURE: &str = "untrusted comment: signature of a test
RURjYWxpYmFuIWqS+rkUbhM39X434NQvglH33gDPFripvcFGA48BM/N/zbDWUz1Ooo/JZmTchSGxcANXUmqBgg+nAEH7iYO6vgE=
trusted comment: the list of the team
9CZTiS43KYe0CVJOnYO9VuqcaV4SgZDVI7VVuy67zf3bLrR0QUPyhbCbDmOV8rHi27Fjbd59syNEfsq0zRoaAg==
";

    #[test]
    fn a_list_is_held_to_its_key() {
        let whole = format!("untrusted comment: minisign public key\n{KEY}\n");
        for key in [KEY, &whole] {
            let key = MarketKey::parse("team", key).unwrap();
            assert_eq!(key.verify(LIST, Some(SIGNATURE)), Ok(()));
        }
        let key = MarketKey::parse("team", KEY).unwrap();
        let missing = key.verify(LIST, None).unwrap_err();
        assert_eq!(missing, SignatureError::Missing("team".to_owned()));
        let other = LIST.replace("tools", "fools");
        let comment = SIGNATURE.replace("of the team", "of a thief");
        for (list, signature) in [(&*other, SIGNATURE), (LIST, &*comment), (LIST, "x")] {
            let wrong = key.verify(list, Some(signature)).unwrap_err();
            assert!(matches!(wrong, SignatureError::Wrong { .. }), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_key_is_said() {
        for text in ["", "x", &KEY[..50]] {
            let wrong = MarketKey::parse("team", text).unwrap_err();
            assert_eq!(wrong, SignatureError::Key("team".to_owned()));
        }
    }
}
