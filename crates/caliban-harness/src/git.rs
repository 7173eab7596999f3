//! Asks git about the workspace without letting the repository run anything.

use caliban_git::Git;

use crate::configuration::Configuration;

/// For the workspace of a configuration.
pub(crate) async fn git(configuration: &Configuration) -> Git {
    Git::new(
        configuration.workspace.clone(),
        configuration.child_environment(),
        configuration.process.guard.clone(),
    )
    .await
}
