//! Builds the provider that a command line asks for: an adapter with retries, or a cassette.

use std::path::Path;
use std::sync::Arc;

use caliban_model::Provider;
use caliban_providers::cassette::{Masking, Recording, Replay};
use caliban_providers::{Connection, Fallback, ProviderKind, Retrying};

use crate::args::{CassetteArgs, ModelArgs, ProviderArgs};
use crate::environment::Environment;
use crate::exit::Failure;

/// Who answers, and with which model.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) model: String,
}

/// The flag wins over the variable, which wins over the default.
pub(crate) fn kind(
    args: &ProviderArgs,
    environment: &Environment<'_>,
) -> Result<ProviderKind, Failure> {
    match (args.provider, environment.text("CALIBAN_PROVIDER")) {
        (Some(kind), _) => Ok(kind),
        (None, Some(name)) => Ok(name.parse()?),
        (None, None) => Ok(ProviderKind::Anthropic),
    }
}

/// The provider with its retries.
pub(crate) fn connect(
    kind: ProviderKind,
    environment: &Environment<'_>,
) -> Result<Arc<dyn Provider>, Failure> {
    let connection = Connection {
        timeouts: environment.timeouts()?,
        ..Connection::default()
    };
    let adapter = kind.connect(environment.reader(), &connection)?;
    Ok(Arc::new(Retrying::new(
        Arc::new(adapter),
        environment.retries()?,
    )))
}

/// The provider and model of a run, cassettes considered.
pub(crate) fn choose(
    args: &ProviderArgs,
    model: &ModelArgs,
    cassette: &CassetteArgs,
    environment: &Environment<'_>,
    workspace: &Path,
) -> Result<Chosen, Failure> {
    if let Some(path) = &cassette.replay {
        let replay = Replay::load(path, masking(workspace, environment))?;
        return Ok(replayed(replay, model.model.as_deref()));
    }
    let kind = kind(args, environment)?;
    let mut provider = connect(kind, environment)?;
    if let Some(name) = &model.fallback_model {
        // Another provider's model needs that provider; any other name is this provider's.
        let other = ProviderKind::of_model(name).unwrap_or(kind);
        let secondary = connect(other, environment)?;
        provider = Arc::new(Fallback::new(provider, secondary, name.as_str()));
    }
    if let Some(path) = &cassette.record {
        let masking = masking(workspace, environment);
        provider = Arc::new(Recording::start(provider, path, masking)?);
    }
    Ok(Chosen {
        provider,
        model: model
            .model
            .as_deref()
            .unwrap_or(kind.default_model())
            .to_owned(),
    })
}

/// A replay uses the recorded model unless another is named.
pub(crate) fn replayed(replay: Replay, model: Option<&str>) -> Chosen {
    let recorded = replay.recorded_model().map_or("", |(_, model)| model);
    Chosen {
        model: model.unwrap_or(recorded).to_owned(),
        provider: Arc::new(replay),
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
