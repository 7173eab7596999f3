//! From what is configured to the table of routes: `caliban.toml`, the settings, `--model`,
//! `--fallback-model` and `model_overrides` all become routes, so that there is one way for a
//! request to be answered.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use caliban_agent::ModelOverrides;
use caliban_model::{ProviderKind, Purpose, RateCard};
use caliban_providers::ConfigError;
use caliban_router::{
    BreakerPolicy, BudgetRule, Declared, Escape, HedgePolicy, Hedging, Order, Origins, Parts,
    Route, RouteEffort, Router, SameAccount, Seat, SharedStates, Strictness, Table, TableSettings,
};
use caliban_settings::variables::{Environment, names};
use caliban_settings::{Breaker, FallbackOn, Hedge, ModelChoice, RouteOrder, RouterConfig, Toggle};
use rust_decimal::Decimal;

use crate::agent_settings::model_for;
use crate::choosing::rates;
use crate::configuration::Configuration;
use crate::error::LaunchError;
use crate::options::ModelOptions;
use crate::provider::{account, connect, kind, model, provider_of, retries};

/// How long a route may say nothing before another joins, where a file does not tell.
const HEDGE_AFTER: Duration = Duration::from_millis(1_500);

/// What a run asks for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What options say.
    pub options: &'a ModelOptions,
    /// The same, and what they leave open as it was in the session that goes on.
    pub continued: &'a ModelOptions,
    pub budget: Option<Decimal>,
}

/// What becomes of a route that comes first and has no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vacancies {
    /// No run begins.
    Fatal,
    /// It is shown.
    Shown,
}

/// All routes of a run.
#[derive(Debug)]
pub struct Routes {
    pub table: Table,
    /// The model of the main loop, and the one that stands in for it first.
    pub model: String,
    pub fallback_model: Option<String>,
    pub warnings: Vec<String>,
    sharing: Sharing,
}

/// Whether processes tell each other of outages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    On,
    Off,
}

impl Routes {
    /// A flag comes before a route, that before `model_overrides`, those before the settings, and
    /// these before the default. A flag is about the main loop only.
    pub fn compile(
        asked: &Asked<'_>,
        vacancies: Vacancies,
        configuration: &Configuration,
    ) -> Result<Self, LaunchError> {
        let configured = configuration.routes()?;
        let (config, place) = configured.unwrap_or_default();
        let mut building = Building {
            configuration,
            config: &config,
            betas: &asked.options.betas,
            vacancies,
            seats: Vec::new(),
            routes: Vec::new(),
            warnings: Vec::new(),
        };
        building.main_loop(asked, &place)?;
        for purpose in Purpose::ALL {
            if purpose != Purpose::MainLoop {
                building.purpose(purpose)?;
            }
        }
        let Building {
            mut routes,
            mut warnings,
            ..
        } = building;
        if let [only] = routes.as_mut_slice() {
            // There is nobody to turn to.
            only.breaker = None;
        }
        let table = Table::new(routes, settings(&config, configuration.environment()));
        warnings.extend(table.warnings().iter().cloned());
        let main = table.head(Purpose::MainLoop);
        let model = main.map(|route| route.model.to_string());
        let fallback_model = table.stand_in().map(|route| route.model.to_string());
        Ok(Self {
            model: model.unwrap_or_default(),
            fallback_model,
            warnings,
            sharing: match config.breaker.and_then(|breaker| breaker.shared) {
                Some(false) => Sharing::Off,
                Some(true) | None => Sharing::On,
            },
            table,
        })
    }

    /// The models that callers name for purposes that have routes of their own.
    pub fn overrides(&self) -> ModelOverrides {
        let of = |purpose| Some(Arc::clone(&self.table.head(purpose)?.model));
        ModelOverrides {
            summarization: of(Purpose::Summarization),
            classifier: of(Purpose::FastClassifier).or_else(|| of(Purpose::Summarization)),
            sub_agent: of(Purpose::SubAgent),
        }
    }

