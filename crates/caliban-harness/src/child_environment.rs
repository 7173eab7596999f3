//! The environment that tools and other child processes get: ours without the keys.

use std::collections::BTreeMap;
use std::ffi::OsString;

use caliban_settings::variables::VARIABLES;

/// Keys of providers that are not ours but that a machine with ours is likely to have.
const FOREIGN_SECRETS: [&str; 15] = [
    "ANTHROPIC_AUTH_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "CEREBRAS_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "COHERE_API_KEY",
    "DEEPSEEK_API_KEY",
    "FIREWORKS_API_KEY",
    "GOOGLE_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "OLLAMA_API_KEY",
    "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
];

/// An environment without keys, and with what the settings add to it. A command the model runs
/// has no use for a key, and anybody who can steer the model would. `hidden` are variables that
/// this configuration keeps keys in.
pub fn child_environment<'a>(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    hidden: &[&str],
    additions: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Vec<(OsString, OsString)> {
    let is_hidden = |name: &str| is_secret(name) || hidden.contains(&name);
    let mut kept: BTreeMap<OsString, OsString> = environment
        .into_iter()
        .filter(|(name, _)| !is_hidden(&name.to_string_lossy()))
        .collect();
    // What the settings name goes along, a key included: that is what naming it is for.
    kept.extend(
        additions
            .into_iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    kept.into_iter().collect()
}

fn is_secret(name: &str) -> bool {
    VARIABLES
        .iter()
        .filter(|variable| variable.is_secret)
        .map(|variable| variable.name)
        .chain(FOREIGN_SECRETS)
        .any(|secret| name.eq_ignore_ascii_case(secret))
}

#[cfg(test)]
mod tests {
    use super::child_environment;

    #[test]
    fn keys_stay_behind_unless_they_are_named() {
        let environment = [
            "PATH",
            "OPENAI_API_KEY",
            "anthropic_api_key",
            "GITHUB_TOKEN",
            "STAGING_KEY",
        ]
        .map(|name| (name.into(), "x".into()));
        let additions = [
            ("GEMINI_API_KEY".to_owned(), "named".to_owned()),
            ("PATH".to_owned(), "other".to_owned()),
        ];
        let made = child_environment(
            environment,
            &["STAGING_KEY"],
            additions.iter().map(|(a, b)| (a, b)),
        );
        let made: Vec<(String, String)> = made
            .into_iter()
            .map(|(name, value)| (name.into_string().unwrap(), value.into_string().unwrap()))
            .collect();
        let expected = [
            ("GEMINI_API_KEY", "named"),
            ("GITHUB_TOKEN", "x"),
            ("PATH", "other"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(made, expected);
    }
}
