//! What a plugin wants from others: values that its user gives, and plugins beside it.

use semver::VersionReq;
use serde_json::{Map, Value};

use crate::name::PluginName;

/// The most values and the most plugins that one can ask for.
const MOST: usize = 64;

/// A value that the user of a plugin gives.
#[derive(Debug, Clone, PartialEq)]
pub struct UserOption {
    pub key: String,
    pub kind: OptionKind,
    pub title: Option<String>,
    pub description: Option<String>,
    pub default: Option<String>,
    pub is_required: bool,
    /// Whether it is kept where secrets are.
    pub is_sensitive: bool,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    Text,
    Number,
    Switch,
}

impl UserOption {
    /// A value in the form it is handed on in; the error is what is expected.
    pub fn accept(&self, text: &str) -> Result<String, &'static str> {
        match self.kind {
            OptionKind::Text if text.contains(['\0', '\n', '\r']) => Err("one line of text"),
            OptionKind::Text => Ok(text.to_owned()),
            OptionKind::Number => match text.trim().parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(text.trim().to_owned()),
                Ok(_) | Err(_) => Err("a number"),
            },
            OptionKind::Switch => match text.trim() {
                text @ ("true" | "false") => Ok(text.to_owned()),
                _ => Err("`true` or `false`"),
            },
        }
    }
}

/// A plugin that another one needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    pub name: PluginName,
    /// The marketplace it comes from; that of whoever needs it if left out.
    pub marketplace: Option<String>,
    pub version: Option<VersionReq>,
}

impl Dependency {
    /// Whether a version will do. One that is no semantic version does for nobody who is choosy.
    pub fn accepts(&self, version: Option<&str>) -> bool {
        match &self.version {
            None => true,
            Some(wanted) => version
                .and_then(|version| semver::Version::parse(version.trim_start_matches('v')).ok())
                .is_some_and(|version| wanted.matches(&version)),
        }
    }
}

/// Reads `userConfig`. What cannot be understood is left out and told.
pub(super) fn options(value: Option<&Value>, remarks: &mut Vec<String>) -> Vec<UserOption> {
    let table = match value {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Object(table)) => table,
        Some(_) => {
            remarks.push("`userConfig` is no table and is not used".to_owned());
            return Vec::new();
        }
    };
    let mut options = Vec::new();
    for (key, value) in table.iter().take(MOST) {
        match option(key, value) {
            Ok(option) => options.push(option),
            Err(reason) => {
                let key = key.escape_debug();
                remarks.push(format!("`userConfig.{key}` is not used: {reason}"));
            }
        }
    }
    options
}

fn option(key: &str, value: &Value) -> Result<UserOption, &'static str> {
    let is_name = key.len() <= 64
        && key.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name {
        return Err("its name is not made of letters, digits and `_`");
    }
    let empty = Map::new();
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => &empty,
        _ => return Err("it is no table"),
    };
    let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let is_on = |key: &str| fields.get(key).and_then(Value::as_bool) == Some(true);
    let kind = match text("type").as_deref() {
        None | Some("string" | "text" | "file" | "directory") => OptionKind::Text,
        Some("number" | "integer") => OptionKind::Number,
        Some("boolean") => OptionKind::Switch,
        Some(_) => return Err("its `type` is unknown"),
    };
    let option = UserOption {
        key: key.to_owned(),
        kind,
        title: text("title"),
        description: text("description"),
        default: None,
        is_required: is_on("required"),
        is_sensitive: is_on("sensitive"),
    };
    let default = fields.get("default").and_then(written);
    let default = default.map(|text| option.accept(&text)).transpose();
    Ok(UserOption {
        default: default.map_err(|_| "its `default` is of another type")?,
        ..option
    })
}

/// A plain value as text.
pub fn written(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(switch) => Some(switch.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads `dependencies`: names, `name@marketplace`, or tables.
pub(super) fn dependencies(value: Option<&Value>, remarks: &mut Vec<String>) -> Vec<Dependency> {
    let list = match value {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(list)) => list,
        Some(_) => {
            remarks.push("`dependencies` is no list and is not used".to_owned());
            return Vec::new();
        }
    };
    let mut dependencies = Vec::new();
    for value in list.iter().take(MOST) {
        match dependency(value) {
            Ok(dependency) => dependencies.push(dependency),
            Err(reason) => remarks.push(format!("a dependency is not used: {reason}")),
        }
    }
    dependencies
}

fn dependency(value: &Value) -> Result<Dependency, String> {
    let (name, marketplace, version) = match value {
        Value::String(text) => match text.split_once('@') {
            Some((name, marketplace)) => (name.to_owned(), Some(marketplace.to_owned()), None),
            None => (text.clone(), None, None),
        },
        Value::Object(fields) => {
            let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
            let name = text("name").ok_or("it has no `name`")?;
            (name, text("marketplace"), text("version"))
        }
        _ => return Err("it is neither a name nor a table".to_owned()),
    };
    let version = version
        .map(|version| {
            VersionReq::parse(&version)
                .map_err(|_| format!("`{}` is no range of versions", version.escape_debug()))
        })
        .transpose()?;
    Ok(Dependency {
        name: name
            .parse()
            .map_err(|error: crate::name::InvalidName| error.to_string())?,
        marketplace,
        version,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_are_typed() {
        let mut remarks = Vec::new();
        let mut read = options(
            Some(&json!({
                "url": {"type": "string", "title": "Address", "default": "https://h"},
                "KEY": {"sensitive": true, "required": true},
                "n": {"type": "number", "default": 3},
                "a b": {}, "x": {"type": "colour"}, "y": {"type": "number", "default": "z"}, "q": 1,
            })),
            &mut remarks,
        );
        // Whether a table keeps its order depends on what else is built with it.
        read.sort_by(|one, other| one.key.cmp(&other.key));
        let keys: Vec<&str> = read.iter().map(|it| it.key.as_str()).collect();
        assert_eq!(keys, ["KEY", "n", "url"]);
        assert!(read[0].is_sensitive && read[0].is_required);
        assert_eq!(read[1].default.as_deref(), Some("3"));
        assert!(read[1].accept("x").is_err() && read[2].accept("a\nb").is_err());
        assert_eq!(remarks.len(), 4, "{remarks:?}");
    }

    #[test]
    fn dependencies_are_read_in_every_form() {
        let mut remarks = Vec::new();
        let read = dependencies(
            Some(
                &json!(["a", "b@m", {"name": "c", "version": "^1.2"}, {"name": "../d"}, 3,
                         {"name": "e", "version": "new"}]),
            ),
            &mut remarks,
        );
        assert_eq!(read.len(), 3);
        assert_eq!(read[1].marketplace.as_deref(), Some("m"));
        assert!(read[2].accepts(Some("1.3.0")) && !read[2].accepts(Some("2.0.0")));
        assert!(!read[2].accepts(None) && read[0].accepts(None));
        assert_eq!(remarks.len(), 3, "{remarks:?}");
    }
}
