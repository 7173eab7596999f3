//! The life of one server: connected, followed, connected again when it is lost, and ended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_http::causes;
use caliban_model::CancellationToken;
use caliban_process::{Invocation, Keepsake};
use caliban_settings::McpServer;
use futures::FutureExt;
use rmcp::RoleClient;
use rmcp::model::ServerPeerInfo;
use rmcp::service::{ClientInitializeError, RunningService, ServiceExt};
use tokio::time::Instant;

use crate::connection::{Connection, List};
use crate::definition::{Definition, definitions};
use crate::endpoint::{Endpoint, Surroundings};
use crate::handler::Handler;
use crate::parts::Parts;
use crate::server::{Server, seconds};
use crate::status::{ServerInfo, Status};
use crate::text;
use crate::transport::http;
use crate::transport::link::{Link, Messages};
use crate::transport::sse::Sse;
use crate::transport::stdio::{self, Explanation, Program, Stdio};
use crate::transport::web::Web;

/// Lists of tools are not read again more often, however often they change.
const REFRESH_PAUSE: Duration = Duration::from_secs(1);
const MAX_REASON: usize = 1000;
const MAX_INSTRUCTIONS: usize = 4000;
/// The pause between two attempts doubles up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Where a server's connections come from.
pub(crate) enum Source {
    Settings(Box<McpServer>),
    /// There is only one, and it is gone once it was used.
    Link(Option<Link>),
}

type Running = RunningService<RoleClient, Handler>;

/// A connection that was made.
struct Session {
    running: Running,
    program: Option<Program>,
    connection: Connection,
    definitions: Vec<Definition>,
}

/// Why there is no connection.
enum Failure {
    NeedsAuth(String),
    Failed(String),
}

/// Why a connection is over.
enum End {
    Lost(String),
    /// Somebody wants a new one.
    Retried,
    Stopped,
}

/// A way to a server that was not used yet.
enum Way {
    Stdio(Stdio),
    Http(Web),
    Sse(Web),
    Link(Link),
}

/// Keeps a server connected until `stop`; a program gets `grace` to end then, which is read at
/// that moment.
pub(crate) async fn run(
    server: Arc<Server>,
    source: Source,
    stop: CancellationToken,
    grace: Arc<Mutex<Duration>>,
) {
    live(&server, source, &stop, &grace).await;
    let reason = "it was ended with the session".to_owned();
    settle(&server, Status::Failed { reason });
}

async fn live(
    server: &Arc<Server>,
    mut source: Source,
    stop: &CancellationToken,
    grace: &Mutex<Duration>,
) {
    let mut attempts = None;
    loop {
        let connected = tokio::select! {
            connected = Box::pin(connect(server, &mut source)) => connected,
            () = stop.cancelled() => return,
        };
        let failure = match connected {
            Err(failure) => failure,
            Ok(session) => {
                // Whoever wanted it tried again has got what they wanted.
                let _ = server.retry.notified().now_or_never();
                let since = Instant::now();
                match Box::pin(follow(server, session, stop, grace)).await {
                    End::Stopped => return,
                    End::Retried => {
                        attempts = None;
                        continue;
                    }
                    End::Lost(reason) => {
                        let lasted = since.elapsed() >= server.common.parts.reconnection.lasting;
                        attempts = Some(attempts.filter(|_| !lasted).unwrap_or(0));
                        Failure::Failed(reason)
                    }
                }
            }
        };
        let pause = pause(server, failure, &mut attempts, &source);
        let next = async {
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = next => {}
            () = server.retry.notified() => {
                attempts = None;
                server.change(|state| state.status = Status::Connecting);
            }
            () = stop.cancelled() => return,
        }
    }
}

/// How long to wait before the next attempt, if there is to be one. `attempts` are those made
/// since a connection lasted; a server that was never there is not tried again by itself.
fn pause(
    server: &Server,
    failure: Failure,
    attempts: &mut Option<u32>,
    source: &Source,
) -> Option<Duration> {
    let reconnection = server.common.parts.reconnection;
    let reason = match failure {
        Failure::NeedsAuth(reason) => {
            let remedy = format!("caliban mcp login {}", server.name);
            give_up(server, Status::NeedsAuth { reason, remedy });
            return None;
        }
        Failure::Failed(reason) => reason,
    };
    let made = attempts.filter(|_| !matches!(source, Source::Link(None)));
    let made = match made {
        Some(made) if made < reconnection.attempts => made,
        Some(made) => {
            let reason = format!("it was lost, also after {made} new attempts: {reason}");
            give_up(server, Status::Failed { reason });
            return None;
        }
        None => {
            give_up(server, Status::Failed { reason });
            return None;
        }
    };
    *attempts = Some(made + 1);
    let pause = reconnection
        .pause
        .saturating_mul(1 << made.min(16))
        .min(LONGEST_PAUSE)
        .mul_f64(rand::random_range(0.5..1.5));
    server.log().warning(&format!(
        "the connection was lost: {reason}; attempt {} of {} in {}",
        made + 1,
        reconnection.attempts,
        seconds(pause)
    ));
    server.change(|state| {
        state.status = Status::Connecting;
        state.connection = None;
    });
    Some(pause)
}

