//! Installs, updates and removes plugins, and keeps the list of marketplaces. What would be done
//! is worked out first, so that somebody can agree to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use caliban_plugins::{
    Acknowledged, Difference, Effects, Entry, EntrySource, Form, Installed, InstalledPlugins,
    KnownMarketplaces, MANIFESTS, Manifest, ManifestError, MarketPolicy, MarketSource, Naming,
    Origin, Package, PackageError, PluginName, RelativePath, Renamed, Staging, StagingError,
    Survey, TrustRecords, unpack,
};
use caliban_settings::Tree;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::markets::{OpenMarket, Signing};
use super::problem::ManageError;
use super::survey::{imitations, survey};
use super::{fetch, market_policy, npm, platform, version};
use crate::configuration::Configuration;

/// How much of a commit or digest stands for a version where there is none.
const SHORT: usize = 12;

/// What is to be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Directory(PathBuf),
    /// A plugin of a marketplace, which is named or addressed.
    Listed {
        plugin: String,
        marketplace: String,
        /// The latest where none is named.
        version: Option<String>,
    },
}

/// What would be installed, if somebody agrees.
#[derive(Debug)]
pub struct Plan {
    pub package: Package,
    pub survey: Survey,
    pub version: Option<String>,
    pub origin: Origin,
    pub tree: Tree,
    pub effects: Effects,
    /// What is installed under its name now.
    pub previous: Option<Installed>,
    /// What changes in effects, where there is a previous one.
    pub difference: Difference,
    /// Files that are new, gone or different, where there is a previous one.
    pub changed: Vec<String>,
    /// Whether somebody agreed to exactly these files before, or need not.
    pub is_acknowledged: bool,
    /// Whose the list of its marketplace is, where it comes from one.
    pub signing: Option<Signing>,
    staging: Staging,
}

/// What was removed.
#[derive(Debug)]
pub struct Removed {
    pub path: PathBuf,
    pub origin: Option<Origin>,
}

/// Whom a plugin is installed for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Audience {
    /// The user, everywhere.
    #[default]
    User,
    /// Everybody who works on this project: it becomes part of that.
    Project,
    /// The user, in this project alone.
    Local,
}

/// Who changes what is installed.
#[derive(Debug)]
pub struct Manager<'a> {
    pub(super) configuration: &'a Configuration,
    pub(super) audience: Audience,
    pub(super) root: PathBuf,
    pub(super) installed: InstalledPlugins,
    pub(super) records: TrustRecords,
    pub(super) markets: KnownMarketplaces,
    pub(super) policy: MarketPolicy,
}

impl<'a> Manager<'a> {
    pub fn new(configuration: &'a Configuration) -> Self {
        Self::of(configuration, Audience::User)
    }

    pub fn of(configuration: &'a Configuration, audience: Audience) -> Self {
        let locations = &configuration.locations;
        let root = match audience {
            Audience::User | Audience::Local => locations.user_plugins(),
            Audience::Project => locations.project_plugins(configuration.project()),
        };
        Self {
            audience,
            installed: InstalledPlugins::of(&root),
            root,
            records: TrustRecords::new(locations.plugin_trust()),
            markets: KnownMarketplaces::of(locations.data_dir()),
            policy: market_policy(configuration),
            configuration,
        }
    }

