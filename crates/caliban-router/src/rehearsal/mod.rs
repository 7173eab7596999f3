//! A rehearsal of outages: the same router, on a clock that nobody waits for, over providers that
//! fail as weather does. What comes out depends on the table, the weather and the seed alone.

mod measured;
mod provider;
mod weather;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use caliban_model::{
    CancellationToken, Message, Provider, RateCard, Request, Shown, StreamEvent, Usage,
};
use futures::StreamExt;

use crate::clock::{Clock, VirtualClock};
use crate::dice::Dice;
use crate::retry::RetryPolicy;
use crate::route::{Route, Seat, Table};
use crate::router::{Parts, Router};

use measured::Session;
pub use measured::{Comparison, Difference, Report};
use provider::{Outage, Simulated};
pub use weather::{Load, Outages, Patch, Preset, Weather};

/// What is rehearsed.
#[derive(Debug, Clone)]
pub struct Rehearsal {
    pub table: Table,
    pub rates: Arc<RateCard>,
    pub retries: RetryPolicy,
    pub outages: Outages,
    pub seed: u64,
    pub sessions: u32,
    pub turns: u32,
}

impl Rehearsal {
    /// Plays all sessions. Nothing is sent to anybody.
    pub fn report(&self) -> Report {
        let sessions: Vec<Session> = (0..self.sessions)
            .map(|number| self.session(number))
            .collect();
        Report::of(&sessions)
    }

    /// Plays both with the same weather, session by session.
    pub fn compare(&self, other: &Self) -> Comparison {
        let play = |rehearsal: &Self| -> Vec<Session> {
            (0..self.sessions)
                .map(|number| rehearsal.session(number))
                .collect()
        };
        Comparison::of(&play(self), &play(other))
    }

    fn session(&self, number: u32) -> Session {
        let clock = VirtualClock::default();
        let seed = Dice::named(self.seed, &format!("session {number}")).roll();
        let router = self.router(&clock, seed);
        let mut session = Session::default();
        // Providers that nobody else waits for always end.
        clock.run(self.play(&router, &clock, seed, &mut session));
        session.take_over(&router, &self.rates);
        session
    }

    /// The table with providers that only pretend. Those of one vendor fail together.
    fn router(&self, clock: &VirtualClock, seed: u64) -> Router {
        let mut outages: HashMap<String, Arc<Mutex<Outage>>> = HashMap::new();
        let routes = self.table.routes().iter().map(|route| {
            let name = route.provider_name().to_owned();
            let of_provider = self.outages.of_provider(&name);
            let outage = outages.entry(name.clone()).or_insert_with(|| {
                let dice = Dice::named(seed, &format!("outages of {name}"));
                Arc::new(Mutex::new(Outage::new(dice, &of_provider)))
            });
            let simulated = Simulated::new(
                name.clone(),
                clock.clone(),
                Arc::clone(outage),
                self.outages.of_route(&name, &route.id),
                self.outages.load.output_tokens,
                Dice::named(seed, &format!("answers of {}", route.id)),
            );
            Route {
                seat: Seat::Connected(Arc::new(simulated)),
                ..route.clone()
            }
        });
        Router::new(Parts {
            rates: Arc::clone(&self.rates),
            retries: self.retries,
            clock: Arc::new(clock.clone()),
            dice: Some(Dice::named(seed, "router")),
            ..Parts::new(Table::new(routes.collect(), self.table.settings().clone()))
        })
    }

    async fn play(&self, router: &Router, clock: &VirtualClock, seed: u64, session: &mut Session) {
        let load = &self.outages.load;
        let mut dice = Dice::named(seed, "person");
        let mut messages = vec![text(load.prefix_tokens)];
        let model = self.table.head(caliban_model::Purpose::MainLoop);
        let model = model.map_or_else(|| Arc::from(""), |route| Arc::clone(&route.model));
        for turn in 0..self.turns {
            let pause = dice.exponential(load.think_secs);
            clock.sleep(Duration::from_secs_f64(pause)).await;
            messages.push(text(load.growth(turn)));
            let Ok(mut request) = Request::new(Arc::clone(&model), messages.clone().into()) else {
                return;
            };
            request.metadata.session = Some("rehearsal".to_owned());
            answer(router, clock, request, session).await;
        }
    }
}

/// Hears one answer and measures it.
async fn answer(router: &Router, clock: &VirtualClock, request: Request, session: &mut Session) {
    let asked = clock.now();
    // When the attempt began that the answer came from.
    let mut begun = asked;
    let mut first = None;
    let mut is_restarted = false;
    let mut events = router.stream(request, CancellationToken::new());
    while let Some(event) = events.next().await {
        match event {
            Ok(StreamEvent::Retrying(retry)) => {
                begun = clock.now() + retry.delay;
                is_restarted |= retry.shown == Shown::Superseded;
                first = None;
            }
            Ok(StreamEvent::Rerouted(_)) => {
                begun = clock.now();
                is_restarted |= first.is_some();
                first = None;
                session.hops += 1;
            }
            Ok(StreamEvent::TextDelta { .. }) => {
                first.get_or_insert(clock.now());
            }
            Ok(StreamEvent::Stopped { .. }) => {
                session.answered += 1;
                let first = first.unwrap_or(begun);
                session.first.push(first.saturating_sub(asked));
            }
            Ok(_) => {}
            Err(_) => session.failed += 1,
        }
    }
    session.restarted += u64::from(is_restarted);
    session.waited += begun.saturating_sub(asked);
}

/// So much text, and no more is ever looked at than its length.
fn text(tokens: u64) -> Arc<Message> {
    let bytes = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX);
    Arc::new(Message::user("x".repeat(bytes.min(weather::MAX_TEXT))))
}

/// The usage of a call, as a provider with a cache counts it.
fn counted(input: u64, cached: u64, output: u64) -> Usage {
    Usage {
        cache_read: cached.min(input),
        cache_write_5m: input.saturating_sub(cached),
        output,
        ..Usage::default()
    }
}
