//! The life of one connection: what it wants, whether it may, the way there, and passing on.

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::time::timeout;

use caliban_http::special_use;

use crate::audit::{Audit, Log, Protocol, Rule};
use crate::body::Body;
use crate::entry::{PLAIN, TLS};
use crate::hello::{self, Hello};
use crate::host::{Host, Target};
use crate::http::{self, Head, Request};
use crate::inbound::{Inbound, NoMore};
use crate::network::Network;
use crate::outward::{self, Carriage, Outward};
use crate::policy::{Judgement, Policy};
use crate::proxy::Limits;
use crate::question::Asking;
use crate::relay::{self, End};
use crate::socks::{self, Negotiated};
use crate::stop::{Failure, Refusal, Stop};

/// What all connections of a command share.
pub(crate) struct Call {
    pub(crate) policy: Arc<Policy>,
    pub(crate) asking: Asking,
    pub(crate) audit: Arc<dyn Audit>,
    pub(crate) network: Arc<dyn Network>,
    pub(crate) limits: Limits,
}

/// What a client wants.
enum Wish {
    Tunnel(Target),
    Request(Target, Request),
}

impl Wish {
    fn target(&self) -> &Target {
        match self {
            Self::Tunnel(target) | Self::Request(target, _) => target,
        }
    }

    /// Plain requests are passed on as such, within a tunnel too.
    fn carriage(&self) -> Carriage {
        match self {
            Self::Request(..) => Carriage::Request,
            Self::Tunnel(target) if target.port == PLAIN => Carriage::Request,
            Self::Tunnel(_) => Carriage::Tunnel,
        }
    }
}

/// Why a connection ends, and the last word to the client.
struct Farewell {
    stop: Stop,
    word: Vec<u8>,
}

impl Farewell {
    /// In the client's own protocol.
    fn new(stop: Stop, protocol: Protocol, target: Option<&Target>) -> Self {
        let word = match protocol {
            Protocol::Socks => socks::reply(stop.socks()),
            Protocol::Connect | Protocol::Http => stop.http(target),
        };
        Self { stop, word }
    }

    /// Nobody listens any more.
    fn silent(stop: impl Into<Stop>) -> Self {
        Self {
            stop: stop.into(),
            word: Vec::new(),
        }
    }
}

/// Serves a connection until it ends.
pub(crate) async fn serve(stream: TcpStream, call: Arc<Call>) {
    // Answers are short and waited for. Where it cannot be set they are merely slower.
    let _ = stream.set_nodelay(true);
    let mut log = Log::begin(call.audit.clone());
    let mut client = Inbound::new(stream);
    match prepare(&mut client, &call, &mut log).await {
        Ok((wish, outward)) => carry(client, wish, outward, &call, &mut log).await,
        Err(Farewell { stop, word }) => {
            log.stopped(stop);
            client.farewell(&word).await;
        }
    }
}

/// Everything before the client has its answer: nothing is looked up before it was judged.
async fn prepare(
    client: &mut Inbound,
    call: &Call,
    log: &mut Log,
) -> Result<(Wish, Outward), Farewell> {
    let hearing = timeout(call.limits.patience, hear(client, log));
    let (protocol, wish) = hearing
        .await
        .unwrap_or_else(|_| Err(Farewell::silent(Failure::NothingAsked)))?;
    let target = wish.target();
    log.target = Some(target.clone());
    let way = async {
        log.rule = Some(admit(call, target).await?);
        outward::reach(
            &*call.network,
            &call.policy,
            target,
            wish.carriage(),
            call.limits.patience,
        )
        .await
    };
    match way.await {
        Ok(outward) => {
            log.address = Some(outward.address);
            Ok((wish, outward))
        }
        Err(stop) => Err(Farewell::new(stop, protocol, Some(target))),
    }
}

/// Hears what the client wants, in one of three protocols that the first byte tells apart.
async fn hear(client: &mut Inbound, log: &mut Log) -> Result<(Protocol, Wish), Farewell> {
    if client.said().is_empty() {
        client
            .more()
            .await
            .map_err(|_| Farewell::silent(Failure::NothingAsked))?;
    }
    if client.said().first() == Some(&socks::VERSION) {
        log.protocol = Some(Protocol::Socks);
        return match socks::negotiate(client).await {
            Negotiated::Wants(target) => Ok((Protocol::Socks, Wish::Tunnel(target))),
            Negotiated::Fault(fault) => Err(Farewell {
                word: fault.answer(),
                stop: Refusal::Malformed(fault.to_string()).into(),
            }),
            Negotiated::NoMore(end) => Err(cut_off(end, Protocol::Socks)),
        };
    }
    log.protocol = Some(Protocol::Http);
    match head(client).await? {
        Head::Connect(target) => {
            log.protocol = Some(Protocol::Connect);
            Ok((Protocol::Connect, Wish::Tunnel(target)))
        }
        Head::Absolute(target, request) if target.port != TLS => {
            Ok((Protocol::Http, Wish::Request(target, request)))
        }
        Head::Absolute(..) => Err(malformed("port 443 is for TLS; open a tunnel with CONNECT")),
        Head::Origin(_) => Err(malformed(
            "this is a proxy: requests to it name the whole address",
        )),
    }
}

