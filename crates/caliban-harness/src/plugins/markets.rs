//! Marketplaces: which are known, what they have, and how their lists come here.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use caliban_plugins::{
    Acknowledgements, KnownMarketplace, MarketKey, MarketSource, Marketplace, Staging, StagingError,
};
use caliban_settings::Scope;
use jiff::Timestamp;

use super::fetch::{self, Proof};
use super::manage::Manager;
use super::problem::ManageError;

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

/// Whether the list of a marketplace is somebody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signing {
    /// It has a signature of the key that the settings name so.
    By(String),
    /// The settings have no key for it.
    Unchecked,
}

/// A marketplace whose list was read.
pub(super) struct OpenMarket {
    pub(super) name: String,
    pub(super) source: MarketSource,
    pub(super) list: Marketplace,
    pub(super) root: Option<PathBuf>,
    pub(super) commit: Option<String>,
    pub(super) signing: Signing,
    /// Keeps what was fetched for this once.
    _fetched: Option<tempfile::TempDir>,
}

impl Manager<'_> {
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

    /// Looks through the lists that are at hand; also says which of them cannot be read.
    pub fn search(&self, word: &str) -> Result<(Vec<SearchHit>, Vec<String>), ManageError> {
        let word = word.to_lowercase();
        let mut hits = Vec::new();
        let mut unread = Vec::new();
        for (name, known) in self.markets.all()? {
            if self
                .policy
                .judge_source(Some(&name), &known.source)
                .is_err()
            {
                continue;
            }
            let market = match self.at_hand(&name, &known) {
                Ok(market) => market,
                Err(error) => {
                    unread.push(format!("the marketplace `{name}` is left out: {error}"));
                    continue;
                }
            };
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
        Ok((hits, unread))
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
            let market = self.fetch(source, None).await?;
            return Ok(OpenMarket {
                name: text.to_owned(),
                ..market
            });
        }
        if !text.contains(['/', ':', '.']) {
            return Err(ManageError::NoMarketplace(text.to_owned()));
        }
        self.fetch(self.source(text)?, None).await
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
        self.opened(known.source.clone(), fetched, Some(name), None)
    }

    /// Fetches a marketplace for this once; of a repository this commit, where it is named.
    pub(super) async fn fetch(
        &self,
        source: MarketSource,
        commit: Option<&str>,
    ) -> Result<OpenMarket, ManageError> {
        self.policy.judge_source(None, &source)?;
        let directory = tempfile::tempdir()
            .map_err(|error| ManageError::fetch(&source.to_string(), &error.to_string()))?;
        let (place, proof) = (directory.path(), self.proof());
        let fetched = fetch::market(self.configuration, &source, commit, proof, place).await?;
        let market = self.opened(source, fetched, None, Some(directory))?;
        // It may call itself something that is blocked.
        self.policy
            .judge_source(Some(&market.name), &market.source)?;
        Ok(market)
    }

    /// Whether signatures are looked for.
    fn proof(&self) -> Proof {
        if self.keys().is_empty() {
            Proof::Unneeded
        } else {
            Proof::Wanted
        }
    }

    /// The keys that lists are held to. A workspace names none, and the organisation's count first.
    fn keys(&self) -> BTreeMap<String, String> {
        let layers = self.configuration.loaded.layers();
        let mut keys = BTreeMap::new();
        for scope in [Scope::User, Scope::Cli, Scope::Managed] {
            let found = layers.iter().filter(|layer| layer.scope == scope);
            keys.extend(found.flat_map(|it| it.settings.plugins.marketplaces.keys.clone()));
        }
        keys
    }

    /// Holds a list to the keys of every name that its marketplace has: the one it was added
    /// under, the one it gives itself, and those of the settings for its address.
    fn signing(
        &self,
        source: &MarketSource,
        names: &[&str],
        fetched: &fetch::FetchedMarket,
    ) -> Result<Signing, ManageError> {
        let mut signing = Signing::Unchecked;
        let known = &self.configuration.settings().plugins.marketplaces.known;
        let added = self.markets.all()?;
        let is_its_own = |name: &String| {
            let told = known.get(name).and_then(|text| self.source(text).ok());
            let told = told.or_else(|| added.get(name).map(|it| it.source.clone()));
            names.contains(&name.as_str())
                || told.is_some_and(|told| told.identity() == source.identity())
        };
        for (name, key) in self.keys().iter().filter(|(name, _)| is_its_own(name)) {
            let wrong = |error| ManageError::Signature {
                place: source.to_string(),
                source: error,
            };
            let key = MarketKey::parse(name, key).map_err(wrong)?;
            key.verify(&fetched.text, fetched.signature.as_deref())
                .map_err(wrong)?;
            signing = Signing::By(name.clone());
        }
        Ok(signing)
    }

    fn opened(
        &self,
        source: MarketSource,
        fetched: fetch::FetchedMarket,
        known_as: Option<&str>,
        directory: Option<tempfile::TempDir>,
    ) -> Result<OpenMarket, ManageError> {
        let list = match &source {
            MarketSource::Index { url } => Marketplace::parse_from(&fetched.text, url),
            MarketSource::Git { .. } | MarketSource::Directory { .. } => {
                Marketplace::parse(&fetched.text)
            }
        };
        let list = list.map_err(|error| ManageError::Index {
            place: source.to_string(),
            source: error,
        })?;
        let called = list.called(&source);
        let names = [known_as.unwrap_or(&called), &called];
        Ok(OpenMarket {
            signing: self.signing(&source, &names, &fetched)?,
            name: called,
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
        let proof = self.proof();
        let fetched = fetch::market(self.configuration, &source, None, proof, &into).await?;
        let market = self.opened(source, fetched, known_as, None)?;
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
}
