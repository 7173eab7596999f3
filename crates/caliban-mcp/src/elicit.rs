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
