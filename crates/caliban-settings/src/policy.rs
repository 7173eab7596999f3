//! Which keys run something or loosen something, in one table. The workspace's scopes may set
//! those only where the workspace is trusted; tightening is always theirs.

use serde_json::Value;

use crate::scope::Scope;
use crate::types::PermissionMode;

/// Whether the workspace's own files may run programs and loosen policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    Trusted,
    Untrusted,
}

/// What becomes of a key that is set in some scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Applies,
    /// It would apply in a trusted workspace.
    NeedsTrust,
    /// It does not count in that scope, whatever is trusted.
    Never,
}

/// What a key does to safety.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nature {
    /// Starts a program, sends data somewhere, or decides whether that happens.
    Runs,
    /// A switch that loosens when it has this value.
    LoosensWhen(bool),
    /// A list of what is permitted.
    Widens,
    /// A list of what is forbidden or asked about.
    Restricts,
    /// The permission mode: whatever is no looser than the user's own.
    Mode,
    /// The ordered rules: each is judged by its action.
    Rules,
    /// Counts in these scopes only.
    Reserved(&'static [Scope]),
}

/// Every key that is not free for all scopes. A `*` stands for any one name; the first row that
/// fits counts.
const POLICY: &[(&str, Nature)] = &[
    ("hooks", Nature::Runs),
    ("disable_all_hooks", Nature::Runs),
    ("disable_auto_mode", Nature::LoosensWhen(false)),
    ("allow_managed_hooks_only", Nature::Runs),
    ("allowed_http_hook_urls", Nature::Runs),
    ("http_hook_allowed_env_vars", Nature::Runs),
    ("mcp_servers.*.disabled", Nature::LoosensWhen(false)),
    ("mcp_servers.*.permissions.deny", Nature::Restricts),
    ("mcp_servers.*.permissions.ask", Nature::Restricts),
    ("mcp_servers.*.permissions.allow", Nature::Widens),
    ("mcp_servers.*.*", Nature::Runs),
    ("fleet.restart", Nature::Runs),
    ("fleet.max_running", Nature::Runs),
    ("fleet.max_agents", Nature::Runs),
    ("fleet.max_budget_usd", Nature::Runs),
    ("api_key_helper", Nature::Runs),
    ("aws_auth_refresh_command", Nature::Runs),
    ("aws_credential_export", Nature::Runs),
    ("gcp_auth_refresh_command", Nature::Runs),
    ("statusLine", Nature::Runs),
    ("tui.files", Nature::Runs),
    ("env", Nature::Runs),
    ("plugins", Nature::Runs),
    (
        "strict_plugin_only_customization",
        Nature::Reserved(&[Scope::User, Scope::Managed, Scope::Cli]),
    ),
    ("telemetry", Nature::Runs),
    ("enable_telemetry", Nature::LoosensWhen(true)),
    ("feedback_url", Nature::Runs),
    ("router", Nature::Runs),
    ("permissions.allow", Nature::Widens),
    ("permissions.ask", Nature::Restricts),
    ("permissions.deny", Nature::Restricts),
    ("permissions.rules", Nature::Rules),
    ("permissions.default_mode", Nature::Mode),
    ("permissions.enforce", Nature::LoosensWhen(false)),
    ("permissions.audit_log", Nature::LoosensWhen(false)),
    ("additional_directories", Nature::Widens),
    ("worktree.symlink_directories", Nature::Widens),
    ("worktree.rebuildable", Nature::Widens),
    ("memory.auto_memory_directory", Nature::Runs),
    ("memory.auto_memory_enabled", Nature::LoosensWhen(true)),
    ("sandbox.enabled", Nature::LoosensWhen(false)),
    ("sandbox.fail_if_unavailable", Nature::LoosensWhen(false)),
    (
        "sandbox.auto_allow_bash_if_sandboxed",
        Nature::LoosensWhen(true),
    ),
    (
        "sandbox.enable_weaker_nested_sandbox",
        Nature::LoosensWhen(true),
    ),
    ("sandbox.allow_unsandboxed_commands", Nature::Widens),
    ("sandbox.bwrap_path", Nature::Runs),
    ("sandbox.sandbox_exec_path", Nature::Runs),
    ("sandbox.filesystem.allow_read", Nature::Widens),
    ("sandbox.filesystem.allow_write", Nature::Widens),
    ("sandbox.filesystem.deny_read", Nature::Restricts),
    ("sandbox.filesystem.deny_write", Nature::Restricts),
    ("sandbox.network.allowed_domains", Nature::Widens),
    ("sandbox.network.http_proxy_port", Nature::Runs),
    (
        "sandbox.network.allow_unix_sockets",
        Nature::LoosensWhen(true),
    ),
    (
        "sandbox.network.allow_local_binding",
        Nature::LoosensWhen(true),
    ),
    ("sandbox.network.allow_mach_lookup", Nature::Widens),
    (
        "trusted_directories",
        Nature::Reserved(&[Scope::User, Scope::Managed]),
    ),
    (
        "parent_settings_behavior",
        Nature::Reserved(&[Scope::Managed]),
    ),
];

