//! The sandbox of a session: set up once, and then every program that is to be confined passes
//! through it.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Debug, Write as _};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_process::{Confiner, Guard, Invocation, Keepsake};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tempfile::TempPath;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use crate::aftermath::{Census, Quarantined, quarantine};
use crate::backend::{Backend, line_of};
use crate::causes::Unavailable;
use crate::disk::Host;
use crate::egress::{Egress, OperatorProxy, Refusals};
use crate::environment::{self, Caches, Fetching};
use crate::explain::{self, Standing};
use crate::places::Found;
use crate::plan::{Fittings, Plan, PlanError, TEMPORARY};
use crate::policy::{Consent, Network, Policy, Requirement};
use crate::private::{Private, private_directory};

/// How many commands that failed are remembered; what failed long ago may be tried again.
const MAX_FAILED: usize = 64;
/// How long what a program leaves may lie there before it is looked at.
const LOOK: Duration = Duration::from_secs(2);
/// How many environments of programs commands of a session may go on changing; others are
/// read-only from the next command on.
const MAX_MADE: usize = 64;

/// Where a sandbox keeps its things, and what it is started with.
#[derive(Debug, Clone)]
pub struct Place {
    /// Where sessions have their own directories, caches and what was found out.
    pub cache: PathBuf,
    /// Where things are put that commands left under protected names.
    pub quarantine: PathBuf,
    /// The environment of the session's programs.
    pub environment: Vec<(OsString, OsString)>,
    /// This executable, which is also the steps between a guardian and a confined program.
    pub guard: Guard,
    /// Who serves connections where hosts are listed; without it they are closed.
    pub proxy: Option<Arc<dyn Egress>>,
}

/// The sandbox of a session. Dropping it removes its temporary files.
#[derive(Debug)]
pub struct Sandbox {
    pub(crate) policy: Policy,
    pub(crate) backend: Backend,
    pub(crate) private: Private,
    pub(crate) place: Place,
    caches: PathBuf,
    egress: Option<Arc<dyn Egress>>,
    calls: AtomicU64,
    warnings: Vec<String>,
    /// What was protected when the last program began, and stays so.
    known: Mutex<Found>,
    /// Lines that failed in here, the latest last.
    failed: Mutex<VecDeque<Failed>>,
}

/// A line that failed in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failed {
    line: String,
    /// What the sandbox had to say about it.
    remarks: Vec<String>,
}

/// Why a session cannot have its sandbox.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It was to have one or not to begin.
    #[error("there is no sandbox, and nothing is to run without one: {0}")]
    Unavailable(Unavailable),
    #[error("the sandbox has no place for its files: {0}")]
    Io(#[from] io::Error),
}

