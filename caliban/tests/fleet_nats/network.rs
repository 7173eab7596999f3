//! A fleet whose network is cut: the server has a network of its own, which two wires lead to, and
//! one of them is pulled out while a worker is at different places in its work. Everything
//! happens in namespaces that end with the test.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use caliban_testkit::{Match, Presence, Reply, Script};
use serde_json::{Value, json};

use crate::apart::{Apart, ip, is_apart};
use crate::fleet::{Worker, until};
use crate::support::{Bench, Ran, Wire, bare, run};

/// The server at the end of the wire that is cut, and of the one that is not.
const CUT: &str = "10.77.0.2";
const WHOLE: &str = "10.78.0.2";
const LEASE: &str = "4s";

/// A server in a network of its own, with a certificate.
struct Far {
    child: Child,
    directory: tempfile::TempDir,
}

/// Makes an authority and the server's certificate.
const CERTIFY: &str = "
import datetime, ipaddress, sys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
folder, names = sys.argv[1], sys.argv[2:]
now = datetime.datetime.now(datetime.timezone.utc)
def made(subject, issuer, key, signer, extension, critical):
    name = lambda text: x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])
    return (x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer))
        .public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(extension, critical).sign(signer, hashes.SHA256()))
def write(name, text):
    open(f'{folder}/{name}', 'wb').write(text)
root, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
pem = serialization.Encoding.PEM
authority = x509.BasicConstraints(ca=True, path_length=None)
write('ca.pem', made('ca', 'ca', root, root, authority, True).public_bytes(pem))
names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(it)) for it in names])
write('cert.pem', made('nats', 'ca', key, root, names, False).public_bytes(pem))
write('key.pem', key.private_bytes(pem, serialization.PrivateFormat.PKCS8,
    serialization.NoEncryption()))
";

fn python() -> PathBuf {
    let python = std::env::var_os("CALIBAN_TEST_PYTHON");
    python.expect("CALIBAN_TEST_PYTHON is set").into()
}

/// An authority in `ca.pem`, and `cert.pem` with `key.pem` for these addresses.
fn certify(directory: &Path, addresses: &[&str]) {
    let made = Command::new(python())
        .args(["-c", CERTIFY])
        .arg(directory)
        .args(addresses)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
}

impl Far {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        certify(directory.path(), &[CUT, WHOLE]);
        let place = directory.path().display();
        let file = directory.path().join("server.conf");
        let text = format!(
            "listen: \"0.0.0.0:4222\"\njetstream {{ store_dir: \"{place}/store\"\n\
             sync_interval: always }}\n\
             tls {{ cert_file: \"{place}/cert.pem\"\n key_file: \"{place}/key.pem\" }}\n"
        );
        std::fs::write(&file, text).unwrap();
        let script = format!(
            "read go && ip link set lo up && ip addr add {CUT}/30 dev far0 && \
             ip addr add {WHOLE}/30 dev far1 && ip link set far0 up && ip link set far1 up && \
             exec {} -c {} 2> {place}/log",
            python().with_file_name("nats-server").display(),
            file.display(),
        );
        let mut child = Command::new("unshare")
            .args(["-n", "sh", "-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let pid = child.id().to_string();
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        until("the server has a network of its own", || {
            std::fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|other| other != own)
        });
        for (near, far, address) in [
            ("near0", "far0", "10.77.0.1/30"),
            ("near1", "far1", "10.78.0.1/30"),
        ] {
            ip(&["link", "add", near, "type", "veth", "peer", "name", far]);
            ip(&["link", "set", far, "netns", &pid]);
            ip(&["addr", "add", address, "dev", near]);
            ip(&["link", "set", near, "up"]);
        }
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let far = Self { child, directory };
        until("the server listens", || {
            let log = std::fs::read_to_string(far.directory.path().join("log"));
            log.is_ok_and(|log| log.contains("Server is ready"))
        });
        far
    }

