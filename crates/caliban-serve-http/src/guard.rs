//! The one layer round everything: names, origins, tokens. What does not pass reaches no route,
//! whatever its path.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::Server;
use crate::access::{Access, Token};
use crate::page;
use crate::problem::Refusal;

/// The name of the cookie that a page has instead of a token.
pub(crate) const COOKIE: &str = "caliban_serve";
/// Wrong tokens in a second before answers to them are held back.
const FAILURES: u32 = 5;
/// How long.
pub(crate) const HELD_BACK: Duration = Duration::from_secs(1);
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Lets a request through, or says why not.
pub(crate) async fn guard(State(server): State<Server>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let checked = check(&server.access, &request);
    let who = checked.map_or("nobody", Caller::as_str);
    let mut response = match checked {
        Ok(_) => next.run(request).await,
        Err(refusal) => {
            if refusal == Refused::Unknown && has_failed_often() {
                tokio::time::sleep(HELD_BACK).await;
            }
            Refusal::from(refusal).into_response()
        }
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let status = response.status().as_u16();
    (server.log)(format!("{method} {path} {status} by {who}"));
    response
}

/// Who is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// A program of the same user, over the socket.
    Socket,
    /// Whoever has the token.
    Token,
    /// A page that was opened with it.
    Page,
    /// Anybody: there is nothing to be had at this path.
    Anybody,
}

impl Caller {
    fn as_str(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Token => "token",
            Self::Page => "page",
            Self::Anybody => "anybody",
        }
    }
}

/// Why a request is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// It was sent to another name: one that leads here by a trick.
    Misdirected,
    /// A page of somebody else's sent it.
    Foreign,
    /// It has no token, or a wrong one.
    Unknown,
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Misdirected => Self::new(
                StatusCode::MISDIRECTED_REQUEST,
                "misdirected",
                "the server has another name; start it with `--host-name` if this is one of them",
            ),
            Refused::Foreign => Self::new(
                StatusCode::FORBIDDEN,
                "foreign_origin",
                "pages of other origins are not let in; start the server with `--allow-origin`",
            ),
            Refused::Unknown => Self::new(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "`Authorization: Bearer` needs the token from the server's file",
            ),
        }
    }
}

fn check(access: &Access, request: &Request) -> Result<Caller, Refused> {
    let headers = request.headers();
    let (token, scheme, hosts, origins) = match access {
        // No browser reaches a socket by itself; what carries an origin was passed on by something.
        Access::Socket if headers.contains_key(header::ORIGIN) => return Err(Refused::Foreign),
        Access::Socket => return Ok(Caller::Socket),
        Access::Network {
            token,
            scheme,
            hosts,
            origins,
            ..
        } => (token, scheme.as_str(), hosts, origins),
    };
    let is_own = |name: &str| hosts.iter().any(|own| own.eq_ignore_ascii_case(name));
    // A request can name the server in its first line too, and that is what counts then.
    let line = request.uri().authority();
    let line = line.map(axum::http::uri::Authority::as_str);
    let host = text(headers, "host");
    let is_clear = host.is_some() || (line.is_some() && !headers.contains_key(header::HOST));
    if !is_clear || !line.into_iter().chain(host).all(is_own) {
        return Err(Refused::Misdirected);
    }
    if text(headers, "sec-fetch-site") == Some("cross-site") {
        return Err(Refused::Foreign);
    }
    let origin = text(headers, "origin");
    if headers.contains_key(header::ORIGIN) {
        let is_page = |origin: &str| {
            let own = origin
                .split_once("://")
                .is_some_and(|(its, name)| its == scheme && is_own(name));
            own || origins.iter().any(|known| known == origin)
        };
        if !origin.is_some_and(is_page) {
            return Err(Refused::Foreign);
        }
    }
    if is_open(request) {
        return Ok(Caller::Anybody);
    }
    match bearer(headers) {
        Some(given) if token.is(given) => Ok(Caller::Token),
        Some(_) => Err(Refused::Unknown),
        None => by_cookie(token, request, origin),
    }
}

/// The page itself, which holds nothing, and the way to a cookie, which looks at the token itself.
fn is_open(request: &Request) -> bool {
    let is_login = *request.method() == Method::POST && request.uri().path() == "/v1/login";
    is_login || page::is_wanted(request)
}

/// A browser sends its cookie whoever asks it to: what changes anything, and a connection that may,
/// must come from our own page.
fn by_cookie(token: &Token, request: &Request, origin: Option<&str>) -> Result<Caller, Refused> {
    let cookies = text(request.headers(), "cookie").unwrap_or_default();
    let mut pairs = cookies
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='));
    let given = pairs.find(|(name, _)| *name == COOKIE);
    if !given.is_some_and(|(_, value)| token.is_cookie(value)) {
        return Err(Refused::Unknown);
    }
    let is_harmless = request.method() == Method::GET && !request.headers().contains_key("upgrade");
    if is_harmless || origin.is_some() {
        return Ok(Caller::Page);
    }
    Err(Refused::Foreign)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = text(headers, "authorization")?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    // Of two, nobody knows which one counts.
    if values.next().is_some() {
        return None;
    }
    value.to_str().ok()
}

/// Whether too many wrong tokens came within a second.
pub(crate) fn has_failed_often() -> bool {
    static FAILED: Mutex<Option<(Instant, u32)>> = Mutex::new(None);
    let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    let (since, count) = match *failed {
        Some((since, count)) if now.duration_since(since) < Duration::from_secs(1) => {
            (since, count.saturating_add(1))
        }
        _ => (now, 1),
    };
    *failed = Some((since, count));
    count > FAILURES
}
