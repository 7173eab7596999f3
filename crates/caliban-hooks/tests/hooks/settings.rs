//! From settings files to handlers.

use std::fs;

use caliban_hooks::{CallPattern, HookConfig, HookConfigError, HookLayer, HookSwitch, ParseWith};
use caliban_settings::{LoadRequest, Locations, Platform, TrustDecision, load};

const PROJECT: &str = r#"
disable_all_hooks = false
allow_managed_hooks_only = false
allowed_http_hook_urls = ["https://hooks.example.com/*"]
http_hook_allowed_env_vars = ["AUDIT_TOKEN"]

[[hooks.SessionStart]]
matcher = "*"
[[hooks.SessionStart.handlers]]
type = "command"
command = "/usr/local/bin/caliban-audit"
args = ["session-start"]
timeout = "5s"

[[hooks.PreToolUse]]
matcher = "Bash"
if = "Bash:rm *"
[[hooks.PreToolUse.handlers]]
type = "command"
command = "${CALIBAN_PROJECT_DIR}/.caliban/hooks/guard-rm.sh"
async = false

[[hooks.PreToolUse]]
matcher = "WebFetch"
[[hooks.PreToolUse.handlers]]
type = "http"
url = "https://hooks.example.com/preflight"
headers = { Authorization = "Bearer ${AUDIT_TOKEN}" }
timeout = "3s"

[[hooks.PostToolUse]]
matcher = "*"
[[hooks.PostToolUse.handlers]]
type = "mcp"
mcp = "audit-server"
tool = "log_tool_call"
async = true
"#;

const OVERLAY: &str = r#"{"hooks": {"PreToolUse": [{
    "matcher": "^(Bash|Edit|Write|MultiEdit|mcp__.*)$",
    "hooks": [{"type": "http", "url": "http://127.0.0.1:19836/hook/pre-tool-use/secret/token", "timeout": 300}]
}]}}"#;

#[derive(Debug)]
struct Nothing;

impl CallPattern for Nothing {
    fn matches(&self, _: &caliban_agent::ToolCall) -> bool {
        false
    }
}

fn config(trust: TrustDecision) -> Result<HookConfig, HookConfigError> {
    let root = tempfile::tempdir().unwrap();
    let (home, workspace) = (root.path().join("home"), root.path().join("w"));
    fs::create_dir_all(workspace.join(".caliban")).unwrap();
    fs::create_dir_all(&home).unwrap();
    fs::write(workspace.join(".caliban/settings.toml"), PROJECT).unwrap();
    let locations = Locations::new(Platform::Linux, &home, &|_| None)
        .with_managed_dir(root.path().join("managed"));
    let mut request = LoadRequest::new(locations, workspace);
    request.overlay = Some(OVERLAY.to_owned());
    request.trust = trust;
    let loaded = load(&request).unwrap();
    let layers: Vec<HookLayer> = loaded.layers().iter().map(HookLayer::from).collect();
    let with = ParseWith {
        switch: HookSwitch::On,
        pattern: &|_: &str| Ok(Box::new(Nothing) as Box<dyn CallPattern>),
        variable: &|_| Some("t0ken".to_owned()),
    };
    HookConfig::parse(&layers, &with)
}

fn shown(config: &HookConfig) -> Vec<String> {
    config
        .configured()
        .map(|hook| {
            format!(
                "{} {} {} {}",
                hook.scope, hook.event, hook.kind, hook.handler
            )
        })
        .collect()
}

#[test]
fn the_documented_settings_are_read() {
    let config = config(TrustDecision::Granted).unwrap();
    assert_eq!(config.notices(), [] as [&str; 0]);
    assert_eq!(
        shown(&config),
        [
            "project SessionStart command /usr/local/bin/caliban-audit",
            "project PreToolUse command ${CALIBAN_PROJECT_DIR}/.caliban/hooks/guard-rm.sh",
            "project PreToolUse http https://hooks.example.com",
            "cli PreToolUse http http://127.0.0.1:19836",
            "project PostToolUse mcp audit-server/log_tool_call",
        ]
    );
}

#[test]
fn a_workspace_nobody_trusts_brings_no_handlers() {
    let config = config(TrustDecision::Recorded).unwrap();
    assert_eq!(
        shown(&config),
        ["cli PreToolUse http http://127.0.0.1:19836"]
    );
}
