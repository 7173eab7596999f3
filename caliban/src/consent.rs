//! Trust in what the operator writes by a command: it is not a stranger's.

use caliban_harness::Configuration;
use caliban_settings::{Scope, TrustStore, WorkspaceFiles};

use crate::console::note;

/// Whether the workspace's files counted as the operator's own before a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    Given,
    Missing,
}

impl Consent {
    pub(crate) fn of(configuration: &Configuration) -> Self {
        if configuration.is_trusted() || configuration.loaded.ignored.is_empty() {
            Self::Given
        } else {
            Self::Missing
        }
    }

    /// After a change of a scope: where nothing else in the workspace waited for trust, it is
    /// trusted with the change in it.
    pub(crate) fn keep(self, scope: Scope, configuration: &Configuration) {
        if !scope.is_workspace() {
            return;
        }
        match self {
            Self::Given => {
                let router = configuration.request.router_file.as_deref();
                let files = WorkspaceFiles::read(configuration.project(), router)
                    .starting_in(&configuration.workspace);
                let store = TrustStore::new(configuration.locations.workspace_trust());
                if let Err(error) = store.grant(&files) {
                    note(&format!(
                        "the workspace is not trusted with the change: {error}"
                    ));
                }
            }
            Self::Missing => note(
                "the workspace is not trusted, so rules that allow and programs do not count yet; look at its settings and run `caliban trust`",
            ),
        }
    }
}
