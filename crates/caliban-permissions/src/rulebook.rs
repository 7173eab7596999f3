//! All rules of a run in the order they are tried, and who wrote them.

use std::collections::HashMap;
use std::fmt;

use caliban_settings::{LoadedSettings, RuleAction, RuleSpec, Scope, mcp_names};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::pattern::{About, CommandPattern, FieldValue, Pattern, PatternError, Reach, ToolName};

/// Who wrote a rule. The order of declaration is the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Added while the session runs.
    Runtime,
    /// Of one MCP server, about its own tools.
    Server,
    /// `--allow`, `--deny`, `--ask`.
    Flag,
    /// `--settings`.
    Overlay,
    Local,
    Project,
    User,
    Managed,
    /// Approved by the program that drives the session; answers only where nobody else does.
    Client,
    BuiltIn,
}

/// A rule that can match.
#[derive(Debug, Clone)]
pub struct Rule {
    pub pattern: Pattern,
    pub action: RuleAction,
    pub origin: Origin,
    pub comment: Option<String>,
    pub reason: Option<String>,
    pub expires_at: Option<Timestamp>,
    /// The key and the file it is written in, where it is no rule of a scope.
    pub written: Option<String>,
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{action} rule `{pattern}` ({origin}): {error}")]
pub struct RuleError {
    pub pattern: String,
    pub action: RuleAction,
    pub origin: Origin,
    pub error: PatternError,
}

/// What answers when no rule does.
const DEFAULTS: &[(&str, RuleAction)] = &[
    ("Read", RuleAction::Allow),
    ("Grep", RuleAction::Allow),
    ("Glob", RuleAction::Allow),
    ("TodoWrite", RuleAction::Allow),
    ("EnterPlanMode", RuleAction::Allow),
    ("ExitPlanMode", RuleAction::Allow),
    ("WebFetch", RuleAction::Ask),
    ("Bash", RuleAction::Ask),
    ("Write", RuleAction::Ask),
    ("Edit", RuleAction::Ask),
    // They act through other calls only, each of which is asked about by itself.
    ("AgentTool", RuleAction::Allow),
    ("BashOutput", RuleAction::Allow),
    ("KillShell", RuleAction::Allow),
    ("ReadMemoryTopic", RuleAction::Allow),
    ("WriteMemoryTopic", RuleAction::Allow),
    ("Skill", RuleAction::Allow),
    ("ToolSearch", RuleAction::Allow),
    ("*", RuleAction::Ask),
];

/// The rules in order, with an index for shell commands: a line may hold hundreds of commands and
/// a book thousands of rules.
#[derive(Debug, Clone, Default)]
pub struct RuleBook {
    rules: Vec<Rule>,
    precedence: Precedence,
    /// How many rules come before what is given on the command line.
    before_flags: usize,
    /// Rules about commands by the program they spell.
    by_program: HashMap<String, Vec<usize>>,
    /// Objections to a command anywhere in a line by the word they begin with.
    by_word: HashMap<String, Vec<usize>>,
    /// Rules that may match any command.
    any_program: Vec<usize>,
}

/// Which rules count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defaults {
    Included,
    Left,
}

/// How rules of different writers weigh against each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precedence {
    /// The first that matches decides, unless a guard holds against it. The flags are those of the
    /// person who types them, so they come before the settings.
    #[default]
    FirstMatch,
    /// Whatever denies comes before whatever asks, and that before whatever allows, wherever it is
    /// written. The flags are those of a program, which cannot undo what its user forbade.
    StrictestFirst,
}

/// Why the first match did not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// The operator of the machine forbids it, which holds against everybody.
    Managed,
    /// The user forbids it, which holds against the workspace.
    User,
    /// A rule for everything forbids it, which holds against the rules of a single server.
    General,
}

/// The rule that decides.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    pub index: usize,
    pub rule: &'a Rule,
    pub guard: Option<Guard>,
}

/// Finds the first rule among those that are asked.
type FindFirst<'f, 'a> = &'f dyn Fn(&dyn Fn(&Rule) -> bool) -> Option<(usize, &'a Rule)>;

