//! The schema that is shipped is the schema of the types.

use std::path::Path;

use caliban_settings::settings_schema;

#[test]
fn the_shipped_schema_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/settings.schema.json");
    let mut current = serde_json::to_string_pretty(&settings_schema()).unwrap();
    current.push('\n');
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    let shipped = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        shipped == current,
        "{} is out of date; run this test with UPDATE_SCHEMA=1",
        path.display()
    );
}