/// Where a path stands in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Row(Nature),
    /// Rows exist for keys below it.
    Above,
    Nothing,
}

pub(crate) fn find(path: &[&str]) -> Found {
    for (row, nature) in POLICY {
        let mut names = row.split('.');
        let fits = path
            .iter()
            .all(|key| names.next().is_some_and(|name| name == "*" || name == *key));
        if fits {
            return match names.next() {
                None => Found::Row(*nature),
                Some(_) => Found::Above,
            };
        }
    }
    Found::Nothing
}

/// Every row of the table, for those who must cover them all.
pub(crate) fn rows() -> impl Iterator<Item = (&'static str, Nature)> {
    POLICY.iter().copied()
}

/// Whether a value set in a scope may take effect. `key` is dotted, `value` what it is set to.
pub fn gate(key: &str, value: &Value, scope: Scope, trust: Trust) -> Effect {
    let path: Vec<&str> = key.split('.').collect();
    match find(&path) {
        Found::Row(nature) => nature.effect(|| value.clone(), scope, trust, None),
        Found::Above | Found::Nothing => Effect::Applies,
    }
}

impl Nature {
    /// As [`gate`]; the value is asked for where it matters, and `own_mode` is the mode of the scopes that are not the workspace's.
    pub(crate) fn effect(
        self,
        value: impl FnOnce() -> Value,
        scope: Scope,
        trust: Trust,
        own_mode: Option<PermissionMode>,
    ) -> Effect {
        if let Self::Reserved(scopes) = self {
            return if scopes.contains(&scope) {
                Effect::Applies
            } else {
                Effect::Never
            };
        }
        if !scope.is_workspace() {
            return Effect::Applies;
        }
        if trust == Trust::Trusted && self != Self::Mode {
            return Effect::Applies;
        }
        let value = value();
        if self == Self::Mode && mode(&value) == Some(PermissionMode::BypassPermissions) {
            return Effect::Never;
        }
        if trust == Trust::Trusted || !self.loosens(&value, own_mode) {
            Effect::Applies
        } else {
            Effect::NeedsTrust
        }
    }

    fn loosens(self, value: &Value, own_mode: Option<PermissionMode>) -> bool {
        // A null takes back what a lower scope said.
        if value.is_null() {
            return true;
        }
        match self {
            Self::Runs | Self::Reserved(_) => true,
            Self::LoosensWhen(loose) => value.as_bool() != Some(!loose),
            Self::Widens => value.as_array().is_none_or(|list| !list.is_empty()),
            Self::Restricts => false,
            Self::Mode => {
                let limit = own_mode.unwrap_or(PermissionMode::Default);
                mode(value).is_none_or(|mode| mode > limit)
            }
            Self::Rules => value
                .as_array()
                .is_none_or(|rules| rules.iter().any(is_allow_rule)),
        }
    }
}

pub(crate) fn mode(value: &Value) -> Option<PermissionMode> {
    serde::Deserialize::deserialize(value).ok()
}

