//! What servers are run with: everything that comes from outside.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use caliban_process::{Confiner, Guard};

use crate::authorization::Authorization;
use crate::elicit::Elicitor;
use crate::expand::Variables;
use crate::log::{Log, Silence};
use crate::pins::PinStore;

/// How long servers are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start of a server to its list of tools; 30 seconds unless set.
    pub connect: Duration,
    /// For one call of a tool, whatever progress it reports; 10 minutes unless set.
    pub call: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(30),
            call: Duration::from_mins(10),
        }
    }
}

impl Timeouts {
    /// As the environment says, in milliseconds: `CALIBAN_MCP_TIMEOUT` or else `MCP_TIMEOUT`,
    /// and `CALIBAN_MCP_TOOL_TIMEOUT` or else `MCP_TOOL_TIMEOUT`. What is no positive number is
    /// as if it were not set.
    pub fn from_variables(variables: &Variables) -> Self {
        let read = |names: [&str; 2]| {
            names
                .iter()
                .find_map(|name| variables.get(name))
                .and_then(|value| value.trim().parse().ok())
                .filter(|milliseconds| *milliseconds > 0)
                .map(Duration::from_millis)
        };
        let default = Self::default();
        Self {
            connect: read(["CALIBAN_MCP_TIMEOUT", "MCP_TIMEOUT"]).unwrap_or(default.connect),
            call: read(["CALIBAN_MCP_TOOL_TIMEOUT", "MCP_TOOL_TIMEOUT"]).unwrap_or(default.call),
        }
    }
}

/// When a lost connection is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reconnection {
    /// The pause before the first attempt; each further one is twice as long, and all are
    /// spread by half of themselves.
    pub pause: Duration,
    /// How many attempts are made before the server counts as failed.
    pub attempts: u32,
    /// A connection that lasted so long starts the count anew.
    pub lasting: Duration,
}

impl Default for Reconnection {
    fn default() -> Self {
        Self {
            pause: Duration::from_millis(500),
            attempts: 5,
            lasting: Duration::from_mins(1),
        }
    }
}

/// Which tools a model is offered from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Laziness {
    /// `tools.lazy_mcp`. Unset, tools wait to be searched for as soon as all definitions
    /// together take more than [`budget_tokens`](Self::budget_tokens).
    pub lazy: Option<bool>,
    pub budget_tokens: usize,
    /// `tools.max_active_schemas`: how many tools that were searched for stay offered.
    pub max_active: usize,
}

impl Default for Laziness {
    fn default() -> Self {
        Self {
            lazy: None,
            budget_tokens: 10_000,
            max_active: 24,
        }
    }
}

/// Everything that servers are run with.
#[derive(Debug, Clone)]
pub struct Parts {
    /// `${CLAUDE_PROJECT_DIR}`, and where relative directories begin.
    pub workspace: PathBuf,
    /// What stdio servers see of the environment, beside what their settings add.
    pub environment: Vec<(OsString, OsString)>,
    /// What `${NAME}` in the settings stands for.
    pub variables: Variables,
    pub guard: Guard,
    /// Who confines the programs that ask for it.
    pub confiner: Option<Arc<dyn Confiner>>,
    pub timeouts: Timeouts,
    pub reconnection: Reconnection,
    /// `CALIBAN_MAX_MCP_OUTPUT_TOKENS`: the longest result, at about four bytes a token.
    pub max_output_tokens: usize,
    pub laziness: Laziness,
    /// Tokens for servers over HTTP.
    pub authorization: Option<Arc<dyn Authorization>>,
    /// Who answers servers' questions; without one they are declined.
    pub elicitor: Option<Arc<dyn Elicitor>>,
    pub log: Arc<dyn Log>,
    /// Where definitions of tools are pinned; without one only within the session.
    pub pins: Option<PinStore>,
}

/// The longest result unless the environment says otherwise.
pub const DEFAULT_MAX_OUTPUT_TOKENS: usize = 25_000;

impl Parts {
    /// The defaults, with timeouts and the length of results as `variables` say.
    pub fn new(
        workspace: PathBuf,
        environment: Vec<(OsString, OsString)>,
        variables: Variables,
        guard: Guard,
    ) -> Self {
        let max_output_tokens = variables
            .get("CALIBAN_MAX_MCP_OUTPUT_TOKENS")
            .and_then(|value| value.trim().parse().ok())
            .filter(|tokens| *tokens > 0)
            .unwrap_or(DEFAULT_MAX_OUTPUT_TOKENS);
        Self {
            workspace,
            environment,
            timeouts: Timeouts::from_variables(&variables),
            reconnection: Reconnection::default(),
            max_output_tokens,
            variables,
            guard,
            confiner: None,
            laziness: Laziness::default(),
            authorization: None,
            elicitor: None,
            log: Arc::new(Silence),
            pins: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_variables_come_first_and_nonsense_does_not_count() {
        let read = |pairs: &[(&str, &str)]| {
            let pairs: Vec<(String, String)> = pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            Timeouts::from_variables(&Variables::new(move |name| {
                let found = pairs.iter().find(|(known, _)| known == name);
                found.map(|(_, value)| value.clone())
            }))
        };
        assert_eq!(read(&[]), Timeouts::default());
        let both = read(&[
            ("CALIBAN_MCP_TIMEOUT", "1500"),
            ("MCP_TIMEOUT", "9"),
            ("MCP_TOOL_TIMEOUT", "2000"),
        ]);
        assert_eq!(both.connect, Duration::from_millis(1500));
        assert_eq!(both.call, Duration::from_secs(2));
        assert_eq!(
            read(&[("CALIBAN_MCP_TIMEOUT", "soon")]),
            Timeouts::default()
        );
        assert_eq!(read(&[("CALIBAN_MCP_TIMEOUT", "0")]), Timeouts::default());
    }
}