impl RuleBook {
    /// The rules given on the command line, then those of the settings, then the defaults.
    pub fn new(
        flags: impl IntoIterator<Item = RuleSpec>,
        settings: &LoadedSettings,
    ) -> Result<Self, RuleError> {
        let mut rules = server_rules(settings)?;
        let mut before_flags = rules.len();
        let mut add = |origin: Origin, specs: &mut dyn Iterator<Item = RuleSpec>| {
            for spec in specs {
                rules.push(Rule::new(spec, origin)?);
            }
            Ok(rules.len())
        };
        let locked = settings.is_locked();
        let scopes = settings.rules();
        let managed = || scopes.iter().filter(|layer| layer.scope == Scope::Managed);
        if locked {
            for layer in managed() {
                before_flags = add(Origin::Managed, &mut layer.rules.iter().cloned())?;
            }
        }
        add(Origin::Flag, &mut flags.into_iter())?;
        for layer in &scopes {
            if layer.scope != Scope::Managed || !locked {
                add(Origin::of(layer.scope), &mut layer.rules.iter().cloned())?;
            }
        }
        let book = Self {
            before_flags,
            ..Self::default()
        };
        Ok(book.holding(rules.into_iter().chain(defaults())))
    }

    /// Rules in the order given, and the defaults.
    pub fn of(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self::default().holding(rules.into_iter().chain(defaults()))
    }

    /// The same book with its rules weighed in another way.
    #[must_use]
    pub fn judged(self, precedence: Precedence) -> Self {
        Self { precedence, ..self }
    }

    /// The same book with a rule before all others.
    #[must_use]
    pub fn with_first(&self, rule: Rule) -> Self {
        let mut book = self.holding([rule].into_iter().chain(self.rules.iter().cloned()));
        book.before_flags += 1;
        book
    }

    /// The same book with a rule before those of the command line, where a flag would stand.
    #[must_use]
    pub(crate) fn with_flag(&self, rule: Rule) -> Self {
        let (before, after) = self.rules.split_at(self.before_flags.min(self.rules.len()));
        let rules = before.iter().cloned().chain([rule]);
        self.holding(rules.chain(after.iter().cloned()))
    }

    /// The same book without some of its rules.
    #[must_use]
    pub fn without(&self, is_meant: impl Fn(&Rule) -> bool) -> Self {
        let kept = self.rules.iter().filter(|rule| !is_meant(rule));
        let mut book = self.holding(kept.cloned());
        let before = self.rules.iter().take(self.before_flags);
        book.before_flags = before.filter(|rule| !is_meant(rule)).count();
        book
    }

    /// The same book with more that is decided where no rule is given. What is no pattern decides
    /// nothing.
    #[must_use]
    pub fn with_defaults(&self, specs: impl IntoIterator<Item = RuleSpec>) -> Self {
        let is_default = |rule: &Rule| rule.origin == Origin::BuiltIn;
        let given = self.rules.iter().take_while(|rule| !is_default(rule));
        let more = specs
            .into_iter()
            .filter_map(|spec| Rule::new(spec, Origin::BuiltIn).ok());
        let defaults = self.rules.iter().skip_while(|rule| !is_default(rule));
        self.holding(given.cloned().chain(more).chain(defaults.cloned()))
    }

    /// A book of these rules, else like this one.
    fn holding(&self, rules: impl IntoIterator<Item = Rule>) -> Self {
        let mut book = Self {
            rules: rules.into_iter().collect(),
            precedence: self.precedence,
            before_flags: self.before_flags,
            ..Self::default()
        };
        book.index();
        book
    }

    /// The same book with rules that count where only the defaults would answer.
    #[must_use]
    pub fn with_last(&self, rules: impl IntoIterator<Item = Rule>) -> Self {
        let own = |rule: &&Rule| rule.origin != Origin::BuiltIn;
        let own = self.rules.iter().filter(own).cloned();
        self.holding(own.chain(rules).chain(defaults()))
    }

    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The hosts that allow rules about fetching spell out.
    pub fn allowed_hosts(&self) -> Vec<String> {
        self.rules
            .iter()
            .filter(|rule| rule.action == RuleAction::Allow && rule.is_about("WebFetch"))
            .filter_map(|rule| match rule.pattern.about() {
                About::Url(patterns) => Some(patterns),
                About::Anything
                | About::Command(_)
                | About::Path(_)
                | About::Fields(_)
                | About::Never(_) => None,
            })
            .flatten()
            .filter_map(|pattern| pattern.literal_host().map(str::to_owned))
            .collect()
    }

