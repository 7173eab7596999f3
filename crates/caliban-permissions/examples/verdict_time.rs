//! How long the verdict on a long pipeline takes with many rules. `cargo xtask bench` runs it.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use caliban_agent::{Confinement, Workspace};
use caliban_permissions::{Judge, Origin, Places, Protected, Rule, RuleBook};
use caliban_settings::{RuleAction, RuleSpec};
use jiff::Timestamp;
use serde_json::json;

const RULES: usize = 1000;
const COMMANDS: usize = 200;
const RUNS: usize = 200;
/// A verdict must not be felt.
const BOUND: Duration = Duration::from_millis(5);

fn main() -> ExitCode {
    let Some(fastest) = measured() else {
        return ExitCode::FAILURE;
    };
    let _ = writeln!(
        std::io::stdout(),
        "verdict on {COMMANDS} commands with {RULES} rules: {:.2} ms (fastest; at most {} ms)",
        fastest.as_secs_f64() * 1e3,
        BOUND.as_millis(),
    );
    if fastest <= BOUND {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The fastest of the runs, which others on the machine disturb least; none if the call is not
/// judged as it should be.
fn measured() -> Option<Duration> {
    let workspace = Workspace::new(Path::new("."), &[], None, Confinement::Open).ok()?;
    let judge = Judge {
        book: RuleBook::of((0..RULES).filter_map(rule)),
        places: Places::new(workspace, None),
        protected: Protected::default(),
    };
    let commands: Vec<String> = (0..COMMANDS)
        .map(|number| format!("tool{} --level=3 'some text' file{number}.txt", number * 5))
        .collect();
    let input = json!({"command": commands.join(" | ")});
    let mut fastest = None;
    for _ in 0..RUNS {
        let start = Instant::now();
        let decision = judge.decide("Bash", &input, Timestamp::UNIX_EPOCH);
        let time = start.elapsed();
        if decision.action != RuleAction::Allow {
            return None;
        }
        fastest = Some(fastest.map_or(time, |before: Duration| before.min(time)));
    }
    fastest
}

/// Mostly rules about one program; every fifth allows one of the pipeline's, every tenth denies
/// something anywhere in a command.
fn rule(number: usize) -> Option<Rule> {
    let (pattern, action) = match number % 10 {
        0 | 5 => (format!("Bash:tool{number} *"), RuleAction::Allow),
        1 => (format!("Bash:~bad{number} *"), RuleAction::Deny),
        2 => (format!("Write:src/{number}/**"), RuleAction::Allow),
        3 => (format!("mcp__server{number}__*"), RuleAction::Ask),
        _ => (format!("Bash:other{number} *"), RuleAction::Deny),
    };
    Rule::new(RuleSpec::new(pattern, action), Origin::User).ok()
}
