//! The tool that fetches a page.

use std::time::Duration;

use caliban_agent::{Effect, ToolContext, ToolOutput, ToolStatus, TypedTool};
use caliban_http::causes;
use reqwest::header::{ACCEPT, LOCATION};
use reqwest::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

use super::beginning;
use super::body::{self, Extent, Kind};
use super::client::{pinned, route};
use super::html::{Coverage, markdown};
use super::policy::{Refusal, WebPolicy, parse, same_site};

const DEFAULT_TIMEOUT: u64 = 60;
const MAX_TIMEOUT: u64 = 300;

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

/// How much of a body is read, after decompression.
const MAX_BODY_BYTES: usize = 10 * 1024 * 1024;

/// How much of an error page is read and shown.
const MAX_ERROR_BYTES: usize = 64 * 1024;
const MAX_ERROR_CHARS: usize = 1000;

/// Fetches a URL and shows it as text.
///
/// Only addresses of the public internet are connected to unless the policy says otherwise. When
/// the environment names a proxy, the proxy connects, and its own resolution is not checked.
#[derive(Debug)]
pub struct WebFetch {
    policy: WebPolicy,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebFetchInput {
    /// http or https.
    url: String,
    /// Default 60, at most 300.
    #[serde(default)]
    timeout_seconds: Option<u64>,
    /// Return HTML as it is instead of as markdown.
    #[serde(default)]
    raw: bool,
    /// What to look for, as elsewhere a small model reads the page; here the caller does.
    #[serde(default, rename = "prompt")]
    #[schemars(skip)]
    _prompt: Option<String>,
}

/// How HTML is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Markdown,
    Source,
}

impl WebFetch {
    pub fn new(policy: WebPolicy) -> Self {
        Self { policy }
    }
}

impl TypedTool for WebFetch {
    type Input = WebFetchInput;

    const NAME: &'static str = "WebFetch";
    const DESCRIPTION: &'static str = "Fetches a URL with GET and returns it as text, HTML as \
         markdown. Redirects to another site are reported, not followed.";
    const EFFECT: Effect = Effect::ReadOnly;

    fn first_arg(&self, input: &WebFetchInput) -> Option<String> {
        Some(input.url.clone())
    }

    fn supersession_key(&self, input: &WebFetchInput) -> Option<String> {
        Some(input.url.clone())
    }

    async fn run(&self, input: WebFetchInput, context: ToolContext) -> ToolOutput {
        let seconds = input
            .timeout_seconds
            .unwrap_or(DEFAULT_TIMEOUT)
            .clamp(1, MAX_TIMEOUT);
        let form = if input.raw {
            Form::Source
        } else {
            Form::Markdown
        };
        let fetch = Box::pin(self.fetch(&input.url, form));
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => {
                ToolOutput::new(ToolStatus::Cancelled, "The fetch was cancelled.")
            }
            ended = tokio::time::timeout(Duration::from_secs(seconds), fetch) => match ended {
                Ok(Ok(output)) => output,
                Ok(Err(failure)) => failure.into(),
                Err(_) => ToolOutput::new(
                    ToolStatus::TimedOut,
                    format!("`{}` was not read within {seconds} s.", input.url),
                ),
            },
        }
    }
}

impl WebFetch {
    async fn fetch(&self, url: &str, form: Form) -> Result<ToolOutput, Failure> {
        let mut url = parse(url)?;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.get(url.clone()).await?;
            let Some(next) = redirect(&url, &response)? else {
                return present(&url, response, form).await;
            };
            if !same_site(&url, &next) {
                return Ok(ToolOutput::ok(format!(
                    "`{url}` redirects to another site: {next}\nIt was not followed; fetch that \
                     URL if it is the one you want."
                )));
            }
            url = next;
        }
        Err(Failure::TooManyRedirects)
    }

    async fn get(&self, url: Url) -> Result<Response, Failure> {
        let route = route(&url, |name| std::env::var(name).ok());
        let target = self.policy.admit(url, route).await?;
        let response = pinned(&target)?
            .get(target.url)
            .header(ACCEPT, "text/html, text/markdown, text/plain, */*;q=0.8")
            .send()
            .await?;
        Ok(response)
    }
}

