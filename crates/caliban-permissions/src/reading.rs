//! What a call may read, file by file: the rules about `Read` and the protected places, for every
//! way of reading there is.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use caliban_agent::{Closed, Extent, ReadGuard};
use caliban_settings::{PermissionMode, RuleAction};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use jiff::Timestamp;
use serde_json::json;

use crate::evaluation::{Decision, Heard, Item, Judge, Why};
use crate::mode::{AutoAllow, Relaxed, relax};
use crate::origin::Origin;
use crate::paths::Subject;
use crate::pattern::About;
use crate::protected::Access;
use crate::rule::Rule;
use crate::twins::{self, Twins};

/// The tool whose rules say what may be read.
const READ: &str = "Read";

/// Says what one call may read.
#[derive(Debug)]
pub struct Reader {
    judge: Arc<Judge>,
    mode: PermissionMode,
    auto_allow: AutoAllow,
    /// What it was permitted to open although that needed consent.
    permitted: Vec<PathBuf>,
    now: Timestamp,
    /// Made when many files are asked about.
    objections: OnceLock<Objections>,
    /// Made when a file with several names is opened.
    twins: OnceLock<Twins>,
}

/// What could object to a file, without saying yet whether it does.
#[derive(Debug)]
enum Objections {
    /// Only what one of these matches, an absolute path without its first `/`.
    Among(GlobSet),
    /// Anything.
    Everywhere,
}

impl Reader {
    /// `permitted` is what [`Decision::files`] said of the call, where somebody consented to it.
    pub fn new(
        judge: Arc<Judge>,
        mode: PermissionMode,
        auto_allow: AutoAllow,
        permitted: Vec<PathBuf>,
    ) -> Self {
        Self {
            judge,
            mode,
            auto_allow,
            permitted,
            now: Timestamp::now(),
            objections: OnceLock::new(),
            twins: OnceLock::new(),
        }
    }

    fn check(&self, subject: &Subject) -> Result<(), Closed> {
        let decision = self.judge.read_decision(subject, self.now);
        let is_open = match decision.action {
            RuleAction::Allow => true,
            RuleAction::Deny => false,
            RuleAction::Ask => {
                let consented = |path: &PathBuf| subject.real().starts_with(path);
                self.permitted.iter().any(consented)
                    || match relax(self.mode, self.auto_allow, READ, &decision) {
                        Relaxed::Allow => true,
                        Relaxed::Ask | Relaxed::Classify => false,
                    }
            }
        };
        if is_open {
            return Ok(());
        }
        Err(Closed(self.reason(&decision)))
    }

    fn reason(&self, decision: &Decision) -> String {
        let rule = &self.judge.book.rules()[decision.rule];
        let text = rule.pattern.text();
        match (&decision.why, decision.action) {
            (Why::Protected { name, .. }, _) => format!("`{name}` is protected against reading"),
            (_, RuleAction::Deny) => format!("the rule `{text}` ({}) denies it", rule.origin),
            (_, RuleAction::Ask | RuleAction::Allow) => {
                format!("the rule `{text}` ({}) asks for consent first", rule.origin)
            }
        }
    }

    fn could_be_closed(&self, path: &Path) -> bool {
        if self.judge.protected.name_of(path, Access::Read).is_some() {
            return true;
        }
        match self.objections.get() {
            Some(Objections::Among(globs)) => path
                .strip_prefix("/")
                .is_ok_and(|path| globs.is_match(path)),
            Some(Objections::Everywhere) | None => true,
        }
    }
}

impl ReadGuard for Reader {
    fn beneath(&self, directory: &Path) -> Extent {
        if !self.judge.closes_beneath(directory) {
            return Extent::Nothing;
        }
        self.objections.get_or_init(|| Objections::of(&self.judge));
        Extent::Something
    }

    fn by_name(&self, given: &Path, real: &Path) -> Result<(), Closed> {
        if !self.could_be_closed(real) && (given == real || !self.could_be_closed(given)) {
            return Ok(());
        }
        self.check(&Subject::Known {
            given: given.to_owned(),
            real: real.to_owned(),
        })
    }

    fn by_identity(&self, opened: &Metadata) -> Result<(), Closed> {
        if !twins::is_shared(opened) {
            return Ok(());
        }
        let twins = self.twins.get_or_init(|| Twins::of(&self.judge));
        let mut names = twins.names(opened).iter();
        names.try_for_each(|name| self.by_name(name, name))
    }
}

impl Objections {
    fn of(judge: &Judge) -> Self {
        let mut globs = GlobSetBuilder::new();
        for rule in judge.objections_to_reading() {
            let About::Path(pattern) = rule.pattern.about() else {
                return Self::Everywhere;
            };
            for glob in pattern.objections(&judge.places) {
                match GlobBuilder::new(&glob).literal_separator(true).build() {
                    Ok(glob) => globs.add(glob),
                    Err(_) => return Self::Everywhere,
                };
            }
        }
        globs.build().map_or(Self::Everywhere, Self::Among)
    }
}

impl Judge {
    /// The verdict on reading a file, whatever reads it.
    pub(crate) fn read_decision(&self, subject: &Subject, now: Timestamp) -> Decision {
        let input = json!({"path": subject.given()});
        self.subject_decision(READ, subject, Access::Read, Heard::All, &input, now)
    }

    /// Whether anything beneath a directory could be closed to reading.
    pub(crate) fn closes_beneath(&self, directory: &Path) -> bool {
        let mut rules = self.objections_to_reading();
        let by_rule = rules.any(|rule| match rule.pattern.about() {
            About::Path(pattern) => pattern.reaches(directory, &self.places),
            About::Never(_) => false,
            About::Anything | About::Command(_) | About::Url(_) | About::Fields(_) => true,
        });
        let mut secrets = self.protected.closed();
        by_rule
            || secrets.any(|place| place.starts_with(directory) || directory.starts_with(&place))
    }

    /// The rules that could close a file to reading. What stands behind the default that allows
    /// reading is never heard.
    pub(crate) fn objections_to_reading(&self) -> impl Iterator<Item = &Rule> {
        let is_default = |rule: &&Rule| {
            rule.origin == Origin::BuiltIn
                && rule.action == RuleAction::Allow
                && rule.is_about(READ)
        };
        let rules = self.book.rules().iter();
        rules
            .take_while(move |rule| !is_default(rule))
            .filter(|rule| rule.action != RuleAction::Allow && rule.is_about(READ))
    }
}

impl Decision {
    /// The files that a call was found to be about, by all of their names.
    pub fn files(&self) -> Vec<PathBuf> {
        let files = self.parts.iter().filter_map(|part| match &part.item {
            Item::File { path, .. } => Some(path.clone()),
            Item::Command(_) => None,
        });
        files.collect()
    }
}
