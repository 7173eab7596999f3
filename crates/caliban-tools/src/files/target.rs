//! A file about to be written: where it goes, what is there now, and whether that is still what
//! was read.

use std::ffi::OsString;

use caliban_model::CancellationToken;

use super::directory::{Directory, Parents};
use super::error::FileError;
use super::opener::{Opened, Place, Stoppable};
use super::save::save;
use super::state::{FileState, Fingerprint, Seen};

#[derive(Debug)]
pub(super) struct Target<'a> {
    pub(super) place: &'a Place,
    pub(super) existing: Option<Opened>,
    directory: Directory,
    name: OsString,
}

impl<'a> Target<'a> {
    /// Finds what is there now; it must be a regular file or nothing.
    pub(super) fn locate(place: &'a Place, parents: Parents) -> Result<Self, FileError> {
        let (directory, name) = place.directory(parents)?;
        Ok(Self {
            existing: place.open_in(&directory, name)?,
            name: name.to_owned(),
            place,
            directory,
        })
    }

    /// The error for a file that should be there.
    pub(super) fn missing(&self) -> FileError {
        self.place.missing_in(&self.directory, &self.name)
    }

    /// Refuses a file that is no longer what was read, reading it through if need be.
    pub(super) fn check_unchanged(
        &self,
        state: &FileState,
        stop: &CancellationToken,
    ) -> Result<(), FileError> {
        let Some(existing) = &self.existing else {
            return Ok(());
        };
        self.compare(state, existing, || {
            Fingerprint::read(Stoppable::new(&existing.file, stop))
                .map_err(|error| FileError::io("read", &self.place.shown, error))
        })
    }

    /// The same for a file whose content is at hand.
    pub(super) fn check_content(
        &self,
        state: &FileState,
        existing: &Opened,
        bytes: &[u8],
    ) -> Result<(), FileError> {
        self.compare(state, existing, || Ok(Fingerprint::of(bytes)))
    }

    fn compare(
        &self,
        state: &FileState,
        existing: &Opened,
        fingerprint: impl FnOnce() -> Result<Fingerprint, FileError>,
    ) -> Result<(), FileError> {
        let same = match state.seen(self.place.real()) {
            None => true,
            Some(Seen::Whole(seen)) => fingerprint()? == seen,
            Some(Seen::Part(seen)) => existing.stamp() == seen,
        };
        if !same {
            return Err(self.changed());
        }
        Ok(())
    }

    /// Writes the file and remembers what it now holds. Nothing is written once the call is
    /// cancelled or the file has changed since it was located.
    pub(super) fn save(
        &self,
        bytes: &[u8],
        state: &FileState,
        stop: &CancellationToken,
    ) -> Result<(), FileError> {
        if stop.is_cancelled() {
            return Err(FileError::Cancelled);
        }
        let now = self.place.open_in(&self.directory, &self.name)?;
        if now.as_ref().map(Opened::stamp) != self.existing.as_ref().map(Opened::stamp) {
            return Err(self.changed());
        }
        save(&self.directory, &self.name, now.as_ref(), bytes)
            .map_err(|error| FileError::io("written", &self.place.shown, error))?;
        state.record(self.place.real(), Seen::Whole(Fingerprint::of(bytes)));
        Ok(())
    }

    pub(super) fn changed(&self) -> FileError {
        FileError::Changed {
            shown: self.place.shown.clone(),
        }
    }
}
