//! Vertex: Claude and Gemini, as their makers speak, below the paths of a project.

mod adc;
mod assertion;
mod regions;
mod vertex;

use std::collections::BTreeMap;
use std::sync::Arc;

use caliban_model::ProviderKind;
use serde::Deserialize;

use crate::adapter::Adapter;
use crate::anthropic::Anthropic;
use crate::clouds::options;
use crate::clouds::provider::Platform;
use crate::clouds::surroundings::Surroundings;
use crate::config::{ConfigError, Connection};
use crate::google::Gemini;
use regions::Regions;
use vertex::{Publisher, Site, Vertex};

/// The name in frames, prices and errors.
const ID: &str = "vertex";

/// `[provider.vertex]`, but for what every provider has.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    project: Option<String>,
    location: Option<String>,
    /// Locations of models that are elsewhere.
    locations: BTreeMap<String, String>,
    /// Ids of models, by the names that routes use.
    models: BTreeMap<String, String>,
}

pub(super) fn connect(
    surroundings: &Arc<Surroundings>,
    variable: &dyn Fn(&str) -> Option<String>,
    connection: &Connection,
) -> Result<Platform, ConfigError> {
    let options: Options = options::read(ProviderKind::Vertex, connection)?;
    let site = Arc::new(Site::new(
        surroundings,
        options,
        Regions::read(variable),
        connection,
    )?);
    let claude = Adapter::new(
        Anthropic::on(ID, &connection.betas),
        Vertex::new(Arc::clone(&site), Publisher::Anthropic),
        connection.timeouts,
    );
    let gemini = Adapter::new(
        Gemini::on(ID, "v1".to_owned()),
        Vertex::new(site, Publisher::Google),
        connection.timeouts,
    );
    Ok(Platform::new(ProviderKind::Vertex, claude, gemini))
}