    pub(super) fn configuration(&self) -> &'a Configuration {
        self.configuration
    }

    /// What was installed here.
    pub(super) fn installed(&self) -> Result<BTreeMap<PluginName, Installed>, ManageError> {
        Ok(self.installed.all()?)
    }

    /// Where a plugin is.
    pub(super) fn place(&self, name: &PluginName) -> PathBuf {
        self.root.join(name.as_str())
    }

    /// Where an installed plugin lies.
    pub fn directory(&self, name: &PluginName) -> PathBuf {
        self.place(name)
    }

    pub(super) fn is_recorded(&self, name: &PluginName, digest: &str) -> bool {
        self.records.holds(name, digest)
    }

    /// The marketplace that a plugin was installed from. What was added may have been brought up
    /// to date; what was not is fetched again.
    pub(super) async fn market_of(
        &self,
        name: &str,
        source: &MarketSource,
    ) -> Result<OpenMarket, ManageError> {
        match self.markets.all()?.get(name) {
            Some(known) if known.source == *source => self.open(name).await,
            Some(_) | None => self.fetch(source.clone(), None).await,
        }
    }

    /// Works out what installing would do.
    pub async fn plan(&self, wanted: &Wanted) -> Result<Plan, ManageError> {
        match wanted {
            Wanted::Directory(path) => self.plan_directory(path),
            Wanted::Listed {
                plugin,
                marketplace,
                version,
            } => {
                let market = self.open(marketplace).await?;
                let renamed = match market.list.renamed(plugin) {
                    Renamed::To(name) => Some(name),
                    Renamed::TakenAway | Renamed::Never => None,
                };
                let name = renamed.as_ref().map_or(plugin.as_str(), PluginName::as_str);
                self.plan_listed(name, version.as_deref(), &market).await
            }
        }
    }

    /// Works out what bringing a plugin up to date would do; nothing where it is.
    pub async fn plan_update(&self, name: &str) -> Result<Option<Plan>, ManageError> {
        let unknown = || ManageError::NotInstalled(name.to_owned());
        let parsed: PluginName = name.parse().map_err(|_| unknown())?;
        let installed = self.installed.all()?.remove(&parsed).ok_or_else(unknown)?;
        let plan = match &installed.origin {
            Origin::Directory { path } => self.plan_directory(path)?,
            Origin::Marketplace {
                name: market,
                source,
                ..
            } => {
                self.policy.judge(&installed.origin)?;
                let known = self.markets.all()?;
                if known
                    .get(market)
                    .is_some_and(|known| known.source == *source)
                {
                    self.update_market(market).await?;
                }
                let market = self.market_of(market, source).await?;
                self.plan_listed(name, None, &market).await?
            }
        };
        let is_same = plan.tree.digest == installed.digest;
        Ok((!is_same || !self.lies_as_installed(&parsed)).then_some(plan))
    }

    /// Does what was worked out. The record comes first: whatever happens in between, no files
    /// count that nobody agreed to.
    pub fn carry_out(&self, plan: Plan) -> Result<PathBuf, ManageError> {
        let name = plan.package.name().clone();
        let now = Timestamp::now();
        self.records.acknowledge(
            &name,
            Acknowledged {
                digest: plan.tree.digest.clone(),
                manifest_sha256: plan.package.manifest_sha256.clone(),
                version: plan.version.clone(),
                source: plan.origin.to_string(),
                at: now,
            },
        )?;
        self.records.tell(&name, plan.effects.digest())?;
        let installed = Installed {
            origin: plan.origin,
            version: plan.version,
            digest: plan.tree.digest.clone(),
            effects: plan.effects.lines().to_vec(),
            files: digests(&plan.tree),
            only: match self.audience {
                Audience::User | Audience::Project => None,
                Audience::Local => Some(self.configuration.project().to_owned()),
            },
            at: now,
        };
        self.installed.put(&name, installed)?;
        match plan.staging.settle(name.as_str()) {
            Ok(path) => Ok(path),
            Err(error) => {
                match plan.previous {
                    Some(previous) => self.installed.put(&name, previous)?,
                    None => drop(self.installed.remove(&name)?),
                }
                Err(error.into())
            }
        }
    }

    /// Whether the files of a plugin are those it was installed with.
    pub(super) fn lies_as_installed(&self, name: &PluginName) -> bool {
        let all = self.installed.all().unwrap_or_default();
        all.get(name).is_some_and(|installed| {
            Tree::read(&self.place(name)).is_ok_and(|it| it.digest == installed.digest)
        })
    }

    /// Whether there is a plugin of this name here.
    pub fn holds(&self, name: &str) -> bool {
        let is_there = |name: &PluginName| {
            let lies_here = fs::symlink_metadata(self.root.join(name.as_str())).is_ok();
            let all = self.installed.all();
            lies_here || all.is_ok_and(|all| all.contains_key(name))
        };
        name.parse().is_ok_and(|name| is_there(&name))
    }

    /// Whether the plugins of a project lie in it: a link could lead to anything of the user's.
    pub fn is_in_the_project(&self) -> bool {
        let project = self.configuration.project().canonicalize();
        let root = self.root.canonicalize();
        match (project, root) {
            (Ok(project), Ok(root)) => root.starts_with(project),
            // There is nothing.
            (_, Err(_)) => true,
            (Err(_), Ok(_)) => false,
        }
    }

    /// Removes a plugin.
    pub fn remove(&self, name: &str) -> Result<Removed, ManageError> {
        let unknown = || ManageError::NotInstalled(name.to_owned());
        let parsed: PluginName = name.parse().map_err(|_| unknown())?;
        let path = self.root.join(name);
        let kind = fs::symlink_metadata(&path).map(|metadata| metadata.file_type());
        let gone = |source| StagingError::Io {
            path: path.clone(),
            source,
        };
        match kind {
            // What a link leads to is somebody's work.
            Ok(kind) if kind.is_symlink() => fs::remove_file(&path).map_err(gone)?,
            Ok(_) => {
                let staging = Staging::new(&self.root)?;
                fs::rename(&path, staging.plugin()).map_err(gone)?;
            }
            Err(_) if !self.installed.all()?.contains_key(&parsed) => return Err(unknown()),
            Err(_) => {}
        }
        let installed = self.installed.remove(&parsed)?;
        Ok(Removed {
            path,
            origin: installed.map(|it| it.origin),
        })
    }

    fn plan_directory(&self, path: &Path) -> Result<Plan, ManageError> {
        let path = self.configuration.process.current_directory.join(path);
        let staging = Staging::new(&self.root)?;
        let archive = path.canonicalize().ok().filter(|path| path.is_file());
        let from = match &archive {
            None => path,
            Some(archive) => {
                let scratch = staging.scratch();
                let failed = |source| ManageError::Archive {
                    place: archive.display().to_string(),
                    source,
                };
                let made = fs::create_dir(&scratch);
                made.map_err(|error| {
                    ManageError::fetch(&scratch.display().to_string(), &error.to_string())
                })?;
                unpack(archive, &scratch).map_err(failed)?;
                staging.unwrapped()
            }
        };
        let package = Package::read(&from, Naming::Free)?;
        staging.take(&package.root, &package.root)?;
        if package.manifest.raw.is_empty() {
            write_manifest(&staging, &json!({"name": package.name()}))?;
        }
        let path = archive.unwrap_or(package.root);
        let origin = Origin::Directory { path };
        self.finish(staging, origin, package.manifest.version)
    }

    pub(super) async fn plan_listed(
        &self,
        plugin: &str,
        version: Option<&str>,
        market: &OpenMarket,
    ) -> Result<Plan, ManageError> {
        let entry = market.list.entry(plugin).ok_or_else(|| {
            let names = market.list.entries.iter().map(|entry| entry.name.as_str());
            let nearest = caliban_model::nearest(plugin, names);
            ManageError::NoEntry {
                marketplace: market.name.clone(),
                plugin: plugin.to_owned(),
                remedy: match market.list.renamed(plugin) {
                    Renamed::To(name) => format!(
                        "; it is called `{name}` now: `caliban plugin remove {plugin}` and install that"
                    ),
                    Renamed::TakenAway => "; it was taken away from there".to_owned(),
                    Renamed::Never => nearest
                        .map_or_else(String::new, |name| format!("; did you mean `{name}`?")),
                },
            }
        })?;
        let refused = |reason: String| ManageError::Uninstallable {
            marketplace: market.name.clone(),
            plugin: plugin.to_owned(),
            reason,
        };
        let entry = match version {
            Some(version) => &entry.at(version).map_err(refused)?,
            None => entry,
        };
        self.plan_entry(entry, market).await
    }

    /// Works out what installing an entry of a list would do.
    pub(super) async fn plan_entry(
        &self,
        entry: &Entry,
        market: &OpenMarket,
    ) -> Result<Plan, ManageError> {
        let refused = |reason: String| ManageError::Uninstallable {
            marketplace: market.name.clone(),
            plugin: entry.name.to_string(),
            reason,
        };
        let source = entry.source.clone().map_err(refused)?;
        let staging = Staging::new(&self.root)?;
        let scratch = staging.scratch();
        fs::create_dir(&scratch).map_err(|error| refused(error.to_string()))?;
        let mut commit = None;
        let mut version = entry.version.clone();
        let mut is_market = false;
        match &source {
            EntrySource::Path { path } => {
                let nowhere = "its path is meant beside the list, which is a document of the web";
                let root = market
                    .root
                    .as_ref()
                    .ok_or_else(|| refused(nowhere.to_owned()))?;
                let directory = path.within(root)?;
                let gone = || refused(format!("`{path}` is not there"));
                staging.take(&directory.ok_or_else(gone)?, root)?;
                commit.clone_from(&market.commit);
                is_market = path.is_root();
            }
            EntrySource::Git {
                url,
                reference,
                sha,
                directory,
            } => {
                let (reference, sha) = (reference.as_deref(), sha.as_deref());
                let fetched =
                    fetch::checkout(self.configuration, url, reference, sha, &scratch).await?;
                commit = Some(fetched);
                let root = scratch
                    .canonicalize()
                    .map_err(|error| refused(error.to_string()))?;
                let gone = || refused(format!("`{directory}` is not there"));
                staging.take(&directory.within(&root)?.ok_or_else(gone)?, &root)?;
            }
            EntrySource::Archive { url, sha256 } => {
                let file = scratch.with_extension("archive");
                fetch::archive(url, sha256, &file).await?;
                unpack(&file, &scratch).map_err(|error| ManageError::Archive {
                    place: url.clone(),
                    source: error,
                })?;
                staging.take(&staging.unwrapped(), &scratch)?;
                version = version.or_else(|| Some(sha256.chars().take(SHORT).collect()));
            }
            EntrySource::Npm {
                package,
                version: wanted,
                registry,
            } => {
                let file = scratch.with_extension("archive");
                let (wanted, registry) = (wanted.as_deref(), registry.as_deref());
                version = Some(npm::archive(package, wanted, registry, &file).await?);
                unpack(&file, &scratch).map_err(|error| ManageError::Archive {
                    place: package.clone(),
                    source: error,
                })?;
                staging.take(&staging.unwrapped(), &scratch)?;
            }
        }
        let remarks = complete(&staging, entry, is_market)?;
        let short = commit.as_ref().map(|it| it.chars().take(SHORT).collect());
        let origin = Origin::Marketplace {
            name: market.name.clone(),
            source: market.source.clone(),
            plugin: Box::new(source),
            commit,
        };
        let mut plan = self.finish(staging, origin, version.or(short))?;
        plan.package.remarks.extend(remarks);
        Ok(Plan {
            signing: Some(market.signing.clone()),
            ..plan
        })
    }

    /// Reads an entry of a list whose plugin lies beside that, as installing it would.
    pub fn check_entry(
        &self,
        entry: &Entry,
        path: &RelativePath,
        root: &Path,
    ) -> Result<(Package, Survey), ManageError> {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let gone = || PackageError::NotADirectory(root.join(path.as_path()));
        let staging = Staging::new(&self.root)?;
        staging.take(&path.within(&root)?.ok_or_else(gone)?, &root)?;
        let remarks = complete(&staging, entry, path.is_root())?;
        let mut package = Package::read(&staging.plugin(), Naming::Free)?;
        package.remarks.extend(remarks);
        let survey = survey(&package);
        Ok((package, survey))
    }

    /// Reads what was put together, and compares it with what is there.
    fn finish(
        &self,
        staging: Staging,
        origin: Origin,
        version_said: Option<String>,
    ) -> Result<Plan, ManageError> {
        let mut package = Package::read(&staging.plugin(), Naming::Free)?;
        let name = package.name().clone();
        if let Some(reason) = package.manifest.requires.unmet(&version(), platform()) {
            if origin.is_gated() {
                return Err(ManageError::Unsuitable(name, reason));
            }
            // Whoever has the files may want them here for another system or a later version.
            let remark = format!("it is skipped as things are: {reason}");
            package.remarks.push(remark);
        }
        let managed = self.configuration.locations.managed_plugins();
        if managed.join(name.as_str()).exists() {
            return Err(ManageError::Managed(name));
        }
        let previous = self.installed.all()?.remove(&name);
        let place = self.root.join(name.as_str());
        match &previous {
            None if place.symlink_metadata().is_ok() => return Err(ManageError::ByHand(name)),
            Some(it) if it.origin.marketplace() != origin.marketplace() => {
                return Err(ManageError::Another(name, it.origin.to_string()));
            }
            None | Some(_) => {}
        }
        let mut survey = survey(&package);
        survey.notices.extend(imitations(&name, &origin));
        // Where it lies for now says nothing to anybody.
        let place_now = format!("{}/", package.root.display());
        for remark in package.remarks.iter_mut().chain(&mut survey.notices) {
            *remark = remark.replace(&place_now, "");
        }
        let tree = Tree::read(&package.root)?;
        let effects = Effects::of(&package, &survey);
        let before = previous
            .as_ref()
            .map(|it| Effects::recorded(it.effects.clone()));
        let difference = before.map(|it| it.until(&effects)).unwrap_or_default();
        let old = previous.as_ref().and_then(|_| Tree::read(&place).ok());
        Ok(Plan {
            version: package.manifest.version.clone().or(version_said),
            is_acknowledged: !origin.is_gated() || self.records.holds(&name, &tree.digest),
            changed: old
                .map(|old| changes(&digests(&old), &tree))
                .unwrap_or_default(),
            package,
            survey,
            origin,
            tree,
            effects,
            previous,
            difference,
            signing: None,
            staging,
        })
    }
}

