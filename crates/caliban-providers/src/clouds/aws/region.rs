//! In which region an account is used.

use std::fs;

use caliban_model::ProviderKind;

use super::profile::Profiles;
use crate::clouds::surroundings::Surroundings;
use crate::config::ConfigError;

const LINES: &str = "[provider.bedrock]\nregion = \"us-east-1\"";

/// The configured one, else that of the variables, else that of the profile.
pub(super) fn find(
    configured: Option<&str>,
    profile: Option<&str>,
    surroundings: &Surroundings,
) -> Result<String, ConfigError> {
    let variable = surroundings.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
    let found = match (configured, variable) {
        (Some(region), _) => Some(("`region` in `[provider.bedrock]`", region.to_owned())),
        (None, Some((_, region))) => {
            Some(("`AWS_REGION` or `AWS_DEFAULT_REGION`", region.to_owned()))
        }
        (None, None) => of_profile(profile, surroundings).map(|it| ("the AWS profile", it)),
    };
    match found {
        Some((_, region)) if is_region(&region) => Ok(region),
        Some((source, region)) => Err(ConfigError::BadPlace {
            source_name: source,
            value: region,
            example: "us-east-1",
        }),
        None => Err(ConfigError::MissingPlace {
            provider: ProviderKind::Bedrock,
            what: "AWS region",
            variable: "AWS_REGION",
            lines: LINES,
        }),
    }
}

/// Read at once: without it there is no address.
fn of_profile(profile: Option<&str>, surroundings: &Surroundings) -> Option<String> {
    let name = profile.or_else(|| surroundings.variable("AWS_PROFILE"));
    let profiles = Profiles::from_texts(|path| fs::read_to_string(path).ok(), surroundings);
    let profile = profiles.profile(name.unwrap_or("default"))?;
    profile.get("region").map(str::to_owned)
}

/// Whether a text may stand in the name of a server: `us-east-1`, `us-gov-west-1`, `global`.
fn is_region(text: &str) -> bool {
    if matches!(text, "global" | "us" | "eu") {
        return true;
    }
    let parts: Vec<&str> = text.split('-').collect();
    let [first, middle @ .., last] = parts.as_slice() else {
        return false;
    };
    let is_word = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase());
    first.len() == 2
        && is_word(first)
        && !middle.is_empty()
        && middle.iter().all(is_word)
        && last.len() == 1
        && last.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::is_region;

    #[test]
    fn nothing_but_a_region_becomes_part_of_an_address() {
        for good in ["us-east-1", "us-gov-west-1", "ap-southeast-2", "global"] {
            assert!(is_region(good), "{good}");
        }
        for bad in [
            "",
            "us-east-1.evil.example/",
            "US-EAST-1",
            "us--1",
            "us-east-10x",
            "x-1",
        ] {
            assert!(!is_region(bad), "{bad}");
        }
    }
}
