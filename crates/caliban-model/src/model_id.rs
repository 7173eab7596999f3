//! Model names without what platforms and dates add to them.

/// The name under which prices and traits are kept: without resource paths, region and vendor
/// prefixes, dates and platform versions. `us.anthropic.claude-haiku-4-5-20251001-v1:0` and
/// `claude-haiku-4-5@20251001` are both `claude-haiku-4-5`.
pub fn base_model(name: &str) -> &str {
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = REGIONS
        .iter()
        .find_map(|region| name.strip_prefix(region))
        .unwrap_or(name);
    let name = MAKERS
        .iter()
        .find_map(|maker| name.strip_prefix(maker))
        .unwrap_or(name);
    let name = strip_platform_version(name);
    strip_date(name)
}

const REGIONS: [&str; 7] = ["global.", "us.", "eu.", "jp.", "apac.", "au.", "us-gov."];

/// Whom Bedrock names before the models of others.
const MAKERS: [&str; 9] = [
    "anthropic.",
    "amazon.",
    "meta.",
    "mistral.",
    "cohere.",
    "deepseek.",
    "qwen.",
    "openai.",
    "ai21.",
];

/// Cuts `-v1` and `-v1:0`, but only from names that carry a vendor's date or platform form.
fn strip_platform_version(name: &str) -> &str {
    let Some((head, version)) = name.rsplit_once("-v") else {
        return name;
    };
    let digits = version.split(':');
    if digits.clone().count() <= 2
        && digits
            .clone()
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    {
        head
    } else {
        name
    }
}

/// Cuts a trailing `-20251001`, `@20251001` or `-2026-04-23`.
fn strip_date(name: &str) -> &str {
    if let Some((head, tail)) = name.rsplit_once(['-', '@'])
        && tail.len() == 8
        && tail.bytes().all(|b| b.is_ascii_digit())
    {
        return head;
    }
    let bytes = name.as_bytes();
    if bytes.len() > 11 {
        let tail = &bytes[bytes.len() - 11..];
        let dashes = [0, 5, 8];
        let dated = tail.iter().enumerate().all(|(i, b)| {
            if dashes.contains(&i) {
                *b == b'-'
            } else {
                b.is_ascii_digit()
            }
        });
        if dated {
            return &name[..name.len() - 11];
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::base_model;

    #[test]
    fn platform_and_date_decorations_are_cut() {
        for (name, base) in [
            ("claude-sonnet-4-6", "claude-sonnet-4-6"),
            ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
            ("claude-haiku-4-5@20251001", "claude-haiku-4-5"),
            (
                "us.anthropic.claude-haiku-4-5-20251001-v1:0",
                "claude-haiku-4-5",
            ),
            (
                "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-4-6-v1",
                "claude-opus-4-6",
            ),
            ("us.amazon.nova-pro-v1:0", "nova-pro"),
            ("models/gemini-3.8-flash", "gemini-3.8-flash"),
            ("gpt-5.5-2026-04-23", "gpt-5.5"),
            ("llama3.2:3b", "llama3.2:3b"),
            ("qwen-v2.5", "qwen-v2.5"),
            ("", ""),
        ] {
            assert_eq!(base_model(name), base, "{name}");
        }
    }
}
