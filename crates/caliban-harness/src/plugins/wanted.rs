//! Plugins that others need: what installing one brings along, and what keeps one from going.

use std::collections::BTreeMap;

use caliban_plugins::{Dependency, Origin, PluginName};

use super::PluginSet;
use super::manage::{Manager, Plan, Wanted};
use super::markets::OpenMarket;
use super::problem::ManageError;

/// The most plugins that are installed at once.
const MOST: usize = 32;

impl Manager<'_> {
    /// Works out what installing would do, with the plugins that are needed and not there. Those
    /// that are needed come first.
    pub async fn plan_all(&self, wanted: &Wanted) -> Result<Vec<Plan>, ManageError> {
        let first = self.plan(wanted).await?;
        self.with_needed(first).await
    }

    /// A plan with those of the plugins that it needs.
    pub async fn with_needed(&self, first: Plan) -> Result<Vec<Plan>, ManageError> {
        let present = self.present()?;
        let mut plans = vec![first];
        let mut at = 0;
        while let Some(plan) = plans.get(at) {
            let by = plan.package.name().clone();
            let origin = plan.origin.clone();
            for dependency in plan.package.manifest.dependencies.clone() {
                let name = &dependency.name;
                let planned = plans.iter().find(|plan| plan.package.name() == name);
                let version = match planned {
                    Some(plan) => Some(plan.version.clone()),
                    None => present.get(name).cloned(),
                };
                match version {
                    Some(version) if dependency.accepts(version.as_deref()) => {}
                    Some(version) => return Err(unfit(&by, &dependency, version.as_deref())),
                    None if plans.len() == MOST => return Err(ManageError::TooMany(MOST)),
                    None => {
                        let market = self.market_for(&by, &dependency, &origin).await?;
                        let plan = self.plan_listed(name.as_str(), None, &market).await?;
                        if !dependency.accepts(plan.version.as_deref()) {
                            return Err(unfit(&by, &dependency, plan.version.as_deref()));
                        }
                        plans.push(plan);
                    }
                }
            }
            at += 1;
        }
        refuse_circles(&plans)?;
        plans.reverse();
        Ok(plans)
    }

    /// The plugins that count here already, with their versions.
    fn present(&self) -> Result<BTreeMap<PluginName, Option<String>>, ManageError> {
        let mut present: BTreeMap<PluginName, Option<String>> = BTreeMap::new();
        for (name, installed) in self.installed()? {
            present.insert(name, installed.version);
        }
        for found in PluginSet::all(self.configuration()).found {
            if let Some(package) = found.package() {
                let name = package.name().clone();
                let version = package.manifest.version.clone();
                present.entry(name).or_insert(version);
            }
        }
        Ok(present)
    }

    /// The marketplace that a plugin comes from which another one needs: the same, or one that the
    /// user knows. A plugin brings no marketplaces along.
    async fn market_for(
        &self,
        by: &PluginName,
        dependency: &Dependency,
        origin: &Origin,
    ) -> Result<OpenMarket, ManageError> {
        match (&dependency.marketplace, origin) {
            (Some(named), _) if self.markets()?.contains_key(named) => self.open(named).await,
            (None, Origin::Marketplace { name, source, .. }) => self.market_of(name, source).await,
            (Some(_), _) | (None, Origin::Directory { .. }) => Err(ManageError::Needs {
                plugin: by.clone(),
                needed: dependency.name.clone(),
                marketplace: dependency.marketplace.clone(),
            }),
        }
    }
}

fn unfit(by: &PluginName, dependency: &Dependency, version: Option<&str>) -> ManageError {
    ManageError::Unfit {
        plugin: by.clone(),
        needed: dependency.name.clone(),
        wanted: dependency
            .version
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        version: version.unwrap_or("without a version").to_owned(),
    }
}

/// Plugins that need each other in a circle cannot be installed one after the other.
fn refuse_circles(plans: &[Plan]) -> Result<(), ManageError> {
    let mut open: Vec<&Plan> = plans.iter().collect();
    loop {
        let names: Vec<&PluginName> = open.iter().map(|plan| plan.package.name()).collect();
        let before = open.len();
        open.retain(|plan| {
            let mut needed = plan.package.manifest.dependencies.iter();
            needed.any(|it| names.contains(&&it.name))
        });
        if open.is_empty() {
            return Ok(());
        }
        if open.len() == before {
            let names = open.iter().map(|plan| plan.package.name().to_string());
            return Err(ManageError::Circle(names.collect::<Vec<_>>().join(", ")));
        }
    }
}

/// The enabled plugins that need one.
pub fn dependants(set: &PluginSet, name: &str) -> Vec<String> {
    let active = set.found.iter().filter_map(|found| found.active());
    let needs = active.filter(|package| {
        let mut needed = package.manifest.dependencies.iter();
        needed.any(|it| it.name.as_str() == name)
    });
    needs.map(|package| package.name().to_string()).collect()
}