/// The server is not there. Its tools are not offered any more, but a call of one is told why.
fn settle(server: &Server, status: Status) {
    server.change(|state| {
        state.status = status;
        state.connection = None;
        state.instructions = None;
    });
}

/// Settles with what is told of it.
fn give_up(server: &Server, status: Status) {
    server.log().given_up(&status);
    settle(server, status);
}

async fn connect(server: &Arc<Server>, source: &mut Source) -> Result<Session, Failure> {
    let parts = &server.common.parts;
    let failed = |reason: String| Failure::Failed(text::line(&reason, MAX_REASON));
    let (mut program, web, way) = match source {
        Source::Link(link) => {
            let link = link
                .take()
                .ok_or_else(|| failed("the program that serves it is gone".to_owned()))?;
            (None, None, Way::Link(link))
        }
        Source::Settings(settings) => {
            let surroundings = Surroundings {
                workspace: &parts.workspace,
                environment: &parts.environment,
                variables: &parts.variables,
            };
            let endpoint = surroundings
                .endpoint(settings)
                .map_err(|error| failed(error.to_string()))?;
            let web = |address| {
                Web::new(
                    Arc::clone(&server.name),
                    address,
                    parts.authorization.clone(),
                    parts.timeouts.connect,
                )
                .map_err(|error| failed(error.to_string()))
            };
            match endpoint {
                Endpoint::Stdio(service) => {
                    let (service, kept) = confined(service, settings, parts).map_err(failed)?;
                    let started = stdio::start(&service, &parts.guard, &server.log(), kept);
                    let (program, stdio) = started.map_err(|error| failed(error.to_string()))?;
                    (Some(program), None, Way::Stdio(stdio))
                }
                Endpoint::Http(address) => {
                    let web = web(address)?;
                    (None, Some(web.clone()), Way::Http(web))
                }
                Endpoint::Sse(address) => {
                    let web = web(address)?;
                    (None, Some(web.clone()), Way::Sse(web))
                }
            }
        }
    };
    let limit = parts.timeouts.connect;
    let handshake = Box::pin(handshake(server, way));
    let (reason, is_late) = match tokio::time::timeout(limit, handshake).await {
        Ok(Ok((running, connection, definitions))) => {
            return Ok(Session {
                running,
                program,
                connection,
                definitions,
            });
        }
        Ok(Err(reason)) => (reason, false),
        Err(_) => {
            let limit = seconds(limit);
            let reason = format!("it did not get ready within {limit} (CALIBAN_MCP_TIMEOUT)");
            (reason, true)
        }
    };
    if let Some(reason) = web.and_then(|web| web.refusal()) {
        return Err(Failure::NeedsAuth(reason));
    }
    let explanation = match &mut program {
        // How it ends now is our doing.
        Some(program) if is_late => program.said().map(Explanation::Ended),
        Some(program) => program.explain().await,
        None => None,
    };
    Err(failed(match explanation {
        Some(Explanation::Ended(explanation)) => format!("{reason}; {explanation}"),
        Some(Explanation::Unstarted(explanation)) => explanation,
        None => reason,
    }))
}

async fn handshake(
    server: &Arc<Server>,
    way: Way,
) -> Result<(Running, Connection, Vec<Definition>), String> {
    let handler = Handler::new(
        Arc::clone(&server.name),
        server.common.parts.elicitor.clone(),
    );
    let signals = Arc::clone(&handler.signals);
    let running = match way {
        Way::Stdio(stdio) => handler.serve(stdio).await,
        Way::Http(web) => handler.serve(http::transport(web)).await,
        Way::Sse(web) => {
            let sse = Sse::connect(web).await.map_err(|error| error.to_string())?;
            handler.serve(sse).await
        }
        Way::Link(link) => handler.serve(Messages(link)).await,
    }
    .map_err(|error| complaint(&error))?;
    let connection = Connection {
        peer: running.peer().clone(),
        signals,
    };
    let definitions = tools(server, &connection).await?;
    Ok((running, connection, definitions))
}

