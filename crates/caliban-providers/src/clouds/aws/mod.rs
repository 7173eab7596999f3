//! Bedrock: Claude in the form of its maker, other models in the form that Bedrock has for all.

mod bedrock;
mod converse;
mod credentials;
mod errors;
mod machine;
mod names;
mod profile;
mod region;
mod sign;
mod sso;
mod sts;

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
use bedrock::{Account, Bedrock, Wire};
use converse::Converse;
pub(crate) use converse::encode as encode_converse;

/// The name in frames, prices and errors.
const ID: &str = "bedrock";

/// `[provider.bedrock]`, but for what every provider has.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    region: Option<String>,
    /// The profile of AWS's own tools that is used.
    profile: Option<String>,
    /// What stands before the ids of models: `global`, `us`, `eu`, …
    prefix: Option<String>,
    /// Ids or ARNs of models, by the names that routes use.
    models: BTreeMap<String, String>,
    /// Which tier of service is asked for.
    service_tier: Option<String>,
    guardrail: Option<Guardrail>,
}

/// What looks through prompts and answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Guardrail {
    id: String,
    version: String,
}

pub(super) fn connect(
    surroundings: &Arc<Surroundings>,
    connection: &Connection,
) -> Result<Platform, ConfigError> {
    let options: Options = options::read(ProviderKind::Bedrock, connection)?;
    let account = Arc::new(Account::new(surroundings, options, connection)?);
    let claude = Adapter::new(
        Anthropic::on(ID, &connection.betas),
        Bedrock::new(Arc::clone(&account), Wire::Messages),
        connection.timeouts,
    );
    let others = Adapter::new(
        Converse::new(),
        Bedrock::new(account, Wire::Converse),
        connection.timeouts,
    );
    Ok(Platform::new(ProviderKind::Bedrock, claude, others))
}

/// What the names of a region's servers end with.
fn domain(region: &str) -> &'static str {
    if region.starts_with("cn-") {
        "amazonaws.com.cn"
    } else {
        "amazonaws.com"
    }
}
