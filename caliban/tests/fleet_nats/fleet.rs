//! A server, workers, and whoever submits.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use caliban_testkit::Script;
use serde_json::Value;

use crate::support::{Bench, Ran, Wire, bare, run};

/// How long anything may take before a test gives up.
const PATIENCE: Duration = Duration::from_mins(1);

/// How many pairs of ports a server tries.
const PORT_TRIES: usize = 5;

/// A NATS server on a free port, ended with the test.
pub(crate) struct Server {
    directory: tempfile::TempDir,
    pub(crate) port: u16,
    pub(crate) monitor: u16,
    file: PathBuf,
    child: Option<Child>,
}

/// A port that no other server of these tests has or had: a worker that misses its server asks again
/// for a while, and would be served by whoever is there by then. The system gives ports from above
/// these to whoever asks for any.
pub(crate) fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 20_000;
    /// For the servers of one process, each of which has two.
    const STRIDE: u32 = 128;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let taken = TAKEN.fetch_add(1, Ordering::Relaxed);
        let place = std::process::id().wrapping_mul(STRIDE).wrapping_add(taken);
        let port = u16::try_from(FIRST + place % COUNT).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn program() -> PathBuf {
    let python = std::env::var_os("CALIBAN_TEST_PYTHON").expect("CALIBAN_TEST_PYTHON is set");
    Path::new(&python).with_file_name("nats-server")
}

impl Server {
    /// A server with this configuration; `{port}`, `{monitor}` and `{store}` stand for its own. A port that was
    /// free a moment ago may be somebody's by now: then others are taken.
    pub(crate) fn with(configuration: &str) -> Self {
        for _ in 0..PORT_TRIES {
            let directory = tempfile::tempdir().unwrap();
            let (port, monitor) = (free_port(), free_port());
            let file = directory.path().join("server.conf");
            let store = directory.path().join("store");
            let text = configuration
                .replace("{port}", &port.to_string())
                .replace("{monitor}", &monitor.to_string())
                .replace("{store}", store.to_str().unwrap());
            std::fs::write(&file, text).unwrap();
            let mut server = Self {
                directory,
                port,
                monitor,
                file,
                child: None,
            };
            if server.listens() {
                return server;
            }
        }
        panic!("no server could be started on {PORT_TRIES} pairs of ports");
    }

    pub(crate) fn new() -> Self {
        Self::with(
            "listen: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor}\"\n\
             jetstream { store_dir: \"{store}\" }\n",
        )
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Starts it again, on the port it had.
    pub(crate) fn start(&mut self) {
        assert!(self.listens(), "{}", self.log());
    }

    /// Whether it listens, which it does not where another has one of its ports.
    fn listens(&mut self) -> bool {
        let log = std::fs::File::create(self.directory.path().join("log")).unwrap();
        let child = Command::new(program())
            .arg("-c")
            .arg(&self.file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
        let mut listens = false;
        until("the server listens or ends", || {
            listens = self.log().contains("Server is ready");
            listens || self.has_ended()
        });
        listens
    }

    fn has_ended(&mut self) -> bool {
        let child = self.child.as_mut().unwrap();
        child.try_wait().unwrap().is_some()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// As a power failure ends it.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits for something that happens elsewhere.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A worker, killed with the test.
pub(crate) struct Worker {
    pub(crate) child: Child,
}

impl Worker {
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Tells it to stop, and waits until it has.
    pub(crate) fn stop(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A fleet: a server with its streams, and a model.
pub(crate) struct Fleet {
    pub(crate) bench: Bench,
    pub(crate) server: Server,
}

impl Fleet {
    /// Leases of two seconds.
    pub(crate) fn new(script: Script) -> Self {
        Self::with(script, &["--lease", "4s"])
    }

    pub(crate) fn with(script: Script, init: &[&str]) -> Self {
        let bench = Bench::new(Wire::Anthropic, script);
        let server = Server::new();
        let fleet = Self { bench, server };
        let made = fleet.fleet(["init", "--apply"].iter().chain(init));
        assert_eq!(made.code, Some(0), "{made:?}");
        fleet
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = bare(self.bench.home.path(), self.bench.workspace.path());
        command.env("CALIBAN_FLEET_SERVER", self.server.url());
        command
    }

    /// `caliban fleet …`.
    pub(crate) fn fleet<S: AsRef<std::ffi::OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> Ran {
        run(self.command().arg("fleet").args(args))
    }

    /// Queues a job without a repository; its id.
    pub(crate) fn submit(&self, prompt: &str, flags: &[&str]) -> String {
        let args = ["submit", "--no-repo", prompt];
        let ran = self.fleet(args.iter().chain(flags));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout.trim().to_owned()
    }

    /// A worker with the model; `before` stands before `fleet`, as its operator decides.
    pub(crate) fn worker(&self, name: &str, before: &[&str], flags: &[&str]) -> Worker {
        let mut command = self.bench.command();
        let log = self.server.path().join(format!("{name}.log"));
        let child = command
            .args(before)
            .args(["fleet", "worker", "--name", name, "--lease", "4s"])
            .arg("--work-dir")
            .arg(self.server.path().join("work"))
            .args(flags)
            .env("CALIBAN_FLEET_SERVER", self.server.url())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(log).unwrap())
            .spawn()
            .unwrap();
        Worker { child }
    }

    /// What a worker said so far.
    pub(crate) fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.server.path().join(format!("{name}.log"))).unwrap()
    }

    /// The result of a job, waited for.
    pub(crate) fn result(&self, job: &str) -> Value {
        let ran = self.fleet(["result", job, "--wait", "--timeout", "60s", "--json"]);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    pub(crate) fn state(&self, job: &str) -> Value {
        let ran = self.fleet(["list", "--json", "--limit", "1000"]);
        let rows = ran.stdout.lines();
        let rows = rows.map(|line| serde_json::from_str::<Value>(line).unwrap());
        let found = rows.into_iter().find(|row| row["job"] == job);
        found.unwrap_or_default()
    }

    pub(crate) fn wait_for_state(&self, job: &str, state: &str) {
        until(&format!("{job} is {state}"), || {
            self.state(job)["state"] == state
        });
    }

    /// The stored frames of a job.
    pub(crate) fn frames(&self, job: &str) -> Vec<Value> {
        // They are numbered, which frames of a run are not.
        let mut command = self.command();
        let output = command.args(["fleet", "logs", job, "--json"]).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// The lines of a stream, as they come.
pub(crate) fn lines(reader: impl std::io::Read) -> impl Iterator<Item = String> {
    BufReader::new(reader).lines().map_while(Result::ok)
}
