//! Codex: `config.toml`, the same keys in JSON, and the older `config.json`.

use serde_json::{Map, Value, json};

use super::gathered::{Gathered, texts};

const ADVICE: [(&str, &str); 4] = [
    (
        "model_providers",
        "set base URLs and key variables in `caliban.toml`",
    ),
    ("profiles", "only the settings outside profiles are taken"),
    ("projects", "grant trust with `caliban trust`"),
    (
        "shell_environment_policy",
        "children get a clean environment here; name variables in `env`",
    ),
];

pub(super) fn gather(mut source: Map<String, Value>) -> Gathered {
    let mut gathered = Gathered::default();
    let mut take = |key: &str| source.shift_remove(key);
    let provider = take("model_provider").or_else(|| take("provider"));
    if let Some(model) = take("model") {
        self::model(&model, provider.as_ref(), &mut gathered);
    }
    match take("model_reasoning_effort")
        .as_ref()
        .and_then(Value::as_str)
    {
        Some("minimal") => gathered.set("effort", "low"),
        Some("xhigh") => gathered.set("effort", "max"),
        Some(level @ ("low" | "medium" | "high")) => gathered.set("effort", level),
        Some(other) => gathered.note(format!(
            "`model_reasoning_effort` was not imported: there is no effort `{other}` here"
        )),
        None => {}
    }
    mode(
        take("approval_policy")
            .or_else(|| take("approvalMode"))
            .as_ref(),
        take("sandbox_mode").as_ref(),
        &mut gathered,
    );
    if let Some(roots) = take("sandbox_workspace_write")
        && let Some(roots) = roots.get("writable_roots").and_then(texts)
    {
        gathered.set("additional_directories", roots);
    }
    if let Some(Value::Object(servers)) = take("mcp_servers") {
        let mut ours = Map::new();
        for (name, server) in servers {
            let server = self::server(&name, server, &mut gathered);
            ours.insert(name, server);
        }
        gathered.set("mcp_servers", ours);
    }
    for (key, advice) in ADVICE {
        if take(key).is_some() {
            gathered.note(format!("`{key}` was not imported: {advice}"));
        }
    }
    gathered.note_unknown(source.keys());
    gathered
}

fn model(model: &Value, provider: Option<&Value>, gathered: &mut Gathered) {
    let Some(name) = model.as_str() else {
        gathered.note("`model` was not imported: it is not a name");
        return;
    };
    let provider = provider.map_or(Some("openai"), Value::as_str);
    match provider {
        Some(id @ ("openai" | "anthropic" | "google" | "ollama")) => {
            gathered.set("model", json!({ "provider": id, "name": name }));
        }
        Some("gemini") => gathered.set("model", json!({ "provider": "google", "name": name })),
        Some(other) => gathered.note(format!(
            "`model` was not imported: there is no provider `{other}` here; set `model` and its base URL by hand"
        )),
        None => gathered.note("`model` was not imported: `model_provider` is not a name"),
    }
}

/// Who approves and what the sandbox permits is one mode here. Nothing becomes looser by it.
fn mode(approval: Option<&Value>, sandbox: Option<&Value>, gathered: &mut Gathered) {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let (approval, sandbox) = (text(approval), text(sandbox));
    let mode = match (approval.as_deref(), sandbox.as_deref()) {
        (None, None) => return,
        (Some("never"), Some("read-only")) => "plan",
        (Some("never" | "full-auto"), _) | (_, Some("danger-full-access")) => {
            gathered.note(
                "`approval_policy` and `sandbox_mode` were not imported: together they ask for nothing; choose `permissions.default_mode` by hand",
            );
            return;
        }
        (Some("auto-edit"), _)
        | (None | Some("on-request" | "on-failure"), Some("workspace-write")) => "acceptEdits",
        (Some(_) | None, Some(_) | None) => "default",
    };
    gathered.set("permissions.default_mode", mode);
}

fn server(name: &str, theirs: Value, gathered: &mut Gathered) -> Value {
    let Value::Object(theirs) = theirs else {
        return Value::Null;
    };
    let mut ours = Map::new();
    let mut headers = Map::new();
    if theirs.contains_key("url") {
        ours.insert("type".into(), "http".into());
    }
    for (key, value) in theirs {
        match (key.as_str(), &value) {
            ("command" | "args" | "env" | "cwd" | "url", _) => _ = ours.insert(key, value),
            ("enabled", Value::Bool(enabled)) => {
                if !enabled {
                    ours.insert("disabled".into(), true.into());
                }
            }
            ("http_headers", Value::Object(fixed)) => headers.extend(fixed.clone()),
            ("env_http_headers", Value::Object(variables)) => {
                for (header, variable) in variables {
                    let variable = variable.as_str().unwrap_or_default();
                    headers.insert(header.clone(), format!("${{{variable}}}").into());
                }
            }
            ("bearer_token_env_var", Value::String(variable)) => {
                let bearer = format!("Bearer ${{{variable}}}");
                headers.insert("Authorization".into(), bearer.into());
            }
            ("disabled_tools", _) if texts(&value).is_some() => {
                ours.insert("permissions".into(), json!({ "deny": value }));
            }
            (other, _) => gathered.note(format!(
                "`{other}` of the MCP server `{name}` was not imported: no counterpart here"
            )),
        }
    }
    if !headers.is_empty() {
        ours.insert("headers".into(), headers.into());
    }
    ours.into()
}
