//! `caliban serve`: sessions over HTTP, at a socket of the user's and, where that is asked for, at
//! an address. Sessions have processes of their own, which outlive this one.

mod address;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use caliban_harness::options::DebugTo;
use caliban_harness::{Process, RunOptions, configure, locations};
use caliban_model::CancellationToken;
use caliban_serve::{Code, Frames, Open, Registry, Wish};
use caliban_serve_http::{
    Access, Connections, Encryption, Place, Router, Scheme, Token, router,
    serve as serve_connection, serve_after,
};
use jiff::Timestamp;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use url::Url;

use super::farewell;
use super::ground::{Ground, Roots};
use super::peer;
use super::registry::{Lives, registry};
use crate::args::{HttpArgs, Listen};
use crate::console::{Console, note};
use crate::exit::Failure;
use crate::mcp_command::browser::{self, Opening};
use address::{Address, Way, check_name, check_origin};

/// Whether the page is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Page {
    /// With this earlier session.
    Opened(Option<String>),
    Left,
}

pub(super) async fn serve(
    args: &HttpArgs,
    page: Page,
    options: RunOptions,
    process: Process,
    cancel: &CancellationToken,
    mut console: Console,
) -> Result<(), Failure> {
    check(args, &process)?;
    let places = Places::new(args, &page, &process)?;
    let (socket, listener) = (
        Removed(places.socket.clone()),
        peer::listen(&places.socket)?,
    );
    let network = match &places.address {
        Some(address) => Some(Network::open(address, args, &process).await?),
        None => None,
    };
    let roots = if args.root.is_empty() {
        vec![process.current_directory.clone()]
    } else {
        args.root.clone()
    };
    let log = access_log(&options, &process);
    let configuration = configure(&options, process.clone())?;
    let lives = if args.in_process {
        Lives::Here
    } else {
        Lives::Apart
    };
    let ground = Ground {
        options,
        process,
        roots: Roots::Only(roots),
    };
    let registry = registry(&args.registry, Frames::Caliban, lives, ground);
    if let Page::Opened(Some(session)) = &page {
        go_on(session, &registry).await?;
    }
    console.write(&format!("listening at unix:{}\n", socket.0.display()))?;
    if let Some(network) = &network {
        let file = network.file.0.display();
        console.write(&format!(
            "listening at {}; the token is in {file}\n",
            network.url
        ))?;
        if let Page::Opened(_) = page {
            let address = format!("{}/#{}", network.url, network.opener.reveal());
            let opened = Url::parse(&address)
                .map(|url| browser::open(&url, Opening::Wanted, &configuration));
            if !matches!(opened, Ok(browser::Opened::Asked)) {
                console.write(&format!("open {address}\n"))?;
            }
        }
    }
    // Whoever fills one kind of places leaves the others free.
    let (near, far) = (Connections::default(), Connections::default());
    let local = router(registry.clone(), Access::Socket, Arc::clone(&log));
    let remote = network.as_ref().map(|network| {
        let access = network.access.clone();
        router(registry.clone(), access, Arc::clone(&log))
    });
    loop {
        tokio::select! {
            () = cancel.cancelled() => break,
            accepted = accept(&listener, &near) => match accepted {
                Some((Ok(stream), place)) => serve_connection(stream, local.clone(), place),
                Some((Err(stranger), _)) => {
                    note(&format!("warning: a connection was turned away: {stranger:?}"));
                }
                None => pause().await,
            },
            accepted = accept_remote(network.as_ref(), &far) => match (accepted, &remote) {
                (Some((stream, place)), Some(remote)) => {
                    meet(stream, remote.clone(), place, network.as_ref());
                }
                (_, _) => pause().await,
            },
        }
    }
    drop((listener, socket, network));
    // To be told to end is how a server ends.
    let going_on = farewell(&registry).await;
    if !going_on.is_empty() {
        note(&format!(
            "sessions go on without the server: {}; `caliban agents list` shows them, and the next \
             server has them back",
            going_on.join(", ")
        ));
    }
    Ok(())
}

/// What is wrong with the command line is said before anything is opened.
fn check(args: &HttpArgs, process: &Process) -> Result<(), Failure> {
    args.allow_origin
        .iter()
        .try_for_each(|it| check_origin(it))?;
    args.host_name.iter().try_for_each(|it| check_name(it))?;
    let is_missing = |root: &&PathBuf| !process.current_directory.join(root).is_dir();
    match args.root.iter().find(is_missing) {
        Some(root) => Err(Failure::Usage(format!(
            "`--root {}`: there is no such directory",
            root.display()
        ))),
        None => Ok(()),
    }
}

/// Opens an earlier session, so that the page shows it.
async fn go_on(session: &str, registry: &Registry) -> Result<(), Failure> {
    let open = Open {
        resume: Some(session.to_owned()),
        ..Open::default()
    };
    let opened = registry.ask(Wish::Open(Box::new(open))).await;
    opened.map(drop).map_err(|problem| {
        let reason = problem.message;
        let told = format!("the session `{session}` cannot go on: {reason}");
        match problem.code {
            Code::BadRequest => Failure::NoInput(told),
            _ => Failure::Runtime(told),
        }
    })
}

/// Too many files are open, or a peer was gone before it was met.
async fn pause() {
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
}

/// The next connection of the socket, once there is room for it.
async fn accept(
    listener: &UnixListener,
    connections: &Connections,
) -> Option<(Result<UnixStream, peer::Stranger>, Place)> {
    let place = connections.place().await?;
    let (stream, _) = listener.accept().await.ok()?;
    Some((peer::check(&stream).map(|()| stream), place))
}

