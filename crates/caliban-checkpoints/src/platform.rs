//! What systems differ in.

use std::ffi::{OsStr, OsString};
use std::fs::{Metadata, OpenOptions};
use std::io;

/// Files are created for the owner alone; links are not followed, and a pipe in the place of a
/// file is not waited for.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600);
        options.custom_flags(flags.bits().cast_signed());
    }
    options
}

#[cfg(unix)]
pub(crate) fn identity(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
pub(crate) fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// A file system that cannot make names durable has nothing to make durable by it.
pub(crate) fn settled(synced: io::Result<()>) -> io::Result<()> {
    match synced {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        other => other,
    }
}

pub(crate) fn bytes(name: &OsStr) -> &[u8] {
    name.as_encoded_bytes()
}

/// The name that these bytes are; nothing where the system has no such names.
#[cfg(unix)]
#[expect(
    clippy::unnecessary_wraps,
    reason = "other systems have names that are text"
)]
pub(crate) fn name(bytes: Vec<u8>) -> Option<OsString> {
    use std::os::unix::ffi::OsStringExt;
    Some(OsString::from_vec(bytes))
}

#[cfg(not(unix))]
pub(crate) fn name(bytes: Vec<u8>) -> Option<OsString> {
    String::from_utf8(bytes).ok().map(OsString::from)
}
