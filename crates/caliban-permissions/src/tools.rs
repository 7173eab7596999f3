//! What rules can be about: the tools there are, and what is asked about like one.

use caliban_model::{Argument, BUILT_IN, BuiltInTool, Effect};
use serde_json::Value;

/// Not a tool: what MCP servers want to know of the user.
const ELICIT: BuiltInTool = BuiltInTool {
    name: "Elicit",
    argument: Argument::Text("server"),
    effect: Effect::Session,
    fields: &["server"],
};

/// Everything that a rule can name besides the tools of MCP servers.
pub(crate) fn all() -> impl Iterator<Item = &'static BuiltInTool> {
    BUILT_IN.iter().chain([&ELICIT])
}

pub(crate) fn known(name: &str) -> Option<&'static BuiltInTool> {
    all().find(|tool| tool.name == name)
}

pub(crate) fn argument(tool: &str) -> Argument {
    known(tool).map_or(Argument::None, |tool| tool.argument)
}

pub(crate) fn is_editor(tool: &str) -> bool {
    known(tool).is_some_and(BuiltInTool::edits)
}

/// What a call gives for a field, under whichever of its names. Dots lead into objects.
pub(crate) fn values<'a>(tool: &str, key: &str, input: &'a Value) -> Vec<&'a Value> {
    let (top, rest) = match key.split_once('.') {
        Some((top, rest)) => (top, Some(rest)),
        None => (key, None),
    };
    let names: Vec<&str> = match known(tool) {
        Some(tool) => tool.synonyms(top).collect(),
        None => vec![top],
    };
    let deeper = |value: &'a Value| match rest {
        Some(rest) => rest.split('.').try_fold(value, |value, key| value.get(key)),
        None => Some(value),
    };
    names
        .into_iter()
        .filter_map(|name| deeper(input.get(name)?))
        .collect()
}

/// The known name closest to a misspelled one.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    caliban_model::nearest(name, all().map(|tool| tool.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_whatever_its_field_is_called() {
        let found = |tool: &str, key: &str, input: Value| -> Vec<Value> {
            values(tool, key, &input).into_iter().cloned().collect()
        };
        let input = || serde_json::json!({"skill": "a", "name": {"b": "c"}});
        assert_eq!(
            found("Skill", "name", input()),
            [input()["name"].clone(), "a".into()]
        );
        assert_eq!(found("Skill", "skill.b", input()), ["c"]);
        assert_eq!(found("mcp__x__y", "skill", input()), ["a"]);
    }

    #[test]
    fn misspelled_names_have_a_nearest_one() {
        assert_eq!(nearest("bash"), Some("Bash"));
        assert_eq!(nearest("Wrte"), Some("Write"));
        assert_eq!(nearest("Frobnicate"), None);
    }
}
