//! What a plugin says of itself: `plugin.json` in its root, or the form of Claude Code in
//! `.claude-plugin`. Both are read as they are; what nobody knows is kept and told.

mod declared;
mod wants;

use semver::Version;
use serde_json::{Map, Value};

pub use declared::{CommandSource, Declared, Inlinable, Listing};
pub use wants::{Dependency, OptionKind, UserOption, written as written_value};

use crate::name::{InvalidName, PluginName};
use crate::relative::LeadsOut;

/// The longest manifest, in bytes.
pub(crate) const LARGEST: u64 = 256 * 1024;

/// Which rules a manifest is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `plugin.json` in the root: it must have a version and a name of the plain form.
    Native,
    /// `.claude-plugin/plugin.json`.
    Claude,
}

#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("it is not a JSON object: {0}")]
    Json(String),
    #[error("`name` is missing")]
    NoName,
    #[error("`name`: {0}")]
    Name(#[from] InvalidName),
    #[error("`name`: `{0}` is not lower case letters, digits, `-` and `_`, at most 32 of them")]
    Loud(PluginName),
    #[error("`version` is missing; write a semantic version such as \"1.0.0\"")]
    NoVersion,
    #[error("`version`: `{}` is not a semantic version such as \"1.0.0\"", .0.escape_debug())]
    Version(String),
    #[error("`{key}`: expected {expected}")]
    Type { key: String, expected: &'static str },
    #[error("`{key}`: {source}")]
    Path { key: String, source: LeadsOut },
}

/// A manifest that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    pub name: PluginName,
    pub version: Option<String>,
    pub description: Option<String>,
    pub author: Option<String>,
    pub license: Option<String>,
    pub homepage: Option<String>,
    pub declared: Declared,
    pub requires: Requires,
    /// The values that its user gives.
    pub options: Vec<UserOption>,
    /// The plugins that it does not work without.
    pub dependencies: Vec<Dependency>,
    /// Everything that it says, as it says it.
    pub raw: Map<String, Value>,
    /// What is worth knowing about it: unknown keys, parts that are not used.
    pub remarks: Vec<String>,
}

/// What a plugin needs to be used at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requires {
    pub min_version: Option<Version>,
    /// Names of systems: `linux`, `macos`, `windows`.
    pub platforms: Option<Vec<String>>,
}

impl Requires {
    /// Why a plugin cannot be used by this version on this system.
    pub fn unmet(&self, version: &Version, platform: &str) -> Option<String> {
        if let Some(least) = &self.min_version
            && version < least
        {
            return Some(format!(
                "it needs caliban {least} or later, and this is {version}"
            ));
        }
        let platforms = self.platforms.as_ref()?;
        (!platforms.iter().any(|known| known == platform)).then(|| {
            format!(
                "it is for {}, and this is {platform}",
                platforms.join(" and ")
            )
        })
    }
}

/// Keys that mean something, of both forms.
const KNOWN: &[&str] = &[
    "$schema",
    "name",
    "displayName",
    "version",
    "description",
    "author",
    "license",
    "homepage",
    "repository",
    "keywords",
    "category",
    "tags",
    "strict",
    "components",
    "caliban",
    "skills",
    "commands",
    "agents",
    "hooks",
    "mcpServers",
    "outputStyles",
    "userConfig",
    "dependencies",
];

/// Keys of parts that this program does not have, with what they are called.
const UNUSED: &[(&str, &str)] = &[
    ("lspServers", "language servers"),
    ("themes", "themes"),
    ("monitors", "monitors"),
    ("channels", "channels"),
    ("workflows", "workflows"),
    ("experimental", "experimental parts"),
    ("settings", "settings"),
];

impl Manifest {
    /// Reads the text of a manifest.
    pub fn parse(text: &str, form: Form) -> Result<Self, ManifestError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let value: Value =
            serde_json::from_str(text).map_err(|error| ManifestError::Json(error.to_string()))?;
        match value {
            Value::Object(raw) => Self::from_object(raw, form),
            _ => Err(ManifestError::Json("it is another value".to_owned())),
        }
    }

    pub fn from_object(raw: Map<String, Value>, form: Form) -> Result<Self, ManifestError> {
        let mut remarks = Vec::new();
        let name = raw.get("name").and_then(Value::as_str);
        let name: PluginName = name.ok_or(ManifestError::NoName)?.parse()?;
        if !name.is_conventional() {
            if form == Form::Native {
                return Err(ManifestError::Loud(name));
            }
            remarks.push(format!(
                "the name `{name}` is not lower case, digits, `-` and `_`, at most 32 of them: not every program takes it"
            ));
        }
        let mut text = |key: &str| match raw.get(key) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                remarks.push(format!("`{key}` is not a text and is not used"));
                None
            }
        };
        let description = text("description");
        let license = text("license");
        let homepage = text("homepage");
        let version = text("version");
        match (&version, form) {
            (None, Form::Native) => return Err(ManifestError::NoVersion),
            (Some(version), Form::Native) if Version::parse(version).is_err() => {
                return Err(ManifestError::Version(version.clone()));
            }
            (None | Some(_), Form::Native | Form::Claude) => {}
        }
        let author = author(raw.get("author"), &mut remarks);
        let declared = Declared::read(&raw, &mut remarks)?;
        let requires = requires(raw.get("caliban"))?;
        let options = wants::options(raw.get("userConfig"), &mut remarks);
        let dependencies = wants::dependencies(raw.get("dependencies"), &mut remarks);
        for key in raw.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
            remarks.push(match UNUSED.iter().find(|(known, _)| known == key) {
                Some((_, part)) => format!("`{key}` is not used: caliban has no {part} of plugins"),
                None => format!("`{}` is unknown and is not used", key.escape_debug()),
            });
        }
        Ok(Self {
            name,
            version,
            description,
            author,
            license,
            homepage,
            declared,
            requires,
            options,
            dependencies,
            raw,
            remarks,
        })
    }

    /// The manifest of a directory that has none.
    pub fn bare(name: PluginName) -> Self {
        Self {
            name,
            version: None,
            description: None,
            author: None,
            license: None,
            homepage: None,
            declared: Declared::default(),
            requires: Requires::default(),
            options: Vec::new(),
            dependencies: Vec::new(),
            raw: Map::new(),
            remarks: Vec::new(),
        }
    }
}

