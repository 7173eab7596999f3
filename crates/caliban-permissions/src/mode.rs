//! Permission modes: what becomes of a call that the rules would ask about.

use caliban_settings::{PermissionMode, RuleAction};
use serde::{Deserialize, Serialize};

use crate::evaluation::Decision;
use crate::tools;

/// How calls are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Regime {
    /// By the rules, then by the mode.
    Rules(PermissionMode),
    /// Not at all: `--no-permissions`.
    Disabled,
}

/// Everything that chooses a regime.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModeRequest {
    /// `--permission-mode`.
    pub flag: Option<PermissionMode>,
    /// `CALIBAN_DEFAULT_PERMISSION_MODE`.
    pub variable: Option<PermissionMode>,
    /// `permissions.default_mode`.
    pub setting: Option<PermissionMode>,
    pub latch: Latch,
    pub gating: Gating,
    pub enforcement: Enforcement,
}

/// `--allow-dangerously-skip-permissions`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Latch {
    #[default]
    Absent,
    Given,
}

/// `--no-permissions`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gating {
    #[default]
    On,
    Off,
}

/// `permissions.enforce`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Enforcement {
    #[default]
    Off,
    On,
}

/// Why a run must not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ModeError {
    #[error(
        "mode `bypassPermissions` allows every tool call and needs `--allow-dangerously-skip-permissions`; `dontAsk` or `acceptEdits` may be enough"
    )]
    Unlatched,
    #[error(
        "`permissions.enforce` is set, so `--allow-dangerously-skip-permissions` cannot be used; leave the flag out"
    )]
    EnforcedLatch,
    #[error(
        "`permissions.enforce` is set, so the mode cannot be `bypassPermissions`; choose another"
    )]
    EnforcedMode,
    #[error(
        "`permissions.enforce` is set, so neither `--no-permissions` nor `CALIBAN_NO_PERMISSIONS` can be used; leave it out"
    )]
    EnforcedGating,
}

/// What a mode makes of a call that would be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relaxed {
    Allow,
    Ask,
    /// The classifier says.
    Classify,
}

/// `--auto-allow`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoAllow {
    #[default]
    Off,
    On,
}

impl ModeRequest {
    /// The flag before the variable before the setting.
    pub fn resolve(&self) -> Result<Regime, ModeError> {
        let mode = self
            .flag
            .or(self.variable)
            .or(self.setting)
            .unwrap_or(PermissionMode::Default);
        if self.enforcement == Enforcement::On {
            if self.latch == Latch::Given {
                return Err(ModeError::EnforcedLatch);
            }
            if self.gating == Gating::Off {
                return Err(ModeError::EnforcedGating);
            }
            if mode == PermissionMode::BypassPermissions
                || self.setting == Some(PermissionMode::BypassPermissions)
            {
                return Err(ModeError::EnforcedMode);
            }
        }
        if self.gating == Gating::Off {
            return Ok(Regime::Disabled);
        }
        if mode == PermissionMode::BypassPermissions && self.latch == Latch::Absent {
            return Err(ModeError::Unlatched);
        }
        Ok(Regime::Rules(mode))
    }
}

impl Regime {
    /// As frames and logs call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Rules(mode) => mode.as_str(),
        }
    }
}

/// What a mode makes of a verdict. Only what would be asked changes, and what lies in a protected
/// place is asked in every mode.
pub fn relax(
    mode: PermissionMode,
    auto_allow: AutoAllow,
    tool: &str,
    decision: &Decision,
) -> Relaxed {
    debug_assert_eq!(decision.action, RuleAction::Ask);
    if decision.why.outlasts_modes() {
        return Relaxed::Ask;
    }
    if auto_allow == AutoAllow::On {
        return Relaxed::Allow;
    }
    match mode {
        PermissionMode::AcceptEdits if tools::is_editor(tool) => Relaxed::Allow,
        PermissionMode::DontAsk | PermissionMode::BypassPermissions => Relaxed::Allow,
        PermissionMode::Auto => Relaxed::Classify,
        PermissionMode::Default | PermissionMode::AcceptEdits | PermissionMode::Plan => {
            Relaxed::Ask
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_beats_a_variable_beats_a_setting() {
        let all = ModeRequest {
            flag: Some(PermissionMode::Plan),
            variable: Some(PermissionMode::DontAsk),
            setting: Some(PermissionMode::AcceptEdits),
            ..ModeRequest::default()
        };
        let without_flag = ModeRequest { flag: None, ..all };
        let setting = ModeRequest {
            variable: None,
            ..without_flag
        };
        for (request, mode) in [
            (all, PermissionMode::Plan),
            (without_flag, PermissionMode::DontAsk),
            (setting, PermissionMode::AcceptEdits),
            (ModeRequest::default(), PermissionMode::Default),
        ] {
            assert_eq!(request.resolve(), Ok(Regime::Rules(mode)));
        }
    }

    #[test]
    fn bypass_needs_its_latch_and_enforcement_refuses_it() {
        let bypass = ModeRequest {
            setting: Some(PermissionMode::BypassPermissions),
            ..ModeRequest::default()
        };
        let latched = ModeRequest {
            latch: Latch::Given,
            ..bypass
        };
        assert_eq!(bypass.resolve(), Err(ModeError::Unlatched));
        assert_eq!(
            latched.resolve(),
            Ok(Regime::Rules(PermissionMode::BypassPermissions))
        );
        let enforced = |request: ModeRequest| ModeRequest {
            enforcement: Enforcement::On,
            ..request
        };
        assert_eq!(enforced(latched).resolve(), Err(ModeError::EnforcedLatch));
        assert_eq!(enforced(bypass).resolve(), Err(ModeError::EnforcedMode));
        let overridden = ModeRequest {
            flag: Some(PermissionMode::Default),
            ..enforced(bypass)
        };
        assert_eq!(overridden.resolve(), Err(ModeError::EnforcedMode));
        let off = ModeRequest {
            gating: Gating::Off,
            ..ModeRequest::default()
        };
        assert_eq!(off.resolve(), Ok(Regime::Disabled));
        assert_eq!(enforced(off).resolve(), Err(ModeError::EnforcedGating));
    }
}
