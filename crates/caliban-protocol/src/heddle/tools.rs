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
    let Value::Object(fields) = input else {
        // What the model wrote was no object.
        return Value::Object(Map::from_iter([("input".to_owned(), input.clone())]));
    };
    let pair = TABLE.iter().find(|pair| pair.native == native);
    let renames = pair.map_or(&[] as &[_], |pair| pair.fields);
    let rename = |name: &String| {
        let found = renames.iter().find(|(_, ours)| ours == name);
        found.map_or_else(|| name.clone(), |(theirs, _)| (*theirs).to_owned())
    };
    fields
        .iter()
        .map(|(name, value)| (rename(name), value.clone()))
        .collect::<Map<_, _>>()
        .into()
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
}
