//! What is kept of a login.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use url::Url;

/// A token is renewed this long before it expires, or a fifth of its life where that is less.
const MARGIN: SignedDuration = SignedDuration::from_secs(60);

/// Under what a login is kept: a server's name together with its address. The same name in another
/// project, at another address, is another server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key(String);

impl Key {
    pub(crate) fn new(server: &str, url: &Url) -> Self {
        Self(format!("mcp:{server}:{url}"))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A login: the client we are, who issued the tokens, and the tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) client_id: String,
    #[serde(default, skip_serializing_if = "Secret::is_none")]
    pub(crate) client_secret: Secret,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) issuer: Option<String>,
    pub(crate) token_endpoint: String,
    /// Nothing once the refresh token was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<Tokens>,
    /// Scopes the server has missed since; the next login asks for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) missed: Vec<String>,
    pub(crate) saved_at: Timestamp,
}

/// An optional secret that no message can contain.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(pub(crate) Option<String>);

impl Secret {
    fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.is_none() { "None" } else { "[secret]" })
    }
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tokens {
    pub(crate) access: String,
    #[serde(default, skip_serializing_if = "Secret::is_none")]
    pub(crate) refresh: Secret,
    pub(crate) issued_at: Timestamp,
    /// Nothing where the server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scopes: Vec<String>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Tokens")
            .field("refresh", &self.refresh)
            .field("expires_at", &self.expires_at)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// How much longer a token may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    Fresh,
    /// Still valid, but not for long.
    Ripe,
    Expired,
}

impl Tokens {
    pub(crate) fn age(&self, now: Timestamp) -> Age {
        let Some(expires_at) = self.expires_at else {
            return Age::Fresh;
        };
        let left = now.duration_until(expires_at);
        let life = self.issued_at.duration_until(expires_at);
        if left <= SignedDuration::ZERO {
            Age::Expired
        } else if left <= MARGIN.min(life / 5) {
            Age::Ripe
        } else {
            Age::Fresh
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[rstest]
    #[case(3600, 0, Age::Fresh)]
    #[case(3600, 3539, Age::Fresh)]
    #[case(3600, 3540, Age::Ripe)]
    #[case(3600, 3600, Age::Expired)]
    #[case(50, 39, Age::Fresh)]
    #[case(50, 40, Age::Ripe)]
    fn tokens_ripen_before_they_expire(#[case] life: i64, #[case] now: i64, #[case] age: Age) {
        let tokens = Tokens {
            access: "a".to_owned(),
            refresh: Secret::default(),
            issued_at: at(0),
            expires_at: Some(at(life)),
            scopes: Vec::new(),
        };
        assert_eq!(tokens.age(at(now)), age);
    }

    #[test]
    fn nothing_secret_is_shown() {
        let record = Record {
            client_id: "id".to_owned(),
            client_secret: Secret(Some("hush-1".to_owned())),
            issuer: None,
            token_endpoint: "https://a.example".to_owned(),
            tokens: Some(Tokens {
                access: "hush-2".to_owned(),
                refresh: Secret(Some("hush-3".to_owned())),
                issued_at: at(0),
                expires_at: None,
                scopes: Vec::new(),
            }),
            missed: Vec::new(),
            saved_at: at(0),
        };
        assert!(!format!("{record:?}").contains("hush"));
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
    }
}
