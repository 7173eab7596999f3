//! Google's Gemini API.

mod contents;
mod decode;
mod encode;
mod error;
mod wire;

use caliban_model::{Error, ErrorKind, ModelInfo, Origin, Request};
use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::Method;
use serde::Deserialize;

use crate::adapter::{Decoder, Encoded, Family, Link};
use crate::failure::{Refusal, fail};
use crate::memory::Memory;
use crate::transport::{Call, Framing};
pub(crate) use encode::body;

/// The provider's short name.
const ID: &str = "google";
/// How many pages of the model list are read; a page holds a thousand models.
const MAX_PAGES: usize = 10;

/// The wire format of `generateContent`, in the version of the API that the path names.
#[derive(Debug)]
pub(crate) struct Gemini {
    version: String,
    memory: Memory<()>,
}

impl Gemini {
    /// `version` is a segment of every path, such as `v1beta`.
    pub(crate) fn new(version: String) -> Self {
        Self {
            version,
            memory: Memory::default(),
        }
    }

    /// The same, served by a platform.
    pub(crate) fn on(platform: &'static str, version: String) -> Self {
        Self {
            version,
            memory: Memory::on(platform),
        }
    }

    /// Without `alt=sse` the answer would be one JSON array instead of events.
    fn stream_path(&self, model: &str) -> String {
        let model = model.strip_prefix("models/").unwrap_or(model);
        format!(
            "{}/models/{}:streamGenerateContent?alt=sse",
            self.version,
            escaped(model)
        )
    }

    async fn list(&self, link: &Link) -> Result<Vec<ModelInfo>, Error> {
        let origin = Origin::new(ID, "");
        let mut models = Vec::new();
        let mut page_token = String::new();
        for _ in 0..MAX_PAGES {
            let mut path = format!("{}/models?pageSize=1000", self.version);
            if !page_token.is_empty() {
                path.push_str("&pageToken=");
                path.push_str(&escaped(&page_token));
            }
            let call = Call {
                origin: origin.clone(),
                method: Method::GET,
                path,
                body: None,
                headers: Vec::new(),
            };
            let answer = link.json(self, call).await?;
            let page = wire::ModelPage::deserialize(&answer).map_err(|error| {
                fail(
                    &origin,
                    ErrorKind::Malformed,
                    format!("the model list cannot be read: {error}"),
                )
            })?;
            models.extend(page.models.into_iter().filter_map(wire::Model::chat_model));
            match page.next_page_token {
                Some(next) if !next.is_empty() => page_token = next,
                Some(_) | None => break,
            }
        }
        Ok(models)
    }
}

impl Family for Gemini {
    fn id(&self) -> &'static str {
        ID
    }

    fn framing(&self) -> Framing {
        Framing::ServerSentEvents
    }

    fn encode<'a>(
        &'a self,
        request: &'a Request,
        _link: &'a Link,
    ) -> BoxFuture<'a, Result<Encoded, Error>> {
        async move {
            let (body, warnings) = encode::body(request, &self.memory);
            Ok(Encoded {
                call: Call {
                    origin: Origin::new(ID, request.model.clone()),
                    method: Method::POST,
                    path: self.stream_path(&request.model),
                    body: Some(body),
                    headers: Vec::new(),
                },
                warnings,
            })
        }
        .boxed()
    }

    fn decoder(&self, _request: &Request) -> Box<dyn Decoder> {
        Box::new(decode::GeminiDecoder::default())
    }

    fn remedy(&self, kind: &ErrorKind, _model: &str) -> Option<String> {
        error::remedy(kind)
    }

    fn refusal(&self, refusal: Refusal<'_>) -> Error {
        error::refusal(refusal)
    }

    fn models<'a>(&'a self, link: &'a Link) -> BoxFuture<'a, Result<Vec<ModelInfo>, Error>> {
        self.list(link).boxed()
    }
}

/// One segment of a path or one value of a query: everything but unreserved characters is
/// percent-encoded, so that no name can reach another path.
pub(crate) fn escaped(text: &str) -> String {
    use std::fmt::Write;

    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            other => {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "%{other:02X}");
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::Adapter;
    use crate::http::Timeouts;
    use crate::testing::{Reply, serve};
    use crate::transport::{AuthHeader, Direct};
    use caliban_model::{Provider, StaticKey};
    use std::sync::Arc;

    #[test]
    fn a_model_is_one_segment_of_the_path() {
        let gemini = Gemini::new("v1beta".into());
        assert_eq!(
            gemini.stream_path("gemini-3.8-flash"),
            "v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
        );
        assert_eq!(
            gemini.stream_path("models/gemini-3.8-flash"),
            gemini.stream_path("gemini-3.8-flash")
        );
        assert_eq!(
            gemini.stream_path("../files/é?x"),
            "v1beta/models/..%2Ffiles%2F%C3%A9%3Fx:streamGenerateContent?alt=sse"
        );
    }

    #[tokio::test]
    async fn the_model_list_is_read_page_by_page_without_models_that_cannot_chat() {
        let server = serve(vec![
            Reply::json(
                200,
                r#"{"models":[
                    {"name":"models/gemini-3.8-flash","inputTokenLimit":1048576,"outputTokenLimit":65536,
                     "supportedGenerationMethods":["generateContent","countTokens"],"thinking":true},
                    {"name":"models/gemini-embedding-2","supportedGenerationMethods":["embedContent"]}],
                   "nextPageToken":"a/b="}"#,
            ),
            Reply::json(
                200,
                r#"{"models":[{"name":"models/gemini-4-argon","supportedGenerationMethods":["generateContent"]}]}"#,
            ),
        ])
        .await;
        let adapter = Adapter::new(
            Gemini::new("v1beta".into()),
            Direct::new(
                server.url(),
                AuthHeader::XGoogApiKey,
                Arc::new(StaticKey::new("k")),
                Vec::new(),
            ),
            Timeouts::default(),
        );
        assert_eq!(
            adapter.models().await.unwrap(),
            vec![
                ModelInfo {
                    id: "gemini-3.8-flash".into(),
                    context_window: Some(1_048_576),
                    max_output: Some(65_536),
                },
                ModelInfo {
                    id: "gemini-4-argon".into(),
                    context_window: None,
                    max_output: None,
                },
            ]
        );
        let lines: Vec<String> = server.requests().into_iter().map(|r| r.line).collect();
        assert_eq!(
            lines,
            vec![
                "GET /v1beta/models?pageSize=1000",
                "GET /v1beta/models?pageSize=1000&pageToken=a%2Fb%3D",
            ]
        );
    }
}
