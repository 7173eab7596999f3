//! Permission patterns of Claude Code in our first syntax. A translation never allows more than
//! the original did, and never forbids less.

use std::path::Path;

use caliban_model::BuiltInTool;

use crate::write::RuleAction;

/// What a pattern becomes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Translation {
    Patterns(Vec<String>),
    /// Our first syntax would read it differently; the original spelling is understood as well.
    Verbatim(&'static str),
    Unusable(String),
}

/// Our name for a tool of Claude Code.
pub(super) fn tool(name: &str) -> Option<&str> {
    let name = BuiltInTool::canonical(name);
    let is_known = name == "*" || name.starts_with("mcp__") || BuiltInTool::named(name).is_some();
    is_known.then_some(name)
}

/// In Claude Code a rule about `Edit` is about every tool that changes files.
fn editors() -> Vec<&'static str> {
    BuiltInTool::editors().collect()
}

pub(super) fn translate(pattern: &str, action: RuleAction, home: Option<&Path>) -> Translation {
    let (name, specifier) = match split(pattern) {
        Some((name, specifier)) => (name, Some(unescape(specifier))),
        None if pattern.contains(':') => return Translation::Patterns(vec![pattern.to_owned()]),
        None => (pattern, None),
    };
    let Some(tool) = tool(name) else {
        return Translation::Unusable(format!("there is no tool `{name}` here"));
    };
    let specifier = specifier.filter(|text| !matches!(text.as_str(), "" | "*" | ":*" | "**"));
    match (tool, specifier) {
        ("Edit", None) if action == RuleAction::Deny => {
            Translation::Patterns(editors().into_iter().map(str::to_owned).collect())
        }
        (tool, None) => Translation::Patterns(vec![tool.to_owned()]),
        ("Bash", Some(command)) => bash(&command),
        ("Edit", Some(path)) if action == RuleAction::Deny => file(&editors(), &path, action, home),
        (tool, Some(path)) if BuiltInTool::named(tool).is_some_and(BuiltInTool::opens) => {
            file(&[tool], &path, action, home)
        }
        ("WebFetch", Some(place)) => fetch(&place),
        ("Skill", Some(name)) => Translation::Patterns(vec![format!("Skill:{name}")]),
        (tool, Some(_)) => Translation::Unusable(format!(
            "rules about `{tool}` cannot say more than its name"
        )),
    }
}

/// `Tool(specifier)`.
fn split(pattern: &str) -> Option<(&str, &str)> {
    let (name, rest) = pattern.split_once('(')?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_-*".contains(letter);
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    Some((name, rest.strip_suffix(')')?))
}

fn unescape(specifier: &str) -> String {
    specifier.trim().replace("\\(", "(").replace("\\)", ")")
}

fn bash(command: &str) -> Translation {
    // There, only `*` has a meaning. `:*` has the same one here.
    let command = command
        .replace('[', r"\[")
        .replace('{', r"\{")
        .replace('?', r"\?");
    let key = command.split_once('=').map_or("", |(key, _)| key);
    let is_key = |letter: char| letter.is_ascii_alphanumeric() || "_.".contains(letter);
    if command.starts_with('~') {
        Translation::Verbatim("`Bash:~…` would match anywhere in a command")
    } else if !key.is_empty() && key.chars().all(is_key) {
        Translation::Verbatim("`Bash:name=…` would be about a field of the call")
    } else {
        Translation::Patterns(vec![format!("Bash:{command}")])
    }
}

fn file(tools: &[&str], path: &str, action: RuleAction, home: Option<&Path>) -> Translation {
    let path = if let Some(absolute) = path.strip_prefix("//") {
        format!("/{absolute}")
    } else if let Some(below) = path.strip_prefix("~/") {
        match home {
            Some(home) => home.join(below).to_string_lossy().into_owned(),
            None => return Translation::Unusable("the home directory is not known".into()),
        }
    } else if let Some(anchored) = path.strip_prefix("./").or_else(|| path.strip_prefix('/')) {
        match action {
            RuleAction::Allow => format!("./{anchored}"),
            // Without an anchor it holds at any depth, which forbids more, not less.
            RuleAction::Ask | RuleAction::Deny => anchored.to_owned(),
        }
    } else {
        path.to_owned()
    };
    // There, what is forbidden by a wildcard is forbidden with all that lies below it.
    let last = path.rsplit('/').next().unwrap_or_default();
    let below = match action {
        RuleAction::Ask | RuleAction::Deny if last.contains(['*', '?', '[']) && last != "**" => {
            Some(format!("{path}/**"))
        }
        RuleAction::Allow | RuleAction::Ask | RuleAction::Deny => None,
    };
    let paths: Vec<String> = [path].into_iter().chain(below).collect();
    let of_tool = |tool: &&str| -> Vec<String> {
        let patterns = paths.iter().map(|path| format!("{tool}:{path}"));
        patterns.collect()
    };
    Translation::Patterns(tools.iter().flat_map(of_tool).collect())
}

