//! Builds the provider that options and the configuration ask for.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use caliban_agent::ModelOverrides;
use caliban_model::{Credentials, Provider, ProviderKind, Purpose, StaticKey, UnknownProvider};
use caliban_providers::cassette::{Masking, Recording, Replay};
use caliban_providers::{Connection, Refresh, Timeouts};
use caliban_router::{Hedging, RetryPolicy, SharedStates};
use caliban_sessions::SessionState;
use caliban_settings::key_helper::{HelperKey, KeyHelpers, Surroundings, ttl_override};
use caliban_settings::variables::{Environment, names};
use caliban_settings::{ModelChoice, RefreshInterval, Scope};

use crate::agent_settings::model_for;
use crate::configuration::Configuration;
use crate::credential_programs::CredentialPrograms;
use crate::error::{LaunchError, Problem};
use crate::keys::kept_key;
use crate::options::{Cassette, ModelOptions};
use crate::routes::{Asked, Routes, Vacancies};
use crate::surroundings::Process;

/// Who answers, and with which model.
#[derive(Debug)]
pub struct Chosen {
    pub provider: Arc<dyn Provider>,
    pub model: String,
    pub fallback_model: Option<String>,
    /// The models of purposes that have their own; as the settings say where nothing is known.
    pub overrides: Option<ModelOverrides>,
    /// What the user should know about it.
    pub warnings: Vec<String>,
}

/// The options of a run that continues a session: what they leave open is as it was.
pub(crate) fn continued(options: &ModelOptions, earlier: Option<&SessionState>) -> ModelOptions {
    let mut options = options.clone();
    let Some(state) = earlier else {
        return options;
    };
    let kind = state.provider.parse::<ProviderKind>().ok();
    if options
        .model
        .as_deref()
        .and_then(ProviderKind::of_model)
        .is_none()
    {
        options.provider = options.provider.or(kind);
    }
    if options.model.is_none() && kind.is_some() && options.provider == kind {
        options.model = Some(state.model.clone());
    }
    options
}

/// The option wins over the variable, which wins over the model that an option names, where its
/// name tells whose it is; that wins over the settings, which win over the default.
pub fn kind(
    named: Option<ProviderKind>,
    model: Option<&str>,
    configuration: &Configuration,
) -> Result<ProviderKind, LaunchError> {
    if let Some(kind) = named {
        return Ok(kind);
    }
    if let Some(name) = configuration.environment().text(names::CALIBAN_PROVIDER) {
        return name.parse().map_err(|error: UnknownProvider| {
            let message = format!("`{}`: {error}", names::CALIBAN_PROVIDER);
            LaunchError::Configuration(Problem::caused(message, error))
        });
    }
    let configured = configuration.settings().model.as_ref();
    Ok(model
        .and_then(ProviderKind::of_model)
        .or_else(|| configured.and_then(provider_of))
        .unwrap_or(ProviderKind::Anthropic))
}

/// The provider of a model in the settings: named, or told by the model's name.
pub(crate) fn provider_of(model: &ModelChoice) -> Option<ProviderKind> {
    model
        .provider()
        .or_else(|| ProviderKind::of_model(model.name()))
}

/// The option wins over the settings, unless those are about another provider's model.
pub fn model(named: Option<&str>, kind: ProviderKind, configuration: &Configuration) -> String {
    let settings = configuration.settings();
    let configured = settings
        .model
        .as_ref()
        .filter(|model| provider_of(model).is_none_or(|provider| provider == kind))
        .map(ModelChoice::name);
    let pinned = model_for(Purpose::MainLoop, settings);
    named
        .or(pinned)
        .or(configured)
        .unwrap_or_else(|| default_model(kind, configuration))
        .to_owned()
}

/// Programs that were written for Claude Code know Azure as a place where Claude's models are.
fn default_model(kind: ProviderKind, configuration: &Configuration) -> &'static str {
    match (kind, &configuration.request.foreign) {
        (ProviderKind::Azure, Some(_)) => ProviderKind::Anthropic.default_model(),
        _ => kind.default_model(),
    }
}

/// Where a provider's key comes from.
#[derive(Debug)]
pub enum KeySource {
    /// A program that prints it, and the scope that names the program.
    Program {
        scope: Scope,
        credentials: Arc<dyn Credentials>,
    },
    Variable,
    Keyring(Arc<dyn Credentials>),
    /// It was given at the screen, where there is no keyring.
    File(Arc<dyn Credentials>),
    Absent,
}

