//! Answers from a cassette.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use caliban_model::{
    CancellationToken, Capabilities, Error, ErrorKind, EventStream, ModelInfo, Provider, Request,
    StreamEvent,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::difference::difference;
use super::{Asked, CassetteError, Masking, VERSION};

/// A provider that needs no network: each request is answered with the first unused exchange
/// whose request was the same, and the first request that fits none ends the run.
#[derive(Debug, Clone)]
pub struct Replay {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    path: PathBuf,
    masking: Masking,
    exchanges: Vec<Exchange>,
    used: Mutex<Vec<bool>>,
}

#[derive(Debug)]
struct Exchange {
    asked: Asked,
    answer: Vec<Result<StreamEvent, String>>,
}

impl Replay {
    /// Reads a cassette from its text; `path` is for messages only.
    pub fn parse(text: &str, path: &Path, masking: Masking) -> Result<Self, CassetteError> {
        let format = |line: usize, reason: String| CassetteError::Format {
            path: path.to_owned(),
            line: line + 1,
            reason,
        };
        let mut lines = text.lines().enumerate();
        let header: Value = lines
            .next()
            .and_then(|(_, line)| serde_json::from_str(line).ok())
            .unwrap_or_default();
        match header.get("cassette").and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(other) => {
                let reason = format!("version {other} is not supported; record it again");
                return Err(format(0, reason));
            }
            None => return Err(format(0, "this is not a cassette".to_owned())),
        }
        let mut exchanges: Vec<Exchange> = Vec::new();
        for (number, line) in lines {
            let mut value: Value =
                serde_json::from_str(line).map_err(|error| format(number, error.to_string()))?;
            masking.unmask(&mut value);
            if let Some(request) = value.get_mut("request") {
                let asked = serde_json::from_value(request.take())
                    .map_err(|error| format(number, error.to_string()))?;
                exchanges.push(Exchange {
                    asked,
                    answer: Vec::new(),
                });
                continue;
            }
            let Some(exchange) = exchanges.last_mut() else {
                return Err(format(number, "an event before any request".to_owned()));
            };
            exchange.answer.push(match value.get("error") {
                Some(error) => Err(error.as_str().unwrap_or_default().to_owned()),
                None => Ok(serde_json::from_value(value)
                    .map_err(|error| format(number, error.to_string()))?),
            });
        }
        if let Some(exchange) = exchanges.iter().find(|exchange| !exchange.is_complete()) {
            return Err(format(
                text.lines().count().saturating_sub(1),
                format!(
                    "the answer to the request after message {} has no end",
                    exchange.asked.after
                ),
            ));
        }
        Ok(Self {
            state: Arc::new(State {
                path: path.to_owned(),
                used: Mutex::new(vec![false; exchanges.len()]),
                masking,
                exchanges,
            }),
        })
    }

    /// Reads a cassette file.
    pub fn load(path: &Path, masking: Masking) -> Result<Self, CassetteError> {
        let text = std::fs::read_to_string(path).map_err(|source| CassetteError::Io {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, path, masking)
    }

    /// Who was recorded; what a replay uses unless told otherwise.
    pub fn recorded_model(&self) -> Option<(&str, &str)> {
        self.state
            .exchanges
            .first()
            .map(|exchange| (&*exchange.asked.provider, &*exchange.asked.model))
    }
}

impl Exchange {
    fn is_complete(&self) -> bool {
        matches!(
            self.answer.last(),
            Some(Ok(StreamEvent::Stopped { .. }) | Err(_))
        )
    }
}

impl State {
    fn answer(&self, request: &Request) -> Result<&Exchange, String> {
        let provider = self.provider();
        let asked = self.comparable(&Asked::new(provider, request));
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut closest = None;
        for (index, exchange) in self.exchanges.iter().enumerate() {
            if used[index] {
                continue;
            }
            match difference(&self.comparable(&exchange.asked), &asked) {
                None => {
                    used[index] = true;
                    return Ok(exchange);
                }
                Some(reason) => {
                    closest.get_or_insert((index, reason));
                }
            }
        }
        let path = self.path.display();
        Err(match closest {
            Some((index, reason)) => format!(
                "the request does not match exchange {} of cassette `{path}`: {reason}",
                index + 1
            ),
            None => format!(
                "cassette `{path}` has {} exchanges and all were used",
                self.exchanges.len()
            ),
        })
    }

    fn comparable(&self, asked: &Asked) -> Value {
        let mut compared = asked.compared();
        self.masking.mask(&mut compared);
        Masking::level(&mut compared);
        compared
    }

    fn provider(&self) -> &str {
        self.exchanges
            .first()
            .map_or("replay", |exchange| &exchange.asked.provider)
    }
}

impl Provider for Replay {
    fn id(&self) -> &str {
        self.state.provider()
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        caliban_model::capabilities(self.state.provider(), model)
    }

