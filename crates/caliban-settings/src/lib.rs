//! Where configuration comes from: scopes and their files, merged with provenance, gated by
//! workspace trust, and followed while they change.

pub mod calendar;
mod claims;
mod document;
mod error;
mod hex;
pub mod import;
pub mod key_helper;
#[cfg(feature = "keyring")]
pub mod keyring;
mod legacy;
mod live;
mod load;
mod locations;
mod mcp_json;
pub mod mcp_names;
mod merge;
pub mod migrate;
mod policy;
mod private;
mod project;
mod reader;
mod router;
mod schema;
mod scope;
mod servers;
mod snapshot;
mod source;
mod trust;
mod types;
mod unbuilt;
pub mod variables;
pub mod write;

pub use claims::{Claims, claims};
pub use error::{Fault, SettingsError};
pub use hex::hex;
pub use live::{
    Change, Consent, LiveSettings, Loosening, Reload, SettingsWatcher, TakesEffect, loosens,
    takes_effect,
};
pub use load::{ForeignFiles, LoadRequest, load};
pub use locations::{LegacyFiles, Locations, Platform, ScopeFiles};
pub use mcp_json::McpConfig;
pub use merge::Provenance;
pub use policy::{Effect, Trust, gate};
pub use private::{create_private_file, ensure_private_dir, replace_private_file};
pub use project::project_of;
pub use router::{
    Breaker, FallbackOn, FoundRouterFile, Hedge, ImageLimits, LoadedRouterFile, ProviderBlock,
    ProviderId, Requirements, Route, RouteBudget, RouteEffort, RouteOrder, RouterConfig,
    RouterFile, RouterSource, Toggle, find_router_file, load_router_file,
};
pub use schema::{DescribedKey, KeyShape, described_keys, settings_schema};
pub use scope::{Scope, Sources};
pub use snapshot::{FileReport, Layer, LoadedSettings, ScopeRules, WrittenRule, value_at};
pub use trust::{
    FilesDigest, Ignored, IgnoredBecause, Lookup, Recorded, TREE_BYTES, TREE_ENTRIES, Tree,
    TreeError, TreeFile, TreeShape, TrustDecision, TrustError, TrustRecord, TrustStore,
    WorkspaceFiles, notice,
};
pub use types::{
    ApiKeyHelper, ApiKeyHelpers, AutoCompaction, EditorMode, EffortLevel, Fleet, McpOauth,
    McpPermissions, McpServer, McpTransport, Memory, ModelChoice, OauthMode, OnQuestion,
    ParentSettingsBehavior, PermissionMode, Permissions, PluginChoice, PluginMarketplaces, Plugins,
    QualifiedModel, RefreshInterval, Restart, RuleAction, RuleSpec, Sandbox, SandboxFilesystem,
    SandboxNetwork, Settings, StatusLine, Telemetry, Tools, Tui, TuiDiff, TuiFiles, TuiGlyphs,
    TuiMotion, TuiMouse, TuiNotify, TuiOnExit, TuiScreen, ViewMode, Worktree,
};
