//! Where models of Claude are, each by a variable of its own: `VERTEX_REGION_CLAUDE_4_5_SONNET`,
//! `VERTEX_REGION_CLAUDE_HAIKU_4_5`.

use std::collections::BTreeMap;

/// Names of models, and the versions there may be of each.
const FAMILIES: [&str; 4] = ["haiku", "sonnet", "opus", "fable"];
const MAJOR: std::ops::RangeInclusive<u8> = 3..=9;
const MINOR: std::ops::RangeInclusive<u8> = 0..=9;

/// A model, however its name is put together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    family: String,
    major: u8,
    minor: u8,
}

impl Version {
    /// Of `claude-sonnet-4-5@20250929` and `claude-3-5-haiku`.
    fn of(model: &str) -> Option<Self> {
        let name = model.split('@').next().unwrap_or_default();
        let (_, name) = name.rsplit_once("claude-")?;
        let mut words = name.split('-');
        let family = words.clone().find(|word| FAMILIES.contains(word))?;
        let mut numbers = words.by_ref().filter_map(|word| word.parse::<u8>().ok());
        Some(Self {
            family: family.to_owned(),
            major: numbers.next()?,
            minor: numbers.next().unwrap_or(0),
        })
    }
}

/// The regions that variables name.
#[derive(Debug, Default)]
pub(super) struct Regions(BTreeMap<Version, String>);

impl Regions {
    pub(super) fn read(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut regions = BTreeMap::new();
        for family in FAMILIES {
            let upper = family.to_ascii_uppercase();
            for (major, minor) in MAJOR.flat_map(|major| MINOR.map(move |minor| (major, minor))) {
                let names = [
                    format!("VERTEX_REGION_CLAUDE_{major}_{minor}_{upper}"),
                    format!("VERTEX_REGION_CLAUDE_{upper}_{major}_{minor}"),
                ];
                if let Some(region) = names.iter().find_map(|name| variable(name)) {
                    let family = family.to_owned();
                    regions.insert(
                        Version {
                            family,
                            major,
                            minor,
                        },
                        region,
                    );
                }
            }
        }
        Self(regions)
    }

    pub(super) fn of(&self, model: &str) -> Option<&String> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&Version::of(model)?)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_by_either_order() {
        let variable = |name: &str| match name {
            "VERTEX_REGION_CLAUDE_4_5_SONNET" => Some("us-east5".to_owned()),
            "VERTEX_REGION_CLAUDE_HAIKU_4_5" => Some("europe-west1".to_owned()),
            "VERTEX_REGION_CLAUDE_4_0_OPUS" => Some("us-west1".to_owned()),
            _ => None,
        };
        let regions = Regions::read(&variable);
        let of = |model: &str| regions.of(model).map(String::as_str);
        assert_eq!(of("claude-sonnet-4-5@20250929"), Some("us-east5"));
        assert_eq!(of("claude-haiku-4-5"), Some("europe-west1"));
        assert_eq!(of("claude-opus-4@20250514"), Some("us-west1"));
        assert_eq!(of("claude-opus-4-1"), None);
        assert_eq!(of("claude-sonnet-4-6"), None);
        assert_eq!(of("gemini-3.8-flash"), None);
    }
}
