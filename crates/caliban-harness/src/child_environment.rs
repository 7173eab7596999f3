//! The environment that tools and other child processes get: ours without the keys.

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

/// An environment without keys.
pub fn scrubbed(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    environment
        .into_iter()
        .filter(|(name, _)| !is_secret(&name.to_string_lossy()))
        .collect()
}

fn is_secret(name: &str) -> bool {
    SECRETS
        .iter()
        .any(|secret| name.eq_ignore_ascii_case(secret))
}

#[cfg(test)]
mod tests {
    use super::scrubbed;

    #[test]
    fn keys_stay_behind_and_the_rest_goes_along() {
        let environment = [
            "PATH",
            "OPENAI_API_KEY",
            "anthropic_api_key",
            "GITHUB_TOKEN",
        ]
        .map(|name| (name.into(), "x".into()));
        let names: Vec<String> = scrubbed(environment)
            .into_iter()
            .map(|(name, _)| name.into_string().unwrap())
            .collect();
        assert_eq!(names, ["PATH", "GITHUB_TOKEN"]);
    }
}
