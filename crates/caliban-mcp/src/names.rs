//! The names of tools, as rules and settings know them, and digests.

use caliban_settings::hex;
pub(crate) use caliban_settings::mcp_names::{prefix, server_parts, tool_names};
use sha2::{Digest, Sha256};

/// A digest in hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
