//! OpenAI's two wire formats, Chat Completions and Responses, and what they share. Compatible
//! servers speak the first; other platforms reach either through another transport.

mod chat;
mod content;
mod error;
mod lenient;
mod models;
mod profile;
mod reasoning;
mod responses;
mod revision;
mod schema;
#[cfg(test)]
mod testing;
mod tool_id;
mod usage;

pub(crate) use chat::{Chat, Server};
pub(crate) use profile::Profile;
pub(crate) use responses::{Responses, encode};

/// The name of both families: their histories and prices are the same.
const ID: &str = "openai";