/// An error of the SDK without the message it could not understand, which may be of any size.
fn complaint(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => {
            "it closed the connection during the handshake".to_owned()
        }
        ClientInitializeError::TransportError { error, .. } => causes(error.error.as_ref()),
        ClientInitializeError::JsonRpcError(error) => {
            format!("it refused the handshake: {}", error.message)
        }
        other => format!("the handshake failed: {other}"),
    }
}

/// The program of a server, confined where its settings ask for it.
fn confined(
    service: Invocation,
    settings: &McpServer,
    parts: &Parts,
) -> Result<(Invocation, Keepsake), String> {
    match (settings.sandbox, &parts.confiner) {
        (Some(false) | None, _) => Ok((service, Keepsake::default())),
        (Some(true), Some(confiner)) => {
            confiner.confine(service).map_err(|error| error.to_string())
        }
        (Some(true), None) => {
            Err("it has `sandbox = true`, and `sandbox.enabled` is not set".to_owned())
        }
    }
}

async fn tools(server: &Arc<Server>, connection: &Connection) -> Result<Vec<Definition>, String> {
    let has_tools = connection
        .peer
        .peer_info()
        .is_some_and(|info| info.capabilities.tools.is_some());
    if !has_tools {
        return Ok(Vec::new());
    }
    let limit = server.common.parts.timeouts.connect;
    let list = connection
        .list(List::Tools, limit)
        .await
        .map_err(|error| format!("its tools cannot be listed: {error}"))?;
    let name = Arc::clone(&server.name);
    // Checking schemas takes a while where there are many.
    let checking =
        tokio::task::spawn_blocking(move || (definitions(&name, &list.entries), list.is_cut));
    let ((definitions, mut problems), is_cut) = checking
        .await
        .map_err(|error| format!("its tools cannot be checked: {error}"))?;
    if is_cut {
        problems.push(format!(
            "it has more tools than are taken; the first {} are",
            definitions.len()
        ));
    }
    problems.dedup();
    for problem in problems {
        server.log().warning(&problem);
    }
    Ok(definitions)
}

/// Follows a connection to its end.
async fn follow(
    server: &Arc<Server>,
    session: Session,
    stop: &CancellationToken,
    grace: &Mutex<Duration>,
) -> End {
    let Session {
        running,
        mut program,
        connection,
        definitions,
    } = session;
    publish(server, &connection, definitions).await;
    let mut waiting = Box::pin(running.waiting());
    let mut next_refresh = Instant::now();
    let end = loop {
        let changed = async {
            connection.signals.tools.notified().await;
            tokio::time::sleep_until(next_refresh).await;
        };
        tokio::select! {
            () = stop.cancelled() => break End::Stopped,
            () = server.retry.notified() => break End::Retried,
            _ = &mut waiting => break End::Lost("the server closed the connection".to_owned()),
            () = changed => {
                next_refresh = Instant::now() + REFRESH_PAUSE;
                match tools(server, &connection).await {
                    Ok(definitions) => server.adopt(definitions).await,
                    Err(problem) => server.log().warning(&problem),
                }
            }
        }
    };
    drop(waiting);
    match end {
        End::Stopped | End::Retried => {
            server.change(|state| {
                state.status = Status::Connecting;
                state.connection = None;
            });
            let grace = *grace.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(program) = program {
                program.end(grace).await;
            }
            end
        }
        End::Lost(reason) => {
            let explanation = match &mut program {
                Some(program) => program.explain().await,
                None => None,
            };
            let reason = match explanation {
                Some(Explanation::Ended(reason) | Explanation::Unstarted(reason)) => reason,
                None => reason,
            };
            End::Lost(text::line(&reason, MAX_REASON))
        }
    }
}

async fn publish(server: &Arc<Server>, connection: &Connection, definitions: Vec<Definition>) {
    // The tools first: whoever sees that the server is connected must find them.
    server.adopt(definitions).await;
    let info = connection.peer.peer_info();
    let instructions = info
        .as_ref()
        .and_then(|info| info.instructions.as_deref())
        .map(|said| text::paragraph(said, MAX_INSTRUCTIONS))
        .filter(|said| !said.is_empty())
        .map(Arc::from);
    let info = server_info(info.as_deref());
    server.listings.clear();
    server.change(|state| {
        state.status = Status::Connected {
            tools: state.tools.len(),
            info,
        };
        state.connection = Some(connection.clone());
        state.instructions = instructions;
    });
}

fn server_info(info: Option<&ServerPeerInfo>) -> ServerInfo {
    let who = info.and_then(|info| info.server_info.as_ref());
    let short = |said: Option<&str>| text::line(said.unwrap_or_default(), 100);
    ServerInfo {
        name: short(who.map(|who| who.name.as_str())),
        version: short(who.map(|who| who.version.as_str())),
        protocol: short(info.map(|info| info.protocol_version.as_str())),
    }
}
