//! How keys of well-known services look, and texts without them.

/// What stands in the place of a key.
const MASK: &str = "****";
/// How the keys begin.
const BEGINNINGS: [&str; 16] = [
    "AIza",
    "AKIA",
    "ASIA",
    "eyJ",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "hf_",
    "npm_",
    "pypi-",
    "sk-",
    "sk_live_",
    "xox",
];
/// What is shorter is no key.
const SHORTEST: usize = 16;

/// Whether a word looks like a key of a well-known service.
pub fn looks_like_key(word: &str) -> bool {
    word.len() >= SHORTEST
        && BEGINNINGS
            .iter()
            .any(|beginning| word.starts_with(beginning))
}

/// A text in which whatever looks like a key, or follows `Bearer`, is masked.
pub fn without_keys(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_bearer = false;
    while !rest.is_empty() {
        // A key is a part of a path or an address; what a bearer carries may be base64.
        let signs = if is_bearer { "_-.~+/=" } else { "_-." };
        let is_of_key = |letter: char| letter.is_ascii_alphanumeric() || signs.contains(letter);
        let length = rest.find(|c| !is_of_key(c)).unwrap_or(rest.len());
        if length == 0 {
            let next = rest.chars().next().map_or(rest.len(), char::len_utf8);
            let (letter, after) = rest.split_at(next);
            // `Bearer KEY` and `Bearer: KEY`.
            is_bearer &= matches!(letter, " " | ":");
            masked.push_str(letter);
            rest = after;
            continue;
        }
        let (word, after) = rest.split_at(length);
        let is_key = looks_like_key(word) || is_bearer && word.len() >= SHORTEST;
        masked.push_str(if is_key { MASK } else { word });
        is_bearer = word.eq_ignore_ascii_case("bearer");
        rest = after;
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_masked_wherever_they_stand() {
        let long = "a".repeat(40);
        for (text, masked) in [
            (format!("echo sk-ant-api03-{long}"), "echo ****".to_owned()),
            (
                format!("{{\"command\":\"K=ghp_{long} make\"}}"),
                "{\"command\":\"K=**** make\"}".to_owned(),
            ),
            (
                format!("-H 'Authorization: Bearer {long}' x"),
                "-H 'Authorization: Bearer ****' x".to_owned(),
            ),
            (
                format!("https://x/ghp_{long}@host/{long}"),
                format!("https://x/****@host/{long}"),
            ),
            (format!("bearer {long}+/=="), "bearer ****".to_owned()),
        ] {
            assert_eq!(without_keys(&text), masked);
        }
        for plain in [
            "",
            "sk-learn",
            "npm_config=1",
            "git log é ü",
            "Bearer of news",
        ] {
            assert_eq!(without_keys(plain), plain);
        }
    }
}