/// Reads the head of a request and takes it out of what was said.
async fn head(client: &mut Inbound) -> Result<Head, Farewell> {
    loop {
        match http::parse(client.said()) {
            Ok(Some((head, length))) => {
                client.taken(length);
                return Ok(head);
            }
            Ok(None) => client
                .more()
                .await
                .map_err(|end| cut_off(end, Protocol::Http))?,
            Err(fault) => return Err(malformed(&fault.to_string())),
        }
    }
}

fn malformed(reason: &str) -> Farewell {
    let stop = Stop::from(Refusal::Malformed(reason.to_owned()));
    Farewell::new(stop, Protocol::Http, None)
}

fn cut_off(end: NoMore, protocol: Protocol) -> Farewell {
    match end {
        NoMore::Gone => Farewell::silent(Failure::NothingAsked),
        NoMore::TooLong => {
            let stop = Stop::from(Refusal::Malformed("the request is too long".to_owned()));
            Farewell::new(stop, protocol, None)
        }
    }
}

/// Whether the target may be reached, by name and port alone.
async fn admit(call: &Call, target: &Target) -> Result<Rule, Stop> {
    match call.policy.judge(target) {
        Judgement::Allowed(rule) => Ok(rule),
        Judgement::Denied { entry } => Err(Refusal::Denied { entry }.into()),
        Judgement::Unlisted => match unaskable(&target.host) {
            Some(refusal) => Err(refusal.into()),
            None => Ok(call.asking.about(target).await?),
        },
    }
}

/// What lies outside the public internet is opened by an entry, never by an answer in passing.
fn unaskable(host: &Host) -> Option<Refusal> {
    match host {
        Host::Address(address) => special_use(*address).map(|kind| Refusal::Private {
            address: *address,
            kind,
        }),
        Host::Name(_) => host.is_localhost().then_some(Refusal::Unlisted),
    }
}

/// Tells the client that the way is open, looks at what it says first, and passes on.
async fn carry(mut client: Inbound, wish: Wish, outward: Outward, call: &Call, log: &mut Log) {
    let target = match wish {
        Wish::Request(target, request) => {
            return exchange(client, &target, &request, outward, call, log).await;
        }
        Wish::Tunnel(target) => target,
    };
    let opened = match log.protocol {
        Some(Protocol::Socks) => socks::reply(0),
        Some(Protocol::Connect | Protocol::Http) | None => {
            b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec()
        }
    };
    if client.answer(&opened).await.is_err() {
        log.stopped(Failure::Cut.into());
        return;
    }
    let first_words = timeout(call.limits.patience, first_words(&mut client, &target)).await;
    match first_words.unwrap_or_else(|_| Err(Farewell::silent(Failure::Silent))) {
        Ok(FirstWords::Any) => {
            log.passed();
            let (stream, ahead) = client.into_parts();
            let client = End { stream, ahead };
            relay::tunnel(client, outward.end, &log.meter, call.limits.idle).await;
        }
        Ok(FirstWords::Request(request)) => {
            exchange(client, &target, &request, outward, call, log).await;
        }
        Err(Farewell { stop, word }) => {
            log.stopped(stop);
            client.farewell(&word).await;
        }
    }
}

enum FirstWords {
    /// They are passed on as they are.
    Any,
    /// A plain request, for the right host.
    Request(Request),
}

/// On the ports of the web, what is said first must be meant for the host of the tunnel: behind one
/// address there may be many.
async fn first_words(client: &mut Inbound, target: &Target) -> Result<FirstWords, Farewell> {
    match target.port {
        TLS => {
            let mut hello = Hello::new();
            loop {
                match hello.advance(client.said(), &target.host) {
                    Ok(hello::Progress::Agrees) => return Ok(FirstWords::Any),
                    Ok(hello::Progress::More) => {}
                    Err(fault) => return Err(denied(Refusal::Hello(fault))),
                }
                client.more().await.map_err(|end| match end {
                    NoMore::Gone => Farewell::silent(Failure::Silent),
                    NoMore::TooLong => denied(Refusal::Hello(hello::HelloFault::Unreadable)),
                })?;
            }
        }
        PLAIN => {
            let (named, request) = match head(client).await? {
                Head::Origin(request) => (request.is_for(target), request),
                Head::Absolute(named, request) => (named == *target, request),
                Head::Connect(_) => {
                    return Err(malformed("tunnels within tunnels are not passed on"));
                }
            };
            if named {
                return Ok(FirstWords::Request(request));
            }
            let stop = Stop::from(Refusal::OtherHost);
            Err(Farewell::new(stop, Protocol::Http, Some(target)))
        }
        _ => Ok(FirstWords::Any),
    }
}

fn denied(refusal: Refusal) -> Farewell {
    Farewell {
        stop: refusal.into(),
        word: hello::ACCESS_DENIED.to_vec(),
    }
}

async fn exchange(
    client: Inbound,
    target: &Target,
    request: &Request,
    outward: Outward,
    call: &Call,
    log: &mut Log,
) {
    log.passed();
    let head = request.forwarded(target, outward.form);
    let (stream, ahead) = client.into_parts();
    let client = End { stream, ahead };
    let body = Body::new(request.framing);
    let origin = outward.end.stream;
    relay::exchange(client, origin, &head, body, &log.meter, call.limits.idle).await;
}
