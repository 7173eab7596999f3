//! Builds the provider that a command line and the configuration ask for.

use std::path::Path;
use std::sync::Arc;

use caliban_harness::model_for;
use caliban_model::{Credentials, Provider, ProviderKind, Purpose, UnknownProvider};
use caliban_providers::cassette::{Masking, Recording, Replay};
use caliban_providers::{Connection, Fallback, RetryPolicy, Retrying, Timeouts};
use caliban_sessions::SessionState;
use caliban_settings::key_helper::{HelperKey, KeyHelpers, Surroundings, ttl_override};
use caliban_settings::variables::{Environment, names};
use caliban_settings::{ModelChoice, Scope};

use crate::args::{CassetteArgs, ModelArgs, ProviderArgs};
use crate::configuration::Configuration;
use crate::console::note;
use crate::exit::Failure;
use crate::session::guard;

/// Who answers, and with which model.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) model: String,
    pub(crate) fallback_model: Option<String>,
}

/// The flags of a run that continues a session: what they leave open is as it was.
pub(crate) fn continued(
    provider: &ProviderArgs,
    model: &ModelArgs,
    earlier: Option<&SessionState>,
) -> (ProviderArgs, ModelArgs) {
    let (mut provider, mut model) = (provider.clone(), model.clone());
    let Some(state) = earlier else {
        return (provider, model);
    };
    let kind = state.provider.parse::<ProviderKind>().ok();
    if provider.provider.is_none() {
        provider.provider = kind;
    }
    if model.model.is_none() && kind.is_some() && provider.provider == kind {
        model.model = Some(state.model.clone());
    }
    (provider, model)
}

/// The flag wins over the variable, which wins over the settings, which win over the default.
pub(crate) fn kind(
    args: &ProviderArgs,
    configuration: &Configuration<'_>,
) -> Result<ProviderKind, Failure> {
    if let Some(kind) = args.provider {
        return Ok(kind);
    }
    if let Some(name) = configuration.environment.text(names::CALIBAN_PROVIDER) {
        return name.parse().map_err(|error: UnknownProvider| {
            Failure::Config(format!("`{}`: {error}", names::CALIBAN_PROVIDER))
        });
    }
    let model = configuration.settings().model.as_ref();
    Ok(model
        .and_then(provider_of)
        .unwrap_or(ProviderKind::Anthropic))
}

/// The provider of a model in the settings: named, or told by the model's name.
fn provider_of(model: &ModelChoice) -> Option<ProviderKind> {
    model
        .provider()
        .or_else(|| ProviderKind::of_model(model.name()))
}

/// The flag wins over the settings, unless those are about another provider's model.
pub(crate) fn model(
    named: Option<&str>,
    kind: ProviderKind,
    configuration: &Configuration<'_>,
) -> String {
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
        .unwrap_or(kind.default_model())
        .to_owned()
}

/// Where a provider's key comes from.
#[derive(Debug)]
pub(crate) enum KeySource {
    /// A program that prints it, and the scope that names the program.
    Program {
        scope: Scope,
        credentials: Arc<dyn Credentials>,
    },
    Variable,
    Keyring(Arc<dyn Credentials>),
    Absent,
}

impl KeySource {
    /// What asks for the key; nothing where the environment is looked at.
    pub(crate) fn credentials(self) -> Option<Arc<dyn Credentials>> {
        match self {
            Self::Program { credentials, .. } | Self::Keyring(credentials) => Some(credentials),
            Self::Variable | Self::Absent => None,
        }
    }
}

