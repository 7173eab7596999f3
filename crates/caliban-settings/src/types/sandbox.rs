//! The sandbox as it is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounded;

/// The `sandbox` table. A key it does not know is an error: a typing error must not open it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// Confine shell commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Refuse to start where the system offers no sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_if_unavailable: Option<bool>,
    /// Do not ask about shell commands that are confined, where only the built-in rules would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_allow_bash_if_sandboxed: Option<bool>,
    /// Patterns of commands that run unconfined: of the program, or with a space of the whole
    /// command. Only a line that is one plain command counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_unsandboxed_commands: Option<Vec<String>>,
    /// In containers, make do with less: no user namespace of its own, no `/proc` of its own, or
    /// Landlock alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_weaker_nested_sandbox: Option<bool>,
    /// Where bubblewrap is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bwrap_path: Option<String>,
    /// Where `sandbox-exec` is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_exec_path: Option<String>,
    #[serde(skip_serializing_if = "SandboxFilesystem::is_empty")]
    pub filesystem: SandboxFilesystem,
    #[serde(skip_serializing_if = "SandboxNetwork::is_empty")]
    pub network: SandboxNetwork,
}

impl Sandbox {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Which files confined commands see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxFilesystem {
    /// If set, only these places and what programs need to start can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_read: Option<Vec<String>>,
    /// Hidden even where reading is allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny_read: Vec<String>,
    /// Instead of the workspace and further directories; an empty list is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_write: Option<Vec<String>>,
    /// Read-only even where writing is allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny_write: Vec<String>,
}

impl SandboxFilesystem {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What confined commands reach over the network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxNetwork {
    /// Hosts that may be reached; none where the list is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_domains: Option<Vec<String>>,
    /// The local port of a proxy that decides, and is all that is reached.
    #[serde(
        deserialize_with = "bounded::whole::<_, 1, 65535>",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = 1, max = 65535))]
    pub http_proxy_port: Option<u64>,
    /// Let sockets of programs outside be reached, but for our own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_unix_sockets: Option<bool>,
    /// Ports that others on this machine reach, on macOS. On Linux binding works and nobody
    /// outside reaches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_local_binding: Option<bool>,
    /// Mach services, on macOS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_mach_lookup: Option<Vec<String>>,
}

impl SandboxNetwork {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
