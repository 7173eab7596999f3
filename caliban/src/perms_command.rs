//! `caliban perms`: permission rules looked at, tried out and changed.

mod listed;

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use caliban_agent::{Confinement, Workspace};
use caliban_harness::{
    Configuration, RunOptions, further_directories, idle_rules, judge, protected, rule_book,
};
use caliban_permissions::{
    AuditLog, Decision, Filter, Finding, Guard, Judge, Origin, Pattern, Rule, RuleBook, RuleError,
    Why, lint,
};
use caliban_settings::write::{Appended, RuleRef};
use caliban_settings::{RuleAction, RuleSpec, Scope, import};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::args::{CallArgs, ExportFormat, PermsCommand, RuleScope, WritableScope};
use crate::consent::Consent;
use crate::console::{Console, note};
use crate::exit::Failure;

use listed::{Listed, remarks};

pub(crate) fn run(
    command: &PermsCommand,
    options: &RunOptions,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    let perms = Perms {
        options,
        configuration,
        console,
    };
    match command {
        PermsCommand::List {
            scope,
            effective,
            json,
        } => {
            let scope = if *effective {
                None
            } else {
                Some(scope.unwrap_or(RuleScope::Project))
            };
            perms.list(scope, *json)
        }
        PermsCommand::Test(call) => perms.test(call),
        PermsCommand::Explain(call) => perms.explain(call),
        PermsCommand::Add {
            pattern,
            action,
            scope,
            comment,
            reason,
            expires_at,
        } => perms.add(
            *scope,
            &RuleSpec {
                pattern: pattern.clone(),
                action: *action,
                comment: comment.clone(),
                reason: reason.clone(),
                expires_at: *expires_at,
            },
        ),
        PermsCommand::Remove {
            index,
            pattern,
            scope,
        } => perms.remove(*scope, index.map(usize::from), pattern.as_deref()),
        PermsCommand::Import {
            from,
            scope,
            dry_run,
        } => perms.import(from, *scope, *dry_run),
        PermsCommand::Export { scope, format } => perms.export(*scope, *format),
        PermsCommand::Audit {
            since,
            tool,
            action,
            scope,
            head,
        } => perms.audit(
            *scope,
            Filter {
                since: *since,
                tool: tool.clone(),
                action: *action,
                writers: None,
                head: *head,
            },
        ),
        PermsCommand::Lint { scope } => perms.lint(*scope),
    }
}

struct Perms<'a> {
    options: &'a RunOptions,
    configuration: &'a Configuration,
    console: &'a mut Console,
}

