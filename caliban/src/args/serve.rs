//! The arguments of servers.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};

/// How many sessions there may be, and how long.
#[derive(Debug, Args)]
pub(crate) struct RegistryArgs {
    /// Prompts that are worked on at the same time, over all sessions.
    #[arg(long, value_name = "N", default_value_t = Self::default().max_running)]
    pub(crate) max_running: NonZeroUsize,
    /// Prompts that wait in one session; one more is refused.
    #[arg(long, value_name = "N", default_value_t = Self::default().max_queue)]
    pub(crate) max_queue: NonZeroUsize,
    /// Sessions that do nothing for so long are written away until they are needed: 90s, 15m, 2h.
    #[arg(long, value_name = "TIME", default_value_t = Self::default().idle)]
    pub(crate) idle: Span,
}

impl Default for RegistryArgs {
    fn default() -> Self {
        Self {
            max_running: const { NonZeroUsize::new(8).unwrap() },
            max_queue: const { NonZeroUsize::new(32).unwrap() },
            idle: Span(Duration::from_mins(15)),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct AppArgs {
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
    /// Whose frames the events of a session are.
    #[arg(long, value_name = "DIALECT", value_enum, default_value = "caliban")]
    pub(crate) frames: FrameDialect,
    /// Listen at a socket instead of standard input: `unix:PATH`.
    #[arg(long, value_name = "WHERE")]
    pub(crate) listen: Option<Listen>,
}

/// The page, and the session it shows first.
#[derive(Debug, Args)]
pub(crate) struct WebArgs {
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    /// The earlier session to go on with, by its name or id.
    pub(crate) session: Option<String>,
}

/// How a server is reached over HTTP.
#[derive(Debug, Default, Args)]
pub(crate) struct HttpArgs {
    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
    /// Where it is reached: `unix:PATH`, `127.0.0.1:PORT` or `[::1]:PORT`; port 0 is any free one.
    /// Can be repeated [default: a socket in the user's runtime directory]
    #[arg(long, value_name = "WHERE")]
    pub(crate) listen: Vec<Listen>,
    /// Sessions may work here and below. Can be repeated [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Vec<PathBuf>,
    /// Keep sessions in the server itself: they end with it. Without this each has a process of its
    /// own, which goes on when the server ends and is listed by `caliban agents list`.
    #[arg(long)]
    pub(crate) in_process: bool,
    /// Another name by which it is reached. Can be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) host_name: Vec<String>,
    /// A page that may use it beside its own, such as `https://example.com`. Can be repeated.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// The certificate (PEM) for encrypted connections at the address.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key (PEM) of the certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Dangerous: listen at an address that other machines reach, because a proxy with TLS stands
    /// before it.
    #[arg(long)]
    pub(crate) behind_proxy: bool,
    /// Open the page in a browser.
    #[arg(long)]
    pub(crate) open: bool,
}

impl HttpArgs {
    /// Whether anything of it was typed, where a protocol has its own.
    pub(crate) fn is_given(&self) -> bool {
        !self.listen.is_empty()
            || !self.root.is_empty()
            || self.in_process
            || !self.host_name.is_empty()
            || !self.allow_origin.is_empty()
            || self.tls_cert.is_some()
            || self.behind_proxy
            || self.open
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FrameDialect {
    Caliban,
    Claude,
}

/// Where a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Listen {
    Unix(PathBuf),
    Tcp(String),
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            Some("") => Err("`unix:` needs a path behind it".to_owned()),
            Some(path) => Ok(Self::Unix(PathBuf::from(path))),
            None if text.contains(':') => Ok(Self::Tcp(text.to_owned())),
            None => Err("use `unix:PATH` or `HOST:PORT`".to_owned()),
        }
    }
}

/// A length of time, such as `15m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no time: use a number with ms, s, m or h behind it");
        let end = text
            .find(|char: char| !char.is_ascii_digit())
            .ok_or_else(wrong)?;
        let (number, unit) = text.split_at(end);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let millis = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(wrong()),
        };
        let millis = number.checked_mul(millis).filter(|millis| *millis > 0);
        millis
            .map(|millis| Self(Duration::from_millis(millis)))
            .ok_or_else(wrong)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            whole if whole % 3_600_000 == 0 => write!(formatter, "{}h", whole / 3_600_000),
            whole if whole % 60_000 == 0 => write!(formatter, "{}m", whole / 60_000),
            whole if whole % 1_000 == 0 => write!(formatter, "{}s", whole / 1_000),
            millis => write!(formatter, "{millis}ms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_places_are_read() {
        let span = |text: &str| text.parse::<Span>().map(|span| span.0.as_millis());
        assert_eq!(span("15m"), Ok(900_000));
        assert_eq!(span("250ms"), Ok(250));
        for wrong in ["", "15", "m", "0s", "-1s", "1d", "99999999999999999h"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
        assert_eq!("unix:/a".parse(), Ok(Listen::Unix("/a".into())));
        assert_eq!(
            "127.0.0.1:0".parse(),
            Ok(Listen::Tcp("127.0.0.1:0".to_owned()))
        );
        assert!("unix:".parse::<Listen>().is_err() && "here".parse::<Listen>().is_err());
    }
}
