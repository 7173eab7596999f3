//! The configuration of a run: the settings of all scopes, the router file, and trust.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_images::Limits;
use caliban_model::ProviderKind;
use caliban_providers::Wiretap;
use caliban_settings::variables::{Environment, check, names};
use caliban_settings::write::Writer;
use caliban_settings::{
    LoadRequest, LoadedRouterFile, LoadedSettings, Locations, Platform, ProviderBlock,
    RouterConfig, RouterSource, Scope, Settings, Sources, Trust, TrustDecision, TrustError,
    TrustStore, WorkspaceFiles, find_router_file, load, load_router_file, notice, project_of,
};

use crate::child_environment::{Child, child_environment};
use crate::error::{LaunchError, Problem};
use crate::options::{Extent, SettingsEnvironment, SettingsOptions};
use crate::plugins::PluginCell;
use crate::provider::KeyHelpersInUse;
use crate::surroundings::Process;

/// Everything that was configured, and by whom.
#[derive(Debug, Clone)]
pub struct Configuration {
    pub process: Process,
    pub locations: Locations,
    /// Canonical.
    pub workspace: PathBuf,
    /// What was asked for, to ask again when files change.
    pub request: LoadRequest,
    pub loaded: LoadedSettings,
    pub router: Option<LoadedRouterFile>,
    /// The programs that are asked for keys, in this configuration and its copies.
    pub(crate) key_helpers: KeyHelpersInUse,
    /// Who listens to what is sent to models and answered.
    pub(crate) wiretap: Option<Arc<dyn Wiretap>>,
    pub(crate) plugins: PluginCell,
}

/// Where caliban keeps things for this user.
pub fn locations(process: &Process) -> Locations {
    Locations::new(
        Platform::current(),
        process.home.clone(),
        process.environment.reader(),
    )
}

/// The directory a run works in: the one named, else the current one.
pub fn workspace(named: Option<&Path>, process: &Process) -> Result<PathBuf, LaunchError> {
    let path = named.unwrap_or(Path::new("."));
    let unusable = |reason: &str| format!("workspace `{}`: {reason}", path.display());
    let real = process
        .current_directory
        .join(path)
        .canonicalize()
        .map_err(|error| Problem::caused(unusable(&error.to_string()), error))
        .map_err(LaunchError::Configuration)?;
    if !real.is_dir() {
        return Err(LaunchError::configuration(unusable(
            "it is not a directory",
        )));
    }
    Ok(real)
}

impl Configuration {
    /// Reads everything. Nothing is executed: what the workspace may set is decided by trust.
    pub fn load(
        options: &SettingsOptions,
        workspace: PathBuf,
        mut process: Process,
    ) -> Result<Self, LaunchError> {
        let locations = locations(&process);
        let environment = &process.environment;
        check(environment)?;
        let is_bare = options.extent == Extent::Bare;
        let found = if is_bare && options.router_file.is_none() {
            None
        } else {
            let named = options.router_file.as_deref();
            find_router_file(named, environment, &workspace, &locations)
        };
        let sources = match &options.sources {
            Some(sources) => sources.clone(),
            None if is_bare => Sources::none(),
            None => Sources::all(),
        };
        let trust = match options.trust {
            TrustDecision::Recorded if environment.is_on(names::CALIBAN_TRUST_WORKSPACE) => {
                TrustDecision::Granted
            }
            decision => decision,
        };
        let request = LoadRequest {
            router_file: found
                .as_ref()
                .filter(|found| found.source == RouterSource::Project)
                .map(|found| found.path.clone()),
            overlay: options.overlay.clone(),
            sources,
            trust,
            foreign: options.foreign.clone(),
            working_directory: workspace.clone(),
            ..LoadRequest::new(locations.clone(), project_of(&workspace, &locations))
        };
        let loaded = load(&request)?;
        let router = found
            .map(|found| load_router_file(&found, loaded.trust))
            .transpose()?;
        match options.environment {
            SettingsEnvironment::Children => {}
            SettingsEnvironment::WholeRun => {
                process.environment = process.environment.with(loaded.settings.env.clone());
            }
        }
        Ok(Self {
            process,
            locations,
            workspace,
            request,
            loaded,
            router,
            key_helpers: KeyHelpersInUse::default(),
            wiretap: None,
            plugins: PluginCell::default(),
        })
    }

    /// A workspace without any settings, for looking at what else there is where they cannot be
    /// used.
    pub fn empty(workspace: PathBuf, process: Process) -> Self {
        let locations = locations(&process);
        Self {
            loaded: LoadedSettings::nothing(workspace.clone()),
            request: LoadRequest {
                sources: Sources::none(),
                ..LoadRequest::new(locations.clone(), &workspace)
            },
            process,
            locations,
            workspace,
            router: None,
            key_helpers: KeyHelpersInUse::default(),
            wiretap: None,
            plugins: PluginCell::default(),
        }
    }