fn fetch(place: &str) -> Translation {
    Translation::Patterns(match place.strip_prefix("domain:") {
        Some(domain) => ["https", "http"]
            .map(|scheme| format!("WebFetch:{scheme}://{domain}/*"))
            .to_vec(),
        None => vec![format!("WebFetch:{place}")],
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn patterns(pattern: &str, action: RuleAction) -> Vec<String> {
        match translate(pattern, action, Some(Path::new("/home/me"))) {
            Translation::Patterns(patterns) => patterns,
            other => panic!("{other:?}"),
        }
    }

    #[rstest]
    #[case("Bash", "Bash")]
    #[case("Bash(*)", "Bash")]
    #[case("Bash(git:*)", "Bash:git:*")]
    #[case("Bash(git *)", "Bash:git *")]
    #[case("Bash(npm run test:*)", "Bash:npm run test:*")]
    #[case("Bash(jq {a,b} [0] x?)", r"Bash:jq \{a,b} \[0] x\?")]
    #[case("Bash(git log --format=%h)", "Bash:git log --format=%h")]
    #[case(r"Bash(python -c 'print\(1\)')", "Bash:python -c 'print(1)'")]
    #[case("Bash:git *", "Bash:git *")]
    #[case("Read(./src/**)", "Read:./src/**")]
    #[case("Read(/docs/**)", "Read:./docs/**")]
    #[case("Read(//etc/hosts)", "Read:/etc/hosts")]
    #[case("Read(~/notes/**)", "Read:/home/me/notes/**")]
    #[case("Edit(*.md)", "Edit:*.md")]
    #[case("mcp__github", "mcp__github")]
    #[case("mcp__github__*", "mcp__github__*")]
    #[case("mcp__github__get_issue", "mcp__github__get_issue")]
    #[case("Task", "AgentTool")]
    #[case("Skill(review)", "Skill:review")]
    #[case("WebFetch", "WebFetch")]
    fn an_allow_is_spelled_in_our_way(#[case] theirs: &str, #[case] ours: &str) {
        assert_eq!(patterns(theirs, RuleAction::Allow), [ours]);
    }

    #[test]
    fn a_domain_is_both_its_schemes() {
        assert_eq!(
            patterns("WebFetch(domain:example.com)", RuleAction::Allow),
            [
                "WebFetch:https://example.com/*",
                "WebFetch:http://example.com/*"
            ]
        );
    }

    #[test]
    fn a_denial_of_editing_covers_every_editor_at_any_depth() {
        assert_eq!(
            patterns("Edit(./.env)", RuleAction::Deny),
            [
                "Edit:.env",
                "MultiEdit:.env",
                "NotebookEdit:.env",
                "Write:.env"
            ]
        );
        assert_eq!(patterns("Read(./.env)", RuleAction::Deny), ["Read:.env"]);
        assert_eq!(
            patterns("Read(./secrets/*)", RuleAction::Deny),
            ["Read:secrets/*", "Read:secrets/*/**"]
        );
    }

    #[rstest]
    #[case("Bash(~/bin/tool:*)")]
    #[case("Bash(RUST_LOG=debug cargo test:*)")]
    fn what_would_mean_something_else_keeps_its_spelling(#[case] pattern: &str) {
        let translation = translate(pattern, RuleAction::Allow, None);
        assert!(
            matches!(translation, Translation::Verbatim(_)),
            "{translation:?}"
        );
    }

    #[rstest]
    #[case("LS", "no tool `LS`")]
    #[case("Task(Explore)", "cannot say more")]
    #[case("Read(~/x)", "home directory")]
    fn what_cannot_match_is_left_out(#[case] pattern: &str, #[case] why: &str) {
        match translate(pattern, RuleAction::Deny, None) {
            Translation::Unusable(text) => assert!(text.contains(why), "{text}"),
            other => panic!("{other:?}"),
        }
    }
}