impl KeySource {
    /// What asks for the key; nothing where the environment is looked at.
    pub fn credentials(self) -> Option<Arc<dyn Credentials>> {
        match self {
            Self::Program { credentials, .. }
            | Self::Keyring(credentials)
            | Self::File(credentials) => Some(credentials),
            Self::Variable | Self::Absent => None,
        }
    }
}

/// Finds out where the key comes from. No program is run yet.
pub fn key_source(
    kind: ProviderKind,
    configuration: &Configuration,
) -> Result<KeySource, LaunchError> {
    if let Some(key) = helper(kind, configuration)? {
        let credentials = Arc::new(key);
        configuration.key_helpers.add(kind, &credentials);
        let provenance = &configuration.loaded.provenance;
        return Ok(KeySource::Program {
            // Whose it is not known counts as the workspace's, which is trusted least.
            scope: provenance.of("api_key_helper").unwrap_or(Scope::Project),
            credentials,
        });
    }
    let mut names = kind.key_variables().iter();
    if names.any(|name| variable(kind, configuration, name).is_some()) {
        return Ok(KeySource::Variable);
    }
    if let Some(credentials) = keyring(kind, configuration.environment()) {
        return Ok(KeySource::Keyring(credentials));
    }
    Ok(match kept_key(kind, configuration) {
        Some(key) => {
            let remedy = format!(
                "the key in {} was refused: give another one with `/login`",
                configuration.locations.provider_keys().display()
            );
            KeySource::File(Arc::new(StaticKey::new(key).with_remedy(remedy)))
        }
        None => KeySource::Absent,
    })
}

/// The address that was configured instead of the provider's own.
pub fn base_url(kind: ProviderKind, configuration: &Configuration) -> Option<String> {
    variable(kind, configuration, kind.base_url_variable()).filter(|url| !url.trim().is_empty())
}

/// A provider's variable, with what the router file says about it.
fn variable(kind: ProviderKind, configuration: &Configuration, name: &str) -> Option<String> {
    let environment = configuration.environment();
    let block = configuration.provider_block(kind);
    let key_variable = block.and_then(|block| block.api_key_env.as_deref());
    if kind.key_variables().contains(&name) && key_variable.is_some() {
        return environment.text(key_variable?);
    }
    let value = environment.text(name);
    if name == kind.base_url_variable() {
        return value.or_else(|| block?.base_url.clone());
    }
    value
}

/// The provider, asked for beta features where it has such.
pub fn connect(
    kind: ProviderKind,
    betas: &[String],
    configuration: &Configuration,
) -> Result<Arc<dyn Provider>, LaunchError> {
    let credentials = key_source(kind, configuration)?.credentials();
    connect_with(kind, credentials, betas, configuration)
}

/// The same with these keys; without any, those of the environment, which it must have.
pub fn connect_with(
    kind: ProviderKind,
    credentials: Option<Arc<dyn Credentials>>,
    betas: &[String],
    configuration: &Configuration,
) -> Result<Arc<dyn Provider>, LaunchError> {
    let block = configuration.provider_block(kind);
    let key_variable = block.and_then(|block| block.api_key_env.as_deref());
    // It is named as the source of its key where that is refused.
    let named = key_variable.filter(|_| !kind.is_cloud()).and_then(|name| {
        let key = configuration.environment().text(name)?.trim().to_owned();
        let remedy = format!("set `{name}` to a valid key");
        (!key.is_empty()).then(|| StaticKey::new(key).with_remedy(remedy))
    });
    let credentials = credentials.or_else(|| Some(Arc::new(named?)));
    let connection = Connection {
        timeouts: timeouts(configuration.environment())?,
        openai_api: block.and_then(|block| block.api),
        credentials,
        betas: betas.to_vec(),
        base_url: block.and_then(|block| block.base_url.clone()),
        options: block.map(|block| block.extra.clone()).unwrap_or_default(),
        refresh: refresh(kind, configuration)?,
        programs: kind
            .is_cloud()
            .then(|| Arc::new(CredentialPrograms::new(configuration)) as _),
        tap: configuration.wiretap.clone(),
    };
    let lookup = |name: &str| variable(kind, configuration, name);
    caliban_providers::connect(kind, &lookup, &connection).map_err(|error| {
        LaunchError::Configuration(match key_variable {
            Some(variable) => Problem::caused(
                format!("{error} (`api_key_env` names `{variable}` instead)"),
                error,
            ),
            None => Problem::from_error(error),
        })
    })
}

