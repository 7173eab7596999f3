//! What every event says about the session it happens in.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use caliban_settings::PermissionMode;
use serde_json::Value;

/// The session as it is at the moment of asking.
pub trait SessionFacts: Send + Sync + Debug {
    fn session_id(&self) -> Arc<str>;

    fn cwd(&self) -> PathBuf;

    fn permission_mode(&self) -> PermissionMode;

    /// Where the conversation is written down, if it is.
    fn transcript_path(&self) -> Option<PathBuf>;

    /// The event as hooks of this session read it.
    fn worded(&self, event: Value) -> Value {
        event
    }
}

/// How events are told to hooks that know other names.
pub trait EventWording: Send + Sync + Debug {
    fn worded(&self, event: Value) -> Value;
}
