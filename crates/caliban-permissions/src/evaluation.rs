//! The verdict of the rules on a call. The gate, `perms test` and `perms explain` all ask here.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use caliban_model::{Argument, BuiltInTool, file_path};
use caliban_settings::RuleAction;
use jiff::Timestamp;
use serde_json::Value;

use crate::origin::Origin;
use crate::paths::{PathPattern, Places, Subject};
use crate::pattern::{About, FieldPattern, FieldValue};
use crate::precedence::{Found, Guard};
use crate::protected::{Access, Protected};
use crate::rule::Rule;
use crate::rulebook::{Defaults, RuleBook};
use crate::{tools, twins};

/// What verdicts are given with.
#[derive(Debug, Clone)]
pub struct Judge {
    pub book: RuleBook,
    pub places: Places,
    pub protected: Protected,
}

/// The verdict on a call.
#[derive(Debug, Clone)]
pub struct Decision {
    pub action: RuleAction,
    /// The rule that decided, by its place in the book.
    pub rule: usize,
    pub why: Why,
    /// What the call was taken apart into: the commands of a line, the files they write.
    pub parts: Vec<Part>,
}

/// Why a verdict is what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// A rule says so.
    Rule,
    Guard(Guard),
    /// A protected place, which no rule names.
    Protected {
        name: String,
        path: String,
    },
    /// It would destroy too much.
    Catastrophe(&'static str),
    /// The command cannot be proved to be what an allow rule means.
    Unproved(String),
    /// The path cannot be resolved safely.
    Unresolved(String),
}

impl Why {
    /// Whether only a person, or a rule that means it, says yes.
    pub fn outlasts_modes(&self) -> bool {
        matches!(self, Self::Protected { .. } | Self::Catastrophe(_))
    }
}

/// A part of a call and what the rules say about it.
#[derive(Debug, Clone)]
pub struct Part {
    pub item: Item,
    pub action: RuleAction,
    pub rule: usize,
    pub why: Why,
}

/// Which rules have a say about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    All,
    /// Not what objects to `*`: that is about what is left, and the command that opens the file
    /// has been allowed.
    NamingTools,
}

impl Heard {
    fn includes(self, rule: &Rule) -> bool {
        let is_rest = !rule.names_tools()
            && rule.action != RuleAction::Allow
            && rule.origin != Origin::BuiltIn;
        self == Self::All || !is_rest
    }
}

/// What a part is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A simple command, its words joined.
    Command(String),
    /// A file, as this tool would touch it.
    File { tool: String, path: PathBuf },
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(text) => f.write_str(text),
            Self::File { tool, path } => write!(f, "{tool}:{}", path.display()),
        }
    }
}

impl Judge {
    /// Judges a call: every part of it by itself, and the strictest verdict counts. Parts are the
    /// commands of a line, what they wrap and the files they open, and each name of a file that is
    /// a link. For each part:
    ///
    /// 1. The first rule of the book that matches and has not expired decides. There always is
    ///    one: the last default matches everything.
    /// 2. Unless that denies, a refusal of those it must not overrule does: of the managed scope
    ///    against everybody, of the user against the project's settings, of everybody against what
    ///    is about one server.
    /// 3. A file whose path cannot be resolved safely is asked about where a rule allows it.
    /// 4. A protected place is asked about in every mode, unless the rule that allows it names the
    ///    place.
    /// 5. A command that cannot be proved to be what an allow rule means is not allowed by it, and
    ///    what else its line may mean is heard for objections only.
    /// 6. A catastrophe is refused where a rule allows it; where one asks, only a person says yes.
    pub fn decide(&self, tool: &str, input: &Value, now: Timestamp) -> Decision {
        let tool = BuiltInTool::canonical(tool);
        match tools::argument(tool) {
            Argument::Command => self.command(tool, input, now),
            Argument::Source => self.file(tool, input, Access::Read, now),
            Argument::Target => self.file(tool, input, Access::Change, now),
            Argument::Place => self.search(tool, input, now),
            Argument::Url | Argument::Text(_) | Argument::None => self.plain(tool, input, now),
        }
    }

    fn plain(&self, tool: &str, input: &Value, now: Timestamp) -> Decision {
        self.whole(tool, now, |rule| self.matches(rule, tool, input, None))
    }

    /// Looking for something in a file is reading it.
    fn search(&self, tool: &str, input: &Value, now: Timestamp) -> Decision {
        let decision = self.plain(tool, input, now);
        match file_path(input) {
            Some(path) => {
                let read = self.file_decision("Read", path, Access::Read, Heard::All, input, now);
                decision.and(read)
            }
            None => decision,
        }
    }

