//! Reads TOML and JSON with comments into the same located values.

use std::sync::Arc;

use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, ast};
use serde_json::Number;
use toml::de::{DeTable, DeValue};

use super::node::{Content, Entry, Node, Origin, Place, Table, Text};
use crate::error::{Fault, SettingsError};
use crate::scope::Scope;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Toml,
    Json,
}

/// Parses a document whose root must be a table.
pub(crate) fn parse(
    scope: Scope,
    origin: Origin,
    content: String,
    format: Format,
) -> Result<Node, SettingsError> {
    let text = Arc::new(Text {
        scope,
        origin,
        content,
    });
    match format {
        Format::Toml => parse_toml(&text),
        Format::Json => parse_json(&text),
    }
}

fn place(text: &Arc<Text>, start: usize, end: usize) -> Place {
    Place {
        text: Arc::clone(text),
        span: start..end,
    }
}

fn syntax(place: &Place, message: &str) -> SettingsError {
    SettingsError::Syntax(Box::new(Fault::at(place, message)))
}

fn parse_toml(text: &Arc<Text>) -> Result<Node, SettingsError> {
    let document = DeTable::parse(&text.content).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        syntax(&place(text, span.start, span.end), error.message())
    })?;
    let root = place(text, 0, 0);
    Ok(Node {
        content: Content::Table(toml_table(text, document.get_ref())?),
        place: root,
    })
}

fn toml_table(text: &Arc<Text>, table: &DeTable<'_>) -> Result<Table, SettingsError> {
    let mut entries = table
        .iter()
        .map(|(key, value)| {
            let span = key.span();
            Ok(Entry {
                key: key.get_ref().to_string(),
                key_place: place(text, span.start, span.end),
                node: toml_node(text, value)?,
            })
        })
        .collect::<Result<Vec<_>, SettingsError>>()?;
    entries.sort_by_key(|entry| entry.key_place.span.start);
    Ok(entries.into_iter().collect())
}

