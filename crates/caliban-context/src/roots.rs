//! The directories that skills, styles and commands are looked for in, in order of precedence.

use std::path::{Path, PathBuf};

use crate::options::{Customization, Options};
use crate::origin::Origin;
use crate::places::{Places, project_part};
use crate::source::Fence;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) fence: Fence,
}

impl Root {
    pub(crate) fn of_user(path: PathBuf) -> Self {
        Self {
            path,
            origin: Origin::User,
            fence: Fence::Open,
        }
    }

    /// A directory of a workspace, which links must not lead out of.
    pub(crate) fn of_workspace(workspace: &Path, path: PathBuf, origin: Origin) -> Self {
        let workspace = workspace.canonicalize();
        Self {
            fence: Fence::Within(workspace.unwrap_or_else(|_| path.clone())),
            path,
            origin,
        }
    }
}

/// The project's, the user's and the plugins' directories of this name.
pub(crate) fn roots(places: &Places, options: &Options, part: &str) -> Vec<Root> {
    let project = || {
        let path = project_part(&places.project, part);
        Root::of_workspace(&places.project, path, Origin::Project)
    };
    let plugins = places.plugins.iter().map(|plugin| {
        let origin = Origin::Plugin(plugin.name.clone());
        Root::of_workspace(&plugin.path, plugin.path.join(part), origin)
    });
    match options.customization {
        Customization::BuiltIn => Vec::new(),
        Customization::Plugins => plugins.collect(),
        Customization::All => [project(), Root::of_user(places.config.join(part))]
            .into_iter()
            .chain(plugins)
            .collect(),
    }
}
