//! Names of tools: `mcp__SERVER__TOOL`, from an alphabet and of a length that every provider
//! takes, and with only one way to take them apart.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

use crate::hex::hex;

/// The longest name that all providers take.
const LONGEST: usize = 64;
const PREFIX: &str = "mcp__";
const SEPARATOR: &str = "__";
/// The longest part of a server's name; the rest is the tool's.
const LONGEST_SERVER: usize = 24;
/// The same for a server of a plugin, which has the names of both.
const LONGEST_OF_PLUGIN: usize = 40;
/// What the names of servers of plugins begin with, as other programs have it.
const PLUGIN: &str = "plugin_";
/// Hexadecimal digits of a digest that tell two names apart.
const DIGITS: usize = 6;

/// The names that a server's tools begin with, one for each server and no two alike.
pub fn server_parts<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
    parts(names, |name| {
        if name.contains(':') {
            (PLUGIN, LONGEST_OF_PLUGIN)
        } else {
            ("", LONGEST_SERVER)
        }
    })
}

/// What the names of a server's tools begin with.
pub fn prefix(server_part: &str) -> String {
    format!("{PREFIX}{server_part}{SEPARATOR}")
}

/// The full names of the tools of one server by their own names. A name that could only be had
/// by taking another's is left out.
pub fn tool_names<'a>(
    server_part: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> BTreeMap<String, String> {
    let prefix = prefix(server_part);
    let longest = LONGEST - prefix.len();
    parts(names, |_| ("", longest))
        .into_iter()
        .map(|(name, part)| (name, format!("{prefix}{part}")))
        .collect()
}

/// A pattern in which servers of plugins that are written as they are called,
/// `mcp__PLUGIN:SERVER__TOOL`, have the names that their tools have. A colon behind a tool stays:
/// there it begins what is said about the call.
pub fn with_plugin_servers(pattern: &str) -> Cow<'_, str> {
    let mut written = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find(PREFIX) {
        let (before, behind) = rest.split_at(at + PREFIX.len());
        written.push_str(before);
        rest = behind;
        if let Some(name) = plugin_server(rest)
            && let Some(part) = server_parts([name]).get(name)
        {
            written.push_str(part);
            rest = &rest[name.len()..];
        }
    }
    if written.is_empty() {
        return Cow::Borrowed(pattern);
    }
    written.push_str(rest);
    Cow::Owned(written)
}

/// The `PLUGIN:SERVER` that a text begins with.
fn plugin_server(text: &str) -> Option<&str> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let (plugin, behind) = text.split_once(':')?;
    if plugin.is_empty() || plugin.contains(SEPARATOR) || !plugin.chars().all(is_name) {
        return None;
    }
    let end = behind
        .find(|letter| !is_name(letter))
        .unwrap_or(behind.len());
    let (name, after) = behind.split_at(end);
    let server = match name.split_once(SEPARATOR) {
        Some((server, _)) => server,
        // Of a whole server nothing follows but the end of its name.
        None if after.is_empty() || after.starts_with(['|', ',', ' ', ')', '$']) => name,
        None => return None,
    };
    (!server.is_empty()).then(|| &text[..plugin.len() + 1 + server.len()])
}

/// A part for each name. Which name gets which does not depend on their order: a name that is
/// usable as it is keeps it, and those that had to be changed give way to it and to each other
/// with a digest at their end.
fn parts<'a>(
    names: impl IntoIterator<Item = &'a str>,
    form: impl Fn(&str) -> (&'static str, usize),
) -> BTreeMap<String, String> {
    let names: BTreeSet<&str> = names.into_iter().collect();
    let mut wanted: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in names {
        let (beginning, longest) = form(name);
        let part = format!("{beginning}{}", normal(name));
        let part = part.trim_end_matches('_').to_owned();
        let part = if part.len() > longest || part.is_empty() {
            marked(&part, name, longest)
        } else {
            part
        };
        wanted.entry(part).or_default().push(name);
    }
    let mut given: BTreeMap<String, String> = BTreeMap::new();
    let mut taken: BTreeSet<String> = wanted.keys().cloned().collect();
    for (part, names) in wanted {
        let is_shared = names.len() > 1;
        for name in names {
            if name == part || !is_shared {
                given.insert(name.to_owned(), part.clone());
                continue;
            }
            let marked = marked(&part, name, form(name).1);
            if taken.insert(marked.clone()) {
                given.insert(name.to_owned(), marked);
            }
        }
    }
    given
}

/// Only letters, digits, `-` and single `_` inside, so that two of them end a part.
fn normal(name: &str) -> String {
    let mut part = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => part.push(character),
            _ if part.ends_with('_') => {}
            _ => part.push('_'),
        }
    }
    part.trim_matches('_').to_owned()
}