    /// How variables are read.
    pub fn environment(&self) -> &Environment {
        &self.process.environment
    }

    /// The directory whose `.caliban` counts: the workspace, or one above it in its repository.
    pub fn project(&self) -> &Path {
        &self.loaded.workspace
    }

    pub fn settings(&self) -> &Settings {
        &self.loaded.settings
    }

    pub fn is_trusted(&self) -> bool {
        self.loaded.trust == Trust::Trusted
    }

    /// Trusts the workspace with its files as they are now.
    pub fn grant_trust(&self) -> Result<(), TrustError> {
        let router = self.request.router_file.as_deref();
        let files = WorkspaceFiles::read(self.project(), router).starting_in(&self.workspace);
        TrustStore::new(self.locations.workspace_trust()).grant(&files)
    }

    /// The file that a scope's rules are written to: the older one as long as it is there, because
    /// it is read instead of the settings.
    pub fn rule_file(&self, scope: Scope) -> Option<PathBuf> {
        match self.locations.legacy(scope, self.project()) {
            Some(files) if files.permissions.is_file() => Some(files.permissions),
            Some(_) | None => Some(self.locations.settings(scope, self.project())?.toml),
        }
    }

    /// How large images are sent.
    pub fn image_limits(&self) -> Limits {
        let Some(router) = &self.router else {
            return Limits::DEFAULT;
        };
        let images = router.file.images;
        Limits {
            max_bytes: images.max_bytes,
            longest_edge: images.downscale_target,
        }
    }

    /// The scopes that contributed something.
    pub fn sources(&self) -> Vec<String> {
        let mut scopes: Vec<Scope> = self
            .loaded
            .files
            .iter()
            .filter(|file| file.loaded)
            .map(|file| file.scope)
            .collect();
        scopes.dedup();
        scopes.iter().map(ToString::to_string).collect()
    }

    /// What the user should know, each thing once.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.loaded.warnings.clone();
        let mut ignored = self.loaded.ignored.clone();
        if let Some(router) = &self.router {
            warnings.extend(router.warnings.iter().cloned());
            ignored.extend(router.ignored.iter().cloned());
        }
        warnings.extend(notice(self.project(), &ignored));
        warnings
    }

    /// Fails where somebody relies on a part that this version does not have: a run would do
    /// something else than it was told to.
    pub(crate) fn check_built(&self) -> Result<(), LaunchError> {
        let router = self
            .router
            .as_ref()
            .and_then(|router| router.refusal.clone());
        match self.loaded.unbuilt.clone().or(router) {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Who changes settings files.
    pub fn writer(&self) -> Writer {
        Writer::new(self.locations.settings_locks())
    }

    /// The environment of child processes: without secrets, with what the settings add.
    pub fn child_environment(&self) -> Vec<(OsString, OsString)> {
        self.environment_of(Child::Stranger)
    }

    /// The environment of a program that fetches a key.
    pub(crate) fn helper_environment(&self) -> Vec<(OsString, OsString)> {
        self.environment_of(Child::KeyHelper)
    }

    fn environment_of(&self, child: Child) -> Vec<(OsString, OsString)> {
        let hidden = self.key_variables();
        let variables = self.process.variables.iter().cloned();
        child_environment(child, variables, &hidden, &self.settings().env)
    }

    /// The variables that the router file keeps keys in.
    pub fn key_variables(&self) -> Vec<&str> {
        self.router
            .iter()
            .flat_map(|router| router.file.provider.values())
            .filter_map(|block| block.api_key_env.as_deref())
            .collect()
    }

    /// The routes that are configured and where: those of the router file, else those of the
    /// settings.
    pub fn routes(&self) -> Result<Option<(RouterConfig, String)>, LaunchError> {
        if let Some(loaded) = &self.router
            && let Some(router) = &loaded.file.router
        {
            return Ok(Some((router.clone(), loaded.path.display().to_string())));
        }
        let Some(router) = self.settings().router.clone() else {
            return Ok(None);
        };
        // It was checked with its place when it was read.
        let router = serde_json::from_value(router.into())
            .map_err(|error| Problem::caused(format!("`router`: {error}"), error))
            .map_err(LaunchError::Configuration)?;
        Ok(Some((router, "the settings".to_owned())))
    }

    /// What the router file says about reaching a provider.
    pub fn provider_block(&self, kind: ProviderKind) -> Option<&ProviderBlock> {
        let mut blocks = self.router.as_ref()?.file.provider.iter();
        blocks
            .find(|(id, _)| id.kind() == kind)
            .map(|(_, block)| block)
    }
}
