//! A small HTTP server on this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

pub(crate) enum Response {
    Status(u16, String),
    Redirect(String),
    /// Nothing, until the caller gives up.
    Silence,
    /// The connection is closed without a word.
    Closed,
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    pub(crate) fn start(answer: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (requests.clone(), Arc::new(answer));
        // Ends with the test's process.
        thread::spawn(move || {
            for connection in listener.incoming() {
                let (seen, answer) = (seen.clone(), answer.clone());
                thread::spawn(move || serve(connection.unwrap(), &seen, &*answer));
            }
        });
        Self { address, requests }
    }

    pub(crate) fn saying(status: u16, body: &str) -> Self {
        let body = body.to_owned();
        Self::start(move |_| Response::Status(status, body.clone()))
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(
    mut connection: TcpStream,
    seen: &Mutex<Vec<Request>>,
    answer: &dyn Fn(&Request) -> Response,
) {
    let Some(request) = read(&connection) else {
        return;
    };
    seen.lock().unwrap().push(request.clone());
    let (head, body) = match answer(&request) {
        Response::Status(status, body) => (format!("HTTP/1.1 {status} X"), body),
        Response::Redirect(to) => (format!("HTTP/1.1 307 X\r\nLocation: {to}"), String::new()),
        Response::Silence => {
            // Returns when the caller has closed its end.
            let _ = connection.read(&mut [0]);
            return;
        }
        Response::Closed => return,
    };
    let length = body.len();
    // A caller that stops reading early is one of the things tested.
    let _ = write!(
        connection,
        "{head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
}

fn read(connection: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length?.1.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Request {
        method,
        path,
        headers,
        body: serde_json::from_slice(&body).ok()?,
    })
}
