//! Test helpers: decoding recorded bytes under every split, random conversations, and a scripted
//! HTTP server.

use std::sync::{Arc, Mutex};

use caliban_http::Events;
use caliban_model::{
    Block, Error, ErrorKind, Image, ImageMime, ImageSource, Message, Origin, Request, Role,
    StreamEvent, ToolContent, ToolSpec,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use crate::adapter::{Decoder, Encoded};
use crate::assembly::Assembly;
use crate::body::Body;
use crate::framing::{Framer, Lines, Piece};
use crate::memory::Memory;
use crate::transport::Framing;

/// Reads an answer that arrives in `chunks` the way the adapter does: its events, and the error
/// that ended it, if one did.
pub(crate) fn decoded(
    framing: Framing,
    decoder: &mut dyn Decoder,
    chunks: &[&[u8]],
) -> (Vec<StreamEvent>, Option<Error>) {
    let mut framer = match framing {
        Framing::ServerSentEvents => Framer::Sse(Events::default()),
        Framing::JsonLines => Framer::Lines(Lines::default()),
        Framing::EventStream => Framer::Either,
    };
    let mut assembly = Assembly::new(Origin::new("provider", "model"));
    let result = feed(&mut framer, decoder, &mut assembly, chunks);
    (assembly.take_events(), result.err())
}

fn feed(
    framer: &mut Framer,
    decoder: &mut dyn Decoder,
    assembly: &mut Assembly,
    chunks: &[&[u8]],
) -> Result<(), Error> {
    for chunk in chunks.iter().map(Some).chain([None]) {
        let arrived = match chunk {
            Some(bytes) => framer
                .push(bytes)
                .map_err(|error| assembly.error(ErrorKind::Malformed, error.to_string()))?,
            None => framer.finish().map(Piece::Frame).into_iter().collect(),
        };
        for frame in arrived {
            if let Piece::Frame(frame) = frame
                && !assembly.has_stopped()
            {
                decoder.frame(&frame, assembly)?;
            }
        }
    }
    if assembly.has_stopped() {
        Ok(())
    } else {
        decoder.finish(assembly)
    }
}

/// The events of an answer that comes to its end.
pub(crate) fn decode(
    framing: Framing,
    mut decoder: Box<dyn Decoder>,
    chunks: &[&[u8]],
) -> Result<Vec<StreamEvent>, Error> {
    let (events, error) = decoded(framing, &mut *decoder, chunks);
    error.map_or(Ok(events), Err)
}

/// Checks that a cut at any byte, and at all of them, changes nothing.
pub(crate) fn assert_same_however_cut<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    read: impl Fn(&[&[u8]]) -> T,
) {
    let whole = read(&[bytes]);
    for at in 0..=bytes.len() {
        let (left, right) = bytes.split_at(at);
        assert_eq!(read(&[left, right]), whole, "cut at byte {at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(read(&single), whole, "cut everywhere");
}

/// Decodes `bytes` whole, split in two at every position, and byte by byte; all must agree, up
/// to the ids made here for calls that came without.
pub(crate) fn decode_every_way(
    framing: Framing,
    decoder: impl Fn() -> Box<dyn Decoder>,
    bytes: &[u8],
) -> Result<Vec<StreamEvent>, Error> {
    let whole = decode(framing, decoder(), &[bytes]);
    let expected = without_made_ids(&whole);
    for at in 0..=bytes.len() {
        let (left, right) = bytes.split_at(at);
        let split = decode(framing, decoder(), &[left, right]);
        assert_eq!(without_made_ids(&split), expected, "split at {at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    let bytewise = decode(framing, decoder(), &single);
    assert_eq!(without_made_ids(&bytewise), expected);
    whole
}

fn without_made_ids(result: &Result<Vec<StreamEvent>, Error>) -> String {
    let made = regex::Regex::new("call_[0-9a-f]{32}").unwrap();
    made.replace_all(&format!("{result:?}"), "call_made")
        .into_owned()
}

pub(crate) fn blocks(events: &[StreamEvent]) -> Vec<Block> {
    events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::BlockEnded { block, .. } => Some(block.clone()),
            _ => None,
        })
        .collect()
}

/// A prepared answer.
#[derive(Debug)]
pub(crate) struct Reply {
    status: u16,
    content_type: &'static str,
    body: String,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self {
            status,
            content_type: "application/json",
            body: body.to_owned(),
        }
    }

    pub(crate) fn lines(body: &str) -> Self {
        Self {
            status: 200,
            content_type: "application/x-ndjson",
            body: body.to_owned(),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Received {
    /// Method and target.
    pub(crate) line: String,
    pub(crate) body: String,
}

#[derive(Debug)]
pub(crate) struct Server {
    port: u16,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Server {
    pub(crate) fn url(&self) -> Url {
        Url::parse(&format!("http://127.0.0.1:{}", self.port)).unwrap()
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

/// Gives `replies` to as many requests, one connection each, and then listens no more.
pub(crate) async fn serve(replies: Vec<Reply>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let received = Arc::new(Mutex::new(Vec::new()));
    let log = received.clone();
    tokio::spawn(async move {
        for reply in replies {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = read_request(&mut stream).await;
            log.lock().unwrap().push(request);
            let head = format!(
                "HTTP/1.1 {} X\r\ncontent-type: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                reply.status,
                reply.content_type,
                reply.body.len()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(reply.body.as_bytes()).await.unwrap();
        }
    });
    Server { port, received }
}

async fn read_request(stream: &mut TcpStream) -> Received {
    let mut bytes = Vec::new();
    loop {
        let read = stream.read_buf(&mut bytes).await.unwrap();
        assert!(read > 0, "the request was cut off");
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length: usize = head
            .lines()
            .find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.parse().unwrap())
            })
            .unwrap_or(0);
        if body.len() >= length {
            let line = head.lines().next().unwrap();
            return Received {
                line: line.trim_end_matches(" HTTP/1.1").to_owned(),
                body: body.to_owned(),
            };
        }
    }
}

/// What a request says, as values.
pub(crate) fn sent(encoded: Encoded) -> Value {
    Value::Object(encoded.call.body.unwrap().values())
}

/// Conversations with everything that may stand in one, sensible or not: ids that come twice,
/// results that are missing or nobody's, turns that say nothing, answers of other models.
pub(crate) fn any_conversation(
    provider: &'static str,
    models: [&'static str; 2],
) -> impl Strategy<Value = Vec<Arc<Message>>> {
    let text = prop::sample::select(vec!["", " ", "words", "a \"quote\""]);
    let id = prop::sample::select(vec!["a", "b", "functions.Read:1"]);
    let image = || Image {
        mime: ImageMime::Png,
        source: ImageSource::Base64 {
            data: "aVZC".into(),
        },
        dims: None,
    };
    let block = (0..8_u8, text, id).prop_map(move |(kind, text, id)| match kind {
        0 | 1 => Block::text(text),
        2 => Block::Thinking {
            text: text.to_owned(),
            signature: Some("s".to_owned()),
            private: None,
        },
        3 => Block::Opaque {
            value: json!({"type": "reasoning", "encrypted_content": text}),
        },
        4 => Block::Image(image()),
        5 => Block::ToolResult {
            tool_use_id: id.to_owned(),
            content: vec![ToolContent::Text {
                text: text.to_owned(),
            }],
            is_error: text.is_empty(),
        },
        _ => Block::ToolUse {
            id: id.to_owned(),
            name: "Read".to_owned(),
            input: json!({"file_path": text}),
            private: None,
        },
    });
    let author = prop::sample::select(vec![
        Some(Origin::new(provider, models[0])),
        Some(Origin::new(provider, models[1])),
        None,
    ]);
    let turn = (any::<bool>(), prop::collection::vec(block, 0..4), author);
    let turn = turn.prop_map(|(is_user, blocks, origin)| {
        let (results, others): (Vec<Block>, Vec<Block>) = blocks
            .into_iter()
            .partition(|block| matches!(block, Block::ToolResult { .. }));
        let calls = |block: &Block| matches!(block, Block::ToolUse { .. });
        Arc::new(if is_user {
            let others = others.into_iter().filter(|block| !calls(block));
            Message::new(Role::User, results.into_iter().chain(others).collect())
        } else {
            Message {
                role: Role::Assistant,
                content: others,
                origin,
            }
        })
    });
    prop::collection::vec(turn, 0..24).prop_map(|turns| {
        let first = Arc::new(Message::user("q"));
        let system = Arc::new(Message::system("be brief"));
        [system, first].into_iter().chain(turns).collect()
    })
}

/// Sends a conversation turn by turn: with what is remembered of the earlier requests, each says
/// the same bytes as without.
pub(crate) fn assert_memory_changes_no_byte<S: Clone + Default>(
    history: &[Arc<Message>],
    models: [&str; 2],
    encode: impl Fn(&Request, &Memory<S>) -> Body,
) -> Result<(), TestCaseError> {
    let memory = Memory::default();
    let tools: Arc<[ToolSpec]> = Arc::from([ToolSpec {
        name: "Read".into(),
        description: "reads".into(),
        input_schema: json!({"type": "object"}),
    }]);
    for length in 2..=history.len() {
        for model in models {
            let mut request = Request::new(model, history[..length].to_vec().into()).unwrap();
            request.tools = Arc::clone(&tools);
            let sent = |memory: &Memory<S>| {
                String::from_utf8(encode(&request, memory).bytes().unwrap()).unwrap()
            };
            prop_assert_eq!(sent(&memory), sent(&Memory::default()));
        }
    }
    Ok(())
}
