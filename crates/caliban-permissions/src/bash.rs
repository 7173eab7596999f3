//! The verdict on a call of Bash: on its commands, on whatever else its words may run, on the files
//! it mentions, and on the line as it is written.

use caliban_settings::RuleAction;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::catastrophe::{self, Surroundings};
use crate::commands::Text;
use crate::evaluation::{Decision, Heard, Item, Judge, Why};
use crate::lines::{self, in_a_home};
use crate::mentions::{self, MAX_REDIRECTIONS, Mention, Role, Spelling};
use crate::origin::Origin;
use crate::pattern::{About, CommandPattern, FieldValue, Reach};
use crate::protected::Access;
use crate::rule::Rule;
use crate::rulebook::Defaults;
use crate::shell::{self, Command, Completeness, Script};

/// Whether a line writes a file whose name its input or another of its commands gives.
fn writes_what_comes_in(script: &Script) -> bool {
    let commands = script.commands.iter().flat_map(Command::all);
    let mut written = commands.flat_map(|command| &command.writes);
    written.any(|path| path.contains("{}") || path.contains("$(") || path.contains('`'))
}

/// What is known of a line's commands.
#[derive(Debug, Clone, Copy)]
enum Known {
    /// It is one.
    Command,
    /// It is several.
    Commands,
    Nothing,
}

impl Judge {
    /// A Bash call: every command of the line is judged, and the strictest verdict counts.
    pub(crate) fn command(&self, tool: &str, input: &Value, now: Timestamp) -> Decision {
        let line = input
            .get("command")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let base = input.get("cwd").and_then(Value::as_str);
        let proof = shell::strict(line);
        let read = shell::lenient_beside(line, &proof);
        let mut decision = match &proof {
            Ok(script) => {
                let decision = lines::proved(self, script, base, input, now);
                match decision.action {
                    RuleAction::Allow | RuleAction::Ask => {
                        // The reader leaves open what a variable stands for. What comes from the
                        // input or from another command may be any word of the line.
                        let mentions = if writes_what_comes_in(script) {
                            mentions::in_line(line)
                        } else {
                            mentions::unknown(line, script)
                        };
                        self.mentioned(decision, &mentions, base, now)
                    }
                    RuleAction::Deny => decision,
                }
            }
            Err(refusal) => {
                let mut decision = self.whole(tool, now, |rule| {
                    matches!(rule.pattern.about(), About::Anything) && rule.is_about(tool)
                });
                if decision.action != RuleAction::Allow {
                    decision.why = Why::Unproved(refusal.to_string());
                }
                self.mentioned(decision, &mentions::in_line(line), base, now)
            }
        };
        let known = match &proof {
            Ok(script) if script.commands.len() > 1 => Known::Commands,
            Ok(_) => Known::Command,
            Err(_) => Known::Nothing,
        };
        for candidate in &read.candidates {
            let text = Text::new(candidate.words.iter().map(String::as_str));
            let objects = |rule: &Rule| match (rule.action, known) {
                (RuleAction::Allow, Known::Nothing) => {
                    let precedes = |pattern: &CommandPattern| pattern.precedes(&text);
                    self.is_about(rule, tool, input, precedes)
                }
                _ => self.objects(rule, tool, input, &text),
            };
            decision = decision.and_maybe(self.objection(&text, now, objects));
        }
        let written = Text::new(line.split_whitespace());
        let objects = |rule: &Rule| self.objects_to_line(rule, tool, input, &written, known);
        decision = decision.and_maybe(self.objection(&written, now, objects));
        if read.complete == Completeness::Cut {
            decision = decision.and_maybe(self.too_long(tool, now));
        }
        let home = self.places.home.as_deref();
        let values = mentions::values(line);
        decision = self.closed_operands(decision, line, &read.candidates, &values, base, now);
        let candidates = read.candidates.iter().map(|candidate| &candidate.words);
        let surroundings = Surroundings::of(candidates, &values, home);
        let mut vital = catastrophe::in_line(line);
        for candidate in &read.candidates {
            let Some(why) = catastrophe::in_command(&candidate.words, &surroundings) else {
                continue;
            };
            vital = Some(why);
            let text = Text::new(candidate.words.iter().map(String::as_str));
            decision = decision.and_maybe(self.catastrophe(tool, input, &text, why, now));
        }
        match vital {
            Some(why) if decision.action == RuleAction::Allow => Decision {
                action: RuleAction::Deny,
                why: Why::Catastrophe(why),
                ..decision
            },
            // No mode answers this; a person may.
            Some(why) if decision.action == RuleAction::Ask => Decision {
                why: Why::Catastrophe(why),
                ..decision
            },
            Some(_) | None => decision,
        }
    }

