//! The search services: how each is asked and what it answers.

use std::str::FromStr;

use reqwest::{Client, RequestBuilder};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

/// The variable that chooses the service.
const BACKEND_VARIABLE: &str = "CALIBAN_WEBSEARCH_PROVIDER";

/// How much text of each page a service is asked for, where it can be told.
const SNIPPET_CHARS: usize = 300;

/// A search service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SearchBackend {
    #[default]
    Brave,
    Tavily,
    Exa,
}

/// A name that is no search service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a search service; {BACKEND_VARIABLE} can be brave, tavily or exa")]
pub struct UnknownSearchBackend(pub String);

/// Which service to ask, and with what.
#[derive(Debug, Clone)]
pub struct SearchConfig {
    pub backend: SearchBackend,
    pub key: Option<SecretString>,
    /// In place of the service's own address.
    pub base_url: Option<Url>,
}

/// What is asked of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) query: String,
    pub(super) limit: usize,
    pub(super) allowed: Vec<String>,
    pub(super) blocked: Vec<String>,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) title: String,
    pub(super) url: String,
    pub(super) snippet: String,
}

impl SearchConfig {
    /// Reads the choice of service and its key through `variable`, which looks up environment
    /// variables. A missing key is found out when a search is made.
    pub fn from_variables(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, UnknownSearchBackend> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let backend = match set(BACKEND_VARIABLE) {
            Some(name) => name.parse()?,
            None => SearchBackend::default(),
        };
        Ok(Self {
            backend,
            key: set(backend.key_variable()).map(|key| SecretString::from(key.trim().to_owned())),
            base_url: None,
        })
    }
}

impl FromStr for SearchBackend {
    type Err = UnknownSearchBackend;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name.trim().to_ascii_lowercase().as_str() {
            "brave" => Ok(Self::Brave),
            "tavily" => Ok(Self::Tavily),
            "exa" => Ok(Self::Exa),
            _ => Err(UnknownSearchBackend(name.to_owned())),
        }
    }
}

impl SearchBackend {
    pub fn name(self) -> &'static str {
        match self {
            Self::Brave => "brave",
            Self::Tavily => "tavily",
            Self::Exa => "exa",
        }
    }

    /// The variable that holds its key.
    pub fn key_variable(self) -> &'static str {
        match self {
            Self::Brave => "BRAVE_API_KEY",
            Self::Tavily => "TAVILY_API_KEY",
            Self::Exa => "EXA_API_KEY",
        }
    }

    pub(super) fn base_url(self) -> &'static str {
        match self {
            Self::Brave => "https://api.search.brave.com",
            Self::Tavily => "https://api.tavily.com",
            Self::Exa => "https://api.exa.ai",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Brave => "/res/v1/web/search",
            Self::Tavily | Self::Exa => "/search",
        }
    }

    pub(super) fn request(
        self,
        client: &Client,
        base: &Url,
        key: &SecretString,
        question: &Question,
    ) -> Result<RequestBuilder, url::ParseError> {
        let mut url = base.join(self.path())?;
        let Question {
            query,
            limit,
            allowed,
            blocked,
        } = question;
        Ok(match self {
            Self::Brave => {
                url.query_pairs_mut()
                    .append_pair("q", &with_operators(question))
                    .append_pair("count", &limit.to_string());
                client
                    .get(url)
                    .header("Accept", "application/json")
                    .header("X-Subscription-Token", key.expose_secret())
            }
            Self::Tavily => {
                let mut body = json!({"query": query, "max_results": limit});
                put_list(&mut body, "include_domains", allowed);
                put_list(&mut body, "exclude_domains", blocked);
                json_body(client.post(url), &body).bearer_auth(key.expose_secret())
            }
            Self::Exa => {
                let mut body = json!({
                    "query": query,
                    "numResults": limit,
                    "contents": {"text": {"maxCharacters": SNIPPET_CHARS}},
                });
                put_list(&mut body, "includeDomains", allowed);
                put_list(&mut body, "excludeDomains", blocked);
                json_body(client.post(url), &body).header("x-api-key", key.expose_secret())
            }
        })
    }

    /// Reads an answer. Results without an address are left out.
    pub(super) fn parse(self, answer: &[u8]) -> serde_json::Result<Vec<Finding>> {
        let results = match self {
            Self::Brave => serde_json::from_slice::<BraveAnswer>(answer)?.web.results,
            Self::Tavily | Self::Exa => serde_json::from_slice::<Answer>(answer)?.results,
        };
        Ok(results
            .into_iter()
            .filter_map(|result| {
                Some(Finding {
                    url: result.url?,
                    title: plain(&result.title.unwrap_or_default()),
                    snippet: plain(&result.snippet.unwrap_or_default()),
                })
            })
            .collect())
    }
}

