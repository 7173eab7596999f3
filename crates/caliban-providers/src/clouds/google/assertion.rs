//! What a service account signs to prove who it is.

use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD, Engine};
use jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};

/// How long it counts, in seconds.
const LASTS: i64 = 3600;

/// A signed statement that `issuer` asks for `scope` at `audience`.
pub(super) struct Assertion<'a> {
    pub(super) issuer: &'a str,
    pub(super) key_id: Option<&'a str>,
    pub(super) audience: &'a str,
    pub(super) scope: &'a str,
}

impl Assertion<'_> {
    /// Signed with a private key in PEM.
    pub(super) fn sign(&self, pem: &str, now: Timestamp) -> Result<String, String> {
        let mut header = json!({"typ": "JWT", "alg": "RS256"});
        if let Some(id) = self.key_id {
            header["kid"] = json!(id);
        }
        let issued = now.as_second();
        let claims = json!({
            "iss": self.issuer,
            "scope": self.scope,
            "aud": self.audience,
            "iat": issued,
            "exp": issued + LASTS,
        });
        let signed = format!("{}.{}", part(&header), part(&claims));
        let key = key(pem)?;
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(
            &RSA_PKCS1_SHA256,
            &SystemRandom::new(),
            signed.as_bytes(),
            &mut signature,
        )
        .map_err(|_| "the private key cannot sign".to_owned())?;
        Ok(format!(
            "{signed}.{}",
            BASE64_URL_SAFE_NO_PAD.encode(&signature)
        ))
    }
}

fn part(value: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(value.to_string())
}

fn key(pem: &str) -> Result<RsaKeyPair, String> {
    let unusable = || "`private_key` is no RSA key in PEM".to_owned();
    let body: String = pem
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("-----"))
        .collect();
    let der = BASE64_STANDARD.decode(body).map_err(|_| unusable())?;
    RsaKeyPair::from_pkcs8(&der)
        .or_else(|_| RsaKeyPair::from_der(&der))
        .map_err(|_| unusable())
}