/// How credentials of a cloud are renewed: variables come before the settings.
fn refresh(kind: ProviderKind, configuration: &Configuration) -> Result<Refresh, LaunchError> {
    let settings = configuration.settings();
    let (variable, interval, command, export) = match kind {
        ProviderKind::Bedrock => (
            names::CALIBAN_AWS_AUTH_REFRESH,
            settings.aws_auth_refresh,
            &settings.aws_auth_refresh_command,
            settings.aws_credential_export.clone(),
        ),
        ProviderKind::Vertex => (
            names::CALIBAN_GCP_AUTH_REFRESH,
            settings.gcp_auth_refresh,
            &settings.gcp_auth_refresh_command,
            None,
        ),
        _ => return Ok(Refresh::default()),
    };
    let early = match configuration.environment().text(variable) {
        Some(text) => Some(
            text.parse::<RefreshInterval>()
                .map_err(|reason| LaunchError::configuration(format!("`{variable}`: {reason}")))?,
        ),
        None => interval,
    };
    Ok(Refresh {
        early: early.map_or(Refresh::EARLY, RefreshInterval::duration),
        command: command.clone(),
        export,
    })
}

/// Tells accounts apart without telling anything about a key: by the provider, its address, and
/// what the key is or comes from.
pub(crate) fn account(kind: ProviderKind, configuration: &Configuration) -> Arc<str> {
    let base = base_url(kind, configuration);
    let base = base.as_deref().unwrap_or(kind.default_base_url());
    let key = kind.key_variables().iter();
    let key = key
        .copied()
        .find_map(|name| variable(kind, configuration, name));
    let place = format!("{kind} {base}");
    Arc::from(SharedStates::key(&place, &key.unwrap_or_default()))
}

/// The programs that providers ask for keys. When the settings name others, those are asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyHelpersInUse(Arc<Mutex<Vec<KeyInUse>>>);

/// A key that lasts as long as its provider does.
type KeyInUse = (ProviderKind, Weak<HelperKey>);

impl KeyHelpersInUse {
    fn add(&self, kind: ProviderKind, key: &Arc<HelperKey>) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|(_, key)| key.strong_count() > 0);
        keys.push((kind, Arc::downgrade(key)));
    }

    /// Asks the programs of this configuration from now on. A provider that has its key from
    /// elsewhere then, or had it until now, goes on as it began.
    pub(crate) fn follow(&self, configuration: &Configuration) -> Result<(), LaunchError> {
        let keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (kind, key) in &*keys {
            if let (Some(key), Some(other)) = (key.upgrade(), helper(*kind, configuration)?) {
                key.replace(&other);
            }
        }
        Ok(())
    }

    /// Whether nobody has a key from a program.
    pub(crate) fn is_empty(&self) -> bool {
        let keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.iter().all(|(_, key)| key.strong_count() == 0)
    }
}

/// The program that prints this provider's key, if one is configured.
fn helper(
    kind: ProviderKind,
    configuration: &Configuration,
) -> Result<Option<HelperKey>, LaunchError> {
    let Some(helpers) = &configuration.settings().api_key_helper else {
        return Ok(None);
    };
    let value = serde_json::to_value(helpers).map_err(unusable)?;
    let helpers = KeyHelpers::from_value(&value).map_err(unusable)?;
    // A program for all gives keys of whoever needs one; clouds have logins of their own.
    let spec = helpers.for_provider(kind.as_str());
    let Some(spec) = spec.filter(|spec| !kind.is_cloud() || spec.provider == kind.as_str()) else {
        return Ok(None);
    };
    let ttl = configuration
        .environment()
        .text(names::CALIBAN_API_KEY_HELPER_TTL_MS);
    let diagnostics = Arc::clone(&configuration.process.diagnostics);
    Ok(Some(HelperKey::new(
        kind.as_str(),
        spec.clone(),
        Surroundings {
            directory: configuration.workspace.clone(),
            environment: configuration.helper_environment(),
            guard: configuration.process.guard.clone(),
            ttl: ttl_override(ttl.as_deref()).map_err(unusable)?,
            warn: Arc::new(move |message| diagnostics.warning(&message)),
        },
    )))
}

fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> LaunchError {
    LaunchError::Configuration(Problem::from_error(error))
}