    /// The rule that matches, counts and comes first.
    pub(crate) fn find(
        &self,
        indices: &(impl Iterator<Item = usize> + Clone),
        defaults: Defaults,
        now: Timestamp,
        matches: impl Fn(&Rule) -> bool,
    ) -> Option<Found<'_>> {
        let counts = |rule: &Rule| {
            (defaults == Defaults::Included || rule.origin != Origin::BuiltIn)
                && !rule.is_expired(now)
        };
        let first = |is_asked: &dyn Fn(&Rule) -> bool| {
            indices.clone().find_map(|index| {
                let rule = self.rules.get(index)?;
                (is_asked(rule) && counts(rule) && matches(rule)).then_some((index, rule))
            })
        };
        match self.precedence {
            Precedence::FirstMatch => Self::guarded(&first),
            Precedence::StrictestFirst => {
                let of = |action: RuleAction| {
                    first(&|rule| rule.action == action && rule.origin != Origin::BuiltIn)
                };
                let (index, rule) = of(RuleAction::Deny)
                    .or_else(|| of(RuleAction::Ask))
                    .or_else(|| of(RuleAction::Allow))
                    // The defaults are nobody's wish.
                    .or_else(|| first(&|_| true))?;
                Some(Found {
                    index,
                    rule,
                    guard: None,
                })
            }
        }
    }

    /// The first rule that matches, unless a guard holds against it.
    fn guarded<'a>(first: FindFirst<'_, 'a>) -> Option<Found<'a>> {
        let (index, rule) = first(&|_| true)?;
        let guarded = |is_asked: &dyn Fn(Origin) -> bool, guard: Guard| {
            first(&|rule| is_asked(rule.origin))
                .filter(|(_, rule)| rule.action == RuleAction::Deny)
                .map(|(index, rule)| Found {
                    index,
                    rule,
                    guard: Some(guard),
                })
        };
        let decided = Found {
            index,
            rule,
            guard: None,
        };
        if rule.action == RuleAction::Deny {
            return Some(decided);
        }
        let by_managed = guarded(&|origin| origin == Origin::Managed, Guard::Managed);
        let by_others = || match rule.origin {
            Origin::Local | Origin::Project => {
                guarded(&|origin| origin == Origin::User, Guard::User)
            }
            Origin::Server => guarded(&|origin| origin != Origin::Server, Guard::General),
            Origin::Runtime
            | Origin::Flag
            | Origin::Overlay
            | Origin::User
            | Origin::Managed
            | Origin::Client
            | Origin::BuiltIn => None,
        };
        Some(by_managed.or_else(by_others).unwrap_or(decided))
    }

    /// The rules that could match a command of these words, in order.
    pub(crate) fn about_command(&self, words: &[&str]) -> Vec<usize> {
        let program = words.first().copied().unwrap_or_default();
        let by_program = self.by_program.get(program);
        // A word with blanks in it looks to a pattern like several.
        let by_word = words.iter().filter_map(|word| {
            let begin = word.split(' ').next()?;
            self.by_word.get(begin)
        });
        let mut indices = self.any_program.clone();
        indices.extend(by_program.into_iter().chain(by_word).flatten());
        indices.sort_unstable();
        indices.dedup();
        indices
    }

    pub(crate) fn all(&self) -> std::ops::Range<usize> {
        0..self.rules.len()
    }

    fn index(&mut self) {
        for (index, rule) in self.rules.iter().enumerate() {
            if !rule.pattern.tool().matches("Bash") {
                continue;
            }
            for begin in begins(rule) {
                let indices = match begin {
                    Begin::Program(program) => self.by_program.entry(program).or_default(),
                    Begin::Word(word) => self.by_word.entry(word).or_default(),
                    Begin::Unknown => &mut self.any_program,
                };
                indices.push(index);
            }
        }
    }
}

/// What answers when nobody has a wish.
fn defaults() -> impl Iterator<Item = Rule> {
    DEFAULTS.iter().filter_map(|(pattern, action)| {
        Rule::new(RuleSpec::new(*pattern, *action), Origin::BuiltIn).ok()
    })
}

