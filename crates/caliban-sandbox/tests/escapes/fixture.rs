//! A program for the tests: a guardian, the steps to a confined program, and one that runs a
//! script confined or not.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use caliban_process::{Ending, GUARD_ARGUMENT, Guard, Invocation, Sink, drive, guard_main};
use caliban_sandbox::{
    CONFINE_ARGUMENT, INNER_ARGUMENT, Place, Policy, Sandbox, Success, Surroundings, confine_main,
    inner_main,
};
use tokio_util::sync::CancellationToken;

/// How often a sandbox is tried to be made.
const ATTEMPTS: usize = 5;
/// How long a script may take.
const LIMIT: Duration = Duration::from_mins(1);

fn main() -> ExitCode {
    caliban_process::seclude();
    let mut args = std::env::args_os().skip(1);
    let Some(first) = args.next() else {
        return ExitCode::from(64);
    };
    if first == GUARD_ARGUMENT {
        guard_main(args)
    } else if first == CONFINE_ARGUMENT {
        confine_main(args)
    } else if first == INNER_ARGUMENT {
        inner_main(args)
    } else {
        run(&first, args)
    }
}

#[derive(Default)]
struct Text(Vec<u8>);

impl Sink for Text {
    async fn take(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// `SETTINGS|bare BASE SCRIPT [NAME=VALUE]...`: the workspace is `BASE/ws`, the home `BASE/home`.
#[tokio::main(flavor = "current_thread")]
async fn run(settings: &OsStr, mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(base), Some(script)) = (args.next(), args.next()) else {
        return ExitCode::from(64);
    };
    let base = Path::new(&base);
    let home = base.join("home");
    let mut environment: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), std::env::var_os("PATH").unwrap_or_default()),
        ("HOME".into(), home.clone().into()),
    ];
    for pair in args {
        let Some((name, value)) = pair.to_str().and_then(|pair| pair.split_once('=')) else {
            return ExitCode::from(64);
        };
        environment.push((name.into(), value.into()));
    }
    let guard = Guard::ReExec(PathBuf::from("/proc/self/exe"));
    let invocation = Invocation {
        program: "/bin/bash".into(),
        args: ["--noprofile", "--norc", "-c"]
            .map(OsString::from)
            .into_iter()
            .chain([script])
            .collect(),
        directory: base.join("ws"),
        environment: environment.clone(),
    };
    let sandbox = match settings.to_str() {
        Some("bare") | None => None,
        Some(settings) => {
            let Ok(settings) = serde_json::from_str(settings) else {
                return ExitCode::from(64);
            };
            let own = ["home/.config/caliban", "home/.cache/caliban"].map(|it| base.join(it));
            let surroundings = Surroundings {
                roots: &[base.join("ws")],
                home: &home,
                own: &own,
                variables: &[],
            };
            let place = Place {
                cache: base.join("home/.cache/caliban/sandbox"),
                quarantine: base.join("home/.cache/caliban/quarantine"),
                environment,
                guard: guard.clone(),
                proxy: None,
            };
            let policy = match Policy::new(&settings, &surroundings) {
                Ok(policy) => policy,
                Err(error) => return fail(&error),
            };
            let sandbox = match Sandbox::start(policy, place).await {
                Ok(sandbox) => Arc::new(sandbox),
                Err(error) => return fail(&error),
            };
            say(&format!("backend {}", sandbox.report().backend));
            if let Some(reason) = sandbox.report().reason {
                say(&reason);
            }
            Some(sandbox)
        }
    };
    for _ in 0..ATTEMPTS {
        match once(invocation.clone(), sandbox.as_ref(), &guard).await {
            Ok(code) => return code,
            Err(problem) => say(&format!("not started: {problem}")),
        }
    }
    ExitCode::from(70)
}

/// Runs the program; the error says why it never began.
async fn once(
    invocation: Invocation,
    sandbox: Option<&Arc<Sandbox>>,
    guard: &Guard,
) -> Result<ExitCode, String> {
    let (invocation, call) = match sandbox {
        None => (invocation, None),
        Some(sandbox) => match sandbox.confine(invocation) {
            Ok(confined) => (confined.invocation, Some(confined.call)),
            Err(error) => return Ok(fail(&error)),
        },
    };
    let mut text = Text::default();
    let cancel = CancellationToken::new();
    let started = match invocation.start(guard) {
        Ok(started) => started,
        Err(error) => return Ok(fail(&error)),
    };
    let finished = match drive(started.0, started.1, LIMIT, &cancel, &mut text).await {
        Ok(finished) => finished,
        Err(error) => return Ok(fail(&error)),
    };
    let code = match finished.ending {
        Ending::Exited(code) => u8::try_from(code).unwrap_or(255),
        Ending::Signalled(_) | Ending::TimedOut | Ending::Cancelled => 255,
    };
    if let Some(call) = call {
        let success = if code == 0 { Success::Yes } else { Success::No };
        let output = String::from_utf8_lossy(&text.0).into_owned();
        if let Some(problem) = call.start_failure(success, &output) {
            return Err(problem);
        }
        let _ = std::io::stdout().write_all(&text.0);
        for line in call.finish(success, &output) {
            say(&line);
        }
    } else {
        let _ = std::io::stdout().write_all(&text.0);
    }
    Ok(ExitCode::from(code))
}

fn fail(error: &dyn std::fmt::Display) -> ExitCode {
    say(&format!("failed: {error}"));
    ExitCode::from(70)
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