/// Where an answer leads, if it leads elsewhere.
fn redirect(url: &Url, response: &Response) -> Result<Option<Url>, Failure> {
    let location = match response.status() {
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::SEE_OTHER
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => response.headers().get(LOCATION),
        _ => None,
    };
    let Some(location) = location else {
        return Ok(None);
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    let joined = url
        .join(&location)
        .map_err(|error| Failure::BadRedirect(error.to_string()))?;
    let next = parse(joined.as_str()).map_err(|error| Failure::BadRedirect(error.to_string()))?;
    Ok(Some(next))
}

/// The answer as text.
async fn present(url: &Url, mut response: Response, form: Form) -> Result<ToolOutput, Failure> {
    let status = response.status();
    let content_type = body::content_type(&response);
    let announced = response.content_length();
    let limit = if status.is_success() {
        MAX_BODY_BYTES
    } else {
        MAX_ERROR_BYTES
    };
    let body = body::read(&mut response, limit).await?;
    let kind = match body::kind(&content_type) {
        Kind::Unknown if body.bytes.contains(&0) => Kind::Binary,
        Kind::Unknown => Kind::Text,
        known => known,
    };
    let mut notes = Vec::new();
    if body.extent == Extent::Cut && status.is_success() {
        notes.push(format!(
            "The answer is larger than {} MiB; the rest was not read.",
            MAX_BODY_BYTES / (1024 * 1024)
        ));
    }
    let text = match (kind, form) {
        (Kind::Binary | Kind::Unknown, _) => {
            let size = match (body.extent, announced) {
                (Extent::Whole, _) => format!("{} bytes", body.bytes.len()),
                (Extent::Cut, Some(size)) => format!("{size} bytes"),
                (Extent::Cut, None) => format!("more than {limit} bytes"),
            };
            format!("Binary content of {size}; it cannot be shown as text.")
        }
        (Kind::Html, Form::Markdown) => {
            let source = body::decode(&body.bytes, &content_type);
            match markdown(source.clone()).await {
                Some(page) => {
                    match page.coverage {
                        Coverage::Whole => {}
                        Coverage::Beginning => notes.push(
                            "The page is very large; only its beginning was converted.".to_owned(),
                        ),
                    }
                    page.text
                }
                None => source,
            }
        }
        (Kind::Html, Form::Source) | (Kind::Text, _) => body::decode(&body.bytes, &content_type),
    };
    if !status.is_success() {
        return Ok(ToolOutput::failed(format!(
            "`{url}` answered {status}.\n{}",
            beginning(text.trim(), MAX_ERROR_CHARS)
        )));
    }
    let mut output = format!("URL: {url}\nStatus: {status}\n");
    if !content_type.is_empty() {
        output.push_str("Content-Type: ");
        output.extend(content_type.chars().filter(|c| !c.is_control()));
        output.push('\n');
    }
    for note in notes {
        output.push_str("Note: ");
        output.push_str(&note);
        output.push('\n');
    }
    output.push('\n');
    output.push_str(&text);
    Ok(ToolOutput::ok(output))
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the request failed: {}", causes(.0))]
    Request(#[from] reqwest::Error),
    #[error("more than {MAX_REDIRECTS} redirects")]
    TooManyRedirects,
    #[error("the answer redirects to something that cannot be fetched: {0}")]
    BadRedirect(String),
}

impl From<Failure> for ToolOutput {
    fn from(failure: Failure) -> Self {
        let status = match &failure {
            Failure::Refused(
                Refusal::NotAUrl { .. } | Refusal::Scheme(_) | Refusal::Credentials,
            ) => ToolStatus::InvalidInput,
            Failure::Refused(Refusal::Private { .. }) => ToolStatus::Denied,
            Failure::Request(error) if error.is_timeout() => ToolStatus::TimedOut,
            Failure::Refused(Refusal::Unresolved { .. })
            | Failure::Request(_)
            | Failure::TooManyRedirects
            | Failure::BadRedirect(_) => ToolStatus::Failed,
        };
        ToolOutput::new(status, format!("Nothing was fetched: {failure}."))
    }
}
