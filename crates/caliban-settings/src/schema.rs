//! The JSON Schema of settings files, made from the types that read them.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::types::Settings;

/// The schema of a settings file.
pub fn settings_schema() -> Value {
    SchemaSettings::draft2020_12()
        .for_deserialize()
        .into_generator()
        .into_root_schema_for::<Settings>()
        .to_value()
}
