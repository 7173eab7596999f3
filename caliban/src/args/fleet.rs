//! The arguments that concern a fleet on many machines.

use std::path::PathBuf;
use std::time::Duration;

use caliban_fleet_nats::{JobId, Pool};
use caliban_settings::PermissionMode;
use clap::{Args, Subcommand, ValueEnum};

use super::agents::QuestionAnswer;

#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    #[command(flatten)]
    pub(crate) access: AccessArgs,
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

/// Where the server of the fleet is, and who comes.
#[derive(Debug, Args)]
pub(crate) struct AccessArgs {
    /// The NATS server (`CALIBAN_FLEET_SERVER`) [default: port 4222 of this machine]
    #[arg(long, value_name = "URL", global = true)]
    pub(crate) server: Option<String>,
    /// A file with the seed of an nkey (`CALIBAN_FLEET_KEY`)
    #[arg(long, value_name = "FILE", global = true, conflicts_with = "creds")]
    pub(crate) key: Option<PathBuf>,
    /// A file with a JWT and its seed (`CALIBAN_FLEET_CREDS`)
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) creds: Option<PathBuf>,
    /// Certificates that vouch for the server, besides the system's (`CALIBAN_FLEET_CA`)
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) ca: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Queue a job and print its id; exits with 75 when the queue is full.
    Submit(Box<SubmitArgs>),
    /// List jobs, the latest first.
    List(ListArgs),
    /// Show what a job did and does, and answer its questions; Ctrl+D detaches.
    Attach(WatchArgs),
    /// Print what a job did so far.
    Logs(LogArgs),
    /// Answer a question that a job waits with; the first answer counts.
    Answer(JobAnswerArgs),
    /// End a job, whether it runs or waits.
    Cancel {
        #[arg(value_name = "JOB")]
        job: JobId,
    },
    /// Print the result of a job; the exit code is that of the run, and 75 while there is none.
    Result(ResultArgs),
    /// Look at the server, and say what would lose data; exits with 1 when something would.
    Doctor(FleetDoctorArgs),
    /// Print a server configuration, or make streams and pools on a server that has it.
    Init(InitArgs),
    /// Take jobs of a pool and run them, until it is interrupted.
    ///
    /// What jobs may do is decided here, as for a run, before `fleet`: `caliban --permission-mode
    /// acceptEdits --allow 'Bash:cargo *' fleet worker`. A job can ask for less and never for more.
    Worker(Box<WorkerArgs>),
    /// Print what runs workers on machines that others manage.
    ///
    /// What jobs may do there is decided as for a worker, before `fleet`: `caliban --permission-mode
    /// acceptEdits fleet manifest systemd` prints a unit whose worker is started like this.
    Manifest(ManifestArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// What is to be done; `-` reads it from standard input.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: String,
    /// Who may take it.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) pool: Pool,
    /// The id of the job: the same id is the same job [default: a new one]
    #[arg(long, value_name = "UUID")]
    pub(crate) id: Option<JobId>,
    /// The repository to work on, as workers reach it [default: the remote `origin` of this one]
    #[arg(long, value_name = "URL", conflicts_with = "no_repo")]
    pub(crate) repo: Option<String>,
    /// The commit to begin with, such as a branch of this repository [default: HEAD]
    #[arg(long, value_name = "COMMIT", conflicts_with = "no_repo")]
    pub(crate) commit: Option<String>,
    /// Work in an empty directory.
    #[arg(long)]
    pub(crate) no_repo: bool,
    /// How changed files come back.
    #[arg(long, value_name = "HOW", value_enum, default_value = "patch")]
    pub(crate) publish: PublishArg,
    /// Name of the model [default: the worker's]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// A stricter mode than the worker's.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<PermissionMode>,
    /// What becomes of calls that would be asked about; workers must agree to `park`.
    #[arg(long, value_name = "HOW", value_enum, default_value = "deny")]
    pub(crate) on_question: OnQuestionArg,
    /// Stop after this many calls to the model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
    /// Stop when the job has cost more than this.
    #[arg(long, value_name = "USD")]
    pub(crate) max_budget_usd: Option<rust_decimal::Decimal>,
    /// Stop an attempt after this time, such as 90s, 20m or 2h.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) max_time: Option<Duration>,
    /// Fail the job when nobody has begun it after this time.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) begin_within: Option<Duration>,
    /// Wait for the result, print it, and exit as the run did.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PublishArg {
    /// As a branch of the repository.
    Branch,
    /// As a git bundle among the artefacts.
    Bundle,
    /// As a patch among the artefacts.
    Patch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnQuestionArg {
    /// They are denied, and the model goes on.
    Deny,
    /// They wait for `caliban fleet answer`.
    Park,
    /// The job fails.
    Fail,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only those of this pool.
    #[arg(long, value_name = "NAME")]
    pub(crate) pool: Option<Pool>,
    /// Only those in this state.
    #[arg(long, value_name = "STATE", value_parser = [
        "queued", "running", "cancelling", "done", "failed", "cancelled",
    ])]
    pub(crate) state: Option<String>,
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Print JSON, one object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    #[arg(value_name = "JOB")]
    pub(crate) job: JobId,
    /// Leave out everything up to this number.
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) since: u64,
    /// Watch, and type nothing.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Print frames, one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    #[arg(value_name = "JOB")]
    pub(crate) job: JobId,
    /// Go on with what happens, until the job ends.
    #[arg(long, short = 'f')]
    pub(crate) follow: bool,
    /// Print frames, one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JobAnswerArgs {
    #[arg(value_name = "JOB")]
    pub(crate) job: JobId,
    /// The question; `-` for the one it waits with.
    #[arg(value_name = "QUESTION")]
    pub(crate) question: String,
    #[arg(value_name = "ANSWER", value_enum)]
    pub(crate) answer: QuestionAnswer,
    /// Why not, for the model.
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ResultArgs {
    #[arg(value_name = "JOB")]
    pub(crate) job: JobId,
    /// Wait until there is one.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Wait no longer than this.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "wait")]
    pub(crate) timeout: Option<Duration>,
    /// Write the artefacts into this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) download: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FleetDoctorArgs {
    /// The monitoring endpoint of the server [default: port 8222 of the server]
    #[arg(long, value_name = "URL")]
    pub(crate) monitor: Option<url::Url>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Make streams and pools on the server, or change them to these numbers.
    #[arg(long)]
    pub(crate) apply: bool,
    /// Where the keys of admin, submitter and worker are; those that are not there are made.
    #[arg(
        long,
        value_name = "DIR",
        required_unless_present = "apply",
        conflicts_with = "apply"
    )]
    pub(crate) keys: Option<PathBuf>,
    /// Where the server is to keep its data.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/nats")]
    pub(crate) store: String,
    /// Where the server is to listen.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4222")]
    pub(crate) listen: String,
    /// Where its monitoring endpoint is to listen.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8222")]
    pub(crate) monitor: String,
    /// A pool to make; can be repeated.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) pool: Vec<Pool>,
    /// Jobs that may be queued or running at once; more are refused.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) queue: u32,
    /// Jobs of a pool that may run at once, on all its workers.
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) running: u32,
    /// How long a worker may be silent before another takes its job.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub(crate) lease: Duration,
    /// How long journals, events, results and artefacts are kept.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "168h")]
    pub(crate) keep: Duration,
    /// How many servers of a cluster keep everything: 1, 3 or 5.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = replicas)]
    pub(crate) replicas: u8,
}

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Whose jobs it takes.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) pool: Pool,
    /// How many jobs it runs at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) slots: u16,
    /// What it is called [default: the host's name and the process id]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Where checkouts are made [default: `fleet-worker` in the cache directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) work_dir: Option<PathBuf>,
    /// Repositories that jobs may name: how their address begins. Can be repeated; with none, all
    /// that are reached by https and ssh, and no directory of this machine.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) allow_repo: Vec<String>,
    /// The most that jobs may choose for calls that would be asked about.
    #[arg(long, value_name = "HOW", value_enum, default_value = "deny")]
    pub(crate) on_question: OnQuestionArg,
    /// How long a question waits for an answer.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "1h")]
    pub(crate) question_patience: Duration,
    /// How long the server waits for a silent worker, as `fleet init --lease` says: leases are
    /// renewed every third of it, and a run that could not renew for three quarters is ended.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub(crate) lease: Duration,
    /// Attempts that may end without a result before a job has failed.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) attempts: u32,
    /// How long an attempt may take, whatever the job says.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "24h")]
    pub(crate) max_time: Duration,
    /// The largest artefact that is kept, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    pub(crate) max_artefact: u64,
    /// End after so many jobs.
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<u64>,
    /// End when there was no job for so long.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) idle: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct ManifestArgs {
    #[arg(value_name = "WHERE", value_enum)]
    pub(crate) kind: ManifestKind,
    /// Whose jobs the workers take.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) pool: Pool,
    /// How many workers.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) workers: u32,
    /// How many jobs each runs at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(crate) slots: u16,
    /// The image, for Kubernetes.
    #[arg(long, value_name = "IMAGE", default_value = "caliban:latest")]
    pub(crate) image: String,
    /// The runtime class of the pods, for Kubernetes, such as gvisor.
    #[arg(long, value_name = "NAME")]
    pub(crate) runtime_class: Option<String>,
    /// The program, for Slurm and systemd: where it is on the workers' machines, in full.
    #[arg(long, value_name = "PATH", value_parser = absolute, default_value = "/usr/local/bin/caliban")]
    pub(crate) program: PathBuf,
    /// How long the server waits for a silent worker, as `fleet init --lease` says.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub(crate) lease: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ManifestKind {
    Kubernetes,
    Slurm,
    Systemd,
}

/// As many as have a majority.
fn replicas(text: &str) -> Result<u8, String> {
    match text {
        "1" => Ok(1),
        "3" => Ok(3),
        "5" => Ok(5),
        _ => Err("expected 1, 3 or 5".to_owned()),
    }
}

/// A path that means the same wherever it is used.
fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() {
        Ok(path)
    } else {
        Err("expected an absolute path".to_owned())
    }
}

/// A time such as `500ms`, `90s`, `20m` or `2h`.
fn duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a time such as 500ms, 90s, 20m or 2h".to_owned();
    let digits = text.find(|char: char| !char.is_ascii_digit());
    let (number, unit) = text.split_at(digits.ok_or_else(expected)?);
    let number: u64 = number.parse().map_err(|_| expected())?;
    let millis = match unit {
        "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        _ => None,
    };
    // A year is more than anybody waits.
    let millis = millis.filter(|millis| (1..=366 * 24 * 3_600_000).contains(millis));
    millis.map(Duration::from_millis).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2h"), Ok(Duration::from_hours(2)));
        for text in ["90", "s", "-1s", "1d", "0s", "99999999999h", ""] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
