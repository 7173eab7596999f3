//! A scripted network, origins on loopback, and what the proxy told.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caliban_egress::{
    Answer, Asker, Audit, Connection, Limits, Name, Network, Policy, Proxy, Question, Terms,
    Verdict,
};
use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// The address of `good.example`: public to look at, and led to an origin on loopback.
pub(crate) const GOOD: [u8; 4] = [93, 184, 216, 34];

/// Names and addresses as a test wants them.
#[derive(Default)]
pub(crate) struct World {
    /// What each lookup of a name finds; the last is found for ever.
    names: Mutex<BTreeMap<String, VecDeque<Vec<IpAddr>>>>,
    routes: Mutex<BTreeMap<IpAddr, SocketAddr>>,
    pub(crate) lookups: Mutex<Vec<String>>,
    pub(crate) connects: Mutex<Vec<SocketAddr>>,
}

impl World {
    pub(crate) fn name(&self, name: &str, answers: &[&[&str]]) {
        let answers = answers
            .iter()
            .map(|found| found.iter().map(|text| text.parse().unwrap()).collect())
            .collect();
        self.names.lock().unwrap().insert(name.to_owned(), answers);
    }

    pub(crate) fn route(&self, address: impl Into<IpAddr>, origin: SocketAddr) {
        self.routes.lock().unwrap().insert(address.into(), origin);
    }

    pub(crate) fn lookups(&self) -> Vec<String> {
        self.lookups.lock().unwrap().clone()
    }

    pub(crate) fn connects(&self) -> Vec<String> {
        let connects = self.connects.lock().unwrap();
        connects.iter().map(ToString::to_string).collect()
    }
}

impl Network for World {
    fn resolve<'a>(&'a self, name: &'a Name) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.lookups.lock().unwrap().push(name.to_string());
        let mut names = self.names.lock().unwrap();
        let found = match names.get_mut(name.as_str()) {
            Some(answers) if answers.len() > 1 => answers.pop_front(),
            Some(answers) => answers.front().cloned(),
            None => None,
        };
        Box::pin(async move { found.ok_or_else(|| io::Error::other("no such name")) })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        self.connects.lock().unwrap().push(address);
        let route = self.routes.lock().unwrap().get(&address.ip()).copied();
        Box::pin(async move {
            match route {
                Some(origin) => TcpStream::connect(origin).await,
                None if address.ip().is_loopback() => TcpStream::connect(address).await,
                None => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        })
    }
}

/// Answers as a test wants, and keeps the questions.
pub(crate) struct Person {
    pub(crate) asked: mpsc::UnboundedSender<Question>,
    pub(crate) answers: Mutex<BTreeMap<String, Answer>>,
    /// Told when answers change.
    pub(crate) changed: tokio::sync::Notify,
}

impl Asker for Person {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            let entry = question.entry.clone();
            let _ = self.asked.send(question);
            loop {
                let changed = self.changed.notified();
                if let Some(answer) = self.answers.lock().unwrap().get(&entry) {
                    return *answer;
                }
                changed.await;
            }
        })
    }
}

impl Person {
    pub(crate) fn says(&self, entry: &str, answer: Answer) {
        let mut answers = self.answers.lock().unwrap();
        answers.insert(entry.to_owned(), answer);
        self.changed.notify_waiters();
    }
}

struct Nobody;

impl Asker for Nobody {
    fn ask(&self, _: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async { Answer::NobodyAttends })
    }
}

struct Told(mpsc::UnboundedSender<Connection>);

impl Audit for Told {
    fn ended(&self, connection: Connection) {
        let _ = self.0.send(connection);
    }
}

/// A proxy at work in a world of its own.
pub(crate) struct Bench {
    pub(crate) world: Arc<World>,
    pub(crate) port: u16,
    pub(crate) proxy: Proxy,
    told: mpsc::UnboundedReceiver<Connection>,
}

pub(crate) struct Setup {
    pub(crate) world: Arc<World>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) asker: Arc<dyn Asker>,
    pub(crate) limits: Limits,
}

