//! `/feedback`: sends what somebody wrote, and nothing that they did not.

use std::time::Duration;

use caliban_http::{Proxies, causes};
use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use serde_json::json;
use tokio::time::timeout;

use crate::session::Session;

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// The most that is sent.
const LONGEST: usize = 64 * 1024;

impl Session {
    /// Nothing of the conversation, the workspace or the settings goes along.
    pub(crate) async fn give_feedback(&self, text: &str) -> Result<String, String> {
        let configuration = self.watch.as_ref().map(|watch| watch.configuration());
        let address = configuration.and_then(|it| it.settings().feedback_url.clone());
        let address = address.ok_or(
            "nothing was sent: no `feedback_url` is set; the settings of the user or the \
             organisation may name one",
        )?;
        if text.len() > LONGEST {
            return Err(format!("at most {LONGEST} bytes are sent"));
        }
        let url = Url::parse(&address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or("nothing was sent: `feedback_url` is not an address of the web")?;
        let to = url.origin().ascii_serialization();
        let body = json!({
            "text": text,
            "version": env!("CARGO_PKG_VERSION"),
            "platform": format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
        });
        match timeout(PATIENCE, post(url, body.to_string())).await {
            Ok(Ok(())) => Ok(format!("Sent to {to}: your words, version and platform.")),
            Ok(Err(problem)) => Err(format!("{to} did not take it: {problem}")),
            Err(_) => Err(format!("{to} did not answer in time")),
        }
    }
}

/// Redirects are not followed: they would carry the words to somebody nobody named.
async fn post(url: Url, body: String) -> Result<(), String> {
    let told = |error: reqwest::Error| causes(&error.without_url());
    let client = caliban_http::builder(&url, Proxies::OfEnvironment)
        .build()
        .map_err(told)?;
    let sending = client
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .body(body)
        .send();
    let status = sending.await.map_err(told)?.status();
    if status.is_success() {
        Ok(())
    } else {
        Err(format!("it answered {status}"))
    }
}
