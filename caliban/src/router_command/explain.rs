//! `caliban router explain`: the next turn of a session, before it happens.

use std::sync::Arc;

use caliban_model::{Dollars, Message, Purpose, Request, Usage};
use caliban_router::{
    Again, Facts, HealthChange, KINDS, Need, Next, Plan, Route, Router, Verdict, consequence,
    kind_name,
};
use caliban_sessions::SessionState;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::asked_model;
use crate::console::Console;
use crate::exit::Failure;

pub(crate) fn run(
    state: Option<&SessionState>,
    as_json: bool,
    router: &Router,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut facts = facts(state, asked_model(router))?;
    // A run offers tools unless it is told not to.
    facts.needs.insert(Need::Tools);
    let resolution = router.resolve(&facts);
    let listed: Vec<Value> = resolution
        .considered
        .iter()
        .filter_map(|considered| {
            let candidate = &considered.candidate;
            let route = router.table().routes().get(candidate.route)?;
            let (is_kept, reason) = match &considered.verdict {
                Verdict::Kept(why) => (true, why.to_string()),
                Verdict::Dropped(reason) => (false, reason.to_string()),
            };
            let price = |usage: Usage| {
                let rate = router
                    .rates()
                    .lookup(route.provider_name(), &candidate.model);
                rate.map(|rate| rate.cost(&usage))
            };
            let warm = price(Usage {
                cache_read: facts.input_tokens,
                ..Usage::default()
            });
            let cold = price(Usage {
                cache_write_5m: facts.input_tokens,
                ..Usage::default()
            });
            Some(json!({
                "id": &*candidate.id,
                "provider": route.provider_name(),
                "model": &*candidate.model,
                "kept": is_kept,
                "reason": reason,
                "warm_usd": warm,
                "cold_usd": cold,
            }))
        })
        .collect();
    let needs: Vec<Value> = facts
        .needs
        .iter()
        .map(|need| json!({"need": need.as_str(), "because": need.cause()}))
        .collect();
    let budgets = budgets(router);
    let failures: Vec<Value> = KINDS
        .iter()
        .map(|kind| {
            let follows = consequence(kind);
            json!({
                "kind": kind_name(kind),
                "same_route": again(follows.again),
                "next_route": next(follows.next),
                "breaker": health(follows.health),
            })
        })
        .collect();
    if as_json {
        let all = json!({
            "purpose": Purpose::MainLoop.slug(),
            "input_tokens": facts.input_tokens,
            "needs": needs,
            "routes": listed,
            "budgets": budgets,
            "failures": failures,
        });
        let text = serde_json::to_string_pretty(&all);
        let text = text.map_err(|error| Failure::Runtime(error.to_string()))?;
        console.write(&format!("{text}\n"))?;
    } else {
        let told = Told {
            needs: &needs,
            routes: &listed,
            budgets: &budgets,
            failures: &failures,
        };
        tell(&facts, &told, console)?;
    }
    match resolution.plan {
        Plan::Try | Plan::Wait(_) => Ok(()),
        Plan::Nobody(reason) => Err(Failure::Runtime(format!("no candidate: {reason}"))),
    }
}

fn facts(state: Option<&SessionState>, model: Arc<str>) -> Result<Facts, Failure> {
    let Some(state) = state else {
        return Ok(Facts::plain(Purpose::MainLoop, model));
    };
    let mut messages = state.messages.clone();
    messages.push(Arc::new(Message::user("")));
    let request = Request::new(model, messages.into());
    let request = request.map_err(|error| Failure::Runtime(error.to_string()))?;
    Ok(Facts::of(&request))
}

/// What each rule of the budget would do, or why it would do nothing.
fn budgets(router: &Router) -> Vec<Value> {
    let price = |route: &Route| {
        let rate = router.rates().lookup(route.provider_name(), &route.model);
        rate.map(|rate| rate.input + rate.output)
    };
    let table = router.table();
    let rules = table.settings().budgets.iter();
    rules
        .filter_map(|rule| {
            let cheaper = table.route(&rule.route)?;
            let head = table.head(rule.purpose)?;
            let outcome = match (price(cheaper), price(head)) {
                (None, _) => format!("does nothing: the price of `{}` is not known", cheaper.id),
                (Some(_), None) => {
                    format!("does nothing: the price of `{}` is not known", head.id)
                }
                (Some(less), Some(more)) if less >= more => {
                    format!(
                        "does nothing: `{}` is no cheaper than `{}`",
                        cheaper.id, head.id
                    )
                }
                (Some(_), Some(_)) => format!("goes on with `{}`", cheaper.id),
            };
            Some(json!({
                "at": rule.at,
                "purpose": rule.purpose.slug(),
                "use": &*rule.route,
                "outcome": outcome,
            }))
        })
        .collect()
}

/// The parts of the report.
struct Told<'a> {
    needs: &'a [Value],
    routes: &'a [Value],
    budgets: &'a [Value],
    failures: &'a [Value],
}

fn tell(facts: &Facts, told: &Told<'_>, console: &mut Console) -> Result<(), Failure> {
    let Told {
        needs,
        routes,
        budgets,
        failures,
    } = told;
    console.put(&format!(
        "about {} tokens of the conversation go in; the system prompt and the tools come on top\n",
        facts.input_tokens
    ))?;
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    for need in *needs {
        let line = format!("needs {}: {}\n", text(need, "need"), text(need, "because"));
        console.put(&line)?;
    }
    for route in *routes {
        let mark = if route["kept"] == json!(true) {
            '+'
        } else {
            '-'
        };
        let price = |key: &str| {
            let price = route[key]
                .as_str()
                .and_then(|it| it.parse::<Decimal>().ok());
            price.map_or_else(|| "unknown".to_owned(), |usd| Dollars(usd).to_string())
        };
        console.put(&format!(
            "{mark} {}  {}/{}  {}; input {} if cached, {} if not\n",
            text(route, "id"),
            text(route, "provider"),
            text(route, "model"),
            text(route, "reason"),
            price("warm_usd"),
            price("cold_usd"),
        ))?;
    }
    for rule in *budgets {
        let part = rule["at"]
            .as_str()
            .and_then(|at| at.parse::<Decimal>().ok());
        let part = part.unwrap_or_default() * Decimal::ONE_HUNDRED;
        console.put(&format!(
            "from {} % of the budget on, `{}` {}\n",
            part.normalize(),
            text(rule, "purpose"),
            text(rule, "outcome"),
        ))?;
    }
    console.put("\nwhat a failure leads to\n")?;
    for failure in *failures {
        console.put(&format!(
            "  {:<13} same route: {}; next route: {}; breaker: {}\n",
            text(failure, "kind"),
            text(failure, "same_route"),
            text(failure, "next_route"),
            text(failure, "breaker"),
        ))?;
    }
    console.flush()
}

fn again(again: Again) -> &'static str {
    match again {
        Again::No => "not again",
        Again::Once => "once more",
        Again::OnceIfSoon => "once more, unless asked to wait over 5 s",
    }
}

fn next(next: Next) -> String {
    match next {
        Next::Yes => "yes".to_owned(),
        Next::IfLarger => "if its window is larger".to_owned(),
        Next::IfAskedFor(escape) => {
            format!("only with `fallback_on = [\"{}\"]`", escape.as_str())
        }
        Next::No => "no".to_owned(),
    }
}

fn health(health: HealthChange) -> &'static str {
    match health {
        HealthChange::Failure => "counts",
        HealthChange::Rests => "rests as long as the server asks",
        HealthChange::Dead => "out for this process",
        HealthChange::Unchanged => "does not count",
    }
}
