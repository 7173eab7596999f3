//! The arguments of `caliban router`.

use std::path::PathBuf;

use caliban_model::{Effort, Purpose, Reasoning};
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum RouterCommand {
    /// Show which routes a request would be tried on, and why the others are left out; exits with 1
    /// when nobody can answer it.
    Debug(RouterDebugArgs),
    /// Show what the next turn of a session would do and cost, and what each failure would lead to.
    Explain {
        /// The session, by its name or id [default: a conversation that begins]
        #[arg(long, value_name = "SESSION")]
        session: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show which routes other processes have found not to work.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Send one short request to each route, after saying what that costs; exits with 1 when one
    /// fails.
    Test {
        /// Also ask for a tool call and, where the model can see, about a small image.
        #[arg(long)]
        full: bool,
        /// The routes by their ids [default: all]
        #[arg(value_name = "ROUTE")]
        routes: Vec<String>,
        /// Send them. Without it the price is shown and nothing is sent.
        #[arg(long)]
        yes: bool,
    },
    /// Rehearse outages: what the routes would do and cost, without a network or keys.
    ///
    /// The router is the one of a run, on a clock that nobody waits for. The same file and seed give
    /// the same report.
    Simulate(SimulateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RouterDebugArgs {
    /// `main_loop`, `summarization`, `fast_classifier`, `sub_agent`, `embedding` or `other`.
    #[arg(long, value_name = "PURPOSE", value_parser = purpose, default_value = "main_loop")]
    pub(crate) purpose: Purpose,
    /// As if there were an image in the conversation.
    #[arg(long)]
    pub(crate) has_vision: bool,
    /// As if tools were offered.
    #[arg(long)]
    pub(crate) has_tools: bool,
    /// As if this effort were asked for: low, medium, high, xhigh, max or auto. Prints the table of
    /// efforts as well.
    #[arg(long, value_name = "LEVEL", value_parser = effort)]
    pub(crate) effort: Option<Reasoning>,
    /// Print what is sent to each route for each level of effort.
    #[arg(long)]
    pub(crate) effort_table: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// A TOML file that says how providers fail.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "preset",
        visible_alias = "outage"
    )]
    pub(crate) outages: Option<PathBuf>,
    /// How they fail.
    #[arg(long, value_name = "NAME", value_enum, default_value = "flaky")]
    pub(crate) preset: PresetName,
    /// Let conversations grow like this session did: its name or id, or the file of a journal.
    #[arg(long, value_name = "SESSION", visible_alias = "trace")]
    pub(crate) session: Option<String>,
    /// Rehearse this `caliban.toml` instead of the one that a run finds.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Another seed is another weather.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) sessions: u32,
    /// Of each session.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) turns: u32,
    /// Another `caliban.toml`, rehearsed in the same weather.
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PresetName {
    /// An outage a day.
    Calm,
    /// Short outages every half an hour, and errors in between.
    Flaky,
    /// Long outages every few hours.
    Regional,
    /// The first provider is down a quarter of the time.
    ProviderDown,
}

/// `auto` is what a run says that chooses nothing.
fn effort(text: &str) -> Result<Reasoning, String> {
    if text == "auto" {
        return Ok(Reasoning::Auto);
    }
    let level = text.parse::<Effort>();
    level
        .map(Reasoning::Effort)
        .map_err(|error| format!("{error}, or auto"))
}

fn purpose(text: &str) -> Result<Purpose, String> {
    let slug = text.replace('-', "_");
    let found = Purpose::ALL.into_iter().find(|it| it.slug() == slug);
    found.ok_or_else(|| format!("use one of {}", Purpose::ALL.map(Purpose::slug).join(", ")))
}
