//! Takes out of a cassette what belongs to one machine or must stay secret, and puts places back.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// What replaces a secret.
const REDACTED: &str = "{redacted}";

/// The names of environment variables that hold secrets end like this.
const SECRET_SUFFIXES: [&str; 6] = [
    "_KEY",
    "_TOKEN",
    "_SECRET",
    "_PASSWORD",
    "_CREDENTIALS",
    "_PASSPHRASE",
];

/// A shorter value is too likely to occur by chance.
const SHORTEST_SECRET: usize = 8;

/// Known shapes of keys and tokens.
const SECRET_SHAPES: &str = concat!(
    r"sk-[A-Za-z0-9_-]{16,}",
    r"|AIza[A-Za-z0-9_-]{30,}",
    r"|gh[pousr]_[A-Za-z0-9]{30,}",
    r"|github_pat_[A-Za-z0-9_]{30,}",
    r"|xox[abprs]-[A-Za-z0-9-]{10,}",
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"|(?i:bearer )[A-Za-z0-9._~+/-]{16,}",
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)-----END [A-Z ]*PRIVATE KEY-----",
);

/// What varies between two runs of the same thing.
const VARYING: &str = concat!(
    r"(?P<time>\b\d+(?:\.\d+)? ?(?:ns|µs|ms|s|seconds?|milliseconds?)\b)",
    r"|(?P<id>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)",
);

/// The replacements of one run.
#[derive(Debug, Clone, Default)]
pub struct Masking {
    /// Placeholder and the place it stands for, the longest place first.
    places: Vec<(&'static str, String)>,
    secrets: Vec<String>,
}

impl Masking {
    /// `places` are directories such as the workspace; `environment` is searched for secrets.
    pub fn new(
        places: impl IntoIterator<Item = (&'static str, String)>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let mut places: Vec<_> = places
            .into_iter()
            .filter(|(_, place)| place.len() > 1)
            .collect();
        places.sort_by_key(|(_, place)| std::cmp::Reverse(place.len()));
        let mut secrets: Vec<String> = environment
            .into_iter()
            .filter(|(name, value)| {
                value.len() >= SHORTEST_SECRET
                    && SECRET_SUFFIXES
                        .iter()
                        .any(|suffix| name.to_ascii_uppercase().ends_with(suffix))
            })
            .map(|(_, value)| value)
            .collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { places, secrets }
    }

    /// A text without secrets.
    pub fn redacted(&self, text: &str) -> String {
        let mut redacted = text.to_owned();
        for secret in &self.secrets {
            redacted = redacted.replace(secret.as_str(), REDACTED);
        }
        match &*SHAPES {
            Some(shapes) => shapes.replace_all(&redacted, REDACTED).into_owned(),
            None => redacted,
        }
    }

    /// Secrets out, places to placeholders, in every string of a document.
    pub(super) fn mask(&self, value: &mut Value) {
        each_string(value, &|text| {
            let mut masked = self.redacted(text);
            for (name, place) in &self.places {
                masked = masked.replace(place.as_str(), name);
            }
            masked
        });
    }

    /// Placeholders back to this run's places.
    pub(super) fn unmask(&self, value: &mut Value) {
        each_string(value, &|text| {
            self.places
                .iter()
                .fold(text.to_owned(), |text, (name, place)| {
                    text.replace(name, place)
                })
        });
    }

    /// Durations and random ids made equal, for comparison only.
    pub(super) fn level(value: &mut Value) {
        each_string(value, &|text| match &*VARIES {
            Some(varies) => varies
                .replace_all(text, |found: &regex::Captures<'_>| {
                    if found.name("time").is_some() {
                        "{time}"
                    } else {
                        "{id}"
                    }
                })
                .into_owned(),
            None => text.to_owned(),
        });
    }
}

static SHAPES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SECRET_SHAPES).ok());
static VARIES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(VARYING).ok());

fn each_string(value: &mut Value, change: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_string(item, change)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| each_string(field, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn masking() -> Masking {
        Masking::new(
            [
                ("{home}", "/home/me".to_owned()),
                ("{workspace}", "/home/me/project".to_owned()),
            ],
            [
                ("MY_API_KEY".to_owned(), "hunter2hunter2".to_owned()),
                ("SHORT_KEY".to_owned(), "abc".to_owned()),
                ("EDITOR".to_owned(), "not-a-secret".to_owned()),
            ],
        )
    }

    #[test]
    fn secrets_go_and_places_become_names() {
        let mut value = json!({"a": ["key hunter2hunter2 abc not-a-secret", "sk-ant-abcdefghijklmnopqrst", {"b": "/home/me/project/x and /home/me/y"}]});
        masking().mask(&mut value);
        assert_eq!(
            value,
            json!({"a": ["key {redacted} abc not-a-secret", "{redacted}", {"b": "{workspace}/x and {home}/y"}]})
        );
        masking().unmask(&mut value);
        assert_eq!(value["a"][2]["b"], "/home/me/project/x and /home/me/y");
    }

    #[test]
    fn the_shapes_compile_and_varying_parts_are_made_equal() {
        assert!(SHAPES.is_some() && VARIES.is_some());
        let mut value =
            json!("took 1.5 s (12ms), id 0f8fad5b-d9cb-469f-a165-70867728950e, 5 files");
        Masking::level(&mut value);
        assert_eq!(value, json!("took {time} ({time}), id {id}, 5 files"));
    }
}
