//! The directories that skills, styles and commands are looked for in, in order of precedence.

use std::path::{Path, PathBuf};

use crate::expansion::PluginHome;
use crate::options::{Customization, Options};
use crate::origin::Origin;
use crate::places::{CommandSays, Places, PluginPlace, Surface, project_part};
use crate::source::Fence;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) path: PathBuf,
    pub(crate) origin: Origin,
    pub(crate) fence: Fence,
    /// What the only command in it is called, if not as its file.
    pub(crate) name: Option<String>,
    /// What is said of that command beside its file.
    pub(crate) says: CommandSays,
    /// The plugin whose it is.
    pub(crate) home: Option<PluginHome>,
    pub(crate) writing: Writing,
}

/// Whom the files of a root are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writing {
    Ours,
    /// Another program, which takes more than we would.
    Foreign,
}

impl Root {
    /// The same with files that are written for another program.
    pub(crate) fn foreign(self) -> Self {
        Self {
            writing: Writing::Foreign,
            ..self
        }
    }

    pub(crate) fn of_user(path: PathBuf) -> Self {
        Self {
            path,
            origin: Origin::User,
            fence: Fence::Open,
            name: None,
            says: CommandSays::default(),
            home: None,
            writing: Writing::Ours,
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
            says: CommandSays::default(),
            home: None,
            writing: Writing::Ours,
        }
    }

    /// The directories of a plugin for one purpose.
    fn of_plugin(plugin: &PluginPlace, surface: Surface) -> Vec<Self> {
        let origin = || Origin::Plugin(plugin.name.clone());
        let root = |path: &PathBuf| {
            let root = Self::of_workspace(&plugin.path, path.clone(), origin());
            let home = match &root.fence {
                Fence::Within(real) => real.clone(),
                Fence::Open => plugin.path.clone(),
            };
            Self {
                home: Some(PluginHome {
                    root: home,
                    data: plugin.data.clone(),
                }),
                ..root
            }
        };
        match surface {
            Surface::Skills => plugin.skills.iter().map(root).collect(),
            Surface::Agents => plugin.agents.iter().map(root).collect(),
            Surface::Styles => plugin.styles.iter().map(root).collect(),
            Surface::Commands => plugin
                .commands
                .iter()
                .map(|place| Self {
                    name: place.name.clone(),
                    says: place.says.clone(),
                    ..root(&place.path)
                })
                .collect(),
        }
    }

    /// The plugin whose it is, and where that lies.
    pub(crate) fn plugin(&self) -> Option<(&str, &Path)> {
        match (&self.origin, &self.home) {
            (Origin::Plugin(name), Some(home)) => Some((name, &home.root)),
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
