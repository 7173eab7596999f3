//! Settings values between TOML documents and JSON.

use serde_json::{Map, Value as Json};
use toml_edit::{Array, ArrayOfTables, InlineTable, Item, Table, TableLike, Value};

/// What an item says, without its layout. Dates become strings.
pub(crate) fn to_json(item: &Item) -> Json {
    match item {
        Item::None => Json::Null,
        Item::Value(value) => value_to_json(value),
        Item::Table(table) => table_to_json(table),
        Item::ArrayOfTables(tables) => {
            Json::Array(tables.iter().map(|table| table_to_json(table)).collect())
        }
    }
}

pub(crate) fn table_to_json(table: &dyn TableLike) -> Json {
    let entries = table.iter().map(|(key, item)| (key.into(), to_json(item)));
    Json::Object(entries.collect())
}

fn value_to_json(value: &Value) -> Json {
    match value {
        Value::String(text) => Json::from(text.value().as_str()),
        Value::Integer(number) => Json::from(*number.value()),
        Value::Float(number) => Json::from(*number.value()),
        Value::Boolean(truth) => Json::from(*truth.value()),
        Value::Datetime(time) => Json::from(time.value().to_string()),
        Value::Array(array) => Json::Array(array.iter().map(value_to_json).collect()),
        Value::InlineTable(table) => table_to_json(table),
    }
}

/// Whether an item can be a section of its own or must fit in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Section,
    Inline,
}

/// The TOML of a JSON value; `None` for what TOML cannot say (`null`) or need not (`{}`).
pub(crate) fn from_json(json: &Json, layout: Layout) -> Option<Item> {
    match (json, layout) {
        (Json::Object(map), Layout::Section) => section(map).map(Item::Table),
        (Json::Array(entries), Layout::Section)
            if !entries.is_empty() && entries.iter().all(Json::is_object) =>
        {
            let mut tables = ArrayOfTables::new();
            for entry in entries.iter().filter_map(Json::as_object) {
                let mut table = section(entry).unwrap_or_default();
                table.set_implicit(false);
                tables.push(table);
            }
            Some(Item::ArrayOfTables(tables))
        }
        _ => inline(json).map(Item::Value),
    }
}

fn section(map: &Map<String, Json>) -> Option<Table> {
    let mut table = Table::new();
    for (key, value) in map {
        if let Some(item) = from_json(value, Layout::Section) {
            table.insert(key, item);
        }
    }
    // A section that only holds sections needs no header.
    let nested = table.iter().all(|(_, item)| !item.is_value());
    table.set_implicit(nested);
    (!table.is_empty()).then_some(table)
}

fn inline(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(truth) => Value::from(*truth),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::from(whole),
            None => Value::from(number.as_f64()?),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(entries) => entries.iter().filter_map(inline).collect::<Array>().into(),
        Json::Object(map) => {
            let mut table = InlineTable::new();
            for (key, value) in map {
                if let Some(value) = inline(value) {
                    table.insert(key, value);
                }
            }
            table.into()
        }
    })
}

/// Sets a key, keeping the comments around its former value. An equal value is left alone.
pub(crate) fn put(table: &mut dyn TableLike, key: &str, mut item: Item) {
    // Inserting over a key would drop the comments above it.
    let Some(former) = table.get_mut(key) else {
        table.insert(key, item);
        return;
    };
    if to_json(former) == to_json(&item) {
        return;
    }
    if let (Item::Value(former), Item::Value(value)) = (&*former, &mut item) {
        *value.decor_mut() = former.decor().clone();
    }
    *former = item;
}