    /// The provider that is made of them.
    pub fn router(
        self,
        budget: Option<Decimal>,
        hedging: Hedging,
        configuration: &Configuration,
    ) -> Result<Router, LaunchError> {
        let is_choice = self.table.routes().len() > 1;
        Ok(Router::new(Parts {
            rates: rates(configuration.environment())?,
            retries: retries(configuration)?,
            budget,
            shared: (self.sharing == Sharing::On && is_choice)
                .then(|| SharedStates::new(configuration.locations.router_state())),
            hedging,
            ..Parts::new(self.table)
        }))
    }
}

/// A table on its way.
struct Building<'a> {
    configuration: &'a Configuration,
    config: &'a RouterConfig,
    betas: &'a [String],
    vacancies: Vacancies,
    /// One connection for each provider.
    seats: Vec<(ProviderKind, Seat)>,
    routes: Vec<Route>,
    warnings: Vec<String>,
}

impl Building<'_> {
    /// The routes of the main loop: those of a flag, else those that are declared, else the model
    /// that is chosen otherwise.
    fn main_loop(&mut self, asked: &Asked<'_>, place: &str) -> Result<(), LaunchError> {
        let options = asked.options;
        let environment = self.configuration.environment();
        let is_pinned = options.model.is_some()
            || options.provider.is_some()
            || environment.text(names::CALIBAN_PROVIDER).is_some();
        let is_declared = self.is_declared(Purpose::MainLoop);
        if is_declared && is_pinned {
            self.warnings.push(format!(
                "the model was chosen for this run: the routes for `main_loop` in {place} do not count"
            ));
        }
        let named = options.fallback.clone().map(ModelChoice::Name);
        if is_declared && !is_pinned {
            self.declared(Purpose::MainLoop)?;
            if let Some(fallback) = named {
                let first = self
                    .routes
                    .first()
                    .map(|route| route.provider_name().parse());
                let first = first
                    .and_then(Result::ok)
                    .unwrap_or(ProviderKind::Anthropic);
                self.stand_in(&fallback, first)?;
            }
            return Ok(());
        }
        let chosen = asked.continued;
        let first = kind(chosen.provider, chosen.model.as_deref(), self.configuration)?;
        let model = model(chosen.model.as_deref(), first, self.configuration);
        let route = self.implied(Purpose::MainLoop, first, &model, Place::First)?;
        self.routes.push(route);
        let fallback = named.or_else(|| self.configuration.settings().fallback_model.clone());
        match fallback {
            Some(fallback) => self.stand_in(&fallback, first),
            None => Ok(()),
        }
    }

    /// Puts a model behind the first one, before all others.
    fn stand_in(&mut self, model: &ModelChoice, first: ProviderKind) -> Result<(), LaunchError> {
        // Another provider's model needs that provider; any other name is this provider's.
        let other = provider_of(model).unwrap_or(first);
        let route = self.implied(Purpose::MainLoop, other, model.name(), Place::Later)?;
        let is_known = |known: &Route| known.id == route.id;
        if self.routes.first().is_some_and(is_known) {
            return Ok(());
        }
        self.routes.retain(|known| !is_known(known));
        if let Some(first) = self.routes.first_mut()
            && first.fallback.is_some()
        {
            first.fallback = Some(vec![Arc::clone(&route.id)]);
        }
        let place = self.routes.len().min(1);
        self.routes.insert(place, route);
        Ok(())
    }

    fn is_declared(&self, purpose: Purpose) -> bool {
        let mut routes = self.config.routes.iter();
        routes.any(|route| route.purpose == purpose)
    }

    /// The routes of another purpose: those that are declared, else the model that
    /// `model_overrides` pins it to.
    fn purpose(&mut self, purpose: Purpose) -> Result<(), LaunchError> {
        if self.is_declared(purpose) {
            return self.declared(purpose);
        }
        let pinned = model_for(purpose, self.configuration.settings());
        let Some(model) = pinned.map(str::to_owned) else {
            return Ok(());
        };
        let Some(main) = self.routes.first() else {
            return Ok(());
        };
        let first = main.provider_name().parse();
        let first = first.unwrap_or(ProviderKind::Anthropic);
        let stand_ins: Vec<Arc<str>> = self
            .routes
            .iter()
            .filter(|route| route.purpose == Purpose::MainLoop)
            .skip(1)
            .map(|route| Arc::clone(&route.id))
            .collect();
        let mut route = self.implied(purpose, first, &model, Place::First)?;
        route.fallback = Some(stand_ins);
        self.routes.push(route);
        Ok(())
    }

    fn declared(&mut self, purpose: Purpose) -> Result<(), LaunchError> {
        let routes = self.config.routes.iter();
        let mut place = Place::First;
        for route in routes.filter(|route| route.purpose == purpose) {
            let route = self.route(route, place)?;
            self.routes.push(route);
            place = Place::Later;
        }
        Ok(())
    }

    /// A route that somebody wrote down.
    fn route(
        &mut self,
        route: &caliban_settings::Route,
        place: Place,
    ) -> Result<Route, LaunchError> {
        let id = route.id();
        let kind = route.provider.kind();
        let declared = Declared {
            vision: route.requires.vision,
            tools: route.requires.tool_use,
            thinking: route.requires.thinking,
        };
        check_declared(&id, kind, &route.model, declared)?;
        let escape = |on: &FallbackOn| match on {
            FallbackOn::Auth => Escape::Auth,
            FallbackOn::Billing => Escape::Billing,
            FallbackOn::Filtered => Escape::Filtered,
        };
        let fallback = route.fallback.as_ref();
        Ok(Route {
            seat: self.seat(kind, &id, place)?,
            account: account(kind, self.configuration),
            purpose: route.purpose,
            model: Arc::from(route.model.as_str()),
            fallback: fallback.map(|list| list.iter().map(|id| Arc::from(id.as_str())).collect()),
            fallback_on: route.fallback_on.iter().map(escape).collect(),
            hedge: hedge(route.hedge, self.config.hedge),
            breaker: breaker(route.breaker, self.config.breaker),
            declared,
            effort: RouteEffort {
                default: route.effort.and_then(caliban_settings::RouteEffort::level),
                map: route.effort_map.clone(),
            },
            id: Arc::from(id),
        })
    }

    /// A route that follows from a model.
    fn implied(
        &mut self,
        purpose: Purpose,
        kind: ProviderKind,
        model: &str,
        place: Place,
    ) -> Result<Route, LaunchError> {
        let id = Route::default_id(kind.as_str(), model, purpose);
        Ok(Route {
            seat: self.seat(kind, &id, place)?,
            account: account(kind, self.configuration),
            purpose,
            model: Arc::from(model),
            fallback: None,
            fallback_on: [].into(),
            hedge: hedge(Toggle::Inherited, self.config.hedge),
            breaker: breaker(Toggle::Inherited, self.config.breaker),
            declared: Declared::default(),
            effort: RouteEffort::default(),
            id,
        })
    }

    /// Who sits there. A key that is missing ends the start only where the route comes first: a
    /// machine without the key of a fallback must still work.
    fn seat(&mut self, kind: ProviderKind, id: &str, place: Place) -> Result<Seat, LaunchError> {
        let known = self.seats.iter().find(|(known, _)| *known == kind);
        let seat = if let Some((_, seat)) = known {
            seat.clone()
        } else {
            let seat = match connect(kind, self.betas, self.configuration) {
                Ok(provider) => Seat::Connected(provider),
                Err(error) if self.may_be_vacant(&error, place) => Seat::Vacant {
                    provider: Arc::from(kind.as_str()),
                    reason: error.to_string(),
                },
                Err(error) => return Err(error),
            };
            self.seats.push((kind, seat.clone()));
            seat
        };
        if let Seat::Vacant { reason, .. } = &seat {
            if place == Place::First && self.vacancies == Vacancies::Fatal {
                return Err(LaunchError::configuration(format!(
                    "route `{id}`: {reason}"
                )));
            }
            self.warnings
                .push(format!("route `{id}` cannot be used: {reason}"));
        }
        Ok(seat)
    }

    fn may_be_vacant(&self, error: &LaunchError, place: Place) -> bool {
        let cause = error
            .source()
            .and_then(|it| it.downcast_ref::<ConfigError>());
        let is_missing = matches!(
            cause,
            Some(ConfigError::MissingKey { .. } | ConfigError::MissingPlace { .. })
        );
        is_missing && (place == Place::Later || self.vacancies == Vacancies::Shown)
    }
}

