//! How long the verdict on a long pipeline takes with many rules. `cargo xtask bench` runs it.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use caliban_agent::{Confinement, Workspace};
use caliban_permissions::{Judge, Origin, Places, Protected, Rule, RuleBook};
use caliban_settings::{RuleAction, RuleSpec};
use jiff::Timestamp;
use serde_json::json;

const RULES: usize = 1000;
const COMMANDS: usize = 200;
const RUNS: usize = 200;

fn main() -> ExitCode {
    let Some(milliseconds) = measured() else {
        return ExitCode::FAILURE;
    };
    let report = json!({"milliseconds": milliseconds});
    match writeln!(std::io::stdout(), "{report}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The time of each run; nothing if the call is not judged as it should be.
fn measured() -> Option<Vec<f64>> {
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
    let timed = || {
        let start = Instant::now();
        let decision = judge.decide("Bash", &input, Timestamp::UNIX_EPOCH);
        let time = start.elapsed().as_secs_f64() * 1e3;
        (decision.action == RuleAction::Allow).then_some(time)
    };
    (0..RUNS).map(|_| timed()).collect()
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
