//! What confines programs on this machine: found out by trying, and used for every program.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use caliban_process::{Beyond, Bound, Bounds, Guard, Invocation};
use tempfile::TempPath;

use crate::bwrap::Namespaces;
use crate::causes::Unavailable;
use crate::egress::Refusals;
use crate::environment;
use crate::places::Found;
use crate::plan::{Plan, Processes};
use crate::private::Private;
use crate::sandbox::{ConfineError, Sandbox};

#[cfg(target_os = "linux")]
use crate::{
    bwrap::{self, Bwrap, BwrapError},
    carry,
    causes::{Machine, cause},
    chain::{CONFINE_ARGUMENT, CONFINEMENT, INNER_ARGUMENT, NOT_IN_FORCE, Task, Way},
    disk::Host,
    egress::Errand,
    explain::Standing,
    landlock,
    policy::{Network, Strength},
    way_out::WayOut,
};

/// How long trying may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much is kept of what is said meanwhile.
const KEPT: Bound = Bound {
    bytes: 16 * 1024,
    beyond: Beyond::Forget,
};
/// How often it is tried: what is to be covered may vanish meanwhile.
#[cfg(target_os = "linux")]
const ATTEMPTS: usize = 8;
/// What was found out, until the machine starts again.
#[cfg(target_os = "linux")]
const FOUND_OUT: &str = "probe.json";

/// That bubblewrap can do everything here, and which one it was.
#[cfg(target_os = "linux")]
#[derive(serde::Serialize, serde::Deserialize)]
struct FoundOut {
    circumstances: String,
    /// Its words for its version.
    printed: String,
}

/// What confines programs.
#[derive(Debug, Clone)]
pub(crate) enum Backend {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only on Linux"))]
    Bwrap {
        bwrap: crate::bwrap::Bwrap,
        namespaces: Namespaces,
    },
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only on Linux"))]
    Landlock,
    #[cfg_attr(not(target_os = "macos"), expect(dead_code, reason = "only on macOS"))]
    Seatbelt { program: PathBuf },
    /// Nothing.
    None(Unavailable),
}

/// What runs, as people know it: the line that a shell is given, or the program with its words.
pub(crate) fn line_of(invocation: &Invocation) -> String {
    let words: Vec<_> = invocation
        .args
        .iter()
        .map(|it| it.to_string_lossy())
        .collect();
    match words.as_slice() {
        [.., option, line] if option == "-c" => line.clone().into_owned(),
        words => {
            let mut all = vec![invocation.program.to_string_lossy()];
            all.extend_from_slice(words);
            all.join(" ")
        }
    }
}

/// A program as it is really started.
pub(crate) struct Wrapped {
    pub(crate) invocation: Invocation,
    pub(crate) plan: Option<Plan>,
    /// Where the mark is seen that the program begins.
    pub(crate) began: Option<TempPath>,
    #[cfg(target_os = "linux")]
    pub(crate) way_out: Option<WayOut>,
    /// What its connections did not get.
    pub(crate) refusals: Arc<Refusals>,
}