#[derive(Deserialize)]
struct BraveAnswer {
    /// Absent when nothing was found.
    #[serde(default)]
    web: Answer,
}

#[derive(Default, Deserialize)]
struct Answer {
    #[serde(default)]
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    title: Option<String>,
    url: Option<String>,
    /// Each service has its own name for it.
    #[serde(alias = "description", alias = "content", alias = "text")]
    snippet: Option<String>,
}

/// Brave takes domains only as operators in the query.
fn with_operators(question: &Question) -> String {
    let mut query = question.query.clone();
    let sites: Vec<String> = question
        .allowed
        .iter()
        .map(|domain| format!("site:{domain}"))
        .collect();
    if !sites.is_empty() {
        query = format!("{query} ({})", sites.join(" OR "));
    }
    for domain in &question.blocked {
        query = format!("{query} -site:{domain}");
    }
    query
}

fn put_list(body: &mut Value, name: &str, domains: &[String]) {
    if !domains.is_empty() {
        body[name] = json!(domains);
    }
}

fn json_body(request: RequestBuilder, body: &Value) -> RequestBuilder {
    request
        .header("Content-Type", "application/json")
        .body(body.to_string())
}

/// Text without highlighting tags, entities and line breaks.
fn plain(text: &str) -> String {
    let mut stripped = text.to_owned();
    for tag in ["<strong>", "</strong>", "<b>", "</b>", "<em>", "</em>"] {
        stripped = stripped.replace(tag, "");
    }
    // The ampersand comes last, so that nothing is decoded twice.
    for (entity, character) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ] {
        stripped = stripped.replace(entity, character);
    }
    stripped.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_chooses_service_and_key() {
        let config = |pairs: &'static [(&str, &str)]| {
            SearchConfig::from_variables(|name| {
                pairs
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| (*value).to_owned())
            })
        };
        let brave = config(&[("BRAVE_API_KEY", "k1"), ("EXA_API_KEY", "k2")]).unwrap();
        assert_eq!(brave.backend, SearchBackend::Brave);
        assert_eq!(brave.key.as_ref().unwrap().expose_secret(), "k1");
        assert!(!format!("{brave:?}").contains("k1"));
        let exa = config(&[(BACKEND_VARIABLE, "Exa"), ("BRAVE_API_KEY", "k")]).unwrap();
        assert_eq!(exa.backend, SearchBackend::Exa);
        assert!(exa.key.is_none());
        let error = config(&[(BACKEND_VARIABLE, "bing")])
            .unwrap_err()
            .to_string();
        for name in ["bing", "brave", "tavily", "exa"] {
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn highlighting_and_entities_are_removed() {
        assert_eq!(
            plain("a <strong>b</strong>\n c &amp;lt; &#x27;d&#x27;"),
            "a b c &lt; 'd'"
        );
    }

    #[test]
    fn answers_may_lack_things() {
        assert_eq!(SearchBackend::Brave.parse(b"{}").unwrap(), []);
        assert_eq!(
            SearchBackend::Exa
                .parse(br#"{"results":[{"title":null,"url":"u","other":1},{"title":"t"}]}"#)
                .unwrap(),
            [Finding {
                title: String::new(),
                url: "u".into(),
                snippet: String::new()
            }]
        );
        assert!(SearchBackend::Tavily.parse(b"<html>").is_err());
    }
}