/// A name, or a table with one.
fn author(value: Option<&Value>, remarks: &mut Vec<String>) -> Option<String> {
    match value {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name.clone()),
        Some(Value::Object(author)) => {
            let name = author.get("name").and_then(Value::as_str)?;
            Some(match author.get("email").and_then(Value::as_str) {
                Some(email) => format!("{name} <{email}>"),
                None => name.to_owned(),
            })
        }
        Some(_) => {
            remarks.push("`author` is neither a text nor a table and is not used".to_owned());
            None
        }
    }
}

fn requires(value: Option<&Value>) -> Result<Requires, ManifestError> {
    let wrong = |key: &str, expected| ManifestError::Type {
        key: key.to_owned(),
        expected,
    };
    let table = match value {
        None | Some(Value::Null) => return Ok(Requires::default()),
        Some(Value::Object(table)) => table,
        Some(_) => return Err(wrong("caliban", "a table")),
    };
    let version = "a version such as \"0.5.0\"";
    let min_version = match table.get("min_version") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let text = value.as_str().and_then(|text| Version::parse(text).ok());
            Some(text.ok_or_else(|| wrong("caliban.min_version", version))?)
        }
    };
    let platforms = match table.get("platforms") {
        None | Some(Value::Null) => None,
        Some(value) => {
            let names = value.as_array().and_then(|names| {
                let name = |name: &Value| name.as_str().map(str::to_owned);
                names.iter().map(name).collect::<Option<Vec<String>>>()
            });
            let expected = "a list of \"linux\", \"macos\" and \"windows\"";
            Some(names.ok_or_else(|| wrong("caliban.platforms", expected))?)
        }
    };
    Ok(Requires {
        min_version,
        platforms,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn native(value: &Value) -> Result<Manifest, ManifestError> {
        Manifest::parse(&value.to_string(), Form::Native)
    }

    #[test]
    fn both_forms_are_read_and_nothing_is_lost() {
        let manifest = native(&json!({
            "name": "p", "version": "1.0.0", "description": "d", "author": "A <a@x>",
            "license": "MIT", "homepage": "h", "future": {"x": 1},
            "caliban": {"min_version": "0.5.0", "platforms": ["linux"]},
        }))
        .unwrap();
        assert_eq!(manifest.author.as_deref(), Some("A <a@x>"));
        assert_eq!(manifest.raw["future"]["x"], 1);
        assert_eq!(manifest.remarks, ["`future` is unknown and is not used"]);
        let claude =
            json!({"name": "p", "author": {"name": "A", "email": "a@x"}, "lspServers": {}});
        let manifest = Manifest::parse(&claude.to_string(), Form::Claude).unwrap();
        assert_eq!(manifest.author.as_deref(), Some("A <a@x>"));
        assert_eq!(manifest.version, None);
        assert_eq!(
            manifest.remarks,
            ["`lspServers` is not used: caliban has no language servers of plugins"]
        );
    }

    #[rstest]
    #[case(json!([]), "not a JSON object")]
    #[case(json!({}), "`name` is missing")]
    #[case(json!({"name": "../x", "version": "1.0.0"}), "`name`")]
    #[case(json!({"name": "Loud", "version": "1.0.0"}), "lower case")]
    #[case(json!({"name": "p"}), "`version` is missing")]
    #[case(json!({"name": "p", "version": "new"}), "not a semantic version")]
    #[case(json!({"name": "p", "version": "1.0.0", "components": []}), "`components`")]
    #[case(json!({"name": "p", "version": "1.0.0", "skills": 3}), "`skills`")]
    #[case(json!({"name": "p", "version": "1.0.0", "components": {"skills": ["../x"]}}), "leads out")]
    #[case(json!({"name": "p", "version": "1.0.0", "hooks": "/etc/hooks.json"}), "leads out")]
    #[case(json!({"name": "p", "version": "1.0.0", "caliban": {"min_version": 5}}), "min_version")]
    #[case(json!({"name": "p", "version": "1.0.0", "caliban": {"platforms": "linux"}}), "platforms")]
    fn what_is_wrong_is_named(#[case] manifest: Value, #[case] said: &str) {
        let error = native(&manifest).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }

    #[test]
    fn what_a_plugin_needs_is_compared() {
        let requires = Requires {
            min_version: Some(Version::new(0, 5, 0)),
            platforms: Some(vec!["macos".to_owned(), "linux".to_owned()]),
        };
        let version = Version::new(0, 5, 0);
        assert_eq!(requires.unmet(&version, "linux"), None);
        let old = requires.unmet(&Version::new(0, 4, 9), "linux").unwrap();
        assert_eq!(old, "it needs caliban 0.5.0 or later, and this is 0.4.9");
        let other = requires.unmet(&version, "windows").unwrap();
        assert_eq!(other, "it is for macos and linux, and this is windows");
    }
}
