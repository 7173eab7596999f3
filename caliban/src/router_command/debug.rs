//! `caliban router debug`: the candidates of a request that nobody makes.

use caliban_model::{Effort, Reasoning};
use caliban_router::{Facts, Need, Plan, Router, Verdict, thinks};

use super::{breaker, knob};
use crate::args::RouterDebugArgs;
use crate::console::Console;
use crate::exit::Failure;

pub(crate) fn run(
    args: &RouterDebugArgs,
    router: &Router,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut facts = Facts::plain(args.purpose, "inherit");
    if args.has_vision {
        facts.needs.insert(Need::Vision);
    }
    if args.has_tools {
        facts.needs.insert(Need::Tools);
    }
    facts.reasoning = args.effort.map_or(Reasoning::Auto, Reasoning::Effort);
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
            knob(route.effort.sent(facts.reasoning)),
        ))?;
    }
    if args.effort.is_some() || args.effort_table {
        efforts(router, console)?;
    }
    console.flush()?;
    match resolution.plan {
        Plan::Try | Plan::Wait(_) => Ok(()),
        Plan::Nobody(reason) => Err(Failure::Runtime(format!("no candidate: {reason}"))),
    }
}

/// What each level means to each route. What a model does not know is fitted when it is sent.
fn efforts(router: &Router, console: &mut Console) -> Result<(), Failure> {
    console.put("\neffort sent for each wish\n")?;
    for route in router.table().routes() {
        let unsaid = knob(route.effort.sent(Reasoning::Auto));
        let levels = Effort::ALL.map(|level| {
            let sent = knob(route.effort.sent(Reasoning::Effort(level)));
            format!("{} → {sent}", level.as_str())
        });
        console.put(&format!(
            "  {}  none → {unsaid}, {}\n",
            route.id,
            levels.join(", ")
        ))?;
    }
    Ok(())
}
