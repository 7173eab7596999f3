//! The tool that searches the web.

use std::time::Duration;

use caliban_agent::{Effect, ToolContext, ToolOutput, ToolStatus, TypedTool};
use caliban_http::causes;
use reqwest::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use url::{Host, Url};

use super::backend::{Finding, Question, SearchConfig};
use super::beginning;
use super::body::{self, Extent};
use super::client::plain;

const DEFAULT_LIMIT: usize = 5;
const MAX_LIMIT: usize = 20;

/// The most characters of a snippet, and of a title.
const MAX_SNIPPET: usize = 300;

/// How long a search may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How much of an answer is read.
const MAX_ANSWER_BYTES: usize = 2 * 1024 * 1024;

/// How much of an error is shown.
const MAX_ERROR_CHARS: usize = 500;

/// Asks a search service.
#[derive(Debug)]
pub struct WebSearch {
    config: SearchConfig,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSearchInput {
    query: String,
    /// Default 5, at most 20.
    #[serde(default)]
    limit: Option<usize>,
    /// Only results from these domains.
    #[serde(default)]
    allowed_domains: Vec<String>,
    /// No results from these domains.
    #[serde(default)]
    blocked_domains: Vec<String>,
}

impl WebSearch {
    pub fn new(config: SearchConfig) -> Self {
        Self { config }
    }
}

impl TypedTool for WebSearch {
    type Input = WebSearchInput;

    const NAME: &'static str = "WebSearch";
    const DESCRIPTION: &'static str =
        "Searches the web; returns titles, URLs and snippets. Read a result with WebFetch.";
    const EFFECT: Effect = Effect::ReadOnly;

    fn first_arg(&self, input: &WebSearchInput) -> Option<String> {
        Some(input.query.clone())
    }

    async fn run(&self, input: WebSearchInput, context: ToolContext) -> ToolOutput {
        let question = match question(input) {
            Ok(question) => question,
            Err(invalid) => return invalid,
        };
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                ToolOutput::new(ToolStatus::Cancelled, "The search was cancelled.")
            }
            ended = tokio::time::timeout(TIMEOUT, Box::pin(self.ask(&question))) => match ended {
                Ok(Ok(findings)) => ToolOutput::ok(render(&question, &findings)),
                Ok(Err(failure)) => failure,
                Err(_) => ToolOutput::new(
                    ToolStatus::TimedOut,
                    format!("The search service did not answer within {} s.", TIMEOUT.as_secs()),
                ),
            },
        }
    }
}

impl WebSearch {
    async fn ask(&self, question: &Question) -> Result<Vec<Finding>, ToolOutput> {
        let backend = self.config.backend;
        let name = backend.name();
        let variable = backend.key_variable();
        let failed = |reason: String| ToolOutput::failed(format!("{name}: {reason}."));
        let key = self.config.key.as_ref().ok_or_else(|| {
            ToolOutput::failed(format!(
                "Web search with {name} needs a key: set {variable}, or choose another service \
                 with CALIBAN_WEBSEARCH_PROVIDER."
            ))
        })?;
        let base = match &self.config.base_url {
            Some(base) => base.clone(),
            None => Url::parse(backend.base_url()).map_err(|error| failed(error.to_string()))?,
        };
        let client = plain(&base).map_err(|error| failed(causes(&error)))?;
        let request = backend
            .request(&client, &base, key, question)
            .map_err(|error| failed(error.to_string()))?;
        let mut response = request
            .send()
            .await
            .map_err(|error| failed(causes(&error.without_url())))?;
        let status = response.status();
        let body = body::read(&mut response, MAX_ANSWER_BYTES)
            .await
            .map_err(|error| failed(causes(&error.without_url())))?;
        if !status.is_success() {
            let text = String::from_utf8_lossy(&body.bytes);
            let remedy = match status {
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    format!("; check {variable}")
                }
                StatusCode::TOO_MANY_REQUESTS => "; try again later".to_owned(),
                _ => String::new(),
            };
            return Err(ToolOutput::failed(format!(
                "{name} answered {status}{remedy}.\n{}",
                beginning(text.trim(), MAX_ERROR_CHARS)
            )));
        }
        match body.extent {
            Extent::Whole => backend
                .parse(&body.bytes)
                .map_err(|error| failed(format!("the answer was not understood: {error}"))),
            Extent::Cut => Err(failed("the answer was too large".to_owned())),
        }
    }
}

fn question(input: WebSearchInput) -> Result<Question, ToolOutput> {
    let query = input.query.trim().to_owned();
    if query.is_empty() {
        return Err(ToolOutput::invalid("The query is empty."));
    }
    let domains = |domains: Vec<String>| {
        domains
            .iter()
            .map(|domain| match Host::parse(domain.trim()) {
                Ok(host) => Ok(host.to_string()),
                Err(_) => Err(ToolOutput::invalid(format!(
                    "`{domain}` is not a domain; write it like `example.com`."
                ))),
            })
            .collect::<Result<Vec<_>, _>>()
    };
    Ok(Question {
        query,
        limit: input.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT),
        allowed: domains(input.allowed_domains)?,
        blocked: domains(input.blocked_domains)?,
    })
}

/// Services treat domains as they like; here they are a guarantee.
fn is_wanted(question: &Question, finding: &Finding) -> bool {
    let host = Url::parse(&finding.url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned))
        .unwrap_or_default();
    let is_of = |domain: &String| {
        host.strip_suffix(domain.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    (question.allowed.is_empty() || question.allowed.iter().any(is_of))
        && !question.blocked.iter().any(is_of)
}

fn render(question: &Question, findings: &[Finding]) -> String {
    let lines: Vec<String> = findings
        .iter()
        .filter(|finding| is_wanted(question, finding))
        .take(question.limit)
        .enumerate()
        .map(|(index, finding)| {
            let title = match finding.title.as_str() {
                "" => "(no title)",
                title => title,
            };
            let mut text = format!(
                "{}. {}\n   {}",
                index + 1,
                beginning(title, MAX_SNIPPET),
                finding.url
            );
            if !finding.snippet.is_empty() {
                text.push_str("\n   ");
                text.push_str(&beginning(&finding.snippet, MAX_SNIPPET));
            }
            text
        })
        .collect();
    if lines.is_empty() {
        return format!("No results for `{}`.", question.query);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_hold_whatever_the_service_answers() {
        let finding = |url: &str| Finding {
            title: String::new(),
            url: url.to_owned(),
            snippet: String::new(),
        };
        let question = Question {
            query: "q".to_owned(),
            limit: 5,
            allowed: vec!["a.com".to_owned()],
            blocked: vec!["bad.a.com".to_owned()],
        };
        for (url, expected) in [
            ("https://a.com/x", true),
            ("https://docs.a.com/x", true),
            ("https://evil-a.com/x", false),
            ("https://x.bad.a.com/", false),
            ("https://b.com/", false),
            ("nonsense", false),
        ] {
            assert_eq!(is_wanted(&question, &finding(url)), expected, "{url}");
        }
    }
}
