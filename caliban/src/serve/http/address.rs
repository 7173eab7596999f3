//! An address to listen at. One that other machines reach is refused unless it was asked for twice.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use url::Url;

use crate::exit::Failure;

/// What lies between the server and whoever comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Whoever listens reads everything.
    Open,
    /// Connections are encrypted here.
    Encrypted,
    /// A proxy encrypts them.
    Proxied,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) socket: SocketAddr,
}

impl Address {
    pub(super) fn new(text: &str, way: Way) -> Result<Self, Failure> {
        let socket = match text.strip_prefix("localhost:") {
            Some(port) => port
                .parse()
                .ok()
                .map(|port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
            None => text.parse().ok(),
        };
        let Some(socket) = socket else {
            return Err(Failure::Usage(format!(
                "`{text}` is no address: use `127.0.0.1:PORT`, `[::1]:PORT` or `unix:PATH`"
            )));
        };
        let address = Self { socket };
        if address.is_public() && way == Way::Open {
            return Err(Failure::Usage(format!(
                "`{text}` is reached by other machines, and what they send would not be encrypted; \
                 listen at 127.0.0.1, give `--tls-cert` and `--tls-key`, or put a proxy with TLS \
                 before it and say `--behind-proxy`"
            )));
        }
        Ok(address)
    }

    /// Whether other machines reach it.
    pub(super) fn is_public(&self) -> bool {
        !self.socket.ip().is_loopback()
    }

    /// By what it is reached on this machine.
    pub(super) fn name(&self, port: u16) -> String {
        match self.socket.ip() {
            IpAddr::V6(ip) if ip.is_loopback() => format!("[::1]:{port}"),
            IpAddr::V4(_) | IpAddr::V6(_) => format!("127.0.0.1:{port}"),
        }
    }
}

/// An origin as browsers send it.
pub(super) fn check_origin(text: &str) -> Result<(), Failure> {
    let url = Url::parse(text).ok();
    let is_one = url.is_some_and(|url| {
        matches!(url.scheme(), "http" | "https") && url.origin().ascii_serialization() == text
    });
    if is_one {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "`--allow-origin {text}` is no origin: write `https://HOST` or `https://HOST:PORT`, in small letters and with \
         nothing behind it"
    )))
}

/// A name that a server is reached by.
pub(super) fn check_name(text: &str) -> Result<(), Failure> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    if !text.is_empty() && text.chars().all(is_letter) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "`--host-name {text}` is no name: write it as in `box.example.com`, without a port"
    )))
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_and_names_are_whole_and_nothing_more() {
        for origin in ["https://ok.test", "http://localhost:5173"] {
            assert!(check_origin(origin).is_ok(), "{origin}");
        }
        for wrong in [
            "ok.test",
            "https://ok.test/",
            "https://ok.test:443",
            "*",
            "ftp://x",
            "null",
        ] {
            assert!(check_origin(wrong).is_err(), "{wrong}");
        }
        assert!(check_name("box.test").is_ok() && check_name("127.0.0.1").is_ok());
        for wrong in ["", "box.test:80", "https://box", "a b", "*"] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn other_machines_are_kept_out_unless_asked_for() {
        for local in ["127.0.0.1:0", "localhost:80", "[::1]:80", "127.8.8.8:1"] {
            assert!(Address::new(local, Way::Open).is_ok(), "{local}");
        }
        for public in ["0.0.0.0:80", "[::]:80", "192.168.1.1:80", "8.8.8.8:80"] {
            assert!(Address::new(public, Way::Open).is_err(), "{public}");
            for way in [Way::Encrypted, Way::Proxied] {
                assert!(Address::new(public, way).is_ok(), "{public}");
            }
        }
        for wrong in ["example.com:80", "80", "127.0.0.1", "localhost:x"] {
            assert!(Address::new(wrong, Way::Proxied).is_err(), "{wrong}");
        }
    }
}
