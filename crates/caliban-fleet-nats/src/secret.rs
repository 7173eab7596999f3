//! Recognises secrets by how they look. It misses some by nature; what it names is one.

/// How a secret begins, how long it is at least after that, and what it is.
const PREFIXES: [(&str, usize, &str); 14] = [
    ("sk-ant-", 16, "Anthropic key"),
    ("sk-proj-", 16, "OpenAI key"),
    ("sk-", 32, "OpenAI key"),
    ("AIza", 30, "Google key"),
    ("AKIA", 16, "AWS key"),
    ("ASIA", 16, "AWS key"),
    ("ghp_", 30, "GitHub token"),
    ("gho_", 30, "GitHub token"),
    ("ghs_", 30, "GitHub token"),
    ("github_pat_", 30, "GitHub token"),
    ("glpat-", 16, "GitLab token"),
    ("xoxb-", 16, "Slack token"),
    ("xoxp-", 16, "Slack token"),
    ("SUA", 50, "NATS seed"),
];

/// What kind of secret a text contains, if it seems to contain one.
pub fn secret_in(text: &str) -> Option<&'static str> {
    if text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----") {
        return Some("private key");
    }
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
    for word in text.split(|char| !is_part(char)) {
        for (prefix, length, kind) in PREFIXES {
            let rest = word.strip_prefix(prefix);
            if rest.is_some_and(|rest| rest.len() >= length) {
                return Some(kind);
            }
        }
    }
    if has_password(text) {
        return Some("password in an address");
    }
    None
}

/// Whether there is an address with a name and a password before the host.
fn has_password(text: &str) -> bool {
    text.match_indices("://").any(|(at, separator)| {
        let rest = &text[at + separator.len()..];
        let end = rest.find(|char: char| char.is_whitespace() || "/?#\"'`<>".contains(char));
        let authority = &rest[..end.unwrap_or(rest.len())];
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        let password = user.and_then(|user| user.split_once(':'));
        password.is_some_and(|(_, password)| !password.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_passwords_and_private_keys_are_recognised() {
        let long = "a1B2".repeat(12);
        for (text, kind) in [
            (format!("use sk-ant-{long}."), "Anthropic key"),
            (format!("key=\"AKIA{long}\""), "AWS key"),
            (
                "clone https://me:pw@host/x now".to_owned(),
                "password in an address",
            ),
            (
                "-----BEGIN OPENSSH PRIVATE KEY-----".to_owned(),
                "private key",
            ),
        ] {
            assert_eq!(secret_in(&text), Some(kind), "{text}");
        }
    }

    #[test]
    fn talk_about_secrets_is_none() {
        for text in [
            "read the key from ANTHROPIC_API_KEY, which begins with sk-ant-",
            "see https://host/a:b@c and git@host:me/x and ssh://git@host/x",
            "rename task-runner to sk-learn",
        ] {
            assert_eq!(secret_in(text), None, "{text}");
        }
    }
}
