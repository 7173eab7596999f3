//! The tools of an agent, by name, as they are at one moment.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use caliban_model::ToolSpec;
use jsonschema::Validator;
use serde_json::Value;

use crate::tool::Tool;

/// Tools in alphabetical order, which is also the order they are sent in: a stable prefix keeps
/// the provider's cache.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    tools: BTreeMap<String, Entry>,
    /// Put together once: every request of a run carries the same.
    specs: OnceLock<Arc<[ToolSpec]>>,
    spec_bytes: OnceLock<u64>,
}

/// A tool with what checking its input takes.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    tool: Arc<dyn Tool>,
    /// Compiled when first needed: most tools are not called in most runs.
    validator: Arc<OnceLock<Result<Validator, String>>>,
}

impl Registry {
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        Self::of(
            tools
                .into_iter()
                .map(|tool| (tool.spec().name.clone(), Entry::new(tool)))
                .collect(),
        )
    }

    fn of(tools: BTreeMap<String, Entry>) -> Self {
        Self {
            tools,
            specs: OnceLock::new(),
            spec_bytes: OnceLock::new(),
        }
    }

    /// The same tools and these; what was there before keeps its name.
    #[must_use]
    pub fn with(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let mut more = Self::new(tools).tools;
        more.extend(self.tools.clone());
        Self::of(more)
    }

    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name).map(|entry| &entry.tool)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    pub fn specs(&self) -> Arc<[ToolSpec]> {
        let specs = self.specs.get_or_init(|| {
            let tools = self.tools.values();
            tools.map(|entry| entry.tool.spec().clone()).collect()
        });
        Arc::clone(specs)
    }

    /// The size of all specifications as they are sent, about.
    pub(crate) fn spec_bytes(&self) -> u64 {
        let length = |spec: &ToolSpec| {
            spec.name.len() + spec.description.len() + json_length(&spec.input_schema)
        };
        *self.spec_bytes.get_or_init(|| {
            let specs = self.tools.values().map(|entry| entry.tool.spec());
            specs.map(|spec| length(spec) as u64).sum()
        })
    }

    /// The same tools, those kept for which `keep` holds.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&str) -> bool) -> Self {
        Self::of(
            self.tools
                .iter()
                .filter(|(name, _)| keep(name))
                .map(|(name, entry)| (name.clone(), entry.clone()))
                .collect(),
        )
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.tools.get(name)
    }

    /// What to say about a name that no tool has.
    pub(crate) fn unknown(&self, name: &str) -> String {
        let known: Vec<&str> = self.names().collect();
        if known.is_empty() {
            return format!("There is no tool named `{name}`: this session has no tools.");
        }
        format!(
            "There is no tool named `{name}`. The tools are: {}.",
            known.join(", ")
        )
    }
}

impl Entry {
    pub(crate) fn new(tool: Arc<dyn Tool>) -> Self {
        Self {
            validator: Arc::default(),
            tool,
        }
    }

    pub(crate) fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    /// Checks an input against the tool's schema; the error says what is wrong and where.
    pub(crate) fn validate(&self, input: &Value) -> Result<(), String> {
        let name = &self.tool.spec().name;
        if let Value::String(raw) = input {
            return Err(format!(
                "The input of {name} is not a JSON object: {}. Send the call again with valid JSON.",
                excerpt(raw)
            ));
        }
        if self.tool.understands(input) {
            return Ok(());
        }
        let validator = self.validator.get_or_init(|| {
            jsonschema::validator_for(&self.tool.spec().input_schema)
                .map_err(|error| error.to_string())
        });
        let validator = validator
            .as_ref()
            .map_err(|error| format!("The schema of {name} cannot be used: {error}."))?;
        // The tool says best which names it knows, aliases included.
        let input = without_nulls(input);
        let problems: Vec<String> = validator
            .iter_errors(&input)
            .filter(|error| !is_unknown_field(error))
            .take(MAX_PROBLEMS)
            .map(|error| {
                let place = error.instance_path().to_string();
                let said = described(&error);
                if place.is_empty() {
                    said
                } else {
                    format!("`{}`: {said}", place.trim_start_matches('/'))
                }
            })
            .collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "The input of {name} does not fit: {}.",
                problems.join("; ")
            ))
        }
    }
}

/// More problems than this help nobody.
const MAX_PROBLEMS: usize = 5;

/// Models write null for what they leave out; the types take both.
fn without_nulls(input: &Value) -> Cow<'_, Value> {
    match input {
        Value::Object(fields) if fields.values().any(Value::is_null) => {
            let mut fields = fields.clone();
            fields.retain(|_, value| !value.is_null());
            Cow::Owned(Value::Object(fields))
        }
        other => Cow::Borrowed(other),
    }
}

/// What is wrong, with every word that could have stood there: the model has nowhere to look.
fn described(error: &jsonschema::ValidationError<'_>) -> String {
    let jsonschema::error::ValidationErrorKind::Enum { options } = error.kind() else {
        return error.to_string();
    };
    let options = options.as_array().map_or(&[][..], Vec::as_slice);
    let words: Vec<String> = options.iter().map(Value::to_string).collect();
    match words.split_last() {
        Some((last, [])) => format!("{} is not {last}", error.instance()),
        Some((last, others)) => {
            let others = others.join(", ");
            format!("{} is not one of {others} or {last}", error.instance())
        }
        None => error.to_string(),
    }
}

fn is_unknown_field(error: &jsonschema::ValidationError<'_>) -> bool {
    matches!(
        error.kind(),
        jsonschema::error::ValidationErrorKind::AdditionalProperties { .. }
    )
}

fn excerpt(text: &str) -> String {
    const LONGEST: usize = 120;
    let mut cut: String = text.chars().take(LONGEST).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    format!("`{cut}`")
}

/// About how long a value is as JSON: what is escaped counts once.
fn json_length(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(truth) => 5 - usize::from(*truth),
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => text.len() + 2,
        Value::Array(values) => {
            let commas = values.len().saturating_sub(1);
            2 + commas + values.iter().map(json_length).sum::<usize>()
        }
        Value::Object(fields) => {
            let commas = fields.len().saturating_sub(1);
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| name.len() + 3 + json_length(value));
            2 + commas + fields.sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_as_long_as_it_is_written() {
        for value in [
            json!({"a": [1, -2.5, null, true, false], "b": {}, "c": []}),
            json!("plain text"),
            json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        ] {
            assert_eq!(json_length(&value), value.to_string().len(), "{value}");
        }
    }
}
