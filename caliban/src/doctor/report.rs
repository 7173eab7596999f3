//! What was found, for people and for programs.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Value, json};

/// All checks in the order they are shown.
pub(super) struct Report(pub(super) Vec<Row>);

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    name: Cow<'static, str>,
    status: Status,
    message: String,
    details: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    /// It was looked at and works.
    Pass,
    /// It was not looked at.
    Skip,
    /// Worth knowing; a run can begin.
    Warn,
    Fail,
}

impl Status {
    fn mark(self) -> &'static str {
        match self {
            Self::Pass => "✓",
            Self::Skip => "–",
            Self::Warn => "!",
            Self::Fail => "✗",
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Skip => "skip",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl Row {
    pub(super) fn pass(name: impl Into<Cow<'static, str>>, message: impl AsRef<str>) -> Self {
        Self::new(name.into(), Status::Pass, message.as_ref())
    }

    pub(super) fn warn(name: impl Into<Cow<'static, str>>, message: impl AsRef<str>) -> Self {
        Self::new(name.into(), Status::Warn, message.as_ref())
    }

    pub(super) fn skip(name: impl Into<Cow<'static, str>>, message: impl AsRef<str>) -> Self {
        Self::new(name.into(), Status::Skip, message.as_ref())
    }

    pub(super) fn fail(name: impl Into<Cow<'static, str>>, message: impl AsRef<str>) -> Self {
        Self::new(name.into(), Status::Fail, message.as_ref())
    }

    /// The first line is the message, the others explain it.
    fn new(name: Cow<'static, str>, status: Status, text: &str) -> Self {
        let mut lines = text.lines().map(str::to_owned);
        Self {
            name,
            status,
            message: lines.next().unwrap_or_default(),
            details: lines.collect(),
        }
    }

    /// Adds what belongs to it.
    pub(super) fn with(mut self, details: impl IntoIterator<Item = String>) -> Self {
        let lines = details.into_iter().map(|text| text.replace('\n', " "));
        self.details.extend(lines);
        self
    }

    /// Adds things to know, which a check that found any does not pass without.
    pub(super) fn warned(self, warnings: impl IntoIterator<Item = String>) -> Self {
        let known = self.details.len();
        let mut row = self.with(warnings);
        if row.details.len() > known && row.status == Status::Pass {
            row.status = Status::Warn;
        }
        row
    }

    /// Whether it is about this and passed.
    pub(super) fn has_passed(&self, name: &str) -> bool {
        self.name == name && self.status == Status::Pass
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "status": self.status.as_str(),
            "message": self.message,
            "details": self.details,
        })
    }
}

impl Report {
    pub(super) fn has_failed(&self) -> bool {
        self.0.iter().any(|row| row.status == Status::Fail)
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("caliban doctor — {} check(s):\n", self.0.len());
        for row in &self.0 {
            let _ = writeln!(text, "{} {} — {}", row.status.mark(), row.name, row.message);
            for detail in &row.details {
                let _ = writeln!(text, "    {detail}");
            }
        }
        text
    }

    pub(super) fn json(&self) -> String {
        let rows: Vec<Value> = self.0.iter().map(Row::json).collect();
        format!("{:#}\n", Value::Array(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_marks_and_their_details_below() {
        let report = Report(vec![
            Row::pass("a", "good"),
            Row::skip("s", "later"),
            Row::pass("b", "good").warned(["odd\nthing".to_owned()]),
            Row::fail("c", "bad\n  |\n2 | x").warned([]),
        ]);
        assert_eq!(
            report.text(),
            "caliban doctor — 4 check(s):\n✓ a — good\n– s — later\n! b — good\n    odd thing\n\
             ✗ c — bad\n      |\n    2 | x\n"
        );
        assert!(report.has_failed());
        assert!(!Report(vec![Row::warn("a", "")]).has_failed());
        assert_eq!(
            Row::warn("a", "m").json(),
            json!({"name": "a", "status": "warn", "message": "m", "details": []})
        );
    }
}
