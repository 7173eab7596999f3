//! The JSON Schema of the line protocol, made from the types that read and write it.

use schemars::generate::SchemaSettings;
use schemars::transform::RestrictFormats;
use serde_json::{Value, json};

use crate::answer::Reply;
use crate::request::Wish;
use crate::told::Told;

/// The schema of the lines that a server writes. Those it reads are described by `#/$defs/Request`
/// in it, frames of sessions in the schema of frames.
pub fn lines_schema() -> Value {
    // The names of Rust's number types are no formats to anybody else.
    let settings = || SchemaSettings::draft2020_12().with_transform(RestrictFormats::default());
    let mut written = settings().for_serialize().into_generator();
    let reply = written.subschema_for::<Reply>();
    let told = written.subschema_for::<Told>();
    let mut defs = written.take_definitions(true);
    let mut read = settings().for_deserialize().into_generator();
    read.subschema_for::<Wish>();
    for (name, mut schema) in read.take_definitions(true) {
        let name = if name == "Wish" {
            with_id(&mut schema);
            "Request".to_owned()
        } else {
            name
        };
        defs.entry(name).or_insert(schema);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Lines of caliban serve app",
        "anyOf": [reply, told],
        "$defs": defs,
    })
}

/// Every request has an id beside what it wishes.
fn with_id(schema: &mut Value) {
    let id = json!({"type": ["string", "integer"], "minLength": 1, "maxLength": 128});
    for kind in schema["oneOf"].as_array_mut().into_iter().flatten() {
        // Where a kind is described elsewhere, the description is closed; the id stands beside it.
        kind["properties"]["id"] = id.clone();
        if let Some(required) = kind["required"].as_array_mut() {
            required.push("id".into());
        }
    }
}
