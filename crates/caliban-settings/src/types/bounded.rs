//! Values with limits, checked where they are read so that the error has a place.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

pub(super) fn whole<'de, D, const MIN: u64, const MAX: u64>(
    deserializer: D,
) -> Result<Option<u64>, D::Error>
where
    D: Deserializer<'de>,
{
    let Some(number) = Option::<u64>::deserialize(deserializer)? else {
        return Ok(None);
    };
    if (MIN..=MAX).contains(&number) {
        Ok(Some(number))
    } else {
        Err(D::Error::custom(format_args!(
            "must be between {MIN} and {MAX}, not {number}"
        )))
    }
}

pub(super) fn non_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.trim().is_empty() {
        return Err(D::Error::custom("must not be empty"));
    }
    Ok(text)
}
