//! What is exported: attributes, points of metrics, records of logs, spans.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

/// The most characters of a value that comes from outside.
pub(crate) const LONGEST: usize = 60 * 1024;

/// The value of an attribute. Numbers with a fraction are never attributes here, so that a set of
/// attributes can be compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    Text(String),
    Whole(i64),
    Truth(bool),
    Texts(Vec<String>),
    /// A number with a fraction, as it is written.
    Fraction(Ordered),
}

/// A number that can be ordered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ordered(pub(crate) f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Whole(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Whole(i64::from(number))
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Truth(truth)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Fraction(Ordered(number))
    }
}

impl From<Duration> for Value {
    /// In milliseconds.
    fn from(duration: Duration) -> Self {
        Self::from(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

/// What is known about something, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attributes(pub(crate) BTreeMap<Cow<'static, str>, Value>);

impl Attributes {
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// The same with something that may not be known.
    #[must_use]
    pub(crate) fn with_known(self, name: &'static str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        self.0.insert(Cow::Borrowed(name), value.into());
    }

    /// Together with others, which win.
    #[must_use]
    pub(crate) fn and(mut self, others: &Self) -> Self {
        let others = others.0.iter();
        self.0
            .extend(others.map(|(name, value)| (name.clone(), value.clone())));
        self
    }
}

/// Cuts what is too long.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Something that happened, as a log knows it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) at: Timestamp,
    /// Without the prefix.
    pub(crate) name: &'static str,
    pub(crate) severity: Severity,
    pub(crate) attributes: Attributes,
    pub(crate) context: Option<Context>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    Info,
    Warn,
    Error,
}

impl Severity {
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Info => 9,
            Self::Warn => 13,
            Self::Error => 17,
        }
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }
}

/// A place in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
}

impl Context {
    /// Below this one.
    pub(crate) fn child(self) -> Self {
        Self {
            trace: self.trace,
            span: rand::random(),
        }
    }

    /// Reads what the environment or a request says about a trace that this belongs to.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_usable = version.len() == 2
            && version != "ff"
            && flags.len() == 2
            && (version != "00" || parts.next().is_none());
        if !is_usable {
            return None;
        }
        let context = Self {
            trace: digits(trace)?,
            span: digits(span)?,
        };
        (context.trace != [0; 16] && context.span != [0; 8]).then_some(context)
    }
}

fn digits<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hexadecimal = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() != N * 2 || !is_hexadecimal {
        return None;
    }
    let mut bytes = [0; N];
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(place * 2..place * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// A piece of work that has ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Span {
    pub(crate) context: Context,
    pub(crate) parent: Option<[u8; 8]>,
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) began: Timestamp,
    pub(crate) ended: Timestamp,
    pub(crate) attributes: Attributes,
    /// What went wrong.
    pub(crate) error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Internal,
    Client,
}

/// Nanoseconds since 1970, as all times are sent.
pub(crate) fn nanoseconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_nanosecond()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", true)]
    #[case("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", true)]
    #[case("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more", false)]
    #[case("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", false)]
    #[case("00-00000000000000000000000000000000-00f067aa0ba902b7-01", false)]
    #[case("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", false)]
    #[case("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", false)]
    #[case("00-4bf92f3577b34da6-00f067aa0ba902b7-01", false)]
    #[case("", false)]
    #[case("00", false)]
    fn a_parent_is_read_where_it_is_well_formed(#[case] text: &str, #[case] is_parent: bool) {
        assert_eq!(Context::parse(text).is_some(), is_parent);
    }

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        assert_eq!(shortened("äöü", 2), "äö…");
        assert_eq!(shortened("äö", 2), "äö");
    }
}
