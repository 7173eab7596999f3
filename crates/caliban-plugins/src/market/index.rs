//! The list of a marketplace: `marketplace.json` as Claude Code writes it, or an index of archives.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use semver::Version;
use serde_json::{Map, Value, json};
use url::Url;

use super::source::{EntrySource, From, source};
use crate::name::{PluginName, is_plain};

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
    /// What plugins are called now that had another name; nothing for those that were taken away.
    renames: BTreeMap<String, Option<String>>,
    /// What is worth knowing about it: entries that cannot be read.
    pub remarks: Vec<String>,
}

/// What became of the name of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Renamed {
    To(PluginName),
    TakenAway,
    Never,
}

fn renames(document: &Map<String, Value>) -> BTreeMap<String, Option<String>> {
    let table = document.get("renames").and_then(Value::as_object);
    let table = table.into_iter().flatten().take(MOST);
    let read = |(old, new): (&String, &Value)| match new {
        Value::Null => Some((old.clone(), None)),
        Value::String(new) => Some((old.clone(), Some(new.clone()))),
        _ => None,
    };
    table.filter_map(read).collect()
}

/// A plugin of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub name: PluginName,
    pub version: Option<String>,
    pub description: Option<String>,
    /// Where it lies, or why it cannot be installed.
    pub source: Result<EntrySource, String>,
    /// The same of every version, where the list has several.
    pub versions: BTreeMap<String, Result<EntrySource, String>>,
    /// Whether the plugin's own manifest counts.
    pub strict: bool,
    /// Everything that the entry says.
    pub fields: Map<String, Value>,
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
            renames: renames(&document),
            remarks,
        })
    }

    /// What a plugin that is not in the list is called now.
    pub fn renamed(&self, name: &str) -> Renamed {
        let mut known = name;
        // Names may have changed several times, and lead in a circle where somebody erred.
        for _ in 0..=self.renames.len() {
            match self.renames.get(known) {
                Some(Some(next)) => known = next,
                Some(None) => return Renamed::TakenAway,
                None => break,
            }
        }
        match self.entry(known) {
            Some(entry) if known != name => Renamed::To(entry.name.clone()),
            Some(_) | None => Renamed::Never,
        }
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
        let versions = versions(&fields, from);
        if let Some(version) = latest(&fields) {
            // An index of archives: the latest is meant.
            fields.extend(version);
        }
        let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            version: text("version"),
            description: text("description"),
            source: source(&fields, from),
            versions,
            strict: fields
                .get("strict")
                .and_then(Value::as_bool)
                .unwrap_or(true),
            name,
            fields,
        })
    }

    /// The same plugin in another version, if the list or the registry has it.
    pub fn at(&self, version: &str) -> Result<Self, String> {
        let source = match (self.versions.get(version), &self.source) {
            (Some(source), _) => source.clone(),
            (
                None,
                Ok(EntrySource::Npm {
                    package, registry, ..
                }),
            ) => Ok(EntrySource::Npm {
                package: package.clone(),
                version: Some(version.to_owned()),
                registry: registry.clone(),
            }),
            (None, source) if self.version.as_deref() == Some(version) => source.clone(),
            (None, _) => {
                let known: BTreeSet<&String> = self.versions.keys().chain(&self.version).collect();
                let known: Vec<&str> = known.into_iter().map(String::as_str).collect();
                let there = match known.as_slice() {
                    [] => "its list names none".to_owned(),
                    known => format!("there is {}", known.join(", ")),
                };
                return Err(format!(
                    "it has no version `{}`; {there}",
                    version.escape_debug()
                ));
            }
        };
        Ok(Self {
            version: Some(version.to_owned()),
            source,
            ..self.clone()
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

/// Where each of several versions lies.
fn versions(
    fields: &Map<String, Value>,
    from: From<'_>,
) -> BTreeMap<String, Result<EntrySource, String>> {
    let listed = fields.get("versions").and_then(Value::as_array);
    let listed = listed.into_iter().flatten().filter_map(Value::as_object);
    let place = |own: &Map<String, Value>| {
        let version = own.get("version")?.as_str()?.to_owned();
        let mut fields = fields.clone();
        fields.extend(own.clone());
        Some((version, source(&fields, from)))
    };
    listed.filter_map(place).collect()
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

    #[rstest]
    #[case("p", Renamed::Never)]
    #[case("old", Renamed::To("p".parse().unwrap()))]
    #[case("oldest", Renamed::To("p".parse().unwrap()))]
    #[case("dropped", Renamed::TakenAway)]
    #[case("lost", Renamed::Never)]
    #[case("one", Renamed::Never)]
    #[case("strange", Renamed::Never)]
    fn names_that_changed_are_followed(#[case] name: &str, #[case] expected: Renamed) {
        let list = json!({
            "plugins": [{"name": "p", "source": "./p"}],
            "renames": {
                "oldest": "old", "old": "p", "dropped": null, "lost": "nobody",
                "one": "other", "other": "one", "strange": 3,
            },
        });
        let list = Marketplace::parse(&list.to_string()).unwrap();
        assert_eq!(list.renamed(name), expected);
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
