//! The day by the clock on the wall, without a look at every time zone there is.

use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Where a system says which time is its own.
const LOCAL_TIME: &str = "/etc/localtime";

/// The day it is where the machine stands.
pub fn today() -> Date {
    Timestamp::now().to_zoned(time_zone().clone()).date()
}

/// The time zone of the machine. To find it by its name takes a walk through the data of all zones, which
/// costs more than everything else that a run begins with; the file itself has all that a date needs.
pub fn time_zone() -> &'static TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    ZONE.get_or_init(|| {
        let is_named = std::env::var_os("TZ").is_some_and(|name| !name.is_empty());
        let file = (!is_named)
            .then(|| std::fs::read(LOCAL_TIME).ok())
            .flatten();
        let zone = file.and_then(|bytes| TimeZone::tzif("Local", &bytes).ok());
        zone.unwrap_or_else(TimeZone::system)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_is_the_one_that_the_system_says() {
        // At midnight the two may differ: then both are asked again.
        let agree = || today() == jiff::Zoned::now().date();
        assert!(agree() || agree());
        let now = Timestamp::now();
        assert_eq!(
            time_zone().to_offset(now),
            TimeZone::system().to_offset(now)
        );
    }
}