    fn authority(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Pulls the wire out, or puts it back.
fn wire(state: &str) {
    ip(&["link", "set", "near0", state]);
}

struct Cut {
    bench: Bench,
    far: Far,
}

impl Cut {
    fn new(script: Script) -> Self {
        let cut = Self {
            bench: Bench::new(Wire::Anthropic, script),
            far: Far::start(),
        };
        let made = cut.fleet(WHOLE, &["init", "--apply", "--lease", LEASE]);
        assert_eq!(made.code, Some(0), "{made:?}");
        cut
    }

    fn fleet(&self, address: &str, args: &[&str]) -> Ran {
        let mut command = bare(self.bench.home.path(), self.bench.workspace.path());
        command
            .args([
                "fleet",
                "--server",
                &format!("tls://{address}:4222"),
                "--ca",
            ])
            .arg(self.far.authority())
            .args(args);
        run(&mut command)
    }

    fn submit(&self, prompt: &str) -> String {
        let ran = self.fleet(WHOLE, &["submit", "--no-repo", prompt]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout.trim().to_owned()
    }

    /// A worker at the end of one of the wires.
    fn worker(&self, name: &str, address: &str) -> Worker {
        let place = self.far.directory.path();
        let log = std::fs::File::create(place.join(format!("{name}.log"))).unwrap();
        let child = self
            .bench
            .command()
            .args(["--allow", "Bash", "fleet", "--server"])
            .arg(format!("tls://{address}:4222"))
            .arg("--ca")
            .arg(self.far.authority())
            .args(["worker", "--name", name, "--lease", LEASE, "--work-dir"])
            .arg(place.join("work"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Worker { child }
    }

    fn log(&self, name: &str) -> String {
        let file = self.far.directory.path().join(format!("{name}.log"));
        std::fs::read_to_string(file).unwrap()
    }

    fn result(&self, job: &str) -> Value {
        let ran = self.fleet(
            WHOLE,
            &["result", job, "--wait", "--timeout", "60s", "--json"],
        );
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    fn frames(&self, job: &str) -> Vec<Value> {
        let mut command = bare(self.bench.home.path(), self.bench.workspace.path());
        command
            .args(["fleet", "--server", &format!("tls://{WHOLE}:4222"), "--ca"])
            .arg(self.far.authority())
            .args(["logs", job, "--json"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// What must hold for every job that has ended: one end, and every event once.
    fn check(&self, job: &str) {
        let frames = self.frames(job);
        let ends = frames.iter().filter(|frame| frame["type"] == "ended");
        assert_eq!(ends.count(), 1, "{frames:?}");
        let mut numbers: Vec<u64> = frames.iter().filter_map(|it| it["seq"].as_u64()).collect();
        let told = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), told, "an event came twice: {frames:?}");
    }
}

/// The worker is in the middle of an answer when it is cut off: it ends its own run before
/// another may begin, and the other goes on in the same session.
#[test]
fn a_worker_that_is_cut_off_in_an_answer_fences_itself() {
    if !is_apart(
        Apart::AsAnybody,
        "network::a_worker_that_is_cut_off_in_an_answer_fences_itself",
    ) {
        return;
    }
    let cut = Cut::new(Script::new([
        Reply::tool("Bash", json!({"command": "echo the-first-step"})),
        Reply::text("never whole").hold_after(1),
        Reply::text("by the other"),
        Reply::text("whole again"),
    ]));
    let _one = cut.worker("one", CUT);
    let job = cut.submit("do it");
    cut.bench.server.wait_for_requests(2);
    wire("down");
    let began = Instant::now();
    // The run ends although nobody could tell the worker anything, before the lease is over.
    cut.bench.server.wait_for_disconnect();
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    until("the worker says why", || {
        cut.log("one").contains("the lease could not be renewed")
    });
    let mut two = cut.worker("two", WHOLE);
    let result = cut.result(&job);
    assert_eq!(result["text"], "by the other", "{result}");
    assert_eq!(
        (&result["attempt"], &result["worker"]),
        (&json!(2), &json!("two"))
    );
    // What was acknowledged before the cut was not lost, and not done again.
    let requests = cut.bench.server.model_requests();
    let body = requests[2].json().to_string();
    assert!(body.contains("the-first-step"), "{body}");
    let calls = cut.frames(&job);
    let calls = calls.iter().filter(|frame| frame["type"] == "tool_use");
    assert_eq!(calls.count(), 1);
    cut.check(&job);
    // With the wire back, it works on as before.
    two.kill();
    wire("up");
    let job = cut.submit("again");
    let result = cut.result(&job);
    assert_eq!(
        (&result["text"], &result["worker"]),
        (&json!("whole again"), &json!("one"))
    );
    cut.check(&job);
}

/// The answer is there and its result cannot be told: another attempt is made, and there is one
/// result.
#[test]
fn a_worker_that_is_cut_off_in_a_call_leaves_one_result() {
    if !is_apart(
        Apart::AsAnybody,
        "network::a_worker_that_is_cut_off_in_a_call_leaves_one_result",
    ) {
        return;
    }
    let cut = Cut::new(Script::new([
        Reply::tool("Bash", json!({"command": "sleep 60"})),
        Reply::text("after all").when(Match::last_user("You were cut off")),
    ]));
    let _one = cut.worker("one", CUT);
    let job = cut.submit("do it");
    until("the call is told", || {
        cut.frames(&job)
            .iter()
            .any(|frame| frame["type"] == "tool_use")
    });
    wire("down");
    let _two = cut.worker("two", WHOLE);
    let result = cut.result(&job);
    assert_eq!(result["text"], "after all", "{result}");
    assert_eq!(result["attempt"], 2);
    // The first one is whole again, and adds nothing.
    wire("up");
    until("the worker is back", || {
        cut.log("one").contains("the lease could not be renewed")
    });
    let again = cut.result(&job);
    assert_eq!(again, result);
    cut.check(&job);
    assert_eq!(cut.bench.server.model_requests().len(), 2);
}

/// A cut that is shorter than the lease is not noticed by anybody.
#[test]
fn a_short_cut_changes_nothing() {
    if !is_apart(Apart::AsAnybody, "network::a_short_cut_changes_nothing") {
        return;
    }
    let cut = Cut::new(Script::new([
        Reply::tool(
            "Bash",
            json!({"command": "while [ ! -e go ]; do sleep 0.05; done"}),
        )
        .when(Match::tool_result(Presence::Absent)),
        Reply::text("undisturbed"),
    ]));
    let _one = cut.worker("one", CUT);
    let _two = cut.worker("two", CUT);
    let job = cut.submit("do it");
    until("the call is told", || {
        cut.frames(&job)
            .iter()
            .any(|frame| frame["type"] == "tool_use")
    });
    wire("down");
    // Less than the worker waits before it ends its run by itself.
    std::thread::sleep(Duration::from_secs(1));
    wire("up");
    let work = cut.far.directory.path().join("work");
    let mut go = Command::new("sh");
    go.args(["-c", "find . -type d -exec touch {}/go \\;"])
        .current_dir(&work);
    assert!(go.status().unwrap().success());
    let result = cut.result(&job);
    assert_eq!(
        (&result["text"], &result["attempt"]),
        (&json!("undisturbed"), &json!(1))
    );
    cut.check(&job);
}

/// Whoever submits and is cut off knows that nothing was acknowledged, and may say it again.
#[test]
fn a_submission_without_an_answer_is_made_again() {
    if !is_apart(
        Apart::AsAnybody,
        "network::a_submission_without_an_answer_is_made_again",
    ) {
        return;
    }
    let cut = Cut::new(Script::new([Reply::text("once")]));
    let id = uuid::Uuid::new_v4().to_string();
    let submit = ["submit", "--no-repo", "do it", "--id", &id];
    wire("down");
    let ran = cut.fleet(CUT, &submit);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.contains("tls://10.77.0.2:4222"), "{ran:?}");
    wire("up");
    for _ in 0..2 {
        let ran = cut.fleet(CUT, &submit);
        assert_eq!(ran.stdout.trim(), id, "{ran:?}");
    }
    let _one = cut.worker("one", CUT);
    assert_eq!(cut.result(&id)["text"], "once");
    cut.check(&id);
    let listed = cut.fleet(WHOLE, &["list", "--json"]);
    assert_eq!(listed.stdout.lines().count(), 1, "{listed:?}");
    // Nobody talks to a server in the clear, or to one that nobody vouches for.
    let mut bold = bare(cut.bench.home.path(), cut.bench.workspace.path());
    let ran = run(bold.args(["fleet", "--server", "tls://10.78.0.2:4222", "list"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains("certificate") || ran.stderr.contains("TLS"),
        "{ran:?}"
    );
}

/// A server that says who it is in the clear, and one that has no certificate at all.
#[test]
fn a_server_off_this_machine_must_be_encrypted() {
    if !is_apart(
        Apart::AsAnybody,
        "network::a_server_off_this_machine_must_be_encrypted",
    ) {
        return;
    }
    ip(&["addr", "add", "10.79.0.1/32", "dev", "lo"]);
    let listener = std::net::TcpListener::bind("10.79.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let info = "INFO {\"server_id\":\"x\",\"version\":\"2.15.1\",\"proto\":1,\"max_payload\":1048576}\r\n";
        stream.write_all(info.as_bytes()).unwrap();
        let mut said = Vec::new();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let _ = stream.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    });
    let home = tempfile::tempdir().unwrap();
    let address = format!("nats://10.79.0.1:{port}");
    let ran = run(bare(home.path(), home.path()).args(["fleet", "--server", &address, "list"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let said = heard.join().unwrap();
    assert!(
        !said.contains("CONNECT"),
        "it introduced itself in the clear: {said}"
    );
}
