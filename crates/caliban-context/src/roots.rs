//! The directories that skills, styles and commands are looked for in, in order of precedence.

use std::path::{Path, PathBuf};

use crate::options::{Customization, Options};
use crate::origin::Origin;
use crate::places::{Places, PluginPlace, Surface, project_part};
use crate::source::Fence;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) fence: Fence,
    /// What the only command in it is called, if not as its file.
    pub(crate) name: Option<String>,
}

impl Root {
    pub(crate) fn of_user(path: PathBuf) -> Self {
        Self {
            path,
            origin: Origin::User,
            fence: Fence::Open,
            name: None,
        }
    }

    /// A directory of a workspace, which links must not lead out of.
    pub(crate) fn of_workspace(workspace: &Path, path: PathBuf, origin: Origin) -> Self {
        let workspace = workspace.canonicalize();
        Self {
            fence: Fence::Within(workspace.unwrap_or_else(|_| path.clone())),
            path,
            origin,
            name: None,
        }
    }

    /// The directories of a plugin for one purpose.
    fn of_plugin(plugin: &PluginPlace, surface: Surface) -> Vec<Self> {
        let origin = || Origin::Plugin(plugin.name.clone());
        let root = |path: &PathBuf| Self::of_workspace(&plugin.path, path.clone(), origin());
        match surface {
            Surface::Skills => plugin.skills.iter().map(root).collect(),
            // A plugin's agents are read with the plugin.
            Surface::Agents => Vec::new(),
            Surface::Styles => plugin.styles.iter().map(root).collect(),
            Surface::Commands => plugin
                .commands
                .iter()
                .map(|place| Self {
                    name: place.name.clone(),
                    ..root(&place.path)
                })
                .collect(),
        }
    }

    /// The plugin whose it is, and where that lies.
    pub(crate) fn plugin(&self) -> Option<(&str, &Path)> {
        match (&self.origin, &self.fence) {
            (Origin::Plugin(name), Fence::Within(root)) => Some((name, root)),
            _ => None,
        }
    }
}

/// The project's, the user's and the plugins' directories for one purpose.
pub(crate) fn roots(places: &Places, options: &Options, surface: Surface) -> Vec<Root> {
    let part = surface.directory();
    let project = || {
        let path = project_part(&places.project, part);
        Root::of_workspace(&places.project, path, Origin::Project)
    };
    let plugins = places.plugins.iter();
    let plugins = plugins.flat_map(|plugin| Root::of_plugin(plugin, surface));
    match options.customization {
        Customization::BuiltIn => Vec::new(),
        Customization::Plugins => plugins.collect(),
        Customization::All => [project(), Root::of_user(places.config.join(part))]
            .into_iter()
            .chain(plugins)
            .collect(),
    }
}
