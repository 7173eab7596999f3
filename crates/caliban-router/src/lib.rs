//! A provider made of routes: which one answers a request, which one does when that one cannot,
//! and what it costs. Deciding is a pure function; acting on it is another part; time and chance
//! come from outside. Knows neither HTTP nor the agent.

mod accounts;
mod affinity;
mod attempt;
mod breaker;
mod clock;
mod consequence;
mod core;
mod dice;
mod dispatch;
mod effort;
mod facts;
mod hop;
mod race;
pub mod rehearsal;
mod resolution;
mod resolve;
mod retry;
mod route;
mod router;
mod shared;

pub use accounts::Account;
pub use breaker::{BreakerPolicy, Standing};
pub use clock::{Clock, SystemClock, VirtualClock};
pub use consequence::{
    Again, Consequence, Escape, Health as HealthChange, KINDS, Next, consequence, kind_name,
};
pub use core::{Counts, Hedging};
pub use dice::Dice;
pub use effort::RouteEffort;
pub use facts::{Facts, Need, thinks};
pub use resolution::{Candidate, Considered, Health, Plan, Reason, Resolution, Verdict, View, Why};
pub use resolve::resolve;
pub use retry::RetryPolicy;
pub use route::{
    BudgetRule, Declared, HedgePolicy, Order, Origins, Route, SameAccount, Seat, Strictness, Table,
    TableSettings,
};
pub use router::{Parts, Router};
pub use shared::{OpenRecord, SharedStates};
