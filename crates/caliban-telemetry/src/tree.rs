//! Messages as a tree that is written once and encoded twice: as protocol buffers and as JSON.

use serde_json::{Map, Value, json};

/// A value of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Text(String),
    Bool(bool),
    /// An `int64`, as a varint.
    Int(i64),
    /// An enumeration, or a small count.
    Number(u32),
    /// A `fixed64`.
    Fixed(u64),
    /// An `sfixed64`.
    SignedFixed(i64),
    Double(f64),
    /// A trace's or a span's id: bytes here, hexadecimal digits there.
    Id(Vec<u8>),
    Message(Message),
    /// One field for each.
    Repeated(Vec<Node>),
    /// `fixed64` values in one field.
    PackedFixed(Vec<u64>),
    /// `double` values in one field.
    PackedDouble(Vec<f64>),
}

/// A field: its number, its name in JSON, and its value.
pub(crate) type Field = (u32, &'static str, Node);

/// A message: its fields in the order in which they are written.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Message(pub(crate) Vec<Field>);

impl Message {
    pub(crate) fn new(fields: impl IntoIterator<Item = Field>) -> Self {
        Self(fields.into_iter().collect())
    }

    /// As protocol buffers.
    pub(crate) fn protobuf(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        for (number, _, node) in &self.0 {
            node.write(*number, out);
        }
    }

    /// As JSON, in the mapping that collectors expect.
    pub(crate) fn json(&self) -> Value {
        let fields = self.0.iter();
        let fields = fields.map(|(_, name, node)| ((*name).to_owned(), node.json()));
        Value::Object(fields.collect::<Map<_, _>>())
    }
}

/// How a field is laid out.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

impl Node {
    fn write(&self, number: u32, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => bytes(number, text.as_bytes(), out),
            Self::Id(id) => bytes(number, id, out),
            Self::Bool(value) => integer(number, u64::from(*value), out),
            Self::Int(value) => integer(number, value.cast_unsigned(), out),
            Self::Number(value) => integer(number, u64::from(*value), out),
            Self::Fixed(value) => fixed(number, value.to_le_bytes(), out),
            Self::SignedFixed(value) => fixed(number, value.to_le_bytes(), out),
            Self::Double(value) => fixed(number, value.to_le_bytes(), out),
            Self::Message(message) => bytes(number, &message.protobuf(), out),
            Self::Repeated(nodes) => nodes.iter().for_each(|node| node.write(number, out)),
            Self::PackedFixed(values) => {
                let packed: Vec<u8> = values
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect();
                bytes(number, &packed, out);
            }
            Self::PackedDouble(values) => {
                let packed: Vec<u8> = values
                    .iter()
                    .flat_map(|value| value.to_le_bytes())
                    .collect();
                bytes(number, &packed, out);
            }
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Bool(value) => json!(value),
            // Numbers of 64 bits are text, because not every reader of JSON has them.
            Self::Int(value) | Self::SignedFixed(value) => json!(value.to_string()),
            Self::Fixed(value) => json!(value.to_string()),
            Self::Number(value) => json!(value),
            Self::Double(value) => json!(value),
            Self::Id(id) => json!(hexadecimal(id)),
            Self::Message(message) => message.json(),
            Self::Repeated(nodes) => nodes.iter().map(Self::json).collect(),
            Self::PackedFixed(values) => values
                .iter()
                .map(|value| json!(value.to_string()))
                .collect(),
            Self::PackedDouble(values) => values.iter().map(|value| json!(value)).collect(),
        }
    }
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn key(number: u32, layout: u32, out: &mut Vec<u8>) {
    varint(u64::from(number << 3 | layout), out);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

fn integer(number: u32, value: u64, out: &mut Vec<u8>) {
    key(number, VARINT, out);
    varint(value, out);
}

fn fixed(number: u32, value: [u8; 8], out: &mut Vec<u8>) {
    key(number, FIXED64, out);
    out.extend_from_slice(&value);
}

fn bytes(number: u32, value: &[u8], out: &mut Vec<u8>) {
    key(number, LENGTH, out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_laid_out_as_the_format_says() {
        // The examples of the format's own description: field 1 with 150, field 2 with "testing".
        let message = Message::new([
            (1, "a", Node::Int(150)),
            (2, "b", Node::Text("testing".to_owned())),
        ]);
        let expected = [
            0x08, 0x96, 0x01, 0x12, 0x07, b't', b'e', b's', b't', b'i', b'n', b'g',
        ];
        assert_eq!(message.protobuf(), expected);
        assert_eq!(message.json(), json!({"a": "150", "b": "testing"}));
    }

    #[test]
    fn a_negative_number_takes_ten_bytes() {
        let message = Message::new([(1, "a", Node::Int(-1))]);
        assert_eq!(message.protobuf().len(), 11);
        assert_eq!(message.json(), json!({"a": "-1"}));
    }

    #[test]
    fn ids_are_digits_in_json() {
        let message = Message::new([(1, "id", Node::Id(vec![0, 0xab]))]);
        assert_eq!(message.protobuf(), [0x0a, 2, 0, 0xab]);
        assert_eq!(message.json(), json!({"id": "00ab"}));
    }

    #[test]
    fn what_is_packed_is_one_field() {
        let message = Message::new([(6, "counts", Node::PackedFixed(vec![1, 2]))]);
        assert_eq!(message.protobuf().len(), 2 + 16);
        assert_eq!(message.json(), json!({"counts": ["1", "2"]}));
    }
}
