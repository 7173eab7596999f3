//! Where a plugin of a list lies, in every form that lists have.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use super::address::{AddressError, GitAddress, checked, web_address};
use crate::relative::RelativePath;

/// Where a plugin lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EntrySource {
    /// Beside the list.
    Path {
        path: RelativePath,
    },
    Git {
        url: GitAddress,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reference: Option<String>,
        /// The only commit that is accepted.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        sha: Option<String>,
        #[serde(default)]
        directory: RelativePath,
    },
    Archive {
        url: String,
        sha256: String,
    },
    /// A package of a registry of npm; nothing of it runs.
    Npm {
        package: String,
        /// A version, a range or a tag; the latest if left out.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        version: Option<String>,
        /// Instead of the public registry.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        registry: Option<String>,
    },
}

impl fmt::Display for EntrySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { path } => path.fmt(f),
            Self::Git {
                url,
                reference,
                directory,
                ..
            } => {
                f.write_str(url.as_str())?;
                if let Some(reference) = reference {
                    write!(f, "#{reference}")?;
                }
                if directory.is_root() {
                    return Ok(());
                }
                write!(f, ", {directory}")
            }
            Self::Archive { url, .. } => f.write_str(url),
            Self::Npm {
                package,
                version,
                registry,
            } => {
                write!(f, "npm:{package}")?;
                if let Some(version) = version {
                    write!(f, "@{version}")?;
                }
                match registry {
                    Some(registry) => write!(f, " of {registry}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// What places in a list are meant from.
#[derive(Debug, Clone, Copy)]
pub(super) struct From<'a> {
    /// The directory that bare names of plugins lie in.
    pub(super) directory: Option<&'a str>,
    /// The address of the list, where it has one.
    pub(super) address: Option<&'a Url>,
}

/// Where the plugin of an entry lies, or why nobody can have it.
pub(super) fn source(fields: &Map<String, Value>, from: From<'_>) -> Result<EntrySource, String> {
    let text = |table: &Map<String, Value>, key: &str| {
        table.get(key).and_then(Value::as_str).map(str::to_owned)
    };
    match fields.get("source") {
        None | Some(Value::Null) => {
            let url = text(fields, "url").ok_or("it has no source")?;
            archive(&url, text(fields, "sha256"), from.address)
        }
        Some(Value::String(path)) => path_source(path, from.directory),
        Some(Value::Object(source)) => {
            let get = |key: &str| text(source, key);
            let need = |key: &str| get(key).ok_or_else(|| format!("its source has no `{key}`"));
            match need("source")?.as_str() {
                "local" => path_source(&need("path")?, from.directory),
                "github" => {
                    let repository = need("repo")?;
                    let is_pair = repository.split('/').count() == 2;
                    let url = format!("https://github.com/{repository}.git");
                    if !is_pair {
                        return Err(format!("`{repository}` is no repository of GitHub"));
                    }
                    git(&url, get("ref"), get("sha"), get("path").as_deref())
                }
                "url" | "git" => git(
                    &need("url")?,
                    get("ref"),
                    get("sha"),
                    get("path").as_deref(),
                ),
                "git-subdir" => {
                    let url = need("url")?;
                    let is_pair = !url.contains(':') && url.split('/').count() == 2;
                    let url = if is_pair {
                        format!("https://github.com/{url}.git")
                    } else {
                        url
                    };
                    git(&url, get("ref"), get("sha"), Some(&need("path")?))
                }
                "archive" => archive(&need("url")?, get("sha256"), from.address),
                "npm" => npm(need("package")?, get("version"), get("registry")),
                "command" => {
                    Err("its source is a program to run, which caliban does not do".to_owned())
                }
                other => Err(format!(
                    "its kind of source, `{}`, is unknown",
                    other.escape_debug()
                )),
            }
        }
        Some(_) => Err("its source is neither a path nor a table".to_owned()),
    }
}

fn path_source(path: &str, base: Option<&str>) -> Result<EntrySource, String> {
    // A bare name lies in the directory that the list names.
    let full = match base {
        Some(base) if !path.starts_with("./") => format!("{base}/{path}"),
        Some(_) | None => path.to_owned(),
    };
    let path = RelativePath::parse(&full).map_err(|error| error.to_string())?;
    Ok(EntrySource::Path { path })
}

fn git(
    url: &str,
    reference: Option<String>,
    sha: Option<String>,
    directory: Option<&str>,
) -> Result<EntrySource, String> {
    let said = |error: AddressError| error.to_string();
    let is_commit = |sha: &String| {
        matches!(sha.len(), 40 | 64) && sha.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if let Some(sha) = sha.as_ref().filter(|sha| !is_commit(sha)) {
        return Err(format!("`{}` is no commit", sha.escape_debug()));
    }
    Ok(EntrySource::Git {
        url: GitAddress::parse(url).map_err(said)?,
        reference: reference.map(|it| checked(&it)).transpose().map_err(said)?,
        sha: sha.map(|sha| sha.to_ascii_lowercase()),
        directory: RelativePath::parse(directory.unwrap_or_default())
            .map_err(|error| error.to_string())?,
    })
}

/// An archive, by a whole address or one that is meant from that of the list.
fn archive(url: &str, sha256: Option<String>, list: Option<&Url>) -> Result<EntrySource, String> {
    let joined = match (Url::parse(url), list) {
        (Err(url::ParseError::RelativeUrlWithoutBase), Some(list)) => list.join(url).ok(),
        (Ok(_) | Err(_), _) => None,
    };
    let url = joined.map_or_else(|| url.to_owned(), String::from);
    web_address(&url).map_err(|error| error.to_string())?;
    let sha256 = sha256.ok_or("its archive has no `sha256`")?;
    let digest = sha256
        .strip_prefix("sha256:")
        .unwrap_or(&sha256)
        .to_ascii_lowercase();
    if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err("its `sha256` is none".to_owned());
    }
    Ok(EntrySource::Archive {
        url,
        sha256: digest,
    })
}

fn npm(
    package: String,
    version: Option<String>,
    registry: Option<String>,
) -> Result<EntrySource, String> {
    let is_word = |word: &str| {
        !word.is_empty()
            && word.len() <= 214
            && !word.starts_with(['.', '_', '-'])
            && word.bytes().all(|byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'~')
            })
    };
    let is_name = match package.strip_prefix('@') {
        Some(scoped) => scoped
            .split_once('/')
            .is_some_and(|(scope, name)| is_word(scope) && is_word(name)),
        None => is_word(&package),
    };
    if !is_name {
        return Err(format!("`{}` is no package of npm", package.escape_debug()));
    }
    if let Some(registry) = &registry {
        web_address(registry).map_err(|error| error.to_string())?;
    }
    Ok(EntrySource::Npm {
        package,
        version,
        registry,
    })
}
