//! `caliban agents`: kinds of agents.

use caliban_harness::{Configuration, RunOptions, load_profiles, profile_report};

use crate::args::AgentsCommand;
use crate::console::{Console, note};
use crate::exit::Failure;

pub(crate) fn run(
    command: &AgentsCommand,
    options: &RunOptions,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    match command {
        AgentsCommand::Profiles { json } => profiles(*json, options, configuration, console),
    }
}

/// Lists the profiles; files that are none are told beside.
pub(crate) fn profiles(
    json: bool,
    options: &RunOptions,
    configuration: &Configuration,
    console: &mut Console,
) -> Result<(), Failure> {
    let (profiles, notices) = load_profiles(options, configuration)?;
    for notice in &notices {
        note(&format!("warning: {notice}"));
    }
    let text = if json {
        format!("{:#}\n", profile_report::reported(&profiles))
    } else {
        format!("{}\n", profile_report::listed(&profiles))
    };
    console.write(&text)
}
