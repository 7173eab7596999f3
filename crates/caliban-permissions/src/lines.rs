//! The verdict on a shell line whose commands are known: each must be allowed, and so must the
//! files it writes.

use std::path::{Path, PathBuf};

use caliban_settings::RuleAction;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::alternatives::AnyOf;
use crate::catastrophe::is_disk;
use crate::commands::Text;
use crate::evaluation::{Decision, Heard, Item, Judge, Why, names};
use crate::origin::Origin;
use crate::pattern::{About, CommandPattern, FieldValue};
use crate::protected::Access;
use crate::rule::Rule;
use crate::rulebook::Defaults;
use crate::shell::{Certainty, Command, Redirection, RedirectionKind, Script, Wrapping};

/// Where relative paths of a line may start: the directory it starts in, and those it changes to.
#[derive(Debug)]
struct Bases {
    directories: Vec<PathBuf>,
    /// Whether it changes to somewhere that cannot be read from the line.
    lost: bool,
}

/// Whether a line starts anything, or only opens files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runs {
    Programs,
    Nothing,
}

/// Judges a line.
pub(crate) fn proved(
    judge: &Judge,
    script: &Script,
    cwd: Option<&str>,
    input: &Value,
    now: Timestamp,
) -> Decision {
    let is_program = |command: &Command| !command.words.is_empty();
    let line = Line {
        judge,
        runs: if script.commands.iter().any(is_program) {
            Runs::Programs
        } else {
            Runs::Nothing
        },
        bases: Bases::of(judge, script, cwd),
        input,
        now,
    };
    let decisions = script
        .commands
        .iter()
        // Setting a variable of the line's own starts nothing.
        .filter(|command| !command.words.is_empty() || !command.redirections.is_empty())
        .map(|command| line.command(command));
    decisions
        .reduce(Decision::and)
        // An empty line runs nothing; only the rules about the tool itself speak.
        .unwrap_or_else(|| judge.whole("Bash", now, |rule| rule.pattern.is_bare()))
}

struct Line<'a> {
    judge: &'a Judge,
    bases: Bases,
    runs: Runs,
    input: &'a Value,
    now: Timestamp,
}

