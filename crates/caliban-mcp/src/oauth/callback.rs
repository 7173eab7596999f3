//! The loopback address that the browser comes back to: one answer, for one login, in time.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use url::Url;

use super::address::shown;

/// Where on the loopback address the browser is sent.
const PATH: &str = "/callback";
/// The longest request head; codes are a few hundred bytes.
const HEAD: usize = 16 << 10;
const HEADERS: usize = 64;
/// How long a connection may take to say what it wants. Browsers open some without need.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
/// How many connections are served at a time; further ones wait.
const CONNECTIONS: usize = 16;
/// How many requests that are not the answer are turned away before the login is given up.
const STRANGERS: usize = 1000;

/// What the authorization server sent back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Code {
        code: String,
        issuer: Option<String>,
    },
    /// The server or the person said no.
    Refusal(String),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CallbackError {
    #[error("nobody came back from the browser within {} s", .0.as_secs())]
    TimedOut(Duration),
    #[error("too many requests that were not the answer")]
    Strangers,
    #[error("the local address for the answer cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// A listener that is reachable from this machine alone.
#[derive(Debug)]
pub(crate) struct Callback {
    listener: TcpListener,
    address: SocketAddr,
}

impl Callback {
    /// Listens on a port, or any free one when 0.
    pub(crate) async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    pub(crate) fn redirect_uri(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Waits for the request that carries `state`, the secret of this login. Everything else is
    /// turned away, so that a page in the same browser can neither end the login nor answer it.
    pub(crate) async fn wait(
        self,
        state: &str,
        patience: Duration,
    ) -> Result<Answer, CallbackError> {
        tokio::time::timeout(patience, self.serve(state))
            .await
            .map_err(|_| CallbackError::TimedOut(patience))?
    }

    async fn serve(self, state: &str) -> Result<Answer, CallbackError> {
        let expected = Arc::new(Expected {
            host: self.address.to_string(),
            state: state.to_owned(),
        });
        let (sender, mut receiver) = mpsc::channel(1);
        let mut connections = JoinSet::new();
        let mut strangers = 0;
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS => {
                    let (stream, _) = accepted?;
                    let (expected, sender) = (expected.clone(), sender.clone());
                    connections.spawn(async move {
                        let served = tokio::time::timeout(REQUEST_PATIENCE, serve(stream, &expected));
                        if let Ok(Some(answer)) = served.await {
                            let _ = sender.send(answer).await;
                        }
                    });
                }
                Some(answer) = receiver.recv() => return Ok(answer),
                Some(_) = connections.join_next() => {
                    strangers += 1;
                    if strangers > STRANGERS {
                        return Err(CallbackError::Strangers);
                    }
                }
            }
        }
    }
}

/// What the right request looks like.
#[derive(Debug)]
struct Expected {
    host: String,
    state: String,
}

/// A request, as far as it matters here.
#[derive(Debug)]
struct Request {
    method: String,
    target: String,
    hosts: Vec<String>,
    origin: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Answer(Answer),
    /// Turned away, with this status.
    Stranger(u16),
}

impl Expected {
    fn judge(&self, request: &Request) -> Verdict {
        // A name that was made to point here is not this address.
        if request.hosts != [self.host.as_str()] {
            return Verdict::Stranger(421);
        }
        // A browser that follows a redirect names no origin; a script in a page does.
        if request
            .origin
            .as_deref()
            .is_some_and(|origin| origin != "null")
        {
            return Verdict::Stranger(403);
        }
        if request.method != "GET" {
            return Verdict::Stranger(405);
        }
        let target = Url::parse(&format!("http://{}{}", self.host, request.target)).ok();
        let is_here = request.target.starts_with(PATH);
        let Some(target) = target.filter(|target| is_here && target.path() == PATH) else {
            return Verdict::Stranger(404);
        };
        // A parameter that is there twice means something different to everybody.
        let one = |name: &str| {
            let mut values = target.query_pairs().filter(|(key, _)| key == name);
            match (values.next(), values.next()) {
                (Some((_, value)), None) => Ok(Some(value.into_owned())),
                (None, _) => Ok(None),
                (Some(_), Some(_)) => Err(()),
            }
        };
        let (Ok(state), Ok(code), Ok(issuer), Ok(error)) =
            (one("state"), one("code"), one("iss"), one("error"))
        else {
            return Verdict::Stranger(400);
        };
        if state.as_deref() != Some(&self.state) {
            return Verdict::Stranger(400);
        }
        match (code, error) {
            (Some(code), None) => Verdict::Answer(Answer::Code { code, issuer }),
            (_, Some(error)) => Verdict::Answer(Answer::Refusal(shown(&error))),
            (None, None) => Verdict::Stranger(400),
        }
    }
}

/// Serves one request, and gives its answer if it is the one.
async fn serve(mut stream: TcpStream, expected: &Expected) -> Option<Answer> {
    let (status, answer) = match read(&mut stream).await.ok()? {
        None => (400, None),
        Some(request) => match expected.judge(&request) {
            Verdict::Answer(answer) => (200, Some(answer)),
            Verdict::Stranger(status) => (status, None),
        },
    };
    // Whoever leaves before the page has been written has asked nonetheless.
    let _ = stream
        .write_all(page(status, answer.as_ref()).as_bytes())
        .await;
    let _ = stream.shutdown().await;
    answer
}

/// Reads a request head; nothing where it makes no sense.
async fn read(stream: &mut TcpStream) -> io::Result<Option<Request>> {
    let mut head = Vec::new();
    loop {
        let mut slots = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut slots);
        match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) => {
                let values = |name: &str| -> Vec<String> {
                    request
                        .headers
                        .iter()
                        .filter(|header| header.name.eq_ignore_ascii_case(name))
                        .map(|header| String::from_utf8_lossy(header.value).into_owned())
                        .collect()
                };
                return Ok(Some(Request {
                    method: request.method.unwrap_or_default().to_owned(),
                    target: request.path.unwrap_or_default().to_owned(),
                    hosts: values("host"),
                    origin: values("origin").into_iter().next(),
                }));
            }
            Ok(httparse::Status::Partial) if head.len() < HEAD => {}
            Ok(httparse::Status::Partial) | Err(_) => return Ok(None),
        }
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    }
}

/// The page that the person sees. Nothing that was sent is in it.
fn page(status: u16, answer: Option<&Answer>) -> String {
    let (reason, text) = match (status, answer) {
        (200, Some(Answer::Code { .. })) => (
            "OK",
            "caliban has the answer. You can close this window and go back to the terminal.",
        ),
        (200, Some(Answer::Refusal(_))) => (
            "OK",
            "The login was refused. You can close this window; the terminal says more.",
        ),
        (403, _) => ("Forbidden", "Pages may not ask for this."),
        (404, _) => ("Not Found", "There is nothing here."),
        (405, _) => ("Method Not Allowed", "There is nothing here."),
        (421, _) => ("Misdirected Request", "There is nothing here."),
        _ => (
            "Bad Request",
            "This is not the answer to the login that is going on.",
        ),
    };
    let body = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>caliban</title></head><body><p>{text}</p></body></html>\n"
    );
    format!(
        "HTTP/1.1 {status} {reason}\r\n\
         Content-Type: text/html; charset=utf-8\r\n\
         Content-Length: {}\r\n\
         Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n\
         Referrer-Policy: no-referrer\r\n\
         X-Content-Type-Options: nosniff\r\n\
         Cache-Control: no-store\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests;
