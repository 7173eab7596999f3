//! Making a job of the command line, and queueing it.

use std::io::{IsTerminal as _, Read as _};
use std::time::Duration;

use caliban_fleet_nats::{
    Board, Budget, JobSpec, LARGEST_SPEC, OnQuestion, Publish, Repo, Submitted,
};
use caliban_git::Git;
use caliban_harness::{Configuration, RunOptions};
use caliban_model::CancellationToken;
use caliban_settings::RuleAction;
use jiff::Timestamp;
use serde_json::json;
use tokio::time::timeout;

use super::outcome;
use crate::args::{OnQuestionArg, PublishArg, ResultArgs, SubmitArgs};
use crate::console::{Console, note};
use crate::exit::Failure;

/// How long a server may take to say whether it has a pool.
const POOL: Duration = Duration::from_secs(2);

/// The job that is asked for, checked before anybody is connected to.
pub(super) async fn spec(
    args: &SubmitArgs,
    options: &RunOptions,
    configuration: &Configuration,
) -> Result<JobSpec, Failure> {
    let is_denied = |rule: &caliban_settings::RuleSpec| rule.action == RuleAction::Deny;
    if let Some(rule) = options
        .permissions
        .rules
        .iter()
        .find(|rule| !is_denied(rule))
    {
        return Err(Failure::Usage(format!(
            "a job can only deny: give the rule for `{}` to the worker",
            rule.pattern
        )));
    }
    let publish = match args.publish {
        PublishArg::Branch => Publish::Branch,
        PublishArg::Bundle => Publish::Bundle,
        PublishArg::Patch => Publish::Patch,
    };
    if args.no_repo && publish == Publish::Branch {
        return Err(Failure::Usage(
            "`--publish branch` needs a repository to have the branch".to_owned(),
        ));
    }
    let now = Timestamp::now();
    let rules = options.permissions.rules.iter();
    let prompt = prompt(args)?;
    let spec = JobSpec {
        job: args.id.unwrap_or_default(),
        repo: repo(args, configuration).await?,
        model: args.model.clone(),
        mode: args.permission_mode.map(|mode| mode.as_str().to_owned()),
        deny: rules.map(|rule| rule.pattern.clone()).collect(),
        on_question: on_question(args.on_question),
        budget: Budget {
            usd: args.max_budget_usd.map(|usd| usd.to_string()),
            turns: args.max_turns,
            wall: args.max_time.map(|time| time.as_secs().max(1)),
        },
        publish,
        deadline: args.begin_within.and_then(|time| {
            let time = jiff::SignedDuration::try_from(time).ok()?;
            now.checked_add(time).ok()
        }),
        traceparent: configuration.environment().text("TRACEPARENT"),
        ..JobSpec::new(args.pool.clone(), &prompt, &who(configuration), now)
    };
    spec.encode()?;
    Ok(spec)
}

pub(super) fn on_question(arg: OnQuestionArg) -> OnQuestion {
    match arg {
        OnQuestionArg::Deny => OnQuestion::Deny,
        OnQuestionArg::Park => OnQuestion::Park,
        OnQuestionArg::Fail => OnQuestion::Fail,
    }
}

fn prompt(args: &SubmitArgs) -> Result<String, Failure> {
    if args.prompt != "-" {
        return Ok(args.prompt.clone());
    }
    if std::io::stdin().is_terminal() {
        return Err(Failure::NoInput(
            "there is no prompt on standard input".to_owned(),
        ));
    }
    let mut text = String::new();
    let mut input = std::io::stdin().take(LARGEST_SPEC as u64 + 1);
    let read = input.read_to_string(&mut text);
    read.map_err(|error| Failure::NoInput(format!("standard input cannot be read: {error}")))?;
    Ok(text)
}

