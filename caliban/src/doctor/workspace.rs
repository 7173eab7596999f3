//! Checks of what a workspace and the settings bring along: skills, instructions, rules, hooks.

use std::path::Path;

use caliban_context::{Kind, Notice, Tag};
use caliban_harness::options::PermissionOptions;
use caliban_harness::{Configuration, Extras, Permissions};
use caliban_hooks::Configured;
use caliban_permissions::{Origin, Rule, lint};
use caliban_settings::IgnoredBecause;
use jiff::Timestamp;

use super::Additions;
use super::report::Row;

pub(super) fn skills(extras: &Result<Extras, String>, configuration: &Configuration) -> Row {
    const NAME: &str = "skills";
    let context = match extras {
        Ok(extras) => &extras.context,
        Err(problem) => return Row::fail(NAME, problem),
    };
    let roots = configuration.locations.skills(configuration.project());
    let scanned: Vec<String> = roots
        .iter()
        .map(|root| root.display().to_string())
        .collect();
    let message = format!(
        "{} skill(s) loaded (scanned: {})",
        context.skills.iter().count(),
        scanned.join(", ")
    );
    let notices = context
        .notices
        .iter()
        .filter(|notice| is_about_skills(notice));
    Row::pass(NAME, message).warned(notices.map(ToString::to_string))
}

fn is_about_skills(notice: &Notice) -> bool {
    let is_skill = |path: &Path| path.file_name().is_some_and(|name| name == "SKILL.md");
    match notice {
        Notice::Unusable { path, .. }
        | Notice::Malformed { path, .. }
        | Notice::Invisible { path, .. } => is_skill(path),
        Notice::Replaced { kind, .. } => *kind == Kind::Skill,
        Notice::MenuCut { .. } => true,
        Notice::TooMany { what, .. } => what.starts_with("skills"),
        _ => false,
    }
}

pub(super) fn instructions(extras: &Result<Extras, String>) -> Row {
    const NAME: &str = "claudemd";
    let memory = match extras {
        Ok(extras) => &extras.context.memory,
        Err(problem) => return Row::fail(NAME, problem),
    };
    let sections = memory.sections.iter();
    let row = match sections
        .filter(|section| section.tag == Tag::ProjectClaudeMd)
        .count()
    {
        0 => Row::warn(NAME, "no CLAUDE.md found in ancestry"),
        count => Row::pass(NAME, format!("{count} CLAUDE.md ancestor(s) found")),
    };
    row.warned(memory.notices.iter().map(ToString::to_string))
}

pub(super) fn permissions(options: &PermissionOptions, configuration: &Configuration) -> Row {
    const NAME: &str = "permissions";
    let permissions = match Permissions::of_new_run(options, configuration) {
        Ok(permissions) => permissions,
        Err(failure) => return Row::fail(NAME, failure.to_string()),
    };
    let configured: Vec<&Rule> = permissions
        .book
        .rules()
        .iter()
        .filter(|rule| rule.origin != Origin::BuiltIn)
        .collect();
    let message = format!(
        "{} rule(s) beside the built-in ones, mode {}",
        configured.len(),
        permissions.regime.as_str()
    );
    Row::pass(NAME, message).warned(findings(&configured))
}

/// What is odd about the rules, scope by scope.
fn findings(rules: &[&Rule]) -> Vec<String> {
    let now = Timestamp::now();
    rules
        .chunk_by(|one, next| one.origin == next.origin)
        .flat_map(|scope| {
            let origin = scope[0].origin.as_str();
            let rules: Vec<Rule> = scope.iter().map(|rule| (*rule).clone()).collect();
            let findings = lint(&rules, now).into_iter();
            findings.map(move |finding| format!("{origin}: {finding}"))
        })
        .collect()
}

pub(super) fn trust(configuration: &Configuration) -> Row {
    const NAME: &str = "trust";
    let router = configuration.router.iter();
    let all = router
        .flat_map(|router| &router.ignored)
        .chain(&configuration.loaded.ignored);
    let mut ignored: Vec<String> = all
        .filter(|ignored| ignored.because == IgnoredBecause::Untrusted)
        .map(|ignored| format!("ignored: `{}` ({})", ignored.key, ignored.scope))
        .collect();
    ignored.dedup();
    if configuration.is_trusted() {
        return Row::pass(NAME, "the workspace is trusted");
    }
    if ignored.is_empty() {
        return Row::pass(
            NAME,
            "the workspace is not trusted, and its settings need no trust",
        );
    }
    let message = "the workspace is not trusted; look at its settings and run `caliban trust`";
    Row::warn(NAME, message).with(ignored)
}

pub(super) fn hooks(additions: &Additions) -> Row {
    const NAME: &str = "hooks";
    let hooks = match (&additions.hooks_fault, &additions.extras) {
        (Some(fault), _) => return Row::fail(NAME, fault),
        (None, Ok(extras)) => &extras.hooks,
        (None, Err(_)) => return Row::skip(NAME, "not checked: see above"),
    };
    let handlers: Vec<String> = hooks.configured().map(described).collect();
    Row::pass(NAME, format!("{} handler(s)", handlers.len()))
        .with(handlers)
        .warned(hooks.notices().iter().cloned())
}

fn described(handler: Configured<'_>) -> String {
    let Configured {
        event,
        scope,
        matcher,
        kind,
        handler,
        is_async,
    } = handler;
    let matcher = match matcher {
        "" | "*" => String::new(),
        matcher => format!("({matcher})"),
    };
    let beside = if is_async { ", async" } else { "" };
    format!("{event}{matcher}: {kind} {handler} [{scope}{beside}]")
}