/// The rules of MCP servers about their own tools: what is denied, then asked about, then allowed.
fn server_rules(settings: &LoadedSettings) -> Result<Vec<Rule>, RuleError> {
    let servers = &settings.settings.mcp_servers;
    let parts = mcp_names::server_parts(servers.keys().map(String::as_str));
    let mut rules = Vec::new();
    for (name, server) in servers {
        let Some(prefix) = parts.get(name).map(|part| mcp_names::prefix(part)) else {
            continue;
        };
        let permissions = &server.permissions;
        let lists = [
            (&permissions.deny, RuleAction::Deny),
            (&permissions.ask, RuleAction::Ask),
            (&permissions.allow, RuleAction::Allow),
        ];
        for (patterns, action) in lists {
            let key = format!("mcp_servers.{name}.permissions.{action}");
            for pattern in patterns {
                let spec = RuleSpec::new(format!("{prefix}{pattern}"), action);
                let rule = Rule::new(spec, Origin::Server)?;
                rules.push(Rule {
                    written: Some(match settings.file_of(&key) {
                        Some(file) => format!("`{key}` in `{}`", file.display()),
                        None => format!("`{key}`"),
                    }),
                    ..rule
                });
            }
        }
    }
    Ok(rules)
}

/// What a command must have to be matched by a rule.
enum Begin {
    /// It begins with this word.
    Program(String),
    /// One of its words begins with this one.
    Word(String),
    Unknown,
}

/// What each alternative of a rule needs.
fn begins(rule: &Rule) -> Vec<Begin> {
    let commands = match rule.pattern.about() {
        About::Command(commands) => Some(commands),
        About::Fields(fields) => fields.iter().find_map(|field| match &field.value {
            FieldValue::Command(commands) => Some(commands),
            FieldValue::Text(_) | FieldValue::Path(_) | FieldValue::Url(_) => None,
        }),
        About::Never(_) => return Vec::new(),
        About::Anything | About::Path(_) | About::Url(_) => None,
    };
    match commands {
        Some(commands) => commands
            .iter()
            .map(|command| begin(command, rule.action))
            .collect(),
        None => vec![Begin::Unknown],
    }
}

fn begin(command: &CommandPattern, action: RuleAction) -> Begin {
    let Some(word) = command.glob.first_word() else {
        return Begin::Unknown;
    };
    match (command.reach, action) {
        // It may begin behind another command.
        (_, RuleAction::Ask | RuleAction::Deny) if command.spells_operator() => {
            Begin::Word(word.to_owned())
        }
        (Reach::Whole | Reach::Prefix, _) => Begin::Program(word.to_owned()),
        // One that allows looks behind wrappers, whose words may not show it.
        (Reach::Anywhere, RuleAction::Allow) => Begin::Unknown,
        (Reach::Anywhere, RuleAction::Ask | RuleAction::Deny) => Begin::Word(word.to_owned()),
    }
}

impl Rule {
    pub fn new(spec: RuleSpec, origin: Origin) -> Result<Self, RuleError> {
        let pattern = Pattern::parse(&spec.pattern).map_err(|error| RuleError {
            pattern: spec.pattern,
            action: spec.action,
            origin,
            error,
        })?;
        Ok(Self {
            pattern,
            action: spec.action,
            origin,
            comment: spec.comment,
            reason: spec.reason,
            expires_at: spec.expires_at,
            written: None,
        })
    }

    /// Why it decides nothing, if there is nothing that it could be about.
    pub fn never_matches(&self) -> Option<RuleError> {
        self.pattern.never().map(|error| RuleError {
            pattern: self.pattern.text().to_owned(),
            action: self.action,
            origin: self.origin,
            error: error.clone(),
        })
    }

    /// As it is written in a settings file.
    pub fn spec(&self) -> RuleSpec {
        RuleSpec {
            pattern: self.pattern.text().to_owned(),
            action: self.action,
            comment: self.comment.clone(),
            reason: self.reason.clone(),
            expires_at: self.expires_at,
        }
    }

    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Whether it is about this tool at all.
    pub fn is_about(&self, tool: &str) -> bool {
        self.pattern.tool().matches(tool)
    }

    /// Whether it names exactly this tool or tools like it, not every tool.
    pub fn names_tools(&self) -> bool {
        !matches!(self.pattern.tool(), ToolName::Every)
    }
}

