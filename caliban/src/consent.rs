//! Trust in what the operator writes by a command: it is not a stranger's.

use caliban_harness::Configuration;
use caliban_settings::{Scope, Trust, load};

use crate::console::note;

/// Whether the workspace's files counted as the operator's own before a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    Given,
    Missing,
}

impl Consent {
    /// By the files of this moment: whoever changed them since they were loaded is not the
    /// operator, and what cannot be read is nobody's consent.
    pub(crate) fn of(configuration: &Configuration) -> Self {
        let Ok(now) = load(&configuration.request) else {
            return Self::Missing;
        };
        // What plugins of the workspace would run waits for trust without any setting.
        let plugins = configuration
            .locations
            .project_plugins(configuration.project());
        let has_plugins = std::fs::read_dir(plugins).is_ok_and(|mut it| it.next().is_some());
        let waits = has_plugins || !now.ignored.is_empty();
        if now.trust == Trust::Trusted || !waits {
            Self::Given
        } else {
            Self::Missing
        }
    }

    /// After a change of a scope: where nothing else in the workspace waited for trust, it is
    /// trusted with the change in it. What is left to do is told.
    #[must_use]
    pub(crate) fn kept(self, scope: Scope, configuration: &Configuration) -> Option<String> {
        if !scope.is_workspace() {
            return None;
        }
        match self {
            Self::Given => {
                let error = configuration.grant_trust().err()?;
                Some(format!("the workspace is not trusted with the change: {error}"))
            }
            Self::Missing => Some(
                "the workspace is not trusted, so rules that allow and programs do not count yet; look at its settings and run `caliban trust`".to_owned(),
            ),
        }
    }

    /// The same for a command, which tells it beside what it did.
    pub(crate) fn keep(self, scope: Scope, configuration: &Configuration) {
        if let Some(remark) = self.kept(scope, configuration) {
            note(&remark);
        }
    }
}
