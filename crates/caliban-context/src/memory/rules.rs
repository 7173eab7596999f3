//! Rules of a project that count always or for some paths only.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;

use crate::frontmatter;
use crate::names::OneOrMany;
use crate::notice::Notice;
use crate::origin::Origin;
use crate::section::{Section, Tag};
use crate::source::{self, Fence};

/// The most rules that are used, and the most that is read of one.
const MAX_RULES: usize = 200;
const MAX_RULE: u64 = 64 * 1024;
/// The most patterns of one rule.
const MAX_PATTERNS: usize = 100;

#[derive(Debug, Clone)]
pub(super) struct Rule {
    /// The real directory that it is about, which its paths begin in.
    pub(super) of: PathBuf,
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// How many bytes of the file were not read.
    pub(super) beyond: usize,
    pub(super) scope: RuleScope,
}

impl Rule {
    /// Whether the use of a real path makes it count.
    pub(super) fn is_activated_by(&self, path: &Path) -> bool {
        let relative = path.strip_prefix(&self.of);
        relative.is_ok_and(|relative| self.scope.holds(relative))
    }

    pub(super) fn section(&self) -> Section {
        Section::new(Origin::Project, Tag::ProjectRule, &self.path, &self.text).without(self.beyond)
    }
}

#[derive(Debug, Clone)]
pub(super) enum RuleScope {
    Always,
    /// From the first touch of a matching path on.
    Paths(GlobSet),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fields {
    paths: Option<OneOrMany>,
}

impl RuleScope {
    /// Whether a path below the rule's directory makes it count.
    fn holds(&self, relative: &Path) -> bool {
        match self {
            Self::Always => true,
            Self::Paths(globs) => globs.is_match(relative),
        }
    }
}

/// The rules of a project, which lie in a directory of it, by name. One that cannot be understood
/// is left out: it must not count where it was not meant to.
pub(super) fn load(of: &Path, directory: &Path, notices: &mut Vec<Notice>) -> Vec<Rule> {
    let fence = Fence::Within(of.to_owned());
    let names: Vec<String> = source::names(directory, 10 * MAX_RULES)
        .into_iter()
        .filter(|name| source::markdown_stem(name).is_some())
        .collect();
    if names.len() > MAX_RULES {
        notices.push(Notice::TooMany {
            what: "rules",
            limit: MAX_RULES,
        });
    }
    let mut rules = Vec::new();
    for name in names.iter().take(MAX_RULES) {
        let path = directory.join(name);
        match source::read_head_within(&path, &fence, MAX_RULE) {
            Ok(None) => {}
            Err(problem) => notices.push(Notice::Unusable { path, problem }),
            Ok(Some(document)) => match parse(&document.text) {
                Ok((scope, text)) => {
                    notices.extend(document.notice());
                    rules.push(Rule {
                        of: of.to_owned(),
                        path,
                        text,
                        beyond: document.beyond,
                        scope,
                    });
                }
                Err(reason) => notices.push(Notice::Malformed { path, reason }),
            },
        }
    }
    rules
}

fn parse(text: &str) -> Result<(RuleScope, String), String> {
    let (fields, body) =
        frontmatter::parse_optional::<Fields>(text).map_err(|error| error.to_string())?;
    let scope = match fields.paths.map(OneOrMany::into_vec) {
        None => RuleScope::Always,
        Some(patterns) => RuleScope::Paths(globs(&patterns)?),
    };
    Ok((scope, body.to_owned()))
}

fn globs(patterns: &[String]) -> Result<GlobSet, String> {
    if patterns.len() > MAX_PATTERNS {
        return Err(format!("it has more than {MAX_PATTERNS} patterns"));
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.trim_start_matches("./").trim_start_matches('/');
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .build()
            .map_err(|error| error.to_string())?;
        set.add(glob);
    }
    set.build().map_err(|error| error.to_string())
}