/// Why a program was not started.
#[derive(Debug, thiserror::Error)]
pub enum ConfineError {
    #[error("the sandbox could not be made: {0}")]
    Plan(#[from] PlanError),
    #[error("the sandbox could not be made: {0}")]
    Io(#[from] io::Error),
    #[error("`{}` is not visible in the sandbox, so nothing can run there", .0.display())]
    Directory(PathBuf),
}

/// What is told about a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub backend: &'static str,
    pub enabled: bool,
    /// What a full sandbox has and this one has not.
    pub reduced: Vec<&'static str>,
    pub egress: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A program, confined, and what is looked at when it has ended.
#[derive(Debug)]
pub struct Confined {
    pub invocation: Invocation,
    pub call: Call,
}

/// One confined program while it runs. Dropping it closes its way out.
#[derive(Debug)]
pub struct Call {
    sandbox: Arc<Sandbox>,
    plan: Option<Plan>,
    line: String,
    directory: PathBuf,
    before: Census,
    /// Where there was too much to look through, which is told once.
    unseen: Option<PathBuf>,
    refusals: Arc<Refusals>,
    began: Option<TempPath>,
    #[cfg(target_os = "linux")]
    _way_out: Option<crate::way_out::WayOut>,
}

/// How a program ended, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Success {
    Yes,
    No,
}

impl Sandbox {
    /// Finds out what this machine can do and makes the session's directory.
    pub async fn start(policy: Policy, place: Place) -> Result<Self, StartError> {
        let private = Private::new(&place.cache)?;
        let workspace = policy
            .roots
            .first()
            .map_or(Path::new("none"), PathBuf::as_path);
        let caches = place.cache.join("caches").join(key_of(workspace));
        private_directory(&caches)?;
        let caches = caches.canonicalize()?;
        let mut warnings = policy.warnings.clone();
        let egress: Option<Arc<dyn Egress>> = match &policy.network {
            Network::Closed => None,
            Network::Operator { port } => Some(Arc::new(OperatorProxy { port: *port })),
            Network::Domains { .. } => {
                if place.proxy.is_none() {
                    warnings.push("`sandbox.network.allowed_domains` is set and nothing here can tell hosts apart; the network of commands is closed".to_owned());
                }
                place.proxy.clone()
            }
        };
        let mut sandbox = Self {
            policy,
            backend: Backend::None(Unavailable::new("", "")),
            private,
            place,
            caches,
            egress,
            calls: AtomicU64::new(0),
            warnings,
            known: Mutex::default(),
            failed: Mutex::default(),
        };
        let (backend, more) = sandbox.detect().await;
        sandbox.backend = backend;
        sandbox.warnings.extend(more);
        match (&sandbox.backend, sandbox.policy.requirement) {
            (Backend::None(why), Requirement::Required) => {
                Err(StartError::Unavailable(why.clone()))
            }
            _ => Ok(sandbox),
        }
    }

    /// What whoever began the session should know.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.warnings.clone();
        if let Backend::None(why) = &self.backend {
            warnings.push(format!(
                "commands run unconfined, as far as rules permit them: {why}; `sandbox.fail_if_unavailable` refuses to begin instead"
            ));
        }
        warnings
    }

    pub fn report(&self) -> Report {
        Report {
            backend: self.backend.name(),
            enabled: true,
            reduced: self.backend.lacks(),
            egress: match (&self.backend, &self.egress, &self.policy.network) {
                (Backend::None(_), _, _) => "open",
                (_, None, _) | (_, _, Network::Closed) => "closed",
                (_, Some(_), Network::Operator { .. }) => "operator",
                (_, Some(_), Network::Domains { .. }) => "proxy",
            },
            reason: match &self.backend {
                Backend::None(why) => Some(why.to_string()),
                Backend::Bwrap { .. } | Backend::Landlock | Backend::Seatbelt { .. } => None,
            },
        }
    }

    /// What confines programs here, with its version and its layers.
    pub fn described(&self) -> String {
        self.backend.described()
    }

    /// The end of the session: its temporary files go, whoever still holds the sandbox. Nothing can
    /// be confined any more.
    pub fn close(&self) {
        self.private.remove();
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether a command line needs no consent where only the defaults ask for it: it will really
    /// be confined, by a sandbox that lacks nothing.
    pub fn stands_for_consent(&self, line: &str) -> bool {
        self.policy.consent == Consent::Given
            && self.backend.lacks().is_empty()
            && !matches!(self.backend, Backend::None(_))
            && !self.runs_outside(line)
    }

    /// Whether a command line runs unconfined because the operator says so.
    pub fn runs_outside(&self, line: &str) -> bool {
        let search = environment::search(&self.place.environment).and_then(OsStr::to_str);
        self.policy.outside.covers(line, search)
    }

    /// Whether a command line is confined here.
    pub fn confines(&self, line: &str) -> bool {
        !self.backend.is_none() && !self.runs_outside(line)
    }

    /// What the sandbox had to say when this very line failed in it; nothing where it has not.
    pub fn failure_of(&self, line: &str) -> Option<Vec<String>> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let found = failed.iter().rev().find(|failed| failed.line == line);
        found.map(|failed| failed.remarks.clone())
    }

