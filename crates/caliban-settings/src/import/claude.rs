//! Claude Code: `settings.json`, `.mcp.json` and `~/.claude.json`.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::gathered::{Gathered, texts};
use super::rule::{Translation, translate};
use super::{hooks, mcp, plugins, sandbox};
use crate::key_helper::split;
use crate::write::{RuleAction, RuleSpec, ShapeError};

/// Keys by which its files are known.
pub(super) const KEYS: [&str; 32] = [
    "agent",
    "allowedHttpHookUrls",
    "alwaysThinkingEnabled",
    "apiKeyHelper",
    "attribution",
    "autoMemoryEnabled",
    "blockedMarketplaces",
    "claudeMdExcludes",
    "cleanupPeriodDays",
    "disableAllHooks",
    "effortLevel",
    "enableAllProjectMcpServers",
    "enabledMcpjsonServers",
    "enabledPlugins",
    "env",
    "extraKnownMarketplaces",
    "fallbackModel",
    "forceLoginMethod",
    "hooks",
    "includeCoAuthoredBy",
    "mcpServers",
    "model",
    "numStartups",
    "oauthAccount",
    "outputStyle",
    "permissions",
    "permissions.additionalDirectories",
    "permissions.defaultMode",
    "projects",
    "statusLine",
    "statusLine.type",
    "strictKnownMarketplaces",
];

enum Shape {
    Truth,
    Text,
    Texts,
}

/// Keys that mean the same under another name.
const SAME: [(&str, &str, Shape); 12] = [
    ("agent", "agent", Shape::Text),
    (
        "allowManagedHooksOnly",
        "allow_managed_hooks_only",
        Shape::Truth,
    ),
    (
        "allowedHttpHookUrls",
        "allowed_http_hook_urls",
        Shape::Texts,
    ),
    (
        "autoMemoryDirectory",
        "memory.auto_memory_directory",
        Shape::Text,
    ),
    (
        "autoMemoryEnabled",
        "memory.auto_memory_enabled",
        Shape::Truth,
    ),
    ("awsAuthRefresh", "aws_auth_refresh_command", Shape::Text),
    ("awsCredentialExport", "aws_credential_export", Shape::Text),
    ("gcpAuthRefresh", "gcp_auth_refresh_command", Shape::Text),
    ("claudeMdExcludes", "claude_md_excludes", Shape::Texts),
    ("disableAllHooks", "disable_all_hooks", Shape::Truth),
    (
        "httpHookAllowedEnvVars",
        "http_hook_allowed_env_vars",
        Shape::Texts,
    ),
    ("outputStyle", "output_style", Shape::Text),
];

/// Keys whose absence deserves its own word.
const ADVICE: [(&str, &str); 4] = [
    (
        "cleanupPeriodDays",
        "set `CALIBAN_CLEANUP_PERIOD_DAYS` instead",
    ),
    (
        "modelOverrides",
        "it names models, and `model_overrides` names routes",
    ),
    (
        "projects",
        "import what belongs to a project into that project",
    ),
    ("companyAnnouncements", "messages are not settings here"),
];

pub(super) fn gather(
    mut source: Map<String, Value>,
    home: Option<&Path>,
) -> Result<Gathered, ShapeError> {
    let mut gathered = Gathered::default();
    source.shift_remove("$schema");
    let mut take = |key: &str| source.shift_remove(key);
    if let Some(model) = take("model") {
        self::model("model", &model, &mut gathered);
    }
    if let Some(model) = take("fallbackModel") {
        self::model("fallback_model", &model, &mut gathered);
    }
    if let Some(level) = take("effortLevel") {
        effort(&level, &mut gathered);
    }
    for (theirs, ours, shape) in SAME {
        let Some(value) = take(theirs) else { continue };
        let fits = match shape {
            Shape::Truth => value.is_boolean(),
            Shape::Text => value.is_string(),
            Shape::Texts => texts(&value).is_some(),
        };
        if fits {
            gathered.set(ours, value);
        } else {
            gathered.note(format!(
                "`{theirs}` was not imported: it has the wrong type"
            ));
        }
    }
    if let Some(mode @ ("vim" | "emacs")) = take("editorMode").as_ref().and_then(Value::as_str) {
        gathered.set("editor_mode", mode);
    }
    if let Some(helper) = take("apiKeyHelper") {
        key_helper(&helper, &mut gathered);
    }
    if let Some(line) = take("statusLine") {
        status_line(&line, &mut gathered);
    }
    if let Some(env) = take("env") {
        environment(&env, &mut gathered);
    }
    if let Some(permissions) = take("permissions") {
        self::permissions(permissions, home, &mut gathered)?;
    }
    if let Some(theirs) = take("sandbox") {
        sandbox::gather(&theirs, home, &mut gathered);
    }
    if let Some(theirs) = take("hooks") {
        hooks::gather(&theirs, &mut gathered);
    }
    if let Some(servers) = take("mcpServers") {
        mcp::gather(&servers, &mut gathered);
    }
    plugins::gather(&mut source, &mut gathered);
    for (key, advice) in ADVICE {
        if source.shift_remove(key).is_some() {
            gathered.note(format!("`{key}` was not imported: {advice}"));
        }
    }
    gathered.note_unknown(source.keys());
    Ok(gathered)
}

fn model(key: &str, model: &Value, gathered: &mut Gathered) {
    match model.as_str() {
        Some("default") => {}
        Some(name) if name.starts_with("claude-") => match name.split_once('[') {
            Some((plain, _)) => {
                gathered.set(key, plain);
                gathered.note(format!("`{key}` was imported without the suffix of `{name}`"));
            }
            None => gathered.set(key, name),
        },
        Some(name) if name.contains('-') => gathered.set(key, name),
        Some(name) => gathered.note(format!(
            "`{key}` was not imported: `{name}` is a short name that is not known here; set the full one"
        )),
        None => gathered.note(format!("`{key}` was not imported: it is not a name")),
    }
}

