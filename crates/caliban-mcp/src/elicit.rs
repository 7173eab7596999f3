//! Questions of servers to the person behind the session.

use std::fmt::Debug;

use futures::future::BoxFuture;
use serde_json::Value;

/// Answers what servers ask. Without one, servers are told that nobody can be asked.
pub trait Elicitor: Send + Sync + Debug {
    /// `message` is the server's own text, cleaned and bounded; `schema` describes the object to
    /// answer with. The future is dropped when the server no longer wants to know.
    fn elicit<'a>(
        &'a self,
        server: &'a str,
        message: &'a str,
        schema: &'a Value,
    ) -> BoxFuture<'a, Elicited>;
}

/// What the person said.
#[derive(Debug, Clone, PartialEq)]
pub enum Elicited {
    /// The answer, an object that fits the schema.
    Accept(Value),
    /// The person does not want to answer.
    Decline,
    /// The person went away without deciding.
    Cancel,
}

/// The answer with the schema's defaults for what it leaves out.
pub(crate) fn with_defaults(mut answer: Value, schema: &Value) -> Value {
    let fields = schema["properties"].as_object();
    if let Value::Object(given) = &mut answer {
        for (name, field) in fields.into_iter().flatten() {
            if let Some(default) = field.get("default") {
                given.entry(name).or_insert_with(|| default.clone());
            }
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_left_out_gets_its_default() {
        let schema = json!({"properties": {
            "a": {"type": "integer", "default": 1}, "b": {"default": "x"}, "c": {"type": "string"},
        }});
        let answer = with_defaults(json!({"a": 2}), &schema);
        assert_eq!(answer, json!({"a": 2, "b": "x"}));
    }
}
