//! The JSON Schema of all frames, made from the types that write and read them.

use schemars::generate::SchemaSettings;
use schemars::transform::RestrictFormats;
use serde_json::{Value, json};

use crate::{frame, input};

/// The schema of the frames on standard output. Those on standard input are described by
/// `#/$defs/Input` in it.
pub fn frames_schema() -> Value {
    // The names of Rust's number types are no formats to anybody else.
    let settings = || SchemaSettings::draft2020_12().with_transform(RestrictFormats::default());
    let written = settings().for_serialize().into_generator();
    let mut schema = written
        .into_root_schema_for::<frame::Frame<'static>>()
        .to_value();
    let read = settings().for_deserialize().into_generator();
    let mut input = read.into_root_schema_for::<input::Frame>().to_value();
    if let Some(fields) = input.as_object_mut() {
        fields.shift_remove("$schema");
        fields.shift_remove("title");
    }
    schema["title"] = json!("Frames of caliban");
    schema["$defs"]["Input"] = input;
    schema
}
