//! Sums as a table with bars.

use std::fmt::Write as _;

use caliban_harness::lasting;
use caliban_model::Dollars;
use caliban_sessions::Sums;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use crate::args::UsageBy;
use crate::usage_command::sheet::{Line, Range, Sheet, tokens};

/// Cells of the longest bar.
const WIDTH: u32 = 24;
/// A bar's last cell, by eighths.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
/// Characters of a title.
const TITLE: usize = 48;

pub(super) fn table(sheet: &Sheet, by: UsageBy, range: Range) -> String {
    if sheet.lines.is_empty() {
        let when = match (range.since, range.until) {
            (None, None) => "",
            _ => " in that time",
        };
        return format!("nothing was consumed{when}\n");
    }
    let mut head = vec![
        by.as_str().to_owned(),
        "cost".to_owned(),
        "saved".to_owned(),
        "input".to_owned(),
        "cache read".to_owned(),
        "cache write".to_owned(),
        "output".to_owned(),
        "calls".to_owned(),
    ];
    if by.has_work() {
        head.extend(["time".to_owned(), "denied".to_owned()]);
    }
    let mut rows = vec![head];
    let lines = sheet.lines.iter().chain([&sheet.total]);
    rows.extend(lines.map(|line| cells(line, by)));
    let largest = sheet
        .lines
        .iter()
        .map(|line| weight(&line.sums, sheet))
        .max();
    let tails = sheet.lines.iter().map(|line| {
        let bar = bar(weight(&line.sums, sheet), largest.unwrap_or_default());
        let title = line.title.iter().flat_map(|title| title.chars());
        let title: String = title.take(TITLE).collect();
        format!("{bar}{}{title}", if title.is_empty() { "" } else { "  " })
    });
    let tails = [String::new()].into_iter().chain(tails);
    let mut text = lined_up(&rows, tails.chain([String::new()]));
    // Writing to a string does not fail.
    if sheet.total.sums.unpriced > 0 {
        let calls = match sheet.total.sums.unpriced {
            1 => "one call".to_owned(),
            more => format!("{more} calls"),
        };
        let _ = writeln!(
            text,
            "{calls} had no known price; `CALIBAN_RATES_YAML` can name one for those to come"
        );
    }
    if !by.has_work() {
        let work = sheet.total.work.unwrap_or_default();
        let _ = writeln!(
            text,
            "worked {}, {} {} denied",
            lasting(work.active_ms),
            work.denials,
            if work.denials == 1 { "call" } else { "calls" }
        );
    }
    text
}

fn cells(line: &Line, by: UsageBy) -> Vec<String> {
    let (sums, usage) = (&line.sums, &line.sums.usage);
    let mut cells = vec![
        line.name.clone(),
        Dollars(sums.cost).to_string(),
        Dollars(sums.saved).to_string(),
        usage.input.to_string(),
        usage.cache_read.to_string(),
        usage.cache_write().to_string(),
        usage.output.to_string(),
        sums.calls.to_string(),
    ];
    if by.has_work() {
        let work = line.work.unwrap_or_default();
        cells.extend([lasting(work.active_ms), work.denials.to_string()]);
    }
    cells
}

/// The first column to the left, the others to the right, and what follows them.
fn lined_up(rows: &[Vec<String>], tails: impl Iterator<Item = String>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |(row, tail): (&Vec<String>, String)| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(place, (cell, width))| match place {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        let line = format!("{}  {tail}", cells.collect::<Vec<_>>().join("  "));
        format!("{}\n", line.trim_end())
    };
    rows.iter().zip(tails).map(line).collect()
}

/// What a bar stands for: money, or tokens where nothing cost any.
fn weight(sums: &Sums, sheet: &Sheet) -> Decimal {
    if sheet.total.sums.cost.is_zero() {
        Decimal::from(tokens(sums))
    } else {
        sums.cost
    }
}

fn bar(weight: Decimal, largest: Decimal) -> String {
    if largest.is_zero() || weight.is_zero() {
        return String::new();
    }
    let eighths = weight / largest * Decimal::from(WIDTH * 8);
    // What is there at all is seen.
    let eighths = eighths.round().to_usize().unwrap_or_default().max(1);
    let end = EIGHTHS.get(eighths % 8).copied().unwrap_or_default();
    format!("{}{end}", "█".repeat(eighths / 8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rust_decimal::dec;

    #[test]
    fn bars_are_as_long_as_what_they_stand_for() {
        assert_eq!(bar(dec!(2), dec!(2)), "█".repeat(24));
        assert_eq!(bar(dec!(1), dec!(2)), "█".repeat(12));
        assert_eq!(bar(dec!(0.0001), dec!(2)), "▏");
        assert_eq!(bar(dec!(0), dec!(2)), "");
        assert_eq!(bar(dec!(0), dec!(0)), "");
    }
}
