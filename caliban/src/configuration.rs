//! The configuration of a run: the settings of all scopes, the router file, and trust.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use caliban_harness::child_environment;
use caliban_model::ProviderKind;
use caliban_settings::variables::{Environment, names};
use caliban_settings::{
    LoadRequest, LoadedRouterFile, LoadedSettings, Locations, Platform, ProviderBlock, ProviderId,
    RouterSource, Scope, Settings, Sources, Trust, TrustDecision, find_router_file, load,
    load_router_file, notice,
};

use crate::args::SettingsArgs;
use crate::exit::Failure;

/// Everything that was configured, and by whom.
#[derive(Debug)]
pub(crate) struct Configuration<'a> {
    pub(crate) environment: Environment<'a>,
    pub(crate) locations: Locations,
    /// Canonical.
    pub(crate) workspace: PathBuf,
    /// What was asked for, to ask again when files change.
    pub(crate) request: LoadRequest,
    pub(crate) loaded: LoadedSettings,
    pub(crate) router: Option<LoadedRouterFile>,
}

/// Where caliban keeps things for this user.
pub(crate) fn locations(environment: &Environment<'_>) -> Locations {
    let home = environment
        .text("HOME")
        .map(PathBuf::from)
        .or_else(std::env::home_dir)
        .unwrap_or_else(std::env::temp_dir);
    Locations::new(Platform::current(), home, environment.reader())
}

/// The directory a run works in: the one named, else the current one.
pub(crate) fn workspace(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = named.unwrap_or(Path::new("."));
    let unusable =
        |reason: String| Failure::Config(format!("workspace `{}`: {reason}", path.display()));
    let real = path
        .canonicalize()
        .map_err(|error| unusable(error.to_string()))?;
    if !real.is_dir() {
        return Err(unusable("it is not a directory".to_owned()));
    }
    Ok(real)
}

impl<'a> Configuration<'a> {
    /// Reads everything. Nothing is executed: what the workspace may set is decided by trust.
    pub(crate) fn load(
        args: &SettingsArgs,
        workspace: PathBuf,
        environment: Environment<'a>,
    ) -> Result<Self, Failure> {
        let locations = locations(&environment);
        let found = if args.bare && args.config.is_none() {
            None
        } else {
            find_router_file(args.config.as_deref(), &environment, &workspace, &locations)
        };
        let sources = match &args.setting_sources {
            Some(list) => list.parse()?,
            // What the operator of the machine demands holds for scripts, too.
            None if args.bare => Sources::only(Scope::Managed),
            None => Sources::all(),
        };
        let trust = if args.trust_workspace || environment.is_set(names::CALIBAN_TRUST_WORKSPACE) {
            TrustDecision::Granted
        } else {
            TrustDecision::Recorded
        };
        let request = LoadRequest {
            router_file: found
                .as_ref()
                .filter(|found| found.source == RouterSource::Project)
                .map(|found| found.path.clone()),
            overlay: args.settings.clone(),
            sources,
            trust,
            foreign: args.foreign.clone(),
            ..LoadRequest::new(locations.clone(), &workspace)
        };
        let loaded = load(&request)?;
        let router = found
            .map(|found| load_router_file(&found, loaded.trust))
            .transpose()?;
        Ok(Self {
            environment,
            locations,
            workspace,
            request,
            loaded,
            router,
        })
    }

    /// A workspace without any settings.
    pub(crate) fn empty(workspace: PathBuf, environment: Environment<'a>) -> Result<Self, Failure> {
        let locations = locations(&environment);
        let request = LoadRequest {
            // The overlay is no file, and there is none.
            sources: Sources::only(Scope::Cli),
            ..LoadRequest::new(locations.clone(), &workspace)
        };
        Ok(Self {
            loaded: load(&request)?,
            environment,
            locations,
            workspace,
            request,
            router: None,
        })
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.loaded.settings
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.loaded.trust == Trust::Trusted
    }

    /// The scopes that contributed something.
    pub(crate) fn sources(&self) -> Vec<String> {
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
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.loaded.warnings.clone();
        let mut ignored = self.loaded.ignored.clone();
        if let Some(router) = &self.router {
            warnings.extend(router.warnings.iter().cloned());
            ignored.extend(router.ignored.iter().cloned());
        }
        warnings.extend(notice(&self.workspace, &ignored));
        warnings
    }

    /// The environment of child processes: without keys, with what the settings add.
    pub(crate) fn child_environment(&self) -> Vec<(OsString, OsString)> {
        let hidden = self.key_variables();
        child_environment(std::env::vars_os(), &hidden, &self.settings().env)
    }

    /// The variables that the router file keeps keys in.
    pub(crate) fn key_variables(&self) -> Vec<&str> {
        self.router
            .iter()
            .flat_map(|router| router.file.provider.values())
            .filter_map(|block| block.api_key_env.as_deref())
            .collect()
    }

    /// What the router file says about reaching a provider.
    pub(crate) fn provider_block(&self, kind: ProviderKind) -> Option<&ProviderBlock> {
        let id = match kind {
            ProviderKind::Anthropic => ProviderId::Anthropic,
            ProviderKind::OpenAi => ProviderId::OpenAi,
            ProviderKind::Google => ProviderId::Google,
            ProviderKind::Ollama => ProviderId::Ollama,
        };
        self.router.as_ref()?.file.provider.get(&id)
    }
}
