//! Which marketplaces may be used at all.

use std::collections::BTreeMap;
use std::path::Path;

use super::{MarketSource, Origin};

/// Why a marketplace is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the marketplace `{0}` is blocked")]
    Blocked(String),
    #[error(
        "the marketplace `{0}` is not one of those that are allowed (`plugins.marketplaces.strict_known`, or with CALIBAN_STRICT_KNOWN_MARKETPLACES `known` and what was added before)"
    )]
    Unlisted(String),
}

/// What settings and variables say about marketplaces.
#[derive(Debug, Clone, Default)]
pub struct MarketPolicy {
    blocked: Vec<String>,
    /// Places; everything where there is no such list.
    allowed: Option<Vec<String>>,
}

impl MarketPolicy {
    /// `known` are names for sources; a name that is allowed stands for its source, because a
    /// marketplace can call itself anything.
    pub fn new(
        blocked: Vec<String>,
        allowed: Option<Vec<String>>,
        known: &BTreeMap<String, String>,
    ) -> Self {
        let place = |text: String| known.get(&text).cloned().unwrap_or(text);
        Self {
            blocked: blocked
                .into_iter()
                .flat_map(|text| [place(text.clone()), text])
                .collect(),
            allowed: allowed.map(|list| list.into_iter().map(place).collect()),
        }
    }

    /// Whether plugins of a marketplace count.
    pub fn judge(&self, origin: &Origin) -> Result<(), Refusal> {
        match origin {
            Origin::Directory { .. } => Ok(()),
            Origin::Marketplace { name, source, .. } => self.judge_source(Some(name), source),
        }
    }

    pub fn judge_source(&self, name: Option<&str>, source: &MarketSource) -> Result<(), Refusal> {
        let shown = name.map_or_else(|| source.to_string(), str::to_owned);
        let is_named = |text: &String| name.is_some_and(|name| name.eq_ignore_ascii_case(text));
        if self
            .blocked
            .iter()
            .any(|text| is_named(text) || means(text, source))
        {
            return Err(Refusal::Blocked(shown));
        }
        match &self.allowed {
            Some(allowed) if !allowed.iter().any(|text| means(text, source)) => {
                Err(Refusal::Unlisted(shown))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// Whether a text of a list means a source: a spelling of its place, or the beginning of it before
/// a star.
fn means(text: &str, source: &MarketSource) -> bool {
    let root = Path::new("/");
    let identity = source.identity();
    if let Some(start) = text.strip_suffix('*') {
        let start = start.trim_end_matches('/');
        // A made-up last part makes it an address.
        let full = format!("{start}/x");
        return MarketSource::parse(&full, root, root).is_ok_and(|known| {
            let known = known.identity();
            let start = known.strip_suffix('x').unwrap_or(&known);
            identity.starts_with(start)
        });
    }
    let known = MarketSource::parse(text, root, root);
    known.is_ok_and(|known| known.identity() == identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> MarketSource {
        MarketSource::parse(text, Path::new("/"), Path::new("/")).unwrap()
    }

    fn policy(blocked: &[&str], allowed: Option<&[&str]>) -> MarketPolicy {
        let own = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        let known = [("ours".to_owned(), "https://ours.example/m.json".to_owned())].into();
        MarketPolicy::new(own(blocked), allowed.map(own), &known)
    }

    #[test]
    fn what_is_blocked_is_so_in_every_spelling() {
        let policy = policy(&["evil/repo", "bad-name"], None);
        for text in [
            "evil/repo",
            "https://github.com/Evil/repo.git",
            "git@github.com:evil/repo",
        ] {
            assert!(policy.judge_source(None, &source(text)).is_err(), "{text}");
        }
        assert!(
            policy
                .judge_source(Some("Bad-Name"), &source("a/b"))
                .is_err()
        );
        assert_eq!(policy.judge_source(Some("good"), &source("a/b")), Ok(()));
    }

    #[test]
    fn a_list_allows_places_and_not_claims() {
        let policy = policy(&[], Some(&["good/*", "ours"]));
        assert_eq!(policy.judge_source(None, &source("good/any")), Ok(()));
        let ours = source("https://ours.example/m.json");
        assert_eq!(policy.judge_source(Some("whatever"), &ours), Ok(()));
        let impostor = policy.judge_source(Some("ours"), &source("evil/repo"));
        assert_eq!(impostor, Err(Refusal::Unlisted("ours".to_owned())));
        assert!(policy.judge_source(None, &source("goodness/any")).is_err());
        let none = self::policy(&[], Some(&[]));
        assert!(none.judge_source(None, &source("good/any")).is_err());
    }
}
