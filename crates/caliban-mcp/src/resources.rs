//! Resources and prompts of servers: listed when first asked for and again when they change.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use caliban_model::ToolContent;
use serde_json::{Map, Value};

use crate::connection::{Connection, List, RequestError};
use crate::results;
use crate::server::Server;
use crate::status::Status;
use crate::text;

const MAX_NAME: usize = 200;
const MAX_DESCRIPTION: usize = 500;
const MAX_URI: usize = 4096;

/// Something a server lets others read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub name: String,
    pub description: Option<String>,
    pub mime: Option<String>,
    pub address: ResourceAddress,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceAddress {
    Uri(String),
    /// With places for arguments, as in `repo://{owner}/{name}`.
    Template(String),
}

/// What one resource is asked for by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceUri(String);

impl ResourceUri {
    /// The file that it is, where it is one of this machine.
    pub fn file(&self) -> Option<PathBuf> {
        let (scheme, rest) = self.0.split_once(':')?;
        if !scheme.eq_ignore_ascii_case("file") {
            return None;
        }
        // Whatever host it names, the server that reads it is on this machine as far as we know.
        let path = match rest.strip_prefix("//") {
            Some(rest) => &rest[rest.find('/')?..],
            None => rest,
        };
        let path = path.split(['?', '#']).next().unwrap_or_default();
        Some(PathBuf::from(decode(path)))
    }
}

/// Turns `%41` into what it stands for.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digit = |at: usize| {
            behind
                .get(at)
                .and_then(|byte| char::from(*byte).to_digit(16))
        };
        if let (b'%', Some(high), Some(low)) = (first, digit(0), digit(1)) {
            // Two digits fit.
            bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
            rest = &behind[2..];
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A prompt that a server has ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The server, as it is called in the settings.
    pub server: Arc<str>,
    pub name: String,
    pub description: Option<String>,
    pub arguments: Vec<PromptArgument>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptArgument {
    pub name: String,
    pub description: Option<String>,
    pub is_required: bool,
}

/// Why something of a server cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    #[error("there is no MCP server named `{0}`")]
    UnknownServer(String),
    #[error("the MCP server {server} {status}")]
    Unavailable { server: Arc<str>, status: Status },
    #[error("the MCP server {server}: {reason}")]
    Refused { server: Arc<str>, reason: String },
    #[error("the MCP server {server} has no resource `{resource}`")]
    UnknownResource { server: Arc<str>, resource: String },
    #[error("`{template}` takes {expected} arguments and {given} were given")]
    Arguments {
        template: String,
        expected: usize,
        given: usize,
    },
    #[error(
        "`{0}` is a template of a kind that is not supported; only `{{name}}` and `{{+name}}` are"
    )]
    Template(String),
}

/// What was listed, and at which count of changes.
#[derive(Debug, Default)]
pub(crate) struct Listings {
    resources: Mutex<Option<(u64, Arc<[Resource]>)>>,
    prompts: Mutex<Option<(u64, Arc<[Prompt]>)>>,
}