pub(crate) fn policy(allowed: &[&str], denied: &[&str], upstream: Option<u16>) -> Arc<Policy> {
    let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    Arc::new(Policy::parse(&owned(allowed), &owned(denied), upstream).unwrap())
}

impl Setup {
    pub(crate) fn allowing(allowed: &[&str]) -> Self {
        Self {
            world: Arc::default(),
            policy: policy(allowed, &[], None),
            asker: Arc::new(Nobody),
            // What hangs in a test should fail soon.
            limits: Limits {
                idle: Duration::from_secs(10),
                ..Limits::default()
            },
        }
    }

    pub(crate) async fn serve(self) -> Bench {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, told) = mpsc::unbounded_channel();
        let proxy = Proxy::serve_under(
            listener,
            Terms {
                policy: self.policy,
                asker: self.asker,
                audit: Arc::new(Told(sender)),
                network: self.world.clone(),
                limits: self.limits,
            },
        );
        Bench {
            world: self.world,
            port,
            proxy,
            told,
        }
    }
}

impl Bench {
    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))
            .await
            .unwrap()
    }

    /// What comes back for these bytes until the end.
    pub(crate) async fn say(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        to_end(&mut stream).await
    }

    /// A tunnel that was opened by `CONNECT`.
    pub(crate) async fn tunnel(&self, target: &str) -> TcpStream {
        let mut stream = self.connect().await;
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let expected = b"HTTP/1.1 200 Connection established\r\n\r\n";
        let mut answer = vec![0; expected.len()];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, expected);
        stream
    }

    /// The next connection that ended.
    pub(crate) async fn told(&mut self) -> Connection {
        self.told.recv().await.unwrap()
    }

    /// Ends the proxy; everything that was not heard of yet.
    pub(crate) async fn close(mut self) -> Vec<Connection> {
        self.proxy.close().await;
        let mut all = Vec::new();
        while let Some(connection) = self.told.recv().await {
            all.push(connection);
        }
        all
    }
}

pub(crate) async fn to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    // A reset after the answer is an end as well.
    let _ = stream.read_to_end(&mut answer).await;
    answer
}

pub(crate) fn socks(host: &str, port: u16) -> Vec<u8> {
    let mut bytes = vec![5, 1, 0, 5, 1, 0, 3, u8::try_from(host.len()).unwrap()];
    bytes.extend(host.bytes());
    bytes.extend(port.to_be_bytes());
    bytes
}

/// What a SOCKS client hears when its tunnel is open.
pub(crate) const SOCKS_OPEN: [u8; 12] = [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0];

pub(crate) fn refused(connection: &Connection) -> &caliban_egress::Refusal {
    match &connection.verdict {
        Verdict::Refused(refusal) => refusal,
        Verdict::Passed | Verdict::Failed(_) => panic!("{connection:?}"),
    }
}

/// An origin that keeps what it is told and answers when the other side has ended, or when `until` has
/// come.
pub(crate) async fn origin(
    until: &'static [u8],
    answer: &'static [u8],
) -> (SocketAddr, mpsc::UnboundedReceiver<Vec<u8>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, heard) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                let mut said = Vec::new();
                while until.is_empty() || !said.windows(until.len()).any(|some| some == until) {
                    match stream.read_buf(&mut said).await {
                        Ok(1..) => {}
                        Ok(0) | Err(_) => break,
                    }
                }
                let _ = stream.write_all(answer).await;
                let _ = stream.shutdown().await;
                // What still comes must not have come at all.
                let _ = stream.read_to_end(&mut said).await;
                let _ = sender.send(said);
            });
        }
    });
    (address, heard)
}

/// A world in which `good.example` leads to such an origin.
pub(crate) fn leading_to(origin: SocketAddr) -> Arc<World> {
    let world = World::default();
    world.name("good.example", &[&["93.184.216.34"]]);
    world.route(GOOD, origin);
    Arc::new(world)
}
