//! `caliban agents profiles`: kinds of agents.

use caliban_harness::{Configuration, RunOptions, load_profiles, profile_report};

use crate::console::{Console, note};
use crate::exit::Failure;

/// Lists the profiles; files that are none are told beside.
pub(super) fn profiles(
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
