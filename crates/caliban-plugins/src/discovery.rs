//! Which plugins there are, and which of them count.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use caliban_settings::PluginChoice;
use semver::Version;

use crate::digests::DigestCache;
use crate::installed::Installed;
use crate::market::MarketPolicy;
use crate::name::PluginName;
use crate::package::{Naming, Package};

/// The most plugins of one directory.
const MOST: usize = 256;

/// Whose a plugin is. Earlier ones take the place of later ones of their name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The organisation's: always used, never replaced.
    Managed,
    /// Named for this run.
    Given,
    Project,
    User,
}

impl Owner {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Given => "given",
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// Where plugins are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    pub managed: PathBuf,
    pub project: PathBuf,
    pub user: PathBuf,
    /// Plugins themselves, not directories of them.
    pub given: Vec<PathBuf>,
}

/// Whether the workspace may bring plugins along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workspace {
    Trusted,
    Untrusted,
}

/// What decides whether a plugin counts.
#[derive(Debug, Clone)]
pub struct Rules<'a> {
    pub workspace: Workspace,
    /// The only ones that are used.
    pub enabled: Option<PluginChoice>,
    pub disabled: &'a [String],
    pub version: Version,
    /// `linux`, `macos` or `windows`.
    pub platform: &'a str,
    /// What was installed into the user's directory.
    pub installed: &'a BTreeMap<PluginName, Installed>,
    /// The project that the run is about.
    pub project: &'a Path,
    pub markets: &'a MarketPolicy,
    /// Files that need not be read again to be recognised.
    pub digests: &'a DigestCache,
}

/// A plugin that was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// As its directory is called.
    pub name: String,
    pub path: PathBuf,
    pub owner: Owner,
    pub standing: Standing,
    pub installed: Option<Installed>,
}

/// Whether a plugin counts, and why not.
#[derive(Debug, Clone)]
pub enum Standing {
    Active(Box<Package>),
    Disabled(Box<Package>),
    /// One of its name has precedence.
    Shadowed(Owner),
    /// Nobody agreed to it.
    Untrusted(String),
    /// Not for this version or system.
    Unsuitable(String),
    Broken(String),
}

impl Found {
    /// The plugin, where it counts.
    pub fn active(&self) -> Option<&Package> {
        match &self.standing {
            Standing::Active(package) => Some(package),
            Standing::Disabled(_)
            | Standing::Shadowed(_)
            | Standing::Untrusted(_)
            | Standing::Unsuitable(_)
            | Standing::Broken(_) => None,
        }
    }

    /// The plugin, where it could be read.
    pub fn package(&self) -> Option<&Package> {
        match &self.standing {
            Standing::Active(package) | Standing::Disabled(package) => Some(package),
            Standing::Shadowed(_)
            | Standing::Untrusted(_)
            | Standing::Unsuitable(_)
            | Standing::Broken(_) => None,
        }
    }
}

