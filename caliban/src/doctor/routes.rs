//! The check of the routes: what `caliban router debug` would show, in a line.

use caliban_harness::{Configuration, RunOptions};
use caliban_model::Purpose;
use caliban_router::{Route, Seat};

use super::report::Row;
use crate::router_command;

const NAME: &str = "router";

/// Asks nobody.
pub(super) fn row(options: &RunOptions, configuration: &Configuration) -> Row {
    let refusal = configuration.router.as_ref();
    if let Some(refusal) = refusal.and_then(|router| router.refusal.as_ref()) {
        return Row::fail(NAME, refusal.to_string());
    }
    let routes = match router_command::routes(options, configuration) {
        Ok(routes) => routes,
        Err(failure) => return Row::fail(NAME, failure.to_string()),
    };
    let all = routes.table.routes();
    let has_somebody = all.iter().any(is_connected);
    let main: Vec<&str> = all
        .iter()
        .filter(|route| route.purpose == Purpose::MainLoop)
        .map(|route| &*route.id)
        .collect();
    let place = match configuration.routes() {
        Ok(Some((config, place))) if !config.routes.is_empty() => format!(" of {place}"),
        Ok(_) | Err(_) => String::new(),
    };
    let message = format!(
        "{} route(s){place}; main_loop: {}",
        all.len(),
        main.join(", then ")
    );
    // That the one model there is has no key, another row tells.
    if all.len() < 2 || routes.warnings.is_empty() {
        return Row::pass(NAME, message);
    }
    let row = if has_somebody {
        Row::warn(NAME, message)
    } else {
        Row::fail(NAME, message)
    };
    row.with(routes.warnings)
}

fn is_connected(route: &Route) -> bool {
    match route.seat {
        Seat::Connected(_) => true,
        Seat::Vacant { .. } => false,
    }
}
