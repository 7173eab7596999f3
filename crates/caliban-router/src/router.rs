//! The router as a provider: whoever asks it need not know that there are routes.

use std::sync::{Arc, Mutex};

use caliban_model::{
    CancellationToken, Capabilities, Error, ErrorKind, EventStream, ModelInfo, Provider, Purpose,
    RateCard, Request, RouteAccount,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use rust_decimal::Decimal;

use crate::accounts::Account;
use crate::clock::{Clock, SystemClock};
use crate::core::{Core, Counts, Hedging, State};
use crate::dice::{Dice, SharedDice};
use crate::dispatch::dispatch;
use crate::facts::Facts;
use crate::resolution::{Resolution, View};
use crate::retry::RetryPolicy;
use crate::route::{Seat, Table};
use crate::shared::SharedStates;

/// What a router is made of.
#[derive(Debug)]
pub struct Parts {
    pub table: Table,
    pub rates: Arc<RateCard>,
    pub retries: RetryPolicy,
    /// USD over the whole run.
    pub budget: Option<Decimal>,
    /// Where processes tell each other of outages; nowhere if they do not.
    pub shared: Option<SharedStates>,
    pub hedging: Hedging,
    pub clock: Arc<dyn Clock>,
    /// Chance that can be repeated; without it, nobody can foretell it.
    pub dice: Option<Dice>,
}

impl Parts {
    /// A router that knows only this table.
    pub fn new(table: Table) -> Self {
        Self {
            table,
            rates: Arc::new(RateCard::builtin().clone()),
            retries: RetryPolicy::default(),
            budget: None,
            shared: None,
            hedging: Hedging::AsConfigured,
            clock: Arc::new(SystemClock::new()),
            dice: None,
        }
    }
}

/// Answers requests by asking routes. Cheap to clone; copies share what they have learnt.
#[derive(Debug, Clone)]
pub struct Router(Arc<Core>);

impl Router {
    pub fn new(parts: Parts) -> Self {
        let Parts {
            table,
            rates,
            retries,
            budget,
            shared,
            hedging,
            clock,
            dice,
        } = parts;
        Self(Arc::new(Core {
            table,
            rates,
            retries,
            budget,
            shared,
            hedging,
            clock,
            dice: dice.map_or_else(SharedDice::unforeseen, SharedDice::new),
            state: Mutex::new(State::default()),
        }))
    }

    pub fn table(&self) -> &Table {
        &self.0.table
    }

    pub fn rates(&self) -> &RateCard {
        &self.0.rates
    }

    /// Who would answer, and why. Nobody is asked.
    pub fn resolve(&self, facts: &Facts) -> Resolution {
        self.0.resolve(facts)
    }

    /// What is known about the routes.
    pub fn view(&self, facts: &Facts) -> View {
        self.0.view(facts)
    }

    pub fn counts(&self) -> Counts {
        self.0.counts()
    }

    /// What each route has done and cost.
    pub fn accounts(&self) -> Vec<(Arc<str>, Purpose, Account)> {
        self.0.accounts()
    }

    /// Who answers the person, if all is well.
    fn main(&self) -> Option<&Seat> {
        Some(&self.0.table.main()?.seat)
    }
}

impl Provider for Router {
    fn accounts(&self) -> Vec<RouteAccount> {
        let account = |(route, purpose, account): (Arc<str>, Purpose, Account)| RouteAccount {
            route: route.to_string(),
            purpose,
            answers: account.answers,
            failures: account.failures,
            usage: account.usage,
            wasted: account.wasted,
            cost: account.cost,
            wasted_cost: account.wasted_cost,
        };
        self.0.accounts().into_iter().map(account).collect()
    }

    fn id(&self) -> &str {
        match self.main() {
            Some(Seat::Connected(provider)) => provider.id(),
            Some(Seat::Vacant { provider, .. }) => provider,
            None => "router",
        }
    }

    /// What the route of a model can do. While another one stands in for the first, no more than
    /// that one's window counts.
    fn capabilities(&self, model: &str) -> Capabilities {
        let table = &self.0.table;
        let of = |seat: &Seat, model: &str| match seat {
            Seat::Connected(provider) => provider.capabilities(model),
            Seat::Vacant { provider, .. } => caliban_model::capabilities(provider, model),
        };
        let named = table.routes.iter().find(|route| &*route.model == model);
        let seat = named.map(|route| &route.seat).or_else(|| self.main());
        let mut able = match seat {
            Some(seat) => of(seat, model),
            None => caliban_model::capabilities("", model),
        };
        let is_main = table
            .head(Purpose::MainLoop)
            .is_some_and(|head| &*head.model == model);
        let stand_in = self.0.stand_in(Purpose::MainLoop).filter(|_| is_main);
        if let Some(route) = stand_in.and_then(|id| table.route(&id)) {
            let other = of(&route.seat, &route.model).context_window;
            able.context_window = match (able.context_window, other) {
                (Some(own), Some(other)) => Some(own.min(other)),
                (own, other) => own.or(other),
            };
        }
        able
    }

    fn stream(&self, request: Request, cancel: CancellationToken) -> EventStream {
        dispatch(Arc::clone(&self.0), request, cancel)
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>> {
        match self.main() {
            Some(Seat::Connected(provider)) => provider.models(),
            Some(Seat::Vacant { provider, reason }) => {
                let error = Error::new(ErrorKind::Auth, &**provider, "", reason);
                async move { Err(error) }.boxed()
            }
            None => {
                let error = Error::new(ErrorKind::Invalid, "router", "", "there is no route");
                async move { Err(error) }.boxed()
            }
        }
    }
}
