//! `caliban router test`: one real request for each route.

use std::sync::Arc;

use caliban_model::{CancellationToken, Error, Message, Request, StreamEvent, Usage};
use caliban_router::{Route, Router, Seat};
use futures::StreamExt;

use crate::console::Console;
use crate::exit::Failure;

const PROMPT: &str = "Answer with the word ok.";
const OUTPUT_TOKENS: u32 = 8;

/// Whether money may be spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    Given,
    Missing,
}

pub(crate) async fn run(
    named: &[String],
    consent: Consent,
    router: &Router,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let table = router.table();
    for name in named {
        if table.route(name).is_none() {
            return Err(Failure::Usage(format!("no route has the id `{name}`")));
        }
    }
    let chosen: Vec<&Route> = table
        .routes()
        .iter()
        .filter(|route| named.is_empty() || named.iter().any(|name| **name == *route.id))
        .collect();
    let usage = Usage {
        output: u64::from(OUTPUT_TOKENS),
        ..Usage::estimate(PROMPT.len(), 0)
    };
    for route in &chosen {
        let rate = router.rates().lookup(route.provider_name(), &route.model);
        let price = rate.map_or_else(
            || "an unknown price".to_owned(),
            |rate| format!("at most about ${}", rate.cost(&usage).round_dp(6)),
        );
        console.put(&format!("{}: {price}\n", route.id))?;
    }
    console.flush()?;
    if consent == Consent::Missing {
        return console.write("Nothing was sent. Pass `--yes` to send these requests.\n");
    }
    let mut failed = 0;
    for route in chosen {
        let line = match ask(route, cancel).await {
            Ok(model) => format!("+ {}  answered as {model}\n", route.id),
            Err(reason) => {
                failed += 1;
                format!("- {}  {reason}\n", route.id)
            }
        };
        console.write(&line)?;
    }
    match failed {
        0 => Ok(()),
        1 => Err(Failure::Runtime("one route failed".to_owned())),
        more => Err(Failure::Runtime(format!("{more} routes failed"))),
    }
}

/// Asks without retries: what a first attempt meets is what was asked about.
async fn ask(route: &Route, cancel: &CancellationToken) -> Result<String, String> {
    let provider = match &route.seat {
        Seat::Connected(provider) => provider,
        Seat::Vacant { reason, .. } => return Err(reason.clone()),
    };
    let messages = vec![Arc::new(Message::user(PROMPT))];
    let request = Request::new(Arc::clone(&route.model), messages.into());
    let mut request = request.map_err(|error| error.to_string())?;
    request.max_tokens = OUTPUT_TOKENS;
    let mut events = provider.stream(request, cancel.clone());
    let mut model = route.model.to_string();
    while let Some(event) = events.next().await {
        match event.map_err(|error: Error| error.to_string())? {
            StreamEvent::Started { model: named } => model = named,
            StreamEvent::Stopped { .. } => return Ok(model),
            _ => {}
        }
    }
    Err("the answer ended without saying so".to_owned())
}
