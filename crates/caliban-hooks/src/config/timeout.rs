//! How long a handler may take: seconds, or a duration with its unit.

use std::time::Duration;

use serde_json::Value;

use super::error::HookFault;

/// What is used when nothing is said.
pub(super) const DEFAULT: Duration = Duration::from_mins(1);
/// The longest that may be said.
const LONGEST: Duration = Duration::from_hours(1);

pub(super) fn parse(value: &Value) -> Result<Duration, HookFault> {
    let seconds = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => seconds(text.trim()),
        _ => None,
    };
    let problem = |problem| HookFault::Timeout { problem };
    let seconds = seconds.ok_or(problem("is not a duration"))?;
    let duration = Duration::try_from_secs_f64(seconds)
        .map_err(|_| problem("is not a duration that can be waited for"))?;
    if duration.is_zero() {
        return Err(problem("must be more than nothing"));
    }
    if duration > LONGEST {
        return Err(problem("is too long"));
    }
    Ok(duration)
}

fn seconds(text: &str) -> Option<f64> {
    let unit_start = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, unit) = text.split_at(unit_start);
    let factor = match unit.trim_start() {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!(300), Duration::from_mins(5))]
    #[case(json!(0.5), Duration::from_millis(500))]
    #[case(json!("5s"), Duration::from_secs(5))]
    #[case(json!(" 500ms "), Duration::from_millis(500))]
    #[case(json!("1.5 s"), Duration::from_millis(1500))]
    #[case(json!("2m"), Duration::from_mins(2))]
    #[case(json!("1h"), Duration::from_hours(1))]
    fn durations(#[case] value: Value, #[case] expected: Duration) {
        assert_eq!(parse(&value).unwrap(), expected);
    }

    #[rstest]
    #[case(json!(0))]
    #[case(json!(-1))]
    #[case(json!(3601))]
    #[case(json!(1e300))]
    #[case(json!("5"))]
    #[case(json!("s"))]
    #[case(json!("5 parsecs"))]
    #[case(json!("2h"))]
    #[case(json!("1.2.3s"))]
    #[case(json!(true))]
    fn what_is_no_duration(#[case] value: Value) {
        assert!(parse(&value).is_err());
    }

    proptest! {
        #[test]
        fn every_duration_is_within_the_bounds(text in "[0-9.]{0,8}[a-z ]{0,3}") {
            if let Ok(duration) = parse(&json!(text)) {
                prop_assert!(!duration.is_zero() && duration <= LONGEST);
            }
        }
    }
}
