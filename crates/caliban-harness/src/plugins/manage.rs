//! Installs, updates and removes plugins, and keeps the list of marketplaces. What would be done
//! is worked out first, so that somebody can agree to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use caliban_plugins::{
    Acknowledged, Acknowledgements, AddressError, ArchiveError, Difference, Effects, Entry,
    EntrySource, IndexError, Installed, InstalledPlugins, KnownMarketplace, KnownMarketplaces,
    LeadsOut, MANIFESTS, MarketPolicy, MarketSource, Marketplace, Naming, Origin, Package,
    PackageError, PluginName, Refusal, RelativePath, Staging, StagingError, StateError, Survey,
    TrustRecords, unpack,
};
use caliban_settings::{Tree, TreeError};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{fetch, market_policy, npm, platform, version};
use crate::configuration::Configuration;

/// How much of a commit or digest stands for a version where there is none.
const SHORT: usize = 12;

#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    #[error("`{place}`: {reason}")]
    Fetch { place: String, reason: String },
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("`{place}`: {source}")]
    Index { place: String, source: IndexError },
    #[error("the archive `{place}` is not taken: {source}")]
    Archive { place: String, source: ArchiveError },
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error(transparent)]
    Staging(#[from] StagingError),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    LeadsOut(#[from] LeadsOut),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("there is no marketplace `{0}`; `caliban plugin marketplace add` adds one")]
    NoMarketplace(String),
    #[error("the marketplace `{marketplace}` has no plugin `{plugin}`{}", meant(nearest.as_deref()))]
    NoEntry {
        marketplace: String,
        plugin: String,
        nearest: Option<String>,
    },
    #[error("the plugin `{plugin}` of `{marketplace}` cannot be installed: {reason}")]
    Uninstallable {
        marketplace: String,
        plugin: String,
        reason: String,
    },
    #[error("the plugin `{0}` cannot be used here: {1}")]
    Unsuitable(PluginName, String),
    #[error("the organisation has a plugin `{0}`, which cannot be replaced")]
    Managed(PluginName),
    #[error("`{0}` is installed from {1}; `caliban plugin remove {0}` makes room")]
    Another(PluginName, String),
    #[error(
        "there is a marketplace `{0}` already, {1}; `caliban plugin marketplace remove {0}` makes room"
    )]
    AnotherMarket(String, String),
    #[error("`{0}` was put there by hand; take it away to install another of its name")]
    ByHand(PluginName),
    #[error("there is no installed plugin `{0}`; `caliban plugin list` shows those there are")]
    NotInstalled(String),
    #[error(
        "`{plugin}` needs the plugin `{needed}`; install that first{}",
        marketplace.as_ref().map_or_else(String::new, |it| format!(", from the marketplace `{it}`, which is not known here"))
    )]
    Needs {
        plugin: PluginName,
        needed: PluginName,
        marketplace: Option<String>,
    },
    #[error("`{plugin}` needs `{needed}` {wanted}, and there is {version}")]
    Unfit {
        plugin: PluginName,
        needed: PluginName,
        wanted: String,
        version: String,
    },
    #[error("the plugins {0} need each other in a circle")]
    Circle(String),
    #[error("more than {0} plugins would have to be installed")]
    TooMany(usize),
    #[error("`{0}` is needed by {1}; disable or remove that first")]
    Needed(String, String),
    #[error("`{key}` of `{plugin}` must be {expected}")]
    Value {
        plugin: PluginName,
        key: String,
        expected: &'static str,
    },
    #[error("{0}")]
    Settings(String),
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

impl ManageError {
    pub(super) fn fetch(place: &str, reason: &str) -> Self {
        Self::Fetch {
            place: place.to_owned(),
            reason: reason.to_owned(),
        }
    }
}

/// What is to be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    Directory(PathBuf),
    /// A plugin of a marketplace, which is named or addressed.
    Listed {
        plugin: String,
        marketplace: String,
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
    staging: Staging,
}

