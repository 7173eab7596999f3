//! Which plugins are used and where they come from, in the words of Claude Code.

use serde_json::{Map, Value};

use super::gathered::Gathered;

/// Keys about plugins, some of them under two names.
const MARKETPLACES: [(&[&str], &str, Form); 3] = [
    (
        &["extraKnownMarketplaces", "additionalMarketplaces"],
        "plugins.marketplaces.known",
        Form::Named,
    ),
    (
        &["strictKnownMarketplaces", "allowedMarketplaces"],
        "plugins.marketplaces.strict_known",
        Form::Listed,
    ),
    (
        &["blockedMarketplaces"],
        "plugins.marketplaces.blocked",
        Form::Listed,
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A table of names with sources.
    Named,
    /// A list of sources.
    Listed,
}

/// Takes what is said about plugins out of the settings.
pub(super) fn gather(source: &mut Map<String, Value>, gathered: &mut Gathered) {
    if let Some(enabled) = source.shift_remove("enabledPlugins") {
        match enabled {
            Value::Object(switches) => {
                let (truths, others): (Map<String, Value>, Map<String, Value>) = switches
                    .into_iter()
                    .partition(|(_, wanted)| wanted.is_boolean());
                for name in others.keys() {
                    gathered.note(format!(
                        "`enabledPlugins.{name}` was not imported: it is neither `true` nor `false`"
                    ));
                }
                gathered.set("plugins.enabled", truths);
                gathered.note(
                    "`enabledPlugins` names plugins and installs none: `caliban plugin install NAME@MARKETPLACE` does",
                );
            }
            _ => gathered.note("`enabledPlugins` was not imported: it is not a table"),
        }
    }
    for (theirs, ours, form) in MARKETPLACES {
        for key in theirs {
            let Some(value) = source.shift_remove(*key) else {
                continue;
            };
            match (form, value) {
                (Form::Named, Value::Object(named)) => known(key, ours, &named, gathered),
                (Form::Listed, Value::Array(list)) => {
                    let sources = list.iter().enumerate().filter_map(|(index, entry)| {
                        let address = address(entry);
                        if address.is_none() {
                            gathered.note(format!(
                                "`{key}[{index}]` was not imported: it is no source that is known here"
                            ));
                        }
                        address
                    });
                    let sources: Vec<String> = sources.collect();
                    // A list of what is allowed allows nothing else, however much of it was left.
                    gathered.set(ours, sources);
                }
                (Form::Named | Form::Listed, _) => {
                    gathered.note(format!("`{key}` was not imported: it has the wrong type"));
                }
            }
        }
    }
}

fn known(key: &str, ours: &str, named: &Map<String, Value>, gathered: &mut Gathered) {
    let mut sources = Map::new();
    for (name, entry) in named {
        match address(entry) {
            Some(address) => {
                sources.insert(name.clone(), address.into());
            }
            None => gathered.note(format!(
                "`{key}.{name}` was not imported: it is no source that is known here"
            )),
        }
    }
    gathered.set(ours, sources);
}

/// A source as it is typed here.
fn address(entry: &Value) -> Option<String> {
    if let Some(text) = entry.as_str() {
        return Some(text.to_owned());
    }
    let kind = entry.get("source")?;
    if kind.is_object() {
        return address(kind);
    }
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let place = match kind.as_str()? {
        "github" => text("repo")?,
        "git" | "url" => text("url")?,
        "directory" | "file" => text("path")?,
        _ => return None,
    };
    Some(match text("ref") {
        Some(reference) => format!("{place}#{reference}"),
        None => place.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plugins_and_marketplaces_are_taken_over() {
        let theirs = json!({
            "enabledPlugins": {"formatter@tools": true, "old@tools": false, "odd": 7},
            "extraKnownMarketplaces": {
                "tools": {"source": {"source": "github", "repo": "acme/tools", "ref": "v1"}},
                "web": {"source": {"source": "url", "url": "https://x.example/m.json"}},
                "npm": {"source": {"source": "npm", "package": "x"}},
            },
            "strictKnownMarketplaces": [
                {"source": "github", "repo": "acme/tools"},
                {"source": "hostPattern", "hostPattern": "^x$"},
            ],
            "blockedMarketplaces": ["evil", {"source": "git", "url": "https://x.example/e.git"}],
            "model": "x",
        });
        let Value::Object(mut theirs) = theirs else {
            unreachable!()
        };
        let mut gathered = Gathered::default();
        gather(&mut theirs, &mut gathered);
        assert_eq!(theirs.keys().collect::<Vec<_>>(), ["model"]);
        assert_eq!(
            Value::Object(gathered.settings),
            json!({"plugins": {
                "enabled": {"formatter@tools": true, "old@tools": false},
                "marketplaces": {
                    "known": {"tools": "acme/tools#v1", "web": "https://x.example/m.json"},
                    "strict_known": ["acme/tools"],
                    "blocked": ["evil", "https://x.example/e.git"],
                },
            }})
        );
        let notes = gathered.notes.join("\n");
        for told in [
            "enabledPlugins.odd",
            "Marketplaces.npm",
            "Marketplaces[1]",
            "plugin install",
        ] {
            assert!(notes.contains(told), "{told}: {notes}");
        }
    }
}