fn marked(part: &str, name: &str, longest: usize) -> String {
    let mark = &hex(&Sha256::digest(name.as_bytes()))[..DIGITS];
    let end = part.len().min(longest - DIGITS - 1);
    let kept = part[..end].trim_end_matches('_');
    if kept.is_empty() {
        return format!("x-{mark}");
    }
    format!("{kept}_{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(server: &str, tool: &str) -> String {
        tool_names(server, [tool])[tool].clone()
    }

    #[test]
    fn names_are_readable_where_they_can_be() {
        assert_eq!(one("linear", "create_issue"), "mcp__linear__create_issue");
        assert_eq!(one("a", "get.user/name"), "mcp__a__get_user_name");
        assert_eq!(one("a", "b__c"), "mcp__a__b_c");
        assert_eq!(one("a", "__b__"), "mcp__a__b");
        assert!(one("a", "日本").starts_with("mcp__a__x-"));
    }

    #[test]
    fn servers_of_plugins_are_written_as_they_are_called() {
        let long = format!("mcp__{}:server__tool", "p".repeat(50));
        let part = &server_parts([&long[5..62]])[&long[5..62]];
        assert!(part.len() <= LONGEST_OF_PLUGIN);
        for (pattern, meant) in [
            ("mcp__tools:db__get", "mcp__plugin_tools_db__get"),
            ("mcp__tools:db__*", "mcp__plugin_tools_db__*"),
            ("mcp__tools:db", "mcp__plugin_tools_db"),
            (
                "mcp__a:b__c|mcp__d:e__f",
                "mcp__plugin_a_b__c|mcp__plugin_d_e__f",
            ),
            (
                "mcp__tools:db__get:repo=x",
                "mcp__plugin_tools_db__get:repo=x",
            ),
            ("mcp__gh__get:repo=acme/*", "mcp__gh__get:repo=acme/*"),
            ("mcp__gh:repo=x", "mcp__gh:repo=x"),
            ("mcp__(?:a|b)__c", "mcp__(?:a|b)__c"),
            ("Bash:git *", "Bash:git *"),
            (long.as_str(), format!("mcp__{part}__tool").as_str()),
        ] {
            assert_eq!(with_plugin_servers(pattern), meant);
        }
    }

    #[test]
    fn look_alikes_are_told_apart_whatever_their_order() {
        let names = tool_names("a", ["b.c", "b_c", "b c"]);
        assert_eq!(names["b_c"], "mcp__a__b_c");
        assert!(names["b.c"].starts_with("mcp__a__b_c_"));
        assert_ne!(names["b.c"], names["b c"]);
        assert_eq!(names, tool_names("a", ["b c", "b_c", "b.c"]));
    }

    #[test]
    fn a_crafted_name_does_not_take_anothers() {
        let marked = tool_names("a", ["b.c", "b_c"])["b.c"].clone();
        let crafted = marked.strip_prefix("mcp__a__").unwrap();
        let names = tool_names("a", ["b.c", "b_c", crafted]);
        assert_eq!(names[crafted], marked);
        assert!(!names.contains_key("b.c"), "it has no name of its own left");
    }

    #[test]
    fn servers_of_plugins_have_the_names_that_others_give_them() {
        let parts = server_parts(["tools:files", "plugin_tools_files", "tools_files"]);
        assert_eq!(parts["tools_files"], "tools_files");
        assert_eq!(parts["plugin_tools_files"], "plugin_tools_files");
        assert!(parts["tools:files"].starts_with("plugin_tools_files_"));
        assert_eq!(server_parts(["a:b"])["a:b"], "plugin_a_b");
    }

    #[test]
    fn servers_that_look_alike_are_told_apart() {
        let parts = server_parts(["my.server", "my_server", "x".repeat(60).as_str()]);
        assert_eq!(parts["my_server"], "my_server");
        assert!(parts["my.server"].starts_with("my_server_"));
    }

    proptest! {
        #[test]
        fn names_are_valid_unambiguous_and_unique(
            servers in prop::collection::btree_set(".{0,40}|[ab_.]{0,6}", 1..4),
            tools in prop::collection::btree_set(".{0,80}|[ab_.-]{0,6}|[a-z]{60,90}", 1..12),
        ) {
            let mut seen = BTreeSet::new();
            for (_, part) in server_parts(servers.iter().map(String::as_str)) {
                prop_assert!(part.len() <= LONGEST_OF_PLUGIN);
                for (_, name) in tool_names(&part, tools.iter().map(String::as_str)) {
                    prop_assert!(name.len() <= LONGEST, "{}", name);
                    prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)));
                    let split: Vec<&str> = name.split("__").collect();
                    prop_assert_eq!(split.len(), 3, "{}", &name);
                    prop_assert_eq!(split[1], part.as_str());
                    prop_assert!(!split[2].starts_with('_') && !split[2].ends_with('_') && !split[2].is_empty());
                    prop_assert!(seen.insert(name));
                }
            }
        }
    }
}
