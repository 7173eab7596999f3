//! One setting in one file: put there or taken out, where the file can be used afterwards.

use std::path::Path;

use serde_json::Value as Json;
use toml_edit::{DocumentMut, Key, Value};

use super::error::{ShapeError, WriteError};
use super::values::{Layout, from_json};
use super::{Writer, set};
use crate::error::SettingsError;
use crate::reader::check_text;
use crate::scope::Scope;

/// What becomes of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingEdit {
    /// It is this from now on, as [`read_value`] reads it.
    Put(String),
    /// This file says nothing about it any more.
    Remove,
}

/// Whether a file is another than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edited {
    Changed,
    /// It said so already.
    Unchanged,
}

/// Why a setting does not fit.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error("{0}")]
    Refused(String),
}

impl From<SettingsError> for SettingError {
    /// What is wrong in one line: who asked for the change knows the place.
    fn from(error: SettingsError) -> Self {
        Self::Refused(match error.fault() {
            Some(fault) => {
                let help = fault.help.as_ref();
                let help = help.map_or_else(String::new, |help| format!("; {help}"));
                format!("{}{help}", fault.message)
            }
            None => error.to_string(),
        })
    }
}

impl Writer {
    /// Changes one key, given as TOML writes dotted keys. Nothing is written where the scope's
    /// file could not be used afterwards, or would say something that no version knows.
    pub fn edit_setting(
        &self,
        path: &Path,
        scope: Scope,
        dotted: &str,
        edit: &SettingEdit,
    ) -> Result<Edited, WriteError> {
        self.edit(path, |document| {
            let before = document.to_string();
            let known = check_text(scope, path, before.clone()).unwrap_or_default();
            match edit {
                SettingEdit::Put(text) => set(document, dotted, read_value(text))?,
                SettingEdit::Remove => remove(document, dotted)?,
            }
            let after = document.to_string();
            if after == before {
                return Ok(Edited::Unchanged);
            }
            let warnings = check_text(scope, path, after)?;
            match warnings.into_iter().find(|it| !known.contains(it)) {
                Some(warning) if matches!(edit, SettingEdit::Put(_)) => {
                    Err(SettingError::Refused(warning))
                }
                Some(_) | None => Ok(Edited::Changed),
            }
        })
    }
}

/// What somebody wrote as a value: what TOML reads, else the words themselves.
pub fn read_value(text: &str) -> Value {
    let text = text.trim();
    let mut value: Value = text.parse().unwrap_or_else(|_| Value::from(text));
    value.decor_mut().clear();
    value
}

/// A value as it would be written, so that [`read_value`] reads the same.
pub fn written_value(value: &Json) -> String {
    if let Json::String(text) = value
        && matches!(read_value(text), Value::String(read) if read.value() == text)
    {
        return text.clone();
    }
    let item = from_json(value, Layout::Inline);
    item.map_or_else(String::new, |item| item.to_string().trim().to_owned())
}