/// Whether a route may be the first of its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Later,
}

/// A route that requires what its model is known to lack would be dropped from every request that
/// it is there for.
fn check_declared(
    id: &str,
    kind: ProviderKind,
    model: &str,
    declared: Declared,
) -> Result<(), LaunchError> {
    let rate = RateCard::builtin().lookup(kind.as_str(), model);
    let Some(rate) = rate.filter(|rate| rate.model != "*") else {
        return Ok(());
    };
    let lacking = [
        ("vision", declared.vision, rate.vision),
        ("thinking", declared.thinking, rate.thinking),
    ];
    match lacking
        .iter()
        .find(|(_, said, has)| *said == Some(true) && !has)
    {
        Some((what, ..)) => Err(LaunchError::configuration(format!(
            "route `{id}`: `requires.{what}` is set, and `{model}` is known to lack it; name another model or take it out"
        ))),
        None => Ok(()),
    }
}

fn hedge(own: Toggle<Hedge>, global: Option<Hedge>) -> Option<HedgePolicy> {
    let own = match own {
        Toggle::Off => return None,
        Toggle::Inherited => global?,
        Toggle::Own(own) => own,
    };
    let global = global.unwrap_or_default();
    let after = own.hedge_after_ms.or(global.hedge_after_ms);
    let same_account = own.same_account.or(global.same_account);
    Some(HedgePolicy {
        after: after.map_or(HEDGE_AFTER, Duration::from_millis),
        max: own.max_hedges.or(global.max_hedges).unwrap_or(1),
        max_input_tokens: own
            .max_input_tokens
            .or(global.max_input_tokens)
            .unwrap_or(HedgePolicy::MAX_INPUT_TOKENS),
        same_account: match same_account {
            // Whoever asks for a race gets it.
            Some(true) | None => SameAccount::Raced,
            Some(false) => SameAccount::NotRaced,
        },
    })
}

