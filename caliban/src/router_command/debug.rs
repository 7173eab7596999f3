//! `caliban router debug`: the candidates of a request that nobody makes.

use std::num::NonZeroU32;
use std::sync::Arc;

use caliban_model::{AnswerLimit, Effort, Message, ProviderKind, Reasoning, Request};
use caliban_router::{Facts, Need, Plan, Route, Router, Verdict, thinks};

use super::{asked_model, breaker, knob};
use crate::args::RouterDebugArgs;
use crate::console::Console;
use crate::exit::Failure;

pub(crate) fn run(
    args: &RouterDebugArgs,
    max_tokens: Option<NonZeroU32>,
    router: &Router,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut facts = Facts::plain(args.purpose, asked_model(router));
    if args.has_vision {
        facts.needs.insert(Need::Vision);
    }
    if args.has_tools {
        facts.needs.insert(Need::Tools);
    }
    facts.reasoning = args.effort.unwrap_or_default();
    if thinks(facts.reasoning) {
        facts.needs.insert(Need::Thinking);
    }
    let resolution = router.resolve(&facts);
    let view = router.view(&facts);
    let slug = args.purpose.slug();
    let whose = if resolution.purpose == args.purpose {
        String::new()
    } else {
        format!(", by the routes of {}", resolution.purpose.slug())
    };
    console.put(&format!("{slug}{whose}\n"))?;
    for considered in &resolution.considered {
        let candidate = &considered.candidate;
        let Some(route) = router.table().routes().get(candidate.route) else {
            continue;
        };
        let (mark, reason) = match &considered.verdict {
            Verdict::Kept(why) => ('+', why.to_string()),
            Verdict::Dropped(reason) => ('-', reason.to_string()),
        };
        let standing = view.routes.get(&candidate.id).and_then(|it| it.breaker);
        console.put(&format!(
            "{mark} {}  {}/{}  {reason}; breaker: {}; effort sent: {}\n",
            candidate.id,
            route.provider_name(),
            candidate.model,
            breaker(standing, route, view.now),
            sent(route, &candidate.model, facts.reasoning, max_tokens),
        ))?;
    }
    if args.effort.is_some() || args.effort_table {
        efforts(router, max_tokens, console)?;
    }
    console.flush()?;
    match resolution.plan {
        Plan::Try | Plan::Wait(_) => Ok(()),
        Plan::Nobody(reason) => Err(Failure::Runtime(format!("no candidate: {reason}"))),
    }
}

/// What each level comes to at each route.
fn efforts(
    router: &Router,
    max_tokens: Option<NonZeroU32>,
    console: &mut Console,
) -> Result<(), Failure> {
    console.put("\neffort sent for each wish\n")?;
    for route in router.table().routes() {
        let of = |wish| sent(route, &route.model, wish, max_tokens);
        let levels = Effort::ALL.map(|level| {
            let sent = of(Reasoning::Effort(level));
            format!("{} → {sent}", level.as_str())
        });
        console.put(&format!(
            "  {}  none → {}, {}\n",
            route.id,
            of(Reasoning::Auto),
            levels.join(", ")
        ))?;
    }
    Ok(())
}

/// What the model would be told: what the route makes of a wish, fitted to what the model takes.
fn sent(
    route: &Route,
    model: &Arc<str>,
    wish: Reasoning,
    max_tokens: Option<NonZeroU32>,
) -> String {
    let reasoning = route.effort.sent(wish);
    let fitted = || {
        let kind: ProviderKind = route.provider_name().parse().ok()?;
        let messages = vec![Arc::new(Message::user(""))];
        let mut request = Request::new(Arc::clone(model), messages.into()).ok()?;
        request.reasoning = reasoning;
        match max_tokens {
            Some(limit) => request.max_tokens = limit.get(),
            None => request.answer_limit = AnswerLimit::Open,
        }
        caliban_providers::effort_sent(kind, &request)
    };
    // Where a server is asked first, what the route says is all that is known.
    fitted().unwrap_or_else(|| knob(reasoning))
}