impl Backend {
    /// As frames call it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Bwrap {
                namespaces: Namespaces::All,
                ..
            } => "bwrap",
            Self::Bwrap {
                namespaces: Namespaces::NoUser | Namespaces::NoProcesses,
                ..
            } => "bwrap-weaker",
            Self::Landlock => "landlock",
            Self::Seatbelt { .. } => "seatbelt",
            Self::None(_) => "none",
        }
    }

    /// The same with its version, and what it is made of.
    pub(crate) fn described(&self) -> String {
        match self {
            Self::Bwrap { bwrap, .. } => format!(
                "{} {} (mounts, namespaces, seccomp)",
                self.name(),
                bwrap.version
            ),
            Self::Landlock => "landlock (files, seccomp)".to_owned(),
            Self::Seatbelt { program } => format!("seatbelt ({})", program.display()),
            Self::None(_) => "nothing".to_owned(),
        }
    }

    /// What a full sandbox has and this one has not.
    pub(crate) fn lacks(&self) -> Vec<&'static str> {
        match self {
            Self::Bwrap { namespaces, .. } => match namespaces {
                Namespaces::All => Vec::new(),
                Namespaces::NoUser => vec!["user namespace"],
                Namespaces::NoProcesses => vec!["user namespace", "own /proc"],
            },
            Self::Landlock => vec![
                "protected places in writable directories",
                "process isolation",
                "private /tmp",
                "egress by host",
            ],
            Self::Seatbelt { .. } | Self::None(_) => Vec::new(),
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::None(_))
    }

    pub(crate) fn processes(&self) -> Processes {
        match self {
            Self::Bwrap {
                namespaces: Namespaces::NoProcesses,
                ..
            } => Processes::TheMachines,
            Self::Bwrap {
                namespaces: Namespaces::All | Namespaces::NoUser,
                ..
            }
            | Self::Landlock
            | Self::Seatbelt { .. }
            | Self::None(_) => Processes::Own,
        }
    }

    /// What kept a program from beginning, by the words at the start of its output. A program that
    /// says the same is taken at its word, which does it no good.
    pub(crate) fn start_failure(&self, output: &str) -> Option<String> {
        let first = output.lines().next()?;
        #[cfg(target_os = "linux")]
        if let Some(problem) = first.strip_prefix(NOT_IN_FORCE) {
            return Some(problem.to_owned());
        }
        match self {
            Self::Seatbelt { .. } => first.strip_prefix("sandbox-exec: ").map(str::to_owned),
            Self::Bwrap { .. } | Self::Landlock | Self::None(_) => None,
        }
    }
}

#[cfg(target_os = "linux")]
impl Sandbox {
    /// Looks for the strongest sandbox that the policy permits, by trying.
    pub(crate) async fn detect(&self) -> (Backend, Vec<String>) {
        if matches!(self.place.guard, Guard::None) {
            let why = Unavailable::new(
                "this program cannot start itself again",
                "use the `caliban` program",
            );
            return (Backend::None(why), Vec::new());
        }
        let mut warnings = Vec::new();
        let weaker = self.policy.strength == Strength::WeakerPermitted;
        let why = match self.bwrap().await {
            Ok(bwrap) => {
                warnings.extend(bwrap.version.warning());
                match self.strongest(bwrap).await {
                    Ok(backend) => return (backend, warnings),
                    Err(why) => why,
                }
            }
            Err(BwrapError::Absent) => Unavailable::new(
                BwrapError::Absent.to_string(),
                "install the package `bubblewrap` of your distribution",
            ),
            Err(error) => {
                Unavailable::new(error.to_string(), "name another by `sandbox.bwrap_path`")
            }
        };
        if !weaker {
            return (Backend::None(why), warnings);
        }
        if self.policy.network != Network::Closed {
            let remedy = "close the network, or make bubblewrap work";
            let why = Unavailable::new(
                format!("{why}, and Landlock alone cannot tell hosts apart"),
                remedy,
            );
            return (Backend::None(why), warnings);
        }
        match self.try_out(&Backend::Landlock).await {
            Ok(()) => (Backend::Landlock, warnings),
            Err(said) => {
                let said = said.lines().last().unwrap_or_default();
                let reason = format!("{}, and Landlock does not work either: {said}", why.reason);
                (
                    Backend::None(Unavailable::new(reason, why.remedy)),
                    warnings,
                )
            }
        }
    }

    async fn bwrap(&self) -> Result<Bwrap, BwrapError> {
        let search = environment::search(&self.place.environment);
        let path = bwrap::find(self.policy.bwrap.as_deref(), search, &self.policy.roots)?;
        if let Some(known) = self.found_out(&Self::circumstances(&path)) {
            return Bwrap::new(path, &known.printed);
        }
        let invocation = Invocation {
            program: path.clone().into(),
            args: vec!["--version".into()],
            directory: "/".into(),
            environment: Vec::new(),
        };
        match self.said(&invocation).await {
            Ok(printed) => Bwrap::new(path, &printed),
            Err(reason) => Err(BwrapError::Unusable { path, reason }),
        }
    }