/// Finds all plugins, those that have precedence first.
pub fn discover(roots: &Roots, rules: &Rules<'_>) -> Vec<Found> {
    let mut places: Vec<(Owner, PathBuf)> = Vec::new();
    let mut add = |owner, paths: Vec<PathBuf>| {
        places.extend(paths.into_iter().map(|path| (owner, path)));
    };
    add(Owner::Managed, directories(&roots.managed));
    add(Owner::Given, roots.given.clone());
    add(Owner::Project, directories(&roots.project));
    add(Owner::User, directories(&roots.user));
    let mut taken: BTreeMap<String, Owner> = BTreeMap::new();
    let mut found = Vec::new();
    for (owner, path) in places {
        let name = path.file_name().map_or_else(
            || path.display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        let installed = match (owner, name.parse::<PluginName>()) {
            (Owner::User, Ok(name)) => rules.installed.get(&name).cloned(),
            _ => None,
        };
        let (name, standing) = judged(name, &path, owner, installed.as_ref(), rules, &taken);
        // A plugin that nobody agreed to replaces nothing.
        if !matches!(standing, Standing::Untrusted(_) | Standing::Shadowed(_)) {
            taken.insert(name.clone(), owner);
        }
        found.push(Found {
            name,
            path,
            owner,
            standing,
            installed,
        });
    }
    without_lonely(&mut found);
    found
}

/// A plugin does not count without those that it needs, nor do those that need it.
fn without_lonely(found: &mut [Found]) {
    loop {
        let active: BTreeMap<String, Option<String>> = found
            .iter()
            .filter_map(|found| {
                let version = found.active()?.manifest.version.clone();
                let installed = found.installed.as_ref().and_then(|it| it.version.clone());
                Some((found.name.clone(), version.or(installed)))
            })
            .collect();
        let mut is_settled = true;
        for found in found.iter_mut() {
            let Standing::Active(package) = &found.standing else {
                continue;
            };
            let lacks = |dependency: &&crate::manifest::Dependency| {
                let version = active.get(dependency.name.as_str());
                !version.is_some_and(|version| dependency.accepts(version.as_deref()))
            };
            let lacking = package.manifest.dependencies.iter().find(lacks);
            if let Some(dependency) = lacking {
                let version = dependency.version.as_ref();
                let version = version.map_or_else(String::new, |it| format!(" {it}"));
                found.standing = Standing::Unsuitable(format!(
                    "it needs the plugin `{}`{version}, which is not used; install or enable that",
                    dependency.name
                ));
                is_settled = false;
            }
        }
        if is_settled {
            return;
        }
    }
}

fn judged(
    name: String,
    path: &Path,
    owner: Owner,
    installed: Option<&Installed>,
    rules: &Rules<'_>,
    taken: &BTreeMap<String, Owner>,
) -> (String, Standing) {
    if let (Owner::Managed | Owner::Project | Owner::User, Some(by)) = (owner, taken.get(&name)) {
        return (name, Standing::Shadowed(*by));
    }
    if let Some(reason) = distrust(path, owner, installed, rules) {
        return (name, Standing::Untrusted(reason));
    }
    let naming = match owner {
        Owner::Given => Naming::Free,
        Owner::Managed | Owner::Project | Owner::User => Naming::AsDirectory,
    };
    let package = match Package::read(path, naming) {
        Ok(package) => package,
        Err(error) => return (name, Standing::Broken(error.to_string())),
    };
    let name = package.name().to_string();
    if let Some(by) = taken.get(&name) {
        return (name, Standing::Shadowed(*by));
    }
    if let Some(reason) = package
        .manifest
        .requires
        .unmet(&rules.version, rules.platform)
    {
        return (name, Standing::Unsuitable(reason));
    }
    let is_wanted = match owner {
        Owner::Managed | Owner::Given => true,
        Owner::Project | Owner::User => is_enabled(&name, installed, rules),
    };
    let package = Box::new(package);
    if is_wanted {
        (name, Standing::Active(package))
    } else {
        (name, Standing::Disabled(package))
    }
}

impl Rules<'_> {
    /// Whether somebody switched a plugin off, whatever is wrong with it.
    pub fn switches_off(&self, found: &Found) -> bool {
        match found.owner {
            Owner::Managed | Owner::Given => false,
            Owner::Project | Owner::User => {
                !is_enabled(&found.name, found.installed.as_ref(), self)
            }
        }
    }
}

/// Why a plugin must not be looked into.
fn distrust(
    path: &Path,
    owner: Owner,
    installed: Option<&Installed>,
    rules: &Rules<'_>,
) -> Option<String> {
    match owner {
        Owner::Managed | Owner::Given => None,
        Owner::Project => match rules.workspace {
            Workspace::Untrusted => {
                Some("the workspace is not trusted; `caliban trust` trusts it".to_owned())
            }
            Workspace::Trusted if path.is_symlink() => {
                Some("it is a link, and trust covers only what is in the workspace".to_owned())
            }
            Workspace::Trusted => None,
        },
        Owner::User => {
            let installed = installed?;
            if !installed.origin.is_gated() {
                return None;
            }
            if let Err(refusal) = rules.markets.judge(&installed.origin) {
                return Some(refusal.to_string());
            }
            match rules.digests.digest(path) {
                Ok(digest) if digest == installed.digest => None,
                Ok(_) => Some(
                    "its files are not those that were agreed to; `caliban plugin update` or `remove` it".to_owned(),
                ),
                Err(error) => Some(error.to_string()),
            }
        }
    }
}

fn is_enabled(name: &str, installed: Option<&Installed>, rules: &Rules<'_>) -> bool {
    let only = installed.and_then(|installed| installed.only.as_deref());
    if only.is_some_and(|only| only != rules.project) {
        return false;
    }
    // Others write the marketplace behind the name.
    let full = installed.and_then(|installed| installed.origin.marketplace());
    let full = full.map(|marketplace| format!("{name}@{marketplace}"));
    let names = [Some(name), full.as_deref()];
    let is_named = |known: &dyn Fn(&str) -> bool| names.into_iter().flatten().any(known);
    match &rules.enabled {
        Some(choice) => is_named(&|name| choice.holds(name)),
        None => !is_named(&|name| rules.disabled.iter().any(|off| off == name)),
    }
}

/// The directories in one, sorted; what begins with a dot is ours.
fn directories(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .take(MOST)
        .collect();
    paths.sort_unstable();
    paths
}
