//! The names of models: ours on one side, Bedrock's ids on the other.

use std::collections::BTreeMap;

/// Ids that do not follow from the name: older ones carry dates and versions.
const DATED: [(&str, &str); 12] = [
    ("claude-haiku-4-5", "claude-haiku-4-5-20251001-v1:0"),
    ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929-v1:0"),
    ("claude-opus-4-5", "claude-opus-4-5-20251101-v1:0"),
    ("claude-opus-4-6", "claude-opus-4-6-v1"),
    ("claude-opus-4-1", "claude-opus-4-1-20250805-v1:0"),
    ("claude-opus-4", "claude-opus-4-20250514-v1:0"),
    ("claude-sonnet-4", "claude-sonnet-4-20250514-v1:0"),
    ("claude-3-7-sonnet", "claude-3-7-sonnet-20250219-v1:0"),
    ("claude-3-5-haiku", "claude-3-5-haiku-20241022-v1:0"),
    ("nova-micro", "nova-micro-v1:0"),
    ("nova-lite", "nova-lite-v1:0"),
    ("nova-pro", "nova-pro-v1:0"),
];

/// Which ids an account uses.
#[derive(Debug)]
pub(super) struct Names {
    /// What the configuration says.
    pub(super) given: BTreeMap<String, String>,
    /// What stands before ids, with its dot.
    prefix: String,
}

impl Names {
    pub(super) fn new(given: BTreeMap<String, String>, prefix: Option<&str>, region: &str) -> Self {
        let prefix = prefix.map(|prefix| prefix.trim_end_matches('.'));
        Self {
            given,
            prefix: match prefix {
                Some("" | "none") => String::new(),
                Some(prefix) => format!("{prefix}."),
                None => of_region(region).to_owned(),
            },
        }
    }

    /// The id or ARN to send for a model. What is neither is a name of ours, and becomes the id of
    /// an inference profile; everything else is sent as it is.
    pub(super) fn wire(&self, model: &str) -> String {
        if let Some(id) = self.given.get(model) {
            return id.clone();
        }
        let maker = if model.starts_with("claude-") {
            "anthropic"
        } else if model.starts_with("nova-") {
            "amazon"
        } else {
            return model.to_owned();
        };
        let dated = DATED.iter().find(|(name, _)| *name == model);
        let id = dated.map_or(model, |(_, id)| id);
        format!("{}{maker}.{id}", self.prefix)
    }
}

/// Newer models are reached through profiles that spread calls over a part of the world.
fn of_region(region: &str) -> &'static str {
    let starts = |prefix: &str| region.starts_with(prefix);
    match region {
        _ if starts("us-gov-") => "us-gov.",
        _ if starts("us-") || region == "us" => "us.",
        _ if starts("eu-") || region == "eu" => "eu.",
        _ if starts("ap-") => "apac.",
        _ => "global.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_ids_and_ids_stay() {
        let names = |prefix, region| Names::new(BTreeMap::new(), prefix, region);
        for (prefix, region, model, id) in [
            (
                None,
                "us-east-1",
                "claude-sonnet-4-6",
                "us.anthropic.claude-sonnet-4-6",
            ),
            (
                None,
                "eu-west-1",
                "claude-haiku-4-5",
                "eu.anthropic.claude-haiku-4-5-20251001-v1:0",
            ),
            (
                None,
                "us-gov-west-1",
                "claude-opus-4-6",
                "us-gov.anthropic.claude-opus-4-6-v1",
            ),
            (
                None,
                "sa-east-1",
                "claude-opus-4-7",
                "global.anthropic.claude-opus-4-7",
            ),
            (
                Some("global"),
                "us-east-1",
                "claude-opus-4-7",
                "global.anthropic.claude-opus-4-7",
            ),
            (Some(""), "us-east-1", "nova-lite", "amazon.nova-lite-v1:0"),
            (
                None,
                "us-east-1",
                "jp.anthropic.claude-sonnet-4-6",
                "jp.anthropic.claude-sonnet-4-6",
            ),
            (
                None,
                "us-east-1",
                "arn:aws:bedrock:us-east-1:1:x/y",
                "arn:aws:bedrock:us-east-1:1:x/y",
            ),
            (
                None,
                "us-east-1",
                "meta.llama3-3-70b-instruct-v1:0",
                "meta.llama3-3-70b-instruct-v1:0",
            ),
        ] {
            assert_eq!(names(prefix, region).wire(model), id);
        }
        let given = BTreeMap::from([("claude-opus-4-7".to_owned(), "arn:aws:x".to_owned())]);
        assert_eq!(
            Names::new(given, None, "us-east-1").wire("claude-opus-4-7"),
            "arn:aws:x"
        );
    }
}
