//! The plugins of a run: which of them count, and what they bring to each part of a session.

mod checked;
mod fetch;
mod given;
mod locked;
mod manage;
mod markets;
mod npm;
mod problem;
mod survey;
mod values;
mod wanted;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use caliban_context::PluginPlace;
use caliban_hooks::PluginHooks;
use caliban_plugins::{
    Acknowledgements, DigestCache, Effects, Found, InstalledPlugins, MarketPolicy, OwnPlaces,
    Owner, Package, PluginName, Roots, Rules, Standing, TrustRecords, Workspace, data_directory,
    discover, server_variables, unsaid_value,
};
use caliban_session::PluginFacts;
use caliban_settings::variables::names;
use caliban_settings::{McpServer, PluginChoice, Scope};
use semver::Version;

use crate::configuration::Configuration;
use crate::inventory::Listed;
use crate::options::{Extent, Part, RunOptions};

pub use checked::Checked;
pub use locked::Lockable;
pub use manage::{Audience, Manager, Plan, Removed, Wanted};
pub use markets::{SearchHit, Signing};
pub use problem::ManageError;
pub use survey::survey;
pub use values::Values;
pub use wanted::dependants;

/// The most of what a new plugin runs that is told in one warning.
const TOLD: usize = 8;

/// The plugins of a run.
#[derive(Debug, Default)]
pub struct PluginSet {
    /// All that were found, those that have precedence first.
    pub found: Vec<Found>,
    pub warnings: Vec<String>,
    extent: Brings,
    data: PathBuf,
    /// What the users of plugins told them, by plugin.
    values: BTreeMap<String, BTreeMap<String, String>>,
    /// Where it is kept what was told about plugins.
    trust: PathBuf,
    /// Plugins whose running parts are new, with what is told of them.
    untold: Vec<(PluginName, String)>,
}

/// How much of the plugins counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Brings {
    #[default]
    Everything,
    /// The hooks of the organisation's; without plugins those stay, as they do without hooks.
    ManagedHooks,
}

/// The plugins of a configuration and its copies, found once.
#[derive(Debug, Clone, Default)]
pub(crate) struct PluginCell(Arc<OnceLock<Arc<PluginSet>>>);

impl PluginCell {
    /// Where the plugins are that count, once they were looked for: commands read what is there.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        let packages = self.0.get().into_iter().flat_map(|set| set.whole());
        packages.map(|(_, package)| package.root.clone()).collect()
    }
}

/// The plugins that a run has. They are looked for once; what changes on disk counts from the next
/// run on.
pub fn plugins(run: &RunOptions, configuration: &Configuration) -> Arc<PluginSet> {
    let cell = &configuration.plugins.0;
    Arc::clone(cell.get_or_init(|| Arc::new(PluginSet::of_run(run, configuration))))
}

/// What settings, variables and acknowledgements say about marketplaces.
pub fn market_policy(configuration: &Configuration) -> MarketPolicy {
    let environment = configuration.environment();
    let settings = &configuration.settings().plugins.marketplaces;
    let layers = configuration.loaded.layers();
    let managed = layers.iter().find(|layer| layer.scope == Scope::Managed);
    let managed = managed.and_then(|it| it.settings.plugins.marketplaces.strict_known.clone());
    let mut blocked = settings.blocked.clone();
    blocked.extend(environment.list(names::CALIBAN_BLOCKED_MARKETPLACES, &[',']));
    let listed = managed.or_else(|| settings.strict_known.clone());
    let is_strict = environment.is_on(names::CALIBAN_STRICT_KNOWN_MARKETPLACES);
    let allowed = match (listed, is_strict) {
        (Some(listed), _) => Some(listed),
        (None, true) => {
            let path = configuration.locations.marketplaces_allowlist();
            let acknowledged = Acknowledgements::new(path).all();
            Some(
                settings
                    .known
                    .values()
                    .cloned()
                    .chain(acknowledged)
                    .collect(),
            )
        }
        (None, false) => None,
    };
    MarketPolicy::new(blocked, allowed, &settings.known)
}

/// Whether only plugins customise. What the organisation said is not taken back.
pub(crate) fn is_plugin_only(configuration: &Configuration) -> bool {
    let key = |settings: &caliban_settings::Settings| settings.strict_plugin_only_customization;
    let layers = configuration.loaded.layers();
    let managed = layers.iter().find(|layer| layer.scope == Scope::Managed);
    managed.is_some_and(|layer| key(&layer.settings) == Some(true))
        || key(configuration.settings()) == Some(true)
        || configuration
            .environment()
            .is_on(names::CALIBAN_STRICT_PLUGIN_ONLY_CUSTOMIZATION)
}

