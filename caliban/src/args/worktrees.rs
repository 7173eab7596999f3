//! The arguments of `caliban worktrees`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum WorktreesCommand {
    /// List the worktrees, and the branches that are left of earlier ones.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show everything that was done in a worktree, committed or not, as a patch.
    Diff {
        /// Its name, or the beginning of it.
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Bring back what was done in a worktree: all of it, or nothing is changed.
    ///
    /// What is not committed there is committed on its branch first. Hooks of the repository are
    /// not run.
    Merge(MergeArgs),
    /// Remove a worktree. What was done in it stays on its branch, which goes only if the branch
    /// that is checked out has all of it.
    Rm(RemoveArgs),
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("how").required(true).multiple(false))]
pub(crate) struct MergeArgs {
    /// Its name, or the beginning of it.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Change the files here and commit nothing.
    #[arg(long, group = "how")]
    pub(crate) apply: bool,
    /// Make a merge commit on the branch that is checked out.
    #[arg(long, group = "how")]
    pub(crate) commit: bool,
    /// Merge nothing: put everything on its branch and remove the worktree.
    #[arg(long, group = "how")]
    pub(crate) branch: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(false))]
pub(crate) struct RemoveArgs {
    /// Its name, or the beginning of it.
    #[arg(value_name = "NAME", group = "which")]
    pub(crate) name: Option<String>,
    /// All whose sessions were ended before they could clean up.
    #[arg(long, group = "which")]
    pub(crate) abandoned: bool,
    /// Also where files that git ignores would go with it.
    #[arg(long, requires = "name")]
    pub(crate) with_ignored: bool,
}
