//! The run of all tests: what failed is told at its end and tried again, alone.
//!
//! The tests drive real terminals, shells and servers on machines that do other things at the same time. One
//! that fails among thousands and passes alone is named as unsteady and does not fail the run; one that fails
//! each time does. A run that broke without naming a test (it did not build, it was killed) fails at once.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::shell::{self, say};

/// How many failures are worth a second try: more of them are no accident.
const ACCIDENTS: usize = 8;

/// How often a test may try to pass alone.
const SECOND_CHANCES: usize = 2;

/// Runs all tests by commands that `cargo_test` begins; each gets arguments of its own.
pub(crate) fn run(cargo_test: impl Fn() -> Command) -> Result<()> {
    let first = Outcome::of(cargo_test().arg("--no-fail-fast"))?;
    if first.status.success() {
        return Ok(());
    }
    first.report.tell();
    let failed = &first.report.failed;
    if failed.is_empty() || failed.len() > ACCIDENTS {
        bail!(
            "the tests failed: {} ({} by name)",
            first.status,
            failed.len()
        );
    }
    let mut failing = failed.clone();
    for _ in 0..SECOND_CHANCES {
        say(&format!("once more, alone: {}", failing.join(", ")));
        let again = Outcome::of(
            cargo_test()
                .args(["--no-fail-fast", "--quiet"])
                .args(["--", "--format=pretty", "--exact", "--test-threads=1"])
                .args(&failing),
        )?;
        if again.status.success() {
            say(&format!("unsteady, passed alone: {}", failed.join(", ")));
            return Ok(());
        }
        again.report.tell();
        failing = again.report.failed;
        if failing.is_empty() {
            bail!("the tests failed: {}", again.status);
        }
    }
    bail!("failed again and again: {}", failing.join(", "))
}

struct Outcome {
    status: ExitStatus,
    report: Report,
}

impl Outcome {
    /// Runs a command, passes on what it prints, and keeps what it says of failures.
    fn of(command: &mut Command) -> Result<Self> {
        let line = shell::describe(command);
        say(&line);
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("`{line}` could not be started"))?;
        let printed = child.stdout.take().context("the output is piped")?;
        let reader = thread::spawn(move || Report::read(printed, std::io::stdout()));
        let status = child.wait()?;
        let report = match reader.join() {
            Ok(report) => report?,
            Err(_) => bail!("the output of `{line}` could not be read"),
        };
        Ok(Self { status, report })
    }
}

/// What the test programs said of failures.
#[derive(Default)]
struct Report {
    /// Names of the tests that failed, each once.
    failed: Vec<String>,
    /// The blocks in which they told why.
    told: Vec<String>,
}

impl Report {
    fn read(from: impl Read, mut to: impl Write) -> Result<Self> {
        let mut report = Self::default();
        let mut telling = false;
        for line in BufReader::new(from).split(b'\n') {
            let line = line?;
            let text = String::from_utf8_lossy(&line);
            if !says_nothing(&text) {
                to.write_all(&line)?;
                to.write_all(b"\n")?;
            }
            report.hear(&text, &mut telling);
        }
        Ok(report)
    }

    fn hear(&mut self, line: &str, telling: &mut bool) {
        let name = line
            .strip_prefix("test ")
            .and_then(|rest| rest.strip_suffix(" ... FAILED"));
        if let Some(name) = name
            && !self.failed.iter().any(|known| known == name)
        {
            self.failed.push(name.to_owned());
        }
        *telling |= line == "failures:";
        if *telling {
            self.told.push(line.to_owned());
        }
        *telling &= !line.starts_with("test result:");
    }

    fn tell(&self) {
        say("what failed:");
        let mut to = std::io::stderr();
        for line in &self.told {
            let _ = writeln!(to, "{line}");
        }
    }
}

/// What a program prints that has none of the tests that were asked for.
fn says_nothing(line: &str) -> bool {
    line.is_empty() || line == "running 0 tests" || line.starts_with("test result: ok. 0 passed;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_names_and_the_reasons() {
        let printed = "running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\n\nfailures:\n\n---- a::c stdout ----\n\
                       it broke\n\ntest result: FAILED. 1 passed; 1 failed\n\nrunning 1 test\ntest d ... ok\n";
        let mut passed_on = Vec::new();
        let report = Report::read(printed.as_bytes(), &mut passed_on).expect("it reads");
        assert_eq!(report.failed, ["a::c"]);
        assert_eq!(report.told.first().map(String::as_str), Some("failures:"));
        assert!(report.told.contains(&"it broke".to_owned()));
        assert!(!report.told.iter().any(|line| line.contains("test d")));
        let passed_on = String::from_utf8(passed_on).expect("text");
        assert_eq!(passed_on, printed.replace("\n\n", "\n"));
    }
}