impl Origin {
    pub fn of(scope: Scope) -> Self {
        match scope {
            Scope::Managed => Self::Managed,
            Scope::User => Self::User,
            Scope::Project => Self::Project,
            Scope::Local => Self::Local,
            Scope::Cli => Self::Overlay,
        }
    }

    /// Where a rule comes from, in words.
    pub fn described(self) -> &'static str {
        match self {
            Self::Runtime => "of this session",
            Self::Server => "of the MCP server",
            Self::Flag => "from the command line",
            Self::Overlay => "from --settings",
            Self::Local => "in the local scope",
            Self::Project => "in the project scope",
            Self::User => "in the user scope",
            Self::Managed => "in the managed scope",
            Self::Client => "of the program that drives the session",
            Self::BuiltIn => "built in",
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Runtime => "session",
            Self::Server => "server",
            Self::Flag => "cli",
            Self::Overlay => "settings",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
            Self::Managed => "managed",
            Self::Client => "client",
            Self::BuiltIn => "built-in",
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: &str, action: RuleAction, origin: Origin) -> Rule {
        Rule::new(RuleSpec::new(pattern, action), origin).unwrap()
    }

    fn decide(rules: Vec<Rule>, tool: &str) -> (RuleAction, Origin, Option<Guard>) {
        let book = RuleBook::of(rules);
        let now = Timestamp::UNIX_EPOCH;
        let found = book
            .find(&book.all(), Defaults::Included, now, |rule| {
                rule.is_about(tool)
            })
            .unwrap();
        (found.rule.action, found.rule.origin, found.guard)
    }

    #[test]
    fn the_defaults_are_about_tools_that_there_are() {
        for (name, _) in DEFAULTS.iter().filter(|(name, _)| *name != "*") {
            assert!(caliban_model::BuiltInTool::named(name).is_some(), "{name}");
        }
    }

    #[test]
    fn what_a_client_approves_counts_only_where_the_defaults_would_answer() {
        let approved = |rules: Vec<Rule>, tool: &str| {
            let client = rule("Write", RuleAction::Allow, Origin::Client);
            let book = RuleBook::of(rules).with_last([client]);
            let all = book.all();
            let found = book.find(&all, Defaults::Included, Timestamp::UNIX_EPOCH, |rule| {
                rule.is_about(tool)
            });
            found.map(|found| (found.rule.action, found.rule.origin))
        };
        let project = |action| vec![rule("Write", action, Origin::Project)];
        assert_eq!(
            approved(Vec::new(), "Write"),
            Some((RuleAction::Allow, Origin::Client))
        );
        assert_eq!(
            approved(project(RuleAction::Deny), "Write"),
            Some((RuleAction::Deny, Origin::Project))
        );
        assert_eq!(
            approved(project(RuleAction::Ask), "Write"),
            Some((RuleAction::Ask, Origin::Project))
        );
        assert_eq!(
            approved(Vec::new(), "Bash"),
            Some((RuleAction::Ask, Origin::BuiltIn))
        );
    }

    #[test]
    fn a_workspace_cannot_allow_what_its_user_or_operator_forbade() {
        use Origin::{Flag, Local, Managed, Project, User};
        use RuleAction::{Allow, Ask, Deny};
        let of = |action, origin| rule("Write", action, origin);
        assert_eq!(decide(vec![], "Write").0, Ask);
        assert_eq!(
            decide(vec![of(Allow, Project), of(Deny, User)], "Write"),
            (Deny, User, Some(Guard::User))
        );
        assert_eq!(
            decide(vec![of(Allow, Local), of(Deny, Managed)], "Write"),
            (Deny, Managed, Some(Guard::Managed))
        );
        assert_eq!(
            decide(vec![of(Allow, Flag), of(Deny, User)], "Write"),
            (Allow, Flag, None)
        );
        assert_eq!(
            decide(vec![of(Allow, Flag), of(Deny, Managed)], "Write"),
            (Deny, Managed, Some(Guard::Managed))
        );
        // A scope's own verdict is its first match.
        assert_eq!(
            decide(
                vec![of(Allow, Project), of(Allow, User), of(Deny, User)],
                "Write"
            ),
            (Allow, Project, None)
        );
    }

