//! Azure: OpenAI's models under the names of deployments, and Claude from Foundry.

mod entra;
mod foundry;
mod openai;

use std::collections::BTreeMap;
use std::sync::Arc;

use caliban_model::{OpenAiApi, ProviderKind};
use serde::Deserialize;

use crate::adapter::Adapter;
use crate::anthropic::Anthropic;
use crate::clouds::options;
use crate::clouds::provider::Platform;
use crate::clouds::surroundings::Surroundings;
use crate::config::{ConfigError, Connection};
use crate::openai::{Chat, Responses};
use foundry::Foundry;
use openai::{Form, OpenAi};

/// The name in frames, prices and errors.
const ID: &str = "azure";

/// `[provider.azure]`, but for what every provider has.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    /// The name before `.openai.azure.com`.
    resource: Option<String>,
    /// The whole address instead.
    endpoint: Option<String>,
    /// Makes it the dated form of the API.
    api_version: Option<String>,
    /// Names of deployments, by the names of the models that routes use.
    #[serde(alias = "models")]
    deployments: BTreeMap<String, String>,
    /// The name before `.services.ai.azure.com`, where Claude is.
    foundry_resource: Option<String>,
    foundry_endpoint: Option<String>,
}

pub(super) fn connect(
    surroundings: &Arc<Surroundings>,
    connection: &Connection,
) -> Result<Platform, ConfigError> {
    let options: Options = options::read(ProviderKind::Azure, connection)?;
    let openai = OpenAi::new(surroundings, &options, connection)?;
    let foundry = Foundry::new(surroundings, &options, connection)?;
    let timeouts = connection.timeouts;
    let claude = Adapter::new(Anthropic::on(ID, &connection.betas), foundry, timeouts);
    let api = match openai.form() {
        Form::Dated(_) => OpenAiApi::Chat,
        Form::Current(api) => *api,
    };
    let others = match api {
        OpenAiApi::Responses => Adapter::new(Responses::on(ID), openai, timeouts),
        OpenAiApi::Chat => Adapter::new(Chat::on(ID), openai, timeouts),
    };
    Ok(Platform::new(ProviderKind::Azure, claude, others))
}

/// What every address of a resource ends with must not begin anew inside its name.
fn check_resource(source_name: &'static str, name: &str) -> Result<(), ConfigError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    if !name.is_empty() && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(ConfigError::BadPlace {
        source_name,
        value: name.to_owned(),
        example: "my-resource",
    })
}