impl Perms<'_> {
    fn list(self, scope: Option<RuleScope>, json: bool) -> Result<(), Failure> {
        let rules = match scope {
            None => Listed::effective(&self.book()?),
            Some(scope) => self.of_scope(scope),
        };
        if json {
            let rules: Vec<Value> = rules.iter().map(Listed::json).collect();
            return self.console.write(&format!("{}\n", pretty(&json!(rules))?));
        }
        if rules.is_empty() {
            return self.console.write("(no rules)\n");
        }
        let lines = rules.iter().enumerate();
        let text: String = lines.map(|(index, rule)| rule.line(index + 1)).collect();
        self.console.write(&text)
    }

    fn test(self, call: &CallArgs) -> Result<(), Failure> {
        let (judge, decision) = self.judge_call(call)?;
        let rule = &judge.book.rules()[decision.rule];
        self.console.write(&format!(
            "MATCH: pattern={} action={}\n",
            rule.pattern, decision.action
        ))?;
        if let Some(why) = why(&decision) {
            note(&why);
        }
        match decision.action {
            RuleAction::Allow => Ok(()),
            RuleAction::Deny => Err(Failure::Silent(1)),
            RuleAction::Ask => Err(Failure::Silent(2)),
        }
    }

    fn explain(self, call: &CallArgs) -> Result<(), Failure> {
        let (judge, decision) = self.judge_call(call)?;
        let mut text = "Rule list (source order; first match wins):\n".to_owned();
        for (index, rule) in judge.book.rules().iter().enumerate() {
            let marker = if index == decision.rule { "MATCH " } else { "" };
            let _ = writeln!(
                text,
                "{} {marker}{} {}{}",
                index + 1,
                rule.action,
                rule.pattern,
                remarks(&rule.spec())
            );
        }
        if decision.parts.len() > 1 {
            text.push_str("\nParts of the call, each judged by itself; the strictest counts:\n");
            for part in &decision.parts {
                let rule = &judge.book.rules()[part.rule];
                let _ = writeln!(text, "  {} {} <- {}", part.action, part.item, rule.pattern);
            }
        }
        let rule = &judge.book.rules()[decision.rule];
        let _ = writeln!(
            text,
            "\nVerdict: {} (rule {} is {})",
            decision.action,
            decision.rule + 1,
            rule.origin.described()
        );
        if let Some(why) = why(&decision) {
            let _ = writeln!(text, "Because: {why}");
        }
        self.console.write(&text)
    }

    fn add(self, scope: WritableScope, spec: &RuleSpec) -> Result<(), Failure> {
        let origin = Origin::of(scope.settings());
        let rule = Rule::new(spec.clone(), origin);
        let rule = rule.map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(idle) = rule.never_matches() {
            note(&format!("warning: {idle}; it never matches"));
        }
        if spec.reason.is_some() && spec.action != RuleAction::Deny {
            note(
                "a reason is told only where a call is denied; `--comment` is for whoever reads the rules",
            );
        }
        let path = self.target(scope)?;
        let consent = Consent::of(self.configuration);
        let appended = self.configuration.writer().append_rule(&path, spec)?;
        consent.keep(scope.settings(), self.configuration);
        let done = match appended {
            Appended::Added => "added",
            Appended::Changed => "changed",
            Appended::AlreadyThere => "already there:",
        };
        self.console.write(&format!(
            "{done} {} {} in {}\n",
            spec.action,
            spec.pattern,
            path.display()
        ))
    }

    fn remove(
        self,
        scope: WritableScope,
        index: Option<usize>,
        pattern: Option<&str>,
    ) -> Result<(), Failure> {
        let path = self.target(scope)?;
        let which = match (index, pattern) {
            (Some(number), _) => {
                let rules = self.of_scope(scope.into());
                let rule = rules.into_iter().nth(number - 1).ok_or_else(|| {
                    Failure::Runtime(format!("the {} scope has no rule {number}", scope.name()))
                })?;
                RuleRef::At {
                    index: number - 1,
                    pattern: rule.spec.pattern,
                }
            }
            (None, Some(pattern)) => RuleRef::Pattern(pattern.to_owned()),
            (None, None) => {
                return Err(Failure::Usage(
                    "name a rule by --pattern or --index".to_owned(),
                ));
            }
        };
        let consent = Consent::of(self.configuration);
        let removed = self.configuration.writer().remove_rule(&path, &which)?;
        consent.keep(scope.settings(), self.configuration);
        if removed == 0 {
            return Err(Failure::Runtime(format!(
                "no such rule in the {} scope (`{}`)",
                scope.name(),
                path.display()
            )));
        }
        let rules = if removed == 1 { "rule" } else { "rules" };
        self.console.write(&format!(
            "removed {removed} {rules} from {}\n",
            path.display()
        ))
    }

    fn import(self, from: &Path, scope: WritableScope, dry_run: bool) -> Result<(), Failure> {
        if !from.is_file() {
            return Err(Failure::NoInput(format!(
                "there is no file `{}`",
                from.display()
            )));
        }
        let home = self.configuration.locations.home();
        let mut imported = import::from_file(from, Some(home))
            .map_err(|error| Failure::Config(error.to_string()))?
            .only_rules();
        for line in &imported.notes {
            note(line);
        }
        imported
            .rules
            .retain(|rule| match Pattern::parse(&rule.pattern) {
                Ok(_) => true,
                Err(error) => {
                    note(&format!("not imported: `{}`: {error}", rule.pattern));
                    false
                }
            });
        let path = self.target(scope)?;
        if dry_run {
            let merged = imported.preview(&path)?;
            note(&format!("`{}` would be:", path.display()));
            return self.console.write(&merged.text);
        }
        let consent = Consent::of(self.configuration);
        let merged = imported.apply(&path, &self.configuration.writer())?;
        consent.keep(scope.settings(), self.configuration);
        if merged.changes.is_empty() {
            return self
                .console
                .write(&format!("`{}` has it all already\n", path.display()));
        }
        let changes = merged.changes.join("\n  ");
        self.console
            .write(&format!("changed `{}`:\n  {changes}\n", path.display()))
    }

    fn export(self, scope: RuleScope, format: ExportFormat) -> Result<(), Failure> {
        let rules = self.of_scope(scope);
        let text = match format {
            ExportFormat::Json => pretty(&listed::buckets_of(&rules))? + "\n",
            ExportFormat::Toml => listed::toml_of(&rules)?,
        };
        self.console.write(&text)
    }

    fn audit(self, scope: Option<RuleScope>, filter: Filter) -> Result<(), Failure> {
        let path = self.configuration.locations.audit_log();
        let filter = Filter {
            writers: scope.map(|scope| scope.origins().to_vec()),
            ..filter
        };
        let mut is_empty = true;
        let told = AuditLog::new(path.clone()).read(&filter, |line| {
            is_empty = false;
            let told = self.console.put(&format!("{line}\n"));
            told.map_err(Unread::Told)
        });
        told.map_err(|error| match error {
            Unread::Log(error) => {
                Failure::Runtime(format!("cannot read `{}`: {error}", path.display()))
            }
            Unread::Told(failure) => failure,
        })?;
        if is_empty {
            return self.console.write("(empty)\n");
        }
        self.console.flush()
    }

    fn lint(self, scope: RuleScope) -> Result<(), Failure> {
        let rules = self.of_scope(scope).into_iter().map(|rule| rule.rule());
        let rules: Result<Vec<Rule>, RuleError> = rules.collect();
        let rules = rules.map_err(|error| Failure::Config(error.to_string()))?;
        let findings = lint(&rules, Timestamp::now());
        for finding in &findings {
            self.console.write(&format!("{finding}\n"))?;
        }
        if findings.iter().any(Finding::is_fault) {
            return Err(Failure::Silent(1));
        }
        self.console.write("OK (no duplicate patterns)\n")
    }

    /// The rules of a scope as they are written.
    fn of_scope(&self, scope: RuleScope) -> Vec<Listed> {
        Listed::of_scope(scope, &self.options.permissions.rules, self.configuration)
    }

    fn judge_call(&self, call: &CallArgs) -> Result<(Judge, Decision), Failure> {
        let input: Value = serde_json::from_str(&call.input)
            .map_err(|error| Failure::Usage(format!("the input is not JSON: {error}")))?;
        if !input.is_object() {
            return Err(Failure::Usage(
                "the input must be a JSON object, such as '{\"command\": \"ls\"}'".to_owned(),
            ));
        }
        let home = self.configuration.locations.home().to_owned();
        let workspace = Workspace::new(
            &self.configuration.workspace,
            &further_directories(&self.options.tools, self.configuration)?,
            Some(home.clone()),
            Confinement::Open,
        )
        .map_err(|error| Failure::Config(error.to_string()))?;
        let book = self.book()?;
        let book = match call.scope {
            Some(scope) => book.without(|rule| !scope.has(rule) && rule.origin != Origin::BuiltIn),
            None => book,
        };
        let judge = judge(book, protected(self.configuration), workspace, Some(home));
        for line in idle_rules(&self.options.permissions.rules, self.configuration) {
            note(&line);
        }
        if let Some(notice) = self.configuration.loaded.trust_notice() {
            note(&notice);
        }
        let decision = judge.decide(&call.tool, &input, Timestamp::now());
        Ok((judge, decision))
    }

    fn book(&self) -> Result<RuleBook, Failure> {
        let permissions = &self.options.permissions;
        Ok(rule_book(permissions, &self.configuration.loaded)?)
    }

    /// The file that a scope's rules are written to.
    fn target(&self, scope: WritableScope) -> Result<PathBuf, Failure> {
        let no_file = || Failure::Usage(format!("the {} scope cannot be changed", scope.name()));
        let file = self.configuration.rule_file(scope.settings());
        file.ok_or_else(no_file)
    }
}

