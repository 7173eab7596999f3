//! Routes, and the table of all of them: what was configured, as data.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use caliban_model::{Origin, Provider, Purpose};
use rust_decimal::Decimal;

use crate::breaker::BreakerPolicy;
use crate::consequence::Escape;
use crate::effort::RouteEffort;

/// One way to have a request answered.
#[derive(Debug, Clone)]
pub struct Route {
    pub id: Arc<str>,
    pub purpose: Purpose,
    pub seat: Seat,
    pub model: Arc<str>,
    /// Whose limits it shares with other routes; tells nothing about a key.
    pub account: Arc<str>,
    /// The routes tried next: these, or the later ones of its purpose where nothing is said.
    pub fallback: Option<Vec<Arc<str>>>,
    /// Failures that lead to another route although they need not.
    pub fallback_on: BTreeSet<Escape>,
    pub hedge: Option<HedgePolicy>,
    pub breaker: Option<BreakerPolicy>,
    /// What its model can do, where nobody else knows.
    pub declared: Declared,
    pub effort: RouteEffort,
}

/// Who would answer.
#[derive(Debug, Clone)]
pub enum Seat {
    Connected(Arc<dyn Provider>),
    /// It cannot be asked, for this reason.
    Vacant {
        provider: Arc<str>,
        reason: String,
    },
}

/// When other routes are raced against one that is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HedgePolicy {
    /// How long nothing may come before another one joins, and after it the next.
    pub after: Duration,
    /// How many join at most.
    pub max: u32,
    /// Longer inputs are not sent twice.
    pub max_input_tokens: u64,
    pub same_account: SameAccount,
}

impl HedgePolicy {
    /// On a cold prefix of this size a hedge costs a few cents.
    pub const MAX_INPUT_TOKENS: u64 = 32_000;
}

/// Whether routes of one account are raced, which share their limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SameAccount {
    #[default]
    NotRaced,
    Raced,
}

/// What a route is said to be able to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Declared {
    pub vision: Option<bool>,
    pub tools: Option<bool>,
    pub thinking: Option<bool>,
}

/// By what the routes of a purpose are ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    Declared,
    /// By the price of input and output.
    Cheapest,
    /// By how soon they began to answer, of late.
    Fastest,
}

/// Another route from a part of the budget on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetRule {
    /// The part that is spent, at least 0 and at most 1.
    pub at: Decimal,
    pub purpose: Purpose,
    pub route: Arc<str>,
}

/// Where the routes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origins {
    /// Somebody wrote routes down: a request that fits none of them fails.
    Declared,
    /// They follow from a model that was chosen: what does not fit is the provider's to refuse.
    Implied,
}

/// What happens to a request that no route fits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Strictness {
    #[default]
    Strict,
    /// It is sent on, without what does not fit.
    Lenient,
}

/// Everything about a table that is not a route.
#[derive(Debug, Clone)]
pub struct TableSettings {
    pub default_purpose: Purpose,
    pub origins: Origins,
    pub strictness: Strictness,
    /// Words that stand for a route or a model.
    pub aliases: BTreeMap<String, String>,
    pub orders: BTreeMap<Purpose, Order>,
    pub budgets: Vec<BudgetRule>,
    /// How long a session stays on the route that stood in, if the first one works again.
    pub return_after: Duration,
    /// From how many tokens on it stays there beyond the prompt at all: what is shorter is soon
    /// read anew, and the first route is the one that was wanted.
    pub stay_from: u64,
}

impl Default for TableSettings {
    fn default() -> Self {
        Self {
            default_purpose: Purpose::MainLoop,
            origins: Origins::Implied,
            strictness: Strictness::Strict,
            aliases: BTreeMap::new(),
            orders: BTreeMap::new(),
            budgets: Vec::new(),
            return_after: Duration::from_mins(10),
            stay_from: 10_000,
        }
    }
}

/// All routes, in the order they are tried.
#[derive(Debug, Clone)]
pub struct Table {
    pub(crate) routes: Vec<Route>,
    pub(crate) settings: TableSettings,
    warnings: Vec<String>,
}

impl Table {
    /// Fallbacks that name the route itself, or one twice, are left out and said.
    pub fn new(mut routes: Vec<Route>, settings: TableSettings) -> Self {
        let mut warnings = Vec::new();
        for route in &mut routes {
            let mut seen = HashSet::from([Arc::clone(&route.id)]);
            let id = Arc::clone(&route.id);
            if let Some(list) = &mut route.fallback {
                list.retain(|next| {
                    let is_new = seen.insert(Arc::clone(next));
                    if !is_new {
                        warnings.push(format!(
                            "route `{id}`: `{next}` is in its fallbacks more than once, or is itself"
                        ));
                    }
                    is_new
                });
            }
        }
        Self {
            routes,
            settings,
            warnings,
        }
    }

    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    pub fn settings(&self) -> &TableSettings {
        &self.settings
    }

    /// What is odd about it.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub fn route(&self, id: &str) -> Option<&Route> {
        self.routes.iter().find(|route| &*route.id == id)
    }

    /// Who answers the person, if all is well.
    pub fn main(&self) -> Option<&Route> {
        self.head(Purpose::MainLoop).or_else(|| self.routes.first())
    }

    /// Who answers the person in place of the first, where that one fails.
    pub fn stand_in(&self) -> Option<&Route> {
        let head = self.head(Purpose::MainLoop)?;
        let can = |route: &&Route| matches!(route.seat, Seat::Connected(_));
        if let Some(list) = &head.fallback {
            return list.iter().filter_map(|id| self.route(id)).find(can);
        }
        let own = self.routes.iter();
        let own = own.filter(|route| route.purpose == Purpose::MainLoop);
        own.skip(1).find(can)
    }

    /// The first route of a purpose.
    pub fn head(&self, purpose: Purpose) -> Option<&Route> {
        self.routes.iter().find(|route| route.purpose == purpose)
    }
}

impl Route {
    pub fn provider_name(&self) -> &str {
        match &self.seat {
            Seat::Connected(provider) => provider.id(),
            Seat::Vacant { provider, .. } => provider,
        }
    }

    pub fn origin(&self) -> Origin {
        Origin::new(self.provider_name(), Arc::clone(&self.model))
    }

    /// The name of a route that nobody named.
    pub fn default_id(provider: &str, model: &str, purpose: Purpose) -> Arc<str> {
        Arc::from(format!("{provider}:{model}:{}", purpose.slug()))
    }
}