    /// The lines that failed here with what there was to say about them, the latest last.
    pub fn failures(&self) -> Vec<(String, Vec<String>)> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = failed.iter().filter(|failed| !failed.remarks.is_empty());
        failed
            .map(|failed| (failed.line.clone(), failed.remarks.clone()))
            .collect()
    }

    fn remember_failure(&self, line: String, remarks: Vec<String>) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.retain(|failed| failed.line != line);
        if failed.len() >= MAX_FAILED {
            failed.pop_front();
        }
        failed.push_back(Failed { line, remarks });
    }

    /// Where a path really is that programs in the sandbox call so: temporary files are the
    /// session's own, unless the workspace or the home is among them.
    pub fn locate(&self, path: &Path) -> PathBuf {
        match &self.backend {
            Backend::Bwrap { .. } => {}
            Backend::Landlock | Backend::Seatbelt { .. } | Backend::None(_) => {
                return path.to_owned();
            }
        }
        let policy = &self.policy;
        let kept = policy.roots.iter().chain(&policy.places);
        let mut kept = kept.chain([&policy.home]);
        if kept.any(|root| path.starts_with(root) || root.starts_with(path)) {
            return path.to_owned();
        }
        let temporary = self.temporary_of_session();
        let real = temporary.iter().find_map(|(place, real)| {
            let rest = path.strip_prefix(place).ok()?;
            Some(if rest.as_os_str().is_empty() {
                real.clone()
            } else {
                real.join(rest)
            })
        });
        real.unwrap_or_else(|| path.to_owned())
    }

    /// Each place of temporary files, and where those of the session are.
    pub(crate) fn temporary_of_session(&self) -> [(PathBuf, PathBuf); 2] {
        TEMPORARY.map(|(place, name)| (PathBuf::from(place), self.private.path().join(name)))
    }

    /// What is told to the model about its commands.
    pub fn description(&self) -> String {
        if let Backend::None(_) = self.backend {
            return String::new();
        }
        let roots: Vec<String> = self
            .policy
            .roots
            .iter()
            .map(|it| it.display().to_string())
            .collect();
        let network = match self.report().egress {
            "closed" => "There is no network.".to_owned(),
            "operator" => {
                "The network is reached through the proxy in HTTP_PROXY alone.".to_owned()
            }
            _ => match &self.policy.network {
                Network::Domains { allowed, .. } => {
                    format!(
                        "Of the network only these hosts are reached: {}.",
                        allowed.join(", ")
                    )
                }
                Network::Closed | Network::Operator { .. } => String::new(),
            },
        };
        let writable = match roots.as_slice() {
            [] => "Only /tmp can be written.".to_owned(),
            _ => format!("Only {} and /tmp can be written.", roots.join(", ")),
        };
        format!(
            " Commands are confined by a sandbox: {writable} Git hooks, git config, editor and agent \
             configuration in there are read-only, and credentials are hidden. {network} Do not retry \
             what it refuses."
        )
    }

    /// What confined programs may do with a path.
    pub fn standing(&self, path: &Path) -> Result<Standing, ConfineError> {
        let processes = self.backend.processes();
        let found = self.look();
        let plan = self.plan(&found, &self.place.environment, None, None, processes)?;
        let real = crate::policy::real(path);
        Ok(self.policy.standing(&plan, &real))
    }

    /// Confines a program. Where there is no sandbox and the operator permits that, it runs as it
    /// is. Needs a running tokio runtime.
    pub fn confine(self: &Arc<Self>, invocation: Invocation) -> Result<Confined, ConfineError> {
        let directory = invocation.directory.clone();
        let line = line_of(&invocation);
        let found = match self.backend {
            Backend::None(_) => Found::default(),
            Backend::Bwrap { .. } | Backend::Landlock | Backend::Seatbelt { .. } => self.look(),
        };
        if let Some(unseen) = &found.unseen {
            return Err(PlanError::Unseen(unseen.clone()).into());
        }
        let before = Census::of(&found, &self.policy);
        let wrapped = self.wrap(invocation, &self.backend, &found)?;
        self.protect(found);
        Ok(Confined {
            invocation: wrapped.invocation,
            call: Call {
                sandbox: Arc::clone(self),
                plan: wrapped.plan,
                line,
                directory,
                before,
                unseen: None,
                refusals: wrapped.refusals,
                began: wrapped.began,
                #[cfg(target_os = "linux")]
                _way_out: wrapped.way_out,
            },
        })
    }

    /// What is protected at this moment.
    pub(crate) fn look(&self) -> Found {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.clone();
        Found::look(&self.policy, &known, &Host)
    }

    fn protect(&self, found: Found) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let made = std::mem::take(&mut known.made);
        *known = Found { made, ..found };
    }

    /// Leaves environments that a command made to the commands of this session.
    fn keep(&self, made: Vec<PathBuf>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for place in made {
            if known.made.len() < MAX_MADE && !known.made.contains(&place) {
                known.made.push(place);
            }
        }
    }

    /// A plan with what this session has.
    pub(crate) fn plan(
        &self,
        found: &Found,
        environment: &[(OsString, OsString)],
        egress: Option<&Path>,
        began: Option<&Path>,
        processes: crate::plan::Processes,
    ) -> Result<Plan, ConfineError> {
        let executable = match &self.place.guard {
            Guard::ReExec(path) => path.clone(),
            Guard::None => std::env::current_exe()?,
        };
        let program = self.private.program(&executable)?;
        let packages = environment::packages(environment, &self.policy.home, self.fetching());
        let fittings = Fittings {
            private: self.private.path(),
            program: &program,
            caches: &self.caches,
            packages: &packages,
            egress,
            began,
            processes,
        };
        Ok(Plan::new(&self.policy, found, &fittings, &Host)?)
    }

    pub(crate) fn fetching(&self) -> Fetching {
        match &self.egress {
            None => Fetching::Impossible,
            Some(_) => Fetching::from(&self.policy.network),
        }
    }

    pub(crate) fn caches_of(&self, backend: &Backend) -> Caches {
        match backend {
            Backend::Bwrap { .. } => Caches::Own {
                network: self.fetching(),
            },
            Backend::Landlock | Backend::Seatbelt { .. } | Backend::None(_) => Caches::TheUsers,
        }
    }

    pub(crate) fn egress(&self) -> Option<&Arc<dyn Egress>> {
        self.egress.as_ref()
    }

    /// A path of its own for each call.
    pub(crate) fn next_socket(&self) -> PathBuf {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        self.private.path().join(format!("egress-{call}"))
    }
}