fn toml_node(text: &Arc<Text>, value: &toml::Spanned<DeValue<'_>>) -> Result<Node, SettingsError> {
    let span = value.span();
    let place = place(text, span.start, span.end);
    let content = match value.get_ref() {
        DeValue::String(value) => Content::String(value.to_string()),
        DeValue::Integer(value) => {
            let number = i64::from_str_radix(value.as_str(), value.radix())
                .map(Number::from)
                .or_else(|_| u64::from_str_radix(value.as_str(), value.radix()).map(Number::from))
                .map_err(|_| syntax(&place, "this whole number is out of range"))?;
            Content::Number(number)
        }
        DeValue::Float(value) => value
            .as_str()
            .parse()
            .ok()
            .and_then(Number::from_f64)
            .map(Content::Number)
            .ok_or_else(|| syntax(&place, "this is not a finite number"))?,
        DeValue::Boolean(value) => Content::Bool(*value),
        DeValue::Datetime(value) => Content::String(value.to_string()),
        DeValue::Array(values) => Content::List(
            values
                .iter()
                .map(|value| toml_node(text, value))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => Content::Table(toml_table(text, table)?),
    };
    Ok(Node { content, place })
}

/// Comments and trailing commas are what people write by hand; everything else is plain JSON.
const JSON: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn parse_json(text: &Arc<Text>) -> Result<Node, SettingsError> {
    let collect = CollectOptions {
        comments: CommentCollectionStrategy::Off,
        tokens: false,
    };
    let parsed = jsonc_parser::parse_to_ast(&text.content, &collect, &JSON).map_err(|error| {
        let range = error.range();
        let message = sentence(&error.kind().to_string());
        syntax(&place(text, range.start, range.end), &message)
    })?;
    let everything = place(text, 0, text.content.len());
    let Some(root) = parsed.value else {
        // An empty file says nothing, as an empty TOML file does.
        return Ok(Node {
            content: Content::Table(Table::default()),
            place: everything,
        });
    };
    let node = json_node(text, &root)?;
    match node.content {
        Content::Table(_) => Ok(node),
        _ => Err(syntax(&node.place, "settings must be a JSON object")),
    }
}

fn json_node(text: &Arc<Text>, value: &ast::Value<'_>) -> Result<Node, SettingsError> {
    let range = value.range();
    let place = place(text, range.start, range.end);
    let content = match value {
        ast::Value::NullKeyword(_) => Content::Null,
        ast::Value::BooleanLit(literal) => Content::Bool(literal.value),
        ast::Value::StringLit(literal) => Content::String(literal.value.to_string()),
        ast::Value::NumberLit(literal) => literal
            .value
            .parse()
            .map(Content::Number)
            .map_err(|_| syntax(&place, "this is not a finite number"))?,
        ast::Value::Array(array) => Content::List(
            array
                .elements
                .iter()
                .map(|element| json_node(text, element))
                .collect::<Result<_, _>>()?,
        ),
        ast::Value::Object(object) => Content::Table(json_table(text, object)?),
    };
    Ok(Node { content, place })
}

fn json_table(text: &Arc<Text>, object: &ast::Object<'_>) -> Result<Table, SettingsError> {
    let mut table = Table::default();
    for property in &object.properties {
        let name = match &property.name {
            ast::ObjectPropName::String(literal) => literal.range,
            ast::ObjectPropName::Word(literal) => literal.range,
        };
        let key_place = place(text, name.start, name.end);
        let key = property.name.as_str().to_owned();
        // Two readings of one policy are one too many.
        if table.entry(&key).is_some() {
            return Err(syntax(&key_place, "this key is already set above"));
        }
        table.set(Entry {
            key,
            key_place,
            node: json_node(text, &property.value)?,
        });
    }
    Ok(table)
}

/// The parser's messages begin with a capital; ours follow a colon.
fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    letters
        .next()
        .map(|first| first.to_lowercase().chain(letters).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::super::node::Origin;
    use super::*;
    use crate::scope::Scope;

    fn read(format: Format, text: &str) -> Result<Node, SettingsError> {
        parse(
            Scope::User,
            Origin::File(PathBuf::from("f")),
            text.to_owned(),
            format,
        )
    }

    #[test]
    fn both_formats_give_the_same_values() {
        let toml = "# note\nmodel = \"m\"\nauto = 0.5\nn = 0x10\nwhen = 2027-01-01T00:00:00Z\n[env]\nB = \"1\"\nA = \"2\"\n";
        let json = "{ // note\n\"model\": \"m\", \"auto\": 0.5, \"n\": 16, \"when\": \"2027-01-01T00:00:00Z\",\n\"env\": {\"B\": \"1\", \"A\": \"2\",} }";
        let expected = json!({"model": "m", "auto": 0.5, "n": 16,
            "when": "2027-01-01T00:00:00Z", "env": {"B": "1", "A": "2"}});
        let from_toml = read(Format::Toml, toml).unwrap().to_value();
        assert_eq!(from_toml, expected);
        assert_eq!(read(Format::Json, json).unwrap().to_value(), expected);
        let order: Vec<_> = from_toml["env"].as_object().unwrap().keys().collect();
        assert_eq!(
            order,
            ["B", "A"],
            "tables keep the order they are written in"
        );
    }

    #[test]
    fn values_know_their_place() {
        let text = "[statusLine]\ntimeout_ms = 10\n";
        let root = read(Format::Toml, text).unwrap();
        let node = root.at(&["statusLine", "timeout_ms"]).unwrap();
        assert_eq!(&text[node.place.span.clone()], "10");
    }

    #[test]
    fn what_is_not_a_settings_document_is_refused() {
        for (format, text) in [
            (Format::Toml, "model = "),
            (Format::Toml, "n = 99999999999999999999"),
            (Format::Toml, "f = inf"),
            (Format::Json, "[]"),
            (Format::Json, "{\"a\": 1 \"b\": 2}"),
            (Format::Json, "{\"a\": 1, \"a\": 2}"),
            (Format::Json, "{a: 1}"),
            (Format::Json, "{\"a\": 0x10}"),
            (Format::Json, "{\"a\": 1e999}"),
        ] {
            let error = read(format, text);
            assert!(matches!(error, Err(SettingsError::Syntax(_))), "{text}");
        }
        let empty = read(Format::Json, " // nothing\n").unwrap();
        assert!(empty.as_table().unwrap().is_empty());
        let deep = "[".repeat(100_000);
        assert!(read(Format::Json, &deep).is_err());
        assert!(read(Format::Toml, &format!("a = {deep}")).is_err());
    }
}
