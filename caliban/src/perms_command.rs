//! `caliban perms`: permission rules looked at, tried out and changed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use caliban_agent::{Confinement, Workspace};
use caliban_harness::{
    Configuration, RunOptions, further_directories, idle_rules, judge, protected, rule_book,
};
use caliban_permissions::{
    AuditLog, Decision, Filter, Finding, Guard, Judge, Origin, Pattern, Rule, RuleBook, Why, lint,
};
use caliban_settings::write::{Appended, RuleRef, append_rule, remove_rule};
use caliban_settings::{RuleAction, RuleSpec, Scope, import};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::args::{CallArgs, ExportFormat, PermsCommand, RuleScope};
use crate::consent::Consent;
use crate::console::{Console, note};
use crate::exit::Failure;

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
            head,
        } => perms.audit(&Filter {
            since: *since,
            tool: tool.clone(),
            action: *action,
            head: *head,
        }),
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
        let book = self.book()?;
        let rules: Vec<&Rule> = match scope {
            None => book.rules().iter().collect(),
            Some(scope) => of_scope(&book, scope).collect(),
        };
        if json {
            let rules: Vec<Value> = rules.iter().map(|rule| rule_json(rule)).collect();
            return self.console.write(&format!("{}\n", pretty(&json!(rules))?));
        }
        if rules.is_empty() {
            return self.console.write("(no rules)\n");
        }
        let lines = rules.iter().enumerate().map(|(index, rule)| {
            format!(
                "{} {} {}{}\n",
                index + 1,
                rule.action,
                rule.pattern,
                remarks(rule)
            )
        });
        let text: String = lines.collect();
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
                remarks(rule)
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

    fn add(self, scope: RuleScope, spec: &RuleSpec) -> Result<(), Failure> {
        let origin = Origin::of(scope.settings());
        Rule::new(spec.clone(), origin).map_err(|error| Failure::Usage(error.to_string()))?;
        if spec.reason.is_some() && spec.action != RuleAction::Deny {
            return Err(Failure::Usage(
                "`--reason` is told to the model when a call is denied; use `--comment`".to_owned(),
            ));
        }
        let path = self.target(scope)?;
        let consent = Consent::of(self.configuration);
        let appended = append_rule(&path, spec)?;
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
        scope: RuleScope,
        index: Option<usize>,
        pattern: Option<&str>,
    ) -> Result<(), Failure> {
        let path = self.target(scope)?;
        let which = match (index, pattern) {
            (Some(number), _) => {
                let book = self.book()?;
                let rule = of_scope(&book, scope).nth(number - 1).ok_or_else(|| {
                    Failure::Runtime(format!("the {} scope has no rule {number}", scope.name()))
                })?;
                RuleRef::At {
                    index: number - 1,
                    pattern: rule.pattern.text().to_owned(),
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
        let removed = remove_rule(&path, &which)?;
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

    fn import(self, from: &Path, scope: RuleScope, dry_run: bool) -> Result<(), Failure> {
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
            note(&format!("not imported: {line}"));
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
        let merged = imported.apply(&path)?;
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
        let book = self.book()?;
        let rules: Vec<&Rule> = of_scope(&book, scope).collect();
        let text = match format {
            ExportFormat::Json => {
                let bucket = |action: RuleAction| -> Vec<&str> {
                    rules
                        .iter()
                        .filter(|rule| rule.action == action)
                        .map(|rule| rule.pattern.text())
                        .collect()
                };
                let buckets = json!({"permissions": {
                    "allow": bucket(RuleAction::Allow),
                    "ask": bucket(RuleAction::Ask),
                    "deny": bucket(RuleAction::Deny),
                }});
                pretty(&buckets)? + "\n"
            }
            ExportFormat::Toml => exported_toml(&rules)?,
        };
        self.console.write(&text)
    }

    fn audit(self, filter: &Filter) -> Result<(), Failure> {
        let path = self.configuration.locations.audit_log();
        let lines = AuditLog::new(path.clone()).read(filter).map_err(|error| {
            Failure::Runtime(format!("cannot read `{}`: {error}", path.display()))
        })?;
        if lines.is_empty() {
            return self.console.write("(empty)\n");
        }
        self.console.write(&format!("{}\n", lines.join("\n")))
    }

    fn lint(self, scope: RuleScope) -> Result<(), Failure> {
        let book = self.book()?;
        let rules: Vec<Rule> = of_scope(&book, scope).cloned().collect();
        let findings = lint(&rules, Timestamp::now());
        for finding in &findings {
            self.console.write(&format!("{finding}\n"))?;
        }
        if findings.iter().any(Finding::is_fault) {
            return Err(Failure::Silent(1));
        }
        self.console.write("OK (no duplicate patterns)\n")
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
        let judge = judge(
            self.book()?,
            protected(&self.configuration.locations),
            workspace,
            Some(home),
        );
        for line in idle_rules(&self.options.permissions.rules, self.configuration) {
            note(&line);
        }
        let decision = judge.decide(&call.tool, &input, Timestamp::now());
        Ok((judge, decision))
    }

    fn book(&self) -> Result<RuleBook, Failure> {
        let permissions = &self.options.permissions;
        Ok(rule_book(permissions, &self.configuration.loaded)?)
    }

    /// The file that a scope's rules are written to: the older one as long as it is there, because
    /// it is read instead of the settings.
    fn target(&self, scope: RuleScope) -> Result<PathBuf, Failure> {
        let (locations, workspace) = (&self.configuration.locations, &self.configuration.workspace);
        let no_file = || Failure::Usage(format!("the {} scope cannot be changed", scope.name()));
        if matches!(scope, RuleScope::Cli | RuleScope::Managed) {
            return Err(no_file());
        }
        let legacy = locations.legacy(scope.settings(), workspace);
        if let Some(files) = legacy
            && files.permissions.is_file()
        {
            return Ok(files.permissions);
        }
        let files = locations
            .settings(scope.settings(), workspace)
            .ok_or_else(no_file)?;
        Ok(files.toml)
    }
}

impl RuleScope {
    fn settings(self) -> Scope {
        match self {
            Self::Managed => Scope::Managed,
            Self::User => Scope::User,
            Self::Project => Scope::Project,
            Self::Local => Scope::Local,
            Self::Cli => Scope::Cli,
        }
    }

    fn name(self) -> &'static str {
        self.settings().as_str()
    }
}

fn of_scope(book: &RuleBook, scope: RuleScope) -> impl Iterator<Item = &Rule> {
    book.rules().iter().filter(move |rule| match scope {
        RuleScope::Cli => matches!(rule.origin, Origin::Flag | Origin::Overlay),
        scope => rule.origin == Origin::of(scope.settings()),
    })
}

fn remarks(rule: &Rule) -> String {
    let comment = rule.comment.iter().map(|text| format!("  # {text}"));
    let reason = rule.reason.iter().map(|text| format!("  reason: {text}"));
    let expiry = rule
        .expires_at
        .iter()
        .map(|time| format!("  expires {time}"));
    reason.chain(expiry).chain(comment).collect()
}

fn rule_json(rule: &Rule) -> Value {
    let mut value = json!({
        "pattern": rule.pattern.text(),
        "action": rule.action,
        "scope": rule.origin.as_str(),
    });
    for (key, text) in [("comment", &rule.comment), ("reason", &rule.reason)] {
        if let Some(text) = text {
            value[key] = json!(text);
        }
    }
    if let Some(time) = rule.expires_at {
        value["expires_at"] = json!(time.to_string());
    }
    value
}

fn exported_toml(rules: &[&Rule]) -> Result<String, Failure> {
    let specs: Vec<RuleSpec> = rules.iter().map(|rule| rule.spec()).collect();
    let document = json!({"permissions": {"rules": specs}});
    toml::to_string(&document).map_err(|error| Failure::Runtime(error.to_string()))
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
        Why::Protected { name, path } => Some(format!(
            "`{path}` lies in the protected place `{name}`, which no rule names"
        )),
        Why::Catastrophe(why) => Some(format!("no rule or mode allows this: {why}")),
        Why::Unproved(why) => Some(why.clone()),
        Why::Unresolved(path) => Some(format!("`{path}` cannot be resolved safely")),
    }
}
