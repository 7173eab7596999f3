//! Reading a table key by key, so that what nobody asked for is an error.

use serde_json::{Map, Value};

use super::error::HookFault;
use caliban_model::nearest;

/// A table being read. `null` counts as absent.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    asked: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(value: &'a Value) -> Result<Self, HookFault> {
        let map = value.as_object().ok_or(HookFault::NotATable)?;
        Ok(Self {
            map,
            asked: Vec::new(),
        })
    }

    pub(super) fn value(&mut self, key: &'static str) -> Option<&'a Value> {
        self.asked.push(key);
        self.map.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn text(&mut self, key: &'static str) -> Result<Option<&'a str>, HookFault> {
        let expected = "a text";
        self.value(key)
            .map(|value| {
                value
                    .as_str()
                    .ok_or(HookFault::WrongValue { key, expected })
            })
            .transpose()
    }

    /// A text that must be there and say something.
    pub(super) fn required(&mut self, key: &'static str) -> Result<&'a str, HookFault> {
        self.text(key)?
            .filter(|text| !text.trim().is_empty())
            .ok_or(HookFault::Missing { key })
    }

    pub(super) fn truth(&mut self, key: &'static str) -> Result<Option<bool>, HookFault> {
        let expected = "true or false";
        self.value(key)
            .map(|value| {
                value
                    .as_bool()
                    .ok_or(HookFault::WrongValue { key, expected })
            })
            .transpose()
    }

    pub(super) fn list(&mut self, key: &'static str) -> Result<Option<&'a [Value]>, HookFault> {
        let expected = "a list";
        self.value(key)
            .map(|value| match value {
                Value::Array(items) => Ok(items.as_slice()),
                _ => Err(HookFault::WrongValue { key, expected }),
            })
            .transpose()
    }

    pub(super) fn texts(&mut self, key: &'static str) -> Result<Option<Vec<String>>, HookFault> {
        let expected = "a list of texts";
        let text = |item: &Value| item.as_str().map(str::to_owned);
        self.value(key)
            .map(|value| {
                value
                    .as_array()
                    .and_then(|items| items.iter().map(text).collect())
                    .ok_or(HookFault::WrongValue { key, expected })
            })
            .transpose()
    }

    /// Every key must have been asked for.
    pub(super) fn finish(self) -> Result<(), HookFault> {
        match self
            .map
            .keys()
            .find(|key| !self.asked.contains(&key.as_str()))
        {
            None => Ok(()),
            Some(key) => Err(HookFault::UnknownKey {
                key: key.clone(),
                nearest: nearest(key, self.asked),
            }),
        }
    }
}
