//! What a platform's logins may look at: variables, files, programs.

use std::collections::HashMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use caliban_model::{Error, ErrorKind, Origin};
use futures::future::BoxFuture;

use super::fetch::Fetcher;
use crate::config::Connection;
use crate::failure::fail;

/// The most that is read of a file that holds credentials.
const MAX_FILE: u64 = 1024 * 1024;

/// Runs the programs that print credentials or renew them.
pub trait Programs: Send + Sync + Debug {
    /// What the program prints; its words are split like a shell's, and no shell is started.
    fn run(&self, line: String, limit: Duration) -> BoxFuture<'_, Result<String, String>>;
}

/// How credentials of a platform are renewed.
#[derive(Debug, Clone)]
pub struct Refresh {
    /// How long before their end; nothing renews them only when they are refused or over.
    pub early: Duration,
    /// The program that logs in again, e.g. `aws sso login`.
    pub command: Option<String>,
    /// The program that prints credentials, instead of the platform's own ways.
    pub export: Option<String>,
}

impl Refresh {
    pub const EARLY: Duration = Duration::from_mins(5);
}

impl Default for Refresh {
    fn default() -> Self {
        Self {
            early: Self::EARLY,
            command: None,
            export: None,
        }
    }
}

/// A snapshot of the environment, and the ways out of the process.
#[derive(Debug)]
pub(crate) struct Surroundings {
    variables: HashMap<&'static str, String>,
    pub(crate) fetcher: Fetcher,
    pub(crate) refresh: Refresh,
    programs: Option<Arc<dyn Programs>>,
}

impl Surroundings {
    pub(crate) fn new(variable: &dyn Fn(&str) -> Option<String>, connection: &Connection) -> Self {
        let filled = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let variables = VARIABLES.iter();
        Self {
            variables: variables
                .filter_map(|name| Some((*name, filled(name)?)))
                .collect(),
            fetcher: Fetcher::default(),
            refresh: connection.refresh.clone(),
            programs: connection.programs.clone(),
        }
    }

    /// A variable that is set and not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        debug_assert!(VARIABLES.contains(&name), "{name} is not in the list");
        self.variables.get(name).map(|value| value.trim())
    }

    /// The first of these that is set, and its name.
    pub(crate) fn first(&self, names: &[&'static str]) -> Option<(&'static str, &str)> {
        let mut names = names.iter();
        names.find_map(|name| Some((*name, self.variable(name)?)))
    }

    /// Whether a switch of another program is on: `0`, `false`, `no` and `off` are not.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        let value = self.variable(name).map(str::to_ascii_lowercase);
        value.is_some_and(|value| !matches!(value.as_str(), "0" | "false" | "no" | "off"))
    }

    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.variable("HOME").map(PathBuf::from)
    }

    /// Runs a program; an error where nobody may.
    pub(crate) async fn run(&self, line: String, limit: Duration) -> Result<String, String> {
        match &self.programs {
            Some(programs) => programs.run(line, limit).await,
            None => Err("no programs are run here".to_owned()),
        }
    }
}

/// A file, if there is one; at most its first megabyte.
pub(crate) async fn read(path: &Path) -> Result<Option<String>, String> {
    use tokio::io::AsyncReadExt;

    let unreadable = |error: std::io::Error| format!("`{}`: {error}", path.display());
    let file = match tokio::fs::File::open(path).await {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut text = String::new();
    file.take(MAX_FILE)
        .read_to_string(&mut text)
        .await
        .map_err(unreadable)?;
    Ok(Some(text))
}

/// An error of logging in, with what can be done about it.
pub(crate) fn no_login(origin: &Origin, message: impl Into<String>, remedy: &str) -> Error {
    fail(origin, ErrorKind::Auth, message).with_remedy(remedy)
}

/// All that is looked at.
const VARIABLES: &[&str] = &[
    "HOME",
    // AWS
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "AWS_ENDPOINT_URL_BEDROCK",
    "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
    "AWS_ENDPOINT_URL_STS",
    "AWS_ENDPOINT_URL_SSO",
    "AWS_ENDPOINT_URL_SSO_OIDC",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_BEDROCK_REGION_PREFIX",
    "ANTHROPIC_BEDROCK_SERVICE_TIER",
    "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
    // Google
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_CLOUD_LOCATION",
    "GCE_METADATA_HOST",
    "CLOUDSDK_CONFIG",
    "CLOUD_ML_REGION",
    "ANTHROPIC_VERTEX_PROJECT_ID",
    "ANTHROPIC_VERTEX_BASE_URL",
    "CLAUDE_CODE_SKIP_VERTEX_AUTH",
    // Azure
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_RESOURCE",
    "AZURE_OPENAI_ENDPOINT",
    "AZURE_OPENAI_API_VERSION",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_TENANT_ID",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_AUTHORITY_HOST",
    "AZURE_TOKEN_CREDENTIALS",
    "IDENTITY_ENDPOINT",
    "IDENTITY_HEADER",
    "ANTHROPIC_FOUNDRY_RESOURCE",
    "ANTHROPIC_FOUNDRY_BASE_URL",
    "ANTHROPIC_FOUNDRY_API_KEY",
    "ANTHROPIC_FOUNDRY_AUTH_TOKEN",
    "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
];
