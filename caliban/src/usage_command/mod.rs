//! `caliban usage`: what all sessions consumed, summed by day, model, project, session, purpose or
//! agent.

mod sheet;
mod table;

use caliban_harness::{sums_report, work_report};
use caliban_sessions::Store;
use caliban_settings::calendar;
use jiff::civil::Date;
use serde_json::{Map, Value, json};

use crate::args::{UsageArgs, UsageBy};
use crate::console::{Console, note};
use crate::exit::Failure;
use crate::usage_command::sheet::{Line, Range, Sheet};

pub(crate) fn run(args: &UsageArgs, store: &Store, console: &mut Console) -> Result<(), Failure> {
    let range = Range {
        since: args.since,
        until: args.until,
    };
    if let (Some(since), Some(until)) = (range.since, range.until)
        && since > until
    {
        return Err(Failure::Usage(format!(
            "`--since` {since} is after `--until` {until}"
        )));
    }
    let all = store.accounts()?;
    for warning in &all.warnings {
        note(&format!("warning: {warning}"));
    }
    let sheet = Sheet::new(args.by, range, &all.sessions);
    if args.json {
        let text = serde_json::to_string_pretty(&report(&sheet, args.by, range))
            .map_err(|error| Failure::Runtime(error.to_string()))?;
        return console.write(&format!("{text}\n"));
    }
    console.write(&table::table(&sheet, args.by, range))
}

fn report(sheet: &Sheet, by: UsageBy, range: Range) -> Value {
    let rows: Vec<Value> = sheet
        .lines
        .iter()
        .map(|line| {
            let mut row = Map::new();
            row.insert(by.as_str().to_owned(), json!(line.name));
            if let Some(title) = &line.title {
                row.insert("title".to_owned(), json!(title));
            }
            row.extend(numbers(line));
            Value::Object(row)
        })
        .collect();
    json!({
        "by": by.as_str(),
        "since": range.since.map(|day| day.to_string()),
        "until": range.until.map(|day| day.to_string()),
        "rows": rows,
        "total": numbers(&sheet.total),
    })
}

fn numbers(line: &Line) -> Map<String, Value> {
    let mut numbers = sums_report(&line.sums);
    numbers.insert("sessions".to_owned(), json!(line.sessions));
    if let Some(work) = line.work {
        numbers.extend(work_report(work));
    }
    numbers
}

/// A day: `2026-01-31`, `today`, `yesterday`, or how long ago, as `7d` or `2w`.
pub(crate) fn day(text: &str) -> Result<Date, String> {
    day_seen_from(text, calendar::today())
}

fn day_seen_from(text: &str, today: Date) -> Result<Date, String> {
    let wrong = || format!("`{text}` is no day; write 2026-01-31, today, yesterday, 7d or 2w");
    let ago = |days: i64| {
        let span = jiff::Span::new().try_days(days).map_err(|_| wrong())?;
        today.checked_sub(span).map_err(|_| wrong())
    };
    match text {
        "today" => return Ok(today),
        "yesterday" => return ago(1),
        _ => {}
    }
    let counted = |unit: char| {
        text.strip_suffix(unit)
            .and_then(|it| it.parse::<u16>().ok())
    };
    if let Some(days) = counted('d') {
        return ago(i64::from(days));
    }
    if let Some(weeks) = counted('w') {
        return ago(i64::from(weeks) * 7);
    }
    text.parse().map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_named_or_counted() {
        let today = Date::constant(2026, 3, 1);
        let seen = |text| day_seen_from(text, today).map(|day| day.to_string());
        assert_eq!(seen("2025-12-31").unwrap(), "2025-12-31");
        assert_eq!(seen("today").unwrap(), "2026-03-01");
        assert_eq!(seen("yesterday").unwrap(), "2026-02-28");
        assert_eq!(seen("7d").unwrap(), "2026-02-22");
        assert_eq!(seen("2w").unwrap(), "2026-02-15");
        for wrong in ["", "d", "-1d", "soon", "2026-02-30", "99999d"] {
            assert!(seen(wrong).is_err(), "{wrong}");
        }
    }
}
