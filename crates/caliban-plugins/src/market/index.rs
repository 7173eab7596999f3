//! The list of a marketplace: `marketplace.json` as Claude Code writes it, or an index of archives.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::Url;

use super::address::{AddressError, GitAddress, checked, web_address};
use crate::name::{PluginName, is_plain};
use crate::relative::RelativePath;

/// Where the list of a repository or directory may be, in the order they are looked for.
pub const INDEX_FILES: [&str; 4] = [
    ".claude-plugin/marketplace.json",
    ".agents/plugins/marketplace.json",
    "marketplace.json",
    "index.json",
];
/// The largest list, in bytes, and the most entries of one.
pub const INDEX_BYTES: u64 = 8 * 1024 * 1024;
const MOST: usize = 10_000;

#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("it is not a list of plugins: {0}")]
    Json(String),
    #[error("it has no list `plugins`")]
    NoPlugins,
    #[error("it lists more than {MOST} plugins")]
    TooMany,
    #[error("its name `{}` is not plain: letters, digits, `-`, `_` and `.`", .0.escape_debug())]
    Name(String),
}

/// A list of plugins.
#[derive(Debug, Clone, PartialEq)]
pub struct Marketplace {
    /// As it calls itself.
    pub name: Option<String>,
    pub description: Option<String>,
    pub entries: Vec<Entry>,
    /// What is worth knowing about it: entries that cannot be read.
    pub remarks: Vec<String>,
}

/// A plugin of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub name: PluginName,
    pub version: Option<String>,
    pub description: Option<String>,
    /// Where it lies, or why it cannot be installed.
    pub source: Result<EntrySource, String>,
    /// Whether the plugin's own manifest counts.
    pub strict: bool,
    /// Everything that the entry says.
    pub fields: Map<String, Value>,
}

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

/// Keys of an entry that are not the manifest's.
const MARKETS: &[&str] = &[
    "source",
    "strict",
    "versions",
    "url",
    "sha256",
    "manifest_sha256",
    "category",
    "tags",
    "relevance",
];
/// Keys that name parts.
const PARTS: [&str; 6] = [
    "skills",
    "commands",
    "agents",
    "hooks",
    "mcpServers",
    "outputStyles",
];

/// What places in a list are meant from.
#[derive(Debug, Clone, Copy)]
struct From<'a> {
    /// The directory that bare names of plugins lie in.
    directory: Option<&'a str>,
    /// The address of the list, where it has one.
    address: Option<&'a Url>,
}

impl Marketplace {
    pub fn parse(text: &str) -> Result<Self, IndexError> {
        Self::read(text, None)
    }

    /// A list that was fetched from this address, which its archives may be meant from.
    pub fn parse_from(text: &str, address: &str) -> Result<Self, IndexError> {
        Self::read(text, Url::parse(address).ok().as_ref())
    }

    fn read(text: &str, address: Option<&Url>) -> Result<Self, IndexError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let document: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| IndexError::Json(error.to_string()))?;
        let plain = |name: &str| {
            if is_plain(name) {
                Ok(name.to_owned())
            } else {
                Err(IndexError::Name(name.chars().take(100).collect()))
            }
        };
        let name = document
            .get("name")
            .and_then(Value::as_str)
            .map(plain)
            .transpose()?;
        let metadata = document.get("metadata");
        let directory = metadata
            .and_then(|it| it.get("pluginRoot"))
            .and_then(Value::as_str);
        let from = From { directory, address };
        let listed = match document.get("plugins") {
            Some(Value::Array(entries)) => entries.iter().collect::<Vec<_>>(),
            _ => return Err(IndexError::NoPlugins),
        };
        if listed.len() > MOST {
            return Err(IndexError::TooMany);
        }
        let mut remarks = Vec::new();
        let mut entries: BTreeMap<PluginName, Entry> = BTreeMap::new();
        for value in listed {
            match Entry::read(value, from) {
                Ok(entry) => match entries.get(&entry.name) {
                    // Of two versions in a list the later one is meant.
                    Some(known) if !is_later(&entry, known) => {}
                    Some(_) | None => {
                        entries.insert(entry.name.clone(), entry);
                    }
                },
                Err(reason) => remarks.push(reason),
            }
        }
        let description = metadata.and_then(|it| it.get("description"));
        let description = description.or_else(|| document.get("description"));
        Ok(Self {
            name,
            description: description.and_then(Value::as_str).map(str::to_owned),
            entries: entries.into_values().collect(),
            remarks,
        })
    }

    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|entry| entry.name.as_str() == name)
    }
}

fn is_later(entry: &Entry, known: &Entry) -> bool {
    let version = |entry: &Entry| Version::parse(entry.version.as_deref().unwrap_or_default()).ok();
    version(entry) > version(known)
}