    fn stream(&self, request: Request, _: CancellationToken) -> EventStream {
        let provider = self.state.provider();
        let fail = |kind, message| Err(Error::new(kind, provider, &*request.model, message));
        let events: Vec<Result<StreamEvent, Error>> = match self.state.answer(&request) {
            Err(reason) => vec![fail(ErrorKind::Mismatch, reason)],
            Ok(exchange) => exchange
                .answer
                .iter()
                .map(|event| match event {
                    Ok(event) => Ok(event.clone()),
                    Err(message) => fail(ErrorKind::Invalid, message.clone()),
                })
                .collect(),
        };
        Box::pin(futures::stream::iter(events))
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>> {
        let mut models: Vec<ModelInfo> = self
            .state
            .exchanges
            .iter()
            .map(|exchange| ModelInfo {
                id: exchange.asked.model.clone(),
                context_window: None,
                max_output: None,
            })
            .collect();
        models.dedup();
        async move { Ok(models) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cassette::Recording;
    use caliban_model::{Block, Message, StopReason};
    use futures::StreamExt;

    const TAPE: &str = concat!(
        "{\"cassette\":1,\"caliban\":\"0.1.0\"}\n",
        "{\"request\":{\"provider\":\"anthropic\",\"model\":\"m\",\"purpose\":\"main_loop\",\"tools\":[],\"after\":0,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"look at {workspace} for 3 s\"}]}]}}\n",
        "{\"event\":\"started\",\"model\":\"m\"}\n",
        "{\"event\":\"text_delta\",\"index\":0,\"text\":\"in {workspace}\"}\n",
        "{\"event\":\"block_ended\",\"index\":0,\"block\":{\"type\":\"text\",\"text\":\"in {workspace}\"}}\n",
        "{\"event\":\"stopped\",\"reason\":\"end_turn\"}\n",
    );

    fn masking() -> Masking {
        Masking::new([("{workspace}", "/w/s".to_owned())], [])
    }

    fn replay(text: &str) -> Result<Replay, CassetteError> {
        Replay::parse(text, Path::new("tape"), masking())
    }

    async fn ask(provider: &dyn Provider, prompt: &str) -> Vec<Result<StreamEvent, Error>> {
        let request = Request::new("m", vec![Arc::new(Message::user(prompt))].into()).unwrap();
        provider
            .stream(request, CancellationToken::new())
            .collect()
            .await
    }

    #[tokio::test]
    async fn a_matching_request_is_answered_once_with_places_filled_in() {
        let tape = replay(TAPE).unwrap();
        assert_eq!(tape.recorded_model(), Some(("anthropic", "m")));
        let events = ask(&tape, "look at /w/s for 70 ms").await;
        assert_eq!(
            events[2],
            Ok(StreamEvent::BlockEnded {
                index: 0,
                block: Block::text("in /w/s")
            })
        );
        let again = ask(&tape, "look at /w/s for 3 s").await;
        let error = again[0].as_ref().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Mismatch);
        assert!(error.message.contains("all were used"), "{error}");
    }

    #[tokio::test]
    async fn a_mismatch_says_what_differed() {
        let events = ask(&replay(TAPE).unwrap(), "look elsewhere").await;
        let message = &events[0].as_ref().unwrap_err().message;
        assert_eq!(
            message,
            "the request does not match exchange 1 of cassette `tape`: `messages[0].content[0].text` is \"look elsewhere\" instead of \"look at {workspace} for {time}\""
        );
    }

    #[test]
    fn broken_cassettes_are_refused_with_the_line() {
        let error = |text: &str| replay(text).unwrap_err().to_string();
        assert_eq!(error(""), "cassette `tape`, line 1: this is not a cassette");
        assert!(error("{\"cassette\":9}\n").contains("version 9 is not supported"));
        let torn = TAPE.rsplit_once("{\"event\":\"stopped\"").unwrap().0;
        assert!(
            error(torn).contains("line 5: the answer"),
            "{}",
            error(torn)
        );
        assert!(error(&TAPE.replace("text_delta", "text_gamma")).contains("line 4"));
    }

    #[tokio::test]
    async fn what_is_recorded_can_be_replayed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tape.jsonl");
        let source = Arc::new(replay(TAPE).unwrap());
        let recording = Recording::start(source, &path, masking()).unwrap();
        let told = ask(&recording, "look at /w/s for 3 s").await;
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("/w/s"), "{text}");
        let replayed = ask(
            &Replay::load(&path, masking()).unwrap(),
            "look at /w/s for 9 s",
        )
        .await;
        assert_eq!(told, replayed);
        assert!(matches!(
            replayed.last(),
            Some(Ok(StreamEvent::Stopped {
                reason: StopReason::EndTurn,
                ..
            }))
        ));
    }
}