impl Line<'_> {
    /// A command, what it wraps, and what it writes.
    fn command(&self, command: &Command) -> Decision {
        let text = Text::of(command);
        let own = self.own(command, &text);
        let rule = &self.judge.book.rules()[own.rule];
        let spelled = own.action == RuleAction::Allow && spells_inner(rule, command);
        let wrapped = command.inner.iter().map(|inner| {
            let verdict = self.command(inner);
            // A rule that spells the wrapped program has thought of it, and comes before one about
            // every command; refusals of the program stay.
            if spelled && self.is_general(&verdict) {
                Decision {
                    action: RuleAction::Allow,
                    ..verdict
                }
            } else {
                verdict
            }
        });
        let wrapped = wrapped.reduce(Decision::and);
        let decision = match (command.wrapping, wrapped) {
            (Wrapping::Transparent, Some(wrapped)) if self.is_general(&own) => wrapped,
            (_, Some(wrapped)) => own.and(wrapped),
            (_, None) => own,
        };
        let decision = command
            .redirections
            .iter()
            .fold(decision, |decision, redirection| {
                let verdict = self.redirection(&decision, redirection);
                decision.and(verdict)
            });
        self.written_operands(command, decision)
    }

    /// What the rules say about the command itself.
    fn own(&self, command: &Command, text: &Text<'_>) -> Decision {
        if command.words.is_empty() {
            // Only its redirections do something; they are judged as files are.
            let decision = self
                .judge
                .whole("Bash", self.now, |rule| rule.pattern.is_bare());
            let is_left_open = match self.runs {
                Runs::Programs => self.is_general(&decision),
                Runs::Nothing => !self.is_explicit(&decision),
            };
            return match decision.action {
                RuleAction::Ask | RuleAction::Deny if is_left_open => Decision {
                    action: RuleAction::Allow,
                    ..decision
                },
                _ => decision,
            };
        }
        let book = &self.judge.book;
        let rules = book.about_command(&text.words);
        let found = book.find(
            &rules.iter().copied(),
            Defaults::Included,
            self.now,
            |rule| self.matches(rule, command, text),
        );
        let decision = found.map_or_else(
            || {
                self.judge
                    .whole("Bash", self.now, |rule| rule.pattern.is_bare())
            },
            Decision::of,
        );
        decision.with_part(Item::Command(text.joined.clone()))
    }

    fn matches(&self, rule: &Rule, command: &Command, text: &Text<'_>) -> bool {
        let about = |pattern: &CommandPattern| match rule.action {
            RuleAction::Allow => pattern.allows(command, text),
            RuleAction::Ask | RuleAction::Deny => pattern.objects(text),
        };
        match rule.pattern.about() {
            About::Anything => true,
            About::Command(patterns) => patterns.any(about),
            About::Fields(fields) => fields.iter().all(|field| match &field.value {
                FieldValue::Command(patterns) => patterns.any(about),
                _ => self
                    .judge
                    .field_matches(rule.action, field, "Bash", self.input),
            }),
            About::Path(_) | About::Url(_) | About::Never(_) => false,
        }
    }

    /// Whether a rule allows whatever the shell does, be it that a narrower one spoke first.
    fn allows_every_command(&self) -> bool {
        let every = self
            .judge
            .whole("Bash", self.now, |rule| rule.pattern.is_bare());
        every.action == RuleAction::Allow && self.is_explicit(&every)
    }

    /// Whether a verdict only says that no rule is about the command.
    fn is_general(&self, decision: &Decision) -> bool {
        let rule = &self.judge.book.rules()[decision.rule];
        decision.why == Why::Rule
            && match decision.action {
                RuleAction::Allow => false,
                RuleAction::Ask => !self.is_explicit(decision) || rule.pattern.is_bare(),
                RuleAction::Deny => rule.pattern.is_bare(),
            }
    }

    /// Whether somebody wrote the rule that decided; the defaults are nobody's wish.
    fn is_explicit(&self, decision: &Decision) -> bool {
        self.judge.book.rules()[decision.rule].origin != Origin::BuiltIn
    }

    /// A redirection is a read or a write of a file, judged as the file tools would be. Only a
    /// rule about every command covers a write that no file rule allows.
    fn redirection(&self, allowed_by: &Decision, redirection: &Redirection) -> Decision {
        let Some(target) = &redirection.target else {
            return self.uncovered(allowed_by, "a file whose name is not known");
        };
        if is_disk(target) {
            return Decision {
                action: RuleAction::Deny,
                why: Why::Catastrophe("it overwrites a disk"),
                ..allowed_by.clone()
            };
        }
        let paths: Vec<String> = self.bases.join(target);
        // Whoever allows every command allows what it writes. What it reads, it could as well open
        // by itself.
        let is_covered = allowed_by.action == RuleAction::Allow
            && (redirection.kind == RedirectionKind::Read || self.allows_every_command());
        let heard = if is_covered {
            Heard::NamingTools
        } else {
            Heard::All
        };
        let Some(verdict) = self.opened(&paths, redirection.kind, heard) else {
            return self.uncovered(allowed_by, "a file whose name is not known");
        };
        if is_of_another(target) {
            // Whatever a rule allows in one home it does not allow in others.
            let uncovered = self.uncovered(allowed_by, "a file in the home of another");
            let objects = verdict.action == RuleAction::Deny || verdict.why.outlasts_modes();
            return if objects {
                uncovered.and(verdict)
            } else {
                uncovered
            };
        }
        if self.bases.lost && !Path::new(target).is_absolute() {
            return self
                .uncovered(allowed_by, "a file in a directory that is not known")
                .and(verdict);
        }
        let by_default = verdict.why == Why::Rule && !self.is_explicit(&verdict);
        match verdict.action {
            RuleAction::Ask if by_default && is_covered => allowed_by.clone(),
            RuleAction::Ask if by_default => {
                let why = format!("no rule about files allows writing `{target}`");
                verdict.asked(Why::Unproved(why))
            }
            _ => verdict,
        }
    }

    /// The verdict on a file that is opened, by whatever names it may have.
    fn opened(&self, paths: &[String], kind: RedirectionKind, heard: Heard) -> Option<Decision> {
        let judged = |tool: &str, access: Access, heard: Heard| {
            let verdicts = paths.iter().map(|path| {
                let input = json!({"path": path});
                self.judge
                    .file_decision(tool, path, access, heard, &input, self.now)
            });
            verdicts.reduce(Decision::and)
        };
        if kind == RedirectionKind::Read {
            return judged("Read", Access::Read, heard);
        }
        let write = judged("Write", Access::Change, heard)?;
        let edit = judged("Edit", Access::Change, heard)?;
        // Either tool's rule may cover it; a refusal of either holds.
        let refusals = ["Write", "Edit"].into_iter().find_map(|tool| {
            judged(tool, Access::Change, Heard::NamingTools)
                .filter(|verdict| verdict.action == RuleAction::Deny)
        });
        Some(match refusals {
            Some(refusal) => refusal,
            None if edit.action < write.action => edit,
            None => write,
        })
    }

    /// Operands that the program is known to write: only protected places matter, the rest is the
    /// rule's own business.
    fn written_operands(&self, command: &Command, decision: Decision) -> Decision {
        if decision.action == RuleAction::Deny || decision.why.outlasts_modes() {
            return decision;
        }
        let is_allowed = decision.action == RuleAction::Allow;
        let rule = &self.judge.book.rules()[decision.rule];
        let found = command.writes.iter().find_map(|operand| {
            self.bases.join(operand).iter().find_map(|path| {
                let subject = self.judge.places.subject(path);
                let (name, path) = self.judge.protected_place(&subject, Access::Change)?;
                let spelled = names(rule, &name)
                    || command_patterns(rule)
                        .is_some_and(|patterns| patterns.any(|pattern| pattern.spells(operand)));
                (!(is_allowed && spelled)).then_some(Why::Protected { name, path })
            })
        });
        match found {
            Some(why) => decision.asked(why),
            None => decision,
        }
    }

    /// What only a rule about every command covers.
    fn uncovered(&self, decision: &Decision, what: &str) -> Decision {
        let is_bare = self.allows_every_command();
        match decision.action {
            RuleAction::Allow if is_bare && !self.bases.lost => decision.clone(),
            RuleAction::Allow => decision
                .clone()
                .asked(Why::Unproved(format!("it writes or reads {what}"))),
            RuleAction::Ask | RuleAction::Deny => decision.clone(),
        }
    }
}