/// The digest of every file.
fn digests(tree: &Tree) -> BTreeMap<PathBuf, String> {
    let files = tree.files.iter();
    files
        .map(|file| (file.path.clone(), file.sha256.clone()))
        .collect()
}

/// The files that are not the same, with a mark.
pub(super) fn changes(before: &BTreeMap<PathBuf, String>, new: &Tree) -> Vec<String> {
    let after = digests(new);
    let mut changed = Vec::new();
    for (path, digest) in &after {
        match before.get(path) {
            None => changed.push(format!("+ {}", path.display())),
            Some(known) if *known != *digest => changed.push(format!("~ {}", path.display())),
            Some(_) => {}
        }
    }
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    changed.extend(gone.map(|path| format!("- {}", path.display())));
    changed
}

/// Where the entry of a list says what a plugin is made of, that is written down as its manifest.
/// What its own manifest says otherwise is told.
fn complete(staging: &Staging, entry: &Entry, is_market: bool) -> Result<Vec<String>, ManageError> {
    let mut remarks = Vec::new();
    let mut own: Option<Map<String, Value>> = None;
    for (name, form) in MANIFESTS {
        let root = staging.plugin();
        let Some(path) = RelativePath::parse(name)?.within(&root.canonicalize().unwrap_or(root))?
        else {
            continue;
        };
        own = Some(own_manifest(&path, name, form, &mut remarks)?);
        break;
    }
    let called = own
        .as_ref()
        .and_then(|own| own.get("name"))
        .and_then(Value::as_str);
    if called == Some(entry.name.as_str()) && !entry.has_parts() {
        // Whatever is wrong with it is found when it is read.
        return Ok(Vec::new());
    }
    if let Some(called) = called.filter(|called| *called != entry.name.as_str()) {
        remarks.push(format!(
            "its manifest calls it `{}`, and the list `{}`: that is its name here",
            called.escape_debug(),
            entry.name
        ));
    }
    let mut manifest = entry.manifest(own.as_ref(), is_market && entry.has_parts());
    manifest.insert("name".to_owned(), entry.name.as_str().into());
    write_manifest(staging, &manifest.into())?;
    Ok(remarks)
}