    async fn strongest(&self, bwrap: Bwrap) -> Result<Backend, Unavailable> {
        let with = |namespaces| Backend::Bwrap {
            bwrap: bwrap.clone(),
            namespaces,
        };
        let full = with(Namespaces::All);
        let key = Self::circumstances(&bwrap.path);
        if self.found_out(&key).is_some() {
            return Ok(full);
        }
        let said = match self.try_out(&full).await {
            Ok(()) => {
                self.remember(&FoundOut {
                    circumstances: key,
                    printed: bwrap.printed(),
                });
                return Ok(full);
            }
            Err(said) => said,
        };
        if self.policy.strength == Strength::WeakerPermitted {
            for namespaces in [Namespaces::NoUser, Namespaces::NoProcesses] {
                let weaker = with(namespaces);
                if self.try_out(&weaker).await.is_ok() {
                    return Ok(weaker);
                }
            }
        }
        Err(cause(&said, &Machine::look()))
    }

    /// Runs something that does nothing, exactly as commands are run.
    async fn try_out(&self, backend: &Backend) -> Result<(), String> {
        let invocation = Invocation {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), ":".into()],
            directory: self.policy.roots.first().map_or("/".into(), Clone::clone),
            environment: self.place.environment.clone(),
        };
        let mut said = String::new();
        for _ in 0..ATTEMPTS {
            let wrapped = self
                .wrap(invocation.clone(), backend, &self.look())
                .map_err(|error| error.to_string())?;
            match self.said(&wrapped.invocation).await {
                Ok(_) => return Ok(()),
                Err(problem) => said = problem,
            }
        }
        Err(said)
    }

    /// What a program prints, or what it says when it fails.
    async fn said(&self, invocation: &Invocation) -> Result<String, String> {
        let bounds = Bounds {
            stdout: KEPT,
            stderr: KEPT,
        };
        let captured = invocation.capture(&self.place.guard, &[], bounds);
        let captured = tokio::time::timeout(PATIENCE, captured)
            .await
            .map_err(|_| "it did not end".to_owned())?
            .map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if captured.status.success() {
            Ok(text(&captured.stdout))
        } else {
            Err(text(&captured.stderr))
        }
    }

    /// Everything that what was found out depends on. The inner step looks around again each time,
    /// so that nothing worse than a refusal comes of an error here.
    fn circumstances(bwrap: &Path) -> String {
        use std::os::unix::fs::MetadataExt;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let found = bwrap.metadata();
        let file = found.map_or((0, 0, 0, 0, 0), |it| {
            (it.dev(), it.ino(), it.ctime(), it.ctime_nsec(), it.size())
        });
        format!(
            "{} {} {} {file:?} {}",
            boot.trim(),
            rustix::process::getuid().as_raw(),
            bwrap.display(),
            env!("CARGO_PKG_VERSION")
        )
    }

    /// What was found out in these circumstances.
    fn found_out(&self, circumstances: &str) -> Option<FoundOut> {
        let text = std::fs::read_to_string(self.place.cache.join(FOUND_OUT)).ok()?;
        let found: FoundOut = serde_json::from_str(&text).ok()?;
        (found.circumstances == circumstances).then_some(found)
    }

    /// Where it cannot be kept it is found out again.
    fn remember(&self, found: &FoundOut) {
        let written = tempfile::NamedTempFile::new_in(&self.place.cache).and_then(|mut file| {
            serde_json::to_writer(&mut file, found)?;
            file.persist(self.place.cache.join(FOUND_OUT))?;
            Ok(())
        });
        let _: io::Result<()> = written;
    }

    /// The program as this backend starts it.
    pub(crate) fn wrap(
        &self,
        invocation: Invocation,
        backend: &Backend,
        found: &Found,
    ) -> Result<Wrapped, ConfineError> {
        match backend {
            Backend::None(_) | Backend::Seatbelt { .. } => Ok(Wrapped {
                invocation,
                plan: None,
                began: None,
                way_out: None,
                refusals: Arc::default(),
            }),
            Backend::Landlock => Ok(self.by_landlock(invocation)),
            Backend::Bwrap { bwrap, namespaces } => {
                self.by_bwrap(invocation, backend, found, bwrap, *namespaces)
            }
        }
    }

    fn by_bwrap(
        &self,
        invocation: Invocation,
        backend: &Backend,
        found: &Found,
        bwrap: &Bwrap,
        namespaces: Namespaces,
    ) -> Result<Wrapped, ConfineError> {
        let refusals = Arc::<Refusals>::default();
        let way_out = match self.egress() {
            None => None,
            Some(egress) => {
                let errand = Errand {
                    command: line_of(&invocation),
                    refusals: Arc::clone(&refusals),
                };
                let socket = self.next_socket();
                Some(WayOut::open(socket, egress.clone(), errand)?)
            }
        };
        let egress = way_out.as_ref().map(WayOut::path);
        let began = tempfile::NamedTempFile::new_in(self.private.path())?.into_temp_path();
        let began_at = began.canonicalize()?;
        let processes = backend.processes();
        let plan = self.plan(
            found,
            &invocation.environment,
            egress,
            Some(&began_at),
            processes,
        )?;
        Private::make(&plan)?;
        let directory = self.seen(&crate::policy::real(&invocation.directory));
        match self.policy.standing(&plan, &directory) {
            // The root is there, however little is in it.
            Standing::Hidden { .. } if directory != Path::new("/") => {
                return Err(ConfineError::Directory(directory));
            }
            Standing::Elsewhere { real } if !real.is_dir() => {
                return Err(ConfineError::Directory(directory));
            }
            Standing::Writable
            | Standing::ReadOnly { .. }
            | Standing::Hidden { .. }
            | Standing::Elsewhere { .. } => {}
        }
        let mut words = vec![bwrap.path.clone().into_os_string()];
        let blank = self.private.blank();
        words.extend(bwrap.arguments(&plan, namespaces, &directory, &blank));
        let way = match way_out {
            Some(_) => Way::Proxy,
            None => Way::None,
        };
        let temporary = Path::new("/tmp");
        let caches = self.caches_of(backend);
        let environment = environment::confined(invocation.environment, temporary, caches);
        let invocation = self.stepped(
            CONFINE_ARGUMENT,
            Task::Namespaces(way),
            &words,
            Invocation {
                environment,
                ..invocation
            },
        );
        Ok(Wrapped {
            invocation,
            plan: Some(plan),
            began: Some(began),
            way_out,
            refusals,
        })
    }

    /// A path as programs in the sandbox call it.
    fn seen(&self, path: &Path) -> PathBuf {
        let temporary = self.temporary_of_session();
        let seen = temporary.iter().find_map(|(place, real)| {
            let rest = path.strip_prefix(real).ok()?;
            Some(place.join(rest))
        });
        seen.unwrap_or_else(|| path.to_owned())
    }

    fn by_landlock(&self, invocation: Invocation) -> Wrapped {
        let temporary = self.private.temporary();
        let words = landlock::grants(&self.policy, &temporary, &Host);
        let caches = self.caches_of(&Backend::Landlock);
        let environment = environment::confined(invocation.environment, &temporary, caches);
        let invocation = Invocation {
            environment,
            ..invocation
        };
        Wrapped {
            invocation: self.stepped(INNER_ARGUMENT, Task::Landlock, &words, invocation),
            plan: None,
            began: None,
            way_out: None,
            refusals: Arc::default(),
        }
    }

    /// A program that this executable starts, told by a variable what it needs to know.
    fn stepped(
        &self,
        step: &str,
        task: Task,
        words: &[OsString],
        invocation: Invocation,
    ) -> Invocation {
        let executable = match &self.place.guard {
            Guard::ReExec(path) => path.clone(),
            Guard::None => PathBuf::from("/proc/self/exe"),
        };
        let mut args: Vec<OsString> = vec![step.into(), task.argument().into(), invocation.program];
        args.extend(invocation.args);
        let mut environment = invocation.environment;
        let packed = carry::pack(words.iter().map(OsString::as_os_str));
        environment.push((CONFINEMENT.into(), packed));
        Invocation {
            program: executable.into(),
            args,
            directory: invocation.directory,
            environment,
        }
    }
}