    #[test]
    fn whatever_denies_comes_first_where_a_program_gives_the_flags() {
        use Origin::{Flag, Project, Runtime, User};
        use RuleAction::{Allow, Ask, Deny};
        let of = |action, origin| rule("Write", action, origin);
        let strictest = |rules: Vec<Rule>| {
            let book = RuleBook::of(rules).judged(Precedence::StrictestFirst);
            let all = book.all();
            let found = book.find(&all, Defaults::Included, Timestamp::UNIX_EPOCH, |rule| {
                rule.is_about("Write")
            });
            found
                .map(|found| (found.rule.action, found.rule.origin))
                .unwrap()
        };
        for (rules, expected) in [
            (vec![of(Allow, Flag), of(Deny, User)], (Deny, User)),
            (vec![of(Allow, Runtime), of(Deny, Project)], (Deny, Project)),
            (vec![of(Allow, Flag), of(Ask, User)], (Ask, User)),
            (
                vec![of(Ask, Flag), of(Allow, User), of(Deny, User)],
                (Deny, User),
            ),
            (vec![of(Allow, Project)], (Allow, Project)),
            (vec![], (Ask, Origin::BuiltIn)),
        ] {
            assert_eq!(strictest(rules), expected);
        }
    }

    #[test]
    fn a_flag_stands_behind_what_is_stronger_than_flags() {
        let server = rule("mcp__s__*", RuleAction::Ask, Origin::Server);
        let user = rule("mcp__s__*", RuleAction::Ask, Origin::User);
        let flag = || rule("mcp__s__t", RuleAction::Allow, Origin::Flag);
        let mut book = RuleBook::of([server, user]);
        book.before_flags = 1;
        let decided = |book: &RuleBook| {
            let all = book.all();
            let found = book.find(&all, Defaults::Included, Timestamp::UNIX_EPOCH, |rule| {
                rule.is_about("mcp__s__t")
            });
            found.map(|found| found.rule.origin)
        };
        assert_eq!(decided(&book.with_flag(flag())), Some(Origin::Server));
        assert_eq!(decided(&book.with_first(flag())), Some(Origin::Flag));
        let general = book.without(|rule| rule.origin == Origin::Server);
        assert_eq!(decided(&general.with_flag(flag())), Some(Origin::Flag));
    }

    #[test]
    fn a_servers_own_rules_stand_between_denials_and_everything_else() {
        use Origin::{Flag, Server, User};
        use RuleAction::{Allow, Ask, Deny};
        let of = |action, origin| rule("mcp__s__*", action, origin);
        for (own, general, expected) in [
            (Allow, Deny, (Deny, User, Some(Guard::General))),
            (Deny, Allow, (Deny, Server, None)),
            (Ask, Allow, (Ask, Server, None)),
            (Allow, Ask, (Allow, Server, None)),
        ] {
            let rules = vec![of(own, Server), of(general, User)];
            assert_eq!(decide(rules, "mcp__s__t"), expected);
        }
        let flags = vec![of(Allow, Server), of(Deny, Flag)];
        assert_eq!(decide(flags, "mcp__s__t").0, Deny);
    }

    #[test]
    fn expired_rules_do_not_count() {
        let mut old = rule("Write", RuleAction::Allow, Origin::Flag);
        old.expires_at = Some(Timestamp::UNIX_EPOCH);
        assert_eq!(decide(vec![old], "Write").1, Origin::BuiltIn);
    }

    #[test]
    fn the_index_keeps_the_order() {
        let book = RuleBook::of([
            rule("Bash:git push", RuleAction::Deny, Origin::Flag),
            rule("Bash:~rm *", RuleAction::Deny, Origin::Flag),
            rule("Bash:git *", RuleAction::Allow, Origin::Flag),
            rule("Bash:ls *", RuleAction::Allow, Origin::Flag),
        ]);
        let defaults = book.rules().len() - 1;
        let bash = 4 + 7;
        assert_eq!(book.about_command(&["git", "x"]), [0, 2, bash, defaults]);
        assert_eq!(book.about_command(&["cat"]), [bash, defaults]);
        for words in [&["git", "rm", "rm"][..], &["git", "rm x"]] {
            assert_eq!(book.about_command(words), [0, 1, 2, bash, defaults]);
        }
    }
}