impl Listings {
    /// A new connection may be to another version of the server.
    pub(crate) fn clear(&self) {
        *self
            .resources
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = None;
        *self.prompts.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Server {
    async fn connected(&self) -> Result<Connection, McpError> {
        self.connection()
            .await
            .map_err(|status| McpError::Unavailable {
                server: Arc::clone(&self.name),
                status,
            })
    }

    fn refused(&self, error: &RequestError) -> McpError {
        McpError::Refused {
            server: Arc::clone(&self.name),
            reason: error.to_string(),
        }
    }

    pub(crate) async fn resources(&self) -> Result<Arc<[Resource]>, McpError> {
        let connection = self.connected().await?;
        let changes = connection.signals.resources.load(Ordering::Relaxed);
        if let Some((known, resources)) = &*self
            .listings
            .resources
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            && *known == changes
        {
            return Ok(Arc::clone(resources));
        }
        let offered = connection.peer.peer_info();
        let has_resources = offered.is_some_and(|info| info.capabilities.resources.is_some());
        let mut found = Vec::new();
        if has_resources {
            let limit = self.common.parts.timeouts.connect;
            let list = connection
                .list(List::Resources, limit)
                .await
                .map_err(|error| self.refused(&error))?;
            found.extend(list.entries.iter().filter_map(resource));
            // Servers without templates may not know the question.
            if let Ok(list) = connection.list(List::Templates, limit).await {
                found.extend(list.entries.iter().filter_map(template));
            }
        }
        let resources: Arc<[Resource]> = found.into();
        *self
            .listings
            .resources
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some((changes, Arc::clone(&resources)));
        Ok(resources)
    }

    /// The address of a resource by its name, its address or its template; `args` fill a
    /// template's places in their order.
    pub(crate) async fn resource_address(
        &self,
        wanted: &str,
        args: &[String],
    ) -> Result<ResourceUri, McpError> {
        let resources = self.resources().await?;
        let is_meant = |resource: &&Resource| match &resource.address {
            ResourceAddress::Uri(uri) => uri == wanted,
            ResourceAddress::Template(template) => template == wanted,
        };
        let found = resources
            .iter()
            .find(is_meant)
            .or_else(|| resources.iter().find(|resource| resource.name == wanted));
        let uri = match found.map(|resource| &resource.address) {
            Some(ResourceAddress::Uri(uri)) => uri.clone(),
            Some(ResourceAddress::Template(template)) => fill(template, args)?,
            // A server may read more than it lists.
            None if wanted.contains(':') && wanted.len() <= MAX_URI => wanted.to_owned(),
            None => {
                return Err(McpError::UnknownResource {
                    server: Arc::clone(&self.name),
                    resource: text::line(wanted, MAX_NAME),
                });
            }
        };
        Ok(ResourceUri(uri))
    }

    pub(crate) async fn read_resource(
        &self,
        address: &ResourceUri,
    ) -> Result<Vec<ToolContent>, McpError> {
        let connection = self.connected().await?;
        let parts = &self.common.parts;
        let result = connection
            .read_resource(&address.0, parts.timeouts.call)
            .await
            .map_err(|error| self.refused(&error))?;
        Ok(results::resource(&result, parts.max_output_tokens))
    }

    pub(crate) async fn prompts(&self) -> Result<Arc<[Prompt]>, McpError> {
        let connection = self.connected().await?;
        let changes = connection.signals.prompts.load(Ordering::Relaxed);
        if let Some((known, prompts)) = &*self
            .listings
            .prompts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            && *known == changes
        {
            return Ok(Arc::clone(prompts));
        }
        let offered = connection.peer.peer_info();
        let has_prompts = offered.is_some_and(|info| info.capabilities.prompts.is_some());
        let mut found = Vec::new();
        if has_prompts {
            let list = connection
                .list(List::Prompts, self.common.parts.timeouts.connect)
                .await
                .map_err(|error| self.refused(&error))?;
            found.extend(
                list.entries
                    .iter()
                    .filter_map(|entry| prompt(&self.name, entry)),
            );
        }
        let prompts: Arc<[Prompt]> = found.into();
        *self
            .listings
            .prompts
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some((changes, Arc::clone(&prompts)));
        Ok(prompts)
    }

    pub(crate) async fn get_prompt(
        &self,
        name: &str,
        args: &BTreeMap<String, String>,
    ) -> Result<String, McpError> {
        let connection = self.connected().await?;
        let arguments: Map<String, Value> = args
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().into()))
            .collect();
        let parts = &self.common.parts;
        let result = connection
            .get_prompt(name, arguments, parts.timeouts.call)
            .await
            .map_err(|error| self.refused(&error))?;
        Ok(results::prompt(&result, parts.max_output_tokens))
    }
}

fn resource(entry: &Value) -> Option<Resource> {
    let uri = entry["uri"].as_str().filter(|uri| uri.len() <= MAX_URI)?;
    Some(described(entry, ResourceAddress::Uri(text::clean(uri))))
}

fn template(entry: &Value) -> Option<Resource> {
    let template = entry["uriTemplate"]
        .as_str()
        .filter(|template| template.len() <= MAX_URI)?;
    Some(described(
        entry,
        ResourceAddress::Template(text::clean(template)),
    ))
}

