//! Applies the policy table to a scope's document before it is merged.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::document::{Content, Entry, Node, Step, Table, dotted};
use crate::error::shown;
use crate::policy::{Effect, Found, Nature, Trust, find, is_allow_rule};
use crate::scope::Scope;
use crate::types::PermissionMode;

/// Who decides about trust for a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustDecision {
    /// `--trust-workspace`, `CALIBAN_TRUST_WORKSPACE`, or a person who said yes.
    Granted,
    /// The trust store and `trusted_directories`.
    #[default]
    Recorded,
    /// A person who said no.
    Withheld,
}

/// Why a key that is set does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoredBecause {
    /// The workspace is not trusted.
    Untrusted,
    /// It does not count in that scope.
    Scope,
    /// The operator has locked it.
    Locked,
}

/// A key that is set and does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    pub key: String,
    pub scope: Scope,
    pub because: IgnoredBecause,
}

/// At most so many keys are named in the notice.
const NAMED: usize = 12;

/// What an untrusted workspace is told once; `None` where nothing was left out for want of trust.
pub fn notice(workspace: &Path, ignored: &[Ignored]) -> Option<String> {
    let mut keys: Vec<&str> = ignored
        .iter()
        .filter(|ignored| ignored.because == IgnoredBecause::Untrusted)
        .map(|ignored| ignored.key.as_str())
        .collect();
    keys.dedup();
    if keys.is_empty() {
        return None;
    }
    let more = keys.len().saturating_sub(NAMED);
    let mut list = keys[..keys.len() - more]
        .iter()
        .map(|key| format!("`{key}`"))
        .collect::<Vec<_>>()
        .join(", ");
    if more > 0 {
        let _ = write!(list, " and {more} more");
    }
    Some(format!(
        "workspace `{}` is not trusted; ignored from its settings: {list}. Run `caliban trust` to \
         trust it as it is now, or pass `--trust-workspace` for this run.",
        shown(workspace)
    ))
}

/// Takes out of a scope's document what may not take effect. `own_mode` is the permission mode
/// of the scopes that are not the workspace's.
pub(crate) fn apply_gate(
    root: &mut Node,
    scope: Scope,
    trust: Trust,
    own_mode: Option<PermissionMode>,
) -> Vec<Ignored> {
    let mut gate = Gate {
        scope,
        trust,
        own_mode,
        ignored: Vec::new(),
    };
    if let Some(table) = root.as_table_mut() {
        gate.filter(table, &mut Vec::new());
    }
    gate.ignored
}

struct Gate {
    scope: Scope,
    trust: Trust,
    own_mode: Option<PermissionMode>,
    ignored: Vec<Ignored>,
}

impl Gate {
    fn filter(&mut self, table: &mut Table, path: &mut Vec<String>) {
        *table = std::mem::take(table)
            .into_iter()
            .filter_map(|entry| {
                path.push(entry.key.clone());
                let entry = self.judge(entry, path);
                path.pop();
                entry
            })
            .collect();
    }

    fn judge(&mut self, mut entry: Entry, path: &mut Vec<String>) -> Option<Entry> {
        let keys: Vec<&str> = path.iter().map(String::as_str).collect();
        match find(&keys) {
            Found::Nothing => Some(entry),
            Found::Above => match &mut entry.node.content {
                Content::Table(table) => {
                    let was_empty = table.is_empty();
                    self.filter(table, path);
                    (was_empty || !table.is_empty()).then_some(entry)
                }
                Content::Null
                | Content::Bool(_)
                | Content::Number(_)
                | Content::String(_)
                | Content::List(_) => Some(entry),
            },
            Found::Row(nature) => {
                let value = || entry.node.to_value();
                match nature.effect(value, self.scope, self.trust, self.own_mode) {
                    Effect::Applies => Some(entry),
                    Effect::Never => {
                        self.ignore(path, None, IgnoredBecause::Scope);
                        None
                    }
                    Effect::NeedsTrust => self.leave_out(nature, entry, path),
                }
            }
        }
    }

    /// Leaves a key out, but for rules that only forbid or ask.
    fn leave_out(&mut self, nature: Nature, mut entry: Entry, path: &[String]) -> Option<Entry> {
        if let (Nature::Rules, Content::List(rules)) = (nature, &mut entry.node.content) {
            let mut index = 0;
            rules.retain(|rule| {
                let stays = !is_allow_rule(&rule.to_value());
                if !stays {
                    self.ignore(path, Some(index), IgnoredBecause::Untrusted);
                }
                index += 1;
                stays
            });
            return Some(entry);
        }
        self.ignore(path, None, IgnoredBecause::Untrusted);
        None
    }

    fn ignore(&mut self, path: &[String], index: Option<usize>, because: IgnoredBecause) {
        let mut steps: Vec<Step> = path.iter().cloned().map(Step::Key).collect();
        steps.extend(index.map(Step::Index));
        self.ignored.push(Ignored {
            key: dotted(&steps),
            scope: self.scope,
            because,
        });
    }
}

