//! The table of a bench, for people and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::samples::Summary;

/// What a row's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unit {
    Milliseconds,
    /// Of 1,000,000 bytes.
    Megabytes,
    MegabytesPerSecond,
    PerSecond,
    /// Millions of instructions.
    MegaInstructions,
    /// A ratio by itself.
    Times,
    Bytes,
    /// Of whatever the row counts.
    Number,
}

/// What a row is to reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Target {
    /// The median is at most this.
    AtMost(f64),
    /// The median is at least this.
    AtLeast(f64),
    /// The median is at most so many times the reference's.
    RatioAtMost(f64),
}

/// A program that does the least that the row asks for, measured in between.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Reference {
    pub(super) name: &'static str,
    #[serde(flatten)]
    pub(super) summary: Summary,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) unit: Unit,
    #[serde(flatten)]
    pub(super) ours: Summary,
    pub(super) reference: Option<Reference>,
    pub(super) target: Option<Target>,
    pub(super) note: Option<String>,
}

impl Row {
    pub(super) fn new(name: impl Into<String>, unit: Unit, ours: Summary) -> Self {
        Self {
            name: name.into(),
            unit,
            ours,
            reference: None,
            target: None,
            note: None,
        }
    }

    #[must_use]
    pub(super) fn against(mut self, name: &'static str, summary: Summary) -> Self {
        self.reference = Some(Reference { name, summary });
        self
    }

    #[must_use]
    pub(super) fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    #[must_use]
    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    fn ratio(&self, of: fn(&Summary) -> f64) -> Option<f64> {
        let reference = of(&self.reference.as_ref()?.summary);
        (reference > 0.0).then(|| of(&self.ours) / reference)
    }

    fn is_met(&self) -> Option<bool> {
        Some(match self.target? {
            Target::AtMost(bound) => self.ours.median <= bound,
            Target::AtLeast(bound) => self.ours.median >= bound,
            Target::RatioAtMost(bound) => self
                .ratio(|summary| summary.median)
                .is_some_and(|ratio| ratio <= bound),
        })
    }

    fn cells(&self) -> [String; 8] {
        let value = |value: f64| written(value, self.unit);
        let ratio = |of| {
            let ratio = self.ratio(of);
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
        };
        let reference = self.reference.as_ref();
        [
            self.name.clone(),
            value(self.ours.median),
            value(self.ours.best),
            reference.map_or_else(String::new, |reference| {
                format!("{} {}", reference.name, value(reference.summary.median))
            }),
            ratio(|summary| summary.median),
            ratio(|summary| summary.best),
            self.target.map_or_else(String::new, |target| match target {
                Target::AtMost(bound) => format!("≤ {}", value(bound)),
                Target::AtLeast(bound) => format!("≥ {}", value(bound)),
                Target::RatioAtMost(bound) => format!("≤ {bound} ×"),
            }),
            match self.is_met() {
                None => String::new(),
                Some(true) => "met".to_owned(),
                Some(false) => "SHORT".to_owned(),
            },
        ]
    }
}

fn written(value: f64, unit: Unit) -> String {
    let digits = match value.abs() {
        small if small < 10.0 => 2,
        middling if middling < 100.0 => 1,
        _ => 0,
    };
    let unit = match unit {
        Unit::Milliseconds => " ms",
        Unit::Megabytes => " MB",
        Unit::MegabytesPerSecond => " MB/s",
        Unit::PerSecond => " /s",
        Unit::MegaInstructions => " M",
        Unit::Times => " ×",
        Unit::Bytes => " B",
        Unit::Number => "",
    };
    format!("{value:.digits$}{unit}")
}

/// Everything that was measured, and on what.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) runs: usize,
    pub(super) cores: usize,
    pub(super) processor: String,
    pub(super) rows: Vec<Row>,
}

impl Report {
    pub(super) fn new(runs: usize) -> Self {
        let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = information
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map_or("unknown", |(_, name)| name.trim());
        Self {
            runs,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: processor.to_owned(),
            rows: Vec::new(),
        }
    }

    /// A Markdown table, with the notes below it.
    pub(super) fn table(&self) -> String {
        const HEADER: [&str; 8] = [
            "measured",
            "median",
            "best",
            "reference",
            "ratio",
            "of bests",
            "target",
            "",
        ];
        let mut lines = vec![HEADER.map(str::to_owned)];
        lines.extend(self.rows.iter().map(Row::cells));
        let widths: [usize; 8] = std::array::from_fn(|column| {
            let widths = lines.iter().map(|cells| cells[column].chars().count());
            widths.max().unwrap_or_default()
        });
        let mut text = String::new();
        for (index, cells) in lines.iter().enumerate() {
            let mut line = String::from("|");
            for (cell, width) in cells.iter().zip(widths) {
                let _ = write!(line, " {cell:width$} |");
            }
            text.push_str(&line);
            text.push('\n');
            if index == 0 {
                text.push('|');
                for width in widths {
                    text.push_str(&"-".repeat(width + 2));
                    text.push('|');
                }
                text.push('\n');
            }
        }
        for row in &self.rows {
            if let Some(note) = &row.note {
                let _ = writeln!(text, "{}: {note}", row.name);
            }
        }
        text
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(path, text + "\n").with_context(|| format!("`{}`", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(target: Target) -> Row {
        Row::new("start", Unit::Milliseconds, Summary::exact(30.0))
            .against("curl", Summary::exact(10.0))
            .target(target)
    }

    #[test]
    fn a_target_is_met_or_stands_out() {
        assert_eq!(row(Target::RatioAtMost(3.0)).is_met(), Some(true));
        assert_eq!(row(Target::RatioAtMost(2.9)).is_met(), Some(false));
        assert_eq!(row(Target::AtMost(29.0)).is_met(), Some(false));
        assert_eq!(row(Target::AtLeast(30.0)).is_met(), Some(true));
        let alone = Row::new("size", Unit::Megabytes, Summary::exact(1.0));
        assert_eq!(alone.is_met(), None);
        let unmeasured = alone.target(Target::RatioAtMost(2.0));
        assert_eq!(unmeasured.is_met(), Some(false));
    }

    #[test]
    fn the_table_has_a_line_for_each_row_and_the_notes_below() {
        let mut report = Report::new(15);
        report.rows = vec![row(Target::RatioAtMost(2.0)).note("as expected")];
        let table = report.table();
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[2].contains("30.0 ms") && lines[2].contains("curl 10.0 ms"));
        assert!(lines[2].contains("3.00") && lines[2].contains("SHORT"));
        assert_eq!(lines[3], "start: as expected");
    }
}