/// The name of this system, as manifests write it.
fn platform() -> &'static str {
    std::env::consts::OS
}

fn version() -> Version {
    // The version of a crate is one.
    Version::parse(env!("CARGO_PKG_VERSION")).unwrap_or_else(|_| Version::new(0, 0, 0))
}

impl PluginSet {
    /// Those that a run with these options would have.
    pub fn of_run(run: &RunOptions, configuration: &Configuration) -> Self {
        let environment = configuration.environment();
        let is_off = run.tools.plugins == Part::Off
            || environment.is_on(names::CALIBAN_NO_PLUGINS)
            || run.settings.extent != Extent::Everything;
        let extent = if is_off {
            Brings::ManagedHooks
        } else {
            Brings::Everything
        };
        let from = &configuration.process.current_directory;
        let place = configuration.locations.data_dir().join("unpacked");
        let (mut given, mut wrong) = (Vec::new(), Vec::new());
        if extent == Brings::Everything {
            for path in &run.tools.plugin_directories {
                match given::directory(from.join(path), &place) {
                    Ok(directory) => given.push(directory),
                    Err(reason) => wrong.push(reason),
                }
            }
        }
        let mut set = Self::find(configuration, extent, given);
        set.warnings.extend(wrong);
        set
    }

    /// All plugins, whether this run has any or not.
    pub fn all(configuration: &Configuration) -> Self {
        Self::find(configuration, Brings::Everything, Vec::new())
    }

    /// Whoever begins a session has read the warnings: what is told once counts as told.
    pub(crate) fn note_told(&self) {
        let records = TrustRecords::new(self.trust.clone());
        for (name, digest) in &self.untold {
            // Where it cannot be kept, it is told again.
            let _ = records.tell(name, digest.clone());
        }
    }

    /// Whether plugins are left out, but for the hooks of the organisation's.
    pub fn is_left_out(&self) -> bool {
        self.extent == Brings::ManagedHooks
    }

    /// Whether a plugin counts, in a word.
    pub fn state(&self, found: &Found) -> String {
        match (&found.standing, self.extent) {
            (Standing::Active(_), Brings::ManagedHooks) => "only its hooks are used".to_owned(),
            (state, _) => standing(state),
        }
    }

    fn find(configuration: &Configuration, extent: Brings, given: Vec<PathBuf>) -> Self {
        let locations = &configuration.locations;
        let user = locations.user_plugins();
        let mut warnings = Vec::new();
        let installed = InstalledPlugins::of(&user).all().unwrap_or_else(|error| {
            warnings.push(error.to_string());
            BTreeMap::new()
        });
        let nowhere = PathBuf::new();
        let roots = match extent {
            Brings::Everything => Roots {
                managed: locations.managed_plugins(),
                project: locations.project_plugins(configuration.project()),
                user,
                given,
            },
            Brings::ManagedHooks => Roots {
                managed: locations.managed_plugins(),
                project: nowhere.clone(),
                user: nowhere,
                given: Vec::new(),
            },
        };
        let settings = &configuration.settings().plugins;
        let environment = configuration.environment();
        let variable = names::CALIBAN_ENABLED_PLUGINS;
        let listed = environment
            .text(variable)
            .map(|_| environment.list(variable, &[',']));
        let enabled = listed
            .map(PluginChoice::Names)
            .or_else(|| settings.enabled.clone());
        // Beside what it is about: nobody else may write there.
        let digests = locations.plugin_trust().with_file_name("plugin-files.json");
        let digests = DigestCache::new(digests);
        let rules = Rules {
            digests: &digests,
            workspace: if configuration.is_trusted() {
                Workspace::Trusted
            } else {
                Workspace::Untrusted
            },
            enabled,
            disabled: &settings.disabled,
            version: version(),
            platform: platform(),
            installed: &installed,
            project: configuration.project(),
            markets: &market_policy(configuration),
        };
        let found = discover(&roots, &rules);
        let off = found.iter().filter(|found| rules.switches_off(found));
        let off: BTreeSet<PathBuf> = off.map(|found| found.path.clone()).collect();
        let mut set = Self {
            found,
            warnings,
            extent,
            data: locations.data_dir().to_owned(),
            values: BTreeMap::new(),
            trust: locations.plugin_trust(),
            untold: Vec::new(),
        };
        let values = Values::new(configuration);
        let asking = set
            .active()
            .filter(|(_, package)| !package.manifest.options.is_empty());
        let told = asking.map(|(_, package)| (package.name().to_string(), values.of(package)));
        set.values = told.collect();
        set.warn(configuration, &off);
        set
    }

