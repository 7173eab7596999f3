//! The heddle dialect: a program sends requests, one JSON object per line, and reads answers,
//! events and results. Types and translations only; the loop is the server's.

mod envelope;
mod exchange;
mod request;
mod response;
mod tools;
mod version;

pub use envelope::{Code, Envelope, of_outcome};
pub use exchange::{Baseline, Exchange, Opening, Plan};
pub use request::{
    ApprovalMode, BadRequest, Choice, Config, Init, PermissionResponse, Request, Send, request,
};
pub use response::{Correlation, Response};
pub use tools::{native_args, native_name, wire_args, wire_name, wire_schema};
pub use version::{Mismatch, Version};
