//! Three servers that keep everything thrice, the leader of which is killed.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use caliban_testkit::{Match, Presence, Reply, Script};
use serde_json::{Value, json};

use crate::fleet::{Worker, free_port, until};
use crate::support::{Bench, Ran, Wire, bare, run};

/// One of three.
struct Node {
    child: Child,
    name: String,
    port: u16,
    monitor: u16,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Node {
    /// A document of its monitor; nothing where it is not there.
    fn asked(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.monitor)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
    }

    /// The leaders of all streams by their names, as this one knows; nothing before there are any.
    fn leaders(&self) -> BTreeMap<String, String> {
        let known = self.asked("/jsz?streams=true").unwrap_or_default();
        let accounts = known["account_details"].as_array().into_iter().flatten();
        let streams = accounts.filter_map(|account| account["stream_detail"].as_array());
        let leader = |stream: &Value| {
            let leader = stream["cluster"]["leader"].as_str().unwrap_or_default();
            Some((stream["name"].as_str()?.to_owned(), leader.to_owned()))
        };
        streams.flatten().filter_map(leader).collect()
    }
}

/// Three servers with a store each.
fn cluster(directory: &Path) -> Vec<Node> {
    let python = std::env::var_os("CALIBAN_TEST_PYTHON").expect("CALIBAN_TEST_PYTHON is set");
    let program = Path::new(&python).with_file_name("nats-server");
    let routes: [u16; 3] = std::array::from_fn(|_| free_port());
    let list = routes
        .map(|port| format!("nats://127.0.0.1:{port}"))
        .join(", ");
    let node = |(place, route): (usize, &u16)| {
        let (port, monitor, name) = (free_port(), free_port(), format!("n{place}"));
        let store = directory.join(&name);
        let text = format!(
            "server_name: {name}\nlisten: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor}\"\n\
             jetstream {{ store_dir: \"{}\"\nsync_interval: always }}\n\
             cluster {{ name: fleet\nlisten: \"127.0.0.1:{route}\"\nroutes: [{list}] }}\n",
            store.display()
        );
        let file = directory.join(format!("{name}.conf"));
        std::fs::write(&file, text).unwrap();
        let log = std::fs::File::create(directory.join(format!("{name}.log"))).unwrap();
        let child = Command::new(&program)
            .arg("-c")
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Node {
            child,
            name,
            port,
            monitor,
        }
    };
    let nodes: Vec<Node> = routes.iter().enumerate().map(node).collect();
    until("the servers have a leader", || {
        nodes.iter().all(|node| {
            let health = node.asked("/healthz");
            let known = node.asked("/jsz").unwrap_or_default();
            health.is_some_and(|it| it["status"] == "ok")
                && known["meta_cluster"]["leader"].is_string()
                && known["meta_cluster"]["cluster_size"] == 3
        })
    });
    nodes
}

#[test]
fn a_leader_that_is_killed_loses_nothing_that_was_acknowledged() {
    const JOBS: usize = 12;
    let total = u32::try_from(JOBS).unwrap();
    let step = Reply::tool("Bash", json!({"command": "sleep 0.3; echo step"}));
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            step.when(Match::tool_result(Presence::Absent))
                .times(total * 4),
            Reply::text("done").times(total * 4),
        ]),
    );
    let directory = tempfile::tempdir().unwrap();
    let mut nodes = cluster(directory.path());
    let fleet = |port: u16, args: &[&str]| -> Ran {
        let mut command = bare(bench.home.path(), bench.workspace.path());
        let server = format!("nats://127.0.0.1:{port}");
        run(command.args(["fleet", "--server", &server]).args(args))
    };
    let made = fleet(
        nodes[0].port,
        &["init", "--apply", "--lease", "4s", "--replicas", "3"],
    );
    assert_eq!(made.code, Some(0), "{made:?}");
    // Whoever gets no answer says it again: with its id it is the same job.
    let submit = |port: u16| {
        let id = uuid::Uuid::new_v4().to_string();
        until("a submission is acknowledged", || {
            let ran = fleet(port, &["submit", "--no-repo", "do it", "--id", &id]);
            ran.code == Some(0)
        });
        id
    };
    let leader = nodes[0].leaders()["CALIBAN_JOBS"].clone();
    let place = nodes.iter().position(|node| node.name == leader).unwrap();
    // The worker speaks to the very server that will be killed, and finds the others.
    let server = format!("nats://127.0.0.1:{}", nodes[place].port);
    let log = std::fs::File::create(directory.path().join("worker.log")).unwrap();
    let worker = bench
        .command()
        .args(["--allow", "Bash", "fleet", "--server", &server, "worker"])
        .args([
            "--name",
            "one",
            "--lease",
            "4s",
            "--slots",
            "3",
            "--work-dir",
        ])
        .arg(directory.path().join("work"))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    let _worker = Worker { child: worker };
    let mut jobs: Vec<String> = (0..JOBS / 2).map(|_| submit(nodes[0].port)).collect();
    bench.server.wait_for_requests(2);
    drop(nodes.remove(place));
    let port = nodes[0].port;
    until("others lead", || {
        let leaders = nodes[0].leaders();
        let mut leaders = leaders.values();
        leaders.all(|name| !name.is_empty() && *name != leader)
    });
    jobs.extend((JOBS / 2..JOBS).map(|_| submit(port)));
    for job in &jobs {
        let ran = fleet(
            port,
            &["result", job, "--wait", "--timeout", "60s", "--json"],
        );
        let result: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        assert_eq!(result["text"], "done", "{result}");
    }
    let listed = fleet(port, &["list", "--json", "--limit", "100"]);
    assert_eq!(listed.stdout.lines().count(), JOBS, "{listed:?}");
}