    /// What somebody who begins a session should know.
    /// Those that are `off` say nothing.
    fn warn(&mut self, configuration: &Configuration, off: &BTreeSet<PathBuf>) {
        let mut strangers = Vec::new();
        let mut warnings = Vec::new();
        let mut untold = Vec::new();
        for found in self.found.iter().filter(|found| !off.contains(&found.path)) {
            let name = &found.name;
            match (&found.standing, found.owner) {
                (Standing::Untrusted(_), Owner::Project) => strangers.push(format!("`{name}`")),
                (
                    Standing::Untrusted(reason)
                    | Standing::Broken(reason)
                    | Standing::Unsuitable(reason),
                    _,
                ) => warnings.push(format!("the plugin `{name}` is not used: {reason}")),
                (Standing::Active(package), owner) => {
                    if owner == Owner::User
                        && let Some((warning, digest)) = first_sight(package, found, configuration)
                    {
                        warnings.push(warning);
                        untold.push((package.name().clone(), digest));
                    }
                    warnings.extend(self.unsaid(package));
                }
                (Standing::Disabled(_) | Standing::Shadowed(_), _) => {}
            }
        }
        if !strangers.is_empty() {
            warnings.push(format!(
                "the workspace's plugins ({}) are not used, because it is not trusted; look at them and run `caliban trust`",
                strangers.join(", ")
            ));
        }
        self.warnings.extend(warnings);
        self.untold = untold;
    }

    /// What a plugin needs to be told and was not.
    fn unsaid(&self, package: &Package) -> Option<String> {
        let told = self.values.get(package.name().as_str());
        let is_unsaid = |key: &str| told.is_none_or(|told| !told.contains_key(key));
        let options = package.manifest.options.iter();
        let mut unsaid = options.filter(|option| option.is_required && is_unsaid(&option.key));
        let option = unsaid.next()?;
        Some(format!(
            "the plugin `{0}` needs to know `{1}`; `caliban plugin configure {0} {1}=…` tells it",
            package.name(),
            option.key
        ))
    }

    fn active(&self) -> impl Iterator<Item = (&Found, &Package)> {
        self.found
            .iter()
            .filter_map(|found| Some((found, found.active()?)))
    }

    /// Those that bring everything they have.
    fn whole(&self) -> impl Iterator<Item = (&Found, &Package)> {
        let extent = self.extent;
        self.active().filter(move |_| extent == Brings::Everything)
    }

    fn places_of(&self, package: &Package) -> OwnPlaces {
        OwnPlaces::new(
            package.root.clone(),
            data_directory(&self.data, package.name()),
        )
        .with_values(
            self.values
                .get(package.name().as_str())
                .cloned()
                .unwrap_or_default(),
        )
    }

    /// What skills, styles, commands and agents are read from.
    pub(crate) fn places(&self) -> Vec<PluginPlace> {
        let place = |(_, package): (&Found, &Package)| {
            package.place(data_directory(&self.data, package.name()))
        };
        self.whole().map(place).collect()
    }

    /// Where their programs are.
    pub(crate) fn program_directories(&self) -> Vec<PathBuf> {
        let packages = self.whole().map(|(_, package)| package);
        packages.filter_map(|it| it.programs.clone()).collect()
    }

    pub(crate) fn hooks(&self) -> Vec<PluginHooks> {
        let hooks = |(found, package): (&Found, &Package)| {
            let places = self.places_of(package);
            PluginHooks {
                name: package.name().as_str().into(),
                scope: scope(found.owner),
                hooks: package.hooks_at(&places),
                variables: places.environment().into(),
            }
        };
        self.active()
            .filter(|(_, package)| !package.hooks.is_empty())
            .map(hooks)
            .collect()
    }

