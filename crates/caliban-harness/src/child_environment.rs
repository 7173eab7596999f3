//! The environment that tools and other child processes get: ours without the keys.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// Keys and tokens of model and search providers. A command the model runs has no use for them,
/// and anybody who can steer the model would.
const SECRETS: [&str; 24] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_OPENAI_API_KEY",
    "BRAVE_API_KEY",
    "CEREBRAS_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "COHERE_API_KEY",
    "DEEPSEEK_API_KEY",
    "EXA_API_KEY",
    "FIREWORKS_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GEMINI_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "MOONSHOT_API_KEY",
    "OLLAMA_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "TAVILY_API_KEY",
    "TOGETHER_API_KEY",
    "XAI_API_KEY",
    "ZAI_API_KEY",
];

/// An environment without keys, and with what the settings add to it.
pub fn child_environment<'a>(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    additions: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Vec<(OsString, OsString)> {
    let mut kept: BTreeMap<OsString, OsString> = environment
        .into_iter()
        .filter(|(name, _)| !is_secret(&name.to_string_lossy()))
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
    SECRETS
        .iter()
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
        ]
        .map(|name| (name.into(), "x".into()));
        let additions = [
            ("GEMINI_API_KEY".to_owned(), "named".to_owned()),
            ("PATH".to_owned(), "other".to_owned()),
        ];
        let made = child_environment(environment, additions.iter().map(|(a, b)| (a, b)));
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
