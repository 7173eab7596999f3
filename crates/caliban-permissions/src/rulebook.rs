//! All rules of a run in the order they are tried, and who wrote them.

use std::collections::HashMap;
use std::fmt;

use caliban_settings::{LoadedSettings, RuleAction, RuleSpec, Scope, mcp_names};
use jiff::Timestamp;

use crate::pattern::{About, FieldValue, Pattern, PatternError, Reach, ToolName};

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

impl RuleError {
    /// Whether the rule can be left out: it would allow something, and there is nothing that it
    /// could ever match.
    pub fn is_idle(&self) -> bool {
        let never_matches = matches!(
            self.error,
            PatternError::NoAccessor { .. } | PatternError::Anywhere
        );
        never_matches && self.action == RuleAction::Allow
    }
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

impl RuleBook {
    /// The rules given on the command line, then those of the settings, then the defaults. Idle
    /// ones are left out.
    pub fn new(
        flags: impl IntoIterator<Item = RuleSpec>,
        settings: &LoadedSettings,
    ) -> Result<Self, RuleError> {
        let mut rules = Vec::new();
        let mut add = |origin: Origin, specs: &mut dyn Iterator<Item = RuleSpec>| {
            for spec in specs {
                match Rule::new(spec, origin) {
                    Ok(rule) => rules.push(rule),
                    Err(error) if error.is_idle() => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        };
        add(Origin::Server, &mut server_rules(settings).into_iter())?;
        let locked = settings.is_locked();
        let scopes = settings.rules();
        let managed = || scopes.iter().filter(|layer| layer.scope == Scope::Managed);
        if locked {
            for layer in managed() {
                add(Origin::Managed, &mut layer.rules.iter().cloned())?;
            }
        }
        add(Origin::Flag, &mut flags.into_iter())?;
        for layer in &scopes {
            if layer.scope != Scope::Managed || !locked {
                add(Origin::of(layer.scope), &mut layer.rules.iter().cloned())?;
            }
        }
        Ok(Self::of(rules))
    }

    /// Rules in the order given, and the defaults.
    pub fn of(rules: impl IntoIterator<Item = Rule>) -> Self {
        let defaults = DEFAULTS.iter().filter_map(|(pattern, action)| {
            Rule::new(RuleSpec::new(*pattern, *action), Origin::BuiltIn).ok()
        });
        Self::indexed(rules.into_iter().chain(defaults).collect())
    }

    /// The same book with a rule before all others.
    #[must_use]
    pub fn with_first(&self, rule: Rule) -> Self {
        let rules = self.rules.iter().cloned();
        Self::indexed(std::iter::once(rule).chain(rules).collect())
    }

    /// The same book without some of its rules.
    #[must_use]
    pub fn without(&self, is_meant: impl Fn(&Rule) -> bool) -> Self {
        let kept = self.rules.iter().filter(|rule| !is_meant(rule));
        Self::indexed(kept.cloned().collect())
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
        Self::indexed(
            given
                .cloned()
                .chain(more)
                .chain(defaults.cloned())
                .collect(),
        )
    }

    fn indexed(rules: Vec<Rule>) -> Self {
        let mut book = Self {
            rules,
            ..Self::default()
        };
        book.index();
        book
    }

    /// The same book with rules that count where only the defaults would answer.
    #[must_use]
    pub fn with_last(&self, rules: impl IntoIterator<Item = Rule>) -> Self {
        let own = |rule: &&Rule| rule.origin != Origin::BuiltIn;
        Self::of(self.rules.iter().filter(own).cloned().chain(rules))
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
                About::Url(pattern) => pattern.literal_host().map(str::to_owned),
                _ => None,
            })
            .collect()
    }

    /// The first rule that matches and counts, unless a guard holds against it.
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
        let first = |is_asked: &dyn Fn(Origin) -> bool| {
            indices.clone().find_map(|index| {
                let rule = self.rules.get(index)?;
                (is_asked(rule.origin) && counts(rule) && matches(rule)).then_some((index, rule))
            })
        };
        let (index, rule) = first(&|_| true)?;
        let guarded = |is_asked: &dyn Fn(Origin) -> bool, guard: Guard| {
            first(is_asked)
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
            _ => None,
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
            let indices = match begin(rule) {
                Begin::Program(program) => self.by_program.entry(program).or_default(),
                Begin::Word(word) => self.by_word.entry(word).or_default(),
                Begin::Unknown => &mut self.any_program,
            };
            indices.push(index);
        }
    }
}

/// The rules of MCP servers about their own tools: what is denied, then asked about, then allowed.
fn server_rules(settings: &LoadedSettings) -> Vec<RuleSpec> {
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
            let full = patterns.iter().map(|pattern| format!("{prefix}{pattern}"));
            rules.extend(full.map(|pattern| RuleSpec::new(pattern, action)));
        }
    }
    rules
}

/// What a command must have to be matched by a rule.
enum Begin {
    /// It begins with this word.
    Program(String),
    /// One of its words begins with this one.
    Word(String),
    Unknown,
}

fn begin(rule: &Rule) -> Begin {
    let command = match rule.pattern.about() {
        About::Command(command) => Some(command),
        About::Fields(fields) => fields.iter().find_map(|field| match &field.value {
            FieldValue::Command(command) => Some(command),
            _ => None,
        }),
        About::Anything | About::Path(_) | About::Url(_) => None,
    };
    let Some((command, word)) = command.and_then(|it| Some((it, it.glob.first_word()?))) else {
        return Begin::Unknown;
    };
    match (command.reach, rule.action) {
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
