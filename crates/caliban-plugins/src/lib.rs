//! Plugins: directories that bring skills, commands, agents, hooks, MCP servers and output styles
//! along. This crate reads them, says which of them count and what they would run, and keeps
//! account of what was installed from where. Nothing here runs a program or reaches a network.

mod archive;
mod digests;
mod discovery;
mod effects;
mod hooks;
mod installed;
mod links;
mod lock;
mod manifest;
mod market;
mod name;
mod package;
mod places;
mod record;
mod relative;
mod secrets;
mod servers;
mod skeleton;
mod staging;
mod state_file;
mod survey;

pub use archive::{ArchiveError, ArchiveKind, unpack};
pub use digests::DigestCache;
pub use discovery::{Found, Owner, Roots, Rules, Standing, Workspace, discover};
pub use effects::{Difference, Effects};
pub use hooks::HookTable;
pub use installed::{Installed, InstalledPlugins, data_directory};
pub use links::follow_links;
pub use lock::{LockError, Locked, PluginLock};
pub use manifest::{
    CommandSource, Declared, Dependency, Form, Inlinable, Listing, Manifest, ManifestError,
    OptionKind, Requires, UserOption, written_value,
};
pub use market::{
    Acknowledgements, AddressError, Entry, EntrySource, GitAddress, INDEX_BYTES, INDEX_FILES,
    IndexError, KnownMarketplace, KnownMarketplaces, MarketKey, MarketPolicy, MarketSource,
    Marketplace, Origin, Refusal, Renamed, SIGNATURE_BYTES, SIGNATURE_SUFFIX, SignatureError,
};
pub use name::{InvalidName, PluginName};
pub use package::{MANIFESTS, Naming, Package, PackageError};
pub use places::OwnPlaces;
pub use record::{Acknowledged, TrustRecords};
pub use relative::{LeadsOut, RelativePath};
pub use secrets::PluginSecrets;
pub use servers::{ServerTable, unsaid as unsaid_value, variables as server_variables};
pub use skeleton::{SkeletonError, create as create_skeleton};
pub use staging::{Staging, StagingError};
pub use state_file::StateError;
pub use survey::{Cost, Survey};