fn described(entry: &Value, address: ResourceAddress) -> Resource {
    Resource {
        name: text::line(entry["name"].as_str().unwrap_or_default(), MAX_NAME),
        description: optional(&entry["description"]),
        mime: optional(&entry["mimeType"]),
        address,
    }
}

fn prompt(server: &Arc<str>, entry: &Value) -> Option<Prompt> {
    let arguments = entry["arguments"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|argument| {
            Some(PromptArgument {
                name: text::line(argument["name"].as_str()?, MAX_NAME),
                description: optional(&argument["description"]),
                is_required: argument["required"] == true,
            })
        })
        .collect();
    Some(Prompt {
        server: Arc::clone(server),
        name: text::line(entry["name"].as_str()?, MAX_NAME),
        description: optional(&entry["description"]),
        arguments,
    })
}

fn optional(value: &Value) -> Option<String> {
    value.as_str().map(|said| text::line(said, MAX_DESCRIPTION))
}

/// Puts arguments into the places of a template, in their order.
fn fill(template: &str, args: &[String]) -> Result<String, McpError> {
    let places = template.matches('{').count();
    if places != args.len() {
        return Err(McpError::Arguments {
            template: template.to_owned(),
            expected: places,
            given: args.len(),
        });
    }
    let unsupported = || McpError::Template(template.to_owned());
    let mut uri = String::with_capacity(template.len());
    let mut rest = template;
    let mut args = args.iter();
    while let Some((before, after)) = rest.split_once('{') {
        let (place, after) = after.split_once('}').ok_or_else(unsupported)?;
        let (name, slashes) = match place.strip_prefix('+') {
            Some(name) => (name, Slashes::Kept),
            None => (place, Slashes::Encoded),
        };
        let is_name =
            |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(unsupported());
        }
        uri.push_str(before);
        uri.push_str(&encode(args.next().map_or("", String::as_str), slashes));
        rest = after;
    }
    uri.push_str(rest);
    Ok(uri)
}

/// Whether an argument may have several parts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slashes {
    Kept,
    Encoded,
}

/// Percent-encodes what is not plain, so that an argument stays in its place.
fn encode(argument: &str, slashes: Slashes) -> String {
    let mut encoded = String::with_capacity(argument.len());
    for byte in argument.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            b'/' | b':' | b'@' if slashes == Slashes::Kept => encoded.push(char::from(byte)),
            _ => encoded.extend(format!("%{byte:02X}").chars()),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("repo://{owner}/{name}", &["a", "b c/d"], "repo://a/b%20c%2Fd")]
    #[case("file:///{+path}", &["a/b c"], "file:///a/b%20c")]
    #[case("plain:x", &[], "plain:x")]
    #[case("u:{id}", &["é?#"], "u:%C3%A9%3F%23")]
    fn templates_are_filled_in_order(
        #[case] template: &str,
        #[case] args: &[&str],
        #[case] expected: &str,
    ) {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        assert_eq!(fill(template, &args).unwrap(), expected);
    }

    #[rstest]
    #[case("file:///a/b%20c.txt", Some("/a/b c.txt"))]
    #[case("FILE://localhost/%2Essh/id", Some("/.ssh/id"))]
    #[case("file:/a/..//b?x#y", Some("/a/..//b"))]
    #[case("file:///a%", Some("/a%"))]
    #[case("file://", None)]
    #[case("https://example.com/a", None)]
    fn addresses_of_files_are_known(#[case] uri: &str, #[case] expected: Option<&str>) {
        let file = ResourceUri(uri.to_owned()).file();
        assert_eq!(file, expected.map(PathBuf::from));
    }

    #[test]
    fn templates_that_cannot_be_filled_are_refused() {
        let args = ["x".to_owned()];
        assert!(matches!(
            fill("a:{b}/{c}", &args),
            Err(McpError::Arguments {
                expected: 2,
                given: 1,
                ..
            })
        ));
        for template in ["a:{?q}", "a:{/b*}", "a:{b", "a:{}"] {
            assert!(
                matches!(fill(template, &args), Err(McpError::Template(_))),
                "{template}"
            );
        }
    }
}
