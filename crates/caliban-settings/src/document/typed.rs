//! Turns located values into types, and what serde says about them into errors with a place.

use serde::Deserializer;
use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_path_to_error::Segment;

use super::node::{Content, Node, Step};
use crate::error::{Fault, SettingsError};

/// Deserialises a document; an error names the value it is about.
pub(crate) fn typed<T: DeserializeOwned>(root: &Node) -> Result<T, SettingsError> {
    // To remember the way to every value takes longer than to read it, and only errors need it.
    T::deserialize(root).or_else(|_| traced(root))
}

fn traced<T: DeserializeOwned>(root: &Node) -> Result<T, SettingsError> {
    serde_path_to_error::deserialize(root.to_value()).map_err(|error| {
        let path = steps(error.path());
        let message = in_words(&error.into_inner().to_string());
        let node = root.nearest(&path);
        let fault = Box::new(Fault::at(&node.place, message.as_str()).about(&path));
        if message.starts_with("invalid type") {
            SettingsError::Type(fault)
        } else {
            SettingsError::Value(fault)
        }
    })
}

/// As its value is deserialised, without one being made.
impl<'de> Deserializer<'de> for &'de Node {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match &self.content {
            Content::Null => visitor.visit_unit(),
            Content::Bool(value) => visitor.visit_bool(*value),
            Content::Number(value) => value.deserialize_any(visitor),
            Content::String(value) => visitor.visit_borrowed_str(value),
            Content::List(nodes) => {
                let mut nodes = SeqDeserializer::new(nodes.iter());
                let value = visitor.visit_seq(&mut nodes)?;
                nodes.end()?;
                Ok(value)
            }
            Content::Table(table) => {
                let entries = table.iter().map(|entry| (entry.key.as_str(), &entry.node));
                let mut entries = MapDeserializer::new(entries);
                let value = visitor.visit_map(&mut entries)?;
                entries.end()?;
                Ok(value)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match &self.content {
            Content::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        match &self.content {
            Content::String(variant) => visitor.visit_enum(variant.as_str().into_deserializer()),
            _ => self.to_value().deserialize_enum(name, variants, visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, serde_json::Error> for &'de Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// What was expected, without the names of types that only we know.
fn in_words(message: &str) -> String {
    let Some((found, expected)) = message.split_once(", expected ") else {
        return message.to_owned();
    };
    let words = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "a nonzero u32" | "a nonzero u64" | "a nonzero usize" => "a whole number, 1 or more",
        "a sequence" => "a list",
        "a map" => "a table",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    format!("{found}, expected {words}")
}

fn steps(path: &serde_path_to_error::Path) -> Vec<Step> {
    path.iter()
        .map_while(|segment| match segment {
            Segment::Seq { index } => Some(Step::Index(*index)),
            Segment::Map { key } => Some(Step::Key(key.clone())),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::super::node::Origin;
    use super::super::parse::{Format, parse};
    use super::*;
    use crate::scope::Scope;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Choice {
        Plain,
        Holding(u8),
        Naming { x: Option<String> },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(i64),
        Word(String),
        Words(Vec<String>),
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Wrapped(f64);

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    #[derive(Default)]
    struct Closed {
        a: Option<Wrapped>,
        b: Option<(u8, String)>,
        c: Vec<Choice>,
        d: BTreeMap<String, Either>,
        e: Option<()>,
        f: Option<bool>,
        g: Option<std::num::NonZeroU32>,
        h: Value,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Open {
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
        k: Option<BTreeMap<u8, char>>,
        l: Option<BTreeMap<Choice, Value>>,
    }

    impl PartialOrd for Choice {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for Choice {
        fn cmp(&self, other: &Self) -> std::cmp::Ordering {
            format!("{self:?}").cmp(&format!("{other:?}"))
        }
    }
    impl Eq for Choice {}

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-2_i64..300).prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "(plain|holding|naming|[a-z]{0,2}|1)".prop_map(Value::from),
        ];
        let name = || "([a-hkl]|plain|holding|naming|x|1)";
        leaf.prop_recursive(4, 24, 3, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(name(), inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        /// Nothing is accepted, refused or understood otherwise than its value would be.
        #[test]
        fn a_document_is_read_as_its_value(value in prop::collection::btree_map("[a-hkl]", values(), 0..5)) {
            let origin = Origin::File(PathBuf::from("s"));
            let root = parse(Scope::User, origin, json!(value).to_string(), Format::Json).unwrap();
            let value = root.to_value();
            let closed: Option<Closed> = serde_json::from_value(value.clone()).ok();
            prop_assert_eq!(typed(&root).ok(), closed);
            let open: Option<Open> = serde_json::from_value(value).ok();
            prop_assert_eq!(typed(&root).ok(), open);
        }
    }

    #[test]
    fn what_is_expected_is_said_in_words() {
        for (said, told) in [
            (
                "invalid type: string \"x\", expected u64",
                "invalid type: string \"x\", expected a whole number, 0 or more",
            ),
            (
                "invalid value: integer `0`, expected a nonzero u32",
                "invalid value: integer `0`, expected a whole number, 1 or more",
            ),
            (
                "invalid type: integer `1`, expected struct Permissions",
                "invalid type: integer `1`, expected a table",
            ),
            (
                "unknown variant `x`, expected `vim` or `emacs`",
                "unknown variant `x`, expected `vim` or `emacs`",
            ),
            ("must not be empty", "must not be empty"),
        ] {
            assert_eq!(in_words(said), told);
        }
    }
}