impl Entry {
    fn read(value: &Value, from: From<'_>) -> Result<Self, String> {
        let Value::Object(fields) = value else {
            return Err("an entry is no table".to_owned());
        };
        let name = fields
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let name: PluginName = name
            .parse()
            .map_err(|error| format!("an entry is left out: {error}"))?;
        let mut fields = fields.clone();
        if let Some(version) = latest(&fields) {
            // An index of archives: the latest is meant.
            fields.extend(version);
        }
        let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            version: text("version"),
            description: text("description"),
            source: source(&fields, from),
            strict: fields
                .get("strict")
                .and_then(Value::as_bool)
                .unwrap_or(true),
            name,
            fields,
        })
    }

    /// Whether the entry itself says what the plugin is made of.
    pub fn has_parts(&self) -> bool {
        !self.strict || PARTS.iter().any(|key| self.fields.contains_key(*key))
    }

    /// The manifest of a plugin of this entry, from its own where it has one.
    pub fn manifest(
        &self,
        own: Option<&Map<String, Value>>,
        root_is_market: bool,
    ) -> Map<String, Value> {
        let mut manifest = Map::new();
        let said = self
            .fields
            .iter()
            .filter(|(key, _)| !MARKETS.contains(&key.as_str()));
        manifest.extend(said.map(|(key, value)| (key.clone(), value.clone())));
        if self.strict {
            manifest.extend(own.cloned().unwrap_or_default());
        } else {
            manifest.insert("name".to_owned(), self.name.as_str().into());
        }
        if !self.strict || root_is_market {
            // What the entry does not name is not the plugin's.
            let mut components = Map::new();
            for (theirs, ours) in [
                ("skills", "skills"),
                ("commands", "commands"),
                ("agents", "agents"),
                ("hooks", "hooks"),
                ("mcpServers", "mcp_servers"),
                ("outputStyles", "output_styles"),
            ] {
                let listed = manifest.remove(theirs).unwrap_or_else(|| json!([]));
                components.insert(ours.to_owned(), listed);
            }
            manifest.insert("components".to_owned(), components.into());
        }
        manifest
    }
}

/// The latest of several versions, with its own fields.
fn latest(fields: &Map<String, Value>) -> Option<Map<String, Value>> {
    let versions = fields.get("versions")?.as_array()?;
    let versions = versions.iter().filter_map(|value| {
        let fields = value.as_object()?;
        let version = Version::parse(fields.get("version")?.as_str()?).ok()?;
        Some((version, fields))
    });
    versions
        .max_by(|a, b| a.0.cmp(&b.0))
        .map(|(_, fields)| fields.clone())
}

fn source(fields: &Map<String, Value>, from: From<'_>) -> Result<EntrySource, String> {
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

/// What a list of the web without a name is called.
pub(crate) fn name_of(place: &str) -> String {
    let name: String = place
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() || letter == '.' {
                letter
            } else {
                '-'
            }
        })
        .collect();
    let name = name.trim_matches(['-', '.']);
    let name: String = name.replace("..", ".").chars().take(64).collect();
    let name = name.trim_end_matches(['-', '.']).to_owned();
    if is_plain(&name) {
        name
    } else {
        "marketplace".to_owned()
    }
}

