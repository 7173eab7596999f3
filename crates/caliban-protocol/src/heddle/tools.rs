//! The tools of that world and ours: one table, used in both directions.

use serde_json::{Map, Value};

/// A tool under both names, with the fields that differ: theirs, then ours.
struct Pair {
    wire: &'static str,
    native: &'static str,
    fields: &'static [(&'static str, &'static str)],
}

const PATH: &[(&str, &str)] = &[("file_path", "path")];

const TABLE: &[Pair] = &[
    pair("read_file", "Read", PATH),
    pair("write_file", "Write", PATH),
    pair("edit_file", "Edit", PATH),
    pair("multi_edit", "MultiEdit", PATH),
    pair("notebook_edit", "NotebookEdit", PATH),
    pair("glob", "Glob", &[]),
    pair("grep", "Grep", &[]),
    pair("bash", "Bash", &[]),
    pair("bash_output", "BashOutput", &[]),
    pair("kill_shell", "KillShell", &[]),
    pair("web_fetch", "WebFetch", &[]),
    pair("web_search", "WebSearch", &[]),
    pair("todo_write", "TodoWrite", &[]),
    pair("enter_plan_mode", "EnterPlanMode", &[]),
    pair("exit_plan_mode", "ExitPlanMode", &[]),
    pair("agent", "AgentTool", &[]),
    pair("skill", "Skill", &[]),
    pair("read_memory_topic", "ReadMemoryTopic", &[]),
    pair("write_memory_topic", "WriteMemoryTopic", &[]),
];

const fn pair(
    wire: &'static str,
    native: &'static str,
    fields: &'static [(&'static str, &'static str)],
) -> Pair {
    Pair {
        wire,
        native,
        fields,
    }
}

/// Our name of a tool; a name that is not theirs is taken as ours.
pub fn native_name(wire: &str) -> &str {
    let found = TABLE.iter().find(|pair| pair.wire == wire);
    found.map_or(wire, |pair| pair.native)
}

/// Their name of a tool; a tool that world does not have keeps its own.
pub fn wire_name(native: &str) -> &str {
    let found = TABLE.iter().find(|pair| pair.native == native);
    found.map_or(native, |pair| pair.wire)
}

/// The input of a call of ours as their tool would have got it: an object in every case.
pub fn wire_args(native: &str, input: &Value) -> Value {
    match input {
        Value::Object(fields) => renamed(native, fields, |(theirs, ours)| (ours, theirs)).into(),
        // What the model wrote was no object.
        other => Value::Object(Map::from_iter([("input".to_owned(), other.clone())])),
    }
}

/// The input of our tool, whichever names of fields it was written with.
pub fn native_args(native: &str, input: &Value) -> Value {
    match input {
        Value::Object(fields) => renamed(native, fields, |pair| pair).into(),
        other => other.clone(),
    }
}

/// The schema of our tool with their names of fields.
pub fn wire_schema(native: &str, schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        *properties = renamed(native, properties, |(theirs, ours)| (ours, theirs));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        for name in required {
            let theirs = fields(native).iter().find(|(_, ours)| name == ours);
            if let Some((theirs, _)) = theirs {
                *name = Value::from(*theirs);
            }
        }
    }
    schema
}

fn fields(native: &str) -> &'static [(&'static str, &'static str)] {
    let pair = TABLE.iter().find(|pair| pair.native == native);
    pair.map_or(&[], |pair| pair.fields)
}

/// The fields under other names; `direction` tells which of a pair is looked for and which comes
/// in its place. A name that is taken already stays.
fn renamed(
    native: &str,
    given: &Map<String, Value>,
    direction: fn((&'static str, &'static str)) -> (&'static str, &'static str),
) -> Map<String, Value> {
    let rename = |name: &String| {
        let mut pairs = fields(native).iter().map(|pair| direction(*pair));
        let found = pairs.find(|(from, to)| from == name && !given.contains_key(*to));
        found.map_or_else(|| name.clone(), |(_, to)| to.to_owned())
    };
    given
        .iter()
        .map(|(name, value)| (rename(name), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use caliban_model::BUILT_IN;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_table_has_every_tool_that_world_can_list() {
        let ours = BUILT_IN.iter().map(|tool| tool.name);
        // It finds tools of servers that the model does not see yet; nobody lists it.
        let mut ours: Vec<&str> = ours.filter(|name| *name != "ToolSearch").collect();
        let mut listed: Vec<&str> = TABLE.iter().map(|pair| pair.native).collect();
        ours.sort_unstable();
        listed.sort_unstable();
        assert_eq!(ours, listed);
    }

    #[test]
    fn names_lead_there_and_back() {
        for pair in TABLE {
            assert_eq!(native_name(pair.wire), pair.native);
            assert_eq!(wire_name(pair.native), pair.wire);
            // Either spelling may be listed.
            assert_eq!(native_name(pair.native), pair.native);
        }
        assert_eq!(native_name("mcp__x__y"), "mcp__x__y");
        assert_eq!(wire_name("mcp__x__y"), "mcp__x__y");
    }

    #[rstest]
    #[case("Read", json!({"path": "a", "limit": 2}), json!({"file_path": "a", "limit": 2}))]
    #[case("Read", json!({"file_path": "a"}), json!({"file_path": "a"}))]
    #[case("Grep", json!({"pattern": "x", "path": "a"}), json!({"pattern": "x", "path": "a"}))]
    #[case("Other", json!({"path": "a"}), json!({"path": "a"}))]
    #[case("Bash", json!("{broken"), json!({"input": "{broken"}))]
    fn fields_have_their_names(#[case] tool: &str, #[case] ours: Value, #[case] theirs: Value) {
        assert_eq!(wire_args(tool, &ours), theirs);
    }

    #[rstest]
    #[case("Read", json!({"file_path": "a", "limit": 2}), json!({"path": "a", "limit": 2}))]
    #[case("Read", json!({"path": "a"}), json!({"path": "a"}))]
    #[case("Read", json!({"path": "a", "file_path": "b"}), json!({"path": "a", "file_path": "b"}))]
    #[case("Bash", json!("{broken"), json!("{broken"))]
    fn either_name_of_a_field_is_understood(
        #[case] tool: &str,
        #[case] written: Value,
        #[case] ours: Value,
    ) {
        assert_eq!(native_args(tool, &written), ours);
    }

    #[test]
    fn schemas_have_their_names() {
        let ours =
            json!({"properties": {"path": {"type": "string"}, "limit": {}}, "required": ["path"]});
        let theirs = json!({"properties": {"file_path": {"type": "string"}, "limit": {}}, "required": ["file_path"]});
        assert_eq!(wire_schema("Read", &ours), theirs);
        assert_eq!(wire_schema("Grep", &ours), ours);
    }
}
