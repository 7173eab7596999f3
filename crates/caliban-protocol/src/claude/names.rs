//! The names of tools and of their fields in this dialect: one table, applied where requests leave
//! for a model, where answers arrive, and in every frame.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// The tool by which a model asks the user; only this dialect has it.
pub const ASK_USER_QUESTION: &str = "AskUserQuestion";

/// A tool that is called differently, or takes differently named fields.
struct Named {
    ours: &'static str,
    theirs: &'static str,
    fields: &'static [Field],
}

struct Field {
    ours: &'static str,
    theirs: &'static str,
    unit: Unit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Same,
    /// We count seconds, they count milliseconds.
    Milliseconds,
}

const TABLE: &[Named] = &[
    named("AgentTool", "Task", &[]),
    named(
        "Bash",
        "Bash",
        &[
            Field {
                ours: "timeout_seconds",
                theirs: "timeout",
                unit: Unit::Milliseconds,
            },
            field("background", "run_in_background"),
        ],
    ),
    named("BashOutput", "BashOutput", &[field("id", "bash_id")]),
    named("Edit", "Edit", &[field("path", "file_path")]),
    named(
        "Grep",
        "Grep",
        &[
            field("ignore_case", "-i"),
            field("context", "-C"),
            field("limit", "head_limit"),
        ],
    ),
    named("KillShell", "KillShell", &[field("id", "shell_id")]),
    named("MultiEdit", "MultiEdit", &[field("path", "file_path")]),
    named(
        "NotebookEdit",
        "NotebookEdit",
        &[field("path", "notebook_path")],
    ),
    named("Read", "Read", &[field("path", "file_path")]),
    named("Skill", "Skill", &[field("name", "skill")]),
    named("Write", "Write", &[field("path", "file_path")]),
];

/// Names that mean one of ours and are never written.
const ALSO: [(&str, &str); 3] = [
    ("Agent", "AgentTool"),
    ("TaskOutput", "BashOutput"),
    ("TaskStop", "KillShell"),
];

const fn named(ours: &'static str, theirs: &'static str, fields: &'static [Field]) -> Named {
    Named {
        ours,
        theirs,
        fields,
    }
}

const fn field(ours: &'static str, theirs: &'static str) -> Field {
    Field {
        ours,
        theirs,
        unit: Unit::Same,
    }
}

fn entry(ours: &str) -> Option<&'static Named> {
    TABLE.iter().find(|entry| entry.ours == ours)
}

/// Their name for one of our tools.
pub fn theirs(ours: &str) -> &str {
    entry(ours).map_or(ours, |entry| entry.theirs)
}

/// Our name for one of their tools.
pub fn ours(theirs: &str) -> &str {
    let also = ALSO.iter().find(|(name, _)| *name == theirs);
    let known = || TABLE.iter().find(|entry| entry.theirs == theirs);
    also.map(|(_, ours)| *ours)
        .or_else(|| known().map(|entry| entry.ours))
        .unwrap_or(theirs)
}

/// The input of our tool `name` with their names of fields.
pub fn input_theirs(name: &str, input: &Value) -> Value {
    renamed(
        name,
        input,
        |field| (field.ours, field.theirs),
        |value, unit| match (unit, value.as_u64()) {
            (Unit::Milliseconds, Some(seconds)) => json!(seconds.saturating_mul(1000)),
            (Unit::Milliseconds | Unit::Same, _) => value,
        },
    )
}

/// The input of our tool `name`, whichever names of fields it was written with.
pub fn input_ours(name: &str, input: &Value) -> Value {
    renamed(
        name,
        input,
        |field| (field.theirs, field.ours),
        |value, unit| match (unit, value.as_u64()) {
            (Unit::Milliseconds, Some(millis)) => json!(millis.div_ceil(1000)),
            (Unit::Milliseconds | Unit::Same, _) => value,
        },
    )
}

/// The schema of our tool `name` with their names of fields.
pub fn schema_theirs(name: &str, schema: &Value) -> Value {
    let Some(entry) = entry(name) else {
        return schema.clone();
    };
    let mut schema = schema.clone();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        *properties = std::mem::take(properties)
            .into_iter()
            .map(|(key, mut value)| match by_ours(entry, &key) {
                Some(field) => {
                    if field.unit == Unit::Milliseconds {
                        value["description"] = "Milliseconds until it is killed.".into();
                    }
                    (field.theirs.to_owned(), value)
                }
                None => (key, value),
            })
            .collect();
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        for key in required {
            let theirs = key.as_str().and_then(|key| by_ours(entry, key));
            if let Some(field) = theirs {
                *key = field.theirs.into();
            }
        }
    }
    schema
}

