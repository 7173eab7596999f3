//! Whether commands can be confined here as the settings say, found out by doing it.

use caliban_harness::options::RunOptions;
use caliban_harness::{Configuration, HostQuestions, make_sandbox, sandbox_policy};
use caliban_sandbox::{Report, Requirement};

use super::report::Row;

const NAME: &str = "sandbox";

pub(super) async fn row(options: &RunOptions, configuration: &Configuration) -> Row {
    let settings = &configuration.settings().sandbox;
    if settings.enabled != Some(true) {
        return Row::warn(
            NAME,
            "off; commands run with your rights, as far as rules permit them (`sandbox.enabled`)",
        );
    }
    let mut policy = match sandbox_policy(&options.tools, configuration) {
        Ok(policy) => policy,
        Err(error) => return Row::fail(NAME, error.to_string()),
    };
    let requirement = policy.requirement;
    policy.requirement = Requirement::Preferred;
    // What is tried leaves no trace.
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => return Row::fail(NAME, format!("it cannot be tried: {error}")),
    };
    let (cache, hosts) = (folder.path().to_owned(), HostQuestions::unattended());
    let sandbox = match make_sandbox(policy, configuration, cache, &hosts).await {
        Ok(sandbox) => sandbox,
        Err(error) => return Row::fail(NAME, error.to_string()),
    };
    let report = sandbox.report();
    match (report.reason.clone(), requirement) {
        (Some(reason), Requirement::Required) => {
            Row::fail(NAME, format!("there is none, and no run begins: {reason}"))
        }
        (Some(reason), Requirement::Preferred) => Row::warn(
            NAME,
            format!("there is none, and commands run unconfined: {reason}"),
        ),
        (None, requirement) => {
            let row = usable(&sandbox.described(), &report);
            let mut remarks = sandbox.warnings();
            if requirement == Requirement::Preferred {
                remarks.push("`sandbox.fail_if_unavailable` is not set: where the sandbox fails, commands run unconfined".to_owned());
            }
            row.with(remarks)
        }
    }
}

fn usable(backend: &str, report: &Report) -> Row {
    let Report { egress, .. } = report;
    if report.reduced.is_empty() {
        return Row::pass(
            NAME,
            format!("commands are confined by {backend}; egress {egress}"),
        );
    }
    let lacks = report.reduced.join(", ");
    Row::warn(
        NAME,
        format!("commands are confined by {backend}, which lacks: {lacks}; egress {egress}"),
    )
}