/// The manifest that a plugin has itself. The list says its name and version where that does not;
/// with anything else that is wrong with it, it is not the plugin that the list means.
fn own_manifest(
    path: &Path,
    name: &str,
    form: Form,
    remarks: &mut Vec<String>,
) -> Result<Map<String, Value>, ManageError> {
    let shown = || PathBuf::from(name);
    let text = fs::read_to_string(path).map_err(|error| PackageError::Unreadable {
        path: shown(),
        reason: error.to_string(),
    })?;
    match Manifest::parse(&text, form) {
        Ok(manifest) => return Ok(manifest.raw),
        Err(
            error @ (ManifestError::NoName | ManifestError::NoVersion | ManifestError::Version(_)),
        ) => remarks.push(format!("its `{name}` is not a whole manifest: {error}")),
        Err(source) => {
            let path = shown();
            return Err(PackageError::Manifest { path, source }.into());
        }
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    serde_json::from_str(text).map_err(|error| {
        let source = ManifestError::Json(error.to_string());
        let path = shown();
        PackageError::Manifest { path, source }.into()
    })
}

fn write_manifest(staging: &Staging, manifest: &Value) -> Result<(), ManageError> {
    let path = staging.plugin().join(MANIFESTS[0].0);
    let failed =
        |error: std::io::Error| ManageError::fetch(&path.display().to_string(), &error.to_string());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    fs::write(&path, format!("{manifest:#}\n")).map_err(failed)
}
