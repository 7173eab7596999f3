//! What a session's gate is made of, as the operator chose it.

use std::path::{Path, PathBuf};

use caliban_agent::Workspace;
use caliban_permissions::{
    AuditLog, AutoAllow, AutoRules, Judge, Places, Protected, Regime, Rule, RuleBook,
};
use caliban_settings::{Locations, PermissionMode};

/// Everything that decides which calls may run.
#[derive(Debug, Clone)]
pub struct Permissions {
    pub book: RuleBook,
    pub regime: Regime,
    pub auto_allow: AutoAllow,
    /// The lists of auto mode; none where its classifier is switched off.
    pub auto: Option<AutoRules>,
    pub audit: Option<AuditLog>,
    pub protected: Protected,
}

impl Permissions {
    /// The built-in rules, nothing asked, nothing logged.
    pub fn unattended() -> Self {
        Self {
            book: RuleBook::of(std::iter::empty::<Rule>()),
            regime: Regime::Rules(PermissionMode::Default),
            auto_allow: AutoAllow::On,
            auto: None,
            audit: None,
            protected: Protected::default(),
        }
    }
}

/// A judge for a workspace.
pub fn judge(
    book: RuleBook,
    mut protected: Protected,
    workspace: Workspace,
    home: Option<PathBuf>,
) -> Judge {
    let places = Places::new(workspace, home);
    protected.add_git_directory(&places.project);
    Judge {
        book,
        places,
        protected,
    }
}

/// The protected places of this user.
pub fn protected(locations: &Locations) -> Protected {
    let own = [
        locations.config_dir(),
        locations.state_dir(),
        locations.data_dir(),
        locations.managed_dir(),
    ];
    let tokens = locations.mcp_tokens();
    Protected::new(
        Some(locations.home().to_owned()),
        own.into_iter().map(Path::to_owned),
        [tokens],
    )
}
