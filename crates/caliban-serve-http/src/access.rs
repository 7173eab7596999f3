//! What whoever comes must bring along.

use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

/// How a server is reached, and by whom.
#[derive(Debug, Clone)]
pub enum Access {
    /// Over a socket whose other end was looked at before.
    Socket,
    /// Over an address that others reach as well.
    Network {
        token: Token,
        /// Opens the page once: it stands in an address, which others may see.
        once: Arc<Mutex<Option<Token>>>,
        /// The names by which it is reached, each with its port: `127.0.0.1:4096`.
        hosts: Vec<String>,
        scheme: Scheme,
        /// Pages that may use it beside its own: `https://example.com`.
        origins: Vec<String>,
    },
}

/// How addresses of the server begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    Http,
    /// Connections are encrypted.
    Https,
}

impl Scheme {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl Access {
    /// What a cookie has to say beside its value: one of an encrypted connection stays there.
    pub(crate) fn cookie_attributes(&self) -> &'static str {
        match self {
            Self::Network {
                scheme: Scheme::Https,
                ..
            } => "HttpOnly; SameSite=Strict; Path=/; Secure",
            Self::Network { .. } | Self::Socket => "HttpOnly; SameSite=Strict; Path=/",
        }
    }

    /// The cookie for whoever knows the token, or is the first to know the one that opens a page.
    pub(crate) fn log_in(&self, given: &str) -> Option<String> {
        let Self::Network { token, once, .. } = self else {
            return None;
        };
        if token.is(given) {
            return Some(token.cookie());
        }
        let mut once = once.lock().unwrap_or_else(PoisonError::into_inner);
        let opener = once.take_if(|once| once.is(given));
        opener.map(|_| token.cookie())
    }
}

/// What opens the door. Neither it nor its digest is ever shown.
#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token")
    }
}

impl Token {
    /// A token of random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(caliban_settings::hex(&bytes))
    }

    /// For the file that the user's own programs read.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether this is it. Digests are compared, so the time says nothing about how much is right.
    pub(crate) fn is(&self, given: &str) -> bool {
        Sha256::digest(self.0.as_bytes()) == Sha256::digest(given.as_bytes())
    }

    /// What a browser keeps instead: it opens the same door, and is no token.
    pub(crate) fn cookie(&self) -> String {
        caliban_settings::hex(&Sha256::digest(format!("cookie {}", self.0).as_bytes()))
    }

    pub(crate) fn is_cookie(&self, given: &str) -> bool {
        let own = self.cookie();
        Sha256::digest(own.as_bytes()) == Sha256::digest(given.as_bytes())
    }
}
