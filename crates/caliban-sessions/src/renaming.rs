//! Giving a session another name: its files are called so from then on, its id stays.

use crate::error::{Error, Warning};
use crate::name::SessionName;
use crate::store::Store;
use crate::writer::Writer;

impl Store {
    /// Renames a session that nobody is writing.
    pub fn rename(&self, from: &SessionName, to: &SessionName) -> Result<Vec<Warning>, Error> {
        let mut writer = self.open(from)?.writer;
        let warnings = self.rename_open(&mut writer, to)?;
        writer.close()?;
        Ok(warnings)
    }

    /// Renames a session for who is writing it. After an error it is called what it was.
    pub fn rename_open(
        &self,
        writer: &mut Writer,
        to: &SessionName,
    ) -> Result<Vec<Warning>, Error> {
        if writer.name() == to {
            return Ok(Vec::new());
        }
        let paths = self.paths(to);
        let lock = self.claim(&paths)?;
        writer.move_to(paths, lock)
    }
}
