//! Models that cloud platforms serve: transports for the wire families of whoever made them, and
//! the ways in which accounts log in there. Nothing is asked, read or run before the first call.

#[cfg(feature = "bedrock")]
mod aws;
#[cfg(feature = "azure")]
mod azure;
mod fetch;
#[cfg(feature = "vertex")]
mod google;
mod kept;
mod options;
mod provider;
mod surroundings;

pub use surroundings::{Programs, Refresh};

use std::sync::Arc;

use caliban_model::ProviderKind;

use crate::config::{ConfigError, Connection};
#[cfg(feature = "bedrock")]
pub(crate) use aws::encode_converse;
pub(crate) use provider::{Platform, is_claude};
use surroundings::Surroundings;

/// Sets a platform up from `variable`, which reads the environment.
pub(crate) fn connect(
    kind: ProviderKind,
    variable: &dyn Fn(&str) -> Option<String>,
    connection: &Connection,
) -> Result<Platform, ConfigError> {
    let surroundings = Arc::new(Surroundings::new(variable, connection));
    match kind {
        #[cfg(feature = "bedrock")]
        ProviderKind::Bedrock => aws::connect(&surroundings, connection),
        #[cfg(feature = "vertex")]
        ProviderKind::Vertex => google::connect(&surroundings, variable, connection),
        #[cfg(feature = "azure")]
        ProviderKind::Azure => azure::connect(&surroundings, connection),
        _ => {
            drop(surroundings);
            Err(ConfigError::NotBuilt { provider: kind })
        }
    }
}
