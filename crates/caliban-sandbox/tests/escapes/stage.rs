//! A place to escape from: a workspace, a home with secrets, things outside, and those who listen
//! there.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::corpus::Evidence;

pub(crate) const FIXTURE: &str = env!("CARGO_BIN_EXE_sandbox-fixture");
/// What nobody confined may see.
const SECRET: &str = "TOPSECRET";
/// A user without rights.
const NOBODY: &str = "65534";

/// Who runs the commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Myself,
    /// A user without rights, where the tests have the right to become one.
    Nobody,
}

#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) error: String,
}

pub(crate) struct Stage {
    who: Who,
    folder: TempDir,
    /// Where the disk is that is neither the workspace's nor temporary.
    outside: TempDir,
    victim: Child,
    listening: Listening,
}

struct Listening {
    port: u16,
    name: String,
    shared: PathBuf,
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// Why nothing can be tried here.
pub(crate) fn unavailable(who: Who) -> Option<String> {
    if who == Who::Nobody && !is_root() {
        return Some("only the superuser can become another user".to_owned());
    }
    let done = Stage::new(who).run("{}", "true");
    (!done.error.contains("backend bwrap")).then(|| format!("no namespaces here: {}", done.error))
}

/// How many processes have this in their arguments.
pub(crate) fn processes_named(text: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    let is_one = |line: &Vec<u8>| {
        let words: Vec<_> = line.split(|byte| *byte == 0).collect();
        words.first() == Some(&b"sleep".as_slice()) && words.contains(&text.as_bytes())
    };
    lines.filter(is_one).count()
}

impl Stage {
    pub(crate) fn new(who: Who) -> Self {
        let folder = tempfile::Builder::new().prefix("escape").tempdir().unwrap();
        let outside = match tempfile::tempdir_in("/srv") {
            Ok(outside) => outside,
            Err(_) => tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
        };
        let base = folder.path().canonicalize().unwrap();
        let write = |path: &str, text: &str| {
            let path = base.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for path in [
            ".ssh/id",
            ".netrc",
            ".aws/credentials",
            ".config/gh/hosts.yml",
            ".docker/config.json",
            ".git-credentials",
            ".config/caliban/settings.toml",
            ".cache/caliban/x",
            ".npmrc",
            ".gnupg/key",
        ] {
            write(&format!("home/{path}"), SECRET);
        }
        write("home/plain", "plain");
        write("home/.bashrc", "");
        for path in [
            ".envrc",
            ".vscode/tasks.json",
            ".github/workflows/ci.yml",
            "CLAUDE.md",
            ".claude/settings.json",
            ".npmrc",
            ".mcp.json",
            ".husky/pre-push",
            "venv/bin/activate",
            "venv/pyvenv.cfg",
            "secret/key",
            "src/main.c",
            "src/deep/x",
        ] {
            write(&format!("ws/{path}"), "x");
        }
        std::fs::write(outside.path().join("file"), "x").unwrap();
        std::fs::create_dir(outside.path().join("directory")).unwrap();
        let git = Command::new("git")
            .args(["-c", "init.defaultBranch=main", "init", "-q"])
            .current_dir(base.join("ws"))
            .status();
        assert!(git.unwrap().success());
        if who == Who::Nobody {
            for path in [&base, outside.path()] {
                let owned = Command::new("chown")
                    .args(["-R", NOBODY])
                    .arg(path)
                    .status();
                assert!(owned.unwrap().success());
            }
        }
        for path in [base.as_path(), outside.path()] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut victim = as_user(who, "sleep");
        victim.arg("1000").env("SECRET", SECRET).current_dir("/");
        let victim = victim.stdin(Stdio::null()).spawn().unwrap();
        let listening = listen(outside.path());
        if who == Who::Nobody {
            let everybody = |path: &Path| {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
            };
            everybody(&outside.path().join("socket"));
            everybody(&listening.shared);
        }
        Self {
            who,
            folder,
            outside,
            victim,
            listening,
        }
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.base().join("ws")
    }

    pub(crate) fn outside(&self) -> &Path {
        self.outside.path()
    }

    /// Runs a script with these settings, or `bare`.
    pub(crate) fn run(&self, settings: &str, script: &str) -> Done {
        let listening = &self.listening;
        let mut command = as_user(self.who, FIXTURE);
        // A variable that is missing must not make another path of one.
        command
            .arg(settings)
            .arg(self.base())
            .arg(format!("set -u\n{script}"));
        for (name, value) in [
            ("OUTSIDE", self.outside().display().to_string()),
            ("VICTIM", self.victim.id().to_string()),
            ("PORT", listening.port.to_string()),
            ("ABSTRACT", listening.name.clone()),
            ("SHARED", listening.shared.display().to_string()),
            ("SSH_AUTH_SOCK", "/run/TOPSECRET".to_owned()),
        ] {
            command.arg(format!("{name}={value}"));
        }
        let done = command
            .stdin(Stdio::null())
            .current_dir("/")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Done {
            code: done.status.code(),
            output: text(&done.stdout),
            error: text(&done.stderr),
        }
    }

    /// Whether something worked, seen from outside.
    pub(crate) fn is_evident(&self, evidence: Evidence, done: &Done) -> bool {
        let is_pwned =
            |path: PathBuf| std::fs::read_to_string(path).is_ok_and(|text| text.contains("pwned"));
        match evidence {
            Evidence::Says => done.output.contains(SECRET),
            Evidence::Workspace(path) => is_pwned(self.workspace().join(path)),
            Evidence::Home(path) => is_pwned(self.base().join("home").join(path)),
            Evidence::Outside(path) => is_pwned(self.outside().join(path)),
            Evidence::Gone(path) => !self.outside().join(path).exists(),
            Evidence::VictimDied => {
                // A zombie is dead.
                let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.victim.id()));
                stat.map_or(true, |stat| stat.contains(") Z"))
            }
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let _ = std::fs::remove_file(&self.listening.shared);
        // What is mounted in a stage would be deleted with it.
        for folder in [&mut self.folder, &mut self.outside] {
            if has_mounts(folder.path()) {
                folder.disable_cleanup(true);
            }
        }
    }
}

/// Whether something is mounted beneath a directory, or that cannot be told.
fn has_mounts(directory: &Path) -> bool {
    let Ok(mounts) = std::fs::read_to_string("/proc/self/mountinfo") else {
        return true;
    };
    let mut places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    places.any(|place| Path::new(place).starts_with(directory))
}

fn as_user(who: Who, program: &str) -> Command {
    match who {
        // Mounts that anybody makes are gone with the program, and nobody who cleans up sees them.
        Who::Myself if is_root() => {
            let mut command = Command::new("unshare");
            command.args(["--mount", "--propagation", "private", program]);
            command
        }
        Who::Myself => Command::new(program),
        Who::Nobody => {
            let mut command = Command::new("setpriv");
            command.args([
                "--reuid",
                NOBODY,
                "--regid",
                NOBODY,
                "--clear-groups",
                program,
            ]);
            command
        }
    }
}

/// Those outside that tell secrets to whoever connects.
fn listen(outside: &Path) -> Listening {
    use std::io::Write as _;
    use std::net::TcpListener;
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in tcp.incoming().flatten() {
            let _ = (&stream).write_all(SECRET.as_bytes());
        }
    });
    let serve = |listener: UnixListener| {
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = (&stream).write_all(SECRET.as_bytes());
            }
        });
    };
    serve(UnixListener::bind(outside.join("socket")).unwrap());
    let name = format!("caliban-test-{}-{port}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    serve(UnixListener::bind_addr(&address).unwrap());
    let shared = PathBuf::from(format!("/dev/shm/{name}"));
    std::fs::write(&shared, SECRET).unwrap();
    Listening { port, name, shared }
}
