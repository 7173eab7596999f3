//! The form that a final answer must have: a JSON Schema, and how an answer is held to it.

use std::sync::Arc;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

/// How often the model is told what is wrong with its answer before the run fails.
pub(crate) const MAX_CORRECTIONS: u32 = 2;
/// Complaints told at once.
const MAX_COMPLAINTS: usize = 5;

/// A schema for final answers.
#[derive(Debug, Clone)]
pub struct AnswerSchema {
    pub schema: Arc<Value>,
    validator: Arc<Validator>,
}

impl PartialEq for AnswerSchema {
    fn eq(&self, other: &Self) -> bool {
        self.schema == other.schema
    }
}

impl AnswerSchema {
    /// The error says what is wrong with the schema.
    pub fn new(schema: Value) -> Result<Self, String> {
        let validator = jsonschema::draft202012::new(&schema).map_err(|error| error.to_string())?;
        Ok(Self {
            schema: Arc::new(schema),
            validator: Arc::new(validator),
        })
    }

    /// The value in an answer: all of it, or the first object that stands in it. The error says
    /// what is wrong with it.
    pub fn check(&self, answer: &str) -> Result<Value, String> {
        let value = find(answer).ok_or("the answer holds no JSON object")?;
        let complaints: Vec<String> = self
            .validator
            .iter_errors(&value)
            .take(MAX_COMPLAINTS)
            .map(|error| {
                let complaint = match error.kind() {
                    ValidationErrorKind::Required { property } => {
                        let field = property.as_str().unwrap_or_default();
                        format!("missing required field `{field}`")
                    }
                    _ => error.to_string(),
                };
                match error.instance_path().to_string().as_str() {
                    "" => complaint,
                    path => format!("{path}: {complaint}"),
                }
            })
            .collect();
        if complaints.is_empty() {
            Ok(value)
        } else {
            Err(complaints.join("; "))
        }
    }

    /// What the model is told about a wrong answer.
    pub(crate) fn correction(&self, problem: &str) -> String {
        format!(
            "Your answer does not validate: {problem}. Answer again with nothing but one JSON value that validates against this JSON Schema: {}",
            self.schema
        )
    }
}

fn find(answer: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(answer.trim()) {
        return Some(value);
    }
    answer.match_indices('{').find_map(|(start, _)| {
        let mut values = serde_json::Deserializer::from_str(&answer[start..]).into_iter();
        values.next()?.ok()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_found_and_held_to_the_whole_schema() {
        let schema = AnswerSchema::new(json!({
            "type": "object",
            "required": ["ok"],
            "properties": {"ok": {"$ref": "#/$defs/flag"}},
            "$defs": {"flag": {"type": "boolean"}},
        }))
        .unwrap();
        assert_eq!(schema.check(" {\"ok\": true} "), Ok(json!({"ok": true})));
        assert_eq!(
            schema.check("Here {is} it: {\"ok\": false}. Done {x}"),
            Ok(json!({"ok": false}))
        );
        assert!(schema.check("fine").unwrap_err().contains("no JSON object"));
        let missing = schema.check("{}").unwrap_err();
        assert!(missing.contains("missing required field `ok`"), "{missing}");
        assert!(
            schema
                .check("{\"ok\": 1}")
                .unwrap_err()
                .starts_with("/ok: ")
        );
        assert!(AnswerSchema::new(json!({"type": "nonsense"})).is_err());
    }
}