/// A text for the model with their names of tools.
pub fn wording_theirs(text: &str) -> Cow<'_, str> {
    TABLE
        .iter()
        .filter(|entry| entry.ours != entry.theirs)
        .fold(Cow::Borrowed(text), |text, entry| {
            if text.contains(entry.ours) {
                Cow::Owned(text.replace(entry.ours, entry.theirs))
            } else {
                text
            }
        })
}

fn by_ours(entry: &Named, key: &str) -> Option<&'static Field> {
    let fields: &'static [Field] = entry.fields;
    fields.iter().find(|field| field.ours == key)
}

/// Renames fields in place; one that is there under both names keeps the value of the new one.
fn renamed(
    name: &str,
    input: &Value,
    names: impl Fn(&Field) -> (&'static str, &'static str),
    convert: impl Fn(Value, Unit) -> Value,
) -> Value {
    let (Some(entry), Value::Object(fields)) = (entry(name), input) else {
        return input.clone();
    };
    let mut result = Map::new();
    for (key, value) in fields {
        let found = entry.fields.iter().find(|field| names(field).0 == key);
        match found {
            Some(field) if !fields.contains_key(names(field).1) => {
                result.insert(
                    names(field).1.to_owned(),
                    convert(value.clone(), field.unit),
                );
            }
            Some(_) => {}
            None => {
                result.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(result)
}

#[cfg(test)]
mod tests {
    use caliban_model::BuiltInTool;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_tool_of_the_table_is_one_of_ours() {
        for named in TABLE {
            let tool = BuiltInTool::named(named.ours);
            let tool = tool.unwrap_or_else(|| panic!("{}", named.ours));
            for field in named.fields {
                assert!(tool.fields.contains(&field.ours), "{}", named.ours);
            }
            assert_eq!(BuiltInTool::canonical(named.theirs), named.ours);
        }
        for (theirs, ours) in ALSO {
            assert_eq!(BuiltInTool::canonical(theirs), ours);
        }
        assert!(BuiltInTool::named(ASK_USER_QUESTION).is_none());
    }

    #[test]
    fn names_go_there_and_back() {
        for entry in TABLE {
            assert_eq!(ours(theirs(entry.ours)), entry.ours);
        }
        assert_eq!(theirs("AgentTool"), "Task");
        assert_eq!(ours("Agent"), "AgentTool");
        assert_eq!(theirs("mcp__a__b"), "mcp__a__b");
    }

    #[test]
    fn fields_are_renamed_in_order_and_units_converted() {
        let ours = json!({"command": "ls", "timeout_seconds": 2, "background": true});
        let theirs = json!({"command": "ls", "timeout": 2000, "run_in_background": true});
        assert_eq!(input_theirs("Bash", &ours), theirs);
        assert_eq!(input_ours("Bash", &theirs), ours);
        let half = input_ours("Bash", &json!({"timeout": 1500}));
        assert_eq!(half, json!({"timeout_seconds": 2}));
        assert_eq!(input_ours("Read", &json!("raw")), json!("raw"));
        // A call that was already in our names is not touched.
        let both = json!({"path": "a", "file_path": "b"});
        assert_eq!(input_ours("Read", &both), json!({"path": "a"}));
    }

    #[test]
    fn schemas_name_the_same_fields() {
        let schema = json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "offset": {"type": "integer"}},
            "required": ["path"],
        });
        let theirs = schema_theirs("Read", &schema);
        assert_eq!(theirs["required"], json!(["file_path"]));
        let names: Vec<_> = theirs["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["file_path", "offset"]);
        assert_eq!(schema_theirs("Glob", &schema), schema);
        assert_eq!(wording_theirs("Hand it to AgentTool."), "Hand it to Task.");
    }

    proptest! {
        #[test]
        fn renaming_loses_nothing(
            tool in prop::sample::select(TABLE.iter().map(|entry| entry.ours).collect::<Vec<_>>()),
            fields in prop::collection::btree_map("[a-z_]{1,8}", any::<bool>(), 0..6),
        ) {
            let input = json!(fields);
            prop_assert_eq!(input_ours(tool, &input_theirs(tool, &input)), input);
        }
    }
}
