//! Where configuration comes from.

mod document;
mod error;
pub mod import;
pub mod key_helper;
mod legacy;
mod live;
mod load;
mod locations;
mod merge;
pub mod migrate;
mod policy;
mod private;
mod router;
mod schema;
mod scope;
mod servers;
mod snapshot;
mod source;
mod trust;
mod types;
pub mod variables;
pub mod write;

pub use error::{Fault, SettingsError};
pub use live::*;
pub use load::{LoadRequest, load};
pub use locations::{LegacyFiles, Locations, Platform, ScopeFiles};
pub use merge::Provenance;
pub use policy::{Effect, Trust, gate};
pub use private::{create_private_file, ensure_private_dir};
pub use router::*;
pub use schema::settings_schema;
pub use scope::{Scope, Sources};
pub use snapshot::{FileReport, Layer, LoadedSettings, ScopeRules};
pub use trust::{
    FilesDigest, Ignored, IgnoredBecause, Lookup, Recorded, TrustDecision, TrustError, TrustRecord,
    TrustStore, WorkspaceFiles, notice,
};
pub use types::*;
