//! The permission modes of this dialect, and what they are here.

use std::str::FromStr;

use caliban_permissions::Regime;
use caliban_settings::PermissionMode;

/// What happens to calls that no rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Default,
    AcceptEdits,
    Plan,
    Auto,
    /// What would be asked is refused.
    DontAsk,
    /// Nothing is asked; what is denied stays denied.
    BypassPermissions,
}

impl Mode {
    const ALL: [Self; 6] = [
        Self::Default,
        Self::AcceptEdits,
        Self::Plan,
        Self::Auto,
        Self::DontAsk,
        Self::BypassPermissions,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::Auto => "auto",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
        }
    }

    /// The mode of ours that judges alike. Ours of the name `dontAsk` allows what would be asked
    /// and keeps every denial, which is what this dialect calls bypassing.
    pub(crate) fn ours(self) -> PermissionMode {
        match self {
            Self::Default | Self::DontAsk => PermissionMode::Default,
            Self::AcceptEdits => PermissionMode::AcceptEdits,
            Self::Plan => PermissionMode::Plan,
            Self::Auto => PermissionMode::Auto,
            Self::BypassPermissions => PermissionMode::DontAsk,
        }
    }

    /// The mode that a regime is, where this dialect has not set it.
    pub(crate) fn of(regime: Regime) -> Self {
        match regime {
            Regime::Disabled => Self::BypassPermissions,
            Regime::Rules(mode) => match mode {
                PermissionMode::Default => Self::Default,
                PermissionMode::AcceptEdits => Self::AcceptEdits,
                PermissionMode::Plan => Self::Plan,
                PermissionMode::Auto => Self::Auto,
                PermissionMode::DontAsk | PermissionMode::BypassPermissions => {
                    Self::BypassPermissions
                }
            },
        }
    }

    /// The mode to show: the one that was set, unless the session has left or entered plan mode
    /// by itself.
    pub(crate) fn shown(self, regime: Regime) -> Self {
        let found = Self::of(regime);
        match (self, found) {
            (Self::Plan, _) | (_, Self::Plan) => found,
            (set, _) => set,
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "manual" {
            return Ok(Self::Default);
        }
        let known = Self::ALL.into_iter().find(|mode| mode.as_str() == text);
        known.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|mode| mode.as_str()).collect();
            format!(
                "there is no permission mode `{text}`; use {}",
                names.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_known_by_their_names() {
        for mode in Mode::ALL {
            assert_eq!(mode.as_str().parse(), Ok(mode));
        }
        assert_eq!("manual".parse(), Ok(Mode::Default));
        assert!("banana".parse::<Mode>().is_err());
    }

    #[test]
    fn leaving_plan_mode_shows() {
        let default = Regime::Rules(PermissionMode::Default);
        assert_eq!(Mode::Plan.shown(default), Mode::Default);
        assert_eq!(Mode::DontAsk.shown(default), Mode::DontAsk);
        let plan = Regime::Rules(PermissionMode::Plan);
        assert_eq!(Mode::Default.shown(plan), Mode::Plan);
    }
}
