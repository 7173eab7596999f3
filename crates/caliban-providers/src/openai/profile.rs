//! The kinds of servers that speak Chat Completions: one table, `data/servers.csv`.

use std::sync::OnceLock;

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::chat::Server;

/// What is known about a kind of server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) name: &'static str,
    pub(crate) server: Server,
    pub(crate) text_calls: TextCalls,
    hosts: Vec<&'static str>,
    header: Option<&'static str>,
    /// A field of a model's entry, and what it says where that matters.
    field: Option<(&'static str, Option<&'static str>)>,
}

/// What becomes of a call that a model prints instead of making it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextCalls {
    Understood,
    /// They are text.
    Ignored,
}

impl Profile {
    fn all() -> &'static [Self] {
        static ALL: OnceLock<Vec<Profile>> = OnceLock::new();
        ALL.get_or_init(|| {
            let table = include_str!("../../data/servers.csv");
            table.lines().filter_map(read).collect()
        })
    }

    /// Whoever it is.
    pub(crate) fn unknown() -> &'static Self {
        static UNKNOWN: Profile = Profile {
            name: "compatible",
            server: Server::Compatible,
            text_calls: TextCalls::Ignored,
            hosts: Vec::new(),
            header: None,
            field: None,
        };
        &UNKNOWN
    }

    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        Self::all().iter().find(|profile| profile.name == name)
    }

    /// All names, for who misspells one.
    pub(crate) fn names() -> String {
        let names: Vec<&str> = Self::all().iter().map(|profile| profile.name).collect();
        names.join(", ")
    }

    /// Whose server this host is; nothing where anybody might run there.
    pub(crate) fn at_host(host: &str) -> Option<&'static Self> {
        let is_at = |known: &&'static str| host == *known || host.ends_with(&format!(".{known}"));
        let mut all = Self::all().iter();
        all.find(|profile| profile.hosts.iter().any(is_at))
    }

    /// Which server lists its models like this.
    pub(crate) fn of_list(headers: &HeaderMap, body: &Value) -> Option<&'static Self> {
        let first = body.get("data").unwrap_or(body).get(0);
        let says = |(name, value): (&str, Option<&str>)| {
            let found = first.and_then(|entry| entry.get(name));
            match value {
                Some(value) => found.and_then(Value::as_str) == Some(value),
                None => found.is_some(),
            }
        };
        Self::all().iter().find(|profile| {
            let by_header = profile
                .header
                .is_some_and(|name| headers.contains_key(name));
            by_header || profile.field.is_some_and(says)
        })
    }
}

fn read(line: &'static str) -> Option<Profile> {
    let fields: Vec<&'static str> = line.split(',').collect();
    let [name, hosts, header, field, dialect, text_calls] = fields[..] else {
        return None;
    };
    let filled = |text: &'static str| (!text.is_empty()).then_some(text);
    Some(Profile {
        name,
        hosts: hosts.split('|').filter(|host| !host.is_empty()).collect(),
        header: filled(header),
        field: filled(field).map(|field| match field.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (field, None),
        }),
        server: match dialect {
            "openai" => Server::OpenAi,
            "compatible" => Server::Compatible,
            "mistral" => Server::Mistral,
            // The head of the table.
            _ => return None,
        },
        text_calls: match text_calls {
            "yes" => TextCalls::Understood,
            _ => TextCalls::Ignored,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_line_of_the_table_is_understood() {
        let lines = include_str!("../../data/servers.csv").lines();
        let lines = lines.filter(|line| !line.starts_with('#') && !line.starts_with("name,"));
        assert_eq!(Profile::all().len(), lines.count());
    }

    #[test]
    fn servers_are_known_by_host_header_and_list() {
        let name = |profile: Option<&Profile>| profile.map(|profile| profile.name);
        assert_eq!(name(Profile::at_host("openrouter.ai")), Some("openrouter"));
        assert_eq!(name(Profile::at_host("eu.api.openai.com")), Some("openai"));
        assert_eq!(name(Profile::at_host("notopenrouter.ai")), None);
        let plain = HeaderMap::new();
        let vllm = json!({"data": [{"id": "m", "owned_by": "vllm"}]});
        assert_eq!(name(Profile::of_list(&plain, &vllm)), Some("vllm"));
        let other = json!({"data": [{"id": "m", "owned_by": "me"}]});
        assert_eq!(name(Profile::of_list(&plain, &other)), None);
        let mut litellm = HeaderMap::new();
        litellm.insert("x-litellm-version", "1.106.2".parse().unwrap());
        assert_eq!(name(Profile::of_list(&litellm, &other)), Some("litellm"));
    }
}
