//! Whether installed plugins are still what was agreed to.

use std::collections::BTreeMap;
use std::path::PathBuf;

use caliban_plugins::{Installed, PluginName};
use caliban_settings::Tree;

use super::manage::{Manager, changes};
use super::problem::ManageError;

/// What became of an installed plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// All files are those that were agreed to.
    Same,
    /// Files are others, new or gone, each with a mark; none where that was not written down.
    Changed(Vec<String>),
    /// It is not there or cannot be read.
    Gone(String),
    /// Nobody agreed to these files.
    Unrecorded,
}

impl Manager<'_> {
    /// Compares every file of the installed plugins, or of one, with what was written down.
    pub fn verify(&self, name: Option<&str>) -> Result<BTreeMap<PluginName, Checked>, ManageError> {
        let mut installed = self.installed()?;
        if let Some(name) = name {
            installed.retain(|known, _| known.as_str() == name);
            if installed.is_empty() {
                return Err(ManageError::NotInstalled(name.to_owned()));
            }
        }
        let check = |(name, installed): (PluginName, Installed)| {
            let checked = self.check(&name, &installed);
            (name, checked)
        };
        Ok(installed.into_iter().map(check).collect())
    }

    fn check(&self, name: &PluginName, installed: &Installed) -> Checked {
        let tree = match Tree::read(&self.place(name)) {
            Ok(tree) => tree,
            Err(error) => return Checked::Gone(error.to_string()),
        };
        if tree.digest != installed.digest {
            let before: BTreeMap<PathBuf, String> = installed.files.clone();
            if before.is_empty() {
                return Checked::Changed(Vec::new());
            }
            return Checked::Changed(changes(&before, &tree));
        }
        if installed.origin.is_gated() && !self.is_recorded(name, &tree.digest) {
            return Checked::Unrecorded;
        }
        Checked::Same
    }
}
