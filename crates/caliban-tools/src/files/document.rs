//! A text file open for editing: decoded, and stored again the way it was.

use caliban_model::CancellationToken;

use super::directory::Parents;
use super::error::FileError;
use super::measure;
use super::opener::Place;
use super::state::FileState;
use super::target::Target;
use super::text::{Encoding, Fidelity, binary_kind};

/// The largest file that can be edited; a few copies of it are held.
const EDIT_LIMIT: u64 = 32 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Document<'a> {
    place: &'a Place,
    /// Absent while the directory is.
    target: Option<Target<'a>>,
    encoding: Encoding,
    pub(super) text: String,
}

/// What to do about a file that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Refuse,
    /// Start with an empty text; saving creates the directories too.
    Create,
}

/// Whether the file was there when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Existing,
    New,
}

impl<'a> Document<'a> {
    /// Refuses what changed since it was read and what is not text throughout, since storing it
    /// again would damage it.
    pub(super) fn open(
        place: &'a Place,
        missing: Missing,
        state: &FileState,
        stop: &CancellationToken,
    ) -> Result<Self, FileError> {
        let target = match (Target::locate(place, Parents::MustExist), missing) {
            (Err(FileError::NotFound(_)), Missing::Create) => None,
            (located, Missing::Create | Missing::Refuse) => Some(located?),
        };
        let bytes = match &target {
            Some(target) => content(target, missing, state, stop)?,
            None => Vec::new(),
        };
        let encoding = Encoding::of(&bytes);
        if let Some(kind) = binary_kind(&bytes) {
            return Err(FileError::Unsuited(format!(
                "`{}` is {kind}, not text that can be edited.",
                place.shown
            )));
        }
        match encoding.decode(&bytes) {
            (text, Fidelity::Exact) => Ok(Self {
                place,
                target,
                encoding,
                text,
            }),
            (_, Fidelity::Replaced) => Err(FileError::Unsuited(format!(
                "`{}` holds bytes that are not valid text, which editing would damage. Use Bash \
                 with `sed` or `perl`, or convert it with `iconv` first.",
                place.shown
            ))),
        }
    }

    pub(super) fn origin(&self) -> Origin {
        let existing = self
            .target
            .as_ref()
            .and_then(|target| target.existing.as_ref());
        existing.map_or(Origin::New, |_| Origin::Existing)
    }

    pub(super) fn save(
        &self,
        text: &str,
        state: &FileState,
        stop: &CancellationToken,
    ) -> Result<(), FileError> {
        let bytes = self.encoding.encode(text);
        if let Some(target) = &self.target {
            return target.save(&bytes, state, stop);
        }
        let target = Target::locate(self.place, Parents::Create)?;
        match target.existing {
            Some(_) => Err(target.changed()),
            None => target.save(&bytes, state, stop),
        }
    }
}

/// The bytes of the file, known to be those that were read if any were.
fn content(
    target: &Target<'_>,
    missing: Missing,
    state: &FileState,
    stop: &CancellationToken,
) -> Result<Vec<u8>, FileError> {
    match (&target.existing, missing) {
        (Some(existing), Missing::Refuse | Missing::Create) => {
            // Results and errors of an edit show what is around it.
            target.place.check_readable(existing)?;
            let bytes = existing
                .read_all(target.place, EDIT_LIMIT, stop)?
                .ok_or_else(|| too_large(target.place, existing.meta.len()))?;
            target.check_content(state, existing, &bytes)?;
            Ok(bytes)
        }
        (None, Missing::Refuse) => Err(target.missing()),
        (None, Missing::Create) => Ok(Vec::new()),
    }
}

fn too_large(place: &Place, size: u64) -> FileError {
    FileError::Unsuited(format!(
        "`{}` has {}; at most {} can be edited. Use Bash with `sed` instead.",
        place.shown,
        measure::size(size),
        measure::size(EDIT_LIMIT)
    ))
}
