//! Plugins that are installed as a project's lock says, to the byte.

use std::collections::BTreeMap;

use caliban_plugins::{Entry, EntrySource, Locked, MarketSource, Origin, PluginLock, PluginName};

use super::manage::{Manager, Plan};
use super::problem::ManageError;

/// What of the installed plugins another machine can have.
#[derive(Debug)]
pub struct Lockable {
    pub plugins: BTreeMap<PluginName, Locked>,
    /// Those of directories of this machine.
    pub left_out: Vec<PluginName>,
}

impl Manager<'_> {
    /// The lock of the project.
    pub fn lock(&self) -> PluginLock {
        let locations = &self.configuration.locations;
        PluginLock::of(&locations.project_dir(self.configuration.project()))
    }

    /// What would be locked.
    pub fn lockable(&self) -> Result<Lockable, ManageError> {
        let mut lockable = Lockable {
            plugins: BTreeMap::new(),
            left_out: Vec::new(),
        };
        let project = self.configuration.project();
        for (name, installed) in self.installed()? {
            if installed
                .only
                .as_deref()
                .is_some_and(|only| only != project)
            {
                continue;
            }
            match &installed.origin {
                Origin::Directory { .. } => lockable.left_out.push(name),
                Origin::Marketplace { .. } => {
                    lockable.plugins.insert(name, installed.into());
                }
            }
        }
        Ok(lockable)
    }

    /// Works out what installing everything that is locked would do. What is there already as it
    /// is locked is left alone.
    pub async fn plan_locked(&self) -> Result<Vec<Plan>, ManageError> {
        let installed = self.installed()?;
        let mut plans = Vec::new();
        for (name, locked) in self.lock().read()? {
            let is_there = installed
                .get(&name)
                .is_some_and(|it| it.digest == locked.digest && self.lies_as_installed(&name));
            if !is_there {
                plans.push(self.plan_one(&name, &locked).await?);
            }
        }
        Ok(plans)
    }

    async fn plan_one(&self, name: &PluginName, locked: &Locked) -> Result<Plan, ManageError> {
        let Origin::Marketplace {
            source,
            plugin,
            commit,
            ..
        } = &locked.origin
        else {
            let place = self.lock().path().display().to_string();
            let reason =
                format!("`{name}` comes from a directory, which other machines do not have");
            return Err(ManageError::fetch(&place, &reason));
        };
        self.policy.judge(&locked.origin)?;
        let commit = commit.as_deref();
        let listed_at = match (source, &**plugin) {
            (MarketSource::Git { .. }, EntrySource::Path { .. }) => commit,
            _ => None,
        };
        let market = self.fetch(source.clone(), listed_at).await?;
        let entry = market
            .list
            .entry(name.as_str())
            .ok_or_else(|| ManageError::NoEntry {
                marketplace: market.name.clone(),
                plugin: name.to_string(),
                remedy: " any more".to_owned(),
            })?;
        let entry = Entry {
            source: Ok(pinned(plugin, commit, locked.version.as_deref())),
            version: locked.version.clone(),
            ..entry.clone()
        };
        let plan = self.plan_entry(&entry, &market).await?;
        if plan.tree.digest != locked.digest {
            return Err(ManageError::NotAsLocked {
                plugin: name.clone(),
                locked: locked.digest.clone(),
                found: plan.tree.digest,
            });
        }
        Ok(plan)
    }
}

/// Where a plugin lies, at what it was.
fn pinned(source: &EntrySource, commit: Option<&str>, version: Option<&str>) -> EntrySource {
    let mut source = source.clone();
    match &mut source {
        EntrySource::Git { sha, .. } => *sha = commit.map(str::to_owned).or(sha.take()),
        EntrySource::Npm {
            version: wanted, ..
        } => *wanted = version.map(str::to_owned).or(wanted.take()),
        // The digest of the archive, or the commit of the list, says it.
        EntrySource::Path { .. } | EntrySource::Archive { .. } => {}
    }
    source
}