    /// The servers under the names that everybody knows them by, and what is said of those that
    /// are left out: a plugin may not ask for what is kept from programs.
    pub fn servers(
        &self,
        configuration: &Configuration,
    ) -> (Vec<(String, McpServer)>, Vec<String>) {
        let mut servers = Vec::new();
        let mut left = Vec::new();
        let mut shown: Option<BTreeSet<String>> = None;
        for (_, package) in self.whole() {
            for (name, server) in package.servers_at(&self.places_of(package)) {
                let shown = shown.get_or_insert_with(|| {
                    let environment = configuration.child_environment();
                    let names = environment.iter().map(|(name, _)| name.to_string_lossy());
                    names.map(std::borrow::Cow::into_owned).collect()
                });
                let environment = configuration.environment();
                let is_kept =
                    |name: &String| environment.text(name).is_some() && !shown.contains(name);
                if let Some(value) = unsaid_value(&server) {
                    left.push(format!(
                        "the MCP server `{name}` is not started: nobody told it `{value}`; `caliban plugin configure {} {value}=…` does",
                        package.name()
                    ));
                    continue;
                }
                match server_variables(&server).iter().find(|name| is_kept(name)) {
                    Some(variable) => left.push(format!(
                        "the MCP server `{name}` is not started: it asks for `{variable}`, which is kept from programs; name it in `env` of the settings to hand it over"
                    )),
                    None => servers.push((name, server)),
                }
            }
        }
        (servers, left)
    }

    /// Whether a file is one of a plugin that counts.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        self.whole()
            .any(|(_, package)| path.starts_with(&package.root))
    }

    /// What the first frame says of them.
    pub(crate) fn facts(&self) -> Vec<PluginFacts> {
        let facts = |(found, package): (&Found, &Package)| PluginFacts {
            name: package.name().to_string(),
            path: found.path.display().to_string(),
            source: source(found),
            version: package.manifest.version.clone(),
        };
        self.whole().map(facts).collect()
    }

    /// What lists show of them.
    pub(crate) fn listed(&self) -> Vec<Listed> {
        let row = |found: &Found| {
            let description = found
                .package()
                .and_then(|it| it.manifest.description.clone());
            let description = description.map_or_else(String::new, |text| format!(", {text}"));
            Listed {
                name: found.name.clone(),
                about: format!("{}{description}", self.state(found)),
                origin: source(found),
            }
        };
        self.found.iter().map(row).collect()
    }
}

/// Where a plugin comes from, in a word.
pub fn source(found: &Found) -> String {
    let marketplace = found
        .installed
        .as_ref()
        .and_then(|it| it.origin.marketplace());
    match marketplace {
        Some(marketplace) => format!("{}@{marketplace}", found.name),
        None => found.owner.as_str().to_owned(),
    }
}

/// Whether a plugin counts, in a word.
fn standing(standing: &Standing) -> String {
    match standing {
        Standing::Active(_) => "enabled".to_owned(),
        Standing::Disabled(_) => "disabled".to_owned(),
        Standing::Shadowed(by) => format!("replaced by the {} one", by.as_str()),
        Standing::Untrusted(reason) => format!("not trusted: {reason}"),
        Standing::Unsuitable(reason) => format!("not suitable: {reason}"),
        Standing::Broken(reason) => format!("broken: {reason}"),
    }
}

/// The scope whose hooks those of a plugin stand beside.
fn scope(owner: Owner) -> Scope {
    match owner {
        Owner::Managed => Scope::Managed,
        Owner::Project => Scope::Project,
        Owner::Given => Scope::Cli,
        Owner::User => Scope::User,
    }
}

/// Nobody was asked about a plugin that was put into the user's directory by hand: what it runs is
/// told once. Says what, with its digest.
fn first_sight(
    package: &Package,
    found: &Found,
    configuration: &Configuration,
) -> Option<(String, String)> {
    if found
        .installed
        .as_ref()
        .is_some_and(|it| it.origin.is_gated())
    {
        return None;
    }
    let survey = survey(package);
    let effects = Effects::of(package, &survey);
    if effects.is_empty() {
        return None;
    }
    let records = TrustRecords::new(configuration.locations.plugin_trust());
    let digest = effects.digest();
    if records.has_told(package.name(), &digest) {
        return None;
    }
    let lines = effects.lines();
    let more = match lines.len().saturating_sub(TOLD) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let shown: Vec<&str> = lines.iter().take(TOLD).map(String::as_str).collect();
    let warning = format!(
        "the plugin `{}` is new or changed. It {}{more}. `caliban plugin disable {0}` keeps it from that",
        package.name(),
        shown.join("; ")
    );
    Some((warning, digest))
}
