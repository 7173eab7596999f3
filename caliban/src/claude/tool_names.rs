//! The names that models of this dialect know tools by.

use std::borrow::Cow;

use caliban_model::ToolSpec;
use caliban_protocol::claude::{
    input_ours, input_theirs, ours, schema_theirs, theirs, wording_theirs,
};
use caliban_tools::GENERAL;
use serde_json::{Value, json};

use crate::renaming::Names;

#[derive(Debug)]
pub(crate) struct ClaudeNames;

impl Names for ClaudeNames {
    fn theirs<'n>(&self, name: &'n str) -> &'n str {
        theirs(name)
    }

    fn ours<'n>(&self, name: &'n str) -> &'n str {
        ours(name)
    }

    fn input_theirs(&self, name: &str, input: &Value) -> Value {
        input_theirs(name, input)
    }

    fn input_ours(&self, name: &str, input: &Value) -> Value {
        input_ours(name, input)
    }

    fn spec(&self, spec: &ToolSpec) -> ToolSpec {
        let mut input_schema = schema_theirs(&spec.name, &spec.input_schema);
        // Models of this dialect name a kind in every call, also where there is but one.
        if spec.name == "AgentTool" && input_schema["properties"]["subagent_type"].is_null() {
            input_schema["properties"]["subagent_type"] = json!({
                "type": "string",
                "description": format!("The kind of agent. {GENERAL}"),
            });
        }
        ToolSpec {
            name: theirs(&spec.name).to_owned(),
            description: wording_theirs(&spec.description).into_owned(),
            input_schema,
        }
    }

    fn wording<'t>(&self, text: &'t str) -> Cow<'t, str> {
        wording_theirs(text)
    }
}