    fn file(&self, tool: &str, input: &Value, access: Access, now: Timestamp) -> Decision {
        match file_path(input) {
            Some(path) => self.file_decision(tool, path, access, Heard::All, input, now),
            // No call is made without one; this is a question about the tool itself.
            None => self.plain(tool, input, now),
        }
    }

    /// The verdict on a tool that reads or changes a file.
    pub(crate) fn file_decision(
        &self,
        tool: &str,
        path: &str,
        access: Access,
        heard: Heard,
        input: &Value,
        now: Timestamp,
    ) -> Decision {
        let subject = self.places.subject(path);
        let decision = self.subject_decision(tool, &subject, access, heard, input, now);
        match (access, decision.action) {
            (Access::Read, RuleAction::Allow | RuleAction::Ask) => {
                let twins = twins::names(self, subject.real()).into_iter();
                let twins = twins.map(|name| Subject::Known {
                    given: name.clone(),
                    real: name,
                });
                let judged = |it| self.subject_decision(tool, &it, access, heard, input, now);
                twins.map(judged).fold(decision, Decision::and)
            }
            (Access::Read, RuleAction::Deny) | (Access::Change, _) => decision,
        }
    }

    /// The same for a path that has been resolved.
    pub(crate) fn subject_decision(
        &self,
        tool: &str,
        subject: &Subject,
        access: Access,
        heard: Heard,
        input: &Value,
        now: Timestamp,
    ) -> Decision {
        // Each name of the file is judged for itself: a link is allowed only if it and its target
        // are, and refused if either is.
        let decisions = subject.names().map(|name| {
            self.whole(tool, now, |rule| {
                heard.includes(rule) && self.matches(rule, tool, input, Some(name))
            })
            .with_part(Item::File {
                tool: tool.to_owned(),
                path: name.to_owned(),
            })
        });
        let Some(decision) = decisions.reduce(Decision::and) else {
            return Decision::default_refusal();
        };
        if decision.action == RuleAction::Deny {
            return decision;
        }
        if let Subject::Unknown { given } = subject
            && decision.action == RuleAction::Allow
        {
            return decision.asked(Why::Unresolved(given.display().to_string()));
        }
        let rule = &self.book.rules()[decision.rule];
        match self.protected_place(subject, access) {
            // What is asked anyway is kept from the modes.
            Some((name, path)) if decision.action == RuleAction::Ask || !names(rule, &name) => {
                decision.asked(Why::Protected { name, path })
            }
            Some(_) | None => decision,
        }
    }

    /// The protected place that a path lies in, as given or as it is.
    pub(crate) fn protected_place(
        &self,
        subject: &Subject,
        access: Access,
    ) -> Option<(String, String)> {
        [subject.real(), subject.given()]
            .into_iter()
            .find_map(|path| {
                let name = self.protected.name_of(path, access)?;
                let path = path.display().to_string();
                Some((spelled_in(&path, name), path))
            })
    }

    /// The first rule about a whole call. There is always one: the last default.
    pub(crate) fn whole(
        &self,
        tool: &str,
        now: Timestamp,
        matches: impl Fn(&Rule) -> bool,
    ) -> Decision {
        let found = self
            .book
            .find(&self.book.all(), Defaults::Included, now, |rule| {
                rule.is_about(tool) && matches(rule)
            });
        found.map_or_else(Decision::default_refusal, Decision::of)
    }

    /// Whether a rule matches a call that is not a command.
    fn matches(&self, rule: &Rule, tool: &str, input: &Value, path: Option<&Path>) -> bool {
        match rule.pattern.about() {
            About::Anything => true,
            About::Command(_) | About::Never(_) => false,
            About::Path(pattern) => {
                path.is_some_and(|path| self.path_matches(rule.action, pattern, path))
            }
            About::Url(pattern) => {
                let url = input.get("url").and_then(Value::as_str).unwrap_or_default();
                pattern.any(|pattern| match rule.action {
                    RuleAction::Allow => pattern.allows(url),
                    RuleAction::Ask | RuleAction::Deny => pattern.objects(url),
                })
            }
            About::Fields(fields) => fields
                .iter()
                .all(|field| self.field_matches(rule.action, field, tool, input)),
        }
    }

    fn path_matches(&self, action: RuleAction, pattern: &PathPattern, path: &Path) -> bool {
        match action {
            RuleAction::Allow => pattern.allows(path, &self.places),
            RuleAction::Ask | RuleAction::Deny => pattern.objects(path, &self.places),
        }
    }