    /// A line whose files are not all known, judged by those it mentions as well: what is denied
    /// or protected stays so, whatever a rule about every command or a mode says.
    fn mentioned(
        &self,
        decision: Decision,
        mentions: &[Mention],
        cwd: Option<&str>,
        now: Timestamp,
    ) -> Decision {
        let start = cwd.map_or_else(|| self.root().to_owned(), |cwd| self.root().join(cwd));
        let full = |mention: &Mention| match (in_a_home(&mention.path), &self.places.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => start.join(&mention.path),
        };
        let protected = mentions.iter().map(full).find_map(|path| {
            let name = self.protected.name_of(&path, Access::Change)?;
            let path = path.display().to_string();
            Some(Why::Protected { name, path })
        });
        let heard = match decision.action {
            RuleAction::Allow => Heard::NamingTools,
            RuleAction::Ask | RuleAction::Deny => Heard::All,
        };
        let mut redirections = mentions.iter().filter(|mention| mention.role != Role::Word);
        let looked_at = redirections.by_ref().take(MAX_REDIRECTIONS);
        let objections = looked_at.flat_map(|mention| {
            let path = full(mention).display().to_string();
            let input = json!({"path": path});
            let tools: &[(&str, Access)] = match mention.role {
                Role::Source => &[("Read", Access::Read)],
                Role::Target | Role::Word => &[("Write", Access::Change), ("Edit", Access::Change)],
            };
            let verdicts = tools
                .iter()
                .map(|(tool, access)| self.file_decision(tool, &path, *access, heard, &input, now));
            // A default only says that nobody has a wish.
            verdicts
                .filter(|verdict| {
                    verdict.action != RuleAction::Allow
                        && self.book.rules()[verdict.rule].origin != Origin::BuiltIn
                        || matches!(verdict.why, Why::Protected { .. })
                })
                .collect::<Vec<_>>()
        });
        let decision = objections.fold(decision, Decision::and);
        let mut endless = mentions
            .iter()
            .filter(|mention| mention.spelling == Spelling::Endless);
        let unread = redirections.next().or_else(|| endless.next()).map(|_| {
            let what = "the command redirects to more files than are looked at";
            Why::Unproved(what.to_owned())
        });
        match (decision.action, protected.or(unread)) {
            (RuleAction::Deny, _) | (_, None) => decision,
            (RuleAction::Ask, Some(_)) if decision.why.outlasts_modes() => decision,
            (RuleAction::Allow | RuleAction::Ask, Some(why)) => decision.asked(why),
        }
    }

    /// What a rule of somebody says against a command that might be run, or against a line. One
    /// about every command has spoken about those of the line; here it only comes before others.
    fn objection(
        &self,
        text: &Text<'_>,
        now: Timestamp,
        objects: impl Fn(&Rule) -> bool,
    ) -> Option<Decision> {
        let rules = self.book.about_command(&text.words);
        let find = |objects: &dyn Fn(&Rule) -> bool| {
            self.book
                .find(&rules.iter().copied(), Defaults::Left, now, objects)
                .filter(|found| found.rule.action != RuleAction::Allow)
        };
        let is_general = |rule: &Rule| rule.pattern.is_bare() && rule.action != RuleAction::Allow;
        find(&|rule| !is_general(rule) && objects(rule))?;
        let found = find(&objects)?;
        Some(Decision::of(found).with_part(Item::Command(text.joined.clone())))
    }

    /// A command that would destroy too much is refused where a rule would allow it, whatever
    /// stands beside it.
    fn catastrophe(
        &self,
        tool: &str,
        input: &Value,
        text: &Text<'_>,
        why: &'static str,
        now: Timestamp,
    ) -> Option<Decision> {
        let rules = self.book.about_command(&text.words);
        let found = self
            .book
            .find(&rules.iter().copied(), Defaults::Left, now, |rule| {
                self.objects(rule, tool, input, text)
            })?;
        (found.rule.action == RuleAction::Allow).then(|| Decision {
            action: RuleAction::Deny,
            why: Why::Catastrophe(why),
            ..Decision::of(found).with_part(Item::Command(text.joined.clone()))
        })
    }

    /// A line too long to be read completely is refused where anything about commands is.
    fn too_long(&self, tool: &str, now: Timestamp) -> Option<Decision> {
        let found = self
            .book
            .find(&self.book.all(), Defaults::Left, now, |rule| {
                rule.action == RuleAction::Deny && rule.is_about(tool)
            })?;
        let why = Why::Unproved("the command is too long to be read completely".to_owned());
        Some(Decision {
            why,
            ..Decision::of(found)
        })
    }

    /// Whether a rule is about a command that these words may be. An allow rule counts here only
    /// as what comes first: it never proves anything.
    fn objects(&self, rule: &Rule, tool: &str, input: &Value, text: &Text<'_>) -> bool {
        self.is_about(rule, tool, input, |pattern| pattern.objects(text))
    }

    /// Whether a rule is about a command that its pattern is found to match.
    fn is_about(
        &self,
        rule: &Rule,
        tool: &str,
        input: &Value,
        matches: impl Fn(&CommandPattern) -> bool,
    ) -> bool {
        match rule.pattern.about() {
            About::Anything => true,
            About::Command(patterns) => patterns.any(matches),
            About::Fields(fields) => fields.iter().all(|field| match &field.value {
                FieldValue::Command(patterns) => patterns.any(&matches),
                _ => self.field_matches(rule.action, field, tool, input),
            }),
            About::Path(_) | About::Url(_) | About::Never(_) => false,
        }
    }

    /// Whether a rule is about a line as it is written. Where its commands are known, a rule
    /// about one of them has been asked about each, without the quotes and operators that only
    /// mislead it here.
    fn objects_to_line(
        &self,
        rule: &Rule,
        tool: &str,
        input: &Value,
        line: &Text<'_>,
        known: Known,
    ) -> bool {
        self.is_about(rule, tool, input, |pattern| match known {
            Known::Nothing => pattern.objects_to_line(line),
            _ if pattern.spells_operator() => pattern.objects_to_line(line),
            Known::Command => false,
            Known::Commands => match (pattern.reach, rule.action) {
                (Reach::Anywhere, RuleAction::Ask | RuleAction::Deny) => {
                    pattern.glob.matches(&line.joined)
                }
                _ => pattern.objects(line),
            },
        })
    }
}