/// Whether an allow rule spells the program that a command wraps.
fn spells_inner(rule: &Rule, command: &Command) -> bool {
    let Some(word) = command
        .inner_word
        .and_then(|index| command.words.get(index))
    else {
        return rule.pattern.is_bare();
    };
    let text = Text::of(command);
    let spells =
        |pattern: &CommandPattern| pattern.allows(command, &text) && pattern.spells(&word.text);
    rule.pattern.is_bare() || command_patterns(rule).is_some_and(|patterns| patterns.any(spells))
}

fn command_patterns(rule: &Rule) -> Option<&AnyOf<CommandPattern>> {
    match rule.pattern.about() {
        About::Command(patterns) => Some(patterns),
        About::Fields(fields) => fields.iter().find_map(|field| match &field.value {
            FieldValue::Command(patterns) => Some(patterns),
            _ => None,
        }),
        About::Anything | About::Path(_) | About::Url(_) | About::Never(_) => None,
    }
}

/// The rest of a path in somebody's home. Whose it is does not matter: what is protected in one is
/// protected in all.
pub(crate) fn in_a_home(path: &str) -> Option<&str> {
    let (user, rest) = path.strip_prefix('~')?.split_once('/')?;
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    // `~-` is the directory before this one.
    (!user.starts_with('-') && user.chars().all(is_name)).then_some(rest)
}

/// Whether a path lies in a home that is not the user's own, as far as its spelling says.
fn is_of_another(path: &str) -> bool {
    in_a_home(path).is_some() && !path.starts_with("~/")
}

impl Bases {
    fn of(judge: &Judge, script: &Script, cwd: Option<&str>) -> Self {
        let start = match cwd {
            Some(cwd) => judge.root().join(cwd),
            None => judge.root().to_owned(),
        };
        let mut bases = Self {
            directories: vec![start],
            lost: false,
        };
        for command in &script.commands {
            bases.follow(command);
        }
        bases
    }

    fn follow(&mut self, command: &Command) {
        for inner in &command.inner {
            self.follow(inner);
        }
        let words: Vec<_> = command.words.iter().collect();
        let Some((program, arguments)) = words.split_first() else {
            return;
        };
        match program.text.as_str() {
            "cd" | "pushd" => {}
            "popd" => {
                self.lost = true;
                return;
            }
            _ => return,
        }
        let target = arguments.iter().find(|word| !word.text.starts_with('-'));
        match target {
            Some(word) if word.certainty == Certainty::Literal && !word.text.starts_with('~') => {
                let more: Vec<PathBuf> = self
                    .directories
                    .iter()
                    .map(|directory| directory.join(&word.text))
                    .collect();
                self.directories.extend(more);
                // A line that keeps changing directory is not worth following.
                if self.directories.len() > 64 {
                    self.lost = true;
                    self.directories.truncate(64);
                }
            }
            Some(_) | None => self.lost = true,
        }
    }

    fn join(&self, path: &str) -> Vec<String> {
        if let Some(rest) = in_a_home(path) {
            return vec![format!("~/{rest}")];
        }
        if Path::new(path).is_absolute() || path.starts_with('~') {
            return vec![path.to_owned()];
        }
        self.directories
            .iter()
            .map(|directory| directory.join(path).to_string_lossy().into_owned())
            .collect()
    }
}
