//! The environment in which git runs nothing but itself.

use std::ffi::OsString;

/// Configuration that would have git run a program, reach for a network or tidy up meanwhile, set
/// so that it does not.
const HARMLESS: [(&str, &str); 12] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "true"),
    ("diff.ignoreSubmodules", "all"),
    ("submodule.recurse", "false"),
    ("protocol.allow", "never"),
    ("log.showSignature", "false"),
    ("commit.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("core.safecrlf", "false"),
];

/// Variables with the same purpose.
const QUIET: [(&str, &str); 5] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("LC_ALL", "C"),
];

/// A driver that merges nothing: what it is asked about is a conflict, which a person decides.
const NO_DRIVER: &str = "false";

/// An environment without the variables of git that were in it, in which nothing that a repository
/// configures is run. `programs` are the keys under which it names filters and merge drivers.
pub fn harmless(
    environment: Vec<(OsString, OsString)>,
    programs: &[String],
) -> Vec<(OsString, OsString)> {
    configured(environment, programs, &[])
}

/// The same, with further configuration.
pub(crate) fn configured(
    mut environment: Vec<(OsString, OsString)>,
    programs: &[String],
    further: &[(&str, &'static str)],
) -> Vec<(OsString, OsString)> {
    environment.retain(|(name, _)| !name.to_string_lossy().starts_with("GIT_"));
    let pair = |(name, value): (&str, &str)| (name.into(), value.into());
    environment.extend(QUIET.map(pair));
    let fixed = HARMLESS.iter().chain(further);
    let fixed = fixed.map(|(key, value)| ((*key).to_owned(), *value));
    let mut neutral: Vec<(String, &str)> = fixed.collect();
    for key in programs {
        neutral.extend(neutralised(key));
    }
    neutral.sort_unstable();
    neutral.dedup();
    let mut set = |name: String, value: String| {
        environment.push((name.into(), value.into()));
    };
    set("GIT_CONFIG_COUNT".to_owned(), neutral.len().to_string());
    for (index, (key, value)) in neutral.into_iter().enumerate() {
        set(format!("GIT_CONFIG_KEY_{index}"), key);
        set(format!("GIT_CONFIG_VALUE_{index}"), value.to_owned());
    }
    environment
}

/// What a key like `filter.NAME.clean` is answered with.
fn neutralised(key: &str) -> Vec<(String, &'static str)> {
    let Some((section, _)) = key.rsplit_once('.') else {
        return Vec::new();
    };
    if section.starts_with("filter.") {
        let nothing = [
            ("clean", ""),
            ("smudge", ""),
            ("process", ""),
            ("required", "false"),
        ];
        return nothing
            .map(|(name, value)| (format!("{section}.{name}"), value))
            .to_vec();
    }
    if section.starts_with("merge.") && key.ends_with(".driver") {
        return vec![(key.to_owned(), NO_DRIVER)];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_repository_configures_is_answered_once() {
        let programs = [
            "filter.a.b.clean",
            "filter.a.b.smudge",
            "merge.m.driver",
            "merge.tool",
        ]
        .map(str::to_owned);
        let environment = harmless(vec![("GIT_DIR".into(), "/x".into())], &programs);
        let value = |name: &str| {
            let found = environment.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.to_string_lossy().into_owned())
        };
        assert_eq!(value("GIT_DIR"), None);
        let count: usize = value("GIT_CONFIG_COUNT").unwrap().parse().unwrap();
        let keys: Vec<String> = (0..count)
            .map(|index| value(&format!("GIT_CONFIG_KEY_{index}")).unwrap())
            .collect();
        assert_eq!(count, HARMLESS.len() + 5);
        assert!(keys.contains(&"filter.a.b.process".to_owned()));
        assert!(keys.contains(&"merge.m.driver".to_owned()));
        assert!(!keys.contains(&"merge.tool".to_owned()));
    }
}