#[cfg(target_os = "macos")]
impl Sandbox {
    pub(crate) async fn detect(&self) -> (Backend, Vec<String>) {
        let program = match &self.policy.sandbox_exec {
            Some(path) => path.clone(),
            None => PathBuf::from(crate::seatbelt::SANDBOX_EXEC),
        };
        let backend = Backend::Seatbelt { program };
        let invocation = Invocation {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), ":".into()],
            directory: "/".into(),
            environment: self.place.environment.clone(),
        };
        let bounds = Bounds {
            stdout: KEPT,
            stderr: KEPT,
        };
        let said = match self.wrap(invocation, &backend, &self.look()) {
            Err(error) => error.to_string(),
            Ok(wrapped) => {
                let captured = wrapped.invocation.capture(&self.place.guard, &[], bounds);
                match tokio::time::timeout(PATIENCE, captured).await {
                    Ok(Ok(captured)) if captured.status.success() => return (backend, Vec::new()),
                    Ok(Ok(captured)) => String::from_utf8_lossy(&captured.stderr).into_owned(),
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "it did not end".to_owned(),
                }
            }
        };
        let why = Unavailable::new(
            format!("sandbox-exec says: {}", said.trim()),
            "run `caliban doctor`",
        );
        (Backend::None(why), Vec::new())
    }

    pub(crate) fn wrap(
        &self,
        invocation: Invocation,
        backend: &Backend,
        found: &Found,
    ) -> Result<Wrapped, ConfineError> {
        let Backend::Seatbelt { program } = backend else {
            return Ok(Wrapped {
                invocation,
                plan: None,
                began: None,
                refusals: Arc::default(),
            });
        };
        let proxy = match self.policy.network {
            crate::policy::Network::Operator { port } => Some(port),
            crate::policy::Network::Closed | crate::policy::Network::Domains { .. } => None,
        };
        let temporary = self.private.temporary();
        let text = crate::seatbelt::profile(&self.policy, found, &temporary, proxy);
        let profile = self.next_socket().with_extension("sb");
        std::fs::write(&profile, text)?;
        let caches = self.caches_of(backend);
        let mut environment = environment::confined(invocation.environment, &temporary, caches);
        if let Some(port) = proxy {
            let proxied = environment::proxied(port).into_iter();
            environment.extend(proxied.map(|(name, value)| (name.into(), value.into())));
        }
        let mut args: Vec<OsString> = vec!["-f".into(), profile.into(), invocation.program];
        args.extend(invocation.args);
        Ok(Wrapped {
            invocation: Invocation {
                program: program.clone().into(),
                args,
                directory: invocation.directory,
                environment,
            },
            plan: None,
            began: None,
            refusals: Arc::default(),
        })
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
impl Sandbox {
    pub(crate) async fn detect(&self) -> (Backend, Vec<String>) {
        let why = Unavailable::new("there is no sandbox on this system", "use WSL 2");
        (Backend::None(why), Vec::new())
    }

    pub(crate) fn wrap(
        &self,
        invocation: Invocation,
        _backend: &Backend,
        _found: &Found,
    ) -> Result<Wrapped, ConfineError> {
        Ok(Wrapped {
            invocation,
            plan: None,
            began: None,
            refusals: Arc::default(),
        })
    }
}
