//! `caliban sandbox`: commands tried in the sandbox, and what it makes of a path or a host.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use caliban_harness::{
    Configuration, Explained, HostQuestions, RunOptions, explain_host, make_sandbox, sandbox_policy,
};
use caliban_model::CancellationToken;
use caliban_process::{Ending, Invocation, Sink, drive};
use caliban_sandbox::{Network, Requirement, Sandbox, Standing, Success};

use crate::args::SandboxCommand;
use crate::console::{Console, note};
use crate::exit::Failure;

/// As long as anybody may want to wait.
const LIMIT: Duration = Duration::from_hours(24);
/// How much of the end of an output is kept, to explain what the sandbox refused.
const KEPT: usize = 32 * 1024;
/// What shells add to a signal's number.
const SIGNALLED: i32 = 128;

pub(crate) async fn run(
    command: &SandboxCommand,
    options: &RunOptions,
    configuration: &Configuration,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    // Whoever tries it out wants no other answer than its own.
    let mut policy = sandbox_policy(&options.tools, configuration)?;
    policy.requirement = Requirement::Required;
    let cache = configuration.locations.cache_dir().join("sandbox");
    let sandbox = make_sandbox(policy, configuration, cache, &HostQuestions::unattended()).await?;
    let sandbox = Arc::new(sandbox);
    match command {
        SandboxCommand::Exec { command } => exec(&sandbox, command, configuration, cancel).await,
        SandboxCommand::Explain { what } => console.write(&explain(&sandbox, what, configuration)?),
    }
}

/// Passes output on as it comes, and keeps the end of it.
#[derive(Default)]
struct Through {
    end: Vec<u8>,
}

impl Sink for Through {
    async fn take(&mut self, bytes: &[u8]) {
        // Nobody may be reading any more; the command goes on all the same.
        let mut stdout = std::io::stdout();
        let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
        self.end.extend_from_slice(bytes);
        let excess = self.end.len().saturating_sub(KEPT);
        self.end.drain(..excess);
    }
}

async fn exec(
    sandbox: &Arc<Sandbox>,
    command: &[OsString],
    configuration: &Configuration,
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    let Some((program, args)) = command.split_first() else {
        return Err(Failure::Usage("there is no command to run".to_owned()));
    };
    for warning in sandbox.warnings() {
        note(&format!("warning: {warning}"));
    }
    let confined = sandbox
        .confine(Invocation {
            program: program.clone(),
            args: args.to_vec(),
            directory: configuration.workspace.clone(),
            environment: configuration.child_environment(),
        })
        .map_err(|error| Failure::Runtime(error.to_string()))?;
    let lost = |error: std::io::Error| Failure::Runtime(error.to_string());
    let (process, output) = confined
        .invocation
        .start(&configuration.process.guard)
        .map_err(lost)?;
    let mut through = Through::default();
    let finished = drive(process, output, LIMIT, cancel, &mut through)
        .await
        .map_err(lost)?;
    let code = match finished.ending {
        Ending::Exited(code) => code,
        Ending::Signalled(signal) => SIGNALLED + signal.0,
        Ending::TimedOut | Ending::Cancelled => 124,
    };
    let success = if code == 0 { Success::Yes } else { Success::No };
    let output = String::from_utf8_lossy(&through.end).into_owned();
    for line in confined.call.finish(success, &output) {
        note(&line);
    }
    match u8::try_from(code).unwrap_or(1) {
        0 => Ok(()),
        code => Err(Failure::Silent(code)),
    }
}

fn explain(
    sandbox: &Sandbox,
    what: &str,
    configuration: &Configuration,
) -> Result<String, Failure> {
    if let Some(address) = ["https://", "http://"]
        .iter()
        .find_map(|it| what.strip_prefix(it))
    {
        let end = address.find(['/', '?', '#']).unwrap_or(address.len());
        return of_host(sandbox, &address[..end], configuration);
    }
    let path = configuration.process.current_directory.join(what);
    // Without `.` between, as it is shown.
    let path: PathBuf = path.components().collect();
    let is_path = what.contains('/') || what.starts_with(['.', '~']) || path.exists();
    if !is_path {
        return of_host(sandbox, what, configuration);
    }
    let path = match what.strip_prefix("~/") {
        Some(rest) => configuration.locations.home().join(rest),
        None => path,
    };
    let standing = sandbox
        .standing(&path)
        .map_err(|error| Failure::Runtime(error.to_string()))?;
    let shown = path.display();
    Ok(match standing {
        Standing::Writable => match sandbox.policy().takes_away(&path) {
            Some(place) => format!(
                "{shown}: not there; `{}` is protected, and what commands make there is taken away when they end\n",
                place.display()
            ),
            None => format!("{shown}: commands may read and write it\n"),
        },
        Standing::ReadOnly { why } => {
            format!("{shown}: commands may read it and not write it: {why}\n")
        }
        Standing::Hidden { why } => format!("{shown}: commands do not see it: {why}\n"),
        Standing::Elsewhere { real } => format!(
            "{shown}: commands see another place there, their own{}\n",
            own_place(&real)
        ),
    })
}

fn own_place(real: &Path) -> String {
    if real.exists() {
        format!(" ({})", real.display())
    } else {
        String::new()
    }
}

fn of_host(
    sandbox: &Sandbox,
    host: &str,
    configuration: &Configuration,
) -> Result<String, Failure> {
    let network = &configuration.settings().sandbox.network;
    Ok(match (&sandbox.policy().network, sandbox.report().egress) {
        (Network::Operator { port }, _) => format!(
            "{host}: the proxy at 127.0.0.1:{port} decides (`sandbox.network.http_proxy_port`)\n"
        ),
        (Network::Domains { .. }, "proxy") => match explain_host(network, host)? {
            Explained::Reached { by } => {
                format!(
                    "{host}: reached, by the entry \"{by}\" of `sandbox.network.allowed_domains`\n"
                )
            }
            Explained::Denied { by } => format!("{host}: not reached, \"{by}\" denies it\n"),
            Explained::Private { entry } => format!(
                "{host}: not reached, it is not on the public internet; only \"{entry}\" in `sandbox.network.allowed_domains` opens it\n"
            ),
            Explained::Unlisted { entry } => format!(
                "{host}: not reached unless somebody consents; \"{entry}\" in `sandbox.network.allowed_domains` allows it\n"
            ),
        },
        (Network::Closed | Network::Domains { .. }, _) => {
            format!("{host}: not reached; the network of commands is closed\n")
        }
    })
}