/// Finds out where the key comes from. No program is run yet.
pub(crate) fn key_source(
    kind: ProviderKind,
    configuration: &Configuration<'_>,
) -> Result<KeySource, Failure> {
    if let Some(credentials) = helper(kind, configuration)? {
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
    Ok(match keyring(kind, &configuration.environment) {
        Some(credentials) => KeySource::Keyring(credentials),
        None => KeySource::Absent,
    })
}

/// The address that was configured instead of the provider's own.
pub(crate) fn base_url(kind: ProviderKind, configuration: &Configuration<'_>) -> Option<String> {
    variable(kind, configuration, kind.base_url_variable()).filter(|url| !url.trim().is_empty())
}

/// A provider's variable, with what the router file says about it.
fn variable(kind: ProviderKind, configuration: &Configuration<'_>, name: &str) -> Option<String> {
    let environment = &configuration.environment;
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

/// The provider with its retries.
pub(crate) fn connect(
    kind: ProviderKind,
    configuration: &Configuration<'_>,
) -> Result<Arc<dyn Provider>, Failure> {
    let credentials = key_source(kind, configuration)?.credentials();
    connect_with(kind, credentials, configuration)
}

/// The same with these keys; without any, those of the environment, which it must have.
pub(crate) fn connect_with(
    kind: ProviderKind,
    credentials: Option<Arc<dyn Credentials>>,
    configuration: &Configuration<'_>,
) -> Result<Arc<dyn Provider>, Failure> {
    let block = configuration.provider_block(kind);
    let connection = Connection {
        timeouts: timeouts(&configuration.environment)?,
        openai_api: block.and_then(|block| block.api),
        credentials,
    };
    let lookup = |name: &str| variable(kind, configuration, name);
    let key_variable = block.and_then(|block| block.api_key_env.as_deref());
    let adapter =
        caliban_providers::connect(kind, &lookup, &connection).map_err(|error| {
            match (key_variable, Failure::from(error)) {
                (Some(variable), Failure::Config(message)) => Failure::Config(format!(
                    "{message} (`api_key_env` names `{variable}` instead)"
                )),
                (_, failure) => failure,
            }
        })?;
    Ok(Arc::new(Retrying::new(
        Arc::new(adapter),
        retries(configuration)?,
    )))
}

/// The program that prints this provider's key, if one is configured.
fn helper(
    kind: ProviderKind,
    configuration: &Configuration<'_>,
) -> Result<Option<Arc<dyn Credentials>>, Failure> {
    let Some(helpers) = &configuration.settings().api_key_helper else {
        return Ok(None);
    };
    let unusable = |error: &dyn std::fmt::Display| Failure::Config(error.to_string());
    let value = serde_json::to_value(helpers).map_err(|error| unusable(&error))?;
    let helpers = KeyHelpers::from_value(&value).map_err(|error| unusable(&error))?;
    let Some(spec) = helpers.for_provider(kind.as_str()) else {
        return Ok(None);
    };
    let ttl = configuration
        .environment
        .text(names::CALIBAN_API_KEY_HELPER_TTL_MS);
    Ok(Some(Arc::new(HelperKey::new(
        kind.as_str(),
        spec.clone(),
        Surroundings {
            directory: configuration.workspace.clone(),
            environment: configuration.child_environment(),
            guard: guard(),
            ttl: ttl_override(ttl.as_deref()).map_err(|error| unusable(&error))?,
            warn: Arc::new(|message| note(&format!("warning: {message}"))),
        },
    ))))
}

/// The key in the desktop's secret store, asked for only when there is no other.
#[cfg(feature = "keyring")]
fn keyring(kind: ProviderKind, environment: &Environment<'_>) -> Option<Arc<dyn Credentials>> {
    if kind.key_variables().is_empty() {
        return None;
    }
    let key = caliban_settings::keyring::lookup(kind.as_str(), environment)?;
    Some(Arc::new(caliban_model::StaticKey::new(key)))
}

#[cfg(not(feature = "keyring"))]
fn keyring(_: ProviderKind, _: &Environment<'_>) -> Option<Arc<dyn Credentials>> {
    None
}

/// `CALIBAN_CONNECT_TIMEOUT_MS`, `CALIBAN_FIRST_BYTE_TIMEOUT_MS` and `CALIBAN_IDLE_TIMEOUT_MS`.
fn timeouts(environment: &Environment<'_>) -> Result<Timeouts, Failure> {
    let default = Timeouts::default();
    let millis = |name| environment.millis(name);
    Ok(Timeouts {
        connect: millis(names::CALIBAN_CONNECT_TIMEOUT_MS)?.unwrap_or(default.connect),
        first_byte: millis(names::CALIBAN_FIRST_BYTE_TIMEOUT_MS)?.unwrap_or(default.first_byte),
        idle: millis(names::CALIBAN_IDLE_TIMEOUT_MS)?.unwrap_or(default.idle),
    })
}

/// `CALIBAN_MAX_RETRIES`, else `max_retries`; and `CALIBAN_RETRY_BASE_DELAY_MS`.
fn retries(configuration: &Configuration<'_>) -> Result<RetryPolicy, Failure> {
    let default = RetryPolicy::default();
    let environment = &configuration.environment;
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

/// The provider and model of a run, fallback and cassettes considered.
pub(crate) fn choose(
    args: &ProviderArgs,
    models: &ModelArgs,
    cassette: &CassetteArgs,
    configuration: &Configuration<'_>,
) -> Result<Chosen, Failure> {
    let masking = || masking(&configuration.workspace, &configuration.environment);
    if let Some(path) = &cassette.replay {
        return Ok(replayed(
            Replay::load(path, masking())?,
            models.model.as_deref(),
        ));
    }
    let kind = kind(args, configuration)?;
    let mut provider = connect(kind, configuration)?;
    let fallback = models.fallback_model.clone().map(ModelChoice::Name);
    let fallback = fallback.or_else(|| configuration.settings().fallback_model.clone());
    if let Some(model) = &fallback {
        // Another provider's model needs that provider; any other name is this provider's.
        let other = provider_of(model).unwrap_or(kind);
        let secondary = connect(other, configuration)?;
        provider = Arc::new(Fallback::new(provider, secondary, model.name()));
    }
    if let Some(path) = &cassette.record {
        provider = Arc::new(Recording::start(provider, path, masking())?);
    }
    Ok(Chosen {
        provider,
        model: model(models.model.as_deref(), kind, configuration),
        fallback_model: fallback.map(|model| model.name().to_owned()),
    })
}

/// A replay uses the recorded model unless another is named.
pub(crate) fn replayed(replay: Replay, model: Option<&str>) -> Chosen {
    let recorded = replay.recorded_model().map_or("", |(_, model)| model);
    Chosen {
        model: model.unwrap_or(recorded).to_owned(),
        provider: Arc::new(replay),
        fallback_model: None,
    }
}

/// What a cassette must not carry away from this machine.
pub(crate) fn masking(workspace: &Path, environment: &Environment<'_>) -> Masking {
    let workspace = workspace.to_string_lossy().into_owned();
    let home = environment.text("HOME").unwrap_or_default();
    Masking::new(
        [("{workspace}", workspace), ("{home}", home)],
        std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }),
    )
}