fn breaker(own: Toggle<Breaker>, global: Option<Breaker>) -> Option<BreakerPolicy> {
    let global = global.unwrap_or_default();
    let own = match own {
        Toggle::Off => return None,
        Toggle::Inherited => global,
        Toggle::Own(own) => own,
    };
    let default = BreakerPolicy::default();
    let seconds = |own: Option<u64>, global: Option<u64>| own.or(global).map(Duration::from_secs);
    Some(BreakerPolicy {
        failure_threshold: own
            .failure_threshold
            .or(global.failure_threshold)
            .unwrap_or(default.failure_threshold),
        window: seconds(own.window_secs, global.window_secs).unwrap_or(default.window),
        cooldown: seconds(own.cooldown_secs, global.cooldown_secs).unwrap_or(default.cooldown),
        max_cooldown: seconds(own.max_cooldown_secs, global.max_cooldown_secs),
        half_open_probes: own
            .half_open_probes
            .or(global.half_open_probes)
            .unwrap_or(default.half_open_probes),
    })
}

fn settings(config: &RouterConfig, environment: &Environment) -> TableSettings {
    let default = TableSettings::default();
    let order = |order: &RouteOrder| match order {
        RouteOrder::Declared => Order::Declared,
        RouteOrder::Cheapest => Order::Cheapest,
        RouteOrder::Fastest => Order::Fastest,
    };
    let budgets = config.budgets.iter();
    TableSettings {
        default_purpose: config.default_purpose.unwrap_or(default.default_purpose),
        origins: if config.routes.is_empty() {
            Origins::Implied
        } else {
            Origins::Declared
        },
        strictness: match environment.text(names::CALIBAN_STRICT_ROUTING).as_deref() {
            Some("0" | "false" | "no" | "off") => Strictness::Lenient,
            Some(_) | None => Strictness::Strict,
        },
        aliases: config.alias.clone(),
        orders: config
            .order
            .iter()
            .map(|(purpose, by)| (*purpose, order(by)))
            .collect(),
        budgets: budgets
            .map(|rule| BudgetRule {
                at: Decimal::try_from(rule.at).unwrap_or(Decimal::ONE),
                purpose: rule.purpose,
                route: Arc::from(rule.route.as_str()),
            })
            .collect(),
        return_after: config
            .return_after_secs
            .map_or(default.return_after, Duration::from_secs),
        stay_from: default.stay_from,
    }
}