    pub(crate) fn field_matches(
        &self,
        action: RuleAction,
        field: &FieldPattern,
        tool: &str,
        input: &Value,
    ) -> bool {
        let values = tools::values(tool, &field.key, input);
        let mut values = values.into_iter().map(|value| match value {
            Value::String(text) => Cow::Borrowed(text.as_str()),
            other => Cow::Owned(other.to_string()),
        });
        let matches = |value: Cow<'_, str>| self.value_matches(action, &field.value, &value);
        match action {
            // Whichever of them the tool takes.
            RuleAction::Allow => values.len() > 0 && values.all(matches),
            RuleAction::Ask | RuleAction::Deny => values.any(matches),
        }
    }

    fn value_matches(&self, action: RuleAction, pattern: &FieldValue, value: &str) -> bool {
        match (pattern, action) {
            (FieldValue::Text(globs), _) => globs.any(|glob| glob.matches(value)),
            // Commands are taken apart before; see `lines`.
            (FieldValue::Command(_), _) => true,
            (FieldValue::Path(pattern), _) => {
                let subject = self.places.subject(value);
                let mut names = subject.names();
                match action {
                    RuleAction::Allow => names.all(|name| self.path_matches(action, pattern, name)),
                    RuleAction::Ask | RuleAction::Deny => {
                        names.any(|name| self.path_matches(action, pattern, name))
                    }
                }
            }
            (FieldValue::Url(patterns), RuleAction::Allow) => {
                patterns.any(|pattern| pattern.allows(value))
            }
            (FieldValue::Url(patterns), RuleAction::Ask | RuleAction::Deny) => {
                patterns.any(|pattern| pattern.objects(value))
            }
        }
    }
}

/// A name as a path spells it, which may be in other letters.
fn spelled_in(path: &str, name: String) -> String {
    let beginnings = path.char_indices().rev().map(|(at, _)| at);
    let mut spellings = beginnings.filter_map(|at| path.get(at..at + name.len()));
    let found = spellings.find(|spelling| spelling.eq_ignore_ascii_case(&name));
    found.map_or(name, str::to_owned)
}

/// Whether a rule names a protected place.
pub(crate) fn names(rule: &Rule, name: &str) -> bool {
    let path = |pattern: &PathPattern| pattern.names(name);
    match rule.pattern.about() {
        About::Path(pattern) => path(pattern),
        About::Fields(fields) => fields.iter().any(|field| match &field.value {
            FieldValue::Path(pattern) => path(pattern),
            _ => false,
        }),
        About::Anything | About::Command(_) | About::Url(_) | About::Never(_) => false,
    }
}

impl Decision {
    pub(crate) fn of(found: Found<'_>) -> Self {
        Self {
            action: found.rule.action,
            rule: found.index,
            why: found.guard.map_or(Why::Rule, Why::Guard),
            parts: Vec::new(),
        }
    }

    /// Nothing matched at all, which the last default prevents; refused all the same.
    fn default_refusal() -> Self {
        Self {
            action: RuleAction::Deny,
            rule: 0,
            why: Why::Rule,
            parts: Vec::new(),
        }
    }

    /// Not allowed after all, and so are its parts.
    pub(crate) fn asked(mut self, why: Why) -> Self {
        for part in &mut self.parts {
            if part.action == RuleAction::Allow {
                part.action = RuleAction::Ask;
                part.why = why.clone();
            }
        }
        Self {
            action: RuleAction::Ask,
            why,
            ..self
        }
    }

    /// This verdict as that of one part.
    pub(crate) fn with_part(mut self, item: Item) -> Self {
        self.parts.insert(
            0,
            Part {
                item,
                action: self.action,
                rule: self.rule,
                why: self.why.clone(),
            },
        );
        self
    }

    /// Both must agree: the stricter verdict, with the parts of both. What no mode answers is
    /// stricter than what one may.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        let strictness = |it: &Self| {
            let lasts = it.action == RuleAction::Ask && it.why.outlasts_modes();
            (it.action, lasts)
        };
        let (mut decided, minor) = if strictness(&other) > strictness(&self) {
            (other, self)
        } else {
            (self, other)
        };
        for part in minor.parts {
            if !decided.parts.iter().any(|there| there.item == part.item) {
                decided.parts.push(part);
            }
        }
        decided
    }

    #[must_use]
    pub(crate) fn and_maybe(self, other: Option<Self>) -> Self {
        match other {
            Some(other) => self.and(other),
            None => self,
        }
    }
}

impl Judge {
    /// The same with a rule before all others, for the rest of a session.
    #[must_use]
    pub fn with_first(&self, rule: Rule) -> Self {
        Self {
            book: self.book.with_first(rule),
            ..self.clone()
        }
    }

    /// The root that relative paths of commands start from.
    pub(crate) fn root(&self) -> &Path {
        self.places.workspace.root()
    }
}
