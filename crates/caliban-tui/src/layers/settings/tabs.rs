//! The groups that settings are shown in.

use ratatui_core::layout::Rect;

use crate::canvas::Canvas;
use crate::settings_desk::SettingRow;
use crate::theme::Theme;

/// A group of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Model,
    Permissions,
    Hooks,
    Mcp,
    Memory,
    Interface,
    Auth,
    Other,
    /// Everything.
    All,
    /// Everything that is set.
    Effective,
}

const TABS: [Tab; 10] = [
    Tab::Model,
    Tab::Permissions,
    Tab::Hooks,
    Tab::Mcp,
    Tab::Memory,
    Tab::Interface,
    Tab::Auth,
    Tab::Other,
    Tab::All,
    Tab::Effective,
];

impl Tab {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Model => "Model",
            Self::Permissions => "Permissions",
            Self::Hooks => "Hooks",
            Self::Mcp => "MCP",
            Self::Memory => "Memory",
            Self::Interface => "UI",
            Self::Auth => "Auth",
            Self::Other => "Other",
            Self::All => "All",
            Self::Effective => "Effective",
        }
    }

    fn step(self, by: usize) -> Self {
        let place = TABS.iter().position(|tab| *tab == self).unwrap_or_default();
        let tab = TABS.get((place + by) % TABS.len());
        tab.copied().unwrap_or(self)
    }

    pub(super) fn next(self) -> Self {
        self.step(1)
    }

    pub(super) fn previous(self) -> Self {
        self.step(TABS.len() - 1)
    }

    pub(super) fn holds(self, row: &SettingRow) -> bool {
        match self {
            Self::All => true,
            Self::Effective => row.effective.is_some(),
            tab => Self::of(&row.key) == tab,
        }
    }

    /// Where a key belongs.
    fn of(key: &str) -> Self {
        let top = key.split('.').next().unwrap_or(key);
        match top {
            "agent"
            | "model"
            | "fallback_model"
            | "model_overrides"
            | "available_models"
            | "effort"
            | "max_retries"
            | "max_turns"
            | "max_tokens"
            | "router"
            | "auto_compact_threshold"
            | "micro_compact_enabled"
            | "tool_result_cap_chars"
            | "min_cache_block_tokens" => Self::Model,
            "permissions"
            | "sandbox"
            | "disable_auto_mode"
            | "additional_directories"
            | "trusted_directories"
            | "parent_settings_behavior" => Self::Permissions,
            "hooks"
            | "disable_all_hooks"
            | "allow_managed_hooks_only"
            | "allowed_http_hook_urls"
            | "http_hook_allowed_env_vars" => Self::Hooks,
            "mcp_servers" | "tools" => Self::Mcp,
            "memory" | "claude_md_excludes" | "claude_skills" => Self::Memory,
            "output_style" | "editor_mode" | "view_mode" | "statusLine" | "tui" => Self::Interface,
            "api_key_helper" => Self::Auth,
            _ => Self::Other,
        }
    }

    /// All of them in one row, the one that is shown in brackets.
    pub(super) fn draw(self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let mut x = area.x;
        for tab in TABS {
            let (text, style) = if tab == self {
                (format!("[{}]", tab.title()), theme.palette.strong)
            } else {
                (format!(" {} ", tab.title()), theme.palette.dim)
            };
            x = canvas.text(x, area.y, area.right(), &text, style);
        }
    }
}