async fn repo(args: &SubmitArgs, configuration: &Configuration) -> Result<Option<Repo>, Failure> {
    if args.no_repo {
        return Ok(None);
    }
    let git = Git::new(
        configuration.workspace.clone(),
        configuration.child_environment(),
        configuration.process.guard.clone(),
    )
    .await;
    let remote = if let Some(remote) = &args.repo {
        remote.clone()
    } else {
        let asked = git.ask(&["remote", "get-url", "origin"]).await;
        let asked = asked.map_err(|reason| {
            Failure::NoInput(format!(
                "no repository that workers could reach: {reason}; name one with `--repo`, or \
                     use `--no-repo`"
            ))
        })?;
        asked.trim().to_owned()
    };
    let wanted = args.commit.as_deref().unwrap_or("HEAD");
    let is_hash = wanted.len() == 40 && wanted.chars().all(|char| char.is_ascii_hexdigit());
    if is_hash {
        let commit = wanted.to_owned();
        pushed(&git, args, &commit).await?;
        return Ok(Some(Repo { remote, commit }));
    }
    let name = format!("{wanted}^{{commit}}");
    let found = git
        .ask(&["rev-parse", "--verify", "--end-of-options", &name])
        .await;
    let commit = found.map_err(|reason| {
        Failure::NoInput(format!(
            "`{wanted}` is no commit of this repository: {reason}"
        ))
    })?;
    if args.commit.is_none()
        && let Ok(changes) = git.ask(&["status", "--porcelain"]).await
        && !changes.is_empty()
    {
        note("warning: what is not committed here does not go along with the job");
    }
    let commit = commit.trim().to_owned();
    pushed(&git, args, &commit).await?;
    Ok(Some(Repo { remote, commit }))
}

/// Refuses a commit that no branch of `origin` has, as far as is known here: no worker could fetch it.
async fn pushed(git: &Git, args: &SubmitArgs, commit: &str) -> Result<(), Failure> {
    const BRANCHES: &str = "refs/remotes/origin/";
    if args.repo.is_some() {
        return Ok(());
    }
    let branches = async |further: &[&str]| {
        let words = [&["for-each-ref", "--count=1"], further, &[BRANCHES]].concat();
        git.ask(&words).await
    };
    let is_known = branches(&[])
        .await
        .is_ok_and(|said| !said.trim().is_empty());
    // Nothing is said of a commit that is not here.
    match branches(&["--contains", commit]).await {
        Ok(said) if is_known && said.trim().is_empty() => Err(Failure::NoInput(format!(
            "no branch of `origin` has the commit {}: push it first (or `git fetch`, where it is \
             there already)",
            commit.get(..12).unwrap_or(commit)
        ))),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Whoever sits here, for people to read.
pub(super) fn who(configuration: &Configuration) -> String {
    let environment = configuration.environment();
    let user = environment
        .text("USER")
        .or_else(|| environment.text("LOGNAME"));
    format!("{}@{}", user.as_deref().unwrap_or("somebody"), host())
}

/// What this machine is called.
pub(super) fn host() -> String {
    let known = ["/proc/sys/kernel/hostname", "/etc/hostname"];
    let name = known
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok());
    let name = name.map(|name| name.trim().to_owned());
    let name = name.filter(|name| !name.is_empty());
    name.unwrap_or_else(|| "here".to_owned())
}

pub(super) async fn submit<B: Board>(
    board: &B,
    args: &SubmitArgs,
    spec: &JobSpec,
    cancel: &CancellationToken,
    console: &mut Console,
) -> Result<(), Failure> {
    // A server that does not answer is heard by the submission.
    let known = timeout(POOL, board.has_pool(&spec.pool)).await;
    if let Ok(Ok(false)) = known {
        return Err(Failure::NoInput(format!(
            "the server has no pool `{0}`, so nobody would take the job; `caliban fleet init \
             --apply --pool {0}` makes it",
            spec.pool
        )));
    }
    let submitted = board.submit(spec).await?;
    let is_new = submitted == Submitted::New;
    if !is_new
        && let Some(record) = board.record(spec.job).await?
        && record
            .value
            .digest
            .is_some_and(|known| known != spec.digest())
    {
        return Err(Failure::Usage(format!(
            "the job {} was submitted before and is another one: `{}`; leave `--id` out for a new job",
            spec.job, record.value.summary
        )));
    }
    if args.wait {
        note(&format!("job {}", spec.job));
        let wanted = ResultArgs {
            job: spec.job,
            wait: true,
            timeout: None,
            download: None,
            json: args.json,
        };
        return outcome::result(board, &wanted, cancel, console).await;
    }
    if args.json {
        let told = json!({"job": spec.job, "pool": spec.pool, "new": is_new});
        return console.write(&format!("{told}\n"));
    }
    if !is_new {
        note("the job was submitted before; nothing has changed");
    }
    console.write(&format!("{}\n", spec.job))
}