/// Whether a rule permits something. Anything but a plain refusal or question counts as that.
pub(crate) fn is_allow_rule(rule: &Value) -> bool {
    !matches!(rule["action"].as_str(), Some("deny" | "ask"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("hooks", json!({"PreToolUse": []}))]
    #[case("mcp_servers.x.command", json!("npx"))]
    #[case("mcp_servers.x.url", json!("https://x"))]
    #[case("mcp_servers.x.disabled", json!(false))]
    #[case("mcp_servers.x.permissions.allow", json!(["*"]))]
    #[case("api_key_helper", json!("/bin/key"))]
    #[case("aws_auth_refresh_command", json!("aws sso login"))]
    #[case("aws_credential_export", json!("/bin/keys"))]
    #[case("gcp_auth_refresh_command", json!("gcloud auth login"))]
    #[case("statusLine", json!({"command": "s"}))]
    #[case("tui.files", json!({"command": "s"}))]
    #[case("env", json!({"A": "1"}))]
    #[case("permissions.allow", json!(["Bash"]))]
    #[case("permissions.rules", json!([{"pattern": "B", "action": "allow"}]))]
    #[case("permissions.default_mode", json!("acceptEdits"))]
    #[case("permissions.default_mode", json!("dontAsk"))]
    #[case("permissions.default_mode", json!("auto"))]
    #[case("permissions.audit_log", json!(false))]
    #[case("permissions.enforce", json!(false))]
    #[case("additional_directories", json!(["/"]))]
    #[case("sandbox.enabled", json!(false))]
    #[case("sandbox.enabled", json!(null))]
    #[case("sandbox.allow_unsandboxed_commands", json!(["git"]))]
    #[case("sandbox.network.allowed_domains", json!(["x"]))]
    #[case("plugins", json!({"enabled": []}))]
    #[case("disable_all_hooks", json!(true))]
    #[case("router", json!({"hedge": {"hedge_after_ms": 1}}))]
    #[case("router", json!({"route": [{"provider": "openai", "model": "m"}]}))]
    fn what_loosens_needs_trust(#[case] key: &str, #[case] value: Value) {
        for scope in [Scope::Project, Scope::Local] {
            let effect = |trust| gate(key, &value, scope, trust);
            assert_eq!(
                effect(Trust::Untrusted),
                Effect::NeedsTrust,
                "{key} {scope}"
            );
            assert_eq!(effect(Trust::Trusted), Effect::Applies, "{key} {scope}");
        }
        for scope in [Scope::Managed, Scope::User, Scope::Cli] {
            let effect = gate(key, &value, scope, Trust::Untrusted);
            assert_eq!(effect, Effect::Applies, "{key} {scope}");
        }
    }

    #[rstest]
    #[case("permissions.deny", json!(["Bash"]))]
    #[case("permissions.ask", json!(["Bash"]))]
    #[case("permissions.rules", json!([{"pattern": "B", "action": "deny"}]))]
    #[case("permissions.default_mode", json!("plan"))]
    #[case("permissions.default_mode", json!("default"))]
    #[case("permissions.enforce", json!(true))]
    #[case("permissions.audit_log", json!(true))]
    #[case("sandbox.enabled", json!(true))]
    #[case("sandbox.fail_if_unavailable", json!(true))]
    #[case("sandbox.filesystem.deny_read", json!(["/x"]))]
    #[case("sandbox.network.allowed_domains", json!([]))]
    #[case("mcp_servers.x.disabled", json!(true))]
    #[case("mcp_servers.x.permissions.deny", json!(["*"]))]
    #[case("model", json!("m"))]
    #[case("output_style", json!("s"))]
    fn what_tightens_is_free(#[case] key: &str, #[case] value: Value) {
        for scope in Scope::ALL {
            let effect = gate(key, &value, scope, Trust::Untrusted);
            assert_eq!(effect, Effect::Applies, "{key} {scope}");
        }
    }

    #[test]
    fn some_things_never_come_from_the_workspace() {
        let bypass = json!("bypassPermissions");
        for trust in [Trust::Trusted, Trust::Untrusted] {
            for scope in [Scope::Project, Scope::Local] {
                let mode = gate("permissions.default_mode", &bypass, scope, trust);
                assert_eq!(mode, Effect::Never);
                let directories = gate("trusted_directories", &json!(["/"]), scope, trust);
                assert_eq!(directories, Effect::Never);
            }
            let block = gate(
                "parent_settings_behavior",
                &json!("block"),
                Scope::User,
                trust,
            );
            assert_eq!(block, Effect::Never);
        }
        let own = gate(
            "permissions.default_mode",
            &bypass,
            Scope::User,
            Trust::Untrusted,
        );
        assert_eq!(own, Effect::Applies, "the latch is another part's business");
    }

    #[test]
    fn every_row_names_a_key_of_the_schema() {
        let schema = crate::schema::settings_schema();
        for (row, _) in rows() {
            let top = row.split('.').next().unwrap();
            assert!(schema["properties"].get(top).is_some(), "{row}");
        }
    }
}