/// The key in the desktop's secret store, asked for only when there is no other.
#[cfg(feature = "keyring")]
fn keyring(kind: ProviderKind, environment: &Environment) -> Option<Arc<dyn Credentials>> {
    if kind.key_variables().is_empty() {
        return None;
    }
    let key = caliban_settings::keyring::lookup(kind.as_str(), environment)?;
    let remedy =
        "the key in the desktop's secret store was refused: give another one with `/login`";
    Some(Arc::new(StaticKey::new(key).with_remedy(remedy)))
}

#[cfg(not(feature = "keyring"))]
fn keyring(_: ProviderKind, _: &Environment) -> Option<Arc<dyn Credentials>> {
    None
}

/// `CALIBAN_CONNECT_TIMEOUT_MS`, `CALIBAN_FIRST_BYTE_TIMEOUT_MS` and `CALIBAN_IDLE_TIMEOUT_MS`.
fn timeouts(environment: &Environment) -> Result<Timeouts, LaunchError> {
    let default = Timeouts::default();
    let millis = |name| environment.millis(name);
    Ok(Timeouts {
        connect: millis(names::CALIBAN_CONNECT_TIMEOUT_MS)?.unwrap_or(default.connect),
        first_byte: millis(names::CALIBAN_FIRST_BYTE_TIMEOUT_MS)?.unwrap_or(default.first_byte),
        idle: millis(names::CALIBAN_IDLE_TIMEOUT_MS)?.unwrap_or(default.idle),
    })
}

/// `CALIBAN_MAX_RETRIES`, else `max_retries`; and `CALIBAN_RETRY_BASE_DELAY_MS`.
pub(crate) fn retries(configuration: &Configuration) -> Result<RetryPolicy, LaunchError> {
    let default = RetryPolicy::default();
    let environment = configuration.environment();
    Ok(RetryPolicy {
        max_retries: environment
            .number(names::CALIBAN_MAX_RETRIES)?
            .or(configuration.settings().max_retries)
            .unwrap_or(default.max_retries),
        base: environment
            .millis(names::CALIBAN_RETRY_BASE_DELAY_MS)?
            .unwrap_or(default.base),
        ..default
    })
}

/// The provider and model of a run, routes and cassettes considered.
pub fn choose(
    asked: &Asked<'_>,
    cassette: Option<&Cassette>,
    configuration: &Configuration,
) -> Result<Chosen, LaunchError> {
    let masking = || masking(&configuration.workspace, &configuration.process);
    if let Some(Cassette::Replay(path)) = cassette {
        let replay = Replay::load(path, masking())?;
        return Ok(replayed(replay, asked.options.model.as_deref()));
    }
    let table = Routes::compile(asked, Vacancies::Fatal, configuration)?;
    let (hedging, record) = match cassette {
        Some(Cassette::Record(path)) => (Hedging::Never, Some(path)),
        Some(Cassette::Replay(_)) | None => (Hedging::AsConfigured, None),
    };
    let (model, fallback_model) = (table.model.clone(), table.fallback_model.clone());
    let (overrides, warnings) = (table.overrides(), table.warnings.clone());
    let router = table.router(asked.budget, hedging, configuration)?;
    let mut provider: Arc<dyn Provider> = Arc::new(router);
    if let Some(path) = record {
        provider = Arc::new(Recording::start(provider, path, masking())?);
    }
    Ok(Chosen {
        provider,
        model,
        fallback_model,
        overrides: Some(overrides),
        warnings,
    })
}

/// A replay uses the recorded model unless another is named.
pub fn replayed(replay: Replay, model: Option<&str>) -> Chosen {
    let recorded = replay.recorded_model().map_or("", |(_, model)| model);
    Chosen {
        model: model.unwrap_or(recorded).to_owned(),
        provider: Arc::new(replay),
        fallback_model: None,
        overrides: None,
        warnings: Vec::new(),
    }
}

/// What a cassette must not carry away from this machine.
pub fn masking(workspace: &Path, process: &Process) -> Masking {
    let workspace = workspace.to_string_lossy().into_owned();
    let home = process.environment.text("HOME").unwrap_or_default();
    Masking::new(
        [("{workspace}", workspace), ("{home}", home)],
        process.variables.iter().filter_map(|(name, value)| {
            Some((name.to_str()?.to_owned(), value.to_str()?.to_owned()))
        }),
    )
}
