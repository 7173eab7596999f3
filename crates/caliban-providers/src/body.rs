//! The body of a call: a JSON object, of which the long parts may be written already.

use std::sync::Arc;

use serde_json::{Map, Value};

/// Fields in the order in which they are sent.
#[derive(Debug, Clone, Default)]
pub struct Body(Vec<(String, Part)>);

#[derive(Debug, Clone)]
enum Part {
    Value(Value),
    /// JSON as it is sent.
    Written(Arc<String>),
    List(List),
}

/// A list of which the middle is written already.
#[derive(Debug, Clone, Default)]
pub(crate) struct List {
    pub(crate) head: Vec<Value>,
    /// Values with commas between them.
    pub(crate) written: Arc<String>,
    pub(crate) tail: Vec<Value>,
}

impl Body {
    pub fn set(&mut self, name: &str, value: Value) {
        self.0.push((name.to_owned(), Part::Value(value)));
    }

    /// Sets a field to a value that is JSON text already.
    pub(crate) fn set_written(&mut self, name: &str, json: Arc<String>) {
        self.0.push((name.to_owned(), Part::Written(json)));
    }

    pub(crate) fn set_list(&mut self, name: &str, list: List) {
        self.0.push((name.to_owned(), Part::List(list)));
    }

    /// Takes a field out, without looking at the others.
    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }

    /// Sets a field before all others.
    pub(crate) fn set_first(&mut self, name: &str, value: Value) {
        self.remove(name);
        self.0.insert(0, (name.to_owned(), Part::Value(value)));
    }

    /// The body as values.
    pub fn values(&self) -> Map<String, Value> {
        let value = |part: &Part| match part {
            Part::Value(value) => value.clone(),
            // It was written from a value.
            Part::Written(json) => serde_json::from_str(json).unwrap_or_default(),
            Part::List(list) => list.values().into(),
        };
        self.0
            .iter()
            .map(|(name, part)| (name.clone(), value(part)))
            .collect()
    }

    /// Changes the values of the body.
    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&mut Map<String, Value>) -> T) -> T {
        let mut values = self.values();
        let result = change(&mut values);
        *self = values.into();
        result
    }

    /// The body as it is sent.
    pub fn bytes(&self) -> serde_json::Result<Vec<u8>> {
        let written = self.0.iter().map(|(_, part)| match part {
            Part::Value(_) => 0,
            Part::Written(json) => json.len(),
            Part::List(list) => list.written.len(),
        });
        let mut bytes = Vec::with_capacity(written.sum::<usize>() + 1024);
        for (index, (name, part)) in self.0.iter().enumerate() {
            bytes.push(if index == 0 { b'{' } else { b',' });
            serde_json::to_writer(&mut bytes, name)?;
            bytes.push(b':');
            match part {
                Part::Value(value) => serde_json::to_writer(&mut bytes, value)?,
                Part::Written(json) => bytes.extend_from_slice(json.as_bytes()),
                Part::List(list) => list.write(&mut bytes)?,
            }
        }
        bytes.extend_from_slice(if self.0.is_empty() { b"{}" } else { b"}" });
        Ok(bytes)
    }
}

impl List {
    fn values(&self) -> Vec<Value> {
        let written = format!("[{}]", self.written);
        // It was written from values.
        let written: Vec<Value> = serde_json::from_str(&written).unwrap_or_default();
        let (head, tail) = (self.head.iter().cloned(), self.tail.iter().cloned());
        head.chain(written).chain(tail).collect()
    }

    fn write(&self, bytes: &mut Vec<u8>) -> serde_json::Result<()> {
        bytes.push(b'[');
        let begin = bytes.len();
        for value in &self.head {
            separate(bytes, begin);
            serde_json::to_writer(&mut *bytes, value)?;
        }
        if !self.written.is_empty() {
            separate(bytes, begin);
            bytes.extend_from_slice(self.written.as_bytes());
        }
        for value in &self.tail {
            separate(bytes, begin);
            serde_json::to_writer(&mut *bytes, value)?;
        }
        bytes.push(b']');
        Ok(())
    }
}

fn separate(bytes: &mut Vec<u8>, begin: usize) {
    if bytes.len() > begin {
        bytes.push(b',');
    }
}

impl From<Map<String, Value>> for Body {
    fn from(values: Map<String, Value>) -> Self {
        let part = |(name, value)| (name, Part::Value(value));
        Self(values.into_iter().map(part).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_sent_is_what_the_values_say() {
        let mut body = Body::default();
        assert_eq!(body.bytes().unwrap(), b"{}");
        body.set("model", json!("a\"b"));
        body.set_list(
            "messages",
            List {
                head: vec![json!("s")],
                written: Arc::new(r#"{"role":"user"},2"#.to_owned()),
                tail: vec![json!(3), json!(4)],
            },
        );
        body.set_list("none", List::default());
        body.set_written("tools", Arc::new("[]".to_owned()));
        body.set("stream", json!(true));
        let sent = body.bytes().unwrap();
        assert_eq!(
            String::from_utf8(sent.clone()).unwrap(),
            r#"{"model":"a\"b","messages":["s",{"role":"user"},2,3,4],"none":[],"tools":[],"stream":true}"#
        );
        assert_eq!(serde_json::to_vec(&body.values()).unwrap(), sent);
        body.remove("none");
        body.set_first("model", json!("b"));
        assert_eq!(
            String::from_utf8(body.bytes().unwrap()).unwrap(),
            r#"{"model":"b","messages":["s",{"role":"user"},2,3,4],"tools":[],"stream":true}"#
        );
        body.change(|values| values["messages"][1]["role"] = json!("tool"));
        assert_eq!(
            body.values()["messages"],
            json!(["s", {"role": "tool"}, 2, 3, 4])
        );
    }
}
