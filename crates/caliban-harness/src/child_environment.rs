//! The environment that tools and other child processes get: ours without keys and tokens.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

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

/// Variables that hold passwords without saying so at their end.
const PASSWORDS: [&str; 3] = ["MYSQL_PWD", "SSHPASS", "REDISCLI_AUTH"];

/// What names of variables that hold secrets end with, behind another word or alone.
const SECRET_ENDS: [&str; 10] = [
    "TOKEN",
    "SECRET",
    "PASSWD",
    "PASSPHRASE",
    "PAT",
    "APIKEY",
    "API_KEY",
    "ACCESS_KEY",
    "SECRET_KEY",
    "PRIVATE_KEY",
];

/// Who gets an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Child {
    /// What the model, a hook or a server runs: nobody of them has a use for a secret, and anybody
    /// who can steer the model would.
    Stranger,
    /// A program of the user's that fetches a key, and may need a token for that.
    KeyHelper,
}

/// An environment without secrets, and with what the settings add to it. `hidden` are variables
/// that this configuration keeps keys in. An addition that is `${NAME}` stands for that variable of
/// ours; where there is none, nothing is added.
pub fn child_environment<'a>(
    child: Child,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    hidden: &[&str],
    additions: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Vec<(OsString, OsString)> {
    let ours: BTreeMap<OsString, OsString> = environment.into_iter().collect();
    let secrets: Vec<&str> = secrets().collect();
    let is_secret = |name: &str| {
        let mut known = secrets.iter();
        known.any(|secret| name.eq_ignore_ascii_case(secret))
    };
    let is_hidden = |name: &str| {
        let is_token = match child {
            Child::Stranger => looks_secret(name),
            Child::KeyHelper => false,
        };
        is_token || is_secret(name) || hidden.contains(&name)
    };
    let mut kept: BTreeMap<OsString, OsString> = ours
        .iter()
        .filter(|(name, _)| !is_hidden(&name.to_string_lossy()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    // What the settings name goes along, a key included: that is what naming it is for.
    for (name, value) in additions {
        let variable = value
            .strip_prefix("${")
            .and_then(|rest| rest.strip_suffix('}'));
        let value = match variable {
            Some(variable) => ours.get(OsStr::new(variable)).cloned(),
            None => Some(value.into()),
        };
        kept.extend(value.map(|value| (name.into(), value)));
    }
    kept.into_iter().collect()
}

/// Whether the name of a variable says that it holds a secret.
fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let ends = |end: &&str| {
        name.strip_suffix(*end)
            .is_some_and(|before| before.is_empty() || before.ends_with(['_', '-']))
    };
    // `PGPASSWORD` has no joint.
    SECRET_ENDS.iter().any(ends) || name.ends_with("PASSWORD") || PASSWORDS.contains(&name.as_str())
}

/// The variables that are known to hold a secret.
fn secrets() -> impl Iterator<Item = &'static str> {
    let ours = VARIABLES.iter().filter(|variable| variable.is_secret);
    ours.map(|variable| variable.name).chain(FOREIGN_SECRETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_behind_unless_they_are_named() {
        let environment = [
            "PATH",
            "OPENAI_API_KEY",
            "anthropic_api_key",
            "GITHUB_TOKEN",
            "gh_token",
            "AWS_SECRET_ACCESS_KEY",
            "NPM_AUTH_TOKEN",
            "PGPASSWORD",
            "MYSQL_PWD",
            "PWD",
            "OLDPWD",
            "MAX_TOKENS",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "SSH_AUTH_SOCK",
            "STAGING_KEY",
        ]
        .map(|name| (name.into(), "x".into()));
        let additions = [
            ("GEMINI_API_KEY".to_owned(), "named".to_owned()),
            ("PATH".to_owned(), "other".to_owned()),
            ("TOKEN".to_owned(), "${GITHUB_TOKEN}".to_owned()),
            ("ABSENT".to_owned(), "${NOT_THERE}".to_owned()),
        ];
        let made = |child| -> Vec<String> {
            let made = child_environment(
                child,
                environment.clone(),
                &["STAGING_KEY"],
                additions.iter().map(|(a, b)| (a, b)),
            );
            let shown = |(name, value): &(OsString, OsString)| {
                format!("{}={}", name.display(), value.display())
            };
            made.iter().map(shown).collect()
        };
        let harmless = [
            "AWS_WEB_IDENTITY_TOKEN_FILE=x",
            "GEMINI_API_KEY=named",
            "MAX_TOKENS=x",
            "OLDPWD=x",
            "PATH=other",
            "PWD=x",
            "SSH_AUTH_SOCK=x",
            "TOKEN=x",
        ];
        assert_eq!(made(Child::Stranger), harmless);
        let helper = made(Child::KeyHelper);
        assert!(helper.contains(&"GITHUB_TOKEN=x".to_owned()));
        assert!(!helper.iter().any(|it| it.starts_with("OPENAI_API_KEY")));
        assert!(!helper.iter().any(|it| it.starts_with("STAGING_KEY")));
    }
}
