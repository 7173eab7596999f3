//! From a client's request to a session: what it asks for takes the place of a run's flags.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use caliban_harness::options::SessionChoice;
use caliban_harness::provider::{self, KeySource};
use caliban_harness::{
    DialectParts, LaunchError, Launched, Process, RunOptions, Surroundings, configure, launch_apart,
};
use caliban_permissions::Precedence;
use caliban_protocol::acp::server_config;
use caliban_protocol::acp::v1::{
    Error, LoadSessionRequest, McpServer, NewSessionRequest, ResumeSessionRequest, SessionId,
};
use serde_json::json;
use uuid::Uuid;

use crate::doctor::Doctor;

/// Most directories beside the workspace.
const MAX_DIRECTORIES: usize = 64;

/// The session that a client wants.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) begin: Begin,
    cwd: PathBuf,
    directories: Vec<PathBuf>,
    servers: Vec<McpServer>,
}

/// How it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    New(Uuid),
    /// Everything that was said is told again.
    Load(Uuid),
    /// It goes on, and the client knows what was said.
    Resume(Uuid),
}

impl Begin {
    pub(super) fn id(self) -> Uuid {
        match self {
            Self::New(id) | Self::Load(id) | Self::Resume(id) => id,
        }
    }
}

impl From<NewSessionRequest> for Wanted {
    fn from(request: NewSessionRequest) -> Self {
        Self {
            begin: Begin::New(Uuid::new_v4()),
            cwd: request.cwd,
            directories: request.additional_directories,
            servers: request.mcp_servers,
        }
    }
}

impl TryFrom<LoadSessionRequest> for Wanted {
    type Error = Error;

    fn try_from(request: LoadSessionRequest) -> Result<Self, Error> {
        Ok(Self {
            begin: Begin::Load(known(&request.session_id)?),
            cwd: request.cwd,
            directories: request.additional_directories,
            servers: request.mcp_servers,
        })
    }
}

impl TryFrom<ResumeSessionRequest> for Wanted {
    type Error = Error;

    fn try_from(request: ResumeSessionRequest) -> Result<Self, Error> {
        Ok(Self {
            begin: Begin::Resume(known(&request.session_id)?),
            cwd: request.cwd,
            directories: request.additional_directories,
            servers: request.mcp_servers,
        })
    }
}

/// The id of a session that may be kept.
pub(super) fn known(id: &SessionId) -> Result<Uuid, Error> {
    id.0.parse().map_err(|_| missing(&id.0))
}

/// There is no such session.
pub(super) fn missing(id: &str) -> Error {
    let reason = format!("there is no session `{id}`; `session/list` shows those that are kept");
    Error::new(-32002, reason).data(json!({"sessionId": id}))
}

/// Begins the session that a client wants, where the command line says nothing else.
pub(super) async fn open(
    flags: &RunOptions,
    wanted: Wanted,
    process: Process,
) -> Result<Launched, Error> {
    let begin = wanted.begin;
    let options = options(flags, &wanted)?;
    let doctor = Doctor {
        options: options.clone(),
        process: process.clone(),
    };
    let surroundings = Surroundings {
        process: process.clone(),
        dialect: DialectParts {
            examiner: Some(Arc::new(doctor)),
            ..DialectParts::default()
        },
    };
    let launched = launch_apart(options.clone(), surroundings).await;
    launched.map_err(|error| refused(&error, begin, &options, process))
}

fn options(flags: &RunOptions, wanted: &Wanted) -> Result<RunOptions, Error> {
    if wanted.directories.len() > MAX_DIRECTORIES {
        let reason = format!("at most {MAX_DIRECTORIES} `additionalDirectories` can be given");
        return Err(Error::new(-32602, reason));
    }
    let mut options = flags.clone();
    options.workspace = Some(directory("cwd", &wanted.cwd)?.to_owned());
    for path in &wanted.directories {
        let further = directory("additionalDirectories", path)?;
        options.tools.further_directories.push(further.to_owned());
    }
    options
        .servers
        .configs
        .extend(server_config(&wanted.servers)?);
    // What is allowed while it runs is allowed by a program, which cannot undo what was forbidden.
    options.permissions.precedence = Precedence::DenyBeforeClient;
    match wanted.begin {
        Begin::New(id) => options.session.id = Some(id),
        Begin::Load(id) | Begin::Resume(id) => {
            options.session.choice = SessionChoice::Resume(id.to_string());
        }
    }
    Ok(options)
}

fn directory<'a>(field: &str, path: &'a Path) -> Result<&'a Path, Error> {
    let wrong = |what: &str| {
        let reason = format!("`{field}`: `{}` {what}", path.display());
        Err(Error::new(-32602, reason))
    };
    if !path.is_absolute() {
        return wrong("is not an absolute path");
    }
    if !path.is_dir() {
        return wrong("is no directory");
    }
    Ok(path)
}

fn refused(error: &LaunchError, begin: Begin, options: &RunOptions, process: Process) -> Error {
    let code = match error {
        LaunchError::NoInput(_) => match begin {
            Begin::New(_) => -32602,
            Begin::Load(id) | Begin::Resume(id) => return missing(&id.to_string()),
        },
        LaunchError::Usage(_) => -32602,
        LaunchError::Configuration(_) if lacks_key(options, process) => -32000,
        LaunchError::Configuration(_) | LaunchError::Busy(_) | LaunchError::Runtime(_) => -32603,
    };
    Error::new(code, error.to_string())
}

/// Whether nobody gave the key that the provider needs.
fn lacks_key(options: &RunOptions, process: Process) -> bool {
    let found = configure(options, process).and_then(|configuration| {
        let model = &options.model;
        let kind = provider::kind(model.provider, model.model.as_deref(), &configuration)?;
        let source = provider::key_source(kind, &configuration)?;
        Ok(!kind.key_variables().is_empty() && matches!(source, KeySource::Absent))
    });
    found.unwrap_or(false)
}