/// Why the log was not shown to its end.
enum Unread {
    Log(io::Error),
    Told(Failure),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self::Log(error)
    }
}

impl From<WritableScope> for RuleScope {
    fn from(scope: WritableScope) -> Self {
        match scope {
            WritableScope::User => Self::User,
            WritableScope::Project => Self::Project,
            WritableScope::Local => Self::Local,
        }
    }
}

impl WritableScope {
    fn settings(self) -> Scope {
        RuleScope::from(self).settings()
    }

    fn name(self) -> &'static str {
        self.settings().as_str()
    }
}

fn pretty(value: &Value) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map_err(|error| Failure::Runtime(error.to_string()))
}

/// What a verdict rests on beside the rule.
fn why(decision: &Decision) -> Option<String> {
    match &decision.why {
        Why::Rule => None,
        Why::Guard(Guard::Managed) => Some("the managed scope denies it, which holds".to_owned()),
        Why::Guard(Guard::User) => {
            Some("the user scope denies it, which holds against the workspace".to_owned())
        }
        Why::Guard(Guard::General) => {
            Some("a rule denies it, which holds against the rules of the server".to_owned())
        }
        Why::Guard(Guard::Client) => {
            Some("a rule denies it, which holds against what a client allowed".to_owned())
        }
        Why::Protected { name, path } => Some(format!(
            "`{path}` lies in the protected place `{name}`, which no rule names"
        )),
        Why::Catastrophe(why) => Some(format!("no rule or mode allows this: {why}")),
        Why::Unproved(why) => Some(why.clone()),
        Why::Unresolved(path) => Some(format!("`{path}` cannot be resolved safely")),
    }
}