/// Hears what was taken away of what a program made.
pub type Told = Arc<dyn Fn(String) + Send + Sync>;

/// The sandbox as it confines programs that are not commands: servers and hooks.
#[derive(Clone)]
pub struct Confining {
    sandbox: Arc<Sandbox>,
    told: Told,
}

impl Confining {
    pub fn new(sandbox: Arc<Sandbox>, told: Told) -> Self {
        Self { sandbox, told }
    }
}

impl Debug for Confining {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Confining")
    }
}

impl Confiner for Confining {
    fn confine(&self, invocation: Invocation) -> io::Result<(Invocation, Keepsake)> {
        // Such a program outlives the moment: what is not there yet could not be hidden from it.
        for own in self.sandbox.policy.own.iter().filter(|own| !own.exists()) {
            // What cannot be made here is not made by others of us either.
            let _ = private_directory(own);
        }
        let confined = self.sandbox.confine(invocation).map_err(io::Error::other)?;
        let tidied = Tidied {
            call: Arc::new(Mutex::new(confined.call)),
            told: Arc::clone(&self.told),
        };
        let watch = Handle::try_current().ok().map(|runtime| {
            let tidied = tidied.clone();
            AbortOnDropHandle::new(runtime.spawn(tidied.watch()))
        });
        let kept = Keepsake::new(Watched {
            _watch: watch,
            tidied,
        });
        Ok((confined.invocation, kept))
    }
}

