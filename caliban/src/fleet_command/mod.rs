//! A fleet on many machines, from the command line: jobs are submitted to a board, and workers take
//! them from there.

mod doctor;
mod init;
mod job_process;
mod listing;
mod manifest;
mod outcome;
mod submit;
mod watch;
mod worker;

use std::path::PathBuf;

use caliban_fleet_nats::{Access, BoardError, JobError, NatsBoard};
use caliban_harness::{Configuration, RunOptions};
use caliban_model::CancellationToken;
use caliban_settings::variables::names;

pub(crate) use job_process::{JOB_ARGUMENT, job_main};

use crate::args::{AccessArgs, FleetArgs, FleetCommand, ManifestKind, run_flags};
use crate::console::{Console, note};
use crate::exit::Failure;

/// Where the server is when nobody says.
const SERVER: &str = "nats://127.0.0.1:4222";

pub(crate) async fn run(
    args: FleetArgs,
    options: &RunOptions,
    configuration: &Configuration,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let access = access(args.access, configuration);
    if let FleetCommand::Answer(_) | FleetCommand::Attach(_) = &args.command
        && configuration
            .environment()
            .text(names::CALIBAN_AGENT_ID)
            .is_some()
    {
        let refused = "an agent cannot answer questions, its own or those of others";
        return Err(Failure::Usage(refused.to_owned()));
    }
    let done = Box::pin(obey(
        args.command,
        &access,
        options,
        configuration,
        cancel,
        console,
    ))
    .await;
    if let (Err(_), Some(refusal)) = (&done, access.refusals.first()) {
        note(&format!("caliban: {refusal}"));
    }
    done
}

async fn obey(
    command: FleetCommand,
    access: &Access,
    options: &RunOptions,
    configuration: &Configuration,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    let open = async || Ok::<_, Failure>(NatsBoard::open(access).await?);
    match command {
        FleetCommand::Submit(args) => {
            let spec = submit::spec(&args, options, configuration).await?;
            submit::submit(&open().await?, &args, &spec, cancel, console).await
        }
        FleetCommand::List(args) => listing::list(&open().await?, &args, console).await,
        FleetCommand::Attach(args) => watch::attach(&open().await?, &args, cancel, console).await,
        FleetCommand::Logs(args) => watch::logs(&open().await?, &args, cancel, console).await,
        FleetCommand::Answer(args) => {
            let by = submit::who(configuration);
            outcome::answer(&open().await?, &args, by, console).await
        }
        FleetCommand::Cancel { job } => outcome::cancel(&open().await?, job, console).await,
        FleetCommand::Result(args) => outcome::result(&open().await?, &args, cancel, console).await,
        FleetCommand::Doctor(args) => doctor::doctor(access, &args, console).await,
        FleetCommand::Init(args) => init::init(access, &args, console).await,
        FleetCommand::Worker(args) => {
            let shop = worker::Shop::new(&args, options, configuration)?;
            worker::work(&open().await?, &shop, cancel).await
        }
        FleetCommand::Manifest(args) => {
            if args.kind == ManifestKind::Kubernetes && access.is_loopback() {
                note(&format!(
                    "warning: `{}` is the pod itself there; `--server` names an address that pods reach",
                    access.address
                ));
            }
            let run = run_flags(std::env::args_os());
            console.write(&manifest::manifest(&args, &access.address, &run))
        }
    }
}

/// Who comes, by flags and then by variables.
fn access(args: AccessArgs, configuration: &Configuration) -> Access {
    let environment = configuration.environment();
    let file = |given: Option<PathBuf>, variable: &str| {
        given.or_else(|| environment.text(variable).map(PathBuf::from))
    };
    let address = args.server;
    let address = address.or_else(|| environment.text(names::CALIBAN_FLEET_SERVER));
    Access {
        address: address.unwrap_or_else(|| SERVER.to_owned()),
        key: file(args.key, names::CALIBAN_FLEET_KEY),
        credentials: file(args.creds, names::CALIBAN_FLEET_CREDS),
        authority: file(args.ca, names::CALIBAN_FLEET_CA),
        ..Access::default()
    }
}

impl From<BoardError> for Failure {
    fn from(error: BoardError) -> Self {
        match error {
            BoardError::Full => Self::Busy(error.to_string()),
            BoardError::Unreachable { .. }
            | BoardError::Fenced
            | BoardError::Missing(_)
            | BoardError::TooLarge(_)
            | BoardError::Trouble { .. } => Self::Runtime(error.to_string()),
        }
    }
}

impl From<JobError> for Failure {
    fn from(error: JobError) -> Self {
        Self::Usage(error.to_string())
    }
}