/// What was removed.
#[derive(Debug)]
pub struct Removed {
    pub path: PathBuf,
    pub origin: Option<Origin>,
}

/// A plugin of a marketplace that was searched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    pub name: String,
    pub marketplace: String,
    pub version: Option<String>,
    pub description: Option<String>,
    /// Why it cannot be installed.
    pub obstacle: Option<String>,
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

/// A marketplace whose list was read.
pub(super) struct OpenMarket {
    name: String,
    source: MarketSource,
    list: Marketplace,
    root: Option<PathBuf>,
    commit: Option<String>,
    /// Keeps what was fetched for this once.
    _fetched: Option<tempfile::TempDir>,
}

/// Who changes what is installed.
#[derive(Debug)]
pub struct Manager<'a> {
    configuration: &'a Configuration,
    audience: Audience,
    root: PathBuf,
    installed: InstalledPlugins,
    records: TrustRecords,
    markets: KnownMarketplaces,
    policy: MarketPolicy,
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
            Some(_) | None => self.fetch(source.clone()).await,
        }
    }

    /// Works out what installing would do.
    pub async fn plan(&self, wanted: &Wanted) -> Result<Plan, ManageError> {
        match wanted {
            Wanted::Directory(path) => self.plan_directory(path),
            Wanted::Listed {
                plugin,
                marketplace,
            } => {
                let market = self.open(marketplace).await?;
                self.plan_listed(plugin, &market).await
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
                self.plan_listed(name, &market).await?
            }
        };
        let is_same = plan.tree.digest == installed.digest;
        let is_there =
            Tree::read(&self.root.join(name)).is_ok_and(|it| it.digest == installed.digest);
        Ok((!is_same || !is_there).then_some(plan))
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

    /// Adds a marketplace, and says what it is called and lists.
    pub async fn add_market(&self, text: &str) -> Result<(String, Marketplace), ManageError> {
        let source = self.source(text)?;
        self.policy.judge_source(None, &source)?;
        let market = self.keep(source.clone(), None).await?;
        let allowlist = self.configuration.locations.marketplaces_allowlist();
        Acknowledgements::new(allowlist).add(&source)?;
        Ok((market.name, market.list))
    }

    /// Fetches the list of a marketplace anew.
    pub async fn update_market(&self, name: &str) -> Result<Marketplace, ManageError> {
        let known = self.markets.all()?.remove(name);
        let known = known.ok_or_else(|| ManageError::NoMarketplace(name.to_owned()))?;
        self.policy.judge_source(Some(name), &known.source)?;
        Ok(self.keep(known.source, Some(name)).await?.list)
    }

    pub fn remove_market(&self, name: &str) -> Result<(), ManageError> {
        let copy = self.markets.copy(name);
        if !self.markets.remove(name)? {
            return Err(ManageError::NoMarketplace(name.to_owned()));
        }
        if copy.is_dir() {
            let failed = |source| StagingError::Io {
                path: copy.clone(),
                source,
            };
            fs::remove_dir_all(&copy).map_err(failed)?;
        }
        Ok(())
    }

    /// The marketplaces that were added, and those of the settings.
    pub fn markets(
        &self,
    ) -> Result<BTreeMap<String, (MarketSource, Option<Timestamp>)>, ManageError> {
        let mut markets = BTreeMap::new();
        for (name, text) in &self.configuration.settings().plugins.marketplaces.known {
            markets.insert(name.clone(), (self.source(text)?, None));
        }
        for (name, known) in self.markets.all()? {
            markets.insert(name, (known.source, Some(known.updated_at)));
        }
        Ok(markets)
    }

    /// Looks through the lists that are at hand.
    pub fn search(&self, word: &str) -> Result<Vec<SearchHit>, ManageError> {
        let word = word.to_lowercase();
        let mut hits = Vec::new();
        for (name, known) in self.markets.all()? {
            if self
                .policy
                .judge_source(Some(&name), &known.source)
                .is_err()
            {
                continue;
            }
            let market = self.at_hand(&name, &known)?;
            for entry in &market.list.entries {
                let text = format!(
                    "{} {}",
                    entry.name,
                    entry.description.as_deref().unwrap_or_default()
                );
                if text.to_lowercase().contains(&word) {
                    hits.push(SearchHit {
                        name: entry.name.to_string(),
                        marketplace: name.clone(),
                        version: entry.version.clone(),
                        description: entry.description.clone(),
                        obstacle: entry.source.clone().err(),
                    });
                }
            }
        }
        Ok(hits)
    }

    fn source(&self, text: &str) -> Result<MarketSource, ManageError> {
        let process = &self.configuration.process;
        let home = self.configuration.locations.home();
        Ok(MarketSource::parse(text, &process.current_directory, home)?)
    }

    /// A marketplace by its name or address.
    pub(super) async fn open(&self, text: &str) -> Result<OpenMarket, ManageError> {
        if let Some(known) = self.markets.all()?.get(text) {
            self.policy.judge_source(Some(text), &known.source)?;
            return self.at_hand(text, known);
        }
        let settings = &self.configuration.settings().plugins.marketplaces.known;
        if let Some(address) = settings.get(text) {
            let source = self.source(address)?;
            self.policy.judge_source(Some(text), &source)?;
            let market = self.fetch(source).await?;
            return Ok(OpenMarket {
                name: text.to_owned(),
                ..market
            });
        }
        if !text.contains(['/', ':', '.']) {
            return Err(ManageError::NoMarketplace(text.to_owned()));
        }
        self.fetch(self.source(text)?).await
    }

    /// A marketplace that was added, as it was fetched last.
    fn at_hand(&self, name: &str, known: &KnownMarketplace) -> Result<OpenMarket, ManageError> {
        let fetched = match &known.source {
            MarketSource::Directory { path } => fetch::local(path, None)?,
            MarketSource::Git { .. } => {
                fetch::local(&self.markets.copy(name), known.commit.clone())?
            }
            MarketSource::Index { .. } => fetch::FetchedMarket {
                root: None,
                ..fetch::local(&self.markets.copy(name), None)?
            },
        };
        Self::opened(known.source.clone(), fetched, None)
    }

    /// Fetches a marketplace for this once.
    async fn fetch(&self, source: MarketSource) -> Result<OpenMarket, ManageError> {
        self.policy.judge_source(None, &source)?;
        let directory = tempfile::tempdir()
            .map_err(|error| ManageError::fetch(&source.to_string(), &error.to_string()))?;
        let fetched = fetch::market(self.configuration, &source, directory.path()).await?;
        let market = Self::opened(source, fetched, Some(directory))?;
        // It may call itself something that is blocked.
        self.policy
            .judge_source(Some(&market.name), &market.source)?;
        Ok(market)
    }

    fn opened(
        source: MarketSource,
        fetched: fetch::FetchedMarket,
        directory: Option<tempfile::TempDir>,
    ) -> Result<OpenMarket, ManageError> {
        let list = Marketplace::parse(&fetched.text).map_err(|error| ManageError::Index {
            place: source.to_string(),
            source: error,
        })?;
        Ok(OpenMarket {
            name: list.called(&source),
            source,
            list,
            root: fetched.root,
            commit: fetched.commit,
            _fetched: directory,
        })
    }

    /// Fetches a marketplace and keeps it, under the name it had or has.
    async fn keep(
        &self,
        source: MarketSource,
        known_as: Option<&str>,
    ) -> Result<OpenMarket, ManageError> {
        let staging = Staging::new(self.markets.root())?;
        let into = staging.plugin();
        fs::create_dir(&into)
            .map_err(|error| ManageError::fetch(&source.to_string(), &error.to_string()))?;
        let fetched = fetch::market(self.configuration, &source, &into).await?;
        let market = Self::opened(source, fetched, None)?;
        let name = known_as.unwrap_or(&market.name).to_owned();
        self.policy.judge_source(Some(&name), &market.source)?;
        if let Some(other) = self.markets.all()?.get(&name)
            && other.source.identity() != market.source.identity()
        {
            return Err(ManageError::AnotherMarket(name, other.source.to_string()));
        }
        staging.settle(&name)?;
        let known = KnownMarketplace {
            source: market.source.clone(),
            commit: market.commit.clone(),
            updated_at: Timestamp::now(),
        };
        self.markets.put(&name, known)?;
        Ok(OpenMarket { name, ..market })
    }

    fn plan_directory(&self, path: &Path) -> Result<Plan, ManageError> {
        let path = self.configuration.process.current_directory.join(path);
        let package = Package::read(&path, Naming::Free)?;
        let staging = Staging::new(&self.root)?;
        staging.take(&package.root)?;
        if package.manifest.raw.is_empty() {
            write_manifest(&staging, &json!({"name": package.name()}))?;
        }
        let origin = Origin::Directory { path: package.root };
        self.finish(staging, origin, package.manifest.version)
    }

    pub(super) async fn plan_listed(
        &self,
        plugin: &str,
        market: &OpenMarket,
    ) -> Result<Plan, ManageError> {
        let entry = market.list.entry(plugin).ok_or_else(|| {
            let names = market.list.entries.iter().map(|entry| entry.name.as_str());
            ManageError::NoEntry {
                marketplace: market.name.clone(),
                plugin: plugin.to_owned(),
                nearest: caliban_model::nearest(plugin, names).map(str::to_owned),
            }
        })?;
        let refused = |reason: String| ManageError::Uninstallable {
            marketplace: market.name.clone(),
            plugin: plugin.to_owned(),
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
                staging.take(&directory.ok_or_else(gone)?)?;
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
                staging.take(&directory.within(&root)?.ok_or_else(gone)?)?;
            }
            EntrySource::Archive { url, sha256 } => {
                let file = scratch.with_extension("archive");
                fetch::archive(url, sha256, &file).await?;
                unpack(&file, &scratch).map_err(|error| ManageError::Archive {
                    place: url.clone(),
                    source: error,
                })?;
                staging.take(&staging.unwrapped())?;
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
                staging.take(&staging.unwrapped())?;
            }
        }
        complete(&staging, entry, is_market)?;
        let short = commit.as_ref().map(|it| it.chars().take(SHORT).collect());
        let origin = Origin::Marketplace {
            name: market.name.clone(),
            source: market.source.clone(),
            plugin: Box::new(source),
            commit,
        };
        self.finish(staging, origin, version.or(short))
    }

    /// Reads what was put together, and compares it with what is there.
    fn finish(
        &self,
        staging: Staging,
        origin: Origin,
        version_said: Option<String>,
    ) -> Result<Plan, ManageError> {
        let package = Package::read(&staging.plugin(), Naming::Free)?;
        let name = package.name().clone();
        if let Some(reason) = package.manifest.requires.unmet(&version(), platform()) {
            return Err(ManageError::Unsuitable(name, reason));
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
        let survey = Survey::of(&package, &caliban_slash::reserved());
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
fn complete(staging: &Staging, entry: &Entry, is_market: bool) -> Result<(), ManageError> {
    let mut own: Option<Map<String, Value>> = None;
    for (name, _) in MANIFESTS {
        let root = staging.plugin();
        let Some(path) = RelativePath::parse(name)?.within(&root.canonicalize().unwrap_or(root))?
        else {
            continue;
        };
        let text = fs::read_to_string(&path).unwrap_or_default();
        own = serde_json::from_str(&text).ok();
        break;
    }
    let called = own
        .as_ref()
        .and_then(|own| own.get("name"))
        .and_then(Value::as_str);
    if called == Some(entry.name.as_str()) && !entry.has_parts() {
        return Ok(());
    }
    let mut manifest = entry.manifest(own.as_ref(), is_market && entry.has_parts());
    manifest.insert("name".to_owned(), entry.name.as_str().into());
    write_manifest(staging, &manifest.into())
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