/// Looks at what a program leaves.
#[derive(Clone)]
struct Tidied {
    call: Arc<Mutex<Call>>,
    told: Told,
}

impl Tidied {
    /// A server may run for days.
    async fn watch(self) {
        loop {
            tokio::time::sleep(LOOK).await;
            let tidied = self.clone();
            // If the place for that is gone, the program is ending.
            let _ = tokio::task::spawn_blocking(move || tidied.look()).await;
        }
    }

    fn look(&self) {
        let mut call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
        for line in call.look() {
            (self.told)(line);
        }
    }
}

/// A program that is looked after, now and then and when it has ended.
struct Watched {
    _watch: Option<AbortOnDropHandle<()>>,
    tidied: Tidied,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.tidied.look();
    }
}

impl Call {
    /// Looks at what the program has left so far, and takes away what nobody outside may run or
    /// trust. May be called while it runs, and again.
    pub fn look(&mut self) -> Vec<String> {
        if self.sandbox.backend.is_none() {
            return Vec::new();
        }
        let policy = &self.sandbox.policy;
        let found = self.sandbox.look();
        let census = Census::of(&found, policy);
        let mut offences = census.offences_since(&self.before, policy);
        let search = environment::search(&self.sandbox.place.environment);
        let made = census.environments_since(&self.before, search);
        offences.retain(|offence| !made.contains(offence));
        self.sandbox.keep(made);
        let moved = quarantine(&offences, &self.sandbox.place.quarantine);
        // What could not be moved is told once.
        if moved.iter().any(|it| it.to.is_none()) {
            self.before = Census::of(&self.sandbox.look(), policy);
        }
        let mut lines: Vec<String> = moved.iter().map(told).collect();
        if let Some(unseen) = found.unseen
            && self.unseen.as_ref() != Some(&unseen)
        {
            lines.push(format!(
                "sandbox: the command left too much in `{}` and what follows to be looked through for places that programs outside run or trust; look there before you run anything in it. No command runs until there is less",
                unseen.display()
            ));
            self.unseen = Some(unseen);
        }
        lines
    }

    /// What is to be said when the program has ended with this output.
    pub fn finish(mut self, success: Success, output: &str) -> Vec<String> {
        let mut lines = self.look();
        let refused = self.refusals.noted();
        lines.extend(refused.into_iter().map(|line| format!("sandbox: {line}")));
        if success == Success::Yes {
            return lines;
        }
        if let Some(plan) = &self.plan {
            let policy = &self.sandbox.policy;
            lines.extend(explain::lines(policy, plan, &self.directory, output));
        }
        if !self.sandbox.backend.is_none() {
            let line = std::mem::take(&mut self.line);
            self.sandbox.remember_failure(line, lines.clone());
        }
        lines
    }

    /// Why the program never began, where that is how it ended.
    pub fn start_failure(&self, success: Success, output: &str) -> Option<String> {
        if success == Success::Yes || self.sandbox.backend.is_none() {
            return None;
        }
        match &self.began {
            // A mark is there once the program begins, and nobody can take it away.
            Some(mark) if mark.metadata().is_ok_and(|mark| mark.len() > 0) => None,
            Some(_) => {
                let said = output.lines().next().unwrap_or("it ended without a word");
                Some(said.to_owned())
            }
            None => self.sandbox.backend.start_failure(output),
        }
    }
}

fn told(moved: &Quarantined) -> String {
    let from = moved.from.display();
    match &moved.to {
        Some(to) => format!(
            "sandbox: `{from}` was created, which programs outside run or trust; it was moved to `{}`",
            to.display()
        ),
        None => format!(
            "sandbox: `{from}` was created, which programs outside run or trust, and it could not be moved away; look at it"
        ),
    }
}

/// A name for a workspace that no other has.
fn key_of(workspace: &Path) -> String {
    let digest = Sha256::digest(workspace.as_os_str().as_bytes());
    digest.iter().take(16).fold(String::new(), |mut key, byte| {
        // Writing to a text cannot fail.
        let _ = write!(key, "{byte:02x}");
        key
    })
}
