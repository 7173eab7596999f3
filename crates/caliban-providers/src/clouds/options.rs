//! What `[provider.…]` says about a platform.

use caliban_model::ProviderKind;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::{ConfigError, Connection};

/// The block as `T`, which refuses keys that it does not know.
pub(crate) fn read<T: DeserializeOwned>(
    kind: ProviderKind,
    connection: &Connection,
) -> Result<T, ConfigError> {
    serde_json::from_value(Value::Object(connection.options.clone())).map_err(|error| {
        ConfigError::BadOptions {
            provider: kind,
            reason: error.to_string(),
        }
    })
}
