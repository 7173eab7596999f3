//! Asks the monitoring endpoint of a server how it writes.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most that is read of its answer.
const LONGEST: u64 = 4 << 20;

/// What `/jsz` says. It is plain HTTP of one exchange, for which the server needs no more.
pub async fn read_monitor(url: &Url) -> Result<Value, String> {
    let asked = timeout(PATIENCE, ask(url));
    asked.await.map_err(|_| "no answer".to_owned())?
}

async fn ask(url: &Url) -> Result<Value, String> {
    if url.scheme() != "http" {
        return Err("only http is spoken here; ask on the machine of the server".to_owned());
    }
    let reason = |error: std::io::Error| error.to_string();
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(80);
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let mut stream = TcpStream::connect((name, port)).await.map_err(reason)?;
    let request = format!("GET /jsz?config=true HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(reason)?;
    let mut answer = String::new();
    let mut reader = stream.take(LONGEST);
    reader.read_to_string(&mut answer).await.map_err(reason)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).unwrap_or_default();
    if status != "200" {
        return Err(format!("it answers with status {status}"));
    }
    serde_json::from_str(body).map_err(|error| error.to_string())
}
