//! What a plugin offers, and what whoever decides about it should look at twice.

use caliban_hooks::EventName;
use caliban_plugins::{Effects, Origin, Package, PluginName, Survey};

/// Where the marketplaces of others lie whose names are known.
const OFFICIAL: &str = "https://github.com/anthropics/";

/// A plugin as a session would find it.
pub fn survey(package: &Package) -> Survey {
    let mut survey = Survey::of(package, &caliban_slash::reserved());
    let idle = package
        .hooks
        .keys()
        .filter(|event| !EventName::exists(event));
    let idle = idle.map(|event| {
        let event = event.escape_debug();
        format!("its hooks for `{event}` never run: this event never fires in this version")
    });
    survey.notices.extend(idle);
    // Where it lies while it is looked at is of no interest.
    let root = format!("{}/", package.root.display());
    for notice in &mut survey.notices {
        *notice = notice.replace(&root, "");
    }
    let effects = Effects::of(package, &survey);
    survey.notices.extend(effects.suspicious().map(|effect| {
        format!("look at this twice, it runs what it fetches from elsewhere: {effect}")
    }));
    survey
}

/// Names that sound as if somebody known stood behind them.
pub(super) fn imitations(name: &PluginName, origin: &Origin) -> Vec<String> {
    let (market, is_official) = match origin {
        Origin::Directory { .. } => (None, false),
        Origin::Marketplace { name, source, .. } => (
            Some(name.as_str()),
            source.to_string().starts_with(OFFICIAL),
        ),
    };
    if is_official {
        return Vec::new();
    }
    std::iter::once(("plugin", name.as_str()))
        .chain(market.map(|market| ("marketplace", market)))
        .filter(|(_, name)| sounds_official(name))
        .map(|(what, name)| {
            format!("the {what} is called `{name}`, which anybody can call it: it is not from whom the name suggests")
        })
        .collect()
}

fn sounds_official(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let begins = ["claude-", "anthropic-", "caliban-"];
    begins.iter().any(|beginning| name.starts_with(beginning))
        || name.split(['-', '_']).any(|word| word == "official")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_suggest_somebody_are_told() {
        let of = |name: &str| {
            let origin = Origin::Directory {
                path: "/somewhere".into(),
            };
            imitations(&name.parse().unwrap(), &origin).len()
        };
        assert_eq!(
            [
                "claude-helper",
                "anthropic-docs",
                "official-tools",
                "tools",
                "my-claude"
            ]
            .map(of),
            [1, 1, 1, 0, 0]
        );
    }
}
