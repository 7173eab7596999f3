//! Sends what is exported to collectors.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use flate2::write::GzEncoder;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, Identity, Response, StatusCode};

use crate::config::{Certificates, Collector, Compression, Protocol};
use crate::tree::Message;

/// The most of a collector's answer that is read.
const ANSWER: usize = 64 * 1024;

/// Why something did not arrive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// It may arrive later.
    #[error("{0}")]
    Later(String),
    /// It never will.
    #[error("{0}")]
    Never(String),
}

/// Makes the client for a collector; reading the roots of a machine takes its time.
pub(crate) fn client(
    collector: &Collector,
    certificates: &Certificates,
) -> Result<Client, SendError> {
    let never =
        |what: &str, error: &dyn std::fmt::Display| SendError::Never(format!("{what}: {error}"));
    let mut builder =
        caliban_http::builder(&collector.url, caliban_http::Proxies::NotForThisMachine)
            .timeout(collector.timeout)
            // There are collectors that look for `Content-Type` and find nothing else.
            .http1_title_case_headers();
    if collector.protocol == Protocol::Grpc && collector.url.scheme() == "http" {
        builder = builder.http2_prior_knowledge();
    }
    if let Some(path) = &certificates.authority {
        let pem =
            std::fs::read(path).map_err(|error| never(&format!("`{}`", path.display()), &error))?;
        let authorities = Certificate::from_pem_bundle(&pem)
            .map_err(|error| never(&format!("`{}`", path.display()), &error))?;
        builder = builder.tls_certs_only(authorities);
    }
    if let Some((certificate, key)) = &certificates.own {
        let mut pem = Vec::new();
        for path in [certificate, key] {
            let read = std::fs::read(path);
            pem.extend(read.map_err(|error| never(&format!("`{}`", path.display()), &error))?);
            pem.push(b'\n');
        }
        let identity = Identity::from_pem(&pem)
            .map_err(|error| never(&format!("`{}`", certificate.display()), &error))?;
        builder = builder.identity(identity);
    }
    builder
        .build()
        .map_err(|error| never("the client", &caliban_http::causes(&error)))
}

/// What is sent, whenever that succeeds.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    bytes: Vec<u8>,
    protocol: Protocol,
    compression: Compression,
}

impl Body {
    pub(crate) fn new(message: &Message, collector: &Collector) -> Self {
        let bytes = match collector.protocol {
            Protocol::Grpc | Protocol::HttpProtobuf => message.protobuf(),
            Protocol::HttpJson => message.json().to_string().into_bytes(),
        };
        let bytes = match collector.compression {
            Compression::None => bytes,
            Compression::Gzip => zipped(&bytes),
        };
        let bytes = match collector.protocol {
            Protocol::Grpc => framed(&bytes, collector.compression),
            Protocol::HttpProtobuf | Protocol::HttpJson => bytes,
        };
        Self {
            bytes,
            protocol: collector.protocol,
            compression: collector.compression,
        }
    }
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// A message with its length before it, as gRPC has it.
fn framed(bytes: &[u8], compression: Compression) -> Vec<u8> {
    let flag = match compression {
        Compression::None => 0,
        Compression::Gzip => 1,
    };
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let mut frame = vec![flag];
    frame.extend(length.to_be_bytes());
    frame.extend_from_slice(bytes);
    frame
}

/// Sends one message and waits until it has arrived.
pub(crate) async fn send(
    client: &Client,
    collector: &Collector,
    further: &BTreeMap<String, String>,
    body: &Body,
) -> Result<(), SendError> {
    let request = client
        .post(collector.url.clone())
        .headers(headers(collector, further, body))
        .body(body.bytes.clone());
    match request.send().await {
        Ok(response) => settled(response).await,
        Err(error) => Err(SendError::Later(caliban_http::causes(&error))),
    }
}

fn headers(collector: &Collector, further: &BTreeMap<String, String>, body: &Body) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // A later one of the same name wins, so that the helper does.
    for (name, value) in collector.headers.iter().chain(further) {
        let name = HeaderName::try_from(name.as_str());
        let value = HeaderValue::try_from(value.as_str());
        if let (Ok(name), Ok(mut value)) = (name, value) {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
    }
    let kind = match body.protocol {
        Protocol::Grpc => "application/grpc",
        Protocol::HttpProtobuf => "application/x-protobuf",
        Protocol::HttpJson => "application/json",
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    match (body.protocol, body.compression) {
        (Protocol::Grpc, compression) => {
            headers.insert("te", HeaderValue::from_static("trailers"));
            if compression == Compression::Gzip {
                headers.insert("grpc-encoding", HeaderValue::from_static("gzip"));
            }
        }
        (_, Compression::Gzip) => {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        (_, Compression::None) => {}
    }
    headers
}

/// Whether a collector took it.
async fn settled(mut response: Response) -> Result<(), SendError> {
    let status = response.status();
    let told = response.headers().get("grpc-status").cloned();
    let mut text = String::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        if text.len() + chunk.len() > ANSWER {
            break;
        }
        // Writing to a string does not fail.
        let _ = write!(text, "{}", String::from_utf8_lossy(&chunk));
    }
    if let Some(code) = told
        .as_ref()
        .and_then(|code| code.to_str().ok())
        .filter(|code| *code != "0")
    {
        let message = format!("the collector answered with status {code}");
        // Cancelled, too slow, exhausted, aborted, out of range, unavailable, data lost.
        return Err(match code {
            "1" | "4" | "8" | "10" | "11" | "14" | "15" => SendError::Later(message),
            _ => SendError::Never(message),
        });
    }
    if status.is_success() {
        return Ok(());
    }
    let text: String = text.chars().take(200).collect();
    let message = format!("the collector answered {status} {text}");
    Err(match status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => SendError::Later(message),
        _ => SendError::Never(message),
    })
}

/// How long the whole end of a session may wait for collectors.
pub const PATIENCE: Duration = Duration::from_secs(1);
