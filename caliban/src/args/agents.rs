//! The arguments of `caliban agents`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    /// List the agent profiles of this workspace and of the user.
    Profiles {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}
