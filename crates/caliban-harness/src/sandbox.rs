//! The sandbox of a run: from the settings to what confines its programs, and what its own tools
//! make of that.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_agent::{Boundary, Closed, Event, Extent, ReadGuard};
use caliban_permissions::AuditLog;
use caliban_process::Confiner;
use caliban_sandbox::{Confining, Place, Policy, Sandbox, Surroundings};
use caliban_session::SandboxFacts;

use crate::checkpoints::kept_files;
use crate::choosing::further_directories;
use crate::configuration::Configuration;
use crate::egress::Domains;
use crate::error::{LaunchError, Problem};
use crate::hosts::HostQuestions;
use crate::notice_sink::NoticeSink;
use crate::options::ToolOptions;

/// The places of the XDG specification, which settings may name.
const XDG: [&str; 5] = [
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// The sandbox that the settings ask for; none where they do not.
pub async fn start_sandbox(
    options: &ToolOptions,
    configuration: &Configuration,
    hosts: &Arc<HostQuestions>,
) -> Result<Option<Arc<Sandbox>>, LaunchError> {
    let settings = &configuration.settings().sandbox;
    if settings.enabled != Some(true) {
        return Ok(None);
    }
    let policy = sandbox_policy(options, configuration)?;
    let cache = configuration.locations.cache_dir().join("sandbox");
    let sandbox = make_sandbox(policy, configuration, cache, hosts).await?;
    Ok(Some(Arc::new(sandbox)))
}

/// A sandbox of this policy that keeps its things in `cache`.
pub async fn make_sandbox(
    policy: Policy,
    configuration: &Configuration,
    cache: PathBuf,
    hosts: &Arc<HostQuestions>,
) -> Result<Sandbox, LaunchError> {
    let place = Place {
        cache,
        quarantine: configuration.locations.data_dir().join("quarantine"),
        environment: configuration.child_environment(),
        guard: configuration.process.guard.clone(),
        proxy: Domains::listed(
            &configuration.settings().sandbox.network,
            &configuration.process.diagnostics,
            configuration
                .settings()
                .permissions
                .audits()
                .then(|| AuditLog::new(configuration.locations.audit_log())),
            hosts,
        )?,
    };
    let started = Sandbox::start(policy, place).await;
    started.map_err(|error| LaunchError::Configuration(Problem::from_error(error)))
}

/// What the settings permit confined programs, whether or not they are to be confined.
pub fn sandbox_policy(
    options: &ToolOptions,
    configuration: &Configuration,
) -> Result<Policy, LaunchError> {
    let roots = further_roots(options, configuration, configuration.workspace.clone())?;
    policy_for(&configuration.settings().sandbox, &roots, configuration)
}

/// A root and the further ones of a session.
fn further_roots(
    options: &ToolOptions,
    configuration: &Configuration,
    first: PathBuf,
) -> Result<Vec<PathBuf>, LaunchError> {
    let further = further_directories(options, configuration)?;
    let further = further.iter().filter_map(|path| path.canonicalize().ok());
    Ok([first].into_iter().chain(further).collect())
}

fn policy_for(
    settings: &caliban_settings::Sandbox,
    roots: &[PathBuf],
    configuration: &Configuration,
) -> Result<Policy, LaunchError> {
    let locations = &configuration.locations;
    let own = [
        locations.config_dir(),
        locations.data_dir(),
        locations.state_dir(),
        locations.cache_dir(),
        locations.runtime_dir(),
        &kept_files(configuration),
    ];
    let variable = |name: &str| {
        let value = configuration.environment().text(name)?;
        Some((name.to_owned(), value))
    };
    let variables: Vec<(String, String)> = XDG.iter().filter_map(|name| variable(name)).collect();
    let surroundings = Surroundings {
        roots,
        home: locations.home(),
        own: &own.map(Path::to_owned),
        variables: &variables,
    };
    let mut policy = Policy::new(settings, &surroundings)
        .map_err(|error| LaunchError::Configuration(Problem::from_error(error)))?;
    policy.shown = configuration.plugins.roots();
    Ok(policy)
}

/// The sandbox of a sub-agent that works in a worktree: it writes there and nowhere else.
pub(crate) async fn worktree_sandbox(
    options: &ToolOptions,
    configuration: &Configuration,
    worktree: &Path,
    hosts: &Arc<HostQuestions>,
) -> Result<Option<Arc<Sandbox>>, LaunchError> {
    let mut settings = configuration.settings().sandbox.clone();
    if settings.enabled != Some(true) {
        return Ok(None);
    }
    if let Some(allowed) = &mut settings.filesystem.allow_write {
        allowed.push(worktree.display().to_string());
    }
    let roots = further_roots(options, configuration, worktree.to_owned())?;
    let policy = policy_for(&settings, &roots, configuration)?;
    let cache = configuration.locations.cache_dir().join("sandbox");
    let sandbox = make_sandbox(policy, configuration, cache, hosts).await?;
    Ok(Some(Arc::new(sandbox)))
}

/// What is told of it when a session begins.
pub(crate) fn facts(sandbox: Option<&Arc<Sandbox>>) -> SandboxFacts {
    let Some(sandbox) = sandbox else {
        return SandboxFacts::default();
    };
    let report = sandbox.report();
    SandboxFacts {
        backend: report.backend.to_owned(),
        enabled: report.enabled,
        reduced: report.reduced.into_iter().map(str::to_owned).collect(),
        egress: report.egress.to_owned(),
        reason: report.reason,
    }
}

/// The sandbox for programs that are not commands.
pub fn confiner(
    sandbox: Option<&Arc<Sandbox>>,
    notice_sink: &NoticeSink,
) -> Option<Arc<dyn Confiner>> {
    let sandbox = sandbox.map(Arc::clone)?;
    let sink = notice_sink.clone();
    let told = Arc::new(move |message| {
        sink.say(Event::Notice {
            subtype: "sandbox".into(),
            message,
        });
    });
    Some(Arc::new(Confining::new(sandbox, told)))
}

/// What file tools keep to.
#[derive(Debug)]
pub(crate) struct Bounds(pub(crate) Arc<Sandbox>);

impl Boundary for Bounds {
    fn locate(&self, path: &Path) -> PathBuf {
        self.0.locate(path)
    }

    fn hides(&self, real: &Path) -> Option<&'static str> {
        self.0.policy().hides(real)
    }

    fn fixes(&self, real: &Path) -> Option<&'static str> {
        self.0.policy().fixes(real)
    }
}

/// Reading as rules permit it, without what the sandbox hides.
#[derive(Debug)]
pub(crate) struct WithoutHidden {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) rules: Arc<dyn ReadGuard>,
}

impl ReadGuard for WithoutHidden {
    fn beneath(&self, directory: &Path) -> Extent {
        let policy = self.sandbox.policy();
        let mut hidden = policy.hidden.iter();
        if hidden.any(|it| it.starts_with(directory)) || policy.hides(directory).is_some() {
            return Extent::Something;
        }
        self.rules.beneath(directory)
    }

    fn by_name(&self, given: &Path, real: &Path) -> Result<(), Closed> {
        match self.sandbox.policy().hides(real) {
            Some(setting) => Err(Closed(format!(
                "`{}` is closed: `{setting}` names it",
                real.display()
            ))),
            None => self.rules.by_name(given, real),
        }
    }

    fn by_identity(&self, opened: &Metadata) -> Result<(), Closed> {
        self.rules.by_identity(opened)
    }
}