fn remove(document: &mut DocumentMut, dotted: &str) -> Result<(), ShapeError> {
    let bad = || ShapeError::BadKey(dotted.to_owned());
    let mut keys = Key::parse(dotted).map_err(|_| bad())?;
    let last = keys.pop().ok_or_else(bad)?;
    let mut item = document.as_item_mut();
    for key in &keys {
        let table = item.as_table_like_mut();
        match table.and_then(|table| table.get_mut(key.get())) {
            Some(inner) => item = inner,
            None => return Ok(()),
        }
    }
    if let Some(table) = item.as_table_like_mut() {
        table.remove(last.get());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;
    use toml_edit::Item;

    use super::super::values::to_json;
    use super::*;

    fn edited(before: &str, key: &str, edit: &SettingEdit) -> Result<String, String> {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("settings.toml");
        fs::write(&path, before).unwrap();
        let writer = Writer::new(root.path().join("locks"));
        let done = writer.edit_setting(&path, Scope::User, key, edit);
        let after = fs::read_to_string(&path).unwrap();
        match done {
            Ok(Edited::Changed) => Ok(after),
            Ok(Edited::Unchanged) => {
                assert_eq!(after, before);
                Ok(after)
            }
            Err(error) => {
                assert_eq!(after, before, "what is refused is not written");
                Err(error.to_string())
            }
        }
    }

    #[rstest]
    #[case("", "effort", "high", "effort = \"high\"\n")]
    #[case("", "max_turns", "7", "max_turns = 7\n")]
    #[case(
        "# mine\nmodel = 'a' # short\n",
        "model",
        "b",
        "# mine\nmodel = \"b\" # short\n"
    )]
    #[case(
        "",
        "permissions.default_mode",
        "plan",
        "[permissions]\ndefault_mode = \"plan\"\n"
    )]
    #[case("", "permissions.deny", "['Bash']", "[permissions]\ndeny = ['Bash']\n")]
    #[case("", "tui.theme", "dark", "[tui]\ntheme = \"dark\"\n")]
    #[case("effort = \"high\"\n", "effort", "high", "effort = \"high\"\n")]
    fn a_value_is_put_where_it_belongs(
        #[case] before: &str,
        #[case] key: &str,
        #[case] text: &str,
        #[case] after: &str,
    ) {
        let edit = SettingEdit::Put(text.to_owned());
        assert_eq!(edited(before, key, &edit).as_deref(), Ok(after));
    }

    #[rstest]
    #[case("", "effort", "enormous", "unknown variant `enormous`")]
    #[case("", "max_turns", "many", "invalid type: string \"many\"")]
    #[case("", "max_turns", "0", "1 or more")]
    #[case("", "statusLine.padding", "99", "between 0 and 8")]
    #[case("", "efort", "high", "efort")]
    #[case("", "permissions.dney", "['Bash']", "did you mean `deny`?")]
    #[case("model = 'a'\n", "model.name", "b", "`model` is not a table")]
    #[case("", "", "b", "is not a key")]
    fn what_does_not_fit_is_refused(
        #[case] before: &str,
        #[case] key: &str,
        #[case] text: &str,
        #[case] why: &str,
    ) {
        let edit = SettingEdit::Put(text.to_owned());
        let error = edited(before, key, &edit).unwrap_err();
        assert!(error.contains(why), "{error}");
    }

    #[rstest]
    #[case("effort = 'low'\nmodel = 'a'\n", "effort", "model = 'a'\n")]
    #[case("[tui]\ntheme = 'dark'\n", "tui.theme", "[tui]\n")]
    #[case("model = 'a'\n", "tui.theme", "model = 'a'\n")]
    #[case("nonsuch = 1\nmodel = 'a'\n", "model", "nonsuch = 1\n")]
    fn a_key_is_taken_out(#[case] before: &str, #[case] key: &str, #[case] after: &str) {
        assert_eq!(
            edited(before, key, &SettingEdit::Remove).as_deref(),
            Ok(after)
        );
    }

    fn values() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            "\\PC{0,20}".prop_map(Json::from),
        ];
        leaf.prop_recursive(2, 8, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
                proptest::collection::btree_map("[a-z \"]{1,6}", inner, 1..4)
                    .prop_map(|map| Json::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_reads_the_same(value in values()) {
            let read = read_value(&written_value(&value));
            prop_assert_eq!(to_json(&Item::Value(read)), value);
        }

        #[test]
        fn any_text_is_a_value(text in "\\PC{0,40}") {
            let _ = read_value(&text);
        }
    }

    #[test]
    fn words_are_written_as_they_are() {
        assert_eq!(written_value(&json!("high")), "high");
        assert_eq!(written_value(&json!("5")), "\"5\"");
        assert_eq!(written_value(&json!(["a", 1])), "[\"a\", 1]");
    }
}