/// Whether a directory of `trusted_directories` covers a workspace: it is that directory or one
/// below it, links resolved. `~` stands for the home; anything else that is not absolute covers
/// nothing.
pub(crate) fn covers(directory: &str, workspace: &Path, home: &Path) -> bool {
    let path = match directory.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with(['/', '\\']) => home.join(&rest[1..]),
        Some(_) | None => PathBuf::from(directory),
    };
    path.is_absolute() && fs::canonicalize(path).is_ok_and(|path| workspace.starts_with(path))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::document::{Format, Origin, parse};

    fn gated(
        scope: Scope,
        trust: Trust,
        mode: Option<PermissionMode>,
        value: &Value,
    ) -> (Value, Vec<String>) {
        let mut root = parse(scope, Origin::Overlay, value.to_string(), Format::Json).unwrap();
        let ignored = apply_gate(&mut root, scope, trust, mode);
        let keys = ignored.into_iter().map(|ignored| ignored.key).collect();
        (root.to_value(), keys)
    }

    #[test]
    fn servers_of_an_untrusted_workspace_only_lose() {
        let value = json!({"mcp_servers": {
            "evil": {"command": "sh", "args": ["-c", "x"]},
            "off": {"disabled": true},
            "less": {"url": "https://x", "permissions": {"allow": ["*"], "deny": ["rm"]}},
        }});
        let (left, ignored) = gated(Scope::Project, Trust::Untrusted, None, &value);
        assert_eq!(
            left,
            json!({"mcp_servers": {"off": {"disabled": true}, "less": {"permissions": {"deny": ["rm"]}}}})
        );
        assert_eq!(
            ignored,
            [
                "mcp_servers.evil.command",
                "mcp_servers.evil.args",
                "mcp_servers.less.url",
                "mcp_servers.less.permissions.allow",
            ]
        );
    }

    #[test]
    fn rules_that_forbid_stay() {
        let rules = json!([
            {"pattern": "A", "action": "allow"},
            {"pattern": "B", "action": "deny"},
            {"pattern": "C", "action": "ask"},
        ]);
        let value = json!({"permissions": {"rules": rules, "deny": ["X"], "allow": ["Y"]}});
        let (left, ignored) = gated(Scope::Local, Trust::Untrusted, None, &value);
        assert_eq!(
            left,
            json!({"permissions": {"rules": [rules[1], rules[2]], "deny": ["X"]}})
        );
        assert_eq!(ignored, ["permissions.rules[0]", "permissions.allow"]);
        let (left, ignored) = gated(Scope::Local, Trust::Trusted, None, &value);
        assert_eq!((left, ignored), (value, Vec::new()));
    }

    #[test]
    fn a_mode_may_be_no_looser_than_the_users_own() {
        let mode = |name: &str| json!({"permissions": {"default_mode": name}});
        let stays = |name: &str, own| {
            let (left, _) = gated(Scope::Project, Trust::Untrusted, own, &mode(name));
            left == mode(name)
        };
        assert!(stays("default", None) && stays("plan", None) && !stays("acceptEdits", None));
        let plan = Some(PermissionMode::Plan);
        assert!(stays("plan", plan) && !stays("default", plan));
        let auto = Some(PermissionMode::Auto);
        assert!(stays("acceptEdits", auto) && !stays("dontAsk", auto));
        assert!(!stays(
            "bypassPermissions",
            Some(PermissionMode::BypassPermissions)
        ));
    }

    #[test]
    fn the_notice_names_the_keys_and_the_flag() {
        let ignored = |key: &str, because| Ignored {
            key: key.to_owned(),
            scope: Scope::Project,
            because,
        };
        let workspace = Path::new("/w");
        let some = [
            ignored("hooks", IgnoredBecause::Untrusted),
            ignored("env", IgnoredBecause::Untrusted),
            ignored("trusted_directories", IgnoredBecause::Scope),
        ];
        assert_eq!(
            notice(workspace, &some).unwrap(),
            "workspace `/w` is not trusted; ignored from its settings: `hooks`, `env`. Run \
             `caliban trust` to trust it as it is now, or pass `--trust-workspace` for this run."
        );
        assert_eq!(notice(workspace, &some[2..]), None);
        let many: Vec<_> = (0..20)
            .map(|index| ignored(&format!("k{index}"), IgnoredBecause::Untrusted))
            .collect();
        assert!(
            notice(workspace, &many)
                .unwrap()
                .contains("`k11` and 8 more.")
        );
    }

    #[test]
    fn trusted_directories_cover_what_is_below_them() {
        let root = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(root.path()).unwrap();
        for name in ["dev/a", "dev-evil"] {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        let absolute = home.join("dev");
        for directory in ["~", "~/dev", absolute.to_str().unwrap(), "/"] {
            assert!(covers(directory, &home.join("dev/a"), &home), "{directory}");
        }
        assert!(covers("~/dev", &home.join("dev"), &home));
        for directory in ["~/dev", "dev", "", "~other", "~/nonsuch"] {
            assert!(
                !covers(directory, &home.join("dev-evil"), &home),
                "{directory}"
            );
        }
    }
}
