//! HTTP by hand: every byte of a request is the test's own.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};

use serde_json::Value;

/// A stream in both directions.
pub(crate) trait Both: Read + Write {}
impl<T: Read + Write> Both for T {}

pub(crate) struct Exchange {
    stream: Box<dyn Both>,
    head: String,
    body: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("{self:?}"))
    }

    pub(crate) fn json_or_null(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl Exchange {
    pub(crate) fn new(stream: impl Both + 'static, method: &str, path: &str) -> Self {
        Self {
            stream: Box::new(stream),
            head: format!("{method} {path} HTTP/1.1\r\n"),
            body: Vec::new(),
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head.extend([name, ": ", value, "\r\n"]);
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json")
            .body(body.to_string().as_bytes())
    }

    pub(crate) fn body(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self
    }

    fn send(mut self) -> BufReader<Box<dyn Both>> {
        let head = format!("{}content-length: {}\r\n\r\n", self.head, self.body.len());
        self.stream.write_all(head.as_bytes()).unwrap();
        // A server may refuse before it has read everything.
        let _ = self.stream.write_all(&self.body);
        BufReader::new(self.stream)
    }

    /// The whole answer of a connection that is closed after it.
    pub(crate) fn answer(self) -> Answer {
        let mut reader = self.header("connection", "close").send();
        let (status, headers) = head(&mut reader);
        let mut text = Vec::new();
        if let Err(error) = reader.read_to_end(&mut text) {
            // A server that did not read everything breaks the connection behind its answer.
            assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
            let length = headers.iter().find(|(name, _)| name == "content-length");
            let length: usize = length.unwrap().1.parse().unwrap();
            assert_eq!(text.len(), length);
        }
        let is_chunked = headers.iter().any(|(name, _)| name == "transfer-encoding");
        assert!(!is_chunked, "{headers:?}");
        Answer {
            status,
            headers,
            text: String::from_utf8(text).unwrap(),
        }
    }

    /// The status and the bytes of an answer that is no text.
    pub(crate) fn bytes(self) -> (u16, Vec<u8>) {
        let mut reader = self.header("connection", "close").send();
        let (status, _) = head(&mut reader);
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        (status, bytes)
    }

    /// Whether anything like an answer comes before the connection ends.
    pub(crate) fn gets_an_answer(self) -> bool {
        let mut reader = self.send();
        let mut bytes = Vec::new();
        // The end may be a reset.
        let _ = reader.read_to_end(&mut bytes);
        bytes.starts_with(b"HTTP")
    }

    pub(crate) fn stream(self) -> Stream {
        let mut reader = self.header("accept", "text/event-stream").send();
        let (status, _) = head(&mut reader);
        assert_eq!(status, 200);
        Stream(reader)
    }

    pub(crate) fn websocket(self) -> Socket {
        let mut reader = self.upgraded();
        let (status, _) = head(&mut reader);
        assert_eq!(status, 101);
        Socket(reader)
    }

    /// Asks for a WebSocket.
    pub(crate) fn upgraded(self) -> BufReader<Box<dyn Both>> {
        self.header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .send()
    }
}

pub(crate) fn head(reader: &mut impl BufRead) -> (u16, Vec<(String, String)>) {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line
        .split(' ')
        .nth(1)
        .unwrap_or_else(|| panic!("{line:?}"))
        .parse()
        .unwrap();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(':') {
            Some((name, value)) => {
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            None => return (status, headers),
        }
    }
}

/// Server-sent events in chunks.
pub(crate) struct Stream(BufReader<Box<dyn Both>>);

impl Stream {
    /// The next event: its id and its data.
    pub(crate) fn event(&mut self) -> (String, Value) {
        let (mut id, mut data) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the stream ended");
            let line = line.trim_end();
            if let Some(text) = line.strip_prefix("id: ") {
                text.clone_into(&mut id);
            } else if let Some(text) = line.strip_prefix("data: ") {
                text.clone_into(&mut data);
                return (id, serde_json::from_str(&data).unwrap());
            }
        }
    }
}

/// A WebSocket.
pub(crate) struct Socket(BufReader<Box<dyn Both>>);

impl Socket {
    pub(crate) fn write(&mut self, line: &Value) {
        let text = line.to_string();
        let length = u16::try_from(text.len()).unwrap();
        let mut frame = vec![0x81];
        match u8::try_from(length) {
            Ok(short) if short < 126 => frame.push(0x80 | short),
            Ok(_) | Err(_) => {
                frame.push(0x80 | 0x7e);
                frame.extend_from_slice(&length.to_be_bytes());
            }
        }
        // A mask of zeros leaves the text as it is.
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(text.as_bytes());
        self.0.get_mut().write_all(&frame).unwrap();
    }

    pub(crate) fn read(&mut self) -> Value {
        let mut take = |count: usize| {
            let mut bytes = vec![0; count];
            self.0.read_exact(&mut bytes).unwrap();
            bytes
        };
        let head = take(2);
        assert_eq!(head[0], 0x81);
        let length = match head[1] {
            126 => usize::from(u16::from_be_bytes(take(2).try_into().unwrap())),
            127 => usize::try_from(u64::from_be_bytes(take(8).try_into().unwrap())).unwrap(),
            length => usize::from(length),
        };
        serde_json::from_slice(&take(length)).unwrap()
    }
}