fn effort(level: &Value, gathered: &mut Gathered) {
    match level.as_str() {
        Some(level @ ("low" | "medium" | "high" | "max" | "auto")) => gathered.set("effort", level),
        Some("xhigh") => gathered.set("effort", "max"),
        Some(_) | None => gathered.note("`effortLevel` was not imported: there is no such level"),
    }
}

/// Their helper is for one provider and runs in a shell; ours would serve every provider.
fn key_helper(helper: &Value, gathered: &mut Gathered) {
    let Some(line) = helper.as_str() else {
        gathered.note("`apiKeyHelper` was not imported: it is not a command");
        return;
    };
    let is_plain = |letter: char| {
        letter.is_alphanumeric() || letter == ' ' || "/._-+:,@%='\"".contains(letter)
    };
    let command = if line.chars().all(is_plain) && split(line).is_ok() {
        Value::from(line)
    } else {
        json!(["sh", "-c", line])
    };
    gathered.set(
        "api_key_helper",
        json!({ "provider": "anthropic", "command": command }),
    );
}

fn status_line(line: &Value, gathered: &mut Gathered) {
    let Some(command) = line.get("command").and_then(Value::as_str) else {
        gathered.note("`statusLine` was not imported: it has no command");
        return;
    };
    gathered.set("statusLine.command", command);
    if let Some(padding) = line.get("padding").and_then(Value::as_u64) {
        gathered.set("statusLine.padding", padding.min(8));
    }
}

fn environment(env: &Value, gathered: &mut Gathered) {
    for (name, value) in env.as_object().into_iter().flatten() {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(truth) => truth.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                gathered.note(format!("`env.{name}` was not imported: it is not a text"));
                continue;
            }
        };
        // A variable's name may contain a dot.
        match gathered
            .settings
            .get_mut("env")
            .and_then(Value::as_object_mut)
        {
            Some(ours) => _ = ours.insert(name.clone(), text.into()),
            None => gathered.set("env", json!({ name: text })),
        }
    }
}

fn permissions(
    permissions: Value,
    home: Option<&Path>,
    gathered: &mut Gathered,
) -> Result<(), ShapeError> {
    let Value::Object(mut permissions) = permissions else {
        return Err(ShapeError::NotATable("permissions".into()));
    };
    buckets(&mut permissions, home, gathered)?;
    match permissions.shift_remove("defaultMode").as_ref().and_then(Value::as_str) {
        Some(mode @ ("default" | "acceptEdits" | "plan" | "auto")) => {
            gathered.set("permissions.default_mode", mode);
        }
        Some("dontAsk") => gathered.note(
            "`permissions.defaultMode` was not imported: `dontAsk` refuses there and allows here",
        ),
        Some("bypassPermissions") => gathered.note(
            "`permissions.defaultMode` was not imported: `bypassPermissions` is never a default, give `--permission-mode`",
        ),
        Some(other) => gathered.note(format!(
            "`permissions.defaultMode` was not imported: there is no mode `{other}` here"
        )),
        None => {}
    }
    if let Some(directories) = permissions.shift_remove("additionalDirectories") {
        let directories: Vec<String> = texts(&directories)
            .unwrap_or_default()
            .into_iter()
            .map(|path| match (path.strip_prefix("~/"), home) {
                (Some(below), Some(home)) => home.join(below).to_string_lossy().into_owned(),
                _ => path.to_owned(),
            })
            .collect();
        gathered.set("additional_directories", directories);
    }
    if permissions.shift_remove("disableBypassPermissionsMode") == Some("disable".into()) {
        gathered.set("permissions.enforce", true);
    }
    let left: Vec<String> = permissions
        .keys()
        .map(|key| format!("permissions.{key}"))
        .collect();
    gathered.note_unknown(left.iter());
    Ok(())
}

/// The three lists, strictest first: there a denial always wins, here the first match does.
fn buckets(
    permissions: &mut Map<String, Value>,
    home: Option<&Path>,
    gathered: &mut Gathered,
) -> Result<(), ShapeError> {
    for (action, pattern) in take_buckets(permissions)? {
        match translate(&pattern, action, home) {
            Translation::Patterns(patterns) => {
                for pattern in patterns {
                    gathered.rule(RuleSpec::new(pattern, action));
                }
            }
            Translation::Verbatim(why) => {
                gathered.note(format!("`{pattern}` keeps its spelling: {why}"));
                gathered.rule(RuleSpec::new(pattern, action));
            }
            Translation::Unusable(why) => {
                gathered.note(format!("{action} `{pattern}` was not imported: {why}"));
            }
        }
    }
    Ok(())
}

/// The patterns of the three lists in the order in which they are to be tried. A list that cannot
/// be read is not passed over: it may be the one that forbids.
pub(super) fn take_buckets(
    permissions: &mut Map<String, Value>,
) -> Result<Vec<(RuleAction, String)>, ShapeError> {
    let mut taken = Vec::new();
    for action in RuleAction::STRICTEST_FIRST {
        if let Some(patterns) = permissions.shift_remove(action.as_str()) {
            let patterns = texts(&patterns)
                .ok_or_else(|| ShapeError::NotRules(format!("permissions.{action}")))?;
            taken.extend(patterns.into_iter().map(|text| (action, text.into())));
        }
    }
    Ok(taken)
}
