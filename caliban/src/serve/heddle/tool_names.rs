//! The names that the model of a session knows tools by: those that the client listed them with.

use std::borrow::Cow;
use std::collections::BTreeSet;

use caliban_model::ToolSpec;
use caliban_protocol::heddle::{native_args, native_name, wire_args, wire_name, wire_schema};
use serde_json::Value;

use crate::renaming::Names;

/// Either name of a tool is understood in a call, whichever the model was shown.
#[derive(Debug)]
pub(crate) struct ListedNames {
    /// The tools that the client calls as we do.
    as_ours: BTreeSet<String>,
}

impl ListedNames {
    pub(crate) fn new(listed: &[String]) -> Self {
        let as_ours = listed.iter().filter(|name| native_name(name) == **name);
        Self {
            as_ours: as_ours.cloned().collect(),
        }
    }
}

impl Names for ListedNames {
    fn theirs<'n>(&self, ours: &'n str) -> &'n str {
        if self.as_ours.contains(ours) {
            ours
        } else {
            wire_name(ours)
        }
    }

    fn ours<'n>(&self, theirs: &'n str) -> &'n str {
        native_name(theirs)
    }

    fn input_theirs(&self, ours: &str, input: &Value) -> Value {
        if self.theirs(ours) == ours || !input.is_object() {
            input.clone()
        } else {
            wire_args(ours, input)
        }
    }

    fn input_ours(&self, ours: &str, input: &Value) -> Value {
        native_args(ours, input)
    }

    fn spec(&self, ours: &ToolSpec) -> ToolSpec {
        let name = self.theirs(&ours.name);
        ToolSpec {
            name: name.to_owned(),
            description: ours.description.clone(),
            input_schema: if name == ours.name {
                ours.input_schema.clone()
            } else {
                wire_schema(&ours.name, &ours.input_schema)
            },
        }
    }

    fn wording<'t>(&self, ours: &'t str) -> Cow<'t, str> {
        Cow::Borrowed(ours)
    }
}