impl Marketplace {
    /// What it is called: as it says, else after its place.
    pub fn called(&self, source: &super::MarketSource) -> String {
        match &self.name {
            Some(name) => name.clone(),
            None => match source {
                super::MarketSource::Directory { path } => {
                    let name = Path::new(path).file_name();
                    name_of(&name.map_or_else(String::new, |it| it.to_string_lossy().into_owned()))
                }
                source => name_of(&source.identity()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn one(entry: &Value) -> Entry {
        let list =
            json!({"name": "m", "metadata": {"pluginRoot": "./plugins"}, "plugins": [entry]});
        Marketplace::parse(&list.to_string())
            .unwrap()
            .entries
            .remove(0)
    }

    #[rstest]
    #[case(json!("./x"), "x")]
    #[case(json!("x"), "plugins/x")]
    #[case(json!("./"), ".")]
    #[case(json!({"source": "local", "path": "./y"}), "y")]
    #[case(json!({"source": "github", "repo": "o/r", "ref": "v1"}), "https://github.com/o/r.git#v1")]
    #[case(json!({"source": "url", "url": "https://h.example/r.git", "path": "a"}), "https://h.example/r.git, a")]
    #[case(json!({"source": "git-subdir", "url": "o/r", "path": "b"}), "https://github.com/o/r.git, b")]
    #[case(json!({"source": "archive", "url": "https://h.example/a.zip", "sha256": "A".repeat(64)}), "https://h.example/a.zip")]
    #[case(json!({"source": "npm", "package": "@s/x", "version": "^1"}), "npm:@s/x@^1")]
    fn every_kind_of_source_is_read(#[case] source: Value, #[case] expected: &str) {
        let entry = one(&json!({"name": "p", "source": source}));
        assert_eq!(entry.source.unwrap().to_string(), expected);
    }

    #[rstest]
    #[case("a.zip", Ok("https://h.example/market/a.zip"))]
    #[case("../b/a.zip", Ok("https://h.example/b/a.zip"))]
    #[case("//other.example/a.zip", Ok("https://other.example/a.zip"))]
    #[case("http://h.example/a.zip", Err("not https"))]
    #[case("file:///etc/passwd", Err("not an address"))]
    #[case("//me:secret@h.example/a.zip", Err("user name or password"))]
    fn an_archive_may_be_meant_from_the_list(
        #[case] url: &str,
        #[case] expected: Result<&str, &str>,
    ) {
        let entry = json!({"name": "p", "url": url, "sha256": "0".repeat(64)});
        let list = json!({"plugins": [entry]}).to_string();
        let of = |list: Marketplace| list.entries[0].source.clone();
        let address = "https://h.example/market/index.json";
        let source = of(Marketplace::parse_from(&list, address).unwrap());
        match (source, expected) {
            (Ok(source), Ok(expected)) => assert_eq!(source.to_string(), expected),
            (Err(reason), Err(said)) => assert!(reason.contains(said), "{reason}"),
            (source, _) => panic!("{source:?}"),
        }
        let alone = of(Marketplace::parse(&list).unwrap());
        assert!(
            alone.is_err(),
            "without an address there is nothing to begin from"
        );
    }

    #[rstest]
    #[case(json!("../x"), "leads out")]
    #[case(json!({"source": "npm", "package": "../x"}), "no package of npm")]
    #[case(json!({"source": "npm", "package": "x", "registry": "http://h.example"}), "not https")]
    #[case(json!({"source": "command", "command": "x"}), "program to run")]
    #[case(json!({"source": "carrier-pigeon"}), "unknown")]
    #[case(json!({"source": "url", "url": "ext::sh -c x"}), "not an address")]
    #[case(json!({"source": "url", "url": "https://h.example/r.git", "ref": "--x"}), "no name of a branch")]
    #[case(json!({"source": "github", "repo": "o/r", "sha": "main"}), "no commit")]
    #[case(json!({"source": "archive", "url": "https://h.example/a.zip"}), "no `sha256`")]
    #[case(json!({"source": "archive", "url": "http://h.example/a.zip", "sha256": "0".repeat(64)}), "not https")]
    #[case(json!(3), "neither")]
    fn a_source_that_cannot_be_had_spoils_only_its_entry(
        #[case] source: Value,
        #[case] said: &str,
    ) {
        let reason = one(&json!({"name": "p", "source": source}))
            .source
            .unwrap_err();
        assert!(reason.contains(said), "{reason}");
    }

    #[test]
    fn an_index_of_archives_gives_the_latest() {
        let digest = "0".repeat(64);
        let version = |version: &str| json!({"version": version, "url": format!("https://h.example/{version}.tgz"), "sha256": digest});
        let entry = one(
            &json!({"name": "p", "versions": [version("1.9.0"), version("1.10.0"), version("1.2.0")]}),
        );
        assert_eq!(entry.version.as_deref(), Some("1.10.0"));
        let flat = json!({"plugins": [
            {"name": "p", "version": "1.0.0", "url": "https://h.example/1.tgz", "sha256": digest},
            {"name": "p", "version": "2.0.0", "url": "https://h.example/2.tgz", "sha256": digest},
            {"name": "../q"},
        ]});
        let list = Marketplace::parse(&flat.to_string()).unwrap();
        assert_eq!(list.entries.len(), 1);
        assert_eq!(list.entries[0].version.as_deref(), Some("2.0.0"));
        assert_eq!(list.remarks.len(), 1);
    }

    #[test]
    fn an_entry_may_be_the_manifest() {
        let entry = one(
            &json!({"name": "p", "source": "./", "strict": false, "skills": ["./skills/a"], "category": "x"}),
        );
        let manifest = entry.manifest(Some(json!({"name": "other"}).as_object().unwrap()), true);
        assert_eq!(manifest["name"], "p");
        assert_eq!(manifest["components"]["skills"], json!(["./skills/a"]));
        assert_eq!(manifest["components"]["hooks"], json!([]));
        assert!(!manifest.contains_key("category"));
    }

    #[rstest]
    #[case("[]", "not a list")]
    #[case("{}", "no list `plugins`")]
    #[case("{\"name\": \"../x\", \"plugins\": []}", "not plain")]
    fn other_documents_are_refused(#[case] text: &str, #[case] said: &str) {
        let error = Marketplace::parse(text).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}