/// The next connection of the address, once there is room for it.
async fn accept_remote(
    network: Option<&Network>,
    connections: &Connections,
) -> Option<(TcpStream, Place)> {
    match network {
        Some(network) => {
            let place = connections.place().await?;
            let (stream, _) = network.listener.accept().await.ok()?;
            // Events are small, and each is waited for.
            stream.set_nodelay(true).ok()?;
            Some((stream, place))
        }
        None => std::future::pending().await,
    }
}

/// Serves a connection of the address, encrypted where that is asked for.
fn meet(stream: TcpStream, router: Router, place: Place, network: Option<&Network>) {
    match network.and_then(|network| network.encryption.clone()) {
        Some(encryption) => serve_after(
            async move { encryption.accept(stream).await },
            router,
            place,
        ),
        None => serve_connection(stream, router, place),
    }
}

/// Where the server is reached.
struct Places {
    socket: PathBuf,
    address: Option<Address>,
}

impl Places {
    fn new(args: &HttpArgs, page: &Page, process: &Process) -> Result<Self, Failure> {
        let (mut socket, mut address) = (None, None);
        let way = if args.tls_cert.is_some() {
            Way::Encrypted
        } else if args.behind_proxy {
            Way::Proxied
        } else {
            Way::Open
        };
        for place in &args.listen {
            match place {
                Listen::Unix(path) => socket = Some(process.current_directory.join(path)),
                Listen::Tcp(text) => address = Some(Address::new(text, way)?),
            }
        }
        if matches!(page, Page::Opened(_)) && address.is_none() {
            address = Some(Address::new("127.0.0.1:0", way)?);
        }
        Ok(Self {
            socket: socket.unwrap_or_else(|| default_socket(process)),
            address,
        })
    }
}

/// One for each directory that a server is started in.
fn default_socket(process: &Process) -> PathBuf {
    let place = process.current_directory.to_string_lossy().into_owned();
    let digest = Sha256::digest(place.as_bytes());
    let digest = caliban_settings::hex(&digest[..6]);
    locations(process)
        .runtime_dir()
        .join(format!("serve-{digest}.sock"))
}

/// A server at an address, with the file that the user's own programs find it by.
struct Network {
    listener: TcpListener,
    url: String,
    access: Access,
    opener: Token,
    file: Removed,
    encryption: Option<Encryption>,
}

impl Network {
    async fn open(address: &Address, args: &HttpArgs, process: &Process) -> Result<Self, Failure> {
        let cannot = |error: std::io::Error| {
            Failure::Runtime(format!("cannot listen at {address}: {error}"))
        };
        let encryption = match (&args.tls_cert, &args.tls_key) {
            (Some(certificate), Some(key)) => {
                let place = |path: &PathBuf| process.current_directory.join(path);
                let encryption = Encryption::read(&place(certificate), &place(key));
                Some(encryption.map_err(|unusable| Failure::Usage(unusable.to_string()))?)
            }
            (_, _) => None,
        };
        let listener = TcpListener::bind(address.socket).await.map_err(cannot)?;
        let port = listener.local_addr().map_err(cannot)?.port();
        if address.is_public() {
            let more = match encryption {
                Some(_) => "whoever has the token works in your name",
                None => "without TLS before it, whoever listens on the way has the token",
            };
            note(&format!(
                "warning: {address} is reached by other machines; {more}"
            ));
        }
        let mut hosts = vec![
            format!("127.0.0.1:{port}"),
            format!("localhost:{port}"),
            format!("[::1]:{port}"),
        ];
        for name in &args.host_name {
            hosts.extend([name.clone(), format!("{name}:{port}")]);
        }
        let (token, opener) = (Token::new(rand::random()), Token::new(rand::random()));
        let scheme = match encryption {
            Some(_) => Scheme::Https,
            None => Scheme::Http,
        };
        // A certificate knows names, and the first of them is the one to use.
        let name = match (args.host_name.first(), scheme) {
            (Some(name), Scheme::Https) => format!("{name}:{port}"),
            (_, _) => address.name(port),
        };
        let url = format!("{}://{name}", scheme.as_str());
        let directory = locations(process).serve();
        let path = directory.join(format!("{port}.json"));
        let text = json!({
            "url": url,
            "token": token.reveal(),
            "pid": std::process::id(),
            "started": Timestamp::now(),
        });
        caliban_settings::ensure_private_dir(&directory)
            .and_then(|()| {
                caliban_settings::replace_private_file(&path, text.to_string().as_bytes())
            })
            .map_err(|error| {
                Failure::Runtime(format!("`{}` cannot be written: {error}", path.display()))
            })?;
        Ok(Self {
            listener,
            url,
            access: Access::Network {
                token,
                once: Arc::new(Mutex::new(Some(opener.clone()))),
                scheme,
                hosts,
                origins: args.allow_origin.clone(),
            },
            opener,
            file: Removed(path),
            encryption,
        })
    }
}

/// A file that goes with the server.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(Path::new(&self.0));
    }
}

/// Requests are written to the debug log, where there is one: no bodies and no tokens.
fn access_log(options: &RunOptions, process: &Process) -> caliban_serve_http::AccessLog {
    let is_wanted = match options.debug {
        DebugTo::AsConfigured => false,
        DebugTo::Log | DebugTo::File(_) | DebugTo::Diagnostics => true,
    };
    let diagnostics = Arc::clone(&process.diagnostics);
    Arc::new(move |line: String| {
        if is_wanted {
            diagnostics.debug(&format!("serve: {line}"));
        }
    })
}
